//! Aggregation expressions: parsed once, evaluated on raw bytes.
//!
//! One file per operator: module doc, table row, parsed struct, behaviour. [`OPERATORS`] alone drives parsing, the error for
//! an unknown operator and COMPAT.md. An expression never knows where its document came from.

mod abs;
mod accumulate;
mod accumulated;
mod acos;
mod acosh;
mod add;
mod all_elements_true;
mod and;
mod any_element_true;
mod array_elem_at;
mod array_to_object;
mod asin;
mod asinh;
mod atan;
mod atan2;
mod atanh;
mod avg;
mod binary_size;
mod bit_and;
mod bit_not;
mod bit_or;
mod bit_xor;
mod bitwise;
mod bson_size;
mod ceil;
mod cmp;
mod comparison;
mod concat;
mod concat_arrays;
mod cond;
mod conversion;
mod conversion_binary;
mod conversion_text;
mod convert;
mod cos;
mod cosh;
mod date_add;
mod date_diff;
mod date_from_parts;
mod date_from_string;
mod date_operand;
mod date_part;
mod date_shift;
mod date_subtract;
mod date_to_parts;
mod date_to_string;
mod date_trunc;
mod day_of_month;
mod day_of_week;
mod day_of_year;
mod degrees_to_radians;
mod divide;
mod eq;
mod exp;
mod field;
mod filter;
mod first;
mod first_n;
mod floor;
mod get_field;
mod gt;
mod gte;
mod hour;
mod if_null;
mod in_array;
mod index_of_array;
mod index_of_bytes;
mod index_of_cp;
mod is_array;
mod is_number;
mod iso_day_of_week;
mod iso_week;
mod iso_week_year;
mod last;
mod last_n;
mod let_variables;
mod literal;
mod ln;
mod log;
mod log10;
mod lt;
mod lte;
mod ltrim;
mod map;
mod max;
mod max_n;
mod median;
mod merge_objects;
mod millisecond;
mod min;
mod min_n;
mod minute;
mod modulo;
mod month;
mod multiply;
mod ne;
mod not;
mod numeric;
mod object;
mod object_to_array;
mod operand;
mod or;
pub mod parser;
mod percentile;
mod pow;
mod radians_to_degrees;
mod rand;
mod range;
mod reduce;
mod regex_arguments;
mod regex_find;
mod regex_find_all;
mod regex_match;
mod replace_all;
mod replace_one;
mod reverse_array;
mod round;
mod rtrim;
pub mod scope;
mod second;
mod set_difference;
mod set_equals;
mod set_field;
mod set_intersection;
mod set_is_subset;
mod set_union;
mod sets;
mod shorthand;
mod sigmoid;
mod sin;
mod sinh;
mod size;
mod slice;
mod sort_array;
mod split;
mod sqrt;
mod std_dev_pop;
mod std_dev_samp;
mod str_len_bytes;
mod str_len_cp;
mod strcasecmp;
mod substr;
mod substr_bytes;
mod substr_cp;
mod subtract;
mod sum;
mod switch;
mod tan;
mod tanh;
mod text;
mod timestamp;
mod to_bool;
mod to_date;
mod to_decimal;
mod to_double;
mod to_hashed_index_key;
mod to_int;
mod to_long;
mod to_lower;
mod to_object_id;
mod to_string;
mod to_upper;
mod to_uuid;
mod trim;
mod trunc;
mod ts_increment;
mod ts_second;
mod type_of;
mod unset_field;
mod week;
mod window;
mod year;
mod zip;

pub use accumulate::Accumulation;
pub use field::FieldReference;
pub use literal::Literal;
pub use parser::{Parser, VariableId, arguments, exactly};
pub use scope::{Binding, Environment, Scope};
pub use window::WindowExpression;

use crate::document::Value;
use crate::error::{Error, Result};
use bson::{RawBsonRef, RawDocument};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// A parsed expression.
pub type Compiled = Box<dyn Expression>;

/// What every operator's parsed struct does.
pub trait Expression: Debug + Send + Sync {
    /// Computes the value; it may borrow from the literals in `self` or from the scope's document, but not from the
    /// scope's variables when those live shorter: turn such a result into an owned one.
    ///
    /// # Errors
    /// The operator's documented codes for values that it refuses.
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>>;

    /// Calls `visit` for each direct operand. The default says that there are none.
    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        let _ = visit;
    }

    /// The path of the document that this very node reads, and through which variable.
    fn reads(&self) -> Option<(VariableId, &str)> {
        None
    }

    /// The value when it does not depend on anything.
    fn constant(&self) -> Option<RawBsonRef<'_>> {
        None
    }

    /// The error that this node gives whatever the document: its operands are constants that it refuses.
    fn failure(&self) -> Option<&Error> {
        None
    }

    /// Whether the same operands always give the same value (`$rand` says no).
    fn is_deterministic(&self) -> bool {
        true
    }
}

