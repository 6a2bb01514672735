//! discard: any but leased → gone; by force leased ones too. A purge is a discard of everything.

use redrive_core::lifecycle::Verb;
use redrive_core::message::{MessageId, State};
use redrive_store::{Filter, Selection};

use crate::world::{World, after, at_most, kind};

async fn a_discarded_message_is_gone(w: &mut World) {
    let q = w.queue("q").await;
    let ready = w.put_with(&q, |d| d.spec.kind = kind("mail")).await;
    let delayed = w
        .put_with(&q, |d| {
            d.spec.kind = kind("mail");
            d.visible = after(1_000);
        })
        .await;
    let other = w.put(&q).await;
    let bulk = w.discard(&q, Filter { kinds: vec![kind("mail")], ..Filter::default() }, false).await;
    assert_eq!(bulk.applied, [ready, delayed]);
    w.advance(1_000);
    assert_eq!(w.lease_ids(&q, 10).await, [other]);
    assert_eq!(w.stats(&q).await.totals.of(Verb::Discard), 2);
}

async fn a_leased_message_is_discarded_only_by_force(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    assert_eq!(w.discard(&q, Filter::default(), false).await.matched, 0);
    assert_eq!(w.state(&q, id).await, Some(State::Leased));
    assert_eq!(w.discard(&q, Filter::default(), true).await.applied, [id]);
    assert!(!w.ack(&message).await.is_applied(), "its consumer is fenced");
    w.advance(60_000);
    assert!(w.expire(&q).await.is_empty(), "nothing of the lease is left");
}

async fn a_purge_empties_a_queue_step_by_step(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 1_200, |n, d| d.visible = after(n as u64 % 2)).await;
    let leased = w.lease_one(&q).await;
    let first = w.store().purge(w.at(), q.clone(), false).await.expect("answers");
    assert!(first.next.is_some() && first.applied.len() <= 1_000, "a step at a time");
    let mut steps = 0;
    while w.stats(&q).await.states.all() > 1 {
        w.store().purge(w.at(), q.clone(), false).await.expect("answers");
        steps += 1;
        assert!(steps < 50, "the purge does not come to an end");
    }
    assert!(w.ack(&leased).await.is_applied(), "what is leased is left alone");
}

async fn a_dry_run_changes_nothing(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 4, |_, _| ()).await;
    let selection = Selection { dry_run: true, ..Selection::new(q.clone(), Filter::default()) };
    let bulk = w.store().discard(w.at(), selection, true).await.expect("answers");
    assert_eq!((bulk.matched, bulk.applied.len(), w.stats(&q).await.states.all()), (4, 0, 4));
}

async fn a_step_goes_on_where_the_last_one_ended(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 7, |_, _| ()).await;
    let mut step =
        Selection { dry_run: true, limit: at_most(3), ..Selection::new(q.clone(), Filter::default()) };
    let mut matched = 0;
    for _ in 0..20 {
        let bulk = w.store().discard(w.at(), step.clone(), false).await.expect("answers");
        assert!(bulk.matched <= 3);
        matched += bulk.matched;
        step.after = bulk.next;
        if bulk.next.is_none() {
            break;
        }
    }
    assert_eq!((matched, step.after), (7, None), "nothing twice, nothing left out");
}

async fn a_step_ends_where_it_is_told(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 7, |_, _| ()).await;
    let until = |id: MessageId| Selection { until: Some(id), ..Selection::new(q.clone(), Filter::default()) };
    let counted = Selection { dry_run: true, ..until(ids[4]) };
    let bulk = w.store().discard(w.at(), counted, false).await.expect("answers");
    assert_eq!((bulk.matched, bulk.next), (5, None), "what lies beyond is not counted");
    let mut step = Selection { limit: at_most(3), ..until(ids[4]) };
    let mut discarded = Vec::new();
    for _ in 0..20 {
        let bulk = w.store().discard(w.at(), step.clone(), false).await.expect("answers");
        discarded.extend(bulk.applied);
        step.after = bulk.next;
        if bulk.next.is_none() {
            break;
        }
    }
    assert_eq!((&*discarded, step.after), (&ids[..5], None), "the last is one of them, the next is not");
    // Dead and named ones may be found in other ways than all of them.
    let dead = w.lease_one(&q).await;
    assert_eq!(dead.id(), ids[5]);
    w.bury(&dead).await;
    let filters = [Filter::default(), Filter::state(State::Dead), Filter::ids(ids.clone())];
    for filter in filters {
        for (last, found) in [(ids[4], vec![]), (ids[5], vec![ids[5]])] {
            let step = Selection { dry_run: true, ..Selection { filter: filter.clone(), ..until(last) } };
            let bulk = w.store().discard(w.at(), step, false).await.expect("answers");
            assert_eq!((bulk.matched, bulk.next), (found.len() as u64, None), "{filter:?} until {last}");
        }
    }
}

rules!("discard";
    a_discarded_message_is_gone,
    a_leased_message_is_discarded_only_by_force,
    a_purge_empties_a_queue_step_by_step,
    a_dry_run_changes_nothing,
    a_step_goes_on_where_the_last_one_ended,
    a_step_ends_where_it_is_told,
);
