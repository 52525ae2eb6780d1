//! Hostile input made from bytes, for the fuzzers in `fuzz/` and for the short run in `tests/fuzz.rs`.
//!
//! Each entry takes any bytes and must come back, never panic, and says whether it was an answer or an error. Frames, BSON and model files are fed as
//! they are. Filters, updates and pipelines are grown from the bytes with the engine's own operator tables as vocabulary, so
//! that most of them parse and run.

use bson::raw::{RawArrayBuf, RawBson};
use bson::spec::BinarySubtype;
use bson::{DateTime, RawDocument, RawDocumentBuf, Timestamp, rawdoc};
use engine::operation::{Aggregate, Find, Insert, Query, Update, UpdateStatement};
use engine::{Context, Engine, Namespace, Options, SessionContext};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// How deep what is grown may nest.
const MAX_DEPTH: u32 = 4;

/// No operation on a dozen documents takes longer; what does is stopped and counts as answered.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A frame as it comes from a socket: header, compression, message, sections.
pub fn frame(bytes: &[u8]) -> bool {
    wire::check_frame(bytes).is_ok()
}

/// A document as a client sends it: checked, stored, indexed and read back.
pub fn bson(bytes: &[u8]) -> bool {
    let Ok(document) = RawDocumentBuf::from_bytes(bytes.to_vec()) else { return false };
    in_transaction(|context| {
        let insert = Insert {
            namespace: namespace(),
            documents: vec![document],
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        if world().insert(context, insert).is_err() {
            return false;
        }
        let sorted = Query { sort: Some(rawdoc! { "a": 1, "b": -1 }), ..Query::default() };
        world().find(context, &Find { query: sorted, ..Find::new(namespace()) }).is_ok()
    })
}

/// A filter: parsed, planned and run, with an index and without; both must find the same.
pub fn filter(bytes: &[u8]) -> bool {
    let filter = Source::new(bytes).filter(0);
    let found = |hint: Option<RawBson>| {
        let query = Query { filter: filter.clone(), hint, ..Query::default() };
        let batch = world().find(&context(), &Find { query, ..Find::new(namespace()) }).ok()?;
        let mut ids: Vec<String> = batch.documents.iter().map(|bytes| id(bytes)).collect();
        ids.sort();
        Some(ids)
    };
    let (planned, scanned) = (found(None), found(Some(RawBson::Document(rawdoc! { "$natural": 1 }))));
    let (Some(planned), Some(scanned)) = (planned, scanned) else { return false };
    assert_eq!(planned, scanned, "by index and by scan: {filter:?}");
    true
}

/// An update: parsed and run in a transaction that is aborted.
pub fn update(bytes: &[u8]) -> bool {
    let mut source = Source::new(bytes);
    let query = Query { filter: source.filter(MAX_DEPTH - 1), ..Query::default() };
    let update = match source.below(5) {
        0 => RawBson::Array(source.pipeline(MAX_DEPTH - 1)),
        _ => RawBson::Document(source.update()),
    };
    let (multi, upsert) = (source.below(2) == 0, source.below(3) == 0);
    let statement = UpdateStatement { query, update, multi, upsert, array_filters: Vec::new() };
    let update = Update {
        namespace: namespace(),
        statements: vec![statement],
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    in_transaction(|context| {
        world().update(context, &update).and_then(engine::Written::wait).is_ok_and(|reply| reply.errors.is_empty())
    })
}

/// A pipeline: parsed, optimised and run.
pub fn pipeline(bytes: &[u8]) -> bool {
    let pipeline = Source::new(bytes).pipeline(0);
    world().aggregate(&context(), &Aggregate::new(namespace(), pipeline)).is_ok()
}

/// A model file.
pub fn model(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    model::parse(model::problem::Sources::single("fuzz.sheaf.kdl", text)).is_ok()
}

fn namespace() -> Namespace {
    Namespace::new("fuzz", "things").expect("a valid name")
}

fn context() -> Context {
    Context { deadline: Instant::now().checked_add(TIME_LIMIT), ..Context::default() }
}

fn id(document: &[u8]) -> String {
    let document = RawDocument::from_bytes(document).expect("the engine gives documents");
    format!("{:?}", document.get("_id"))
}

fn in_transaction(run: impl FnOnce(&Context) -> bool) -> bool {
    static NUMBER: AtomicI64 = AtomicI64::new(1);
    let session = SessionContext {
        id: [7; 16],
        user: [0; 32],
        txn_number: Some(NUMBER.fetch_add(1, Ordering::SeqCst)),
        in_transaction: true,
        start_transaction: true,
        ahead: false,
        begun: std::sync::Arc::default(),
    };
    let mut context = Context { session: Some(session), ..context() };
    let done = run(&context);
    if let Some(session) = &mut context.session {
        session.start_transaction = false;
    }
    let _ = world().abort_transaction(&context);
    done
}

/// The engine with what everything runs on.
fn world() -> &'static Engine {
    static WORLD: OnceLock<Engine> = OnceLock::new();
    WORLD.get_or_init(|| {
        let engine = Engine::in_memory(Options::system()).expect("memory");
        let indexes = [
            rawdoc! { "key": { "a": 1, "b": -1 }, "name": "a_b" },
            rawdoc! { "key": { "c": 1 }, "name": "c", "sparse": true },
            rawdoc! { "key": { "d.$**": 1 }, "name": "d" },
            rawdoc! { "key": { "b": "hashed" }, "name": "b" },
            rawdoc! { "key": { "a.b": 1 }, "name": "ab", "partialFilterExpression": { "c": { "$exists": true } } },
        ];
        engine
            .create_indexes(&Context::default(), &namespace(), &indexes)
            .and_then(engine::Written::wait)
            .expect("indexes");
        let insert = Insert {
            namespace: namespace(),
            documents: documents(),
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        engine.insert(&Context::default(), insert).and_then(engine::Written::wait).expect("documents");
        engine
    })
}

fn documents() -> Vec<RawDocumentBuf> {
    let mut documents = vec![
        rawdoc! { "_id": 1, "a": 1, "b": "x", "c": [1, 2, 3], "d": { "a": 1.5 } },
        rawdoc! { "_id": 2, "a": { "b": 2 }, "b": "y", "c": [], "d": { "b": [1, { "c": 2 }] } },
        rawdoc! { "_id": "three", "a": [{ "b": 1 }, { "b": [2, 3] }], "b": RawBson::Null, "d": "text" },
        rawdoc! { "_id": { "k": 1 }, "a": -5_i64, "b": 3, "c": { "0": 7, "a": "ÄÖ\u{10ffff}" } },
        rawdoc! { "_id": true, "a": "2024-02-29", "b": DateTime::from_millis(1_709_164_800_000), "c": [[1], [[2]]] },
    ];
    for (number, value) in EDGES.iter().enumerate() {
        documents.push(
            rawdoc! { "_id": 100 + number as i32, "a": edge(*value), "b": edge(value + 1), "c": [edge(value + 2)] },
        );
    }
    documents
}

/// Numbers of the values at the edges of their types.
const EDGES: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn edge(number: usize) -> RawBson {
    match number % 18 {
        0 => RawBson::Int32(i32::MIN),
        1 => RawBson::Int64(i64::MAX),
        2 => RawBson::Int64(i64::MIN),
        3 => RawBson::Double(f64::NAN),
        4 => RawBson::Double(f64::NEG_INFINITY),
        5 => RawBson::Double(-0.0),
        6 => RawBson::Double(9.3e18),
        7 => RawBson::Decimal128("9.999999999999999999999999999999999E+6144".parse().expect("a decimal")),
        8 => RawBson::Decimal128("NaN".parse().expect("a decimal")),
        9 => RawBson::MinKey,
        10 => RawBson::MaxKey,
        11 => RawBson::Timestamp(Timestamp { time: u32::MAX, increment: 1 }),
        12 => RawBson::DateTime(DateTime::from_millis(i64::MAX)),
        13 => RawBson::DateTime(DateTime::from_millis(i64::MIN)),
        14 => RawBson::ObjectId(bson::oid::ObjectId::from_bytes([9; 12])),
        15 => RawBson::Binary(bson::Binary { subtype: BinarySubtype::Uuid, bytes: vec![1; 16] }),
        16 => RawBson::Undefined,
        _ => RawBson::JavaScriptCode(String::from("f")),
    }
}

const FIELDS: &[&str] = &["a", "b", "c", "d", "_id", "a.b", "c.0", "d.b.c", "d.a", "", "a..b", "x", "a.$", "c.$[]"];

const WORDS: &[&str] = &[
    "x",
    "",
    "y",
    "a",
    "2024-02-29T12:00:00Z",
    "%Y-%m-%dT%H:%M:%S.%LZ",
    "%",
    "Europe/Paris",
    "+25:00",
    "day",
    "week",
    "month",
    "int",
    "decimal",
    "objectId",
    "bool",
    "^a.*(",
    "(?i)x",
    "ÄÖ",
    "\u{0}",
    "$a",
    "$$ROOT",
    "$$this",
    "$$nothing",
    "$",
    "array",
    "approximate",
];

const ARGUMENTS: &[&str] = &[
    "input",
    "in",
    "cond",
    "initialValue",
    "onError",
    "onNull",
    "to",
    "format",
    "date",
    "dateString",
    "unit",
    "amount",
    "timezone",
    "startDate",
    "endDate",
    "binSize",
    "startOfWeek",
    "n",
    "sortBy",
    "output",
    "vars",
    "as",
    "if",
    "then",
    "else",
    "branches",
    "default",
    "find",
    "replacement",
    "regex",
    "options",
    "chars",
    "field",
    "value",
    "p",
    "method",
    "year",
    "month",
    "day",
    "hour",
    "isoWeekYear",
    "inputs",
    "useLongestLength",
    "defaults",
    "case",
    "limit",
    "iso8601",
    "millisecond",
];

/// Bytes that decide; zeros when they are used up.
struct Source<'a> {
    bytes: &'a [u8],
}

impl Source<'_> {
    fn new(bytes: &[u8]) -> Source<'_> {
        Source { bytes }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % bound.max(1)
    }

    fn one<'v>(&mut self, of: &[&'v str]) -> &'v str {
        of[self.below(of.len())]
    }

    fn value(&mut self, depth: u32) -> RawBson {
        match self.below(14) {
            0 => RawBson::Int32(self.below(7) as i32 - 2),
            1 => RawBson::Double(self.below(100) as f64 / 8.0 - 2.0),
            2 => RawBson::String(self.one(WORDS).to_owned()),
            3 => RawBson::Null,
            4 => RawBson::Boolean(self.below(2) == 0),
            5 => RawBson::DateTime(DateTime::from_millis(self.below(60_000) as i64 * 86_400_000)),
            6 | 7 => edge(self.below(18)),
            8 => RawBson::RegularExpression(bson::Regex {
                pattern: cstring(self.one(WORDS)),
                options: cstring(self.one(&["", "i", "m", "x", "s", "u", "z"])),
            }),
            9 | 10 if depth < MAX_DEPTH => {
                let length = self.below(4);
                RawBson::Array((0..length).map(|_| self.value(depth + 1)).collect())
            }
            11 | 12 if depth < MAX_DEPTH => {
                let mut document = RawDocumentBuf::new();
                for _ in 0..self.below(3) {
                    put(&mut document, self.one(FIELDS), self.value(depth + 1));
                }
                RawBson::Document(document)
            }
            _ => RawBson::String(format!("${}", self.one(FIELDS))),
        }
    }

    fn filter(&mut self, depth: u32) -> RawDocumentBuf {
        let mut filter = RawDocumentBuf::new();
        for _ in 0..=self.below(2) {
            if depth < MAX_DEPTH && self.below(4) == 0 {
                match self.below(5) {
                    0 => put(&mut filter, "$expr", self.expression(depth + 1)),
                    1 => put(&mut filter, "$jsonSchema", self.schema(depth + 1)),
                    which => {
                        let parts: RawArrayBuf = (0..=self.below(3)).map(|_| self.filter(depth + 1)).collect();
                        put(&mut filter, ["$and", "$or", "$nor"][which - 2], RawBson::Array(parts));
                    }
                }
            } else {
                let condition = self.condition(depth);
                put(&mut filter, self.one(FIELDS), condition);
            }
        }
        filter
    }

    fn condition(&mut self, depth: u32) -> RawBson {
        if self.below(4) == 0 {
            return self.value(depth);
        }
        let mut condition = RawDocumentBuf::new();
        for _ in 0..=self.below(2) {
            let name = engine::filter::OPERATORS[self.below(engine::filter::OPERATORS.len())].name;
            let argument = match name {
                "$in" | "$nin" | "$all" => RawBson::Array((0..self.below(4)).map(|_| self.value(depth + 1)).collect()),
                "$not" | "$elemMatch" if depth < MAX_DEPTH && self.below(2) == 0 => self.condition(depth + 1),
                "$elemMatch" if depth < MAX_DEPTH => RawBson::Document(self.filter(depth + 1)),
                "$exists" => RawBson::Boolean(self.below(2) == 0),
                "$mod" => RawBson::Array((0..2).map(|_| self.value(MAX_DEPTH)).collect()),
                _ => self.value(depth),
            };
            put(&mut condition, name, argument);
        }
        RawBson::Document(condition)
    }

    fn schema(&mut self, depth: u32) -> RawBson {
        let mut schema = RawDocumentBuf::new();
        for _ in 0..=self.below(2) {
            let keyword = self.one(&[
                "bsonType",
                "type",
                "required",
                "properties",
                "items",
                "minimum",
                "maxLength",
                "pattern",
                "enum",
                "anyOf",
                "not",
                "additionalProperties",
                "uniqueItems",
                "minItems",
                "multipleOf",
                "dependencies",
                "patternProperties",
            ]);
            let value = match keyword {
                "properties" | "patternProperties" | "dependencies" if depth < MAX_DEPTH => {
                    let mut properties = RawDocumentBuf::new();
                    put(&mut properties, self.one(FIELDS), self.schema(depth + 1));
                    RawBson::Document(properties)
                }
                "items" | "not" | "additionalProperties" if depth < MAX_DEPTH => self.schema(depth + 1),
                "anyOf" if depth < MAX_DEPTH => RawBson::Array((0..2).map(|_| self.schema(depth + 1)).collect()),
                "bsonType" | "type" => {
                    RawBson::String(self.one(&["int", "string", "object", "array", "number", "nothing"]).to_owned())
                }
                "required" | "enum" => RawBson::Array((0..2).map(|_| self.value(MAX_DEPTH)).collect()),
                _ => self.value(MAX_DEPTH),
            };
            put(&mut schema, keyword, value);
        }
        RawBson::Document(schema)
    }

    fn expression(&mut self, depth: u32) -> RawBson {
        if depth >= MAX_DEPTH || self.below(4) == 0 {
            return self.value(depth);
        }
        let operators = engine::expression::OPERATORS;
        let name = operators[self.below(operators.len())].name;
        let argument = match self.below(3) {
            0 => self.expression(depth + 1),
            1 => RawBson::Array((0..self.below(4)).map(|_| self.expression(depth + 1)).collect()),
            _ => {
                let mut arguments = RawDocumentBuf::new();
                for _ in 0..=self.below(4) {
                    put(&mut arguments, self.one(ARGUMENTS), self.expression(depth + 1));
                }
                RawBson::Document(arguments)
            }
        };
        let mut expression = RawDocumentBuf::new();
        put(&mut expression, name, argument);
        RawBson::Document(expression)
    }

    fn accumulator(&mut self, depth: u32) -> RawBson {
        let kinds = engine::accumulator::ACCUMULATORS;
        let name = kinds[self.below(kinds.len())].name;
        let argument = match self.below(2) {
            0 => self.expression(depth + 1),
            _ => RawBson::Document(rawdoc! {
                "n": self.value(MAX_DEPTH), "input": self.expression(depth + 1), "output": self.expression(depth + 1),
                "sortBy": { "a": 1 }, "p": [0.5], "method": "approximate",
            }),
        };
        let mut accumulator = RawDocumentBuf::new();
        put(&mut accumulator, name, argument);
        if self.below(4) == 0 {
            let bounds = RawBson::Array((0..2).map(|_| self.value(MAX_DEPTH)).collect());
            put(&mut accumulator, "window", RawBson::Document(rawdoc! { "documents": bounds }));
        }
        RawBson::Document(accumulator)
    }

    fn pipeline(&mut self, depth: u32) -> RawArrayBuf {
        (0..=self.below(3)).map(|_| self.stage(depth)).collect()
    }

    fn stage(&mut self, depth: u32) -> RawDocumentBuf {
        // What writes, waits or looks at the process is tested elsewhere.
        const LEFT_OUT: &[&str] =
            &["$out", "$merge", "$changeStream", "$currentOp", "$listSessions", "$listLocalSessions"];
        let names: Vec<_> =
            engine::stage::STAGES.iter().map(|stage| stage.name).filter(|name| !LEFT_OUT.contains(name)).collect();
        let name = self.one(&names);
        let field = self.one(FIELDS);
        let key = cstring(field);
        let deeper = (depth + 1).min(MAX_DEPTH);
        let spec = match name {
            "$match" => RawBson::Document(self.filter(deeper)),
            "$project" | "$addFields" | "$set" => RawBson::Document(rawdoc! { key: self.expression(deeper) }),
            "$group" => RawBson::Document(rawdoc! { "_id": self.expression(deeper), "f": self.accumulator(deeper) }),
            "$setWindowFields" => RawBson::Document(rawdoc! {
                "partitionBy": self.expression(deeper), "sortBy": { key: 1 }, "output": { "f": self.accumulator(deeper) },
            }),
            "$bucket" => RawBson::Document(rawdoc! {
                "groupBy": self.expression(deeper), "boundaries": [self.value(deeper), self.value(deeper)], "default": self.value(deeper),
            }),
            "$bucketAuto" => {
                RawBson::Document(rawdoc! { "groupBy": self.expression(deeper), "buckets": self.value(MAX_DEPTH) })
            }
            "$sort" => RawBson::Document(rawdoc! { key: if self.below(2) == 0 { 1 } else { -1 } }),
            "$unwind" => RawBson::Document(
                rawdoc! { "path": format!("${field}"), "preserveNullAndEmptyArrays": self.below(2) == 0 },
            ),
            "$lookup" if depth < 2 => RawBson::Document(rawdoc! {
                "from": "things", "localField": field, "foreignField": self.one(FIELDS), "as": "joined",
                "pipeline": self.pipeline(MAX_DEPTH - 1),
            }),
            "$graphLookup" => RawBson::Document(rawdoc! {
                "from": "things", "startWith": self.expression(deeper), "connectFromField": field, "connectToField": self.one(FIELDS),
                "as": "graph", "maxDepth": self.below(3) as i32,
            }),
            "$facet" if depth < 2 => RawBson::Document(rawdoc! { "f": self.pipeline(MAX_DEPTH - 1) }),
            "$densify" => RawBson::Document(rawdoc! {
                "field": field, "range": { "step": self.value(MAX_DEPTH), "bounds": [self.value(MAX_DEPTH), self.value(MAX_DEPTH)] },
            }),
            "$fill" => RawBson::Document(rawdoc! { "sortBy": { "_id": 1 }, "output": { key: { "method": "linear" } } }),
            "$sortByCount" | "$redact" | "$replaceWith" => self.expression(deeper),
            "$replaceRoot" => RawBson::Document(rawdoc! { "newRoot": self.expression(deeper) }),
            "$documents" => RawBson::Array((0..2).map(|_| self.value(deeper)).collect()),
            "$limit" | "$skip" => RawBson::Int32(self.below(9) as i32),
            _ => self.value(deeper),
        };
        let mut stage = RawDocumentBuf::new();
        put(&mut stage, name, spec);
        stage
    }

    fn update(&mut self) -> RawDocumentBuf {
        let mut update = RawDocumentBuf::new();
        for _ in 0..=self.below(2) {
            let name = engine::update::OPERATORS[self.below(engine::update::OPERATORS.len())].name;
            let mut fields = RawDocumentBuf::new();
            for _ in 0..=self.below(2) {
                let value = match self.below(4) {
                    0 => self.modifiers(),
                    1 => self.condition(MAX_DEPTH - 1),
                    _ => self.value(MAX_DEPTH - 2),
                };
                put(&mut fields, self.one(FIELDS), value);
            }
            put(&mut update, name, RawBson::Document(fields));
        }
        update
    }

    fn modifiers(&mut self) -> RawBson {
        let mut modifiers = RawDocumentBuf::new();
        for _ in 0..=self.below(3) {
            let name = self.one(&["$each", "$slice", "$sort", "$position", "and", "or", "xor", "$type"]);
            put(&mut modifiers, name, self.value(MAX_DEPTH - 1));
        }
        RawBson::Document(modifiers)
    }
}

/// Appends a field unless it is there: what a document with one name twice means is tested by `bson`.
fn put(document: &mut RawDocumentBuf, name: &str, value: impl Into<RawBson>) {
    if matches!(document.get(name), Ok(None)) {
        document.append(cstring(name), value.into());
    }
}

/// A text without what a name cannot hold.
fn cstring(text: &str) -> bson::raw::CString {
    text.replace('\0', "").try_into().expect("no zero byte is left")
}
