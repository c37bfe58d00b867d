#!/usr/bin/env python3
"""Runs cotter beside curl and a bare C client that post the same bytes, and prints ratios.

    bench.py COTTER [STATIC COTTER]

One local server answers all of them. The programs take turns in small batches, so that a busy machine slows
all of them alike; the median counts. The table is written to target/bench.md too.

What cotter reads and writes lies in memory, but for one row: its sessions are kept on the disk. What a new file costs
there depends on what was removed before: ext4 passes each inode over that was freed in the last minutes. So the bench
removes none, and target/bench grows. What the others post lies there too: from memory it is read more slowly.

CPU a turn is what a turn adds to one answer. The C client does nothing in it but read a file and send it, so that
its figure is what the bytes cost. The history is what the last request holds that the first does not.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "target"
KEPT = TARGET / "bench"
# What is run, by the server's name for it and the number of turns: the label, batches, and runs in a batch.
CASES = {
    ("turns", 0): ("one answer", 20, 5),
    ("turns", 10): ("10 tool turns", 20, 5),
    ("turns", 50): ("50 tool turns", 40, 2),
    ("turns", 1000): ("1,000 tool turns", 15, 1),
    ("large", 50): ("50 turns of 50 kB", 8, 1),
}
# What memory may come to, in MiB: so much and twice the history.
MOST_MEMORY = 6
# A file system in memory, on most machines, and what the files of a bench take of it, in bytes. No program lies there:
# in a container none may be run from it.
MEMORY, LEAST_ROOM = "/dev/shm", 2**30


def build(folder, name, *flags):
    """Builds a program of this folder's."""
    target = os.path.join(folder, name)
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", *flags, "-o", target, HERE / f"{name}.c"], check=True)
    return target


def installed(program, folder):
    """A copy of a program, as `make install` makes one. What a linker has just written lies in memory page by page,
    and starts slower for it than what was copied or read from a disk."""
    copy = pathlib.Path(tempfile.mkdtemp(dir=folder), os.path.basename(program))
    copy.write_bytes(pathlib.Path(program).read_bytes())
    copy.chmod(0o755)
    return str(copy)


def server_client_measure(folder):
    """The programs that cotter is measured with, none of which needs a library."""
    return (installed(build(folder, name, "-static"), folder) for name in ("server", "client", "measure"))


