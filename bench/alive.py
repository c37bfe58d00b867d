#!/usr/bin/env python3
"""Has many cotters alive at once, each in the middle of a streamed reply, and says what they take.

    alive.py COTTER [COUNT] [--tools]

A local server gives each run the first half of an answer of its own and holds the rest until all COUNT (1,000) are
in mid-stream; then memory is read, and all replies go on. Each run must end with code 0 and its own answer. With
--tools each has run a command before, so that its supervisor and its worker are alive too. Memory is the sum of the
proportional set sizes (Pss: a page that many share counts once) and of the resident ones of all processes.
"""

import asyncio
import hashlib
import json
import os
import re
import resource
import sys
import tempfile
import time

PATIENCE = 600


def half_answers(prompt):
    """What a prompt is answered with, in two halves, so that no answer can be taken for another's."""
    text = hashlib.sha256(prompt.encode()).hexdigest()
    return text[:32], text[32:]


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"model": "m", "choices": [choice]}).encode() + b"\n\n"


class Server:
    def __init__(self, count, tools):
        self.count, self.tools = count, tools
        self.held, self.requests = 0, 0
        self.all_held, self.release = asyncio.Event(), asyncio.Event()

    async def start(self):
        # A queue that is too short makes clients send their first packet again after a second.
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=4096)
        return server, server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(re.search(rb"content-length: *(\d+)", head, re.I)[1])
                messages = json.loads(await reader.readexactly(length))["messages"]
                self.requests += 1
                kind = b"content-type: text/event-stream\r\ntransfer-encoding: chunked"
                writer.write(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n\r\n")
                prompt = next(message["content"] for message in messages if message["role"] == "user")
                number = prompt.split()[-1]
                if self.tools and messages[-1]["role"] != "tool":
                    arguments = json.dumps({"command": f"echo made {number} >made && cat made"})
                    call = {"name": "Bash", "arguments": arguments}
                    part = {"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": call}]}
                    self.send(writer, chunk(part) + chunk({}, "tool_calls"), last=True)
                    continue
                if self.tools and messages[-1]["content"].strip() != f"made {number}":
                    raise SystemExit(f"the result of run {number} is {messages[-1]['content']!r}")
                first, second = half_answers(prompt)
                self.send(writer, chunk({"content": first}))
                await writer.drain()
                self.held += 1
                if self.held == self.count:
                    self.all_held.set()
                await self.release.wait()
                self.send(writer, chunk({"content": second}) + chunk({}, "stop"), last=True)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def send(self, writer, data, last=False):
        if last:
            data += b"data: [DONE]\n\n"
        writer.write(b"%x\r\n%s\r\n" % (len(data), data) + (b"0\r\n\r\n" if last else b""))


def descendants(roots):
    """All processes below these, and they themselves."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(name))
    found, waiting = [], list(roots)
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += children.get(process, [])
    return found


def memory(processes):
    """Sums of Pss and Rss in KiB, and of open descriptors; Pss is 0 where it may not be read."""
    pss = rss = descriptors = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                fields = dict(line.split()[:2] for line in file if line.startswith(("Pss:", "Rss:")))
            pss, rss = pss + int(fields["Pss:"]), rss + int(fields["Rss:"])
            descriptors += len(os.listdir(f"/proc/{process}/fd"))
        except OSError:
            with open(f"/proc/{process}/statm") as file:
                rss += int(file.read().split()[1]) * resource.getpagesize() // 1024
    return pss, rss, descriptors


def available():
    with open("/proc/meminfo") as file:
        return int(re.search(r"MemAvailable: *(\d+)", file.read())[1])


async def main():
    cotter = os.path.abspath(sys.argv[1])
    numbers = [int(word) for word in sys.argv[2:] if word.isdigit()]
    count, tools = numbers[0] if numbers else 1000, "--tools" in sys.argv
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    server = Server(count, tools)
    listening, port = await server.start()
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_STATE_HOME": os.path.join(folder, "state")}
        url, offered = f"http://127.0.0.1:{port}/v1", "default" if tools else "Read"
        flags = ["--base-url", url, "--model", "m", "--tools", offered, "-p"]
        before, begun, runs, outputs = available(), time.monotonic(), [], []
        for number in range(count):
            place = os.path.join(folder, str(number))
            os.mkdir(place)
            outputs.append(os.path.join(place, "answer"))
            with open(outputs[-1], "wb") as output:
                where = {"cwd": place, "env": environment, "stdin": asyncio.subprocess.DEVNULL, "stdout": output}
                runs.append(await asyncio.create_subprocess_exec(cotter, *flags, f"prompt {number}", **where))
        try:
            await asyncio.wait_for(server.all_held.wait(), PATIENCE)
            held = time.monotonic()
            alive = sum(run.returncode is None for run in runs)
            processes = descendants(run.pid for run in runs)
            pss, rss, descriptors = memory(processes)
            taken = before - available()
            released = time.monotonic()
            server.release.set()
            codes = await asyncio.wait_for(asyncio.gather(*(run.wait() for run in runs)), PATIENCE)
            ended = time.monotonic()
        finally:
            for run in runs:
                if run.returncode is None:
                    run.kill()
        right = 0
        for number, output in enumerate(outputs):
            with open(output) as file:
                right += file.read() == "".join(half_answers(f"prompt {number}")) + "\n"
        left = [process for process in processes if os.path.exists(f"/proc/{process}")]
    listening.close()
    where = "in mid-stream after a command" if tools else "in mid-stream"
    print(f"{alive} runs alive {where}: {len(processes)} processes, {descriptors} descriptors")
    print(f"memory: Pss {pss / 1024:.0f} MiB ({pss / count / 1024:.2f} a run), Rss {rss / 1024:.0f} MiB; "
          f"the system's available memory fell by {taken / 1024:.0f} MiB")
    print(f"time: {held - begun:.1f} s until all were in mid-stream, "
          f"{ended - released:.1f} s from the release to the last end")
    print(f"{codes.count(0)} ended with code 0, {right} gave their own answer, "
          f"{len(left)} processes are left, {server.requests} requests")
    ok = alive == codes.count(0) == right == count and not left and server.requests == count * (2 if tools else 1)
    sys.exit(0 if ok else "not all is well")


asyncio.run(main())
