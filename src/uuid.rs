//! Random names for runs and for what they print. None ever enters a request.

/// A random UUID, version 4.
pub fn random() -> String {
    let mut bytes = [0; 16];
    // Without randomness the id is not unique, and a second run keeps no session: there is a file already.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    let number = u128::from_be_bytes(bytes) & !(0xF << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62);
    let digits = format!("{number:032x}");
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}
