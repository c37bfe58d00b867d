"""Tries the image without an engine: `python3 image/check.py COTTER`, as root or with user namespaces.

The root folder is laid out as the last stage of the Dockerfile has it and entered by chroot, with nothing else
in it and then with what a container runtime mounts. Servers of the model and of names listen in a network of
their own. Where the machine offers no namespaces, `SKIPPED image_check: reason` is printed.
"""

import ctypes
import fcntl
import http.server
import json
import os
import shlex
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
INSIDE = "--inside"
MOST_BYTES = 6 * 1024 * 1024
SECONDS = 30
# What Docker leaves to root unless it is told otherwise.
CAPABILITIES = """chown dac_override fsetid fowner mknod net_raw setgid setuid setfcap setpcap net_bind_service
    sys_chroot kill audit_write""".split()
# What Docker sets where the image sets nothing.
VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "HOSTNAME": "0123456789ab",
}
HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.0.1\telsewhere.test\n"
# Docker's own server of names listens at this address.
RESOLV_CONF = "nameserver 127.0.0.11\noptions ndots:0\n"
OWNER = 1000
TRIAL = """
mount -t tmpfs tmpfs "$0"
unshare --mount --pid --fork mount -t proc proc "$0"
"""
MOUNT_CONTAINER = """
mount -t proc proc proc
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do : >dev/$name; mount --bind /dev/$name dev/$name; done
"""
# Each call with what comes of it.
CALLS = [
    (
        "Write",
        {"file_path": "src/a.rs", "content": "fn one() {}\n"},
        "created src/a.rs (12 bytes)",
    ),
    (
        "Edit",
        {"file_path": "src/a.rs", "old_string": "one", "new_string": "two"},
        "edited src/a.rs (1 replacement at line 1)",
    ),
    ("Grep", {"pattern": "two", "output_mode": "content"}, "src/a.rs:1:fn two() {}\n"),
    ("Glob", {"pattern": "**/*.rs"}, "src/a.rs\n"),
    ("Read", {"file_path": "src/a.rs"}, "fn two() {}\n"),
    (
        "get_current_datetime",
        {"timezone": "Asia/Tokyo"},
        "2025-07-01T21:00:00+09:00[Asia/Tokyo] (Tuesday)",
    ),
    # This one is refused, by the containment or by the user's own rights.
    ("Write", {"file_path": "/new", "content": "out"}, None),
]


def last_stage():
    """What the Dockerfile's last stage copies, and its user and entry point."""
    text = (HERE.parent / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    start = max(number for number, words in enumerate(lines) if words[0] == "FROM")
    assert lines[start] == ["FROM", "scratch"], lines[start]
    copied, user, entry = [], None, None
    for words in lines[start + 1 :]:
        if words[:2] == ["COPY", "--from=build"] and len(words) == 4:
            copied.append(words[3].lstrip("/"))
        elif words[0] == "USER" and len(words) == 2:
            user = tuple(int(number) for number in words[1].split(":"))
        elif words[0] == "ENTRYPOINT":
            entry = json.loads(" ".join(words[1:]))
        else:
            sys.exit(f"image/check.py does not know how to lay out: {' '.join(words)}")
    return copied, user, entry


def equal(what, found, expected):
    """Both are the same, or the check has failed."""
    if found != expected:
        sys.exit(f"image-check: {what}\n  expected {expected!r}\n  found    {found!r}")


def calls():
    """The calls as the model asks for them."""
    functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments, _ in CALLS]
    return [
        {"id": f"call_{number}", "type": "function", "function": function}
        for number, function in enumerate(functions)
    ]


