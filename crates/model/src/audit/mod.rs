//! The audit: whatever the model keeps is compared with its source, by ranges, without writing; repairs are asked for.
//!
//! ```text
//!   batch of documents ──> compared as they are read ──> suspects ──> each again in one snapshot ──> drift
//!                                                                          └─ with repair: put right, guarded
//! ```
//!
//! Reading a batch and its sources takes a moment in which others write, so a difference is only a suspicion: what counts is
//! what one snapshot shows. A repair on Sheaf is a document in [`crate::keep::REPAIRS`], carried out where nobody else
//! writes; on another server it is written in the transaction that read the sources, so a value that changed meanwhile
//! is read again and never overwritten with a stale one. An audit stops after any batch and goes on from its
//! [`State`].

mod buckets;
mod copies;
mod fields;
mod parents;
mod repair;
mod rolls;
mod snapshot;
mod stocks;
mod timelines;

use crate::error::Result;
use crate::keep::declaration::{Declaration, Rule};
use crate::keep::{Keeper, range};
use crate::model::Model;
use bson::{Bson, Document, doc};
use rolls::Groups;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use store::{Find, Session, Store};

/// The documents of one batch.
pub const BATCH: usize = 200;

/// The most targets that are remembered in order not to report them twice.
const MAX_SEEN: usize = 1_000_000;

/// How often a suspect is read again when its snapshot is lost to other writers.
const ATTEMPTS: usize = 10;

/// How an audit runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether what drifted is put right.
    pub repair: bool,
    /// The declarations to go through; all without.
    pub only: Option<Vec<String>>,
    /// The most documents a second; as fast as it goes without.
    pub rate: Option<u64>,
    /// The examples that are given for each declaration.
    pub examples: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { repair: false, only: None, rate: None, examples: 5 }
    }
}

/// What was found for one declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// The declaration.
    pub declaration: String,
    /// Its kind: `count`, `live` …
    pub kind: String,
    /// The collection that holds what is kept.
    pub collection: String,
    /// How many documents were compared.
    pub checked: u64,
    /// How many of them differ from their source.
    pub drifted: u64,
    /// How many refer to something that is not there, or was not when their snapshot was taken.
    pub orphans: u64,
    /// How many copies are noted to follow and have not yet.
    pub lagging: u64,
    /// How many were put right.
    pub repaired: u64,
    /// Some of what drifted, and of the orphans.
    pub examples: Vec<Example>,
    /// Why it was not gone through, if it wasn't.
    pub skipped: Option<String>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The document's id.
    pub id: Bson,
    /// What is stored.
    pub stored: Bson,
    /// What there should be.
    pub expected: Bson,
}

/// How far an audit is: what to keep in order to go on later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    declaration: String,
    phase: usize,
    cursor: Option<Bson>,
    findings: Vec<Finding>,
}

/// A difference that a snapshot has shown.
#[derive(Clone, Debug)]
pub(crate) struct Drift {
    pub(crate) target: Bson,
    pub(crate) stored: Bson,
    pub(crate) expected: Bson,
    /// What is missing in sums.
    pub(crate) add: Option<Document>,
    /// How many documents a group is short of.
    pub(crate) documents: i64,
    /// What puts it right on a server that keeps no models: filter and update of the collection.
    pub(crate) update: Option<(Document, Document)>,
}

/// What came of comparing some documents.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) drifts: Vec<Drift>,
    pub(crate) orphans: Vec<Bson>,
}

/// An audit that is under way.
pub struct Auditor {
    /// How it runs.
    pub options: Options,
    pub(crate) store: Store,
    pub(crate) database: String,
    pub(crate) keeper: Keeper,
    state: State,
    groups: Groups,
    /// The targets of this declaration that were confirmed already: several documents may speak of one.
    seen: HashSet<Vec<u8>>,
    begun: Option<Instant>,
    done: u64,
    /// Whether the server keeps a model of this database itself, once that was asked.
    kept_there: Option<bool>,
}

