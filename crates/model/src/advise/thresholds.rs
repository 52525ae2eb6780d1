//! The one table of limits, rules and costs, with what an override may change in it.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The table as shipped.
pub const DEFAULT: &str = include_str!("thresholds.toml");

/// Limits, rules and costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// What is too much.
    pub limits: Limits,
    /// What decides between designs.
    pub rules: Rules,
    /// What things cost.
    pub costs: Costs,
}

/// What is too much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// Elements of an array.
    pub array_elements: Limit,
    /// Bytes of a document.
    pub document_bytes: Limit,
    /// Indexes of a collection.
    pub indexes: Limit,
}

/// Levels of one limit, the lowest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Worth a look.
    pub notice: u64,
    /// Worth a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<u64>,
    /// Too much.
    pub limit: u64,
}

impl Limit {
    /// The measured value beside every level, for a person.
    pub fn beside(&self, measured: u64) -> String {
        let levels: Vec<String> = std::iter::once(self.notice)
            .chain(self.warning)
            .chain([self.limit])
            .map(|level| level.to_string())
            .collect();
        let verdict = match measured {
            _ if measured > self.limit => "too much",
            _ if self.warning.is_some_and(|warning| measured > warning) => "much",
            _ if measured > self.notice => "noticeable",
            _ => "fine",
        };
        format!("{measured} (limits {}): {verdict}", levels.join(" / "))
    }
}

/// What decides between designs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rules {
    /// A list of at most so many children may be embedded whole.
    pub embed_whole: u64,
    /// The largest parent may have so many times the children of the usual one.
    pub largest_over_typical: u64,
    /// A document has to fit for so many years.
    pub forecast_years: u64,
    /// Children embedded beside a collection of their own.
    pub recent: u64,
    /// Children in one chunk.
    pub bucket_items: u64,
    /// Bytes in one chunk.
    pub bucket_bytes: u64,
    /// Copies that a transaction changes at most.
    pub txn_copies: u64,
}

/// What things cost, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Costs {
    /// Finding a place in an index.
    pub index_seek: f64,
    /// Reading the next entry of an index.
    pub index_entry: f64,
    /// Fetching a document.
    pub document_fetch: f64,
    /// Reading 1,000 bytes of a document.
    pub kilobyte_read: f64,
    /// A request's way to the server and back.
    pub request: f64,
    /// Writing a document.
    pub document_write: f64,
    /// Writing 1,000 bytes of a document.
    pub kilobyte_written: f64,
    /// Writing an entry of an index.
    pub index_entry_written: f64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        toml::from_str(DEFAULT).expect("the shipped table is valid")
    }
}

impl Thresholds {
    /// The shipped table with what `text` changes in it.
    ///
    /// # Errors
    /// [`Error::BadTable`] if the text is not TOML, names something unknown, or gives a value of the wrong type.
    pub fn with(text: &str) -> Result<Thresholds> {
        let bad = |error: &dyn std::fmt::Display| Error::BadTable(format!("thresholds: {error}"));
        let mut table: toml::Table = toml::from_str(DEFAULT).expect("the shipped table is valid");
        let changes: toml::Table = toml::from_str(text).map_err(|error| bad(&error))?;
        merge(&mut table, changes);
        table.try_into().map_err(|error| bad(&error))
    }

    /// The table as TOML, as `--calibrate` writes it.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("the table has only numbers")
    }
}

fn merge(table: &mut toml::Table, changes: toml::Table) {
    for (key, value) in changes {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(changes)) => merge(inner, changes),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_changes_what_it_names_and_nothing_else() {
        let table = Thresholds::with("[limits]\nindexes = { notice = 5 }\n[costs]\nrequest = 100.0").expect("valid");
        let mut expected = Thresholds::default();
        expected.limits.indexes.notice = 5;
        expected.costs.request = 100.0;
        assert_eq!(table, expected);
        assert_eq!(Thresholds::with(&table.to_toml()).expect("reads its own text"), table);
    }

    #[test]
    fn a_misspelt_name_is_an_error() {
        for bad in ["[limit]\nx = 1", "[costs]\nrequests = 1.0", "[limits]\nindexes = 3", "not toml ["] {
            assert!(Thresholds::with(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_measured_value_stands_beside_every_level() {
        let table = Thresholds::default();
        assert_eq!(table.limits.indexes.beside(12), "12 (limits 10 / 20 / 30): noticeable");
        assert_eq!(table.limits.array_elements.beside(10_001), "10001 (limits 250 / 10000): too much");
    }
}
