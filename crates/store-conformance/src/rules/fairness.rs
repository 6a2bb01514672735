//! Tenants never starve each other: each fairness key gets its weighted share within one round.

use std::collections::BTreeMap;

use redrive_core::lease::ConsumerName;
use redrive_core::limits::BODY_BYTES_DEFAULT_MAX;
use redrive_core::message::{Body, FairnessKey, Message, State};
use redrive_core::policy::Weight;
use redrive_core::queue::{Pause, QueueName, Weights};
use redrive_store::{ClassFilter, Filter, LeaseRequest, Limit, PauseQueue};

use crate::world::{World, key, kind, priority};

async fn backlog(w: &mut World, queue: &QueueName, name: &str, messages: usize) {
    w.put_many(queue, messages, |_, d| d.spec.fairness_key = key(name)).await;
}

fn weights(of: &[(&str, u32)]) -> Weights {
    let weights = of.iter().map(|(name, weight)| (key(name), Weight::new(*weight).expect("a weight")));
    Weights::new(weights).expect("few keys")
}

fn served(messages: &[Message]) -> BTreeMap<FairnessKey, usize> {
    messages.iter().fold(BTreeMap::new(), |mut served, message| {
        *served.entry(message.spec.fairness_key.clone()).or_default() += 1;
        served
    })
}

async fn a_large_tenant_does_not_starve_a_small_one(w: &mut World) {
    let q = w.queue("q").await;
    backlog(w, &q, "large", 500).await;
    backlog(w, &q, "small", 5).await;
    let got = served(&w.lease(&q, 10).await);
    assert_eq!((got[&key("large")], got[&key("small")]), (5, 5));
}

async fn keys_share_by_weight_in_calls_of_any_size(w: &mut World) {
    for (n, size) in [1, 2, 5, 12, 60].into_iter().enumerate() {
        let shares = [("a", 1), ("b", 2), ("c", 3)];
        let q = w.queue_with(&format!("q{n}"), |config| config.weights = Some(weights(&shares))).await;
        for (name, _) in shares {
            backlog(w, &q, name, 60).await;
        }
        let mut messages = Vec::new();
        while messages.len() < 60 {
            messages.extend(w.lease(&q, size).await);
        }
        let got = served(&messages);
        for (name, weight) in shares {
            let due = 10 * weight as usize;
            let off = got[&key(name)].abs_diff(due);
            assert!(off <= weight as usize, "calls of {size}: {name} got {}, {due} are due", got[&key(name)]);
        }
    }
}

async fn a_key_that_becomes_active_is_served_within_one_round(w: &mut World) {
    let q = w.queue_with("q", |config| config.weights = Some(weights(&[("b", 4)]))).await;
    for name in ["a", "b", "c", "d"] {
        backlog(w, &q, name, 50).await;
    }
    for late in ["aa", "bb", "zz"] {
        w.lease(&q, 3).await;
        backlog(w, &q, late, 50).await;
        let mut before: BTreeMap<FairnessKey, usize> = BTreeMap::new();
        loop {
            let message = w.lease_one(&q).await;
            let served = &message.spec.fairness_key;
            if *served == key(late) {
                break;
            }
            let turns = before.entry(served.clone()).or_default();
            *turns += 1;
            let quantum = if *served == key("b") { 4 } else { 1 };
            assert!(*turns <= quantum, "{served} was served {turns} times before {late} was served at all");
        }
    }
}

async fn ever_new_keys_do_not_starve_an_old_one(w: &mut World) {
    let q = w.queue("q").await;
    let old = ["a", "m", "zzz"];
    for name in old {
        backlog(w, &q, name, 50).await;
    }
    let mut waits: BTreeMap<&str, usize> = BTreeMap::new();
    for n in 0..120 {
        backlog(w, &q, &format!("new {n:04}"), 1).await;
        let message = w.lease_one(&q).await;
        for name in old {
            let wait = waits.entry(name).or_default();
            *wait = if message.spec.fairness_key == key(name) { 0 } else { *wait + 1 };
            assert!(*wait < 60, "{name} has waited for {wait} picks while newcomers were served");
        }
    }
}

