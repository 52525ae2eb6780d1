//! The index plan and the shard key, on small models whose right answer is known.

use model::plan::shard::{simulate, simulate_counts};
use model::plan::{Plan, plan};
use model::problem::Sources;
use std::path::Path;

fn model(text: &str) -> model::Model {
    match model::parse(Sources::single("model.sheaf.kdl", text)) {
        Ok(checked) => checked.model,
        Err(problems) => panic!("{problems}"),
    }
}

fn sample(name: &str) -> model::Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    model::load(&path).unwrap_or_else(|error| panic!("{error}")).model
}

fn indexes(plan: &Plan, collection: &str) -> Vec<String> {
    let plan = plan.collection(collection).unwrap_or_else(|| panic!("no collection {collection}"));
    plan.indexes.iter().map(|index| index.describe()).collect()
}

const ORDER: &str = r#"
entity user { expect count=1_000 }
entity order collection=orders {
  expect count=1_000_000 growth="10_000/day"
  ref userId to=user
  field a string; field b string; field c string
  field total long size=8
  field createdAt date
  field tags string list max=5
  field labels string list max=5
  enum status created paid shipped signed
  enum kind normal special rare top="95%"
}
"#;

fn orders(queries: &str) -> Vec<String> {
    indexes(&plan(&model(&format!("{ORDER}{queries}")), None), "orders")
}

#[test]
fn equality_then_sort_then_range() {
    let got = orders("query q on=order { equal userId; range total; sort createdAt; limit 20 }");
    assert_eq!(got, ["{ userId: 1, createdAt: 1, total: 1 }"]);
}

#[test]
fn a_few_values_count_as_equality_and_many_as_a_range() {
    let few = orders("query q on=order { in status max=200; sort \"-createdAt\"; limit 20 }");
    assert_eq!(few, ["{ status: 1, createdAt: -1 }"]);
    let many = orders("query q on=order { in userId max=201; sort \"-createdAt\"; limit 20 }");
    assert_eq!(many, ["{ createdAt: -1, userId: 1 }"]);
}

