//! Which system calls tools may not make, by seccomp: those that reach around Landlock and the namespaces.
//!
//! A filter sees numbers, never what a pointer points to. So a call is refused as a whole where its
//! arguments are out of sight, with "no such call" where programs know another way. What nobody can do without a
//! capability that tools lack (swap, clocks, reboot) is not listed.

use std::collections::BTreeMap;
use std::ffi::c_long;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::filesystem::Landlock;
use super::namespaces::Namespaces;
use super::policy::Network;

/// What else contains the tools, and so need not be refused here.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere {
    /// Landlock judges the cutting of files.
    pub truncation: bool,
    /// Landlock judges the paths of UNIX sockets.
    pub unix_sockets: bool,
    /// Tools have System V objects of their own.
    pub ipc: bool,
    /// Tools have a network of their own, or may use the machine's.
    pub network: bool,
}

impl Elsewhere {
    /// What this kernel, these namespaces and this policy take care of.
    pub fn new(landlock: Landlock, namespaces: Namespaces, network: Network) -> Elsewhere {
        Elsewhere {
            truncation: landlock.judges_truncation(),
            unix_sockets: landlock.judges_unix_sockets(),
            ipc: namespaces != Namespaces::Shared,
            network: network == Network::Shared || namespaces == Namespaces::NetworkAndIpc,
        }
    }
}

/// From now on this process and all that it starts are refused these calls.
///
/// Errors: why that cannot be enforced.
pub fn refuse(elsewhere: Elsewhere) -> Result<(), String> {
    install(&programs(elsewhere)?)
}

/// The same for the calls by which a process disturbs another one. The worker, which ends commands, cannot
/// do without them; what it starts must.
pub fn refuse_signals() -> Result<(), String> {
    install(&[program(signals(), libc::EPERM)?])
}

/// Whether the kernel has filters at all.
pub fn filters_are_offered() -> bool {
    rustix::thread::secure_computing_mode().is_ok()
}

fn install(programs: &[BpfProgram]) -> Result<(), String> {
    programs.iter().try_for_each(|program| {
        apply_filter(program).map_err(|error| format!("the kernel takes no filter of system calls: {error}"))
    })
}

fn programs(elsewhere: Elsewhere) -> Result<Vec<BpfProgram>, String> {
    let mut programs =
        vec![program(refused(elsewhere), libc::EPERM)?, program(absent(elsewhere), libc::ENOSYS)?];
    programs.extend(other_numbers());
    Ok(programs)
}

/// Calls by number, each with the conditions of which one must hold; with none it is always refused.
type Calls = BTreeMap<c_long, Vec<SeccompRule>>;

fn program(calls: Calls, error: i32) -> Result<BpfProgram, String> {
    let unusable = |error| format!("no filter of system calls can be made: {error}");
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    let machine = TargetArch::try_from(std::env::consts::ARCH).map_err(unusable)?;
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refuse, machine).map_err(unusable)?;
    BpfProgram::try_from(filter).map_err(unusable)
}

/// Refused whatever the arguments.
const ALWAYS: &[c_long] = &[
    // Programs inside the kernel, its counters and its faults.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    // Keys of the session in which cotter was started.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Another view of the file system, or the way into somebody's namespace.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
];

/// System V objects and message queues: memory that other programs of the user write.
const SHARED_OBJECTS: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

fn refused(elsewhere: Elsewhere) -> Calls {
    /// These put words into a terminal's input, as if typed there.
    const TYPING: [i32; 2] = [0x5412, 0x541C];
    let mut calls: Calls = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
    if !elsewhere.ipc {
        calls.extend(SHARED_OBJECTS.iter().map(|call| (*call, Vec::new())));
    }
    let typing = TYPING.map(|command| all(vec![equals(1, command)]));
    calls.insert(libc::SYS_ioctl, typing.into_iter().chain(subvolumes()).collect());
    // A new user namespace gives back every capability inside it, and with it what of the kernel only root
    // reaches. A browser's own sandbox needs it and must be switched off, as in most containers.
    let new_user = all(vec![equals_under(0, libc::CLONE_NEWUSER, libc::CLONE_NEWUSER)]);
    calls.insert(libc::SYS_unshare, vec![new_user.clone()]);
    calls.insert(libc::SYS_clone, vec![new_user]);
    // The limits of another process: a processor time of 0 ends it.
    calls.insert(libc::SYS_prlimit64, vec![all(vec![differs(0, 0), is_given(2)])]);
    calls.extend(sockets(elsewhere));
    if !elsewhere.truncation {
        calls.extend(truncation());
    }
    calls
}