async fn a_changed_weight_acts_on_the_backlog(w: &mut World) {
    let q = w.queue("q").await;
    backlog(w, &q, "a", 100).await;
    backlog(w, &q, "b", 100).await;
    w.lease(&q, 10).await;
    w.update(&q, |config| config.weights = Some(weights(&[("a", 9)]))).await;
    let got = served(&w.lease(&q, 40).await);
    assert!(got[&key("a")] >= 34 && got[&key("b")] >= 3, "{got:?}");
}

async fn a_paused_key_leaves_the_ring_and_comes_back(w: &mut World) {
    let q = w.queue("q").await;
    backlog(w, &q, "a", 10).await;
    backlog(w, &q, "b", 10).await;
    let pause = |pause| PauseQueue { name: q.clone(), key: Some(key("a")), pause };
    w.store().pause_queue(w.at(), pause(Some(Pause::UntilResumed))).await.expect("paused");
    let got = served(&w.lease(&q, 6).await);
    assert_eq!(got.get(&key("a")), None, "a paused key is not served");
    assert_eq!(got[&key("b")], 6, "the others get its share");
    w.store().pause_queue(w.at(), pause(None)).await.expect("resumed");
    let got = served(&w.lease(&q, 4).await);
    assert_eq!((got[&key("a")], got[&key("b")]), (2, 2));
}

async fn priority_is_strict_inside_a_key_and_never_between_keys(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 10, |_, d| {
        d.spec.fairness_key = key("loud");
        d.priority = priority(9);
    })
    .await;
    let quiet = w
        .put_many(&q, 4, |n, d| {
            d.spec.fairness_key = key("quiet");
            d.priority = priority(u8::try_from(n).expect("small"));
        })
        .await;
    let leased = w.lease(&q, 8).await;
    let got: Vec<_> =
        leased.iter().filter(|m| m.spec.fairness_key == key("quiet")).map(Message::id).collect();
    assert_eq!(
        got,
        [quiet[3], quiet[2], quiet[1], quiet[0]],
        "half of what is served, the most urgent first"
    );
}

async fn a_filtered_call_shares_by_weight_too(w: &mut World) {
    let q = w.queue_with("q", |config| config.weights = Some(weights(&[("b", 3)]))).await;
    for name in ["a", "b", "c"] {
        for wanted in ["yes", "no"] {
            w.put_many(&q, 40, |_, d| {
                d.spec.fairness_key = key(name);
                d.spec.kind = kind(wanted);
            })
            .await;
        }
    }
    let filter = ClassFilter { kinds: vec![kind("yes")], sources: vec![] };
    let messages = w.lease_with(&q, 50, |r| r.filter = filter).await.messages;
    let got = served(&messages);
    assert!((9..=11).contains(&got[&key("a")]) && (27..=33).contains(&got[&key("b")]), "{got:?}");
}

async fn keys_are_served_fairly_in_the_retry_lane_too(w: &mut World) {
    let q = w.queue("q").await;
    for (name, messages) in [("large", 40), ("small", 4)] {
        backlog(w, &q, name, messages).await;
    }
    for message in w.lease(&q, 100).await {
        w.nack(&message).await;
    }
    let got = served(&w.lease(&q, 8).await);
    assert_eq!((got[&key("large")], got[&key("small")]), (4, 4));
}

