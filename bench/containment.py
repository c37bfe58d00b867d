#!/usr/bin/env python3
"""What containment costs: calls of a shell that does nothing, beside the same shell started by a bare C loop.

    containment.py COTTER

A call's time is that of a run with it less that of a run with a call of Read, which starts no process: what
is left is the shell and what is around it. The programs take turns, so that a busy machine slows all alike.

Root measures ahead of everything else that runs: tools have a session of their own, and on a busy machine a
new session waits for its first turn of the processor longer (10 ms and more) than all the rest takes.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from bench import build, go_ahead_of_others, start_server

BATCHES, BATCH, LATER = 12, 5, 20
MODES = {"contained": [], "`--dangerously-skip-permissions`": ["--dangerously-skip-permissions"]}


def command(cotter, port, path, tools, flags):
    url = f"http://127.0.0.1:{port}/{path}/v1"
    return [cotter, "--base-url", url, "--model", "m", "--tools", tools, *flags, "-p", "Go on."]


def programs(cotter, port):
    yield "shell", ["bash", "-c", "true"]
    yield "no tools", command(cotter, port, "turns/0", "", [])
    yield "no call", command(cotter, port, "turns/0", "default", [])
    for mode, flags in MODES.items():
        for path in ("turns", "shell"):
            for calls in (1, 1 + LATER):
                yield (mode, path, calls), command(cotter, port, f"{path}/{calls}", "Read,Bash", flags)


def table(times):
    """The rows, of the medians and of the shortest times."""
    for name, of in (("median", statistics.median), ("least", min)):
        time = {program: of(walls) / 1000 for program, walls in times.items()}
        yield f"| {name} | a run without a call, over one without tools | {time['no call'] - time['no tools']:.2f} | |"
        yield f"| {name} | `bash -c true` from a C loop | {time['shell']:.2f} | |"
        for mode in MODES:
            first, all_calls = (time[mode, "shell", calls] - time[mode, "turns", calls] for calls in (1, 1 + LATER))
            later = (all_calls - first) / LATER
            for which, call in (("first", first), ("later", later)):
                yield f"| {name} | {which} call, {mode} | {call:.2f} | {call - time['shell']:.2f} |"


def main():
    cotter = sys.argv[1]
    where = go_ahead_of_others()
    with tempfile.TemporaryDirectory() as folder:
        workspace = os.path.join(folder, "work")
        os.mkdir(workspace)
        os.environ.update(HOME=folder, XDG_STATE_HOME=os.path.join(folder, "state"))
        pathlib.Path(workspace, "apple.py").write_text('def apple():\n    return "red"\n')
        server, measure = (build(folder, name, "-static") for name in ("server", "measure"))
        process, port = start_server(server)
        times = {}
        try:
            for _ in range(BATCHES):
                for name, arguments in programs(cotter, port):
                    measuring = [measure, str(BATCH), *arguments]
                    run = subprocess.run(measuring, cwd=workspace, check=True, capture_output=True, text=True)
                    times.setdefault(name, []).extend(int(line.split()[0]) for line in run.stdout.splitlines())
        finally:
            process.kill()
            process.wait()
    print("\n| of the times | what | ms | over the shell |\n|---|---|---|---|")
    print("\n".join(table(times)))
    print(f"\n{BATCHES * BATCH} runs each; later calls are the {LATER} after the first. Measured {where}.")


main()
