#!/usr/bin/env python3
"""Runs cotter beside curl and a bare C client that post the same bytes, and prints ratios.

    bench.py COTTER

One local server answers all three. The programs take turns in small batches, so that a busy machine slows
all of them alike; the median counts. The table is written to target/bench.md too.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BATCHES, BATCH = 8, 5


def build(folder, name):
    target = os.path.join(folder, name)
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-static", "-o", target, HERE / f"{name}.c"], check=True)
    return target


def start_server(server, *arguments):
    process = subprocess.Popen([server, *arguments], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def bodies(cotter, server, folder, turns):
    """The request bodies that cotter sends, one file each, as the server saw them."""
    kept = os.path.join(folder, f"bodies-{turns}")
    os.mkdir(kept)
    process, port = start_server(server, kept)
    try:
        subprocess.run(command(cotter, port, turns), cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    finally:
        process.kill()
        process.wait()
    return sorted(os.path.join(kept, name) for name in os.listdir(kept))


def command(cotter, port, turns):
    return [cotter, "--base-url", f"http://127.0.0.1:{port}/turns/{turns}/v1", "--model", "m", "--tools", "Read", "-p", "Read apple.py"]


def curl_config(folder, files, url):
    path = os.path.join(folder, f"curl-{len(files)}")
    entries = [f'url = "{url}"\nheader = "content-type: application/json"\ndata-binary = "@{file}"\nsilent\n' for file in files]
    pathlib.Path(path).write_text("next\n".join(entries))
    return path


def main():
    cotter = sys.argv[1]
    lines = ["| run | program | wall, ms | CPU, ms | peak, MiB | wall / curl | CPU / C client |", "|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, XDG_STATE_HOME=os.path.join(folder, "state"))
        pathlib.Path(folder, "apple.py").write_text('def apple():\n    return "red"\n')
        server, client, measure = (build(folder, name) for name in ("server", "client", "measure"))
        process, port = start_server(server)
        try:
            for turns in (0, 10, 50):
                files = bodies(cotter, server, folder, turns)
                path = f"/turns/{turns}/v1/chat/completions"
                programs = {"C client": [client, str(port), path, *files], "cotter": command(cotter, port, turns)}
                if shutil.which("curl"):
                    programs["curl"] = ["curl", "-K", curl_config(folder, files, f"http://127.0.0.1:{port}{path}")]
                found = {name: [] for name in programs}
                for _ in range(BATCHES):
                    for name, arguments in programs.items():
                        run = subprocess.run([measure, str(BATCH), *arguments], cwd=folder, check=True, capture_output=True, text=True)
                        found[name] += [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
                middle = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in found.items()}
                for name, (wall, cpu, peak) in middle.items():
                    curl = f"{wall / middle['curl'][0]:.2f}" if "curl" in middle else "(no curl)"
                    label = "one answer" if turns == 0 else f"{turns} tool turns"
                    lines.append(f"| {label} | {name} | {wall / 1000:.2f} | {cpu / 1000:.2f} | {peak / 1024:.1f} | {curl} | {cpu / max(1, middle['C client'][1]):.2f} |")
        finally:
            process.kill()
            process.wait()
    lines.append(f"\nBinary: {os.path.getsize(cotter) / 2**20:.2f} MiB. Medians of {BATCHES * BATCH} runs.")
    text = "\n".join(lines) + "\n"
    target = HERE.parent / "target" / "bench.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