/// A row of the operator table.
pub struct Operator {
    /// The name with its `$`.
    pub name: &'static str,
    /// Parses the operator's argument; refuses all that is invalid whatever the document.
    pub parse: fn(RawBsonRef<'_>, &mut Parser) -> Result<Compiled>,
}

/// All operators, sorted by name.
pub static OPERATORS: &[Operator] = &[
    abs::OPERATOR,
    acos::OPERATOR,
    acosh::OPERATOR,
    add::OPERATOR,
    all_elements_true::OPERATOR,
    and::OPERATOR,
    any_element_true::OPERATOR,
    array_elem_at::OPERATOR,
    array_to_object::OPERATOR,
    asin::OPERATOR,
    asinh::OPERATOR,
    atan::OPERATOR,
    atan2::OPERATOR,
    atanh::OPERATOR,
    avg::OPERATOR,
    binary_size::OPERATOR,
    bit_and::OPERATOR,
    bit_not::OPERATOR,
    bit_or::OPERATOR,
    bit_xor::OPERATOR,
    bson_size::OPERATOR,
    ceil::OPERATOR,
    cmp::OPERATOR,
    concat::OPERATOR,
    concat_arrays::OPERATOR,
    cond::OPERATOR,
    literal::CONST,
    convert::OPERATOR,
    cos::OPERATOR,
    cosh::OPERATOR,
    date_add::OPERATOR,
    date_diff::OPERATOR,
    date_from_parts::OPERATOR,
    date_from_string::OPERATOR,
    date_subtract::OPERATOR,
    date_to_parts::OPERATOR,
    date_to_string::OPERATOR,
    date_trunc::OPERATOR,
    day_of_month::OPERATOR,
    day_of_week::OPERATOR,
    day_of_year::OPERATOR,
    degrees_to_radians::OPERATOR,
    divide::OPERATOR,
    eq::OPERATOR,
    exp::OPERATOR,
    filter::OPERATOR,
    first::OPERATOR,
    first_n::OPERATOR,
    floor::OPERATOR,
    get_field::OPERATOR,
    gt::OPERATOR,
    gte::OPERATOR,
    hour::OPERATOR,
    if_null::OPERATOR,
    in_array::OPERATOR,
    index_of_array::OPERATOR,
    index_of_bytes::OPERATOR,
    index_of_cp::OPERATOR,
    is_array::OPERATOR,
    is_number::OPERATOR,
    iso_day_of_week::OPERATOR,
    iso_week::OPERATOR,
    iso_week_year::OPERATOR,
    last::OPERATOR,
    last_n::OPERATOR,
    let_variables::OPERATOR,
    literal::OPERATOR,
    ln::OPERATOR,
    log::OPERATOR,
    log10::OPERATOR,
    lt::OPERATOR,
    lte::OPERATOR,
    ltrim::OPERATOR,
    map::OPERATOR,
    max::OPERATOR,
    max_n::OPERATOR,
    median::OPERATOR,
    merge_objects::OPERATOR,
    millisecond::OPERATOR,
    min::OPERATOR,
    min_n::OPERATOR,
    minute::OPERATOR,
    modulo::OPERATOR,
    month::OPERATOR,
    multiply::OPERATOR,
    ne::OPERATOR,
    not::OPERATOR,
    object_to_array::OPERATOR,
    or::OPERATOR,
    percentile::OPERATOR,
    pow::OPERATOR,
    radians_to_degrees::OPERATOR,
    rand::OPERATOR,
    range::OPERATOR,
    reduce::OPERATOR,
    regex_find::OPERATOR,
    regex_find_all::OPERATOR,
    regex_match::OPERATOR,
    replace_all::OPERATOR,
    replace_one::OPERATOR,
    reverse_array::OPERATOR,
    round::OPERATOR,
    rtrim::OPERATOR,
    second::OPERATOR,
    set_difference::OPERATOR,
    set_equals::OPERATOR,
    set_field::OPERATOR,
    set_intersection::OPERATOR,
    set_is_subset::OPERATOR,
    set_union::OPERATOR,
    sigmoid::OPERATOR,
    sin::OPERATOR,
    sinh::OPERATOR,
    size::OPERATOR,
    slice::OPERATOR,
    sort_array::OPERATOR,
    split::OPERATOR,
    sqrt::OPERATOR,
    std_dev_pop::OPERATOR,
    std_dev_samp::OPERATOR,
    str_len_bytes::OPERATOR,
    str_len_cp::OPERATOR,
    strcasecmp::OPERATOR,
    substr::OPERATOR,
    substr_bytes::OPERATOR,
    substr_cp::OPERATOR,
    subtract::OPERATOR,
    sum::OPERATOR,
    switch::OPERATOR,
    tan::OPERATOR,
    tanh::OPERATOR,
    to_bool::OPERATOR,
    to_date::OPERATOR,
    to_decimal::OPERATOR,
    to_double::OPERATOR,
    to_hashed_index_key::OPERATOR,
    to_int::OPERATOR,
    to_long::OPERATOR,
    to_lower::OPERATOR,
    to_object_id::OPERATOR,
    to_string::OPERATOR,
    to_uuid::OPERATOR,
    to_upper::OPERATOR,
    trim::OPERATOR,
    trunc::OPERATOR,
    ts_increment::OPERATOR,
    ts_second::OPERATOR,
    type_of::OPERATOR,
    unset_field::OPERATOR,
    week::OPERATOR,
    year::OPERATOR,
    zip::OPERATOR,
];

/// Known names that are not our aim; refused by name.
pub static UNSUPPORTED: &[&str] = &["$accumulator", "$function", "$meta", "$where"];

/// Parses any expression: a field path, a variable, a literal, an array, an object or an operator.
///
/// # Errors
/// `InvalidPipelineOperator` (168) for an unknown operator, `Location15983` for an object with an operator beside other fields,
/// and what the operators themselves refuse.
pub fn parse(value: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let parsed = parse_any(value, parser)?;
    if parser.is_outermost() {
        refuse_failed(&*parsed)?;
    }
    Ok(parsed)
}

/// Raises the first error that is certain whatever the document.
fn refuse_failed(expression: &dyn Expression) -> Result<()> {
    if let Some(error) = expression.failure() {
        return Err(error.clone());
    }
    let mut outcome = Ok(());
    expression.each_operand(&mut |operand| {
        if outcome.is_ok() {
            outcome = refuse_failed(operand);
        }
    });
    outcome
}

fn parse_any(value: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    match value {
        RawBsonRef::String(text) if text.starts_with('$') => field::parse(text, parser),
        RawBsonRef::Document(document) => parse_document(document, parser),
        RawBsonRef::Array(array) => object::parse_array(array, parser),
        RawBsonRef::String(text) => {
            operand::check_length(text.len())?;
            Ok(Box::new(Literal::new(value)))
        }
        other => Ok(Box::new(Literal::new(other))),
    }
}

/// Parses an object expression or an operator expression.
///
/// # Errors
/// As [`parse`].
pub fn parse_document(document: &RawDocument, parser: &mut Parser) -> Result<Compiled> {
    let mut fields = document.iter();
    let Some(first) = fields.next() else { return Ok(Box::new(Literal::new(RawBsonRef::Document(document)))) };
    let (name, argument) = first?;
    if !name.as_str().starts_with('$') {
        return object::parse(document, parser);
    }
    if fields.next().is_some() {
        return Err(Error::location(
            15983,
            format!("an object representing an expression must have exactly one field: {document:?}"),
        ));
    }
    parser.nested(|parser| match find(name.as_str()) {
        Some(operator) => (operator.parse)(argument, parser),
        None => Err(unknown(name.as_str())),
    })
}

/// The table row of that name.
pub fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.binary_search_by(|operator| operator.name.cmp(name)).ok().map(|found| &OPERATORS[found])
}

fn unknown(name: &str) -> Error {
    if UNSUPPORTED.contains(&name) {
        return Error::new(
            crate::Code::COMMAND_NOT_SUPPORTED,
            format!("the expression '{name}' is not supported by Sheaf: see COMPAT.md"),
        );
    }
    Error::new(crate::Code::INVALID_PIPELINE_OPERATOR, format!("Unrecognized expression '{name}'"))
}

/// The fields of the document that an expression needs; `None` when it needs the whole document.
pub fn dependencies(expression: &dyn Expression) -> Option<BTreeSet<String>> {
    let mut fields = BTreeSet::new();
    collect(expression, &mut fields).then_some(fields)
}

/// Gathers the fields into `fields`; false when the whole document is needed.
pub fn collect(expression: &dyn Expression, fields: &mut BTreeSet<String>) -> bool {
    let mut bounded = true;
    if let Some((VariableId::ROOT, path)) = expression.reads() {
        bounded &= !path.is_empty();
        fields.insert(path.to_owned());
    }
    expression.each_operand(&mut |operand| bounded &= collect(operand, fields));
    bounded
}
