//! `lint`: what hurts in a live database, or will.
//!
//! [`observe`](crate::observe) looks at the database with bounded work; each rule of [`TABLE`] judges what was found and
//! says where, what was measured against which limit, why it matters and what to do, with the command. `docs/lint.md`
//! describes every rule.
//!
//! A rule is one file in `rules/` with a static [`Rule`] and a line in the table.

pub mod bad_shop;
mod growth;
mod render;
mod rules;
mod sarif;

pub use growth::{Lengths, Previous};
pub use rules::TABLE;

use crate::advise::thresholds::Thresholds;
use crate::observe::{Collection, Database, Observed};
use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a look.
    Notice,
    /// Worth a change.
    Warning,
    /// Wrong already, or about to fail.
    Error,
}

impl Severity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Notice => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A rule.
pub struct Rule {
    /// Its stable name.
    pub name: &'static str,
    /// What it finds, in a sentence.
    pub finds: &'static str,
    /// Why that matters.
    pub why: &'static str,
    check: fn(&Facts<'_>, &mut Found),
}

/// Something found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// `database.collection`, with the field, index or query behind it.
    pub place: String,
    /// What was measured.
    pub measured: String,
    /// What it was measured against.
    pub limit: String,
    /// Why it matters.
    pub why: String,
    /// What to do, with the command where there is one.
    pub action: String,
}

/// What rules look at.
pub(crate) struct Facts<'f> {
    pub(crate) observed: &'f Observed,
    pub(crate) thresholds: &'f Thresholds,
    pub(crate) options: &'f Options,
}

/// How to judge.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rules that are not applied.
    pub allow: Vec<String>,
    /// An index that was not used for so many days is unused.
    pub unused_days: f64,
    /// What an earlier run measured, for growth between the two.
    pub previous: Option<Previous>,
}

impl Default for Options {
    fn default() -> Options {
        Options { allow: Vec::new(), unused_days: 7.0, previous: None }
    }
}

/// What a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub looked_at: LookedAt,
}

/// What was looked at.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LookedAt {
    /// Databases.
    pub databases: usize,
    /// Collections.
    pub collections: usize,
    /// Documents there are.
    pub documents: u64,
    /// Documents that were read.
    pub sampled: u64,
    /// Shapes of operations in profiles.
    pub operations: usize,
}

/// Gathers findings of one rule.
pub(crate) struct Found {
    rule: &'static str,
    why: &'static str,
    findings: Vec<Finding>,
}

impl Found {
    pub(crate) fn add(
        &mut self,
        severity: Severity,
        place: impl Into<String>,
        measured: impl Into<String>,
        limit: impl Into<String>,
        action: impl Into<String>,
    ) {
        self.findings.push(Finding {
            rule: self.rule,
            severity,
            place: place.into(),
            measured: measured.into(),
            limit: limit.into(),
            why: self.why.to_owned(),
            action: action.into(),
        });
    }
}

impl Facts<'_> {
    /// Every collection with its database.
    pub(crate) fn collections(&self) -> impl Iterator<Item = (&Database, &Collection)> {
        self.observed
            .databases
            .iter()
            .flat_map(|database| database.collections.iter().map(move |collection| (database, collection)))
    }
}

/// Judges what was found.
pub fn judge(observed: &Observed, thresholds: &Thresholds, options: &Options) -> Report {
    let facts = Facts { observed, thresholds, options };
    let mut findings = Vec::new();
    for rule in TABLE.iter().filter(|rule| !options.allow.iter().any(|allowed| allowed == rule.name)) {
        let mut found = Found { rule: rule.name, why: rule.why, findings: Vec::new() };
        (rule.check)(&facts, &mut found);
        findings.append(&mut found.findings);
    }
    findings.sort_by(|a, b| (b.severity, a.rule, &a.place).cmp(&(a.severity, b.rule, &b.place)));
    let collections = || facts.collections().map(|(_, collection)| collection);
    let looked_at = LookedAt {
        databases: observed.databases.len(),
        collections: collections().count(),
        documents: collections().map(|collection| collection.stats.count).sum(),
        sampled: collections().map(|collection| collection.sample.documents).sum(),
        operations: observed.databases.iter().map(|database| database.profile.len()).sum(),
    };
    Report { findings, looked_at }
}

impl Report {
    /// Whether something is at least so bad.
    pub fn reaches(&self, severity: Severity) -> bool {
        self.findings.iter().any(|finding| finding.severity >= severity)
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a report has no map with keys that are not texts");
        text.push('\n');
        text
    }
}

/// `db.getSiblingDB("shop").orders` for commands to paste into mongosh.
pub(crate) fn handle(database: &str, collection: &str) -> String {
    format!("db.getSiblingDB({database:?}).getCollection({collection:?})")
}

/// `database.collection` with a path behind it.
pub(crate) fn place(database: &Database, collection: &Collection, path: &str) -> String {
    let name = format!("{}.{}", database.name, collection.info.name);
    if path.is_empty() { name } else { format!("{name} {}", crate::observe::sample::plain(path)) }
}

/// A share as a person reads it.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}
