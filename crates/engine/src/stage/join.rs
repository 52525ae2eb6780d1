//! Finding the documents of another collection by equality, for `$lookup` and `$graphLookup`.
//!
//! An index answers where there is one, with the answers of recent values kept; else the other collection is read once into
//! a table by its values, if that fits into the memory; else it is read for each value.

use crate::document::collation::Collator;
use crate::document::traverse::{Leaf, visit};
use crate::document::{FieldPath, RawBsonRef, Row};
use crate::error::Result;
use crate::key;
use crate::namespace::Namespace;
use crate::stage::{Pipeline, Rows, StageContext};
use std::collections::HashMap;
use std::sync::Arc;

/// The most values of one row that are looked up without making room for other work.
const MAX_QUICK_VALUES: usize = 128;

/// A way to find documents by the value of a field.
pub(super) struct Join {
    from: Namespace,
    path: FieldPath,
    context: Arc<StageContext>,
    plan: Plan,
}

enum Plan {
    Undecided,
    Index(Cache),
    Table(Table),
    Scan,
}

/// Recent answers, all forgotten when they fill the memory.
#[derive(Default)]
struct Cache {
    answers: HashMap<Vec<u8>, Arc<Vec<Row>>>,
    bytes: usize,
}

/// Documents by the values of a field.
pub(super) struct Table {
    rows: Vec<Row>,
    places: HashMap<Vec<u8>, Vec<usize>>,
}

impl Join {
    pub(super) fn new(from: Namespace, path: FieldPath, context: &Arc<StageContext>) -> Join {
        let context = Arc::new(context.on(from.clone()));
        Join { from, path, context, plan: Plan::Undecided }
    }

    /// The documents whose field equals one of the values, each once.
    pub(super) fn find(&mut self, values: &[RawBsonRef<'_>]) -> Result<Arc<Vec<Row>>> {
        if matches!(self.plan, Plan::Undecided) {
            self.plan = self.choose()?;
        }
        let context = &self.context;
        let collator = context.environment.collator();
        let ask = |value: RawBsonRef<'_>| -> Result<Arc<Vec<Row>>> {
            let rows = context.collections.matching(&self.from, self.path.as_str(), value, context)?;
            Ok(Arc::new(collect(rows, usize::MAX)?.unwrap_or_default()))
        };
        let mut answers = Vec::with_capacity(values.len());
        let mut answer = |cache: Option<&mut Cache>| -> Result<()> {
            let Some(cache) = cache else {
                for value in values {
                    answers.push(ask(*value)?);
                }
                return Ok(());
            };
            for value in values {
                let key = encoded(*value, collator)?;
                let answer = match cache.answers.get(&key) {
                    Some(known) => Arc::clone(known),
                    None => {
                        let rows = ask(*value)?;
                        cache.keep(&key, &rows, context.memory_bytes);
                        rows
                    }
                };
                answers.push(answer);
            }
            Ok(())
        };
        let cache = match &mut self.plan {
            Plan::Table(table) => return table.find(values, collator),
            Plan::Index(cache) => Some(cache),
            Plan::Scan | Plan::Undecided => None,
        };
        if values.len() <= MAX_QUICK_VALUES {
            answer(cache)?;
        } else {
            let (mut cache, mut done) = (Some(cache), Ok(()));
            context.collections.block(&mut || {
                if let Some(cache) = cache.take() {
                    done = answer(cache);
                }
            });
            done?;
        }
        if answers.len() == 1 { Ok(answers.remove(0)) } else { Ok(union(answers)) }
    }

    fn choose(&self) -> Result<Plan> {
        let context = &self.context;
        if context.collections.has_index(&self.from, self.path.as_str(), context)? {
            return Ok(Plan::Index(Cache::default()));
        }
        let rows = context.collections.aggregate(&self.from, &Arc::new(Pipeline::default()), context)?;
        let collator = context.environment.collator();
        Ok(match collect(rows, context.memory_bytes)? {
            Some(rows) => Plan::Table(Table::new(rows, &self.path, collator)?),
            None => Plan::Scan,
        })
    }
}

impl Table {
    pub(super) fn new(rows: Vec<Row>, path: &FieldPath, collator: Option<&Collator>) -> Result<Table> {
        let mut places: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            visit(row.document(), path.as_str(), Leaf::ElementsAndArray, &mut |value, _| {
                let key = encoded(value.unwrap_or(RawBsonRef::Null), collator)?;
                let known = places.entry(key).or_default();
                if known.last() != Some(&at) {
                    known.push(at);
                }
                Ok(false)
            })?;
        }
        Ok(Table { rows, places })
    }

    pub(super) fn find(&self, values: &[RawBsonRef<'_>], collator: Option<&Collator>) -> Result<Arc<Vec<Row>>> {
        let mut found = Vec::new();
        for value in values {
            found.extend(self.places.get(&encoded(*value, collator)?).into_iter().flatten().copied());
        }
        found.sort_unstable();
        found.dedup();
        Ok(Arc::new(found.into_iter().map(|at| self.rows[at].clone()).collect()))
    }
}

impl Cache {
    fn keep(&mut self, key: &[u8], rows: &Arc<Vec<Row>>, memory_bytes: usize) {
        let bytes = key.len() + rows.iter().map(|row| row.bytes().len() + size_of::<Row>()).sum::<usize>();
        if self.bytes + bytes > memory_bytes {
            self.answers.clear();
            self.bytes = 0;
        }
        if bytes < memory_bytes {
            self.bytes += bytes;
            self.answers.insert(key.to_vec(), Arc::clone(rows));
        }
    }
}

pub(super) fn encoded(value: RawBsonRef<'_>, collator: Option<&Collator>) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    key::encode(value, collator, &mut key)?;
    Ok(key)
}

/// All rows of a source, or `None` when they exceed a number of bytes.
pub(super) fn collect(mut rows: Rows, most_bytes: usize) -> Result<Option<Vec<Row>>> {
    let mut found = Vec::new();
    let mut bytes = 0_usize;
    while let Some(row) = rows.next()? {
        bytes = bytes.saturating_add(row.bytes().len() + size_of::<Row>());
        if bytes > most_bytes {
            return Ok(None);
        }
        found.push(row);
    }
    Ok(Some(found))
}

/// The rows of several answers, each once.
fn union(answers: Vec<Arc<Vec<Row>>>) -> Arc<Vec<Row>> {
    let mut seen = std::collections::HashSet::new();
    let mut rows = Vec::new();
    for row in answers.iter().flat_map(|answer| answer.iter()) {
        let identity = row.record.clone().unwrap_or_else(|| row.bytes().clone());
        if seen.insert(identity) {
            rows.push(row.clone());
        }
    }
    Arc::new(rows)
}