class Model(http.server.BaseHTTPRequestHandler):
    """Asks for all the calls, then says that it is done; keeps the results and where they came from."""

    protocol_version = "HTTP/1.1"
    seen = []

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
        address = self.client_address[0]
        if address.startswith("::ffff:"):
            address = address[len("::ffff:") :]
        Model.seen.append((address, results))
        message = {"role": "assistant", "content": "Done."}
        if not results:
            message = {"role": "assistant", "content": None, "tool_calls": calls()}
        choice = {"index": 0, "message": message, "finish_reason": "stop" if results else "tool_calls"}
        body = json.dumps({"object": "chat.completion", "model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Is silent."""


class Server(http.server.ThreadingHTTPServer):
    """Over TLS, at the addresses of both kinds, or of the one that there is."""

    def __init__(self, certificate):
        self.address_family = socket.AF_INET6 if has_ipv6() else socket.AF_INET
        super().__init__(("", 0), Model)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(FIXTURES / "tls" / certificate, FIXTURES / "tls" / "server.key")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Is silent: a client that does not trust the certificate goes away."""


class Names:
    """A server of names, which knows one by the addresses that it is told."""

    def __init__(self):
        self.addresses = {}
        for address in ["127.0.0.1", "127.0.0.11"]:
            listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            listener.bind((address, 53))
            threading.Thread(target=self.serve, args=[listener], daemon=True).start()

    def serve(self, listener):
        while True:
            query, client = listener.recvfrom(512)
            end = query.index(0, 12) + 5
            kind = struct.unpack("!H", query[end - 4 : end - 2])[0]
            family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
            is_known = query[12 : end - 4] == b"\3api\4test\0"
            address = self.addresses.get(family) if is_known else None
            answer = b""
            if address:
                data = socket.inet_pton(family, address)
                answer = struct.pack("!HHHIH", 0xC00C, kind, 1, 1, len(data)) + data
            flags = 0x8180 if is_known else 0x8183
            head = query[:2] + struct.pack("!HHHHH", flags, 1, 1 if answer else 0, 0, 0)
            listener.sendto(head + query[12:end] + answer, client)


class Container:
    """The image's root folder and a way into it."""

    def __init__(self, name, program, uid, is_container=False, is_read_only=False):
        place = Path.cwd() / name
        copied, _, self.entry = last_stage()
        self.name, self.uid, self.is_container, self.is_read_only = name, uid, is_container, is_read_only
        self.root, self.work = place / "root", place / "work"
        self.root.mkdir(parents=True)
        for target in copied:
            path = self.root / target
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(program, path)
        listed = sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))
        equal(f"{name}: what the image holds", listed, ["cotter"])
        # From here on, what a runtime adds: the user's folder, and the places of what it mounts.
        shutil.copytree(FIXTURES / "demo", self.work)
        shutil.copy(FIXTURES / "tls" / "ca.pem", self.work)
        (self.root / "work").mkdir()
        self.places = {"cotter", "work"}
        if is_container:
            for folder in ["proc", "dev", "etc"]:
                (self.root / folder).mkdir()
            (self.root / "etc/hosts").write_text(HOSTS)
            (self.root / "etc/resolv.conf").write_text(RESOLV_CONF)
            # A module of the system's is not loaded. Who opens this one waits for ever.
            (self.root / "etc/nsswitch.conf").write_text("hosts: files other dns\n")
            (self.root / "lib").mkdir()
            os.mkfifo(self.root / "lib/libnss_other.so.2", 0o755)
            self.places |= {"proc", "dev", "etc", "lib"}
        if uid:
            # It is root's, whoever has laid it out.
            self.root.chmod(0o555)
        if is_outer_root():
            for path in [self.work, *self.work.rglob("*")]:
                os.chown(path, uid, uid)

    def entered(self):
        """The words that stand before the entry point."""
        if self.uid == 0 or is_outer_root():
            kept = ",".join(f"+{name}" for name in CAPABILITIES)
            less = ["setpriv", "--bounding-set", f"-all,{kept}", "--no-new-privs"]
            user = [f"--userspec={self.uid}:{self.uid}", "--groups="]
            return [*(less if self.is_container else []), "chroot", *(user if self.uid else []), "."]
        # Root of a user namespace has no other user to become: it is known by another number in one more.
        number = str(self.uid)
        return ["unshare", "--user", "--map-user", number, "--map-group", number, "--root", "."]

    def run(self, *args, filtered=False, variables={}):
        """Status, standard output and error of a run in the user's folder."""
        lines = ['mount --bind "$0" "$0"', 'cd "$0"', "mount --bind ../work work"]
        lines += MOUNT_CONTAINER.splitlines() if self.is_container else []
        lines += ["mount -o remount,bind,ro ."] if self.is_read_only else []
        script = "\n".join(["set -e", *lines, 'exec "$@"'])
        spaces = ["unshare", "--mount", *(["--pid", "--fork", "--kill-child"] if self.is_container else [])]
        command = [*spaces, "sh", "-c", script, self.root, *self.entered(), *self.entry, "-C", "/work", *args]
        ran = subprocess.run(
            command,
            env={**(VARIABLES if self.is_container else {}), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            preexec_fn=refuse_landlock if filtered else None,
            check=False,
        )
        return ran.returncode, ran.stdout, ran.stderr

    def succeeds(self, *args, **more):
        status, stdout, stderr = self.run(*args, **more)
        equal(f"{self.name}: {args}: status and standard error", (status, stderr), (0, ""))
        return stdout

    def check(self, servers, names):
        assert self.succeeds("--version").startswith("cotter ")
        self.check_demo()
        offered = [json.loads(line)["name"] for line in self.succeeds("--list-tools").splitlines()]
        assert "Write" in offered and "Bash" not in offered, offered
        line = "cotter: --tools: Bash needs a bash or sh in PATH, and there is none\n"
        equal(f"{self.name}: Bash", self.run("--tools", "Bash", "-p", "x"), (2, "", line))
        by_ipv6 = [{socket.AF_INET6: "::1"}] if has_ipv6() else []
        for addresses in [{socket.AF_INET: "127.0.0.1"}, *by_ipv6]:
            names.addresses = addresses
            self.check_tools("api.test", servers[0], set(addresses.values()))
        if self.is_container:
            # This name is in the file of hosts alone.
            self.check_tools("elsewhere.test", servers[1], {"127.0.0.1"})
        self.check_tools("localhost", servers[0], {"127.0.0.1", "::1"})
        left = {path.name for path in self.root.iterdir()}
        kept = {".local"} if self.is_container and self.uid == 0 and not self.is_read_only else set()
        equal(f"{self.name}: what the root folder holds afterwards", left, self.places | kept)
        print(f"image-check: {self.name}: all is well")

    def check_demo(self):
        """The main job, on its recording."""
        makefile = (HERE.parent / "Makefile").read_text()
        prompt = makefile.split("--replay recording")[1].split('"')[1]
        args = ["--replay", "recording", "--no-session-persistence", "--tools", "Read", "-p", prompt]
        answer = self.succeeds(*args)
        for line in (FIXTURES / "demo/apple.py").read_text().splitlines():
            assert line in answer, answer

    def check_tools(self, host, server, addresses):
        """A run over TLS that writes, edits, finds and reads, and fails to write outside of its folder."""
        Model.seen.clear()
        args = asking(host, server)
        answer = self.succeeds(*args, variables={"COTTER_NOW": "2025-07-01T12:00:00Z"})
        equal(f"{self.name}: {host}: the answer", answer, "Done.\n")
        equal(f"{self.name}: {host}: requests", [len(results) for _, results in Model.seen], [0, len(CALLS)])
        assert {address for address, _ in Model.seen} <= addresses, Model.seen
        *results, outside = Model.seen[1][1]
        for (name, _, expected), result in zip(CALLS, results):
            equal(f"{self.name}: {host}: {name}", result, expected)
        assert "ermission denied" in outside or "ead-only file system" in outside, outside
        equal(f"{self.name}: the file", (self.work / "src/a.rs").read_text(), "fn two() {}\n")
        shutil.rmtree(self.work / "src")

    def check_manual(self):
        """README's command, as far as the request that it would make."""
        text = (HERE.parent / "README.md").read_text().split("<!-- image -->\n```sh\n")[1].split("```")[0]
        words = shlex.split(text)
        args = words[words.index("cotter") + 1 :]
        variables = {"ANTHROPIC_API_KEY": "key"} if "ANTHROPIC_API_KEY" in words else {}
        request = json.loads(self.succeeds(*args, "--dry-run", variables=variables))
        assert args[-1] in json.dumps(request["messages"]), request

    def check_refusals(self, server):
        """What is said where there is no containment, and of a certificate unknown to the built-in roots."""
        status, stdout, stderr = self.run(*asking("localhost", server), filtered=True)
        equal(f"{self.name}: without Landlock", (status, stdout), (10, ""))
        begin = "cotter: tools cannot be contained here: the kernel offers no Landlock"
        equal(f"{self.name}: without Landlock", stderr[: len(begin)], begin)
        args = asking("localhost", server)
        at = args.index("--cacert")
        status, stdout, stderr = self.run(*args[:at], *args[at + 2 :])
        equal(f"{self.name}: an unknown authority", (status, stdout), (6, ""))
        assert "it was issued by an authority that is not known here" in stderr, stderr


def asking(host, server):
    url = f"https://{host}:{server.server_port}/v1"
    return ["--base-url", url, "--model", "m", "--cacert", "ca.pem", "--max-retries", "0", "-p", "Do it."]


def refuse_landlock():
    """From now on there is none for this process and what it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    # The call has one number on all machines.
    enosys, number = 0x50026, 444
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, enosys), (0x06, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HL", len(steps), ctypes.addressof(buffer))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0


def is_outer_root():
    """Whether root is the machine's: with a user namespace there is but one user to be."""
    return int(Path("/proc/self/uid_map").read_text().split()[2]) > 1


def has_ipv6():
    """Whether the network has it: it may be switched off."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as any_socket:
            any_socket.bind(("::1", 0))
    except OSError:
        return False
    return True


def raise_loopback():
    """A new network begins with its loopback down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        up = struct.pack("16sh22x", b"lo", 1)
        fcntl.ioctl(any_socket, 0x8914, up)


def check(program):
    """All of it, in namespaces of its own."""
    raise_loopback()
    if not has_ipv6():
        print("SKIPPED image_check_over_ipv6: the network has none", flush=True)
    # A file system that goes with the mount namespace.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "."], check=True)
    os.chdir(Path.cwd())
    size = Path(program).stat().st_size
    assert size < MOST_BYTES, f"the binary has {size} bytes, more than {MOST_BYTES}"
    servers, names = [Server("localhost.pem"), Server("elsewhere.pem")], Names()
    _, (user, group), entry = last_stage()
    assert user == group > 0 and entry == ["/cotter"], (user, group, entry)
    alone = Container("alone", program, user)
    alone.check(servers, names)
    alone.check_refusals(servers[0])
    Container("alone as root", program, 0).check(servers, names)
    Container("container", program, user, is_container=True).check(servers, names)
    Container("container as root", program, 0, is_container=True).check(servers, names)
    owner = Container("read-only container as owner", program, OWNER, is_container=True, is_read_only=True)
    owner.check(servers, names)
    owner.check_manual()


def main():
    if sys.argv[1] == INSIDE:
        return check(sys.argv[2])
    spaces = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", "--mount"]
    lacking = [name for name in ["unshare", "mount", "setpriv", "chroot"] if shutil.which(name) is None]
    if lacking:
        return print(f"SKIPPED image_check: there is no {lacking[0]}")
    with tempfile.TemporaryDirectory() as place:
        # An engine that masks parts of procfs keeps those inside from mounting another.
        trial = [*spaces, "sh", "-ec", TRIAL, place]
        tried = subprocess.run(trial, capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            return print(f"SKIPPED image_check: {tried.stderr.strip()}")
        program = Path(sys.argv[1]).resolve()
        command = [*spaces, sys.executable, Path(__file__).resolve(), INSIDE, program]
        return subprocess.run(command, cwd=place, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