async fn large_messages_starve_no_key(w: &mut World) {
    let q = w.queue_with("q", |config| config.weights = Some(weights(&[("a", 16)]))).await;
    let large = Body::new(vec![7; BODY_BYTES_DEFAULT_MAX]).expect("at the limit");
    for name in ["a", "b"] {
        for _ in 0..20 {
            w.put_with(&q, |d| {
                d.spec.fairness_key = key(name);
                d.spec.body = large.clone();
            })
            .await;
        }
    }
    let mut got = BTreeMap::new();
    for _ in 0..2 {
        let request = LeaseRequest::new(q.clone(), Limit::MAX, ConsumerName::default(), 1);
        for message in w.store().lease(w.at(), request).await.expect("answers").messages {
            *got.entry(message.spec.fairness_key).or_insert(0) += 1;
        }
    }
    assert!(got.contains_key(&key("b")), "a turn that did not fit was charged, and never served: {got:?}");
}

async fn a_key_that_a_filtered_call_passes_over_keeps_its_turn(w: &mut World) {
    let q = w.queue("q").await;
    for (name, wanted) in [("a", "yes"), ("b", "no")] {
        w.put_many(&q, 40, |_, d| {
            d.spec.fairness_key = key(name);
            d.spec.kind = kind(wanted);
        })
        .await;
    }
    let filter = ClassFilter { kinds: vec![kind("yes")], sources: vec![] };
    let mut messages = w.lease(&q, 1).await;
    for _ in 0..10 {
        w.lease_with(&q, 1, |r| r.filter = filter.clone()).await;
        messages.extend(w.lease(&q, 1).await);
    }
    let got = served(&messages).get(&key("b")).copied().unwrap_or_default();
    assert!(got >= 5, "the other consumer's filter took turns from b: {got} of {}", messages.len());
}

async fn a_key_that_comes_back_has_one_turn_in_a_round(w: &mut World) {
    let q = w.queue("q").await;
    let only = Filter { keys: vec![key("a")], ..Filter::default() };
    let pause = |pause| PauseQueue { name: q.clone(), key: Some(key("a")), pause };
    for _ in 0..5 {
        backlog(w, &q, "a", 1).await;
        w.store().pause_queue(w.at(), pause(Some(Pause::UntilResumed))).await.expect("paused");
        backlog(w, &q, "a", 1).await;
        w.store().pause_queue(w.at(), pause(None)).await.expect("resumed");
        assert_eq!(w.discard(&q, only.clone(), true).await.applied.len(), 2);
    }
    for name in ["a", "b", "c"] {
        backlog(w, &q, name, 30).await;
    }
    let got = served(&w.lease(&q, 30).await);
    assert_eq!(["a", "b", "c"].map(|name| got[&key(name)]), [10, 10, 10], "a has one place in the ring");
}

async fn a_message_is_found_behind_any_number_of_keys_that_have_nothing_left(w: &mut World) {
    // More than what one call passes, on any store.
    const GONE: usize = 2_500;
    let q = w.queue("q").await;
    w.put_many(&q, GONE, |n, d| d.spec.fairness_key = key(&format!("k{n}"))).await;
    while !w.discard(&q, Filter::state(State::Ready), true).await.applied.is_empty() {}
    let back = w.put_with(&q, |d| d.spec.fairness_key = key("k7")).await;
    let fresh = w.put(&q).await;
    let mut found = w.lease_ids(&q, 10).await;
    found.sort();
    assert_eq!(found, [back, fresh]);
}

rules!("fairness";
    a_key_that_comes_back_has_one_turn_in_a_round,
    a_message_is_found_behind_any_number_of_keys_that_have_nothing_left,
    large_messages_starve_no_key,
    a_large_tenant_does_not_starve_a_small_one,
    keys_share_by_weight_in_calls_of_any_size,
    a_key_that_becomes_active_is_served_within_one_round,
    ever_new_keys_do_not_starve_an_old_one,
    a_changed_weight_acts_on_the_backlog,
    a_paused_key_leaves_the_ring_and_comes_back,
    priority_is_strict_inside_a_key_and_never_between_keys,
    a_filtered_call_shares_by_weight_too,
    keys_are_served_fairly_in_the_retry_lane_too,
    a_key_that_a_filtered_call_passes_over_keeps_its_turn,
);
