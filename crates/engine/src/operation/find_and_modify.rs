//! `findAndModify`: one document changed or deleted, and given as it was before or is after.

use super::Query;
use super::delete::Deleted;
use super::update::{ChangedOne, Done, UpdateStatement};
use crate::context::Context;
use crate::database::{Engine, Inner, Written};
use crate::document::{append, get};
use crate::error::Result;
use crate::namespace::Namespace;
use crate::projection::{Mode, Projection};
use crate::statement::id_of;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

/// What to find and what to do with it.
#[derive(Clone, Debug)]
pub struct FindAndModify {
    /// Where.
    pub namespace: Namespace,
    /// Which document; the first in its order.
    pub query: Query,
    /// What to do with it.
    pub modification: Modification,
    /// Which parts of it to give.
    pub fields: Option<RawDocumentBuf>,
    /// Whether the validator is passed by.
    pub bypass_document_validation: bool,
    /// `stmtId`.
    pub statement_id: i32,
}

/// What to do with the document found.
#[derive(Clone, Debug)]
pub enum Modification {
    /// It goes.
    Remove,
    /// It changes.
    Update {
        /// Operators, a replacement or a pipeline.
        update: RawBson,
        /// Whether a document is inserted when none is found.
        upsert: bool,
        /// Whether to give the document after, not before.
        new: bool,
        /// `arrayFilters`.
        array_filters: Vec<RawDocumentBuf>,
    },
}

/// What was found and done.
#[derive(Debug, Default)]
pub struct FindAndModifyReply {
    /// The document, projected.
    pub value: Option<RawDocumentBuf>,
    /// How many documents changed, went or came: 0 or 1.
    pub n: i32,
    /// For an update: whether a document was there before.
    pub updated_existing: Option<bool>,
    /// The `_id` that an upsert inserted.
    pub upserted: Option<RawBson>,
}

impl Engine {
    /// Finds one document, changes or deletes it, and gives it.
    ///
    /// # Errors
    /// An invalid query or update, and what writing refuses.
    pub fn find_and_modify(&self, context: &Context, arguments: &FindAndModify) -> Result<Written<FindAndModifyReply>> {
        self.inner.find_and_modify(context, arguments)
    }
}

impl Inner {
    fn find_and_modify(
        self: &Arc<Inner>,
        context: &Context,
        arguments: &FindAndModify,
    ) -> Result<Written<FindAndModifyReply>> {
        super::insert::refuse_system(&arguments.namespace)?;
        match &arguments.modification {
            Modification::Remove => self.find_and_remove(context, arguments),
            Modification::Update { update, upsert, new, array_filters } => {
                let statement = UpdateStatement {
                    query: arguments.query.clone(),
                    update: update.clone(),
                    multi: false,
                    upsert: *upsert,
                    array_filters: array_filters.clone(),
                };
                self.find_and_update(context, arguments, &statement, *new)
            }
        }
    }

    fn find_and_remove(
        self: &Arc<Inner>,
        context: &Context,
        arguments: &FindAndModify,
    ) -> Result<Written<FindAndModifyReply>> {
        let describe = |document: &RawDocument| {
            let reply = FindAndModifyReply { value: Some(document.to_owned()), n: 1, ..FindAndModifyReply::default() };
            reply.to_record()
        };
        let done =
            self.delete_one(context, &arguments.namespace, &arguments.query, arguments.statement_id as u32, &describe)?;
        let mut reply = match done.reply {
            Deleted::Nothing => FindAndModifyReply::default(),
            Deleted::Now(document) => {
                FindAndModifyReply { value: Some(document), n: 1, ..FindAndModifyReply::default() }
            }
            Deleted::Before(record) => FindAndModifyReply::from_record(&record),
        };
        reply.value = self.projected(arguments, reply.value)?;
        Ok(Written { reply, ticket: done.ticket })
    }

    fn find_and_update(
        self: &Arc<Inner>,
        context: &Context,
        arguments: &FindAndModify,
        statement: &UpdateStatement,
        new: bool,
    ) -> Result<Written<FindAndModifyReply>> {
        let collection = self.catalog_for_write(context)?.get(&arguments.namespace).cloned();
        if let Some(series) = collection.as_ref().filter(|collection| collection.settings.series.is_some()) {
            return Err(crate::series::refuse_update(series, "findAndModify can only remove"));
        }
        let mut prepared = self.prepare_update(statement, collection.as_deref())?;
        prepared.bypass_validation = arguments.bypass_document_validation;
        self.projected(arguments, None)?;
        let describe = |changed: &ChangedOne| FindAndModifyReply::of(changed, new).to_record();
        let done =
            self.change_one(context, &arguments.namespace, &prepared, arguments.statement_id as u32, &describe)?;
        let mut reply = match done.reply {
            Done::Now(changed) => FindAndModifyReply::of(&changed, new),
            Done::Before(record) => FindAndModifyReply::from_record(&record),
        };
        reply.value = self.projected(arguments, reply.value)?;
        Ok(Written { reply, ticket: done.ticket })
    }

    /// The document as `fields` wants it.
    fn projected(&self, arguments: &FindAndModify, value: Option<RawDocumentBuf>) -> Result<Option<RawDocumentBuf>> {
        let Some(fields) = arguments.fields.as_deref().filter(|fields| fields.iter().next().is_some()) else {
            return Ok(value);
        };
        let mut parsed = self.parse_query(&arguments.query, None)?;
        let projection = Projection::parse(fields, Some(&parsed.filter), &mut parsed.parser, Mode::Find)?;
        let Some(value) = value else { return Ok(None) };
        let position = parsed.filter.matched_position(&value, &parsed.environment)?.map(|found| found.1);
        Ok(Some(projection.apply(&value, &parsed.environment, position)?))
    }
}

impl FindAndModifyReply {
    fn of(changed: &ChangedOne, new: bool) -> FindAndModifyReply {
        let Some(changed) = changed else {
            return FindAndModifyReply { updated_existing: Some(false), ..FindAndModifyReply::default() };
        };
        let upserted = match &changed.before {
            Some(_) => None,
            None => id_of(&changed.after).ok().map(RawBson::from),
        };
        let value = if new { Some(changed.after.clone()) } else { changed.before.clone() };
        FindAndModifyReply { value, n: 1, updated_existing: Some(upserted.is_none()), upserted }
    }

    fn to_record(&self) -> RawDocumentBuf {
        let mut record = RawDocumentBuf::new();
        let mut put = |name, value| append(&mut record, name, value).expect("the names are ours");
        put("n", RawBsonRef::Int32(self.n));
        if let Some(value) = &self.value {
            put("v", RawBsonRef::Document(value));
        }
        if let Some(updated_existing) = self.updated_existing {
            put("e", RawBsonRef::Boolean(updated_existing));
        }
        if let Some(id) = &self.upserted {
            put("u", id.as_raw_bson_ref());
        }
        record
    }

    fn from_record(record: &RawDocument) -> FindAndModifyReply {
        FindAndModifyReply {
            value: record.get_document("v").ok().map(RawDocument::to_owned),
            n: record.get_i32("n").unwrap_or(0),
            updated_existing: record.get_bool("e").ok(),
            upserted: get(record, "u").ok().flatten().map(RawBson::from),
        }
    }
}
