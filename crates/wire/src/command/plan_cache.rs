//! `planCacheClear`, `planCacheListFilters`, `planCacheClearFilters`: plans that are remembered.
//!
//! Plans are chosen by measured trial, so there are no filters that would say which indexes a query may use: listing them
//! finds none and clearing them does nothing. Setting one is refused.

use super::documents::to_owned;
use super::{Command, Context, Run, arguments};
use crate::auth::{Action, Rights};
use bson::RawDocument;
use bson::raw::RawBsonRef;
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

/// `planCacheClearFilters`.
pub(crate) static CLEAR_FILTERS: Command = Command {
    name: "planCacheClearFilters",
    help: "removes index filters: there are none",
    ignores_unknown_fields: true,
    rights: Rights::Collection(Action::PlanCacheIndexFilter),
    run: Run::Now(|ctx, _| clear_filters(ctx)),
    ..Command::DEFAULT
};

/// `planCacheListFilters`.
pub(crate) static LIST_FILTERS: Command = Command {
    name: "planCacheListFilters",
    help: "lists index filters: there are none",
    ignores_unknown_fields: true,
    rights: Rights::Collection(Action::PlanCacheIndexFilter),
    run: Run::Now(|ctx, reply| {
        ctx.collection()?;
        reply.put_strings("filters", []);
        Ok(())
    }),
    ..Command::DEFAULT
};

arguments! {
    struct Shape<'a> {
        query: Option<RawBsonRef<'a>> = "query",
        sort: Option<RawBsonRef<'a>> = "sort",
        projection: Option<RawBsonRef<'a>> = "projection",
        collation: Option<RawBsonRef<'a>> = "collation",
    }
}

/// The parts of a query's shape that a command gives.
struct Given<'a> {
    query: Option<&'a RawDocument>,
    sort: Option<&'a RawDocument>,
    projection: Option<&'a RawDocument>,
    collation: Option<&'a RawDocument>,
}

fn given<'a>(ctx: &Context<'a>) -> Result<Given<'a>> {
    let shape = Shape::parse(ctx)?;
    let document = |name: &str, value: Option<RawBsonRef<'a>>| match value {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => Ok(None),
        Some(RawBsonRef::Document(document)) => Ok(Some(document)),
        Some(_) => Err(Error::bad_value(format!("optional {name} field must be an object"))),
    };
    Ok(Given {
        query: document("query", shape.query)?,
        sort: document("sort", shape.sort)?,
        projection: document("projection", shape.projection)?,
        collation: document("collation", shape.collation)?,
    })
}

fn clear(ctx: &mut Context<'_>) -> Result<()> {
    let namespace = ctx.collection()?;
    let shape = Shape::parse(ctx)?;
    let has_query = shape.query.is_some_and(|query| !super::arguments::is_null(query));
    let find = has_query.then(|| given(ctx).map(|given| find(&namespace, &given))).transpose()?;
    ctx.shared.engine.clear_plans(&ctx.engine_context(), &namespace, find.as_ref())
}

fn find(namespace: &Namespace, given: &Given<'_>) -> Find {
    let query = Query {
        filter: to_owned(given.query).unwrap_or_default(),
        sort: to_owned(given.sort.filter(|sort| !sort.is_empty())),
        collation: to_owned(given.collation.filter(|collation| !collation.is_empty())),
        ..Query::default()
    };
    Find { query, projection: to_owned(given.projection), ..Find::new(namespace.clone()) }
}

fn clear_filters(ctx: &mut Context<'_>) -> Result<()> {
    ctx.collection()?;
    let given = given(ctx)?;
    if given.query.is_none() && (given.sort.is_some() || given.projection.is_some() || given.collation.is_some()) {
        return Err(Error::bad_value("sort, projection or collation provided without query"));
    }
    Ok(())
}
