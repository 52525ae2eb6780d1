//! `query NAME on=ENTITY rate=RATE [freshness=F] { equal …; in FIELD max=N; range FIELD [share=S]; where …; sort …; limit N; fields …; include NAME [limit=N] { fields … } }`
//!
//! An access pattern. `equal`, `in` and `range` name the fields whose values the caller gives, `where` conditions with
//! constants, `sort` keys with `-` before them for descending. `share` is the part of the documents that a usual range holds. `include` says what is read along with a document: an
//! embed, the document behind a reference, or the children of another entity. `freshness` is `primary` (the default),
//! `own-writes`, or a duration by which the answer may be stale.

use super::copy::{self, Copied};
use super::filter::{self, Condition};
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::{Problem, Span};
use crate::value::{Duration, Rate, SortKey};
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "query",
    places: &[Place::Top],
    syntax: "query NAME on=ENTITY rate=\"100/s\" { equal FIELD; range FIELD; sort \"-FIELD\"; limit N }",
    meaning: "an access pattern: filter, sort, limit, projection, rate, freshness",
    parse,
};

/// An access pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Its name.
    pub name: String,
    /// What it reads.
    pub on: String,
    /// How often it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How stale the answer may be; `None` means not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<Freshness>,
    /// Fields that equal a value given by the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equal: Vec<String>,
    /// Fields that equal one of several values given by the caller.
    #[serde(default, rename = "in", skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Within>,
    /// Fields that lie in a range given by the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<String>,
    /// The share of the documents that a usual range holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_share: Option<f64>,
    /// Conditions with constants.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// The order of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sort: Vec<SortKey>,
    /// The most documents of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The fields of the answer; all without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// What is read along with a document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<Include>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// A field that equals one of several values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The field.
    pub path: String,
    /// The most values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// How stale an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Freshness {
    /// A client sees what it wrote itself.
    OwnWrites,
    /// The answer may be this old.
    Stale(Duration),
}

/// What is read along with a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Include {
    /// An embed, a reference, or another entity that refers to this one.
    pub name: String,
    /// The most children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What of it is read; everything without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Copied>,
}

impl Query {
    /// How often it is asked; once a second if the model doesn't say.
    pub fn per_second(&self) -> f64 {
        self.rate.map_or(1.0, Rate::per_second)
    }

    /// Every path it filters or sorts by.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let filters = self.equal.iter().chain(self.within.iter().map(|within| &within.path)).chain(&self.range);
        let constants = self.filter.iter().map(|condition| &condition.path);
        filters.chain(constants).chain(self.sort.iter().map(|key| &key.path)).map(String::as_str)
    }
}

const LINES: &[&str] = &["equal", "in", "range", "where", "sort", "limit", "fields", "include"];

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("a query");
    let on = args.required("on");
    let rate = args.rate("rate");
    let freshness = args.text("freshness").and_then(|text| match text.as_str() {
        "primary" => None,
        "own-writes" => Some(Freshness::OwnWrites),
        text => Duration::parse(text).map(Freshness::Stale).or_else(|| {
            let span = args.span_of("freshness");
            args.wrong("bad-value", span, "`freshness` is primary, own-writes or a duration such as \"90s\"".into());
            None
        }),
    });
    args.finish();
    let mut query = Query {
        name,
        on,
        rate,
        freshness,
        equal: Vec::new(),
        within: Vec::new(),
        range: Vec::new(),
        range_share: None,
        filter: Vec::new(),
        sort: Vec::new(),
        limit: None,
        fields: Vec::new(),
        include: Vec::new(),
        span,
    };
    let path = query.name.clone();
    reader.lines(node, &path, LINES, |reader, child| line(reader, child, &mut query));
    let model = target.model();
    if model.queries.iter().any(|other| other.name == query.name) {
        let message = format!("query `{}` is declared twice", query.name);
        reader.problems.push(Problem::new("duplicate", span, message).help("give one of them another name"));
    }
    model.queries.push(query);
}

fn line(reader: &mut Reader, node: &KdlNode, query: &mut Query) {
    match node.name().value() {
        "where" => filter::line(reader, node, &mut query.filter),
        "in" => {
            let mut args = Args::new(reader, node, "in FIELD max=N");
            query.within.push(Within { path: args.name("the field"), max: args.positive_integer("max") });
            args.finish();
        }
        "limit" => {
            let mut args = Args::new(reader, node, "limit N");
            query.limit = args.number().filter(|limit| *limit > 0);
            if query.limit.is_none() {
                let span = args.span();
                args.wrong("missing", span, "`limit` takes a number of at least 1".into());
            }
            args.finish();
        }
        "include" => {
            let mut args = Args::new(reader, node, "include NAME limit=N { fields … }");
            let (name, limit) = (args.name("what is read along"), args.positive_integer("limit"));
            args.finish();
            let fields = copy::block(reader, node, &name);
            query.include.push(Include { name, limit, fields });
        }
        "sort" => {
            let mut args = Args::new(reader, node, "sort \"-FIELD\" FIELD …");
            query.sort.extend(args.words().iter().filter_map(|word| SortKey::parse(word)));
            args.finish();
        }
        word => {
            let mut args = Args::new(reader, node, "equal FIELD FIELD …");
            if word == "range" {
                query.range_share = args.share("share");
            }
            let words = args.words();
            if words.is_empty() {
                let span = args.span();
                args.wrong("missing", span, "name the fields".into());
            }
            match word {
                "equal" => query.equal.extend(words),
                "range" => query.range.extend(words),
                _ => query.fields.extend(words),
            }
            args.finish();
        }
    }
}
