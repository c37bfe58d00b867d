//! What the linker is asked for. A program that lies where it was linked to. The part of GCC's library that is needed,
//! where it is there. And in a static program, what the standard library starts programs with, and that no module is
//! loaded.

// Cargo reads what is printed.
#![allow(clippy::print_stdout)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    let native = std::env::var("HOST").is_ok_and(|host| host == target);
    if native && !is_static() && target.ends_with("-linux-gnu") {
        if !wants_position_independence() {
            println!("cargo::rustc-link-arg-bins=-no-pie");
        }
        if let Some(folder) = folder_of("libgcc_eh.a") {
            println!("cargo::rustc-link-search=native={folder}");
            println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
        }
    }
    if is_static() && target.ends_with("-linux-gnu") {
        for name in STARTS_PROGRAMS {
            println!("cargo::rustc-link-arg-bins=-Wl,--undefined={name}");
        }
        println!("cargo::rustc-link-arg-bins=-Wl,--defsym={LOADS_NOTHING}");
    }
}

/// A program that can lie anywhere has 13,600 addresses to set at its start, in 70 pages that no other run shares then:
/// 0.3 ms, a fifth of a short run, and more memory than all else of it takes. Whoever would rather have its own
/// addresses random too asks for it by `RUSTFLAGS="-C relocation-model=pie"`; those of the stack, the heap and the
/// libraries always are.
fn wants_position_independence() -> bool {
    // Rust takes an underscore too.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('_', "-");
    ["pie", "pic"].iter().any(|model| flags.contains(&format!("relocation-model={model}")))
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
