//! Keyset cursors: where a list goes on, as the key of its last item.
//!
//! A cursor says nothing about what the caller may see: the list's own filter is applied on every page. It is bound to its
//! list (path and filter), so that it can't be used for another by accident.

use crate::shared::problem::{INVALID_CURSOR, INVALID_QUERY, Problem, Result};
use axum::Json;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How many items a page has when the caller does not say.
pub(crate) const DEFAULT_LIMIT: i64 = 20;
/// The most items of a page.
pub(crate) const MAX_LIMIT: i64 = 100;

/// The query parameters of every list.
#[derive(Deserialize, Debug, Default, Clone, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// How many items (default 20, at most 100).
    #[param(minimum = 1, maximum = 100)]
    pub(crate) limit: Option<i64>,
    /// Where to go on: `nextCursor` of the page before.
    pub(crate) cursor: Option<String>,
}

impl Paging {
    /// How many items.
    pub(crate) fn limit(&self) -> Result<i64> {
        match self.limit.unwrap_or(DEFAULT_LIMIT) {
            limit @ 1..=MAX_LIMIT => Ok(limit),
            other => {
                Err(Problem::new(&INVALID_QUERY, format!("'limit' must be between 1 and {MAX_LIMIT}, not {other}")))
            }
        }
    }

    /// The key after which the page begins.
    pub(crate) fn after<K: DeserializeOwned>(&self, uri: &Uri) -> Result<Option<K>> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let refused = || Problem::new(&INVALID_CURSOR, "the cursor is not one that this list gave; begin without one");
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refused())?;
        let (list, key): (u32, K) = serde_json::from_slice(&bytes).map_err(|_| refused())?;
        if list == list_of(uri) { Ok(Some(key)) } else { Err(refused()) }
    }
}

/// The pairs of a query that say which list it is.
fn filter_of(uri: &Uri) -> impl Iterator<Item = &str> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("cursor=") && !pair.starts_with("limit="))
}

/// Which list it is: its path and its filter.
fn list_of(uri: &Uri) -> u32 {
    let mut pairs: Vec<&str> = filter_of(uri).collect();
    pairs.sort_unstable();
    let digest = Sha256::digest(format!("{}?{}", uri.path(), pairs.join("&")));
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// A page of a list.
#[derive(Serialize, Debug, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    /// The items, in the list's order.
    pub(crate) items: Vec<T>,
    /// Where the next page begins; missing on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
    #[serde(skip)]
    link: Option<String>,
}

impl<T> Page<T> {
    /// A page of what was found, and the key after which the next begins.
    pub(crate) fn new<K: Serialize>(uri: &Uri, limit: i64, items: Vec<T>, next: Option<K>) -> Page<T> {
        let Some(key) = next else { return Page { items, next_cursor: None, link: None } };
        let text = serde_json::to_vec(&(list_of(uri), key)).expect("a key is plain data");
        let cursor = URL_SAFE_NO_PAD.encode(text);
        let mut pairs: Vec<String> = filter_of(uri).map(str::to_owned).collect();
        pairs.push(format!("limit={limit}"));
        pairs.push(format!("cursor={cursor}"));
        let link = format!("<{}?{}>; rel=\"next\"", uri.path(), pairs.join("&"));
        Page { items, next_cursor: Some(cursor), link: Some(link) }
    }

    /// A page of the first `limit` of what was found with one more than that, and the key of its last item.
    pub(crate) fn of<K: Serialize>(uri: &Uri, limit: i64, mut found: Vec<T>, key: impl Fn(&T) -> K) -> Page<T> {
        let wanted = usize::try_from(limit).expect("a limit is positive");
        let more = found.len() > wanted;
        found.truncate(wanted);
        let next = if more { found.last().map(key) } else { None };
        Page::new(uri, limit, found, next)
    }

    /// The same page with other items.
    pub(crate) fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        let items = self.items.into_iter().map(change).collect();
        Page { items, next_cursor: self.next_cursor, link: self.link }
    }
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        let link = self.link.as_deref().and_then(|link| HeaderValue::from_str(link).ok());
        let mut response = Json(self).into_response();
        if let Some(link) = link {
            response.headers_mut().insert(header::LINK, link);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(cursor: Option<String>) -> Paging {
        Paging { limit: None, cursor }
    }

    #[test]
    fn a_cursor_goes_on_where_the_page_ended() {
        let uri: Uri = "/v1/orders?status=paid&limit=2".parse().unwrap();
        let page = Page::of(&uri, 2, vec![5, 4, 3], |item| *item);
        assert_eq!(page.items, [5, 4]);
        let next: Uri = "/v1/orders?limit=7&status=paid".parse().unwrap();
        assert_eq!(paging(page.next_cursor.clone()).after::<i32>(&next).unwrap(), Some(4));
        let link = page.link.unwrap();
        assert!(link.starts_with("</v1/orders?status=paid&limit=2&cursor="), "{link}");
        assert!(link.ends_with(">; rel=\"next\""), "{link}");
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let uri: Uri = "/v1/orders?status=paid".parse().unwrap();
        let page = Page::new(&uri, 2, vec![1], Some(1));
        for other in ["/v1/orders?status=created", "/v1/reviews?status=paid"] {
            let refused = paging(page.next_cursor.clone()).after::<i32>(&other.parse().unwrap()).unwrap_err();
            assert_eq!(refused.kind, &INVALID_CURSOR);
        }
        assert_eq!(paging(Some("%%%".into())).after::<i32>(&uri).unwrap_err().kind, &INVALID_CURSOR);
        assert_eq!(paging(page.next_cursor).after::<String>(&uri).unwrap_err().kind, &INVALID_CURSOR);
    }

    #[test]
    fn the_last_page_has_no_cursor() {
        let uri: Uri = "/v1/orders".parse().unwrap();
        let page = Page::of(&uri, 2, vec![5, 4], |item| *item);
        assert!(page.next_cursor.is_none() && page.link.is_none());
        assert_eq!(Paging { limit: Some(0), cursor: None }.limit().unwrap_err().kind, &INVALID_QUERY);
        assert_eq!(Paging { limit: Some(101), cursor: None }.limit().unwrap_err().kind, &INVALID_QUERY);
    }
}
