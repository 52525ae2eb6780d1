//! Going through a collection in the order of `_id`, a batch at a time, from any point: on any kind of store.
//!
//! MongoDB's `$gt` compares values of one type only, so a cursor goes through the types one after the other.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, Timestamp, doc, oid::ObjectId};

/// The filters that together give everything after `cursor` in the order of `_id`, each to be sorted by `_id`: when one has
/// less than a batch, the next one goes on. Everything without a cursor.
pub fn after(cursor: Option<&Bson>) -> Vec<Document> {
    let Some(cursor) = cursor else { return vec![Document::new()] };
    let mut filters = Vec::new();
    let place = place(cursor);
    if place.is_some_and(|place| place > 0) {
        filters.push(doc! { "_id": { "$gt": cursor.clone() } });
    }
    let first = place.map_or(0, |place| place + 1);
    filters.extend(STARTS.iter().skip(first).map(|start| doc! { "_id": { "$gte": start() } }));
    filters
}

/// The least value of each type that an `_id` can have, in MongoDB's order of types.
const STARTS: [fn() -> Bson; 9] = [
    || Bson::Null,
    || Bson::Double(f64::NEG_INFINITY),
    || Bson::String(String::new()),
    || Bson::Document(Document::new()),
    || Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: Vec::new() }),
    || Bson::ObjectId(ObjectId::from_bytes([0; 12])),
    || Bson::Boolean(false),
    || Bson::DateTime(DateTime::from_millis(i64::MIN)),
    || Bson::Timestamp(Timestamp { time: 0, increment: 0 }),
];

/// The place of a value's type in [`STARTS`].
fn place(value: &Bson) -> Option<usize> {
    Some(match value {
        Bson::Null => 0,
        Bson::Double(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Decimal128(_) => 1,
        Bson::String(_) | Bson::Symbol(_) => 2,
        Bson::Document(_) => 3,
        Bson::Binary(_) => 4,
        Bson::ObjectId(_) => 5,
        Bson::Boolean(_) => 6,
        Bson::DateTime(_) => 7,
        Bson::Timestamp(_) => 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_goes_on_with_the_later_types() {
        assert_eq!(after(None), vec![doc! {}]);
        let filters = after(Some(&Bson::Int32(5)));
        assert_eq!(filters[0], doc! { "_id": { "$gt": 5 } });
        assert_eq!(filters[1], doc! { "_id": { "$gte": "" } });
        assert_eq!(filters.len(), 8);
        assert_eq!(after(Some(&Bson::Null)).len(), 8);
    }
}
