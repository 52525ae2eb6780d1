//! What a view's definition may not be: a cycle, too long a chain, or a pipeline that no view can have.

use super::aggregate::{MAX_VIEW_DEPTH, parse_pipeline};
use crate::catalog::{Catalog, Settings, View};
use crate::error::{Code, Error, Result};
use crate::expression::Parser;
use crate::namespace::Namespace;
use crate::stage::Place;
use bson::{RawArrayBuf, RawDocument};
use std::collections::BTreeSet;

/// Refuses the options of a view that can't be one. Options of a collection pass.
///
/// # Errors
/// `GraphContainsCycle` (5), `ViewDepthLimitExceeded` (165), `InvalidNamespace` (73) for what it is on, and what the
/// stages refuse.
pub(super) fn check_view(catalog: &Catalog, namespace: &Namespace, options: &RawDocument) -> Result<()> {
    let settings = Settings::parse(options)?;
    let Some(view) = &settings.view else { return Ok(()) };
    if view.on.is_empty() || view.on.starts_with(['.', '$']) || view.on.contains('\0') {
        let message = format!("Invalid namespace for 'viewOn': '{}.{}'", namespace.database, view.on);
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    let mut level = reads(namespace, view, &settings)?;
    for _ in 0..MAX_VIEW_DEPTH {
        if level.contains(namespace) {
            return Err(Error::new(
                Code::GRAPH_CONTAINS_CYCLE,
                format!("View cycle detected: {namespace} is defined on itself, directly or through other views"),
            ));
        }
        let views = level.iter().filter_map(|below| catalog.get(below)).filter(|below| below.is_view());
        let mut next = BTreeSet::new();
        let mut ended = true;
        for below in views {
            ended = false;
            if let Some(view) = &below.settings.view {
                next.extend(reads(&below.namespace, view, &below.settings)?);
            }
        }
        if ended {
            return Ok(());
        }
        level = next;
    }
    Err(Error::new(
        Code::VIEW_DEPTH_LIMIT_EXCEEDED,
        format!("View depth limit exceeded; at most {MAX_VIEW_DEPTH} views may stand on each other at {namespace}"),
    ))
}

/// The collections and views that a view reads itself.
fn reads(namespace: &Namespace, view: &View, settings: &Settings) -> Result<BTreeSet<Namespace>> {
    let below = Namespace { database: namespace.database.clone(), collection: view.on.clone() };
    let definition: RawArrayBuf = view.pipeline.iter().cloned().collect();
    let parsed = parse_pipeline(&definition, &mut Parser::new(), settings.collation.clone(), &below, Place::View)?;
    Ok(parsed.reads().into_iter().chain([below]).collect())
}
