//! Pages by key: a cursor says after which document the next page begins, so that no page is counted off.

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::shop::Shop;
use crate::time::Time;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use store::Find;

/// The most items of a page.
pub const MAX_PAGE: usize = 200;

/// The items of a page unless asked otherwise.
pub const DEFAULT_PAGE: usize = 20;

/// Which page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Paging {
    /// [`Page::next`] of the page before; none for the first.
    pub after: Option<String>,
    /// How many items, up to [`MAX_PAGE`]; [`DEFAULT_PAGE`] unless given.
    pub limit: Option<usize>,
}

/// A page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// The cursor of the next page; none at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> Page<T> {
    pub(crate) fn map<U>(self, change: impl FnMut(T) -> Result<U>) -> Result<Page<U>> {
        Ok(Page { items: self.items.into_iter().map(change).collect::<Result<_>>()?, next: self.next })
    }
}

impl Paging {
    /// The first page, of so many items.
    pub fn first(limit: usize) -> Paging {
        Paging { after: None, limit: Some(limit) }
    }

    /// The page after a cursor.
    pub fn after(cursor: &str, limit: usize) -> Paging {
        Paging { after: Some(cursor.to_owned()), limit: Some(limit) }
    }

    fn size(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)
    }

    /// Where the page begins: a number and an id.
    fn position(&self) -> Result<Option<(i64, &str)>> {
        let Some(cursor) = &self.after else { return Ok(None) };
        let parsed = cursor.split_once('.').and_then(|(number, id)| Some((number.parse().ok()?, id)));
        parsed.map(Some).ok_or_else(|| Error::invalid("after", format!("`{cursor}` is no cursor of this list")))
    }

    /// A page by a date, the latest first, among equals the largest id first.
    pub(crate) async fn newest_first(
        &self,
        shop: &Shop,
        collection: &str,
        filter: Document,
        projection: Option<Document>,
        date: &str,
    ) -> Result<Page<Document>> {
        let value = |number: i64| Bson::from(Time::from_millis(number));
        let number = |document: &Document| document.time(date).map_or(0, Time::millis);
        self.by(shop, collection, filter, projection, (date, -1), &value, &number).await
    }

    /// A page by a whole number, the smallest first, among equals the smallest id first.
    pub(crate) async fn smallest_first(
        &self,
        shop: &Shop,
        collection: &str,
        filter: Document,
        projection: Option<Document>,
        field: &str,
    ) -> Result<Page<Document>> {
        let number = |document: &Document| document.long(field);
        self.by(shop, collection, filter, projection, (field, 1), &Bson::Int64, &number).await
    }

    #[expect(clippy::too_many_arguments, reason = "the two ways above are the face of this")]
    async fn by(
        &self,
        shop: &Shop,
        collection: &str,
        mut filter: Document,
        projection: Option<Document>,
        (field, direction): (&str, i32),
        value: &(dyn Fn(i64) -> Bson + Sync),
        number: &(dyn Fn(&Document) -> i64 + Sync),
    ) -> Result<Page<Document>> {
        if let Some((position, id)) = self.position()? {
            let beyond = if direction < 0 { "$lt" } else { "$gt" };
            let ties = doc! { field: value(position), "_id": { beyond: id } };
            let rest = doc! { field: { beyond: value(position) } };
            let mut bound = Document::new();
            bound.insert(if direction < 0 { "$lte" } else { "$gte" }, value(position));
            filter.insert("$or", vec![ties, rest]);
            match filter.get_document_mut(field) {
                Ok(range) => range.extend(bound),
                Err(_) => {
                    filter.insert(field, bound);
                }
            }
        }
        let size = self.size();
        let sort = doc! { field: direction, "_id": direction };
        let options = Find { sort: Some(sort), projection, limit: size as i64 + 1, ..Find::default() };
        let mut items = shop.collection(collection).find(filter, options, None).await?;
        let more = items.len() > size;
        items.truncate(size);
        let next = items.last().filter(|_| more).map(|last| format!("{}.{}", number(last), last.text("_id")));
        Ok(Page { items, next })
    }
}
