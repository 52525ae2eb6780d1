//! Collections in memory for pipelines in golden scripts.
#![allow(clippy::unwrap_used)]

use bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf};
use engine::document::Row;
use engine::expression::{Environment, Parser};
use engine::filter::Filter;
use engine::namespace::Namespace;
use engine::stage::context::Report;
use engine::stage::{
    Collections, ParseContext, Pipeline, Place, Rows, StageContext, UniqueIndex, Write, WriteOutcome,
    context::MEMORY_BYTES,
};
use engine::update::{Update, UpdateContext};
use engine::{Code, Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Runs a pipeline on documents.
pub(crate) fn run_pipeline(documents: &Bson, stages: &Bson, options: &RawDocumentBuf) -> Result<Vec<RawDocumentBuf>> {
    let memory = Arc::new(Memory::default());
    let options = Bson::try_from(bson::RawBson::Document(options.clone())).unwrap();
    let options = options.as_document().unwrap();
    if let Ok(others) = options.get_document("collections") {
        for (name, documents) in others {
            memory.collections.lock().unwrap().insert(name.clone(), raw_documents(documents));
        }
    }
    let collection = if options.contains_key("database") { "" } else { "main" };
    memory.collections.lock().unwrap().insert("main".to_owned(), raw_documents(documents));
    let namespace = Namespace { database: "test".to_owned(), collection: collection.to_owned() };
    let wrapped = RawDocumentBuf::try_from(&bson::doc! { "p": stages.clone() }).unwrap();
    let mut parser = Parser::new();
    let mut parse = ParseContext {
        parser: &mut parser,
        collator: None,
        namespace: namespace.clone(),
        place: Place::Top,
        depth: 0,
        in_facet: false,
    };
    let pipeline = Arc::new(Pipeline::parse(wrapped.get_array("p").unwrap(), &mut parse)?);
    let memory_bytes = options.get_i32("memory").map_or(MEMORY_BYTES, |bytes| usize::try_from(bytes).unwrap());
    let context = Arc::new(StageContext {
        environment: Environment::fixed(),
        namespace: namespace.clone(),
        collections: memory.clone(),
        memory_bytes,
        allow_disk_use: options.get_bool("allowDiskUse").unwrap_or(true),
        spill_folder: std::env::temp_dir(),
        interrupt: Arc::new(|| Ok(())),
    });
    let rows = if pipeline.has_source() {
        pipeline.open_source(&context)?
    } else {
        memory.aggregate(&namespace, &pipeline, &context)?
    };
    let results = all(rows)?;
    match options.get_str("show") {
        Ok(name) => Ok(memory.documents(name)),
        Err(_) => Ok(results),
    }
}

fn raw_documents(documents: &Bson) -> Vec<RawDocumentBuf> {
    let documents = documents.as_array().unwrap().iter();
    documents.map(|document| RawDocumentBuf::try_from(document.as_document().unwrap()).unwrap()).collect()
}

fn all(mut rows: Rows) -> Result<Vec<RawDocumentBuf>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(row.document().to_owned());
    }
    Ok(found)
}

#[derive(Default)]
struct Memory {
    collections: Mutex<BTreeMap<String, Vec<RawDocumentBuf>>>,
}

impl Memory {
    fn documents(&self, name: &str) -> Vec<RawDocumentBuf> {
        self.collections.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    fn rows(&self, name: &str) -> Rows {
        Box::new(engine::stage::Ready::new(self.documents(name).into_iter().map(Row::from).collect()))
    }
}

impl Collections for Memory {
    fn aggregate(&self, namespace: &Namespace, pipeline: &Arc<Pipeline>, context: &Arc<StageContext>) -> Result<Rows> {
        if pipeline.has_source() {
            return pipeline.open_source(context);
        }
        pipeline.open(0, self.rows(&namespace.collection), context)
    }

    fn has_index(&self, _: &Namespace, path: &str, _: &StageContext) -> Result<bool> {
        Ok(path == "_id")
    }

    fn matching(
        &self,
        namespace: &Namespace,
        path: &str,
        value: RawBsonRef<'_>,
        context: &Arc<StageContext>,
    ) -> Result<Rows> {
        let mut condition = RawDocumentBuf::new();
        engine::document::append(&mut condition, "$eq", value)?;
        let mut filter = RawDocumentBuf::new();
        engine::document::append(&mut filter, path, RawBsonRef::Document(&condition))?;
        let filter = Filter::parse(&filter, &mut Parser::new(), None)?;
        let mut rows = Vec::new();
        for document in self.documents(&namespace.collection) {
            if filter.matches(&document, &context.environment)? {
                rows.push(Row::from(document));
            }
        }
        Ok(Box::new(engine::stage::Ready::new(rows)))
    }

    fn unique_index(&self, _: &Namespace, fields: &[String], _: &StageContext) -> Result<Option<UniqueIndex>> {
        Ok((fields == ["_id"] || fields == ["key"]).then_some(UniqueIndex { sparse: false }))
    }

    fn check_writable(&self, _: &Namespace, _: bool, _: &StageContext) -> Result<()> {
        Ok(())
    }

    fn write(&self, target: &Namespace, writes: Vec<Write>, context: &StageContext) -> Result<Vec<WriteOutcome>> {
        let mut collections = self.collections.lock().unwrap();
        let documents = collections.entry(target.collection.clone()).or_default();
        writes.into_iter().map(|write| write_one(documents, write, context)).collect()
    }

    fn replace(&self, target: &Namespace, rows: Rows, _: Option<&RawDocument>, _: &Arc<StageContext>) -> Result<()> {
        let documents = all(rows)?;
        self.collections.lock().unwrap().insert(target.collection.clone(), documents);
        Ok(())
    }

    fn report(&self, _: Report, _: &RawDocument, _: &StageContext) -> Result<Vec<RawDocumentBuf>> {
        Ok(vec![bson::rawdoc! { "report": true }])
    }
}

fn write_one(documents: &mut Vec<RawDocumentBuf>, write: Write, context: &StageContext) -> Result<WriteOutcome> {
    let (filter, update, variables, insert) = match write {
        Write::Insert(document) => {
            let same = |known: &RawDocumentBuf| known.get("_id").unwrap() == document.get("_id").unwrap();
            if documents.iter().any(same) {
                return Err(Error::new(Code::DUPLICATE_KEY, "duplicate key"));
            }
            documents.push(document);
            return Ok(WriteOutcome { matched: false });
        }
        Write::Update { filter, update, variables, insert } => (filter, update, variables, insert),
    };
    let mut parser = Parser::new();
    let mut environment = context.environment.clone();
    for field in &variables {
        let (name, value) = field?;
        let value = engine::document::Value::Owned(value.into());
        environment.variables.push((parser.define(name.as_str()), value));
    }
    let filter = Filter::parse(&filter, &mut parser, None)?;
    let update = Update::parse(update.as_raw_bson_ref(), &[], &mut parser, None)?;
    for document in documents.iter_mut() {
        if filter.matches(document, &environment)? {
            if let Some(after) = update.apply(document, &UpdateContext::new(&environment, None))? {
                *document = after;
            }
            return Ok(WriteOutcome { matched: true });
        }
    }
    documents.extend(insert);
    Ok(WriteOutcome { matched: false })
}
