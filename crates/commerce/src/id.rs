//! Identifiers: fresh ones, those derived from an idempotency key, and order numbers.

use crate::time::Time;
use bson::oid::ObjectId;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

/// The most bytes of an id or key that comes from outside.
pub const MAX_ID_BYTES: usize = 128;

/// Letters and digits that are not mistaken for one another.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// An id that nobody else has; later ones are larger, roughly.
pub(crate) fn fresh() -> String {
    ObjectId::new().to_hex()
}

/// The id that belongs to a key: the same key gives the same id, so that what is made under it is made once.
pub(crate) fn derived(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..16])
}

/// A number to print on an order: the day, and 50 random bits. A unique index holds it to be one order's.
pub(crate) fn order_number(now: Time) -> String {
    let day = jiff::Timestamp::from_millisecond(now.millis()).unwrap_or_default().to_zoned_datetime(TimeZone::UTC);
    let mut random =
        u64::from_be_bytes(bson::Uuid::new().bytes()[8..].try_into().expect("sixteen bytes")) & ((1 << 50) - 1);
    let mut text = [b'0'; 10];
    for place in text.iter_mut().rev() {
        *place = ALPHABET[(random % 32) as usize];
        random /= 32;
    }
    format!("{}{}", day.strftime("%Y%m%d"), std::str::from_utf8(&text).expect("the alphabet is ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(derived(&["ab", "c"]), derived(&["a", "bc"]));
        assert_eq!(derived(&["a", "b"]), derived(&["a", "b"]));
    }

    #[test]
    fn a_number_says_its_day() {
        let number = order_number(Time::from_millis(1_700_000_000_000));
        assert!(number.starts_with("20231114") && number.len() == 18, "{number}");
    }
}
