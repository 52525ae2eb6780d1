//! `{$max: {path: value, …}}`: sets a field if the value is greater in BSON order, or the field is missing.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/update/max/>.

use crate::update::min::Extreme;
use crate::update::{Modifier, Operator};
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator = Operator {
    name: "$max",
    parse: |path, value, _| {
        Ok(vec![(
            path.to_owned(),
            Box::new(Extreme { value: value.into(), wins: Ordering::Greater }) as Box<dyn Modifier>,
        )])
    },
};
