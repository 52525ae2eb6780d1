//! `arrayFilters`: which elements `$[identifier]` stands for.

use crate::document::{RawBsonRef, RawDocument, Value};
use crate::error::{Error, Result};
use crate::expression::Environment;
use crate::filter::{Filter, Place};
use crate::update::{ParseContext, show};

/// The filters of an update by identifier.
#[derive(Debug, Default)]
pub(crate) struct ArrayFilters {
    filters: Vec<ArrayFilter>,
}

#[derive(Debug)]
struct ArrayFilter {
    identifier: String,
    filter: Filter,
    used: bool,
}

impl ArrayFilters {
    /// Parses `arrayFilters`.
    ///
    /// # Errors
    /// `FailedToParse` (9) for a filter without or with several identifiers and for an identifier given twice, `BadValue` (2)
    /// for a malformed identifier, and what the filter itself refuses.
    pub(crate) fn parse(specs: &[&RawDocument], context: &mut ParseContext<'_>) -> Result<ArrayFilters> {
        let mut filters: Vec<ArrayFilter> = Vec::with_capacity(specs.len());
        for spec in specs {
            let filter = Filter::parse_for(Place::ArrayFilters, spec, context.parser, context.collator.clone())
                .map_err(|error| error.context("Error parsing array filter"))?;
            let identifier = identifier(spec)?;
            if filters.iter().any(|known| known.identifier == identifier) {
                return Err(Error::failed_to_parse(format!(
                    "Found multiple array filters with the same top-level field name {identifier}"
                )));
            }
            filters.push(ArrayFilter { identifier, filter, used: false });
        }
        Ok(ArrayFilters { filters })
    }

    /// Notes that a path uses an identifier.
    ///
    /// # Errors
    /// `BadValue` (2) when no filter has it.
    pub(crate) fn using(&mut self, identifier: &str, path: &str) -> Result<()> {
        if identifier.is_empty() {
            return Ok(());
        }
        match self.filters.iter_mut().find(|filter| filter.identifier == identifier) {
            Some(filter) => {
                filter.used = true;
                Ok(())
            }
            None => {
                Err(Error::bad_value(format!("No array filter found for identifier '{identifier}' in path '{path}'")))
            }
        }
    }

    /// Refuses filters that no path uses.
    pub(crate) fn check_all_used(&self, update: &RawDocument) -> Result<()> {
        match self.filters.iter().find(|filter| !filter.used) {
            Some(unused) => Err(Error::failed_to_parse(format!(
                "The array filter for identifier '{}' was not used in the update {}",
                unused.identifier,
                show(RawBsonRef::Document(update))
            ))),
            None => Ok(()),
        }
    }

    /// Whether an element is meant by `$[identifier]`.
    pub(crate) fn matches(&self, identifier: &str, element: &Value<'_>, environment: &Environment) -> Result<bool> {
        if identifier.is_empty() {
            return Ok(true);
        }
        let Some(filter) = self.filters.iter().find(|filter| filter.identifier == identifier) else {
            return Err(Error::internal("identifiers are checked while parsing"));
        };
        filter.filter.matches_value(element.or_null(), environment)
    }
}

/// The one identifier that a filter's fields begin with.
fn identifier(spec: &RawDocument) -> Result<String> {
    let mut found = None;
    collect(spec, &mut found)?;
    let Some(identifier) = found else {
        return Err(Error::failed_to_parse("Cannot use an expression without a top-level field name in arrayFilters"));
    };
    let mut bytes = identifier.bytes();
    let valid =
        bytes.next().is_some_and(|first| first.is_ascii_lowercase()) && bytes.all(|b| b.is_ascii_alphanumeric());
    if !valid {
        return Err(Error::bad_value(format!(
            "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning \
             with a lowercase letter, found '{identifier}'"
        )));
    }
    Ok(identifier)
}

fn collect(spec: &RawDocument, found: &mut Option<String>) -> Result<()> {
    for field in spec {
        let (name, value) = field?;
        let name = name.as_str();
        if name.starts_with('$') {
            if let RawBsonRef::Array(clauses) = value {
                for clause in clauses {
                    if let RawBsonRef::Document(clause) = clause? {
                        collect(clause, found)?;
                    }
                }
            }
            continue;
        }
        let first = name.split('.').next().unwrap_or(name);
        match found {
            Some(known) if known != first => {
                return Err(Error::failed_to_parse(format!(
                    "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{known}' and \
                     '{first}'"
                )));
            }
            Some(_) => {}
            None => *found = Some(first.to_owned()),
        }
    }
    Ok(())
}
