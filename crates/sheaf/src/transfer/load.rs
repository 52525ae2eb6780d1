//! Loading what was dumped or copied elsewhere: around the hooks that keep a model, with an audit after it.
//!
//! Documents bring along what is kept in them: counts, copies, histories, versions, the ledger's lines. Inserting them as if
//! they were new would refuse or count them again, so in a folder they are written as they are, and what is wrong then (a part
//! of the collections may have been loaded) is put right by an audit. A server whose model is active can't be gone around.

use super::{Result, Trouble};
use crate::command::{complain, print};
use ::model::apply::active_model;
use ::model::audit::Auditor;
use ::model::keep::active;
use std::path::Path;
use store::Store;

/// Opens where to load into: a folder, created if need be, or a deployment on which no model of these databases is active.
pub(crate) async fn open(place: &str, databases: &[String]) -> Result<Store> {
    if !store::is_url(place) {
        return Ok(Store::embedded(active::open_around(Path::new(place), engine::Options::system())?));
    }
    let store = Store::connect(place).await?;
    if !store.capabilities().sheaf {
        return Ok(store);
    }
    for database in databases {
        let active = active_model(&store, database).await.map_err(|error| Trouble::Usage(error.to_string()))?;
        if active.1.is_some() {
            return Err(Trouble::Usage(format!(
                "the server keeps a model of {database}, which would count and copy again: load into its folder while it is \
                 stopped, or end the model first (insert its next version with `model: null` into sheaf.models)"
            )));
        }
    }
    Ok(store)
}

/// Audits what was loaded, unless loading was refused or broke off.
pub(crate) async fn then_audit(loaded: Result<()>, place: &str, json: bool) -> Result<()> {
    if matches!(loaded, Ok(()) | Err(Trouble::Differs(_))) {
        audit(place, json).await?;
    }
    loaded
}

/// Audits and repairs the databases of a folder with an active model.
async fn audit(place: &str, json: bool) -> Result<()> {
    if store::is_url(place) {
        return Ok(());
    }
    let failed = |error: ::model::Error| Trouble::Differs(format!("the audit after loading failed: {error}"));
    let (engine, models) = active::open(Path::new(place), engine::Options::system())?;
    let store = Store::embedded(engine.clone());
    let mut left = Vec::new();
    for database in models.databases() {
        let Some(model) = active_model(&store, &database).await.map_err(failed)?.1 else { continue };
        let mut auditor = Auditor::new(&store, &database, &model).map_err(failed)?;
        auditor.options.repair = true;
        for finding in auditor.run().await.map_err(failed)? {
            if finding.drifted > 0 && !json {
                let (name, drifted, repaired) = (&finding.declaration, finding.drifted, finding.repaired);
                complain(&format!("audit: {database}, {name}: {drifted} drifted, {repaired} put right\n"));
            }
            if finding.drifted > finding.repaired {
                left.push(format!("{database}, {}", finding.declaration));
            }
        }
        if !json {
            print(&format!("audited {database}: what its model keeps is true\n"));
        }
    }
    drop(store);
    engine.close()?;
    match left.is_empty() {
        true => Ok(()),
        false => Err(Trouble::Differs(format!("not put right: {}", left.join("; ")))),
    }
}
