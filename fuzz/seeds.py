#!/usr/bin/env python3
"""Makes the first inputs of all fuzz targets: those in seeds/ (divided by the character 0x1D), and what fixtures/
holds of recorded and written exchanges.

usage: seeds.py CORPUS_FOLDER
"""

import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
SEPARATOR = b"\x1e"
LONGEST = 20_000


def body_of(path):
    """What follows the head of a recorded response."""
    text = path.read_bytes()
    for end in (b"\r\n\r\n", b"\n\n"):
        if end in text:
            return text.split(end, 1)[1]
    return b""


def is_of_messages(body):
    return b"message_start" in body or b'"type":"message"' in body.replace(b" ", b"")


def of_responses(add):
    for path in sorted(FIXTURES.rglob("*.response.http")):
        body = body_of(path)
        if not 0 < len(body) < LONGEST:
            continue
        target = "anthropic" if is_of_messages(body) else "completions"
        add("sse", b"\x03" + body[:4000])
        add(target, b"\x05" + body)
        events = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
        if any(event.startswith(b"{") for event in events):
            add(target, b"\x05" + b"\n".join(events))
            continue
        try:
            add(target, b"\x05" + json.dumps(json.loads(body)).encode())
            add("refusal", b"400 application/json" + SEPARATOR + body)
        except ValueError:
            add("refusal", b"502 text/html" + SEPARATOR + body)


def of_recordings(add):
    for path in sorted(FIXTURES.rglob("*.request.json")):
        response = path.with_name(path.name.replace("request.json", "response.http"))
        if response.exists():
            request = json.loads(path.read_text())
            # They are the longest part, and the same in all.
            for name in ("tools", "system"):
                request.pop(name, None)
            parts = [json.dumps(request).encode(), b"", response.read_bytes()[:3000]]
            add("recording", SEPARATOR.join(parts))


def main():
    corpus = pathlib.Path(sys.argv[1])

    def add(target, seed):
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)

    for path in sorted((HERE / "seeds").iterdir()):
        for seed in path.read_bytes().split(b"\x1d"):
            add(path.name, seed)
    of_responses(add)
    of_recordings(add)


if __name__ == "__main__":
    main()
