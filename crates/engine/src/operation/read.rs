//! Reading documents: what a query asks for, and the rows that answer it.

use crate::catalog::Collection;
use crate::database::Inner;
use crate::document::collation::Collator;
use crate::error::Result;
use crate::expression::{Environment, Parser};
use crate::filter::Filter;
use crate::stage::Rows;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

/// Which documents, in which order.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// What they match.
    pub filter: RawDocumentBuf,
    /// Their order.
    pub sort: Option<RawDocumentBuf>,
    /// How many to pass over.
    pub skip: u64,
    /// The most to give; zero for all.
    pub limit: u64,
    /// An index's name or key pattern, or `{$natural: 1}`.
    pub hint: Option<RawBson>,
    /// The least index key.
    pub min: Option<RawDocumentBuf>,
    /// The least index key beyond the range.
    pub max: Option<RawDocumentBuf>,
    /// How strings compare; the collection's way when missing.
    pub collation: Option<RawDocumentBuf>,
    /// Values for `$$name`.
    pub variables: Option<RawDocumentBuf>,
    /// Whether a sort may use the disk.
    pub allow_disk_use: bool,
}

/// A query after parsing.
pub(crate) struct Parsed {
    pub(crate) filter: Arc<Filter>,
    pub(crate) environment: Arc<Environment>,
    pub(crate) collator: Option<Arc<Collator>>,
    pub(crate) parser: Parser,
}

impl Inner {
    /// Parses a query's filter in its environment. `collection` is missing when it does not exist.
    pub(crate) fn parse_query(&self, query: &Query, collection: Option<&Collection>) -> Result<Parsed> {
        let default = collection.and_then(|collection| collection.settings.collation.as_ref());
        let collator = super::collator(query.collation.as_deref(), default)?;
        let mut environment = self.environment();
        environment.collator = collator.clone();
        let mut parser = Parser::new();
        super::bind_variables(query.variables.as_deref(), &mut parser, &mut environment)?;
        let filter = Filter::parse(&query.filter, &mut parser, collator.clone())?;
        Ok(Parsed { filter: Arc::new(filter), environment: Arc::new(environment), collator, parser })
    }
}

/// The value of `_id` when a filter asks for exactly one: then no plan is needed to find the only candidate.
pub(crate) fn exact_id(filter: &RawDocument) -> Option<RawBsonRef<'_>> {
    let mut found = None;
    for field in filter {
        let (name, value) = field.ok()?;
        if name.as_str() == "_id" {
            if found.is_some() {
                return None;
            }
            found = Some(value);
        }
    }
    match found? {
        RawBsonRef::Document(document) => {
            let mut fields = document.iter();
            match fields.next() {
                None => found,
                Some(Ok((name, value))) if name.as_str() == "$eq" && fields.next().is_none() => match value {
                    RawBsonRef::RegularExpression(_) | RawBsonRef::Array(_) | RawBsonRef::Undefined => None,
                    value => Some(value),
                },
                Some(Ok((name, _))) if !name.as_str().starts_with('$') => found,
                _ => None,
            }
        }
        RawBsonRef::RegularExpression(_) | RawBsonRef::Array(_) | RawBsonRef::Undefined => None,
        value => Some(value),
    }
}

/// Whether a query asks for one `_id` and nothing else.
pub fn is_by_id(query: &Query) -> bool {
    exact_id(&query.filter).is_some() && query.filter.iter().nth(1).is_none()
}

/// Whether two collations are the same.
pub(crate) fn same_collation(a: Option<&Arc<Collator>>, b: Option<&Arc<Collator>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || **a == **b,
        _ => false,
    }
}

/// Rows that are all there already.
pub(crate) fn no_rows() -> Rows {
    struct Nothing;
    impl crate::stage::RowSource for Nothing {
        fn next(&mut self) -> Result<Option<crate::document::Row>> {
            Ok(None)
        }
    }
    Box::new(Nothing)
}
