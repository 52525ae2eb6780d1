//! The advice agrees with what is known to be right: numbers, sizes, dates, and the rule table.

use jiff::civil::{Date, date};
use model::advise::ask::{Conversation, Say};
use model::advise::decide::{Design, QUESTIONS, decide, decide_copy};
use model::advise::forecast::{element_bytes, forecast};
use model::advise::relation::{Reads, Relation, Wanted, Writes};
use model::advise::thresholds::Thresholds;
use model::advise::{Advice, advise};
use model::problem::Sources;
use model::size::{MAX_DOCUMENT_BYTES, array_bytes, array_capacity};
use std::path::Path;

const TODAY: Date = date(2026, 1, 1);

fn model(text: &str) -> model::Model {
    model::parse(Sources::single("model.sheaf.kdl", text)).unwrap_or_else(|problems| panic!("{problems}")).model
}

fn sample(name: &str) -> Advice {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    let model = model::load(&path).unwrap_or_else(|error| panic!("{error}")).model;
    let advice = advise(&model, &Thresholds::default(), TODAY);
    if std::env::var_os("SHOW").is_some() {
        std::fs::write(format!("/tmp/advise-{name}.txt"), advice.render()).expect("written");
    }
    advice
}

fn chosen(advice: &Advice, name: &str) -> Design {
    let decision = advice.decision(name).unwrap_or_else(|| panic!("no decision on `{name}`"));
    decision.chosen.design
}

/// A relation of an article and its comments, with the counts given.
fn comments(typical: u64, max: u64, growth_per_day: f64) -> Relation {
    Relation {
        name: "article.comment".into(),
        parent: "article".into(),
        child: "comment".into(),
        declared: "reference",
        parents: 100_000,
        typical,
        max,
        growth_per_day,
        bound: None,
        element_bytes: 280,
        document_bytes: 300,
        parent_bytes: 12_000,
        many_to_many: false,
        shared_by: 1,
        reads: Reads { parent_with: 500.0, shown: 10, pages: 50.0, page: 50, ..Reads::default() },
        writes: Writes { inserts: 0.1, ..Writes::default() },
    }
}

#[test]
fn a_document_of_an_id_and_followers_holds_844_414_of_them() {
    let around = 5 + (2 + 3 + 12) + (2 + 9);
    assert_eq!(array_capacity(MAX_DOCUMENT_BYTES - around, 12), 844_414);
    let bytes = around + array_bytes(150_000, 12);
    assert!((2_850_000..2_950_000).contains(&bytes), "150,000 take about 2.9 MB, not {bytes}");
    assert_eq!(element_bytes(150_000, 12), 20, "an id in a long array takes about 20 bytes, its key included");
}

#[test]
fn messages_in_their_channel_meet_16_mib_after_about_840_and_84_days() {
    for (per_day, days) in [(100.0, 840.0), (1_000.0, 84.0)] {
        let reach = forecast(60, 200, per_day, 0, None, TODAY).sixteen_mib.expect("a date");
        assert!((reach.days - days).abs() / days < 0.01, "{per_day} a day: {reach:?}");
    }
}

#[test]
fn typical_50_and_rare_50_000_call_for_recent_with_overflow() {
    let decision = decide(&comments(50, 50_000, 0.0), &Thresholds::default(), TODAY);
    assert_eq!(decision.chosen.design, Design::Recent { keep: 10 }, "{decision:#?}");
    let embed = decision.rejected.iter().find(|other| other.design == Design::Embed).expect("embed is rejected");
    assert!(embed.reason.contains("50000"), "{}", embed.reason);
}

#[test]
fn a_few_children_under_control_are_embedded() {
    let mut few = comments(5, 50, 0.0);
    few.reads.pages = 0.0;
    assert_eq!(decide(&few, &Thresholds::default(), TODAY).chosen.design, Design::Embed);
}

#[test]
fn what_grows_without_bound_is_not_embedded_however_small_it_is_now() {
    let decision = decide(&comments(5, 20, 100.0), &Thresholds::default(), TODAY);
    assert_ne!(decision.chosen.design, Design::Embed);
    let embed = decision.rejected.iter().find(|other| other.design == Design::Embed).expect("embed is rejected");
    assert!(embed.reason.contains("grows without bound"), "{}", embed.reason);
    assert!(embed.reason.contains("2027"), "the date stands in the reason: {}", embed.reason);
}

#[test]
fn followers_are_an_edge_at_any_size() {
    for max in [10, 1_000, 5_000_000] {
        let relation = Relation { many_to_many: true, ..comments(5.min(max), max, 0.0) };
        assert_eq!(decide(&relation, &Thresholds::default(), TODAY).chosen.design, Design::Edge, "{max} followers");
    }
}

