#!/usr/bin/env python3
"""Runs a queue of prompts with examples/many/cotter-queue, kills it in the middle, starts it again, and looks at
every result.

    many.py COTTER [COUNT]

A local server answers each of the COUNT (1,000) prompts by its first word: well, or with a failure that has a code of
its own. By GNU parallel and by xargs; and a fifth of the prompts by parallel over ssh on three "hosts", which are
one sshd on 127.0.0.1 with keys of its own. What is not installed is named and left out.
"""

import asyncio
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "examples" / "many" / "cotter-queue"
CODES = {"say": 0, "run": 0, "once": 0, "refuse": 4, "busy": 5, "drop": 6, "loop": 20}
WORDS = ["say"] * 12 + ["run", "once", "refuse", "busy", "drop", "loop", "run", "say"]


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return "data: " + json.dumps({"model": "m", "choices": [choice]}) + "\n\n"


def call(name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    asked = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return chunk({"tool_calls": [asked]}) + chunk({}, "tool_calls")


class Server:
    """Answers by the first word of the prompt; counts how often each prompt begins a run."""

    def __init__(self):
        self.begun = collections.Counter()

    async def serve(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(re.search(rb"content-length: *(\d+)", head, re.I)[1])
                messages = json.loads(await reader.readexactly(length))["messages"]
                said = next(message["content"] for message in messages if message["role"] == "user")
                self.begun[said] += messages[-1]["role"] == "user"
                word = said.split()[0]
                if word == "drop":
                    return
                status, kind, body = self.reply(word, said, messages)
                head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def reply(self, word, said, messages):
        if word == "refuse":
            return "400 Bad Request", "application/json", b'{"error":{"message":"no such thing"}}'
        if word == "busy" or word == "once" and self.begun[said] == 1:
            return "503 Busy", "application/json", b'{"error":{"message":"busy"}}'
        if word == "loop":
            text = call("Read", {"file_path": "."})
        elif word == "run" and messages[-1]["role"] == "user":
            text = call("Bash", {"command": "sleep 0.05; echo done"})
        else:
            text = chunk({"content": f"answer to {said}"}) + chunk({}, "stop")
        return "200 OK", "text/event-stream", (text + "data: [DONE]\n\n").encode()


def prompts(count):
    return [f"{WORDS[number % len(WORDS)]} {number} \"$HOME\" `id` 'q' \\ é\n\nnext" for number in range(count)]


def write_queue(path, texts):
    messages = [{"role": "user", "content": text} for text in texts]
    lines = [json.dumps({"id": str(id), "type": "user", "message": message}) for id, message in enumerate(messages)]
    path.write_text("\n".join(lines) + "\n")


def results(path):
    """The results by id; no id may have two, and each line is whole."""
    found = {}
    for line in path.read_text().splitlines():
        result = json.loads(line)
        assert result["id"] not in found, f"two results of {result['id']}"
        found[result["id"]] = result
    return found


def look_at(path, texts):
    found = results(path)
    assert len(found) == len(texts), f"{len(found)} results of {len(texts)} prompts"
    for number, text in enumerate(texts):
        result, code = found[str(number)], CODES[text.split()[0]]
        assert result["code"] == code, (text, result["code"])
        if code == 0:
            assert result["result"]["result"] == f"answer to {text}", result
        else:
            assert result["result"]["error"]["code"] == code, result
    return collections.Counter(result["code"] for result in found.values())


def expected_code(codes):
    """What the script ends with where there were these."""
    return 75 if {1, 5, 6} & codes.keys() else 1 if codes.keys() - {0} else 0


class Bench:
    def __init__(self, cotter, port, server, folder):
        self.cotter, self.port, self.server, self.folder = cotter, port, server, folder

    async def start(self, place, own, environment, flags=()):
        command = [SCRIPT, *own, "queue.jsonl", "results.jsonl", "--base-url", f"http://127.0.0.1:{self.port}/v1",
                   "--model", "m", "--no-session-persistence", "--max-retries", "0", "--max-turns", "2", *flags]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "COTTER": self.cotter, **environment}
        with open(place / "log", "ab") as log:
            where = {"cwd": place, "env": environment, "start_new_session": True}
            return await asyncio.create_subprocess_exec(*command, stderr=log, **where)

    def place(self, name, count):
        place = self.folder / name
        place.mkdir()
        texts = [f"{text} ({name})" for text in prompts(count)]
        write_queue(place / "queue.jsonl", texts)
        return place, texts

    async def killed_and_gone_on_with(self, name, count, environment):
        """Kills the start once a third is done, the whole of it; then goes on."""
        place, texts = self.place(name, count)
        begun = time.monotonic()
        run = await self.start(place, ["-j", "20"], environment)
        path = place / "results.jsonl"
        while not path.exists() or path.read_bytes().count(b"\n") < count // 3:
            assert run.returncode is None, "it ended before it could be killed"
            await asyncio.sleep(0.02)
        os.killpg(run.pid, signal.SIGKILL)
        await run.wait()
        # Those that the kill left behind hold the lock.
        await (await asyncio.create_subprocess_exec("flock", place / "results.jsonl.lock", "true")).wait()
        whole = path.read_bytes().rpartition(b"\n")[0].decode().splitlines()
        done = {result["id"]: result["code"] for result in map(json.loads, whole)}
        asked = dict(self.server.begun)
        # Twice, since by xargs what is overloaded once has its second try at the next start.
        for _ in range(2):
            code = await (await self.start(place, ["-j", "20"], environment)).wait()
            assert code == 75, f"code {code}"
        codes = look_at(path, texts)
        for number, text in enumerate(texts):
            if done.get(str(number)) in (0, 4, 20):
                assert self.server.begun[text] == asked[text], f"run again: {text}"
        print(f"{name}: killed with {len(done)} of {count} done, gone on with in {time.monotonic() - begun:.0f} s: "
              f"each has one result, codes {dict(sorted(codes.items()))}", flush=True)

    async def over_ssh(self, count):
        place, texts = self.place("parallel over ssh", count)
        with Sshd(self.folder / "ssh") as sshd:
            begun = time.monotonic()
            # Each run has a new folder of its own below the login's home, which goes with it.
            words = f"--ssh 'ssh -F {sshd.client}' -S one,two,three --wd ... --cleanup --sshdelay 0.05"
            code = await (await self.start(place, ["-j", "4"], {"PARALLEL": words})).wait()
            codes = look_at(place / "results.jsonl", texts)
            assert code == expected_code(codes), f"code {code}"
            print(f"parallel over ssh: {count} prompts on three hosts in {time.monotonic() - begun:.0f} s, "
                  f"{sshd.logins()} logins: each has one result, codes {dict(sorted(codes.items()))}", flush=True)


class Sshd:
    """An sshd on 127.0.0.1 with keys of its own, known by three names."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.client = folder, folder / "client"
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        port = free_port()
        (folder / "server").write_text(
            f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
            "PidFile none\nStrictModes no\nUsePAM no\nMaxStartups 100\n")
        self.client.write_text(
            f"Host one two three\nHostName 127.0.0.1\nPort {port}\nIdentityFile {folder}/user\nIdentitiesOnly yes\n"
            "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n")

    def __enter__(self):
        program = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen([program, "-D", "-e", "-f", self.folder / "server"], stderr=log)
        for _ in range(100):
            if "listening" in (self.folder / "log").read_text() or self.process.poll() is not None:
                break
            time.sleep(0.05)
        assert self.process.poll() is None, (self.folder / "log").read_text()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def logins(self):
        return (self.folder / "log").read_text().count("Accepted publickey")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def why_no_sshd():
    if not shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin") or not shutil.which("ssh"):
        return "no sshd is installed"
    if os.getuid() == 0 and not os.path.isdir("/run/sshd"):
        return "sshd needs the folder /run/sshd where it runs as root"
    return None


async def main():
    cotter = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=4096)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(cotter, listening.sockets[0].getsockname()[1], server, pathlib.Path(folder))
        other = bench.folder / "bin" / "parallel"
        other.parent.mkdir()
        other.write_text("#!/bin/sh\nexit 1\n")
        other.chmod(0o755)
        await bench.killed_and_gone_on_with("xargs", count, {"PATH": f"{other.parent}:{os.environ['PATH']}"})
        asking = ["parallel", "--version"]
        version = shutil.which("parallel") and subprocess.run(asking, capture_output=True, text=True).stdout
        if not (version or "").startswith("GNU parallel"):
            return print("parallel: GNU parallel is not installed")
        await bench.killed_and_gone_on_with("parallel", count, {})
        if reason := why_no_sshd():
            return print(f"parallel over ssh: {reason}")
        await bench.over_ssh(count // 5)


asyncio.run(main())
