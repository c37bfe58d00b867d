#!/usr/bin/env python3
"""Compares Glob and Grep with ripgrep in a tree of 50,000 files: what is found, and how long it takes.

    python3 bench/search.py BINARY RG [CALLS]

Each call is made by a run of its own, asked for by a server in this script. Times are of the processor, so that
a busy machine does not count; of three the shortest is taken. A run that only asks for the time of day is taken
off each of cotter's, and `rg --version` off each of `rg -j1`. Results that are cut are compared as far as they go
and not timed, since the search ends with them.
"""

import http.server
import importlib.util
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location("record", os.path.join(HERE, "../fixtures/search/record.py"))
record = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(record)

FOLDERS, FILES = 2500, 20
ENDINGS = ["rs", "py", "js", "ts", "md", "txt", "json", "c", "h", "log", "tmp", "toml"]
random.seed(7)
# The n-th word occurs about once in n words.
WORDS = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(4000)]
WEIGHTS = list(itertools.accumulate(1 / (number + 1) for number in range(len(WORDS))))
LINES = [" ".join(random.choices(WORDS, cum_weights=WEIGHTS, k=8)) for _ in range(20_000)]


def make_tree(root):
    folders = [""]
    for number in range(FOLDERS):
        parent = random.choice(folders[-400:])
        name = random.choice(["src", "lib", "build", "tests", ".cache", "node_modules", "docs"]) + str(number % 40)
        folders.append(os.path.join(parent, name) if parent.count("/") < 8 else name)
    os.makedirs(os.path.join(root, ".git/info"))
    paths = []
    for folder in sorted(set(folders)):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        if random.random() < 0.05 or not folder:
            rules = random.choices(["*.log", "!keep*", "build*/", "/lib1*", "*.tmp", "node_modules*", "docs?/**"], k=3)
            name = random.choice([".gitignore", ".gitignore", ".ignore", ".rgignore"])
            with open(os.path.join(root, folder, name), "w", encoding="ascii") as file:
                file.write("\n".join(rules) + "\n")
        for number in range(FILES * FOLDERS // len(set(folders)) + 1):
            name = f"{random.choice(WORDS)}{number}.{random.choice(ENDINGS)}"
            paths.append(os.path.join(root, folder, "." * (random.random() < 0.03) + name))
    for number, path in enumerate(paths):
        lines = "\n".join(random.choices(LINES, k=random.randint(1, 60))).encode()
        content = lines + b"\0" * (random.random() < 0.02) + b"\n"
        with open(path, "wb") as file:
            file.write(content)
        os.utime(path, ns=(number, (number * 7919) % 1_000_003 * 1_000_000_000))
    return len(paths)


def make_calls(count):
    def pattern():
        # Rare words, so that most results are whole.
        word = lambda: random.choice(WORDS[500:])
        return random.choice([
            word, lambda: rf"\b{word()}\b", lambda: f"{word()}|{word()}", lambda: f"^{word()}",
            lambda: f"{word()}$", lambda: rf"{word()}\s+\w+", lambda: f"({word()[:3]}|{word()[:3]})z+",
            lambda: rf"\w{{12,}} {word()}", lambda: f"[{word()[:2]}]{{4}}", lambda: f"({word()}", lambda: f"{word()}[",
            lambda: random.choice(WORDS[:30]),
        ])()

    def name_glob():
        ending = random.choice(ENDINGS)
        return random.choice([
            f"*.{ending}", f"**/*.{ending}", f"*.{{{ending},{random.choice(ENDINGS)}}}", f"src*/**/*.{ending}",
            f"**/lib*/**/*.{ending}", f"{random.choice(WORDS)[:2]}*.{ending}", f"/docs*/*.{ending}",
            f"**/[a-f]*1?.{ending}", f"**/build*/*.{ending}", f"!*.{ending}", "[a",
        ])

    def grep():
        call = record.grep(pattern(), output_mode=random.choice(["files_with_matches", "content", "count"]))
        extra = call["arguments"]
        if random.random() < 0.3:
            extra["glob"] = name_glob()
        if random.random() < 0.2:
            extra["type"] = random.choice(["rust", "py", "js", "md", "nonsense"])
        if random.random() < 0.2:
            extra["-i"] = True
        if random.random() < 0.2:
            extra["-C"] = random.randint(0, 3)
        if random.random() < 0.1:
            extra["multiline"] = True
        if random.random() < 0.1:
            extra["path"] = random.choice(["src0", "lib1", "docs6", "missing"])
        return call

    return [grep() if random.random() < 0.7 else record.glob(name_glob()) for _ in range(count)]


class Server(http.server.ThreadingHTTPServer):
    """Asks for one call in its first reply, and keeps what the next request brings."""

    call = result = None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        last = json.loads(body)["messages"][-1]
        if last["role"] == "tool":
            self.server.result = last["content"]
            self.reply({"content": "done"}, "stop")
        else:
            function = {"name": self.server.call["tool"], "arguments": json.dumps(self.server.call["arguments"])}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            self.reply({"tool_calls": [call]}, "tool_calls")

    def reply(self, delta, reason):
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


SILENT = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def seconds(command, folder, environment=None):
    """The processor's time that a process takes."""
    process = subprocess.Popen(command, cwd=folder, env=environment, **SILENT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def shortest(*arguments):
    return min(seconds(*arguments) for _ in range(3))


def ours(binary, server, root, call, measure):
    server.call, server.result = call, None
    command = [binary, "--base-url", f"http://127.0.0.1:{server.server_port}/v1", "--model", "m"]
    command += ["--no-session-persistence", "-p", "go"]
    return measure(command, root, {"PATH": os.environ["PATH"], "HOME": root})


def theirs(rg, root, call):
    if call["tool"] == "Glob":
        # It looks at the times of the files that fit too.
        options = [*record.BASE[:-1], "--files", "--sortr=modified", "--glob=" + call["arguments"]["pattern"]]
        return shortest([rg, *options], root)
    seen = []
    real, record.run = record.run, lambda rg, arguments, folder: seen.extend([rg, *arguments]) or []
    record.answer_of_grep(rg, root, call["arguments"])
    record.run = real
    return shortest([one for one in seen if one != "--sort=path"], root)


def compare(call, text, expected, root):
    """What is wrong with a result, and whether it is whole."""
    is_error = not text.endswith(("]", "\n"))
    if expected is None or is_error:
        return None if expected is None and is_error else "not an error in both", False
    lines, _, remarks = text.rpartition("\n")
    found = [re.sub(r": binary.*", ": binary", line) for line in lines.split("\n") if line]
    if call["tool"] == "Grep":
        whole = "more follow" not in remarks
        right = found == (expected if whole else expected[:len(found)])
        return None if right else "other lines", whole
    more = re.search(r"(\d+) older ones", remarks)
    newest = sorted(expected, key=lambda name: (-os.lstat(os.path.join(root, name)).st_mtime_ns, name))
    right = found == newest[:len(found)] and len(found) + int(more[1] if more else 0) == len(expected)
    return None if right else "other files", True


def main():
    binary, rg = (os.path.abspath(path) for path in sys.argv[1:3])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    root = os.path.realpath(tempfile.mkdtemp())
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        print(f"{make_tree(root)} files")
        base = ours(binary, server, root, {"tool": "get_current_datetime", "arguments": {}}, shortest)
        start = shortest([rg, "--version"], root)
        wrong, errors, timed = 0, 0, []
        for call in make_calls(count):
            ask = record.answer_of_grep if call["tool"] == "Grep" else record.answer_of_glob
            expected = ask(rg, root, call["arguments"])
            ours(binary, server, root, call, seconds)
            text = server.result
            problem, whole = compare(call, text, expected, root)
            errors += expected is None
            if problem:
                wrong += 1
                print(f"{problem}: {json.dumps(call)}\n  {text[:300]!r}\n  {str(expected)[:300]}")
            elif whole:
                mine = ours(binary, server, root, call, shortest) - base
                timed.append((mine, theirs(rg, root, call) - start, call))
        total = [sum(one[side] for one in timed) for side in (0, 1)]
        print(f"{count} calls, {errors} of them errors: {wrong} differ")
        print(f"{len(timed)} timed: {total[0]:.2f} s, rg -j1 {total[1]:.2f} s, ratio {total[0] / total[1]:.2f}")
        for mine, other, call in sorted(timed, key=lambda one: -one[0] / one[1])[:3]:
            print(f"worst {mine / other:.2f}: {mine * 1000:.0f} ms, rg {other * 1000:.0f} ms, {json.dumps(call)}")
    finally:
        server.shutdown()
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
