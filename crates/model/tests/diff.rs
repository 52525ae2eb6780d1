//! What a change of the model means for a live database, and in which order.

use model::diff::{Step, diff, render};
use model::problem::Sources;

fn model(text: &str) -> model::Model {
    model::parse(Sources::single("model.sheaf.kdl", text)).unwrap_or_else(|problems| panic!("{problems}")).model
}

const OLD: &str = r#"
entity user collection=users { field name string; field age int; field nick string; ref bestId to=user }
entity order collection=orders { ref userId to=user; field total long }
entity draft collection=drafts { field text string }
query "mine" on=order { equal userId; limit 20 }
"#;

const NEW: &str = r#"
entity user collection=users {
  field name string required
  field age long
  ref bestId to=user
  count orderCount of=order by=userId
}
entity order collection=orders {
  ref userId to=user
  field total long
  live buyer via=userId { fields name }
}
entity note collection=notes { ref userId to=user; field text string }
query "mine" on=order { equal userId; sort total; limit 20 }
query "notes" on=note { equal userId; limit 20 }
"#;

#[test]
fn the_same_model_needs_no_step() {
    assert_eq!(diff(&model(OLD), &model(OLD)), []);
    assert_eq!(render(&[]), "nothing changes\n");
}

#[test]
fn additions_come_first_then_backfills_then_what_removes() {
    let steps: Vec<String> = diff(&model(OLD), &model(NEW)).iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        [
            "create collection notes",
            "create index on notes: { userId: 1 }",
            "create index on orders: { userId: 1, total: 1 }",
            "let the validator of orders accept old and new documents",
            "let the validator of users accept old and new documents",
            "backfill orders.buyer.name (live)",
            "backfill users.orderCount (count)",
            "convert users.age from int to long",
            "give old documents of users the required field name",
            "activate the new model",
            "let the validator of orders accept new documents only",
            "let the validator of users accept new documents only",
            "drop field users.nick (only with --drop)",
            "drop index of orders: { userId: 1 } (only with --drop)",
            "drop collection drafts (only with --drop)",
        ]
    );
}

#[test]
fn a_changed_filter_is_a_new_count() {
    let old = "entity user { count n of=order by=userId }\nentity order { ref userId to=user; field paid bool }";
    let new = old.replace("by=userId }", "by=userId { where paid #true } }");
    let steps = diff(&model(old), &model(&new));
    assert!(
        steps.contains(&Step::Backfill { collection: "user".into(), field: "n".into(), by: "count".into() }),
        "{steps:?}"
    );
}

#[test]
fn a_change_that_only_concerns_expectations_needs_no_backfill() {
    let old = "entity user { expect count=5; field name string }";
    let steps = diff(&model(old), &model(&old.replace("count=5", "count=6")));
    assert_eq!(steps, [Step::Activate]);
}
