//! Reading fields of stored documents; a missing or mistyped one reads as the type's zero.

use crate::id::{Id, Time};
use bson::oid::ObjectId;
use bson::{Bson, DateTime, Document};

pub(crate) fn id(document: &Document, field: &str) -> Id {
    optional_id(document, field).unwrap_or(Id(ObjectId::from_bytes([0; 12])))
}

pub(crate) fn optional_id(document: &Document, field: &str) -> Option<Id> {
    document.get_object_id(field).ok().map(Id)
}

pub(crate) fn text(document: &Document, field: &str) -> String {
    document.get_str(field).unwrap_or_default().to_owned()
}

pub(crate) fn number(document: &Document, field: &str) -> i64 {
    match document.get(field) {
        Some(Bson::Int32(number)) => i64::from(*number),
        Some(Bson::Int64(number)) => *number,
        _ => 0,
    }
}

pub(crate) fn time(document: &Document, field: &str) -> Time {
    optional_time(document, field).unwrap_or(Time(DateTime::from_millis(0)))
}

pub(crate) fn optional_time(document: &Document, field: &str) -> Option<Time> {
    document.get_datetime(field).ok().map(|time| Time(*time))
}

pub(crate) fn texts(document: &Document, field: &str) -> Vec<String> {
    let array = document.get_array(field).map(Vec::as_slice).unwrap_or_default();
    array.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

pub(crate) fn documents<'d>(document: &'d Document, field: &str) -> impl Iterator<Item = &'d Document> + use<'d> {
    let array = document.get_array(field).map(Vec::as_slice).unwrap_or_default();
    array.iter().filter_map(Bson::as_document)
}