impl Auditor {
    /// An audit of a database by a model.
    ///
    /// # Errors
    /// A filter of the model that can't be evaluated.
    pub fn new(store: &Store, database: &str, model: &Model) -> Result<Auditor> {
        Ok(Auditor {
            options: Options::default(),
            store: store.clone(),
            database: database.to_owned(),
            keeper: Keeper::new(model)?,
            state: State::default(),
            groups: Groups::default(),
            seen: HashSet::new(),
            begun: None,
            done: 0,
            kept_there: None,
        })
    }

    /// Goes on where another run stopped.
    pub fn resume(&mut self, state: Option<State>) {
        self.state = state.unwrap_or_default();
    }

    /// How far it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What was found so far, a part for each declaration.
    pub fn findings(&self) -> &[Finding] {
        &self.state.findings
    }

    /// The part for the declaration that it is at.
    pub fn current(&self) -> Finding {
        self.state.findings.last().cloned().unwrap_or_default()
    }

    /// Everything from the beginning to the end.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn run(&mut self) -> Result<Vec<Finding>> {
        while self.step().await? {}
        Ok(self.state.findings.clone())
    }

    fn wanted(&self, name: &str) -> bool {
        self.options.only.as_ref().is_none_or(|only| only.iter().any(|wanted| wanted == name))
    }

    /// The next batch; false when everything was gone through.
    ///
    /// # Errors
    /// A store that fails; the batch is done again by the next call.
    pub async fn step(&mut self) -> Result<bool> {
        if self.kept_there.is_none() {
            self.kept_there = Some(self.asks_server().await?);
        }
        let names: Vec<String> = self.keeper.declarations().iter().map(|one| one.name.clone()).collect();
        let mut names = names.into_iter().filter(|name| self.wanted(name) && *name >= self.state.declaration);
        let Some(name) = names.next() else { return Ok(false) };
        let next = names.next();
        let declaration = self.keeper.declaration(&name).cloned().expect("its name was just listed");
        if self.state.declaration != name || self.state.findings.is_empty() {
            self.enter(&declaration);
        }
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let (count, over) = self.batch(&declaration).await?;
        self.done += count as u64;
        if over {
            self.state.phase += 1;
            self.state.cursor = None;
            if self.state.phase >= phases(&declaration, self.keeps_itself()) {
                let Some(next) = next else {
                    self.state.declaration = format!("{name}\u{0}");
                    return Ok(false);
                };
                self.state.declaration = next;
                let next = self.keeper.declaration(&self.state.declaration).cloned().expect("it was just listed");
                self.enter(&next);
            }
        }
        if let Some(rate) = self.options.rate {
            let due = Duration::from_secs_f64(self.done as f64 / rate.max(1) as f64);
            if let Some(early) = due.checked_sub(begun.elapsed()) {
                tokio::time::sleep(early).await;
            }
        }
        Ok(true)
    }

    fn enter(&mut self, declaration: &Declaration) {
        (self.state.declaration, self.state.phase, self.state.cursor) = (declaration.name.clone(), 0, None);
        self.groups = Groups::default();
        self.seen = HashSet::new();
        self.state.findings.push(Finding {
            declaration: declaration.name.clone(),
            kind: declaration.kind().to_owned(),
            collection: declaration.collection.clone(),
            ..Finding::default()
        });
    }

    /// Whether repairs are carried out by the server.
    pub(crate) fn keeps_itself(&self) -> bool {
        self.kept_there.unwrap_or(false)
    }

    async fn asks_server(&self) -> Result<bool> {
        let can = self.store.capabilities();
        if !can.hooks && !can.sheaf {
            return Ok(false);
        }
        Ok(crate::apply::active_model(&self.store, &self.database).await?.1.is_some())
    }

    /// One batch of a declaration; how many documents, and whether the phase is over.
    async fn batch(&mut self, declaration: &Declaration) -> Result<(usize, bool)> {
        if let Rule::Roll(roll) = &declaration.rule {
            let roll = roll.clone();
            return self.roll_batch(declaration, &roll).await;
        }
        let collection = match (&declaration.rule, self.state.phase) {
            (Rule::Number(_), 1) => crate::keep::PENDING,
            (Rule::Timeline(_), 0) => crate::keep::timeline::INBOXES,
            (Rule::Timeline(_) | Rule::Number(_), 2) | (Rule::Bucket(_) | Rule::Split(_), 1) => &declaration.source,
            _ => &declaration.collection,
        };
        let images = self.next(collection, self.state.cursor.as_ref()).await?;
        if self.state.phase == 0 {
            self.finding().checked += images.len() as u64;
        }
        let compared = self.compare(declaration, self.state.phase, &images, None).await?;
        self.note_orphans(&compared.orphans);
        for suspect in compared.drifts {
            self.confirm(declaration, &suspect.target).await?;
        }
        let over = images.len() < BATCH;
        self.state.cursor = images.last().and_then(|last| last.get("_id").cloned()).or(self.state.cursor.take());
        Ok((images.len(), over))
    }

    pub(crate) fn finding(&mut self) -> &mut Finding {
        if self.state.findings.is_empty() {
            self.state.findings.push(Finding::default());
        }
        self.state.findings.last_mut().expect("there is one")
    }

    fn note_orphans(&mut self, orphans: &[Bson]) {
        let most = self.options.examples;
        let finding = self.finding();
        finding.orphans += orphans.len() as u64;
        for id in orphans {
            if finding.examples.len() < most {
                let (stored, expected) =
                    (Bson::String("refers to nothing, or did when it was written".into()), Bson::Null);
                finding.examples.push(Example { id: id.clone(), stored, expected });
            }
        }
    }

    /// The next documents of a collection in the order of `_id`.
    pub(crate) async fn next(&self, collection: &str, cursor: Option<&Bson>) -> Result<Vec<Document>> {
        let mut found = Vec::new();
        let collection = self.store.collection(&self.database, collection);
        for filter in range::after(cursor) {
            let limit = (BATCH - found.len()) as i64;
            let options = Find { sort: Some(doc! { "_id": 1 }), limit, ..Find::default() };
            found.extend(collection.find(filter, options, None).await?);
            if found.len() >= BATCH {
                break;
            }
        }
        Ok(found)
    }

    /// Compares documents with their sources.
    pub(crate) async fn compare(
        &self,
        declaration: &Declaration,
        phase: usize,
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        match &declaration.rule {
            Rule::Number(number) if phase == 0 => self.compare_numbers(declaration, number, images, session).await,
            Rule::Number(number) => {
                let ids = parents::missing_candidates(number, phase, images, &declaration.collection);
                self.compare_missing(declaration, number, ids, session).await
            }
            Rule::Extreme(rule) => self.compare_extremes(declaration, rule, images, session).await,
            Rule::Newest(rule) => self.compare_newest(declaration, rule, images, session).await,
            Rule::Copy(copy) => self.compare_copies(copy, images, session).await,
            Rule::Reference { path, .. } => self.compare_references(declaration, path, images, session).await,
            Rule::Mirror { from, to } => self.compare_mirrors(declaration, (from, to), images, session).await,
            Rule::Bucket(rule) if phase == 0 => self.compare_chunks(declaration, rule, images, session).await,
            Rule::Bucket(rule) => self.compare_packed(declaration, rule, images, session).await,
            Rule::Split(rule) if phase == 0 => self.compare_split(rule, images),
            Rule::Split(_) => self.compare_parts(declaration, images, session).await,
            Rule::Compressed(rule) => self.compare_compressed(rule, images),
            Rule::Stock(rule) => self.compare_stocks(rule, images, session).await,
            Rule::Timeline(fan) => self.compare_inboxes(fan, phase, images, session).await,
            Rule::Roll(_) => Ok(Compared::default()),
        }
    }

    /// Compares one document again, in one snapshot, and puts it right if that is asked for.
    async fn confirm(&mut self, declaration: &Declaration, target: &Bson) -> Result<()> {
        if self.seen.len() < MAX_SEEN && !self.seen.insert(snapshot::key(target)?) {
            return Ok(());
        }
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.confirm_once(declaration, target).await {
                Ok(Some(drift)) => {
                    self.note_drift(declaration, drift).await?;
                    return Ok(());
                }
                Ok(None) => return Ok(()),
                Err(error) if error.is_transient() => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        match last {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub(crate) async fn note_drift(&mut self, declaration: &Declaration, drift: Drift) -> Result<()> {
        if self.is_lagging(declaration, &drift).await? {
            self.finding().lagging += 1;
            return Ok(());
        }
        let (repair, most) = (self.options.repair, self.options.examples);
        let repaired = repair && (!self.keeps_itself() || self.record_repair(declaration, &drift).await?);
        let finding = self.finding();
        finding.drifted += 1;
        finding.repaired += u64::from(repaired);
        if finding.examples.len() < most {
            let Drift { target, stored, expected, .. } = drift;
            finding.examples.push(Example { id: target, stored, expected });
        }
        Ok(())
    }
}

/// How many passes a declaration takes.
fn phases(declaration: &Declaration, keeps_itself: bool) -> usize {
    match &declaration.rule {
        // Parents, what waits for missing ones, children of missing ones.
        Rule::Number(_) if keeps_itself => 3,
        // How many rows the inboxes have, the rows, the edges.
        Rule::Timeline(_) => 3,
        // The sources, then the groups.
        Rule::Roll(_) | Rule::Bucket(_) | Rule::Split(_) => 2,
        _ => 1,
    }
}

impl Finding {
    /// As a document, for JSON.
    pub fn to_document(&self) -> Document {
        let examples: Vec<Bson> = self
            .examples
            .iter()
            .map(|one| {
                let (id, stored, expected) = (one.id.clone(), one.stored.clone(), one.expected.clone());
                doc! { "id": id, "stored": stored, "expected": expected }.into()
            })
            .collect();
        let mut document = doc! {
            "declaration": self.declaration.clone(), "kind": self.kind.clone(), "collection": self.collection.clone(),
            "checked": self.checked as i64, "drifted": self.drifted as i64, "orphans": self.orphans as i64,
            "lagging": self.lagging as i64, "repaired": self.repaired as i64, "examples": examples,
        };
        if let Some(reason) = &self.skipped {
            document.insert("skipped", reason.clone());
        }
        document
    }

    fn from_document(document: &Document) -> Finding {
        let text = |name: &str| document.get_str(name).unwrap_or_default().to_owned();
        let number = |name: &str| document.get_i64(name).unwrap_or_default().max(0) as u64;
        let examples = document.get_array("examples").into_iter().flatten().filter_map(|one| {
            let one = one.as_document()?;
            let value = |name: &str| one.get(name).cloned().unwrap_or(Bson::Null);
            Some(Example { id: value("id"), stored: value("stored"), expected: value("expected") })
        });
        Finding {
            declaration: text("declaration"),
            kind: text("kind"),
            collection: text("collection"),
            checked: number("checked"),
            drifted: number("drifted"),
            orphans: number("orphans"),
            lagging: number("lagging"),
            repaired: number("repaired"),
            examples: examples.collect(),
            skipped: document.get_str("skipped").ok().map(str::to_owned),
        }
    }
}

impl State {
    /// As BSON, to be kept.
    pub fn to_bson(&self) -> Bson {
        let findings: Vec<Bson> = self.findings.iter().map(|one| one.to_document().into()).collect();
        let mut document = doc! {
            "declaration": self.declaration.clone(), "phase": self.phase as i64, "findings": findings,
        };
        if let Some(cursor) = &self.cursor {
            document.insert("cursor", cursor.clone());
        }
        document.into()
    }

    /// Reads what [`State::to_bson`] wrote.
    pub fn from_bson(value: &Bson) -> Option<State> {
        let document = value.as_document()?;
        let findings = document.get_array("findings").ok()?.iter();
        Some(State {
            declaration: document.get_str("declaration").ok()?.to_owned(),
            phase: document.get_i64("phase").ok()?.max(0) as usize,
            cursor: document.get("cursor").cloned(),
            findings: findings.filter_map(|one| one.as_document().map(Finding::from_document)).collect(),
        })
    }
}
