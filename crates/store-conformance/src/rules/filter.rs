//! What a consumer asks for is what it gets; what an operator selects is what is meant.

use redrive_core::lease::ConsumerName;
use redrive_core::message::{DeadReason, ErrorText, Lane, Message, State};
use redrive_core::policy::{Asked, Fingerprint};
use redrive_core::queue::QueueName;
use redrive_store::{ClassFilter, Filter, LaneChoice};

use crate::world::{World, key, kind, source};

async fn mixed(w: &mut World) -> QueueName {
    let q = w.queue("q").await;
    w.put_many(&q, 24, |n, d| {
        d.spec.kind = kind(["mail", "sms", "push"][n % 3]);
        d.spec.source = source(["web", "app"][n / 3 % 2]);
        d.spec.fairness_key = key(["a", "b"][n / 12]);
    })
    .await;
    q
}

fn wants(kinds: &[&str], sources: &[&str]) -> ClassFilter {
    ClassFilter {
        kinds: kinds.iter().map(|text| kind(text)).collect(),
        sources: sources.iter().map(|text| source(text)).collect(),
    }
}

async fn a_consumer_gets_only_the_types_and_sources_it_asks_for(w: &mut World) {
    let q = mixed(w).await;
    for (kinds, sources, count) in [
        (&["mail"][..], &["web"][..], 4),
        (&["sms", "push"], &[], 16),
        (&[], &["app"], 4),
        (&["fax"], &[], 0),
    ] {
        let filter = wants(kinds, sources);
        let messages = w.lease_with(&q, 100, |r| r.filter = filter.clone()).await.messages;
        assert_eq!(messages.len(), count, "{filter:?}");
        assert!(messages.iter().all(|m| filter.takes(&m.spec.kind, &m.spec.source)), "{filter:?}");
    }
    assert!(w.lease(&q, 100).await.is_empty(), "everything was handed out");
}

async fn a_filtered_call_keeps_the_order(w: &mut World) {
    let q = mixed(w).await;
    let all: Vec<Message> = w.list(&q, Filter::default()).await;
    let expected: Vec<_> = all
        .iter()
        .filter(|m| m.spec.kind == kind("sms") && m.spec.fairness_key == key("a"))
        .map(Message::id)
        .collect();
    let leased = w.lease_with(&q, 100, |r| r.filter = wants(&["sms"], &[])).await.messages;
    let got: Vec<_> = leased.iter().filter(|m| m.spec.fairness_key == key("a")).map(Message::id).collect();
    assert_eq!(got, expected);
}

async fn a_filter_applies_to_both_lanes(w: &mut World) {
    let q = mixed(w).await;
    for message in w.lease(&q, 12).await {
        w.nack(&message).await;
    }
    let filter = wants(&["push"], &[]);
    let retry = w
        .lease_with(&q, 100, |r| {
            r.filter = filter.clone();
            r.lane = LaneChoice::Only(Lane::Retry);
        })
        .await
        .messages;
    let fresh = w.lease_with(&q, 100, |r| r.filter = filter).await.messages;
    assert_eq!(retry.len() + fresh.len(), 8);
    assert!(retry.iter().chain(&fresh).all(|m| m.spec.kind == kind("push")));
}

async fn an_operator_selects_by_every_part(w: &mut World) {
    let q = mixed(w).await;
    let all = w.list(&q, Filter::default()).await;
    let by_kind = Filter { kinds: vec![kind("mail")], ..Filter::default() };
    assert_eq!(w.list(&q, by_kind).await.len(), 8);
    let by_source = Filter { sources: vec![source("web")], ..Filter::default() };
    assert_eq!(w.list(&q, by_source).await.len(), 12);
    let by_key = Filter { keys: vec![key("b")], ..Filter::default() };
    assert_eq!(w.list(&q, by_key).await.len(), 12);
    let by_id = Filter::ids([all[3].id(), all[7].id()]);
    assert_eq!(w.ids(&q, by_id).await, [all[3].id(), all[7].id()]);
    let both = Filter { kinds: vec![kind("mail")], keys: vec![key("a")], ..Filter::default() };
    assert_eq!(w.list(&q, both).await.len(), 4);
    let none = Filter { kinds: vec![kind("fax")], ..Filter::default() };
    assert!(w.list(&q, none).await.is_empty());
}

async fn messages_are_found_by_attempts_consumer_and_age(w: &mut World) {
    let q = w.queue("q").await;
    let start = w.now();
    let old = w.put_many(&q, 3, |_, _| ()).await;
    let first = w.lease_one(&q).await;
    w.nack(&first).await;
    w.advance(1_000);
    let new = w.put(&q).await;
    assert_eq!(w.ids(&q, Filter { attempts: Some(1..=u32::MAX), ..Filter::default() }).await, [old[0]]);
    assert_eq!(w.ids(&q, Filter { attempts: Some(0..=0), ..Filter::default() }).await, [old[1], old[2], new]);
    assert_eq!(w.ids(&q, Filter { created: Some(start..=start), ..Filter::default() }).await, old);
    let other = ConsumerName::new("other").expect("a good name");
    let leased = w.lease_with(&q, 1, |r| r.consumer = other.clone()).await.messages;
    assert_eq!(w.ids(&q, Filter { consumers: vec![other], ..Filter::default() }).await, [leased[0].id()]);
}

async fn dead_letters_are_found_by_reason_fingerprint_and_error(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(std::num::NonZeroU32::new(1))).await;
    let errors = ["timeout after 31 ms", "timeout after 577 ms", "no route to host"];
    let mut ids = Vec::new();
    for error in errors {
        ids.push(w.put(&q).await);
        let message = w.lease_one(&q).await;
        let nack = w.nack_with(&message, |item| {
            item.error = ErrorText::new(error);
            item.asked = Asked::Nothing;
        });
        assert!(nack.await.is_applied());
    }
    let buried = w.dead(&q, |_| ()).await;
    let by_print = Filter { fingerprint: Some(Fingerprint::of(errors[0])), ..Filter::default() };
    assert_eq!(w.ids(&q, by_print).await, [ids[0], ids[1]], "errors that differ in numbers are one group");
    let by_reason = Filter { reasons: vec![DeadReason::Buried], ..Filter::default() };
    assert_eq!(w.ids(&q, by_reason).await, [buried]);
    let by_error = Filter { error: Some("no route".to_owned()), ..Filter::default() };
    assert_eq!(w.ids(&q, by_error).await, [ids[2]]);
    let pattern = Filter { error: Some("%".to_owned()), ..Filter::default() };
    assert!(w.ids(&q, pattern).await.is_empty(), "the text is a text, not a pattern");
    assert_eq!(w.list(&q, Filter::state(State::Dead)).await.len(), 4);
}

rules!("filter";
    a_consumer_gets_only_the_types_and_sources_it_asks_for,
    a_filtered_call_keeps_the_order,
    a_filter_applies_to_both_lanes,
    an_operator_selects_by_every_part,
    messages_are_found_by_attempts_consumer_and_age,
    dead_letters_are_found_by_reason_fingerprint_and_error,
);
