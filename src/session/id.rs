//! Ids of sessions: UUIDs in their usual form.

/// Whether this is a UUID in small letters.
pub fn is_id(text: &str) -> bool {
    text.len() == 36 && begins_an_id(text)
}

/// Whether a UUID could begin so.
pub fn begins_an_id(text: &str) -> bool {
    let fits = |(index, byte): (usize, u8)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() <= 36 && text.bytes().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uuid;

    #[test]
    fn a_random_id_is_a_uuid_of_version_4_and_another_each_time() {
        let ids = [uuid::random(), uuid::random()];
        assert_ne!(ids[0], ids[1]);
        for id in ids {
            assert!(is_id(&id), "{id}");
            assert_eq!(&id[14..15], "4", "{id}");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
    }

    #[test]
    fn only_a_whole_uuid_is_an_id_and_only_its_beginning_begins_one() {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        assert!(is_id(id));
        for length in 0..36 {
            assert!(begins_an_id(&id[..length]) && !is_id(&id[..length]), "{length}");
        }
        for text in ["../550e8400", "550E8400", "550e8400e29b", "550e8400-", "fix the bug", "é"] {
            assert_eq!(begins_an_id(text), text == "550e8400-", "{text}");
        }
        assert!(!begins_an_id(&format!("{id}0")));
    }
}
