//! What a deployment can't guarantee is refused before anything is done.

use crate::language::live::Sync;
use crate::model::{Body, Model};
use crate::value::Duration;
use store::Capabilities;

/// Who writes to a deployment's kept collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Anybody.
    Any,
    /// Only Sheaf's services, which carry the model in their own transactions.
    ServicesOnly,
}

/// What a model declares that can't hold there, each with what to do; nothing where the server keeps the model itself.
///
/// `audit_every` is how often the deployment is audited and repaired: without change streams nothing else brings copies
/// up to date.
pub fn refusals(model: &Model, can: &Capabilities, writers: Writers, audit_every: Duration) -> Vec<String> {
    let mut list = Vec::new();
    if can.hooks || can.sheaf {
        return list;
    }
    for entity in &model.entities {
        copies(&entity.name, &entity.body, can, writers, audit_every, &mut list);
        for stock in entity.parts.stocks.iter().filter(|stock| stock.kept) {
            list.push(format!(
                "`{}.{}`: a `kept` stock refuses what would go below zero in the write itself, and a keeper comes after the \
                 write: leave out `kept` and let a service move it in transactions, or use Sheaf as the server",
                entity.name, stock.name
            ));
        }
        for stock in entity.parts.stocks.iter().filter(|stock| !stock.kept && !can.transactions) {
            list.push(format!(
                "`{}.{}`: a stock and its ledger change together, which needs transactions: a replica set or a sharded cluster",
                entity.name, stock.name
            ));
        }
    }
    list
}

fn copies(at: &str, body: &Body, can: &Capabilities, writers: Writers, audit_every: Duration, list: &mut Vec<String>) {
    for live in &body.lives {
        let name = live.name.clone().unwrap_or_else(|| format!("live({})", live.via));
        match live.sync {
            Sync::Txn { .. } if !can.transactions => list.push(format!(
                "`{at}.{name}`: a `txn` copy needs transactions: declare it with max-lag, or use a replica set"
            )),
            Sync::Txn { .. } if writers == Writers::Any => list.push(format!(
                "`{at}.{name}`: other writers' changes can't take a `txn` copy along: declare it with max-lag, or say \
                 --services-only if nobody else writes there"
            )),
            Sync::Lag { max } if !can.change_streams && max.ms < audit_every.ms => list.push(format!(
                "`{at}.{name}`: without change streams copies follow at each audit, every {audit_every}; max-lag is {max}: \
                 raise it, or audit more often (--audit-every)"
            )),
            _ => {}
        }
    }
    for embed in &body.embeds {
        copies(&format!("{at}.{}", embed.name), &embed.body, can, writers, audit_every, list);
    }
    for field in &body.fields {
        copies(&format!("{at}.{}", field.name), &field.body, can, writers, audit_every, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Sources;

    const MODEL: &str = r#"
entity author { field name string }
entity post {
  ref authorId to=author { expect typical=20 max=900 }
  live author via=authorId txn max=1_000 { fields name }
}
entity comment { ref authorId to=author; live via=authorId max-lag="1m" { field by from=name } }
entity sku { stock left ledger=ledger; stock there kept ledger=movements }
"#;

    fn refused(transactions: bool, change_streams: bool, writers: Writers, minutes: u64) -> Vec<String> {
        let model = crate::parse(Sources::single("m.sheaf.kdl", MODEL)).unwrap_or_else(|problems| panic!("{problems}"));
        let can = Capabilities {
            transactions,
            change_streams,
            retryable_writes: true,
            sharded: false,
            hooks: false,
            sheaf: false,
            wire_version: 25,
        };
        let all = refusals(&model.model, &can, writers, Duration { ms: minutes * 60_000 });
        all.into_iter().map(|text| text.split('`').nth(1).expect("a name").to_owned()).collect()
    }

    #[test]
    fn what_a_deployment_cannot_keep_is_refused_by_name() {
        assert_eq!(refused(true, true, Writers::ServicesOnly, 60), ["sku.there"]);
        assert_eq!(refused(true, true, Writers::Any, 60), ["post.author", "sku.there"]);
        assert_eq!(refused(true, false, Writers::ServicesOnly, 60), ["comment.live(authorId)", "sku.there"]);
        assert_eq!(refused(true, false, Writers::ServicesOnly, 1), ["sku.there"], "audited often enough");
        assert_eq!(
            refused(false, false, Writers::ServicesOnly, 60),
            ["comment.live(authorId)", "post.author", "sku.there", "sku.left"]
        );
    }
}
