//! The attempts by class, and what has to go on working.
//!
//! `$OUTSIDE` is a folder with the file `precious`, the folder `empty` and the sockets `stream` and `datagrams`, `$PORT` a listener
//! on the machine's loopback, `$VICTIM` a process of the same user, `$DEPLOY_TOKEN` a secret. Descriptor 7 was
//! open when cotter was started.

/// What an attempt is directed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Write,
    Device,
    Network,
    Socket,
    Secret,
    Process,
    Privilege,
    Descriptor,
}

/// What it takes to succeed uncontained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    Root,
    /// A kernel, or a container's settings, that let it be done.
    Kernel,
}

/// A command that prints a line `reached` where it does what it must not.
pub struct Attempt {
    pub class: Class,
    pub name: &'static str,
    pub command: &'static str,
    pub needs: Needs,
}

const fn attempt(class: Class, name: &'static str, needs: Needs, command: &'static str) -> Attempt {
    Attempt { class, name, command, needs }
}

use Class::{Descriptor, Device, Network, Privilege, Process, Secret, Socket, Write};
use Needs::{Kernel, Nothing, Root};

pub const ATTEMPTS: &[Attempt] = &[
    attempt(Write, "new_file", Nothing, "echo x >\"$OUTSIDE/new\" && echo reached"),
    attempt(Write, "append", Nothing, "echo x >>\"$OUTSIDE/precious\" && echo reached"),
    attempt(Write, "climb", Nothing, "echo x >../home/new && echo reached"),
    attempt(Write, "symbolic_link", Nothing, "ln -sf \"$OUTSIDE/precious\" a; echo x >a && echo reached"),
    attempt(Write, "link_to_folder", Nothing, "ln -sfn \"$OUTSIDE\" b; echo x >b/new && echo reached"),
    attempt(Write, "hard_link", Nothing, "ln -f \"$OUTSIDE/precious\" c && echo x >>c && echo reached"),
    attempt(Write, "by_own_root", Nothing, "echo x >\"/proc/self/root$OUTSIDE/new\" && echo reached"),
    attempt(
        Write,
        "by_descriptor_for_reading",
        Nothing,
        "exec 5<\"$OUTSIDE/precious\"; echo x >/proc/self/fd/5 && echo reached",
    ),
    attempt(Write, "cut", Nothing, ": >\"$OUTSIDE/precious\" && echo reached"),
    attempt(
        Write,
        "cut_by_path",
        Nothing,
        "python3 -c 'import os; os.truncate(os.environ[\"OUTSIDE\"] + \"/precious\", 1)' && echo reached",
    ),
    attempt(
        Write,
        "cut_when_opened_for_reading",
        Nothing,
        "python3 -c 'import os; os.open(os.environ[\"OUTSIDE\"] + \"/precious\", os.O_RDONLY | os.O_TRUNC)' && echo reached",
    ),
    attempt(
        Write,
        "session_of_cotter",
        Nothing,
        "for f in ../home/.local/state/cotter/sessions/*; do echo x >>\"$f\" && echo reached; done",
    ),
    attempt(Write, "make_folder", Nothing, "mkdir \"$OUTSIDE/folder\" && echo reached"),
    attempt(Write, "make_fifo", Nothing, "mkfifo \"$OUTSIDE/fifo\" && echo reached"),
    attempt(Write, "make_link", Nothing, "ln -s x \"$OUTSIDE/link\" && echo reached"),
    attempt(
        Write,
        "move_in",
        Nothing,
        "mv \"$OUTSIDE/precious\" d && test ! -e \"$OUTSIDE/precious\" && echo reached",
    ),
    attempt(
        Write,
        "move_out",
        Nothing,
        "echo x >\"$TMPDIR/e\"; mv \"$TMPDIR/e\" \"$OUTSIDE/e\" && echo reached",
    ),
    attempt(Write, "remove", Nothing, "rm \"$OUTSIDE/start\" && echo reached"),
    attempt(Write, "remove_folder", Nothing, "rmdir \"$OUTSIDE/empty\" && echo reached"),
    attempt(
        Write,
        "shared_memory",
        Kernel,
        "echo x >/dev/shm/cotter-attempt-$$ && rm /dev/shm/cotter-attempt-$$ && echo reached",
    ),
    attempt(Device, "block_device", Root, "mknod \"$TMPDIR/f\" b 7 0 && echo reached"),
    attempt(Device, "character_device", Root, "mknod \"$TMPDIR/g\" c 1 1 && echo reached"),
    attempt(
        Device,
        "command_to_device",
        Kernel,
        "python3 -c 'import fcntl, os; m = os.open(\"/dev/ptmx\", os.O_RDWR); fcntl.ioctl(m, 0x40045431, bytes(4))' && echo reached",
    ),
    attempt(
        Device,
        "typing_into_a_terminal",
        Kernel,
        "python3 -c 'import fcntl, os; m, s = os.openpty(); fcntl.ioctl(s, 0x5412, b\"x\")' && echo reached",
    ),
    attempt(Network, "loopback_of_the_machine", Nothing, "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached"),
    attempt(
        Network,
        "interfaces",
        Kernel,
        "test $(grep -c : /proc/self/net/dev) -gt 1 && exec 3<>/dev/udp/192.0.2.1/9 && echo reached",
    ),
    attempt(
        Socket,
        "unix_stream",
        Nothing,
        "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"OUTSIDE\"] + \"/stream\")' && echo reached",
    ),
    attempt(
        Socket,
        "unix_datagram",
        Nothing,
        "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", os.environ[\"OUTSIDE\"] + \"/datagrams\")' && echo reached",
    ),
    attempt(
        Socket,
        "datagram_from_a_pair",
        Nothing,
        "python3 -c 'import os, socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(os.environ[\"OUTSIDE\"] + \"/datagrams\")' && echo reached",
    ),
    attempt(
        Socket,
        "io_uring",
        Kernel,
        "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120)) < 0)' && echo reached",
    ),
    attempt(Socket, "vsock", Kernel, "python3 -c 'import socket; socket.socket(40, 1)' && echo reached"),
    attempt(Secret, "variable", Nothing, "test -n \"$DEPLOY_TOKEN\" && echo reached"),
    attempt(
        Secret,
        "key_of_cotter",
        Root,
        "read -r _ _ _ s _ </proc/$PPID/stat; read -r _ _ _ c _ </proc/$s/stat; grep -q ANTHROPIC_API_KEY /proc/$c/environ && echo reached",
    ),
    attempt(
        Secret,
        "variable_of_the_shell_above_cotter",
        Nothing,
        "grep -q VICTIMS_SECRET /proc/$VICTIM/environ && echo reached",
    ),
    attempt(
        Secret,
        "environment_of_the_worker",
        Nothing,
        "test -r /proc/$PPID/environ && tr '\\0' '\\n' </proc/$PPID/environ | grep -q PATH && echo reached",
    ),
    attempt(
        Secret,
        "environment_of_the_supervisor",
        Nothing,
        "read -r _ _ _ s _ </proc/$PPID/stat; tr '\\0' '\\n' </proc/$s/environ | grep -q PATH && echo reached",
    ),
    attempt(Process, "limits", Kernel, "prlimit --pid $VICTIM --nofile=100:100 && echo reached"),
    attempt(
        Process,
        "memory",
        Kernel,
        "python3 -c 'import os; os.open(\"/proc/\" + os.environ[\"VICTIM\"] + \"/mem\", os.O_RDONLY)' && echo reached",
    ),
    attempt(
        Process,
        "cotter_stopped",
        Nothing,
        "read -r _ _ _ s _ </proc/$PPID/stat; read -r _ _ _ c _ </proc/$s/stat; kill -CONT $c && echo reached",
    ),
    attempt(Process, "ended", Nothing, "kill -KILL $VICTIM && echo reached"),
    attempt(Privilege, "user_namespace", Kernel, "unshare --user --map-root-user true && echo reached"),
    attempt(
        Privilege,
        "mount",
        Root,
        "mkdir -p \"$TMPDIR/h\"; mount -t tmpfs none \"$TMPDIR/h\" && umount \"$TMPDIR/h\" && echo reached",
    ),
    attempt(Privilege, "another_root", Root, "chroot / true && echo reached"),
    attempt(Privilege, "another_user", Root, "setpriv --reuid 1 --clear-groups true && echo reached"),
    attempt(
        Privilege,
        "capabilities",
        Root,
        "test $((0x$(sed -n 's/^CapBnd:.//p' /proc/self/status) & ~0x1b)) -ne 0 && echo reached",
    ),
    attempt(Privilege, "namespace_of_another", Root, "nsenter --net --target $VICTIM true && echo reached"),
    attempt(Descriptor, "inherited", Nothing, "echo x >&7 && echo reached"),
    attempt(Descriptor, "pipes_of_the_worker", Nothing, "readlink /proc/$PPID/fd/0 && echo reached"),
];

/// Name and command; the command prints a line `works`.
pub const PERMITTED: &[(&str, &str)] = &[
    (
        "files",
        "mkdir -p a/b && echo x >a/b/c && mv a/b/c a/d && ln a/d e && ln -s e f && : >e && rm -r a && echo works",
    ),
    ("fifos", "mkfifo p && rm p && echo works"),
    ("temporary files", "file=$(mktemp) && echo x >\"$file\" && mv \"$file\" here && echo works"),
    (
        "devices",
        "echo x >/dev/null && head -c 1 /dev/urandom >/dev/null && head -c 1 /dev/zero >/dev/null && echo works",
    ),
    ("modes", "echo 'echo works' >run && chmod +x run && ./run"),
    ("reading", "head -c 1 /etc/passwd >/dev/null && ls / >/dev/null && echo works"),
    ("jobs", "sleep 1000 & kill %1 && wait %1; echo works"),
    ("signals in the tree", "sh -c 'kill -TERM $$'; test $? -eq 143 && echo works"),
    ("time limits", "timeout 0.1 sleep 1000; test $? -eq 124 && echo works"),
    (
        "own loopback",
        "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname()); print(\"works\")'",
    ),
    (
        "pairs and threads",
        "python3 -c 'import socket, threading; socket.socketpair(); t = threading.Thread(target=print, args=(\"works\",)); t.start(); t.join()'",
    ),
    ("a debugger's rights", "sleep 1000 & head -c 1 /proc/$!/environ >/dev/null && kill %1 && echo works"),
];