#[test]
fn a_notice_for_a_million_users_is_referenced_never_embedded() {
    for bound in [None, Some(5)] {
        let relation = Relation {
            parents: 1_000_000,
            shared_by: 1_000_000,
            bound,
            reads: Reads { parent_with: 50_000.0, shown: 5, ..Reads::default() },
            ..comments(3, 5, 0.0)
        };
        let decision = decide(&relation, &Thresholds::default(), TODAY);
        assert_eq!(decision.chosen.design, Design::Reference);
        let embed = decision.rejected.iter().find(|other| other.design == Design::Embed).expect("embed is rejected");
        assert!(embed.reason.contains("1000000 documents"), "{}", embed.reason);
    }
}

#[test]
fn a_notice_embedded_in_a_million_users_is_found_in_a_model() {
    let model = model(
        r#"entity notice { expect count=2_000 growth="1/day"; field title string size=40 }
           entity user {
             expect count=1_000_000
             embed notices many max=50 { ref noticeId to=notice { expect typical=1_000_000 max=1_000_000 }; snapshot via=noticeId { fields title } }
           }
           query "user" on=user rate="1_000/s" { equal _id }"#,
    );
    let advice = advise(&model, &Thresholds::default(), TODAY);
    assert_eq!(chosen(&advice, "user.notices"), Design::Reference);
}

#[test]
fn the_four_questions_are_asked_in_order() {
    let decision = decide(&comments(50, 50_000, 400.0), &Thresholds::default(), TODAY);
    let asked: Vec<&str> = decision.answers.iter().map(|answer| answer.question).collect();
    assert_eq!(asked, QUESTIONS);
    assert!(decision.answers[0].answer.starts_with("yes"), "{:?}", decision.answers);
    assert!(decision.answers[1].answer.starts_with("no"), "{:?}", decision.answers);
}

#[test]
fn a_bounded_history_that_changes_with_its_parent_is_embedded() {
    // The second branch of the usual decision tree ("updated alone, so reference") would forbid this.
    let relation = Relation {
        bound: Some(10),
        max: 10,
        typical: 5,
        element_bytes: 60,
        document_bytes: 100,
        parent_bytes: 900,
        reads: Reads { parent_with: 800.0, shown: 10, ..Reads::default() },
        writes: Writes { inserts: 1.0, changes: 0.5, ..Writes::default() },
        ..comments(5, 10, 0.0)
    };
    assert_eq!(decide(&relation, &Thresholds::default(), TODAY).chosen.design, Design::Embed);
}

fn name_in(holder: &str, of_the_moment: Option<bool>) -> Wanted {
    Wanted {
        name: format!("{holder}.name"),
        holder: holder.into(),
        source: "author".into(),
        via: "authorId".into(),
        fields: vec!["name".into()],
        declared: "reference",
        of_the_moment,
        typical: 50,
        max: 5_000,
        source_changes: 0.01,
        reads: 1_000.0,
        page: 20,
        inserts: 10.0,
        bytes: 30,
        holder_bytes: 400,
        source_bytes: 300,
    }
}

#[test]
fn a_product_name_in_an_order_is_a_snapshot_and_an_author_in_a_feed_a_live_copy() {
    let table = Thresholds::default();
    assert_eq!(decide_copy(&name_in("order", Some(true)), &table).chosen.design, Design::Snapshot);
    assert_eq!(decide_copy(&name_in("post", None), &table).chosen.design, Design::Live);
    let restless = Wanted { source_changes: 1_000.0, reads: 1.0, ..name_in("post", None) };
    assert_eq!(decide_copy(&restless, &table).chosen.design, Design::Reference);
}

#[test]
fn a_field_that_a_query_reads_along_is_decided_from_the_model() {
    let text = r#"
entity product { expect count=1_000 changes="10/day"; field name string size=20 }
entity order {
  expect count=100_000 growth="1_000/day"
  ref productId to=product { expect typical=100 max=5_000 }
  states status start=created { to paid from=created }
}
entity author { expect count=1_000 changes="10/day"; field name string size=20 }
entity post { expect count=100_000 growth="1_000/day"; ref authorId to=author { expect typical=100 max=5_000 } }
query "orders" on=order rate="100/s" { equal productId; limit 20; include productId { fields name } }
query "feed" on=post rate="1_000/s" { equal authorId; limit 20; include authorId { fields name } }
"#;
    let advice = advise(&model(text), &Thresholds::default(), TODAY);
    assert_eq!(chosen(&advice, "order.productId in query `orders`"), Design::Snapshot);
    assert_eq!(chosen(&advice, "post.authorId in query `feed`"), Design::Live);
}

