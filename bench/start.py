#!/usr/bin/env python3
"""What a start costs: adds to target/bench.md what bench.py leaves out.

    start.py COTTER [STATIC COTTER]

Instructions and system calls of one answer beside the C client's, TLS beside curl's, and other agents where they are
installed (peers.tsv).
"""

import os
import pathlib
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile

import bench

BATCHES, BATCH = 8, 5
CERTIFICATES = bench.HERE.parent / "fixtures" / "tls"
CHOICE = b'{"index":0,"delta":{"role":"assistant","content":"done"},"finish_reason":"stop"}'
REPLY = b'data: {"choices":[' + CHOICE + b"]}\n\ndata: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(REPLY)


def ask(cotter, url):
    """A run of one answer without a call."""
    return [cotter, "--base-url", url, "--model", "m", "--tools", "Read", "-p", "Read apple.py"]


def body(cotter, folder):
    """The body that it sends, in a file."""
    asking = [*ask(cotter, "http://127.0.0.1:9/v1"), "--dry-run"]
    run = subprocess.run(asking, cwd=folder, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    path = pathlib.Path(folder, "body")
    path.write_bytes(run.stdout.rstrip())
    return str(path)


def counted(command, folder, environment=None):
    """How many instructions valgrind counts, or why there is no count; a program that fails by itself ends all."""
    if not shutil.which("valgrind"):
        return None, "not installed"
    counting = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/calls", *command]
    how = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    run = subprocess.run(counting, **how)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode == 0 and found:
        return int(found[1]), ""
    # It does not know every processor's instructions, and ends by a signal then; or it cannot run at all.
    alone = subprocess.run(command, **how)
    if alone.returncode or (run.returncode > 0 and found):
        code, told = (alone.returncode, alone.stderr) if alone.returncode else (run.returncode, run.stderr)
        sys.exit(f"{command[0]} ended with code {code}: {told.strip()[-1000:]}")
    return None, f"it fails: {(run.stderr.strip().splitlines() or ['without a word'])[-1]}"


def instructions(command, folder):
    count, why = counted(command, folder)
    return why if count is None else f"{count:,}"


def system_calls(command, folder):
    if not shutil.which("strace"):
        return "not installed"
    log = os.path.join(folder, "system-calls")
    tracing = ["strace", "-f", "-o", log, *command]
    run = subprocess.run(tracing, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
    lines = pathlib.Path(log).read_text().splitlines()
    return str(sum("(" in line for line in lines)) if run.returncode == 0 else "failed"


def page_faults(command, folder):
    """Of a child's, the parent's are not counted."""
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    return str(usage.ru_minflt + usage.ru_majflt) if status == 0 else "failed"


def counts(cotter, static, client, server, folder):
    yield "\n| one answer | instructions | system calls | page faults |\n|---|---|---|---|"
    process, port = bench.start_server(server)
    url = f"http://127.0.0.1:{port}/turns/0/v1"
    asking = ask(cotter, url)
    try:
        programs = {
            "C client": [client, str(port), "/turns/0/v1/chat/completions", body(cotter, folder)],
            "cotter": asking,
            "cotter --bare --no-session-persistence": [*asking, "--bare", "--no-session-persistence"],
            **{"cotter, static": ask(binary, url) for binary in static},
        }
        for name, command in programs.items():
            found = [count(command, folder) for count in (instructions, system_calls, page_faults)]
            yield f"| {name} | {' | '.join(found)} |"
    finally:
        process.kill()
        process.wait()


def serve_tls(listener):
    """Answers each connection's requests, in a process of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "localhost.pem", CERTIFICATES / "server.key")
    while True:
        connection = listener.accept()[0]
        # As servers do: without it a reply waits up to 40 ms for what the client's side says to the tickets before it.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            answer_requests(context.wrap_socket(connection, server_side=True))
        except OSError:
            pass


def answer_requests(stream):
    kept = b""
    while True:
        while b"\r\n\r\n" not in kept:
            if not (more := stream.recv(65536)):
                return
            kept += more
        head, kept = kept.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
        while len(kept) < length:
            kept += stream.recv(65536)
        kept = kept[length:]
        stream.sendall(HEAD + REPLY)


def take_turns(programs, measure, folder, batches):
    """Of each program: the medians of wall time, CPU time and peak memory."""
    found = {name: [] for name in programs}
    for _ in range(batches):
        for name, arguments in programs.items():
            run = subprocess.run([measure, str(BATCH), *arguments], cwd=folder, capture_output=True, text=True)
            if run.returncode:
                print(f"{name} failed: {run.stderr.strip()[-300:]}", file=sys.stderr)
            found[name] += [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    return {name: [statistics.median(column) for column in zip(*runs)] for name, runs in found.items() if runs}


def rows(label, found, base):
    for name, (wall, cpu, peak) in found.items():
        ratio = f"{wall / found[base][0]:.2f}" if base in found else f"(no {base})"
        yield f"| {label} | {name} | {wall / 1000:.2f} | {cpu / 1000:.2f} | {peak / 1024:.1f} | {ratio} |"


def tls(cotter, measure, folder):
    yield "\n| run | program | wall, ms | CPU, ms | peak, MiB | wall / curl |\n|---|---|---|---|---|---|"
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    child = os.fork()
    if child == 0:
        serve_tls(listener)
    try:
        url, bundle = f"https://localhost:{listener.getsockname()[1]}/v1", str(CERTIFICATES / "ca.pem")
        programs = {"cotter": [*ask(cotter, url), "--cacert", bundle]}
        if shutil.which("curl"):
            header = "content-type: application/json"
            posted = ["-H", header, "--data-binary", f"@{body(cotter, folder)}", f"{url}/chat/completions"]
            programs["curl"] = ["curl", "-sf", "--cacert", bundle, *posted]
        yield from rows("one answer over TLS", take_turns(programs, measure, folder, BATCHES), "curl")
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def peers(cotter, server, measure, folder):
    yield "\n| run | program | wall, ms | CPU, ms | peak, MiB | wall / cotter |\n|---|---|---|---|---|---|"
    process, port = bench.start_server(server)
    programs, missing = {"cotter": ask(cotter, f"http://127.0.0.1:{port}/turns/0/v1")}, []
    try:
        for line in (bench.HERE / "peers.tsv").read_text().splitlines():
            if line and not line.startswith("#"):
                name, command = line.split("\t", 1)
                if shutil.which(name):
                    programs[name] = ["sh", "-c", f"exec env {command}".replace("{url}", f"http://127.0.0.1:{port}")]
                else:
                    missing.append(name)
        yield from rows("one answer", take_turns(programs, measure, folder, 2), "cotter")
    finally:
        process.kill()
        process.wait()
    if missing:
        yield f"\nNot installed: {', '.join(missing)}."


def main():
    where = bench.go_ahead_of_others()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, XDG_STATE_HOME=os.path.join(folder, "state"))
        cotter, *static = (bench.installed(program, folder) for program in sys.argv[1:])
        server, client, measure = bench.server_client_measure(folder)
        work = os.path.join(folder, "work")
        os.mkdir(work)
        lines = [
            *counts(cotter, static, client, server, work),
            *tls(cotter, measure, work),
            *peers(cotter, server, measure, work),
            f"\nMeasured {where}.",
        ]
    text = "\n".join(lines) + "\n"
    with open(bench.HERE.parent / "target" / "bench.md", "a", encoding="utf-8") as table:
        table.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
