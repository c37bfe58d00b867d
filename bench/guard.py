#!/usr/bin/env python3
"""Fails when what must stay small has grown past the figures in bench/figures.json. Nothing here is timed.

    guard.py COTTER [--accept]

With --accept the figures are set to what is found: that is how one grows knowingly, with the reason in the commit.

binary_bytes: the size of the release binary without its tables of relocations, at most 5 MiB. Those differ by a third
    of a megabyte between C libraries (glibc packs them from 2.36 on), so they do not count. One percent more is let
    through, which is what other linkers make of the same program; and ten where another compiler or one for another
    machine has built it than `compiler` says.
dependencies: the packages that are built into the binary, those that only run in the compiler left out; none may
    be there in two versions.
request_bytes: the first request's body with all built-in tools, a prompt of one letter and no file of the user's.
    Tokens cannot be counted without a vendor's table, but the text is always of the same kind: 7,829 bytes are
    1,823 tokens of o200k_base, 4.3 bytes each.
instructions: those of a run of one answer without tools, counted by valgrind. They differ between processors and
    C libraries, so they are printed, and fail only when they have grown by half.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import bench
import start

HERE = pathlib.Path(__file__).resolve().parent
FIGURES = HERE / "figures.json"
MOST_BINARY_BYTES = 5 << 20
CARGO = os.environ.get("CARGO", "cargo")
RUSTC = os.environ.get("RUSTC", "rustc")
# How much more than its figure each may be.
SLACK = {"binary_bytes": 1.01, "dependencies": 1, "request_bytes": 1, "instructions": 1.5}
SLACK_OF_OTHER_COMPILERS = 1.1


def relocation_bytes(binary):
    """The size of an ELF file's tables of relocations (SHT_RELA and SHT_RELR)."""
    start, = struct.unpack_from("<Q", binary, 0x28)
    size, count = struct.unpack_from("<HH", binary, 0x3A)
    sections = (struct.unpack_from("<IIQQQQ", binary, start + size * number) for number in range(count))
    return sum(length for _, kind, _, _, _, length in sections if kind in (4, 19))


def binary_bytes(cotter):
    binary = pathlib.Path(cotter).read_bytes()
    return len(binary) - relocation_bytes(binary)


def compiler():
    """The compiler's release and the machine that it builds for."""
    told = subprocess.run([RUSTC, "-vV"], cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = dict(line.split(": ", 1) for line in told.splitlines() if ": " in line)
    return f"rustc {lines['release']}, {lines['host']}"


def tree(*arguments):
    command = [CARGO, "tree", "--quiet", "--locked", "--edges", "normal,no-proc-macro", *arguments]
    return subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout


def dependencies():
    packages = {tuple(line.split()[:2]) for line in tree("--prefix", "none").splitlines() if line}
    # The program itself is none.
    return len(packages) - 1


def environment(folder):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder}


def request_bytes(cotter):
    arguments = ["--dry-run", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "-p", "x"]
    with tempfile.TemporaryDirectory() as folder:
        how = {"cwd": folder, "env": environment(folder), "stdin": subprocess.DEVNULL, "capture_output": True}
        run = subprocess.run([cotter, *arguments], check=True, **how)
    return len(run.stdout)


def instructions(cotter):
    """What valgrind counts; why not, where there is no count."""
    if not shutil.which("valgrind"):
        return "valgrind: not installed"
    with tempfile.TemporaryDirectory() as folder:
        process, port = bench.start_server(bench.build(folder, "server"))
        try:
            asking = start.ask(cotter, f"http://127.0.0.1:{port}/turns/0/v1")
            count, why = start.counted(asking, folder, environment(folder))
        finally:
            process.kill()
            process.wait()
    return f"valgrind: {why}" if count is None else count


def main():
    cotter = os.path.abspath(sys.argv[1])
    figures = json.loads(FIGURES.read_text())
    built_by = compiler()
    slack = dict(SLACK)
    if built_by != figures.get("compiler"):
        print(f"{built_by}: the figure of binary_bytes is another compiler's, {figures.get('compiler')}")
        slack["binary_bytes"] = SLACK_OF_OTHER_COMPILERS
    found = {
        "binary_bytes": binary_bytes(cotter),
        "dependencies": dependencies(),
        "request_bytes": request_bytes(cotter),
        "instructions": instructions(cotter),
    }
    wrong = []
    for name, value in found.items():
        if isinstance(value, str):
            print(f"SKIPPED {name}: {value}")
            continue
        print(f"{name}: {value:,}, {value / figures[name]:.1%} of the figure")
        if value > figures[name] * slack[name]:
            remedy = "if it must, `make guard ACCEPT=--accept`"
            wrong.append(f"{name} has grown from {figures[name]:,} to {value:,}: {remedy}")
    if (size := found["binary_bytes"]) > MOST_BINARY_BYTES:
        wrong.append(f"the binary has {size:,} bytes, more than {MOST_BINARY_BYTES:,}: no figure allows that")
    if twice := tree("--duplicates").strip():
        wrong.append(f"a package is there in two versions:\n{twice}")
    if sys.argv[2:] == ["--accept"]:
        counted = {name: value for name, value in found.items() if isinstance(value, int)}
        FIGURES.write_text(json.dumps({**figures, **counted, "compiler": built_by}, indent=2) + "\n")
    elif wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
