//! Which capabilities tools keep: those by which root handles files as their owner would, no more.
//!
//! The others reach around Landlock: with CAP_PERFMON or CAP_SYS_ADMIN root reads the environment of any
//! process, with CAP_SYS_PTRACE its memory.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Gives up all other capabilities, and every way to get one back.
pub fn give_up() -> Result<(), Errno> {
    let held = capabilities(None)?;
    // Without this capability the bounding set stays as it is; as no program can gain a privilege any
    // more, nothing comes of what is left in it.
    if held.effective.contains(CapabilitySet::SETPCAP) {
        empty_bounding_set()?;
    }
    let kept = held.permitted & KEPT;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    clear_ambient_capability_set()?;
    set_no_new_privs(true)
}

fn empty_bounding_set() -> Result<(), Errno> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !KEPT.contains(capability) => remove_capability_from_bounding_set(capability)?,
            Ok(_) => {}
            // The kernel knows no more of them.
            Err(_) => break,
        }
    }
    Ok(())
}
