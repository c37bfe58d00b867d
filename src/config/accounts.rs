//! The home of the user who runs cotter, where no variable names it: a service's environment has none.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use rustix::process::getuid;

/// The list of accounts. Homes that are only known elsewhere, such as in a directory service, stay unknown.
const ACCOUNTS: &str = "/etc/passwd";
/// The most that is read of it.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The home that the list of accounts has for this user.
pub fn home() -> Option<PathBuf> {
    // Opening anything else might never return.
    if !fs::metadata(ACCOUNTS).ok()?.is_file() {
        return None;
    }
    let mut accounts = Vec::new();
    File::open(ACCOUNTS).ok()?.take(MOST_BYTES).read_to_end(&mut accounts).ok()?;
    home_in(&String::from_utf8_lossy(&accounts), getuid().as_raw())
}

/// The home of the first account with this number, as login has it.
fn home_in(accounts: &str, user: u32) -> Option<PathBuf> {
    let fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut own = fields.filter(|fields| fields.get(2).is_some_and(|number| number.parse() == Ok(user)));
    own.next()?.get(5).map(PathBuf::from).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_the_sixth_field_behind_the_users_number() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\n# 7\nbad:x:8\nrelative:x:9:9::home:\n\
                        me:x:1000:1000:Me,,,:/home/me:/bin/sh\nother:x:1000:1000::/home/other:/bin/sh\n";
        assert_eq!(home_in(accounts, 0), Some(PathBuf::from("/root")));
        assert_eq!(home_in(accounts, 1000), Some(PathBuf::from("/home/me")));
        for user in [7, 8, 9, 10] {
            assert_eq!(home_in(accounts, user), None, "{user}");
        }
    }
}
