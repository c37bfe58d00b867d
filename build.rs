//! What the linker is asked for. Packed relative relocations where the C library that the program is built against
//! can read them (glibc from 2.36): without, 13,600 of them take a third of a megabyte of the file. The part of GCC's
//! library that is needed, where it is there. And in a static program, what the standard library starts programs with,
//! and that no module is loaded.

// Cargo reads what is printed.
#![allow(clippy::print_stdout)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    let native = std::env::var("HOST").is_ok_and(|host| host == target);
    if native && target.ends_with("-linux-gnu") && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if native
        && !is_static()
        && target.ends_with("-linux-gnu")
        && let Some(folder) = folder_of("libgcc_eh.a")
    {
        println!("cargo::rustc-link-search=native={folder}");
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
    if is_static() && target.ends_with("-linux-gnu") {
        for name in STARTS_PROGRAMS {
            println!("cargo::rustc-link-arg-bins=-Wl,--undefined={name}");
        }
        println!("cargo::rustc-link-arg-bins=-Wl,--defsym={LOADS_NOTHING}");
    }
}

/// The standard library only uses these if they happen to be linked. Without, it starts programs by fork and execvp:
/// that is slower, and glibc's execvp hands to a shell whatever is no program.
const STARTS_PROGRAMS: [&str; 2] = ["gnu_get_libc_version", "posix_spawn_file_actions_addchdir_np"];

/// Where /etc/nsswitch.conf has host names looked up by more than files and DNS, glibc loads a module of the system that
/// the program happens to run on, and dies of one that belongs to another glibc. What takes the loader's place takes a
/// name too, and answers that it knows none: there is no module then, and the next service is asked.
const LOADS_NOTHING: &str = "__libc_dlopen_mode=getenv";

fn is_static() -> bool {
    std::env::var("CARGO_CFG_TARGET_FEATURE")
        .is_ok_and(|features| features.split(',').any(|feature| feature == "crt-static"))
}

/// Where the C compiler has a library. Of GCC's, the standard library needs what walks the stack for the backtrace
/// of a panic. These 24 kB are linked in: to load libgcc_s for them takes 0.1 ms of each start, and a small image may
/// not have it.
fn folder_of(library: &str) -> Option<String> {
    let answer = Command::new("cc").arg(format!("-print-file-name={library}")).output().ok()?;
    let path = String::from_utf8(answer.stdout).ok()?;
    // What it does not have it answers with the name alone.
    let (folder, _) = path.trim().rsplit_once('/')?;
    Some(folder.to_owned())
}

/// The version of this machine's C library, if that is glibc.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
