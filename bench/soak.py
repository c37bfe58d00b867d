#!/usr/bin/env python3
"""Runs cotter for very many turns and very often at once, and fails where it grows or leaves something behind.

    soak.py COTTER [TURNS [RUNS]]

A run of 2,000 turns reads a file, edits it and has a command look at it, in turn, in containment. At some turns the
server holds its answer back and the processes are looked at: memory, time of the processor, open files, files in the
temp folder. Then 500 runs are begun together; each waits in a command until all have come that far. Tables are
written to target/soak.md. Times are shown, and judged by nobody; what is counted is judged. Who is not root is not
told the open files of cotter, which lets nobody look into it.
"""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

from bench import HERE, MOST_MEMORY, build

# How much the processes of tools may grow, which keep nothing from call to call, in KiB.
MOST_GROWTH = 512
# What a turn may take beside the bytes of its texts: their lists and what keeps them.
BYTES_PER_TURN = 1024
# A time is the mean over the 30 turns before: as many reads as edits and commands.
WINDOW = 31
# How long anything may take, in seconds.
PATIENCE = 600


class Failed(Exception):
    """Something grew, or was left behind."""


def main():
    cotter = os.path.abspath(sys.argv[1])
    turns, runs = (int(sys.argv[place]) if len(sys.argv) > place else usual for place, usual in ((2, 2000), (3, 500)))
    # So that servers and runs are ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: it was told to end"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = build(folder, "server")
        os.environ.update(HOME=name, XDG_STATE_HOME=str(folder / "state"))
        try:
            text = long_run(cotter, server, folder, turns) + "\n" + many_runs(cotter, server, folder, runs)
        except Failed as failure:
            sys.exit(f"soak: {failure}")
    target = HERE.parent / "target" / "soak.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(text)
    print(text, end="")


