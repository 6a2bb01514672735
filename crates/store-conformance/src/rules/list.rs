//! list: a look that takes no lease.

use redrive_core::message::State;
use redrive_core::queue::QueueName;
use redrive_store::{Filter, ListRequest, QueueError, Selection};

use crate::world::{World, after, at_most, kind};

async fn a_look_takes_no_lease(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 3, |_, _| ()).await;
    let before = w.stats(&q).await;
    assert_eq!(w.ids(&q, Filter::default()).await, ids);
    w.get(&q, ids[0]).await;
    assert_eq!(w.stats(&q).await, before, "looking changes nothing");
    let leased = w.lease(&q, 3).await;
    assert!(leased.iter().all(|message| message.progress.deliveries == 1), "looking is not a delivery");
}

async fn each_state_is_listed(w: &mut World) {
    let kept = redrive_core::queue::Retention { age: None, count: Some(9) };
    let q = w.queue_with("q", |c| c.retain_done = Some(Some(kept))).await;
    let dead = w.dead(&q, |_| ()).await;
    let done = w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.ack(&message).await;
    let leased = w.put(&q).await;
    w.lease_one(&q).await;
    let ready = w.put(&q).await;
    let delayed = w.put_with(&q, |d| d.visible = after(1_000)).await;
    let expected = [
        (State::Delayed, delayed),
        (State::Ready, ready),
        (State::Leased, leased),
        (State::Dead, dead),
        (State::Done, done),
    ];
    for (state, id) in expected {
        assert_eq!(w.ids(&q, Filter::state(state)).await, [id], "{state}");
    }
    let both = Filter { states: vec![State::Ready, State::Dead], ..Filter::default() };
    assert_eq!(w.ids(&q, both).await, [dead, ready]);
    w.advance(1_000);
    assert_eq!(w.ids(&q, Filter::state(State::Ready)).await, [ready, delayed], "its time has come");
}

async fn pages_go_on_where_the_last_one_ended(w: &mut World) {
    let q = w.queue("q").await;
    let mut ids = w.put_many(&q, 25, |_, _| ()).await;
    for newest_first in [false, true] {
        let mut request =
            ListRequest { limit: at_most(4), newest_first, ..ListRequest::new(q.clone(), Filter::default()) };
        let mut listed = Vec::new();
        for _ in 0..30 {
            let page = w.store().list(w.at(), request.clone()).await.expect("answers");
            assert!(page.messages.len() <= 4);
            listed.extend(page.messages.iter().map(redrive_core::message::Message::id));
            request.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(listed, ids);
        ids.reverse();
    }
}

async fn a_page_survives_what_happens_in_between(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 6, |_, _| ()).await;
    let request = ListRequest { limit: at_most(3), ..ListRequest::new(q.clone(), Filter::default()) };
    let first = w.store().list(w.at(), request.clone()).await.expect("answers");
    w.discard(&q, Filter::ids([ids[2], ids[3]]), false).await;
    let rest = ListRequest { after: first.next, ..request };
    let second = w.store().list(w.at(), rest).await.expect("answers");
    let listed: Vec<_> = second.messages.iter().map(redrive_core::message::Message::id).collect();
    assert_eq!(listed, [ids[4], ids[5]], "nothing twice, nothing left out");
}

async fn a_queue_that_is_not_there_is_an_error(w: &mut World) {
    let nowhere = QueueName::new("nowhere").expect("good");
    let list = w.store().list(w.at(), ListRequest::new(nowhere.clone(), Filter::default())).await;
    assert!(matches!(list, Err(QueueError::NotFound(_))));
    assert!(matches!(w.store().stats(w.at(), &nowhere).await, Err(QueueError::NotFound(_))));
    let id = redrive_core::message::MessageId::MIN;
    assert_eq!(w.store().get(&nowhere, id).await.expect("answers"), None);
}

async fn a_needle_is_found_in_a_haystack(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 1_200, |_, _| ()).await;
    let needle = w.put_with(&q, |d| d.spec.kind = kind("needle")).await;
    w.put_many(&q, 50, |_, _| ()).await;
    let filter = || Filter { kinds: vec![kind("needle")], ..Filter::default() };
    assert_eq!(w.ids(&q, filter()).await, [needle]);
    let mut selection = Selection::new(q.clone(), filter());
    let mut discarded = Vec::new();
    loop {
        let step = w.store().discard(w.at(), selection.clone(), false).await.expect("answers");
        discarded.extend(step.applied);
        match step.next {
            Some(next) => selection.after = Some(next),
            None => break,
        }
    }
    assert_eq!(discarded, [needle], "a step that finds nothing is not the end");
}

async fn the_newest_that_match_come_first(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 4, |n, d| d.visible = after(1_000 * (n as u64 % 2))).await;
    let request = ListRequest { newest_first: true, ..ListRequest::new(q, Filter::state(State::Ready)) };
    let page = w.store().list(w.at(), request).await.expect("answers");
    let listed: Vec<_> = page.messages.iter().map(redrive_core::message::Message::id).collect();
    assert_eq!(listed, [ids[2], ids[0]]);
}

rules!("list";
    a_needle_is_found_in_a_haystack,
    a_look_takes_no_lease,
    each_state_is_listed,
    pages_go_on_where_the_last_one_ended,
    a_page_survives_what_happens_in_between,
    a_queue_that_is_not_there_is_an_error,
    the_newest_that_match_come_first,
);
