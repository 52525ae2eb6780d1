//! The rules, one file each.

mod array_growing;
mod array_large;
mod date_as_number;
mod date_as_string;
mod document_size;
mod duplicate_keys;
mod dynamic_names;
mod enumeration_missing;
mod id_as_string;
mod index_count;
mod index_redundant;
mod index_selectivity;
mod index_unused;
mod lookup_heavy;
mod mixed_types;
mod money_as_double;
mod naming_style;
mod no_validator;
mod query_badly_ordered;
mod query_unindexed;
mod same_field_two_names;
mod texts;
mod ttl_not_date;
mod two_way_links;
mod unique_missing;

use super::Rule;
use texts::Texts;

/// All rules, by name.
pub static TABLE: &[&Rule] = &[
    &array_growing::RULE,
    &array_large::RULE,
    &date_as_number::RULE,
    &date_as_string::RULE,
    &document_size::RULE,
    &duplicate_keys::RULE,
    &dynamic_names::RULE,
    &enumeration_missing::RULE,
    &id_as_string::RULE,
    &index_count::RULE,
    &index_redundant::RULE,
    &index_selectivity::RULE,
    &index_unused::RULE,
    &lookup_heavy::RULE,
    &mixed_types::RULE,
    &money_as_double::RULE,
    &naming_style::RULE,
    &no_validator::RULE,
    &query_badly_ordered::RULE,
    &query_unindexed::RULE,
    &same_field_two_names::RULE,
    &ttl_not_date::RULE,
    &two_way_links::RULE,
    &unique_missing::RULE,
];
