"""A replay server for the SDK's cases: it speaks Anthropic's Messages on loopback and gives its replies in order.

It is strict: a request too many, one that is no request for a message, or a reply that nobody asked for is a
problem, and a case with a problem has failed.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Reply:
    """What one request is answered with."""

    def __init__(self, status=200, body=b"", kind="text/event-stream", held=False):
        self.status, self.body, self.kind = status, body, kind
        # A held reply sends its first half, says that it has begun, and waits until it is let go.
        self.held = held
        self.begun, self.released = threading.Event(), threading.Event()


def message(*blocks, stop="end_turn", usage=(2500, 5), held=False):
    """A streamed message with these blocks: a text, or (tool, input), or (tool, input, id)."""
    start = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "replayed", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": usage[0], "output_tokens": 1},
    }
    events = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        if isinstance(block, str):
            begin = {"type": "text", "text": ""}
            middle = max(1, len(block) // 2)
            deltas = [{"type": "text_delta", "text": part} for part in (block[:middle], block[middle:]) if part]
        elif block[0] == "thinking":
            begin = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block[1]},
                {"type": "signature_delta", "signature": "signed"},
            ]
        else:
            stop = "tool_use"
            name, arguments, *rest = block
            identity = rest[0] if rest else f"toolu_{index}"
            begin = {"type": "tool_use", "id": identity, "name": name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}]
        events.append({"type": "content_block_start", "index": index, "content_block": begin})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": usage[1]}})
    events.append({"type": "message_stop"})
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(body=body.encode(), held=held)


def refusal(status, kind, text):
    """An error of the API."""
    error = {"type": "error", "error": {"type": kind, "message": text}}
    return Reply(status, json.dumps(error).encode(), "application/json")


class Server:
    """Serves these replies until the `with` block ends, which checks that each was asked for."""

    def __init__(self, *replies):
        self.replies, self.bodies, self.headers, self.problems = list(replies), [], [], []
        self.count = len(self.replies)
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.answer(self, body)

            def do_GET(self):
                outer.answer(self, b"")

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, request, body):
        with self.lock:
            expected = request.command == "POST" and request.path == "/v1/messages"
            reply = self.replies.pop(0) if expected and self.replies else None
            if reply:
                self.bodies.append(json.loads(body))
                self.headers.append({name.lower(): value for name, value in request.headers.items()})
            else:
                self.problems.append(f"unexpected {request.command} {request.path}: {body[:300]!r}")
                reply = refusal(400, "invalid_request_error", "this request was not expected")
        try:
            request.send_response(reply.status)
            request.send_header("content-type", reply.kind)
            if reply.held:
                half = len(reply.body) // 2
                request.send_header("connection", "close")
                request.end_headers()
                request.wfile.write(reply.body[:half])
                request.wfile.flush()
                reply.begun.set()
                reply.released.wait(60)
                request.wfile.write(reply.body[half:])
                request.close_connection = True
            else:
                request.send_header("content-length", str(len(reply.body)))
                request.end_headers()
                request.wfile.write(reply.body)
        except OSError:
            # The client may go when it likes: what it should have asked for is missing then.
            pass

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.http.shutdown()
        self.http.server_close()
        if kind is None:
            assert not self.problems, self.problems
            assert not self.replies, f"{len(self.replies)} of {self.count} replies were not asked for"
