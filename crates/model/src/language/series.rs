//! `series time=FIELD [meta=FIELD] [granularity=seconds|minutes|hours] [expire-after=DURATION]`: a time-series collection.
//!
//! Measurements are appended, never changed; the server packs those with the same `meta` into buckets.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use crate::value::Duration;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "series",
    places: &[Place::Entity],
    syntax: "series time=FIELD meta=FIELD granularity=minutes expire-after=\"90d\"",
    meaning: "a time-series collection",
    parse,
};

/// A time-series collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The field with the time.
    pub time: String,
    /// The field that says what is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<String>,
    /// How far measurements of one source are apart.
    pub granularity: Granularity,
    /// When measurements are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<Duration>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// How far measurements of one source are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// Seconds; a bucket spans an hour.
    Seconds,
    /// Minutes; a bucket spans a day.
    Minutes,
    /// Hours; a bucket spans 30 days.
    Hours,
}

const GRANULARITY: &[(&str, Granularity)] =
    &[("seconds", Granularity::Seconds), ("minutes", Granularity::Minutes), ("hours", Granularity::Hours)];

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let series = Series {
        time: args.required("time"),
        meta: args.text("meta"),
        granularity: args.choice("granularity", GRANULARITY).unwrap_or(Granularity::Seconds),
        expire_after: args.duration("expire-after"),
        span: args.span(),
    };
    if target.entity().parts.series.is_some() {
        let span = args.span();
        args.wrong("duplicate", span, "an entity is one `series`".into());
    }
    args.finish();
    reader.no_children(node);
    target.entity().parts.series = Some(series);
}
