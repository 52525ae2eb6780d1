//! `validate`: compares a collection's documents with its indexes and says what is wrong.
//!
//! There is nothing to repair with: what `validate` finds is a fault of ours or of the medium, and the way out is a backup, or
//! dropping the index and building it again.

use super::arguments::Truth;
use super::{Command, Context, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocumentBuf;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use engine::operation::{CollectionInfo, Validation};
use engine::{Code, Error, Namespace, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "validate",
    help: "checks a collection and its indexes",
    ignores_unknown_fields: true,
    rights: Rights::Collection(Action::Validate),
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        full: Truth = "full",
        background: Truth = "background",
        repair: Truth = "repair",
        metadata: Truth = "metadata",
        fix_multikey: Truth = "fixMultikey",
        check_bson: Truth = "checkBSONConformance",
        enforce_fast_count: Truth = "enforceFastCount",
        scan_data: Option<RawBsonRef<'a>> = "scandata",
    }
}

impl Arguments<'_> {
    /// Refuses options that make no sense together or here.
    fn check(&self) -> Result<()> {
        let refuse = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
        if self.background.0 && self.full.0 {
            return refuse(
                "Running the validate command with both { background: true } and { full: true } is not supported.",
            );
        }
        if self.metadata.0 && (self.full.0 || self.background.0 || self.check_bson.0) {
            return refuse(
                "Running the validate command with { metadata: true } is not supported with any other option",
            );
        }
        if self.repair.0 || self.fix_multikey.0 {
            return refuse(
                "Running the validate command with { repair: true } or { fixMultikey: true } requires a standalone server",
            );
        }
        Ok(())
    }
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let namespace = ctx.collection()?;
    let arguments = Arguments::parse(ctx)?;
    arguments.check()?;
    let context = ctx.engine_context();
    reply.put("ns", namespace.to_string().as_str());
    if arguments.metadata.0 {
        return metadata(ctx, &namespace, reply);
    }
    put_uuid(&ctx.shared.engine.collection(&context, &namespace)?, reply);
    let found = ctx.shared.engine.validate(&context, &namespace)?;
    reply.put("nInvalidDocuments", found.invalid_documents as i32);
    reply.put("nNonCompliantDocuments", 0);
    reply.put("nrecords", found.records as i32);
    reply.put("nIndexes", found.indexes.len() as i32);
    write_indexes(&found, reply);
    write_result(&found, reply);
    Ok(())
}

/// What can be said without looking at documents.
fn metadata(ctx: &Context<'_>, namespace: &Namespace, reply: &mut Writer) -> Result<()> {
    let info = ctx.shared.engine.collection(&ctx.engine_context(), namespace)?;
    let collection = &info.collection;
    if collection.is_view() {
        let message = format!("Cannot validate a view: {namespace}");
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
    }
    put_uuid(&info, reply);
    let id = usize::from(!collection.settings.clustered);
    reply.put("nIndexes", (collection.indexes.len() + id) as i32);
    reply.begin("keysPerIndex");
    reply.end();
    reply.begin("indexDetails");
    reply.end();
    write_result(&Validation::default(), reply);
    Ok(())
}

fn put_uuid(info: &CollectionInfo, reply: &mut Writer) {
    reply.put("uuid", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &info.collection.uuid });
}

fn write_indexes(found: &Validation, reply: &mut Writer) {
    reply.begin("keysPerIndex");
    found.indexes.iter().for_each(|index| reply.put(&index.name, index.keys as i32));
    reply.end();
    reply.begin("indexDetails");
    for index in &found.indexes {
        reply.begin(&index.name);
        reply.put("valid", index.errors.is_empty());
        reply.put("spec", &index.spec);
        if !index.errors.is_empty() {
            reply.put_strings("errors", index.errors.iter().map(String::as_str));
        }
        reply.end();
    }
    reply.end();
}

fn write_result(found: &Validation, reply: &mut Writer) {
    reply.put("valid", found.is_valid());
    reply.put("repaired", false);
    reply.put("repairMode", "None");
    reply.put_strings("warnings", found.warnings.iter().map(String::as_str));
    reply.put_strings("errors", found.errors.iter().map(String::as_str));
    write_entries("extraIndexEntries", &found.extra_entries, reply);
    write_entries("missingIndexEntries", &found.missing_entries, reply);
    reply.begin_array("corruptRecords");
    found.corrupt_records.iter().for_each(|record| reply.push(record));
    reply.end();
}

fn write_entries(name: &str, entries: &[RawDocumentBuf], reply: &mut Writer) {
    reply.begin_array(name);
    entries.iter().for_each(|entry| reply.push(entry));
    reply.end();
}
