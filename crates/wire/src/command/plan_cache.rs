//! `planCacheClear`, which forgets remembered plans, and `planCacheSetFilter`, `planCacheListFilters`, `planCacheClearFilters`,
//! which say what indexes queries of a shape may use.
//!
//! Where there is no such collection there is nothing to clear, whatever query is given.

use super::{Command, Context, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::{RawBson, RawBsonRef};
use engine::operation::{Find, Query};
use engine::{Error, Namespace, Result};

/// `planCacheClear`.
pub(crate) static CLEAR: Command = Command {
    name: "planCacheClear",
    help: "forgets the remembered plans of a collection",
    ignores_unknown_fields: true,
    rights: Rights::Collection(Action::PlanCacheWrite),
    run: Run::Now(|ctx, _| clear(ctx)),
    ..Command::DEFAULT
};

/// `planCacheSetFilter`.
pub(crate) static SET_FILTER: Command = Command {
    name: "planCacheSetFilter",
    help: "says which indexes queries of a shape may use",
    ignores_unknown_fields: true,
    rights: Rights::Collection(Action::PlanCacheIndexFilter),
    run: Run::Now(|ctx, _| set_filter(ctx)),
    ..Command::DEFAULT
};

/// `planCacheClearFilters`.
pub(crate) static CLEAR_FILTERS: Command = Command {
    name: "planCacheClearFilters",
    help: "removes index filters",
    ignores_unknown_fields: true,
    rights: Rights::Collection(Action::PlanCacheIndexFilter),
    run: Run::Now(|ctx, _| clear_filters(ctx)),
    ..Command::DEFAULT
};

/// `planCacheListFilters`.
pub(crate) static LIST_FILTERS: Command = Command {
    name: "planCacheListFilters",
    help: "lists the index filters of a collection",
    ignores_unknown_fields: true,
    rights: Rights::Collection(Action::PlanCacheIndexFilter),
    run: Run::Now(list_filters),
    ..Command::DEFAULT
};

arguments! {
    struct Shape<'a> {
        query: Option<RawBsonRef<'a>> = "query",
        sort: Option<RawBsonRef<'a>> = "sort",
        projection: Option<RawBsonRef<'a>> = "projection",
        collation: Option<RawBsonRef<'a>> = "collation",
        indexes: Option<RawBsonRef<'a>> = "indexes",
    }
}

/// The query of a shape. Arrays count as documents, as they do in MongoDB.
fn find(namespace: &Namespace, shape: &Shape<'_>) -> Result<Find> {
    let document = |name: &str, value: Option<RawBsonRef<'_>>| match value {
        None => Ok(None),
        Some(RawBsonRef::Document(document)) => Ok(Some(document.to_owned())),
        Some(RawBsonRef::Array(array)) => Ok(Some(RawDocument::from_bytes(array.as_bytes())?.to_owned())),
        Some(_) => Err(Error::bad_value(format!("optional {name} field must be an object"))),
    };
    let collation = match shape.collation {
        Some(RawBsonRef::Array(_)) => return Err(Error::bad_value("optional collation field must be an object")),
        other => document("collation", other)?,
    };
    if collation.as_ref().is_some_and(|collation| collation.is_empty()) {
        return Err(Error::bad_value("optional collation field must not be empty"));
    }
    let query = Query {
        filter: document("query", shape.query)?.unwrap_or_default(),
        sort: document("sort", shape.sort)?.filter(|sort| !sort.is_empty()),
        collation,
        ..Query::default()
    };
    let projection = document("projection", shape.projection)?.filter(|projection| !projection.is_empty());
    Ok(Find { query, projection, ..Find::new(namespace.clone()) })
}

/// The query whose shape is meant; none for all shapes. Not looked at where there is no collection.
fn asked(ctx: &Context<'_>, namespace: &Namespace) -> Result<Option<Find>> {
    let shape = Shape::parse(ctx)?;
    let null = |value: Option<RawBsonRef<'_>>| value.is_none_or(super::arguments::is_null);
    if ctx.shared.engine.state().catalog.get(namespace).is_none() {
        return Ok(None);
    }
    if null(shape.query) {
        if ctx.command.name == CLEAR_FILTERS.name
            && !(null(shape.sort) && null(shape.projection) && null(shape.collation))
        {
            return Err(Error::bad_value("sort, projection or collation provided without query"));
        }
        return Ok(None);
    }
    let shape = Shape {
        sort: given(shape.sort),
        projection: given(shape.projection),
        collation: given(shape.collation),
        ..shape
    };
    find(namespace, &shape).map(Some)
}

fn given(value: Option<RawBsonRef<'_>>) -> Option<RawBsonRef<'_>> {
    value.filter(|value| !super::arguments::is_null(*value))
}

fn clear(ctx: &mut Context<'_>) -> Result<()> {
    let namespace = ctx.collection()?;
    let find = asked(ctx, &namespace)?;
    ctx.shared.engine.clear_plans(&ctx.engine_context(), &namespace, find.as_ref())
}

fn set_filter(ctx: &mut Context<'_>) -> Result<()> {
    let namespace = ctx.collection()?;
    let shape = Shape::parse(ctx)?;
    if shape.query.is_none() {
        return Err(Error::bad_value("required field query missing"));
    }
    let find = find(&namespace, &shape)?;
    let Some(RawBsonRef::Array(array)) = shape.indexes else {
        return Err(Error::bad_value("required field indexes missing or no array"));
    };
    let mut indexes: Vec<RawBson> = Vec::new();
    for index in array {
        match index? {
            RawBsonRef::Document(pattern) if pattern.is_empty() => {
                return Err(Error::bad_value("each item in indexes must be a non-empty object or string"));
            }
            index @ (RawBsonRef::Document(_) | RawBsonRef::String(_)) => indexes.push(index.into()),
            _ => return Err(Error::bad_value("each item in indexes must be an object or string")),
        }
    }
    if indexes.is_empty() {
        return Err(Error::bad_value("required field indexes must contain at least one index"));
    }
    ctx.shared.engine.set_index_filter(&ctx.engine_context(), &find, indexes)
}

fn list_filters(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let namespace = ctx.collection()?;
    let filters = ctx.shared.engine.index_filters(&ctx.engine_context(), &namespace)?;
    reply.begin_array("filters");
    filters.iter().for_each(|filter| reply.push(filter));
    reply.end();
    Ok(())
}

fn clear_filters(ctx: &mut Context<'_>) -> Result<()> {
    let namespace = ctx.collection()?;
    let find = asked(ctx, &namespace)?;
    ctx.shared.engine.clear_index_filters(&ctx.engine_context(), &namespace, find.as_ref())
}