/// Some file systems make, copy and remove whole folders by a command to the folder above, which may be open
/// for reading alone. Landlock judges the calls that do so by path, not these commands.
fn subvolumes() -> impl Iterator<Item = SeccompRule> {
    /// The parts of a command that name the file system and what is done; the size of its argument is above.
    const COMMAND: i32 = 0xFFFF;
    const OF_BTRFS: [i32; 6] = [0x9401, 0x940E, 0x940F, 0x9417, 0x9418, 0x943F];
    const OF_BCACHEFS: [i32; 2] = [0xBC10, 0xBC11];
    /// It makes a file that shares its data with another one.
    const OF_OCFS2: [i32; 1] = [0x6F04];
    let commands = OF_BTRFS.into_iter().chain(OF_BCACHEFS).chain(OF_OCFS2);
    commands.map(|command| all(vec![equals_under(1, COMMAND, command)]))
}

/// Sockets of other families (VSOCK, packet, Bluetooth) belong to no network namespace.
fn sockets(elsewhere: Elsewhere) -> Calls {
    const TYPE: i32 = 0xF;
    let mut allowed = Vec::new();
    if elsewhere.network {
        // The C library asks netlink which addresses there are before it resolves a name.
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if elsewhere.unix_sockets {
        allowed.push(libc::AF_UNIX);
    }
    let others: Vec<_> = allowed.into_iter().map(|family| differs(0, family)).collect();
    let socket = if others.is_empty() { Vec::new() } else { vec![all(others)] };
    let mut pair = vec![all(vec![differs(0, libc::AF_UNIX)])];
    if !elsewhere.unix_sockets {
        // One of a pair for datagrams can still send one to any path. The kernel takes RAW for the same.
        pair.extend([libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| all(vec![equals_under(1, TYPE, kind)])));
    }
    Calls::from([(libc::SYS_socket, socket), (libc::SYS_socketpair, pair)])
}

/// The ways to cut a file that is not opened for writing.
fn truncation() -> Calls {
    const MASK: i32 = libc::O_ACCMODE | libc::O_TRUNC;
    // Opened for reading alone, and for neither reading nor writing.
    let modes = [libc::O_RDONLY, libc::O_ACCMODE];
    let rules = |flags| modes.map(|mode| all(vec![equals_under(flags, MASK, mode | libc::O_TRUNC)])).to_vec();
    Calls::from([
        (libc::SYS_truncate, Vec::new()),
        (libc::SYS_openat, rules(2)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, rules(1)),
    ])
}

/// Calls whose arguments are out of sight, and for which programs have another way.
fn absent(elsewhere: Elsewhere) -> Calls {
    // io_uring makes sockets past a rule for `socket`; clone3 makes user namespaces.
    let mut calls = vec![libc::SYS_io_uring_setup, libc::SYS_clone3];
    if !elsewhere.truncation {
        calls.push(libc::SYS_openat2);
    }
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// Signals to others than the own process group, and what comes to the same. One that ends nothing, by which
/// a process is looked for or a runtime wakes its threads, may pass.
fn signals() -> Calls {
    const HARMLESS: [i32; 4] = [0, libc::SIGURG, libc::SIGCHLD, libc::SIGWINCH];
    /// A file can be told to send any signal to any process.
    const BY_FILE: [i32; 3] = [libc::F_SETOWN, 10, 15];
    let harmful = |argument| HARMLESS.map(|signal| differs(argument, signal)).to_vec();
    let mut beyond_group = harmful(1);
    beyond_group.push(differs(0, 0));
    Calls::from([
        (libc::SYS_kill, vec![all(beyond_group)]),
        (libc::SYS_tkill, vec![all(harmful(1))]),
        (libc::SYS_tgkill, vec![all(harmful(2))]),
        (libc::SYS_rt_sigqueueinfo, vec![all(harmful(1))]),
        (libc::SYS_rt_tgsigqueueinfo, vec![all(harmful(2))]),
        (libc::SYS_pidfd_send_signal, vec![all(harmful(1))]),
        (libc::SYS_fcntl, BY_FILE.map(|command| all(vec![equals(1, command)])).to_vec()),
    ])
}

/// Numbers of a second set of calls (x32), which no rule above would know again: the set is absent.
#[cfg(target_arch = "x86_64")]
fn other_numbers() -> Option<BpfProgram> {
    use seccompiler::sock_filter;
    const LOAD_WORD: u16 = 0x20;
    const IF_GREATER: u16 = 0x25;
    const IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    /// The bit in the number of each of these calls.
    const BIT: u32 = 0x4000_0000;
    /// Calls that have a number of their own there; old kernels take it without the bit.
    const OWN: (u32, u32) = (512, 547);
    let line = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let absent = u32::from(SeccompAction::Errno(libc::ENOSYS.unsigned_abs()));
    Some(vec![
        line(LOAD_WORD, 0, 0, 0),
        line(IF_AT_LEAST, BIT, 3, 0),
        line(IF_AT_LEAST, OWN.0, 0, 1),
        line(IF_GREATER, OWN.1, 0, 1),
        line(RETURN, SeccompAction::Allow.into(), 0, 0),
        line(RETURN, absent, 0, 0),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn other_numbers() -> Option<BpfProgram> {
    None
}

fn all(conditions: Vec<SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions).expect("each rule has a condition")
}

fn equals(argument: u8, value: i32) -> SeccompCondition {
    condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: i32) -> SeccompCondition {
    condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn equals_under(argument: u8, mask: i32, value: i32) -> SeccompCondition {
    let mask = SeccompCmpOp::MaskedEq(mask.unsigned_abs().into());
    condition(argument, SeccompCmpArgLen::Dword, mask, value)
}

/// A pointer that is not null.
fn is_given(argument: u8) -> SeccompCondition {
    condition(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
}

/// Of a number the kernel looks at the lower half alone (`Dword`): a program may put anything into the other.
fn condition(argument: u8, length: SeccompCmpArgLen, compared: SeccompCmpOp, value: i32) -> SeccompCondition {
    SeccompCondition::new(argument, length, compared, value.unsigned_abs().into())
        .expect("a call has six arguments")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Elsewhere = Elsewhere { truncation: true, unix_sockets: true, ipc: true, network: true };
    const NOTHING: Elsewhere =
        Elsewhere { truncation: false, unix_sockets: false, ipc: false, network: false };
    /// The newest kernel there is at the time of writing, and a namespace.
    const USUAL: Elsewhere = Elsewhere { unix_sockets: false, ..ALL };

    /// What the kernel makes of a program for a call: nothing, or an error number.
    fn run(program: &BpfProgram, number: c_long, arguments: &[u64]) -> u32 {
        let machine: u32 = if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 };
        let mut words = vec![number as u32, machine, 0, 0];
        for index in 0..6 {
            let argument = arguments.get(index).copied().unwrap_or_default();
            words.extend([argument as u32, (argument >> 32) as u32]);
        }
        let (mut at, mut value) = (0, 0);
        loop {
            let line = &program[at];
            let jump = |holds: bool| usize::from(if holds { line.jt } else { line.jf });
            at += 1 + match line.code {
                0x20 => {
                    value = words[line.k as usize / 4];
                    0
                }
                0x54 => {
                    value &= line.k;
                    0
                }
                0x05 => line.k as usize,
                0x15 => jump(value == line.k),
                0x25 => jump(value > line.k),
                0x35 => jump(value >= line.k),
                0x06 => return line.k,
                code => panic!("{code:#x} is not known here"),
            };
        }
    }

    /// The error with which a call ends, 0 for none. The last program that has one decides.
    fn error_of(programs: &[BpfProgram], number: c_long, arguments: &[u64]) -> i32 {
        const RETURN_ERROR: u32 = 0x0005_0000;
        let verdicts = programs.iter().map(|program| run(program, number, arguments));
        let mut errors = verdicts.filter(|verdict| verdict & 0xFFFF_0000 == RETURN_ERROR);
        errors.next_back().map_or(0, |verdict| (verdict & 0xFFFF) as i32)
    }

    #[track_caller]
    fn check(elsewhere: Elsewhere, cases: &[(&str, c_long, &[u64], i32)]) {
        let programs = programs(elsewhere).unwrap();
        for (what, number, arguments, error) in cases {
            assert_eq!(error_of(&programs, *number, arguments), *error, "{what}");
        }
    }

    const UNIX: u64 = 1;
    const INET: u64 = 2;
    const INET6: u64 = 10;
    const NETLINK: u64 = 16;
    const VSOCK: u64 = 40;
    /// What the kernel does not look at.
    const ABOVE: u64 = 0xDEAD_0000_0000;

    #[test]
    fn sockets_are_those_that_something_else_contains() {
        check(
            USUAL,
            &[
                ("inet", libc::SYS_socket, &[INET, 1], 0),
                ("inet6", libc::SYS_socket, &[INET6, 1], 0),
                ("netlink", libc::SYS_socket, &[NETLINK, 3], 0),
                ("unix", libc::SYS_socket, &[UNIX, 1], libc::EPERM),
                ("vsock", libc::SYS_socket, &[VSOCK, 1], libc::EPERM),
                ("packet", libc::SYS_socket, &[17, 3], libc::EPERM),
                ("unix, with a number above", libc::SYS_socket, &[UNIX | ABOVE, 1], libc::EPERM),
                ("pair", libc::SYS_socketpair, &[UNIX, 1 | 0o2_000_000], 0),
                ("sequential pair", libc::SYS_socketpair, &[UNIX, 5], 0),
                ("datagram pair", libc::SYS_socketpair, &[UNIX, 2 | 0o2_000_000], libc::EPERM),
                ("raw pair", libc::SYS_socketpair, &[UNIX, 3], libc::EPERM),
                ("tipc pair", libc::SYS_socketpair, &[30, 1], libc::EPERM),
            ],
        );
        check(
            NOTHING,
            &[
                ("inet without a namespace", libc::SYS_socket, &[INET, 1], libc::EPERM),
                ("netlink without a namespace", libc::SYS_socket, &[NETLINK, 3], libc::EPERM),
                ("pair without a namespace", libc::SYS_socketpair, &[UNIX, 1], 0),
            ],
        );
        check(
            Elsewhere { network: false, ..ALL },
            &[
                ("unix that Landlock judges", libc::SYS_socket, &[UNIX, 1], 0),
                ("inet beside it", libc::SYS_socket, &[INET, 1], libc::EPERM),
                ("datagram pair that it judges", libc::SYS_socketpair, &[UNIX, 2], 0),
            ],
        );
    }

    #[test]
    fn ways_around_are_closed_on_every_kernel() {
        for elsewhere in [ALL, USUAL, NOTHING] {
            let always = ALWAYS.iter().map(|call| ("always", *call, &[][..], libc::EPERM));
            check(elsewhere, &always.collect::<Vec<_>>());
            check(
                elsewhere,
                &[
                    ("io_uring", libc::SYS_io_uring_setup, &[8], libc::ENOSYS),
                    ("clone3", libc::SYS_clone3, &[], libc::ENOSYS),
                    ("typing", libc::SYS_ioctl, &[0, 0x5412], libc::EPERM),
                    ("typing, with a number above", libc::SYS_ioctl, &[0, 0x5412 | ABOVE], libc::EPERM),
                    ("typing on a console", libc::SYS_ioctl, &[0, 0x541C], libc::EPERM),
                    ("another ioctl", libc::SYS_ioctl, &[0, 0x5413], 0),
                    ("subvolume of btrfs", libc::SYS_ioctl, &[3, 0x5000_940E], libc::EPERM),
                    ("snapshot of btrfs", libc::SYS_ioctl, &[3, 0x5000_9417], libc::EPERM),
                    ("subvolume removed", libc::SYS_ioctl, &[3, 0x5000_940F], libc::EPERM),
                    ("subvolume of bcachefs", libc::SYS_ioctl, &[3, 0x4020_BC10], libc::EPERM),
                    ("copy that shares data", libc::SYS_ioctl, &[3, 0x4004_9409], 0),
                    ("user namespace", libc::SYS_unshare, &[0x1000_0000], libc::EPERM),
                    ("it among others", libc::SYS_unshare, &[0x7000_0000], libc::EPERM),
                    ("no namespace", libc::SYS_unshare, &[0x400], 0),
                    ("child in one", libc::SYS_clone, &[0x1000_0011], libc::EPERM),
                    ("child", libc::SYS_clone, &[0x11], 0),
                    ("own limit", libc::SYS_prlimit64, &[0, 0, 4096], 0),
                    ("limit read", libc::SYS_prlimit64, &[7, 0, 0, 4096], 0),
                    ("limit of another", libc::SYS_prlimit64, &[7, 0, 4096], libc::EPERM),
                    ("limit at a high address", libc::SYS_prlimit64, &[7, 0, 1 << 32], libc::EPERM),
                    ("write", libc::SYS_write, &[1, 4096, 5], 0),
                    ("execute", libc::SYS_execve, &[], 0),
                ],
            );
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_by_its_second_number_is_absent() {
        let second = |number: c_long| number | 0x4000_0000;
        check(
            USUAL,
            &[
                ("socket", second(libc::SYS_socket), &[UNIX, 1], libc::ENOSYS),
                ("io_uring", second(libc::SYS_io_uring_setup), &[], libc::ENOSYS),
                ("bpf", second(libc::SYS_bpf), &[], libc::ENOSYS),
                ("ioctl", second(514), &[0, 0x5412], libc::ENOSYS),
                ("ioctl without the bit", 514, &[0, 0x5412], libc::ENOSYS),
                ("the last of them", 547, &[], libc::ENOSYS),
                ("beside them", 511, &[], 0),
                ("beside them", 548, &[], 0),
            ],
        );
    }

    #[test]
    fn what_an_old_kernel_does_not_judge_is_refused() {
        const CUT: u64 = 0o1000;
        let opening = |flags: u64, error| ("open", libc::SYS_openat, [0, 4096, flags], error);
        for (what, number, arguments, error) in [
            opening(CUT, libc::EPERM),
            opening(CUT | 3, libc::EPERM),
            // These need the right to write, which Landlock knows.
            opening(CUT | 1, 0),
            opening(CUT | 2, 0),
            opening(0, 0),
            ("truncate", libc::SYS_truncate, [0, 0, 0], libc::EPERM),
            ("openat2", libc::SYS_openat2, [0, 0, 0], libc::ENOSYS),
            ("shared memory", libc::SYS_shmget, [0, 0, 0], libc::EPERM),
            ("a queue", libc::SYS_mq_open, [0, 0, 0], libc::EPERM),
        ] {
            check(NOTHING, &[(what, number, &arguments, error)]);
            check(ALL, &[(what, number, &arguments, 0)]);
        }
    }

    #[test]
    fn where_signals_are_refused_one_reaches_the_own_group_or_does_no_harm() {
        let program = [program(signals(), libc::EPERM).unwrap()];
        for (what, number, arguments, error) in [
            ("another", libc::SYS_kill, [7, 15, 0], libc::EPERM),
            ("everyone", libc::SYS_kill, [u64::MAX, 9, 0], libc::EPERM),
            ("another group", libc::SYS_kill, [-7_i64 as u64, 9, 0], libc::EPERM),
            ("the own group", libc::SYS_kill, [0, 15, 0], 0),
            ("is it there", libc::SYS_kill, [7, 0, 0], 0),
            ("a thread", libc::SYS_tgkill, [7, 7, 9], libc::EPERM),
            ("a thread that wakes", libc::SYS_tgkill, [7, 7, 23], 0),
            ("by descriptor", libc::SYS_pidfd_send_signal, [3, 9, 0], libc::EPERM),
            ("with a value", libc::SYS_rt_sigqueueinfo, [7, 9, 0], libc::EPERM),
            ("owner of a file", libc::SYS_fcntl, [3, 8, 7], libc::EPERM),
            ("signal of a file", libc::SYS_fcntl, [3, 10, 9], libc::EPERM),
            ("a copy of a file", libc::SYS_fcntl, [3, 0, 0], 0),
        ] {
            assert_eq!(error_of(&program, number, &arguments), error, "{what}");
        }
    }
}
