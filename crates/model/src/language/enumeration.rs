//! `enum NAME VALUE… [required] [list] [max=N] [top=SHARE]`: a text that is one of a few.
//!
//! With `top`, the share of the most frequent value, that value stands first. A validator refuses every other value. For a field whose changes follow rules, use `states` instead.

use super::field::Field;
use super::{Args, Declaration, Place, Reader, Target};
use crate::value::Type;
use kdl::KdlNode;

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "enum",
    places: &[Place::Entity, Place::Embed, Place::Edge],
    syntax: "enum NAME VALUE VALUE … required=#true",
    meaning: "a text field that is one of a few values",
    parse,
};

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let mut field = Field::new("", Type::String, args.span());
    field.required = args.flag("required");
    field.list = args.flag("list");
    field.max = args.positive_integer("max");
    field.top = args.share("top");
    field.changes = args.rate("changes");
    field.name = args.name("an enumeration");
    field.values = args.words();
    let span = args.span();
    if field.values.is_empty() {
        args.wrong("missing", span, "an enumeration needs its values".into());
    }
    for (index, value) in field.values.iter().enumerate() {
        if field.values[..index].contains(value) {
            args.wrong("duplicate", span, format!("the value `{value}` stands here twice"));
        }
    }
    field.distinct = Some(field.values.len() as u64).filter(|count| *count > 0);
    field.size = field.values.iter().map(|value| value.len() as u64).max();
    args.finish();
    reader.no_children(node);
    target.body().fields.push(field);
}