def long_run(cotter, server, folder, turns):
    """One run of many turns; its table."""
    work, temp = prepared(folder, "long", "wc -c <count.txt\n")
    shown = sorted({turn for turn in (10, 100, 1000, turns) if turn <= turns})
    marks = sorted({mark for turn in shown for mark in (max(turn - WINDOW, 0), turn - 1)})
    found = {}
    with served([server, "-p", *(word for mark in marks for word in ("-m", str(mark)))]) as (process, port):
        with begun(cotter, port, f"mixed/{turns}", work, temp) as run:
            for mark in marks:
                line = heard(process, run)
                if not line:
                    run.kill()
                    raise Failed(f"the run did not come to turn {mark + 1}: {run.communicate()[1]}")
                found[mark] = {"at": time.monotonic(), "sent": int(line[1]), "temp": files_in(temp), **look(run.pid)}
                process.stdin.write("\n")
                process.stdin.flush()
                found[mark]["left"] = time.monotonic()
            _, errors = run.communicate(timeout=PATIENCE)
    if run.returncode != 0:
        raise Failed(f"the long run ended with code {run.returncode}: {errors}")
    edits = (turns + 1) // 3
    if (work / "count.txt").read_text() != f"count {edits}\n":
        raise Failed(f"after {edits} edits the file holds {(work / 'count.txt').read_text()!r}")
    lines = [
        f"One run of {turns:,} turns with Read, Edit and Bash in turn, each in containment:",
        "",
        "| turn | request, KiB | VmRSS, KiB | VmHWM, KiB | tools' processes' RSS, KiB | µs a turn | CPU µs a turn "
        "| tools' processes' | open files | tools' processes' | temp files |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for turn in shown:
        last, before = found[turn - 1], found[max(turn - WINDOW, 0)]
        over = turn - 1 - max(turn - WINDOW, 0)
        wall = (last["at"] - before["left"]) / over
        cpu, of_tools = ((last[name] - before[name]) / over / 1000 for name in ("cpu", "tools_cpu"))
        lines.append(
            f"| {turn:,} | {last['sent'] / 1024:.0f} | {last['rss']} | {last['peak']} | {last['tools_rss']} "
            f"| {wall * 1e6:.0f} | {cpu:.0f} | {of_tools:.0f} "
            f"| {last['files']} | {last['tools_files']} | {last['temp']} |"
        )
    first, last = found[shown[0] - 1], found[shown[-1] - 1]
    history = (last["sent"] - found[marks[0]]["sent"]) / 1024
    most = MOST_MEMORY * 1024 + 2 * history + BYTES_PER_TURN * turns / 1024
    taken = f"of at most {most:.0f} KiB of memory {last['peak']} KiB were taken"
    lines.append(f"\nThe history has {history:.0f} KiB; {taken}.")
    if last["peak"] > most:
        raise Failed(f"{last['peak']} KiB of memory at turn {shown[-1]}, where the history explains {most:.0f}")
    if last["tools_rss"] > first["tools_rss"] + MOST_GROWTH:
        raise Failed(f"the tools' processes have grown from {first['tools_rss']} KiB to {last['tools_rss']}")
    counted = {
        "files": "open files",
        "tools_files": "open files of the tools' processes",
        "temp": "files in the temp folder",
    }
    for name, what in counted.items():
        if last[name] != first[name] and last[name] != "?":
            raise Failed(f"{what}: {first[name]} at turn {shown[0]}, {last[name]} at turn {shown[-1]}")
    check_nothing_left(work, temp)
    check_ended(last["pids"])
    return "\n".join(lines) + "\n"


def many_runs(cotter, server, folder, count):
    """Many runs at once, each of three turns; their table."""
    os.mkfifo(folder / "gate")
    places = [prepared(folder, f"run-{number}", "touch here; read line <../gate\n") for number in range(count)]
    with served([server, "-p"]) as (_, port), contextlib.ExitStack() as stack:
        began = time.monotonic()
        runs = [stack.enter_context(begun(cotter, port, "mixed/3", work, temp)) for work, temp in places]
        while any(not (work / "here").exists() for work, _ in places):
            failed = [run for run in runs if run.poll() not in (None, 0)]
            if failed or time.monotonic() - began > PATIENCE:
                why = failed[0].communicate()[1] if failed else "time is over"
                raise Failed(f"not all of {count} runs came to their last call: {why}")
            time.sleep(0.05)
        waited = time.monotonic() - began
        sums = [proportional(run.pid) for run in runs]
        with open(folder / "gate", "w", encoding="utf-8"):
            pass
        codes = [run.wait(timeout=PATIENCE) for run in runs]
        answers = [run.communicate() for run in runs]
        took = time.monotonic() - began
    wrong = [(code, errors) for code, (answer, errors) in zip(codes, answers) if code != 0 or answer != "done\n"]
    if wrong:
        raise Failed(f"{len(wrong)} of {count} runs failed, one with code {wrong[0][0]}: {wrong[0][1]}")
    for work, temp in places:
        check_nothing_left(work, temp)
        if (work / "count.txt").read_text() != "count 1\n":
            raise Failed(f"in {work.name} the file holds {(work / 'count.txt').read_text()!r}")
    check_ended([pid for _, _, pids in sums for pid in pids])
    own, of_tools = (sum(column) / 1024 for column in list(zip(*sums))[:2])
    return (
        f"{count} runs at once, each waiting in a command after a read and an edit:\n\n"
        "| runs | all there after, s | all ended after, s | cotter's PSS in all, MiB | tools' processes', MiB "
        "| KiB a run | codes other than 0 | left behind |\n"
        "|---|---|---|---|---|---|---|---|\n"
        f"| {count} | {waited:.1f} | {took:.1f} | {own:.0f} | {of_tools:.0f} "
        f"| {(own + of_tools) * 1024 / count:.0f} | 0 | nothing |\n"
    )


def prepared(folder, name, step):
    """A workspace and a temp folder for a run."""
    work, temp = folder / name, folder / f"{name}-temp"
    work.mkdir()
    temp.mkdir()
    (work / "count.txt").write_text("count 0\n")
    (work / "step").write_text(step)
    return work, temp


@contextlib.contextmanager
def served(command):
    """A server and its port; at the end it is ended, and with it the processes that it serves connections with."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    try:
        yield process, int(process.stdout.readline())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def heard(process, run):
    """The words of a server's next line; none where the run has ended before, or time is over."""
    until = time.monotonic() + PATIENCE
    while not select.select([process.stdout], [], [], 0.1)[0]:
        if run.poll() is not None or time.monotonic() > until:
            return []
    return process.stdout.readline().split()


@contextlib.contextmanager
def begun(cotter, port, path, work, temp):
    """A run, which is killed at the end if it has not ended by then."""
    url = f"http://127.0.0.1:{port}/{path}/v1"
    command = [cotter, "--base-url", url, "--model", "m", "--no-compaction", "-p", "Count."]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    run = subprocess.Popen(command, cwd=work, env={**os.environ, "TMPDIR": str(temp)}, text=True, **pipes)
    try:
        yield run
    finally:
        run.kill()
        run.wait()


def look(pid):
    """The memory, the time and the open files of cotter and of the processes below it."""
    below = descendants(pid)
    sizes = status(pid)
    return {
        "rss": sizes["VmRSS"],
        "peak": sizes["VmHWM"],
        "cpu": cpu(pid),
        "tools_cpu": sum(map(cpu, below)),
        "files": open_files([pid]),
        "tools_rss": sum(status(one)["VmRSS"] for one in below),
        "tools_files": open_files(below),
        "pids": [pid, *below],
    }


def open_files(pids):
    try:
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
    except PermissionError:
        return "?"


def status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = (line.split(":", 1) for line in lines if line.startswith("Vm"))
    return {name: int(value.split()[0]) for name, value in fields}


def cpu(pid):
    """Nanoseconds of the processor."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def descendants(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [one for child in map(int, children) for one in [child, *descendants(child)]]


def proportional(pid):
    """The memory of cotter, and of all below it, in KiB, where what several share is divided; and all their ids."""
    def of(one):
        try:
            lines = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            return status(one)["VmRSS"]
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))

    below = descendants(pid)
    return of(pid), sum(map(of, below)), [pid, *below]


def files_in(folder):
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def check_nothing_left(work, temp):
    names = sorted(set(os.listdir(work)) - {"count.txt", "step", "here"})
    if names or files_in(temp):
        raise Failed(f"left behind in {work.name}: {names}, and in its temp folder {os.listdir(temp)}")


def check_ended(pids):
    """None of these runs any more. A process of tools may need a moment to see that its run has ended."""
    until = time.monotonic() + 10
    while left := [pid for pid in pids if os.path.exists(f"/proc/{pid}")]:
        if time.monotonic() > until:
            raise Failed(f"{len(left)} processes are left behind: {left[:5]}")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
