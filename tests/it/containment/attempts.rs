//! The attempts by class, and what has to go on working.
//!
//! `$OUTSIDE` is a folder with the file `precious`, the folder `empty` and the sockets `stream` and `datagrams`,
//! `$PORT` a listener on the machine's loopback, `$ABSTRACT` the name of a socket that lies nowhere, `$VICTIM` a
//! process of the same user that stands in the folder and writes to a file there, `$TERMINAL` a terminal of the
//! user's, `$COTTER` the program, `$DEPLOY_TOKEN` a secret. Descriptor 7 was open when cotter was started.

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
    Metadata,
    Procfs,
    Terminal,
    Persistence,
}

/// All of them.
pub const CLASSES: [Class; 12] = [
    Write,
    Device,
    Network,
    Socket,
    Secret,
    Process,
    Privilege,
    Descriptor,
    Metadata,
    Procfs,
    Terminal,
    Persistence,
];

/// What stops an attempt first, where it has all it can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Landlock,
    Seccomp,
    /// A network and System V objects of the tools' own; without them seccomp refuses sockets.
    Namespace,
    /// A privilege that is given up.
    Capability,
    /// The environment of tools lacks it.
    Environment,
    /// The worker cannot be looked into.
    Dumpable,
    /// The supervisor starts tools in a session of their own, without descriptors.
    Supervisor,
}

impl By {
    /// What a program that is stopped so can say; nothing where it says nothing.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            // A signal, or a look into a process, is answered as one to another user's.
            By::Landlock => &["Permission denied", "cross-device", "Operation not permitted"],
            By::Seccomp => &["Operation not permitted", "Function not implemented", "permission denied."],
            By::Namespace => &["Connection refused", "unreachable", "Operation not permitted"],
            By::Dumpable => &["Permission denied", "Operation not permitted"],
            By::Supervisor => &["Bad file descriptor", "No such device or address"],
            By::Capability | By::Environment => &[],
        }
    }
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
    pub by: By,
}

const fn attempt(class: Class, name: &'static str, needs: Needs, by: By, command: &'static str) -> Attempt {
    Attempt { class, name, command, needs, by }
}

use By::{Capability, Dumpable, Environment, Landlock, Namespace, Seccomp, Supervisor};
use Class::{
    Descriptor, Device, Metadata, Network, Persistence, Privilege, Process, Procfs, Secret, Socket, Terminal,
    Write,
};
use Needs::{Kernel, Nothing, Root};