#[test]
fn a_true_prefix_is_merged() {
    let got = orders(
        "query one on=order { equal userId; limit 20 }
         query two on=order { equal userId status; limit 20 }
         query three on=order { equal userId status; sort \"-createdAt\"; limit 20 }",
    );
    assert_eq!(got, ["{ userId: 1, status: 1, createdAt: -1 }"]);
}

#[test]
fn a_c_is_not_a_prefix_of_a_b_c() {
    let got = orders("query long on=order { equal a b c; limit 1 }\nquery short on=order { equal a c; limit 1 }");
    // The equality paths of the longer query may stand in any order, so that one index can serve both.
    assert_eq!(got, ["{ a: 1, c: 1, b: 1 }"]);
    let got = orders(
        "query long on=order { equal a; sort b c; limit 1 }
         query short on=order { equal a; sort c; limit 1 }",
    );
    assert_eq!(got, ["{ a: 1, b: 1, c: 1 }", "{ a: 1, c: 1 }"]);
}

#[test]
fn an_index_is_read_in_both_directions_but_only_as_a_whole() {
    let got = orders(
        "query up on=order { equal userId; sort createdAt total; limit 5 }
         query down on=order { equal userId; sort \"-createdAt\" \"-total\"; limit 5 }",
    );
    assert_eq!(got, ["{ userId: 1, createdAt: -1, total: -1 }"], "one of the two directions is enough");
    let got = orders(
        "query up on=order { equal userId; sort createdAt total; limit 5 }
         query mixed on=order { equal userId; sort createdAt \"-total\"; limit 5 }",
    );
    assert_eq!(got.len(), 2, "{got:?}");
}

#[test]
fn a_range_that_chooses_little_goes_first_with_a_reason() {
    let text = "query q on=order { equal status; range total share=\"0.01%\"; sort createdAt; limit 20 }";
    let plan = plan(&model(&format!("{ORDER}{text}")), None);
    let index = &plan.collection("orders").expect("planned").indexes[0];
    assert_eq!(index.describe(), "{ status: 1, total: 1, createdAt: 1 }");
    assert!(index.notes.iter().any(|note| note.contains("the range stands before the sort")), "{:?}", index.notes);
    let wide = orders("query q on=order { equal status; range total share=\"50%\"; sort createdAt; limit 20 }");
    assert_eq!(wide, ["{ status: 1, createdAt: 1, total: 1 }"]);
}

#[test]
fn a_rare_constant_makes_a_partial_index_and_a_frequent_one_a_key() {
    let rare = orders("query q on=order { where kind rare; sort createdAt; limit 5 }");
    assert_eq!(rare, ["{ createdAt: 1 }, only where kind = \"rare\""]);
    let frequent = orders("query q on=order { where kind normal; sort createdAt; limit 5 }");
    assert_eq!(frequent, ["{ kind: 1, createdAt: 1 }"]);
}

#[test]
fn a_small_answer_read_much_is_covered() {
    let got =
        orders("query q on=order rate=\"100/s\" { equal userId; sort createdAt; limit 20; fields total createdAt }");
    assert_eq!(got, ["{ userId: 1, createdAt: 1, total: 1 }"]);
    let seldom =
        orders("query q on=order rate=\"1/h\" { equal userId; sort createdAt; limit 20; fields total createdAt }");
    assert_eq!(seldom, ["{ userId: 1, createdAt: 1 }"]);
    let array = orders("query q on=order rate=\"100/s\" { equal userId; limit 20; fields tags }");
    assert_eq!(array, ["{ userId: 1 }"], "an array can't be covered");
}

#[test]
fn two_arrays_are_never_in_one_index() {
    let got = orders("query q on=order { equal tags labels; limit 20 }");
    assert_eq!(got.len(), 1);
    assert!(!(got[0].contains("tags") && got[0].contains("labels")), "{got:?}");
}

#[test]
fn unique_keys_and_the_end_of_life_have_their_indexes() {
    let model = model(
        r#"entity session collection=sessions {
             field token string required unique
             field expiresAt date
             expire expiresAt after="1d"
           }
           query q on=session { equal token }"#,
    );
    assert_eq!(
        indexes(&plan(&model, None), "sessions"),
        ["{ expiresAt: 1 }, expires 1d after the date", "{ token: 1 }, unique"]
    );
}

#[test]
fn the_shop_has_the_indexes_that_its_queries_need() {
    let plan = plan(&sample("shop"), None);
    assert_eq!(
        indexes(&plan, "orders"),
        [
            "{ status: 1, createdAt: -1 }",
            "{ userId: 1, createdAt: -1 }",
            "{ userId: 1, orderNumber: 1 }, unique",
            "{ userId: 1, status: 1, createdAt: -1 }",
        ]
    );
    assert_eq!(indexes(&plan, "logistics"), ["{ orderId: 1, time: -1 }", "{ parcelId: 1, time: -1 }"]);
    assert_eq!(indexes(&plan, "sessions"), ["{ expiresAt: 1 }, expires 0s after the date", "{ userId: 1 }"]);
}

#[test]
fn an_edge_is_indexed_from_both_ends() {
    let plan = plan(&sample("social"), None);
    let follows = indexes(&plan, "follows");
    assert!(follows.contains(&"{ followerId: 1, followeeId: 1 }, unique".to_owned()), "{follows:?}");
    assert!(follows.iter().any(|index| index.starts_with("{ followeeId: 1")), "{follows:?}");
}

#[test]
fn one_big_buyer_is_a_chunk_that_cannot_be_split() {
    // 40 % of the documents have one value of a key that is this field alone.
    let alone = simulate(10_000, 0.4, false, false, false, 8);
    assert!(alone.skew() > 3.0, "{alone:?}");
    let with_id = simulate(10_000, 0.4, true, false, false, 8);
    assert!((with_id.skew() - 1.0).abs() < 1e-9, "{with_id:?}");
    let hashed = simulate(10_000, 0.4, false, false, true, 8);
    assert!(hashed.skew() > 3.0, "hashing doesn't split a value: {hashed:?}");
}

#[test]
fn an_increasing_key_sends_all_inserts_to_one_shard() {
    assert!((simulate(1_000_000, 0.0, true, true, false, 8).busiest_inserts - 1.0).abs() < 1e-9);
    assert!(simulate(1_000_000, 0.0, true, false, true, 8).busiest_inserts < 0.14);
}

#[test]
fn few_values_cannot_fill_many_shards() {
    let status = simulate_counts(&[900, 50, 30, 20], false, false, false, 8);
    assert_eq!(status.data.iter().filter(|share| **share == 0.0).count(), 4);
}

#[test]
fn the_plan_chooses_the_buyer_not_the_date_or_the_status() {
    let text = r#"
entity user { expect count=1_000_000 }
entity order collection=orders {
  expect count=5_000_000 growth="20_000/day"
  ref userId to=user { expect typical=5 max=20_000 }
  field createdAt date increasing
  enum status created paid shipped
  shard auto
}
query "mine" on=order rate="2_000/s" { equal userId; sort "-createdAt"; limit 20 }
query "period" on=order rate="1/min" { range createdAt; limit 100 }
query "open" on=order rate="1/s" { equal status; limit 100 }
"#;
    let plan = plan(&model(text), Some(8));
    let shard = plan.collection("orders").and_then(|plan| plan.shard.as_ref()).expect("a shard key");
    assert_eq!(shard.chosen.fields[0], "userId");
    assert!(shard.chosen.targeted > 0.99);
    let against = |field: &str| {
        let candidate =
            shard.rejected.iter().find(|other| other.fields == [field] && !other.hashed).expect("a candidate");
        candidate.reason.clone()
    };
    assert!(against("createdAt").contains("all inserts go to one shard"), "{}", against("createdAt"));
    assert!(against("status").contains("only 3 different values"), "{}", against("status"));
}

#[test]
fn a_unique_number_rules_out_the_buyer_as_shard_key() {
    let text = r#"
entity user { expect count=1_000_000 }
entity order collection=orders {
  expect count=5_000_000
  ref userId to=user
  field orderNumber string required unique
}
query "mine" on=order rate="2_000/s" { equal userId; limit 20 }
query "one" on=order rate="1/s" { equal orderNumber }
"#;
    let plan = plan(&model(text), Some(4));
    let shard = plan.collection("orders").and_then(|plan| plan.shard.as_ref()).expect("a shard key");
    assert_eq!(shard.chosen.fields, ["orderNumber"]);
    let buyer = shard.rejected.iter().find(|other| other.fields == ["userId"]).expect("a candidate");
    assert!(buyer.reason.contains("unique key (orderNumber)"), "{}", buyer.reason);
}

#[test]
fn plans_of_the_samples_print() {
    for name in ["shop", "social", "blog", "chat", "metrics"] {
        let plan = plan(&sample(name), Some(8));
        assert!(!plan.render().is_empty());
        assert!(plan.to_json().contains("\"keys\""));
        if std::env::var_os("SHOW").is_some() {
            std::fs::write(format!("/tmp/plan-{name}.txt"), plan.render()).expect("written");
        }
    }
}