def go_ahead_of_others():
    """Ahead of all else that runs, where that may be; how it is measured now."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return "ahead of all others"
    except PermissionError:
        return "among all others; root measures ahead of them"


def start_server(server, *arguments):
    process = subprocess.Popen([server, *arguments], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def bodies(cotter, server, folder, case):
    """The request bodies that cotter sends, one file each on the disk, as the server saw them."""
    kept = KEPT / "bodies-{}-{}".format(*case)
    kept.mkdir(parents=True, exist_ok=True)
    files = [kept / f"{number + 1:05}" for number in range(case[1] + 1)]
    for file in files:
        file.write_bytes(b"")  # what another cotter has sent
    process, port = start_server(server, kept)
    try:
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        subprocess.run(command(cotter, port, case), cwd=folder, check=True, **silent)
    finally:
        process.kill()
        process.wait()
    if not all(file.stat().st_size for file in files):
        sys.exit(f"bench: {case} took fewer requests than it has turns")
    return files


def command(cotter, port, case):
    url = "http://127.0.0.1:{}/{}/{}/v1".format(port, *case)
    return [cotter, "--base-url", url, "--model", "m", "--tools", "Read", "-p", "Read apple.py"]


def curl_config(folder, files, url):
    path = os.path.join(folder, f"curl-{len(files)}")
    head = f'url = "{url}"\nheader = "content-type: application/json"\nheader = "expect:"\n'
    entries = [f'{head}data-binary = "@{file}"\nsilent\n' for file in files]
    pathlib.Path(path).write_text("next\n".join(entries))
    return path


def measured(programs, measure, folder, batches, batch):
    """Of each program the medians of wall time and CPU time in microseconds, and of peak memory in KiB."""
    found = {name: [] for name in programs}
    for _ in range(batches):
        for name, (arguments, environment) in programs.items():
            measuring = [measure, str(batch), *arguments]
            how = {"cwd": folder, "env": os.environ | environment, "capture_output": True, "text": True}
            run = subprocess.run(measuring, check=True, **how)
            found[name] += [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    return {name: [statistics.median(column) for column in zip(*runs)] for name, runs in found.items()}


def main():
    lines = [
        "| run | program | wall, ms | CPU, ms | CPU a turn, µs | peak, MiB | wall / curl | CPU / C client |",
        "|---|---|---|---|---|---|---|---|",
    ]
    notes, first, is_too_much = [], {}, False
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > LEAST_ROOM
    memory = MEMORY if has_room else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, tempfile.TemporaryDirectory() as programs_folder:
        os.environ.update(HOME=folder, XDG_STATE_HOME=os.path.join(folder, "state"))
        pathlib.Path(folder, "apple.py").write_text('def apple():\n    return "red"\n')
        pathlib.Path(folder, "large.txt").write_text("".join(f"{number:06} {'x' * 92}\n" for number in range(499)))
        cotter, *static = (installed(program, programs_folder) for program in sys.argv[1:])
        server, client, measure = server_client_measure(programs_folder)
        process, port = start_server(server)
        try:
            for case, (label, batches, batch) in CASES.items():
                kind, turns = case
                files = bodies(cotter, server, folder, case)
                path = f"/{kind}/{turns}/v1/chat/completions"
                running = command(cotter, port, case)
                programs = {"C client": ([client, str(port), path, *files], {}), "cotter": (running, {})}
                if memory:
                    programs["cotter, session on the disk"] = running, {"XDG_STATE_HOME": str(KEPT)}
                for binary in static:
                    programs["cotter, static"] = command(binary, port, case), {}
                if shutil.which("curl"):
                    configuration = curl_config(folder, files, f"http://127.0.0.1:{port}{path}")
                    programs["curl"] = ["curl", "-K", configuration], {}
                middle = measured(programs, measure, folder, batches, batch)
                first = first or middle
                for name, (wall, cpu, peak) in middle.items():
                    curl = f"{wall / middle['curl'][0]:.2f}" if "curl" in middle else "(no curl)"
                    turn = f"{(cpu - first[name][1]) / turns:.0f}" if turns else ""
                    lines.append(
                        f"| {label} | {name} | {wall / 1000:.2f} | {cpu / 1000:.2f} | {turn} | {peak / 1024:.1f} "
                        f"| {curl} | {cpu / max(1, middle['C client'][1]):.2f} |"
                    )
                history = (os.path.getsize(files[-1]) - os.path.getsize(files[0])) / 2**20
                sent = sum(map(os.path.getsize, files)) / 2**20
                peak, most = middle["cotter"][2] / 1024, MOST_MEMORY + 2 * history
                is_too_much |= peak > most
                notes.append(
                    f"{label}: a history of {history:.2f} MiB, {sent:.1f} MiB sent; "
                    f"of at most {most:.1f} MiB of memory {peak:.1f} taken{'' if peak <= most else ': TOO MUCH'}."
                )
        finally:
            process.kill()
            process.wait()
    runs = ", ".join(f"{batches * batch}" for _, batches, batch in CASES.values())
    sizes = " and ".join(f"{os.path.getsize(binary) / 2**20:.2f}" for binary in sys.argv[1:])
    where = "in memory, but for its row" if memory else f"on the disk: {MEMORY} is not there, or small"
    notes.append(f"Binary: {sizes} MiB. Medians of {runs} runs. Sessions were {where}.")
    text = "\n".join([*lines, "", *(f"- {note}" for note in notes)]) + "\n"
    TARGET.joinpath("bench.md").write_text(text)
    print(text, end="")
    if is_too_much:
        sys.exit("bench: more memory was taken than the history explains")


if __name__ == "__main__":
    main()