pub const ATTEMPTS: &[Attempt] = &[
    attempt(Write, "new_file", Nothing, Landlock, "echo x >\"$OUTSIDE/new\" && echo reached"),
    attempt(Write, "append", Nothing, Landlock, "echo x >>\"$OUTSIDE/precious\" && echo reached"),
    attempt(Write, "climb", Nothing, Landlock, "echo x >../home/new && echo reached"),
    attempt(
        Write,
        "symbolic_link",
        Nothing,
        Landlock,
        "ln -sf \"$OUTSIDE/precious\" a; echo x >a && echo reached",
    ),
    attempt(
        Write,
        "link_to_folder",
        Nothing,
        Landlock,
        "ln -sfn \"$OUTSIDE\" b; echo x >b/new && echo reached",
    ),
    attempt(
        Write,
        "hard_link",
        Nothing,
        Landlock,
        "ln -f \"$OUTSIDE/precious\" c && echo x >>c && echo reached",
    ),
    attempt(
        Write,
        "by_own_root",
        Nothing,
        Landlock,
        "echo x >\"/proc/self/root$OUTSIDE/new\" && echo reached",
    ),
    attempt(
        Write,
        "by_descriptor_for_reading",
        Nothing,
        Landlock,
        "exec 5<\"$OUTSIDE/precious\"; echo x >/proc/self/fd/5 && echo reached",
    ),
    attempt(Write, "cut", Nothing, Landlock, ": >\"$OUTSIDE/precious\" && echo reached"),
    attempt(
        Write,
        "cut_by_path",
        Nothing,
        Landlock,
        "python3 -c 'import os; os.truncate(os.environ[\"OUTSIDE\"] + \"/precious\", 1)' && echo reached",
    ),
    attempt(
        Write,
        "cut_when_opened_for_reading",
        Nothing,
        Landlock,
        "python3 -c 'import os; os.open(os.environ[\"OUTSIDE\"] + \"/precious\", os.O_RDONLY | os.O_TRUNC)' && echo reached",
    ),
    attempt(
        Write,
        "session_of_cotter",
        Nothing,
        Landlock,
        "for f in ../home/.local/state/cotter/sessions/*; do echo x >>\"$f\" && echo reached; done",
    ),
    attempt(Write, "make_folder", Nothing, Landlock, "mkdir \"$OUTSIDE/folder\" && echo reached"),
    attempt(Write, "make_fifo", Nothing, Landlock, "mkfifo \"$OUTSIDE/fifo\" && echo reached"),
    attempt(Write, "make_link", Nothing, Landlock, "ln -s x \"$OUTSIDE/link\" && echo reached"),
    attempt(
        Write,
        "move_in",
        Nothing,
        Landlock,
        "mv \"$OUTSIDE/precious\" d && test ! -e \"$OUTSIDE/precious\" && echo reached",
    ),
    attempt(
        Write,
        "move_out",
        Nothing,
        Landlock,
        "echo x >\"$TMPDIR/e\"; mv \"$TMPDIR/e\" \"$OUTSIDE/e\" && echo reached",
    ),
    attempt(Write, "remove", Nothing, Landlock, "rm \"$OUTSIDE/start\" && echo reached"),
    attempt(Write, "remove_folder", Nothing, Landlock, "rmdir \"$OUTSIDE/empty\" && echo reached"),
    attempt(
        Write,
        "shared_memory",
        Kernel,
        Landlock,
        "echo x >/dev/shm/cotter-attempt-$$ && rm /dev/shm/cotter-attempt-$$ && echo reached",
    ),
    attempt(Device, "block_device", Root, Landlock, "mknod \"$TMPDIR/f\" b 7 0 && echo reached"),
    attempt(Device, "character_device", Root, Landlock, "mknod \"$TMPDIR/g\" c 1 1 && echo reached"),
    attempt(
        Device,
        "command_to_device",
        Kernel,
        Landlock,
        "python3 -c 'import fcntl, os; m = os.open(\"/dev/ptmx\", os.O_RDWR); fcntl.ioctl(m, 0x40045431, bytes(4))' && echo reached",
    ),
    attempt(
        Device,
        "typing_into_a_terminal",
        Kernel,
        Landlock,
        "python3 -c 'import fcntl, os; m, s = os.openpty(); fcntl.ioctl(s, 0x5412, b\"x\")' && echo reached",
    ),
    attempt(
        Network,
        "loopback_of_the_machine",
        Nothing,
        Namespace,
        "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached",
    ),
    attempt(
        Network,
        "interfaces",
        Kernel,
        Namespace,
        "test $(grep -c : /proc/self/net/dev) -gt 1 && exec 3<>/dev/udp/192.0.2.1/9 && echo reached",
    ),
    attempt(
        Socket,
        "unix_stream",
        Nothing,
        Seccomp,
        "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"OUTSIDE\"] + \"/stream\")' && echo reached",
    ),
    attempt(
        Socket,
        "unix_datagram",
        Nothing,
        Seccomp,
        "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", os.environ[\"OUTSIDE\"] + \"/datagrams\")' && echo reached",
    ),
    attempt(
        Socket,
        "datagram_from_a_pair",
        Nothing,
        Seccomp,
        "python3 -c 'import os, socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(os.environ[\"OUTSIDE\"] + \"/datagrams\")' && echo reached",
    ),
    attempt(
        Socket,
        "io_uring",
        Kernel,
        Seccomp,
        "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120)) < 0)' && echo reached",
    ),
    attempt(
        Socket,
        "vsock",
        Kernel,
        Seccomp,
        "python3 -c 'import socket; socket.socket(40, 1)' && echo reached",
    ),
    attempt(Secret, "variable", Nothing, Environment, "test -n \"$DEPLOY_TOKEN\" && echo reached"),
    attempt(
        Secret,
        "key_of_cotter",
        Root,
        Landlock,
        "read -r _ _ _ s _ </proc/$PPID/stat; read -r _ _ _ c _ </proc/$s/stat; grep -q ANTHROPIC_API_KEY /proc/$c/environ && echo reached",
    ),
    attempt(
        Secret,
        "variable_of_the_shell_above_cotter",
        Nothing,
        Landlock,
        "grep -q VICTIMS_SECRET /proc/$VICTIM/environ && echo reached",
    ),
    attempt(
        Secret,
        "environment_of_the_worker",
        Nothing,
        Dumpable,
        "test -r /proc/$PPID/environ && tr '\\0' '\\n' </proc/$PPID/environ | grep -q PATH && echo reached",
    ),
    attempt(
        Secret,
        "environment_of_the_supervisor",
        Nothing,
        Landlock,
        "read -r _ _ _ s _ </proc/$PPID/stat; tr '\\0' '\\n' </proc/$s/environ | grep -q PATH && echo reached",
    ),
    attempt(Process, "limits", Kernel, Seccomp, "prlimit --pid $VICTIM --nofile=100:100 && echo reached"),
    attempt(
        Process,
        "memory",
        Kernel,
        Landlock,
        "python3 -c 'import os; os.open(\"/proc/\" + os.environ[\"VICTIM\"] + \"/mem\", os.O_RDONLY)' && echo reached",
    ),
    attempt(
        Process,
        "cotter_stopped",
        Nothing,
        Landlock,
        "read -r _ _ _ s _ </proc/$PPID/stat; read -r _ _ _ c _ </proc/$s/stat; kill -CONT $c && echo reached",
    ),
    attempt(Process, "ended", Nothing, Landlock, "kill -KILL $VICTIM && echo reached"),
    attempt(
        Privilege,
        "user_namespace",
        Kernel,
        Seccomp,
        "unshare --user --map-root-user true && echo reached",
    ),
    attempt(
        Privilege,
        "mount",
        Root,
        Seccomp,
        "mkdir -p \"$TMPDIR/h\"; mount -t tmpfs none \"$TMPDIR/h\" && umount \"$TMPDIR/h\" && echo reached",
    ),
    attempt(Privilege, "another_root", Root, Seccomp, "chroot / true && echo reached"),
    attempt(
        Privilege,
        "another_user",
        Root,
        Capability,
        "setpriv --reuid 1 --clear-groups true && echo reached",
    ),
    attempt(
        Privilege,
        "capabilities",
        Root,
        Capability,
        "test $((0x$(sed -n 's/^CapBnd:.//p' /proc/self/status) & ~0x1b)) -ne 0 && echo reached",
    ),
    attempt(
        Privilege,
        "namespace_of_another",
        Root,
        Landlock,
        "nsenter --net --target $VICTIM true && echo reached",
    ),
    attempt(Descriptor, "inherited", Nothing, Supervisor, "echo x >&7 && echo reached"),
    attempt(
        Descriptor,
        "pipes_of_the_worker",
        Nothing,
        Dumpable,
        "readlink /proc/$PPID/fd/0 && echo reached",
    ),
    attempt(Write, "in_working_folder", Nothing, Landlock, "cd \"$OUTSIDE\" && echo x >new && echo reached"),
    attempt(
        Write,
        "unnamed_file",
        Kernel,
        Landlock,
        "python3 -c 'import os; os.open(os.environ[\"OUTSIDE\"], os.O_TMPFILE | os.O_WRONLY)' && echo reached",
    ),
    attempt(
        Write,
        "by_program_in_memory",
        Nothing,
        Landlock,
        "python3 -c 'import os; f = os.memfd_create(\"x\", 0); os.write(f, open(\"/bin/sh\", \"rb\").read()); os.execv(f\"/proc/self/fd/{f}\", [\"sh\", \"-c\", \"echo x >$OUTSIDE/new && echo reached\"])'",
    ),
    attempt(
        Write,
        "by_cotter_without_sandbox",
        Nothing,
        Landlock,
        "\"$COTTER\" sandbox --sandbox off -- sh -c 'echo x >\"$OUTSIDE/new\" && echo reached'",
    ),
    attempt(
        Metadata,
        "name",
        Nothing,
        Landlock,
        "mv \"$OUTSIDE/precious\" \"$OUTSIDE/renamed\" && echo reached",
    ),
    attempt(
        Metadata,
        "second_name",
        Nothing,
        Landlock,
        "ln \"$OUTSIDE/datagrams\" \"$OUTSIDE/second\" && echo reached",
    ),
    attempt(
        Metadata,
        "exchange",
        Kernel,
        Landlock,
        "echo x >ex; python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.renameat2(-100, b\"ex\", -100, os.environb[b\"OUTSIDE\"] + b\"/start\", 2) and exit(os.strerror(ctypes.get_errno()))' && echo reached",
    ),
    attempt(
        Metadata,
        "capability_of_file",
        Kernel,
        Capability,
        "echo x >cap; python3 -c 'import os; os.setxattr(\"cap\", \"security.capability\", bytes([0, 0, 0, 2, 0, 32, 0, 0]) + bytes(12))' && echo reached",
    ),
    attempt(
        Metadata,
        "trusted_attribute",
        Kernel,
        Capability,
        "python3 -c 'import os; os.setxattr(os.environ[\"OUTSIDE\"] + \"/precious\", \"trusted.x\", b\"1\")' && echo reached",
    ),
    attempt(
        Metadata,
        "immutable",
        Kernel,
        Capability,
        "touch imm; chattr +i imm && chattr -i imm && echo reached",
    ),
    attempt(
        Device,
        "opened_for_reading",
        Kernel,
        Landlock,
        "python3 -c 'import os; [os.close(os.open(d, os.O_RDONLY | os.O_NONBLOCK)) for d in [\"/dev/kmsg\", \"/dev/kvm\", \"/dev/fuse\", \"/dev/vcs\", \"/dev/tty0\"] if os.path.exists(d)][0]' && echo reached",
    ),
    attempt(
        Socket,
        "unix_abstract",
        Nothing,
        Seccomp,
        "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(\"\\0\" + os.environ[\"ABSTRACT\"])' && echo reached",
    ),
    attempt(
        Socket,
        "packets",
        Kernel,
        Seccomp,
        "python3 -c 'import socket; socket.socket(17, socket.SOCK_RAW, 3)' && echo reached",
    ),
    attempt(
        Socket,
        "kernel_cryptography",
        Kernel,
        Seccomp,
        "python3 -c 'import socket; socket.socket(38, 5)' && echo reached",
    ),
    attempt(
        Process,
        "by_descriptor",
        Nothing,
        Landlock,
        "python3 -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open(int(os.environ[\"VICTIM\"])), signal.SIGCONT)' && echo reached",
    ),
    attempt(
        Process,
        "supervisor",
        Nothing,
        Landlock,
        "read -r _ _ _ s _ </proc/$PPID/stat; kill -CONT $s && echo reached",
    ),
    attempt(
        Process,
        "debugged",
        Kernel,
        Landlock,
        "python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.ptrace(0x4206, int(os.environ[\"VICTIM\"]), 0, 0) and exit(os.strerror(ctypes.get_errno()))' && echo reached",
    ),
    attempt(
        Process,
        "worker_debugged",
        Kernel,
        Dumpable,
        "W=$PPID python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.ptrace(0x4206, int(os.environ[\"W\"]), 0, 0) and exit(os.strerror(ctypes.get_errno()))' && echo reached",
    ),
    attempt(Process, "memory_of_the_worker", Kernel, Dumpable, "exec 3<>/proc/$PPID/mem && echo reached"),
    attempt(
        Procfs,
        "root_of_another",
        Nothing,
        Landlock,
        "echo x >\"/proc/$VICTIM/root$OUTSIDE/new\" && echo reached",
    ),
    attempt(Procfs, "folder_of_another", Nothing, Landlock, "echo x >/proc/$VICTIM/cwd/new && echo reached"),
    attempt(Procfs, "file_of_another", Nothing, Landlock, "echo x >/proc/$VICTIM/fd/1 && echo reached"),
    attempt(
        Procfs,
        "order_of_ends",
        Nothing,
        Landlock,
        "echo 900 >/proc/$VICTIM/oom_score_adj && echo reached",
    ),
    attempt(
        Procfs,
        "core_pattern",
        Kernel,
        Landlock,
        "exec 3>>/proc/sys/kernel/core_pattern && echo reached",
    ),
    attempt(
        Procfs,
        "binary_formats",
        Kernel,
        Landlock,
        "exec 3>>/proc/sys/fs/binfmt_misc/register && echo reached",
    ),
    attempt(
        Procfs,
        "system",
        Kernel,
        Landlock,
        "exec 3>>/sys/kernel/mm/transparent_hugepage/enabled && echo reached",
    ),
    attempt(
        Procfs,
        "control_groups",
        Kernel,
        Landlock,
        "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/pids/cgroup.procs; do exec 3>>$f && echo reached; done",
    ),
    attempt(Terminal, "written", Nothing, Landlock, "echo x >\"$TERMINAL\" && echo reached"),
    attempt(
        Terminal,
        "read",
        Nothing,
        Landlock,
        "python3 -c 'import os; os.open(os.environ[\"TERMINAL\"], os.O_RDONLY | os.O_NOCTTY)' && echo reached",
    ),
    attempt(Terminal, "commanded", Kernel, Landlock, "stty -F \"$TERMINAL\" -echo && echo reached"),
    attempt(
        Terminal,
        "controlled",
        Nothing,
        Landlock,
        "setsid -w sh -c 'exec 3<\"$TERMINAL\"; echo x >/dev/tty && echo reached'",
    ),
    attempt(Persistence, "start_of_shells", Nothing, Landlock, "cd && echo x >>.bashrc && echo reached"),
    attempt(
        Persistence,
        "start_of_sessions",
        Nothing,
        Landlock,
        "cd && mkdir -p .config/autostart && echo x >.config/autostart/a.desktop && echo reached",
    ),
    attempt(
        Persistence,
        "keys_for_logins",
        Nothing,
        Landlock,
        "cd && mkdir -p .ssh && echo x >>.ssh/authorized_keys && echo reached",
    ),
    attempt(
        Persistence,
        "program_in_path",
        Nothing,
        Landlock,
        "cd && mkdir -p .local/bin && echo x >.local/bin/ls && echo reached",
    ),
    attempt(Persistence, "settings_of_git", Nothing, Landlock, "cd && echo x >>.gitconfig && echo reached"),
    attempt(
        Persistence,
        "place_of_the_temporary_folder",
        Nothing,
        Landlock,
        "cd \"$TMPDIR/..\" && mv cotter-* old && ln -s \"$OUTSIDE\" \"$TMPDIR\" && echo reached",
    ),
    attempt(
        Privilege,
        "programs_that_give_some",
        Nothing,
        Capability,
        "grep -q 'NoNewPrivs:.0' /proc/self/status && echo reached",
    ),
    attempt(
        Descriptor,
        "stolen",
        Kernel,
        Landlock,
        "python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.syscall(438, os.pidfd_open(int(os.environ[\"VICTIM\"])), 1, 0) < 0 and exit(os.strerror(ctypes.get_errno()))' && echo reached",
    ),
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
