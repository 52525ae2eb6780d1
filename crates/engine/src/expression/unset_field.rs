//! `{$unsetField: {field, input}}`: an object without a field, by its exact name, dots and dollars included.
//!
//! Null when the input is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/unsetField/>.

use super::Operator;
use super::operand::named;
use super::set_field::{finish, missing};

pub(super) const OPERATOR: Operator = Operator {
    name: "$unsetField",
    parse: |argument, parser| {
        let [field, input] = named("$unsetField", argument, ["field", "input"], 4_161_100, 4_161_101)?;
        let field = field.ok_or_else(|| missing("$unsetField", "field", 4_161_102))?;
        let input = input.ok_or_else(|| missing("$unsetField", "input", 4_161_109))?;
        finish("$unsetField", field, input, None, parser)
    },
};
