//! `convertToCapped` and `cloneCollectionAsCapped`.

use super::documents::refuse_reserved;
use super::{Command, Context, Later, Path, Run, arguments};
use crate::auth::{Action, Resource, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Namespace, Result};

/// The largest capped collection: 1 PB.
const MAX_SIZE_BYTES: i64 = 1 << 50;

/// `convertToCapped`.
pub(crate) static CONVERT: Command = Command {
    name: "convertToCapped",
    help: "turns a collection into a capped one with its newest documents",
    ignores_unknown_fields: true,
    writes: true,
    rights: Rights::Collection(Action::ConvertToCapped),
    run: Run::Later(convert),
    ..Command::DEFAULT
};

/// `cloneCollectionAsCapped`.
pub(crate) static CLONE: Command = Command {
    name: "cloneCollectionAsCapped",
    help: "copies the newest documents of a collection into a new capped one",
    ignores_unknown_fields: true,
    writes: true,
    rights: Rights::Custom(clone_rights),
    run: Run::Later(clone),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        size: Option<RawBsonRef<'a>> = "size",
    }
}

arguments! {
    struct CloneArguments<'a> {
        target: Option<&'a str> = "toCollection",
        size: Option<RawBsonRef<'a>> = "size",
    }
}

/// A capped collection's size from the command's `size`.
fn size(ctx: &Context<'_>, size: Option<RawBsonRef<'_>>) -> Result<i64> {
    let size = size.and_then(super::number).unwrap_or(0);
    if size <= 0 {
        let message = format!("{} needs a size above zero, in bytes", ctx.called);
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if size > MAX_SIZE_BYTES {
        return Err(Error::bad_value(format!("Capped collection max size cannot exceed {MAX_SIZE_BYTES} bytes")));
    }
    Ok(size)
}

/// The collection that is copied. Its name may be one that no collection can have: then there is none.
fn source(ctx: &Context<'_>) -> Result<Namespace> {
    let value = ctx.value()?;
    let name = value.as_str().ok_or_else(|| {
        let kind = super::type_name(value.element_type());
        let is_clone = ctx.command.name == CLONE.name;
        let code = if is_clone { Code::TYPE_MISMATCH } else { Code::INVALID_NAMESPACE };
        Error::new(code, format!("collection name has invalid type {kind}"))
    })?;
    if name.starts_with("system.buckets.") {
        let message = format!("{name} belongs to a time-series collection and can't be capped");
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    ctx.collection()
}

fn convert<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = source(ctx)?;
        refuse_reserved(&namespace)?;
        if namespace.collection == "system.views" {
            return Err(Error::bad_value("system.views can't be capped"));
        }
        let size = size(ctx, Arguments::parse(ctx)?.size)?;
        ctx.shared.engine.convert_to_capped(&ctx.engine_context(), &namespace, size)?.durable().await
    })
}

fn target(ctx: &Context<'_>) -> Result<(Namespace, Option<i64>)> {
    let arguments = CloneArguments::parse(ctx)?;
    let target = arguments.target.ok_or_else(|| Error::type_mismatch("'toCollection' must be of type String"))?;
    let target = Namespace::new(ctx.database(), target)?;
    Ok((target, size(ctx, arguments.size).ok()))
}

fn clone_rights(ctx: &Context<'_>) -> Result<Vec<(Action, Resource)>> {
    let on = |namespace: &Namespace| Resource::namespace(&namespace.database, &namespace.collection);
    let (target, _) = target(ctx)?;
    Ok(vec![(Action::Find, on(&source(ctx)?)), (Action::Insert, on(&target)), (Action::CreateCollection, on(&target))])
}

fn clone<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let source = source(ctx)?;
        let (target, _) = target(ctx)?;
        refuse_reserved(&target)?;
        let size = size(ctx, CloneArguments::parse(ctx)?.size)?;
        if target.collection.starts_with("system.buckets.") {
            let message = format!("{target} is reserved for time-series collections");
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        let path = Path { parent: "cloneCollectionAsCapped", field: "toCollection" };
        if target.collection.contains('$') {
            return Err(Error::new(Code::INVALID_NAMESPACE, format!("{path}: no collection can be called {target}")));
        }
        ctx.shared.engine.clone_as_capped(&ctx.engine_context(), &source, &target, size)?.durable().await
    })
}
