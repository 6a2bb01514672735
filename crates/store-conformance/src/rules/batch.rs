//! Batches: an outcome per item, in order; all or nothing where asked.

use redrive_core::message::{ErrorText, Message, State};
use redrive_core::policy::Asked;
use redrive_core::queue::QueueName;
use redrive_store::{
    AckItem, Batch, EnqueueItem, EnqueueOutcome, EnqueueRefusal, Filter, LeaseTarget, NackItem, ReleaseItem,
    Settled,
};

use crate::world::{World, claim, kind};

async fn three_leased(w: &mut World) -> (QueueName, Vec<Message>) {
    let q = w.queue("q").await;
    w.put_many(&q, 3, |_, _| ()).await;
    let leased = w.lease(&q, 3).await;
    (q, leased)
}

async fn each_item_has_its_own_outcome(w: &mut World) {
    let (q, leased) = three_leased(w).await;
    w.ack(&leased[1]).await;
    let items = leased.iter().map(|message| AckItem { claim: claim(message) }).collect();
    let outcomes = w.store().ack(w.at(), Batch::each(items).expect("few")).await.expect("answers");
    assert!(outcomes[0].is_applied() && outcomes[2].is_applied());
    assert_eq!(outcomes[1], Settled::NotFound);
    assert_eq!(w.stats(&q).await.states.all(), 0);
}

async fn the_same_receipt_twice_in_a_batch_works_once(w: &mut World) {
    let (_, leased) = three_leased(w).await;
    let nack = || NackItem {
        claim: claim(&leased[0]),
        asked: Asked::Nothing,
        error: ErrorText::new("x"),
        checkpoint: None,
    };
    let batch = Batch::each(vec![nack(), nack()]).expect("few");
    let outcomes = w.store().nack(w.at(), batch, 1).await.expect("answers");
    assert!(outcomes[0].is_applied());
    assert_eq!(outcomes[1], Settled::LeaseLost);
}

async fn settlements_apply_together_or_not_at_all(w: &mut World) {
    let (q, leased) = three_leased(w).await;
    w.release(&leased[1]).await;
    let before = w.list(&q, Filter::default()).await;
    let totals = w.stats(&q).await.totals;
    let items = || leased.iter().map(|message| AckItem { claim: claim(message) }).collect::<Vec<_>>();
    let batch = Batch::all_or_nothing(items()).expect("few");
    let outcomes = w.store().ack(w.at(), batch).await.expect("answers");
    assert_eq!(outcomes, [Settled::Aborted, Settled::LeaseLost, Settled::Aborted]);
    assert_eq!(w.list(&q, Filter::default()).await, before, "nothing was changed");
    assert_eq!(w.stats(&q).await.totals, totals, "nothing was counted");
    let good = vec![items().remove(0), items().remove(2)];
    let outcomes = w.store().ack(w.at(), Batch::all_or_nothing(good).expect("few")).await.expect("answers");
    assert!(outcomes.iter().all(Settled::is_applied));
}

async fn a_stale_item_finds_what_an_earlier_one_would_leave(w: &mut World) {
    let (_, leased) = three_leased(w).await;
    w.release(&leased[0]).await;
    let again = w.lease_one(&leased[0].queue).await;
    assert_eq!(again.id(), leased[0].id());
    // The same message, first under its lease and then under the one of before.
    let items = [&again, &leased[0]].map(|message| AckItem { claim: claim(message) }).to_vec();
    let batch = Batch::all_or_nothing(items).expect("few");
    let outcomes = w.store().ack(w.at(), batch).await.expect("answers");
    assert_eq!(outcomes, [Settled::Aborted, Settled::NotFound], "it would be gone by then");
    assert_eq!(w.state(&again.queue, again.id()).await, Some(State::Leased));
}

async fn releases_apply_together_or_not_at_all(w: &mut World) {
    let (q, leased) = three_leased(w).await;
    w.ack(&leased[2]).await;
    let items =
        leased.iter().map(|message| ReleaseItem { target: LeaseTarget::Claim(claim(message)), delay: None });
    let batch = Batch::all_or_nothing(items.collect()).expect("few");
    let outcomes = w.store().release(w.at(), batch).await.expect("answers");
    assert_eq!(outcomes, [Settled::Aborted, Settled::Aborted, Settled::NotFound]);
    assert_eq!(w.stats(&q).await.states.of(State::Leased), 2);
}

async fn enqueues_to_one_queue_apply_together_or_not_at_all(w: &mut World) {
    let q = w.queue("q").await;
    let max = crate::subject::Setup::default().limits.classes_per_queue;
    w.put_many(&q, max, |n, d| d.spec.kind = kind(&format!("type {n}"))).await;
    let mut items: Vec<EnqueueItem> =
        (0..2).map(|_| EnqueueItem { queue: q.clone(), draft: w.draft() }).collect();
    items[0].draft.spec.kind = kind("type 1");
    items[1].draft.spec.kind = kind("one too many");
    let batch = Batch::all_or_nothing(items).expect("few");
    let outcomes = w.store().enqueue(w.at(), batch).await.expect("answers");
    let refused = EnqueueOutcome::Refused(EnqueueRefusal::TooManyClasses { max });
    assert_eq!(outcomes, [EnqueueOutcome::Aborted, refused]);
    assert_eq!(w.stats(&q).await.states.all(), max as u64);
}

async fn enqueues_to_several_queues_apply_together_or_not_at_all(w: &mut World) {
    let (a, b) = (w.queue("a").await, w.queue("b").await);
    let nowhere = QueueName::new("nowhere").expect("good");
    let mut items = |queues: &[&QueueName]| -> Vec<EnqueueItem> {
        queues.iter().map(|queue| EnqueueItem { queue: (*queue).clone(), draft: w.draft() }).collect()
    };
    let (bad, good) = (items(&[&a, &nowhere, &b]), items(&[&a, &b]));
    let outcomes =
        w.store().enqueue(w.at(), Batch::all_or_nothing(bad).expect("few")).await.expect("answers");
    assert_eq!((&outcomes[0], &outcomes[2]), (&EnqueueOutcome::Aborted, &EnqueueOutcome::Aborted));
    assert!(matches!(outcomes[1], EnqueueOutcome::Refused(EnqueueRefusal::QueueNotFound(_))));
    assert_eq!((w.stats(&a).await.states.all(), w.stats(&b).await.states.all()), (0, 0));
    w.store().enqueue(w.at(), Batch::all_or_nothing(good).expect("few")).await.expect("answers");
    assert_eq!((w.stats(&a).await.states.all(), w.stats(&b).await.states.all()), (1, 1));
}

rules!("batch";
    each_item_has_its_own_outcome,
    the_same_receipt_twice_in_a_batch_works_once,
    settlements_apply_together_or_not_at_all,
    a_stale_item_finds_what_an_earlier_one_would_leave,
    releases_apply_together_or_not_at_all,
    enqueues_to_one_queue_apply_together_or_not_at_all;
    across queues: enqueues_to_several_queues_apply_together_or_not_at_all,
);