#[test]
fn the_shop_follows_the_rule_table() {
    let advice = sample("shop");
    assert_eq!(chosen(&advice, "order.items"), Design::Embed, "order lines embed");
    assert_eq!(chosen(&advice, "order.items.imageUrl+productName"), Design::Snapshot, "product facts snapshot");
    assert_eq!(chosen(&advice, "order.userId -> user"), Design::Reference, "the user is referenced");
    assert_eq!(chosen(&advice, "logisticsEvent.orderId -> order"), Design::Reference, "logistics apart and paged");
    assert_ne!(chosen(&advice, "review.productId -> product"), Design::Embed, "reviews apart");
    assert_eq!(chosen(&advice, "product.tags"), Design::Embed, "tags embedded");
    assert_eq!(chosen(&advice, "user.coupons"), Design::Embed, "coupons embedded");
    assert_eq!(chosen(&advice, "review.username"), Design::Live);
}

#[test]
fn the_other_samples_agree_with_what_they_declare() {
    let social = sample("social");
    assert_eq!(chosen(&social, "follows: user -> user"), Design::Edge);
    assert_eq!(chosen(&social, "like.postId -> post"), Design::Edge);
    assert_eq!(chosen(&social, "post.author"), Design::Live);
    let blog = sample("blog");
    assert_eq!(chosen(&blog, "comment.articleId -> article"), Design::Recent { keep: 10 });
    sample("chat");
    sample("metrics");
}

#[test]
fn many_small_children_that_are_read_by_the_page_are_packed() {
    let text = r#"
entity conversation {
  expect count=2_000_000 growth="5_000/day"
  bucket chunks of=message by=conversationId order=sentAt items=30 bytes=65536 { fields text sentAt }
}
entity message {
  expect count=600_000_000 growth="2_000_000/day" size=200
  ref conversationId to=conversation on-delete=cascade required { expect typical=300 max=2_000_000 growth="1_000/day" }
  field text string required size=110
  field sentAt date required increasing
}
query "a page" on=message rate="5_000/s" { equal conversationId; range sentAt; sort "-sentAt"; limit 30 }
"#;
    let advice = advise(&model(text), &Thresholds::default(), TODAY);
    assert!(matches!(chosen(&advice, "message.conversationId -> conversation"), Design::Bucket { items: 30, .. }));
}

#[test]
fn every_decision_has_its_rejected_designs_with_a_reason() {
    for name in ["shop", "social", "blog", "chat", "metrics"] {
        let advice = sample(name);
        for decision in advice.relations.iter().chain(&advice.fields) {
            assert!(!decision.chosen.reason.is_empty(), "{name}: {}", decision.name);
            assert!(decision.chosen.cost_ms.is_finite(), "{name}: {}", decision.name);
            assert!(!decision.rejected.is_empty(), "{name}: {}", decision.name);
            assert!(decision.rejected.iter().all(|other| !other.reason.is_empty()), "{name}: {}", decision.name);
        }
        assert!(advice.to_json().contains("\"chosen\""));
    }
}

/// Answers the questions in order and gives what the conversation ends with.
fn talk(answers: &[&str]) -> (String, String) {
    let mut conversation = Conversation::new(Thresholds::default());
    for answer in answers {
        assert!(matches!(conversation.say(), Say::Ask { .. }), "{answer} comes too late");
        conversation.answer(answer).unwrap_or_else(|expected| panic!("{answer}: expected {expected}"));
    }
    match conversation.say() {
        Say::Done { design, declaration, .. } => {
            model(&declaration.replace("// the fields", "field text string //"));
            (design, declaration)
        }
        Say::Ask { question, .. } => panic!("one more question: {question}"),
    }
}

#[test]
fn the_conversation_ends_with_a_declaration_that_check_accepts() {
    let (design, text) = talk(&["order", "item", "no", "no", "3", "100", "no", "no"]);
    assert_eq!(design, "embed");
    assert!(text.contains("embed items many max=100"), "{text}");
    let (design, text) =
        talk(&["article", "comment", "no", "yes", "50", "50_000", "no", "yes", "yes", "10", "title", "no", "1"]);
    assert_eq!(design, "recent 10 with overflow");
    assert!(text.contains("recent latestComment 10"), "{text}");
    assert!(text.contains("live via=articleId"), "{text}");
    let (_, text) = talk(&["product", "order", "no", "yes", "50", "5000", "no", "yes", "no", "price", "yes"]);
    assert!(text.contains("snapshot via=productId"), "{text}");
}

#[test]
fn the_conversation_asks_again_after_an_answer_it_cannot_use() {
    let mut conversation = Conversation::new(Thresholds::default());
    assert_eq!(conversation.answer("9 lives"), Err("a name of letters and digits"));
    let before = conversation.say();
    assert!(conversation.answer("").is_err());
    assert_eq!(conversation.say(), before);
    conversation.answer("user").expect("a name");
    conversation.answer("follower").expect("a name");
    assert_eq!(conversation.answer("perhaps"), Err("yes or no"));
    conversation.answer("yes").expect("an answer");
    conversation.answer("no").expect("an answer");
    assert!(matches!(conversation.say(), Say::Done { design, .. } if design == "edge"));
}
