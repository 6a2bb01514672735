//! Answers that are lost between a commit and its client.

use std::time::Duration;

use redrive_core::lifecycle::Draft;
use redrive_core::message::ErrorText;
use redrive_core::policy::Asked;
use redrive_core::queue::{QueueConfig, Retention};
use redrive_core::time::Millis;
use redrive_store::{Batch, EnqueueOutcome, NackItem, Now, QueueError, Settled, Store, StoreError};
use redrive_store_postgres::{Options, Patience};
use redrive_test_servers::proxy::{Fault, Injected, Proxy, Rule, Trigger};
use redrive_test_servers::shared_postgres_url;

use crate::ledger::PATIENCE;
use crate::world::{LATER, World, claims, unique};

/// A store that goes through a proxy, and one that does not.
struct Scene {
    proxy: Proxy,
    through: World,
    direct: World,
}

impl Scene {
    async fn new(name: &str) -> Self {
        Self::with(name, Patience::default(), |_| ()).await
    }

    async fn with(name: &str, patience: Patience, set: impl FnOnce(&mut QueueConfig)) -> Self {
        let url = shared_postgres_url();
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        let running = tokio::spawn(connection);
        let schema = format!("fault_{name}_{}", std::process::id());
        client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.unwrap();
        drop(client);
        drop(running.await);
        let proxy = Proxy::before(&url).unwrap();
        let options =
            |url: &str| Options { schema: schema.clone(), connections: 2, patience, ..Options::new(url) };
        let direct = World::open_with(options(&url), set).await;
        let through = World::beside(options(proxy.url())).await;
        // What is cached of the queue is read, and what is said once is said.
        through.put().await.unwrap();
        let warm = through.take_one().await;
        through.ack(&claims(&[warm])).await.unwrap();
        Self { proxy, through, direct }
    }

    fn on(&self, words: &str, fault: Fault) -> Injected {
        self.proxy.inject(Rule::new(Trigger::Statement(words.to_owned()), fault))
    }
}

const ENQUEUE: &str = "-- nothing → ready | delayed, where nothing has to be counted first";
const ACK: &str = "-- ack: leased → gone";
const NACK: &str = "-- nack: ";
const CLAIM: &str = "-- lease: ready → leased";

/// One that needs a transaction.
fn with_key(key: &str) -> Draft {
    let mut draft = World::draft();
    draft.spec.dedup = Some(unique(key));
    draft
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_whose_answer_is_lost_is_answered_and_there_once() {
    let scene = Scene::new("reply").await;
    for fault in [Fault::CutReply, Fault::CutBefore] {
        let rule = scene.on(ENQUEUE, fault);
        let id = scene.through.put().await.unwrap();
        assert_eq!(rule.fired(), 1, "{fault:?}");
        assert_eq!(scene.direct.messages().await, 1, "{fault:?}");
        let message = scene.direct.take_one().await;
        assert_eq!(message.id(), id);
        scene.direct.ack(&claims(&[message])).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_whose_message_is_gone_by_then_is_not_made_again() {
    let scene = Scene::new("gone").await;
    let rule = scene.on(ENQUEUE, Fault::StallReply);
    let producer = scene.through.clone();
    let producing = tokio::spawn(async move { producer.put().await });
    assert!(tokio::task::block_in_place(|| rule.wait_fired(1, PATIENCE)));
    // It is committed, the producer does not know, and the work is done meanwhile.
    let message = scene.direct.take_one().await;
    let id = message.id();
    assert!(matches!(scene.direct.ack(&claims(&[message])).await.unwrap()[..], [Settled::Applied(_)]));
    scene.proxy.cut_all();
    assert_eq!(producing.await.unwrap().unwrap(), id);
    assert_eq!(scene.direct.messages().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_answer_is_lost_tells_its_duplicates() {
    let scene = Scene::new("batch").await;
    let known = World::draft();
    scene.direct.send(vec![known.clone()]).await.unwrap();
    let rule = scene.on(ENQUEUE, Fault::CutReply);
    let outcomes = scene.through.send(vec![World::draft(), known, World::draft()]).await.unwrap();
    assert_eq!(rule.fired(), 1);
    let new = |outcome: &EnqueueOutcome| matches!(outcome, EnqueueOutcome::Enqueued { .. });
    assert_eq!(outcomes.iter().map(new).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(scene.direct.messages().await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_whose_commit_is_not_answered_is_answered_and_done_once() {
    let scene = Scene::new("commit").await;
    for (nth, fault) in [Fault::CutReply, Fault::CutBefore].into_iter().enumerate() {
        let rule = scene.proxy.inject(Rule::new(Trigger::Commit, fault));
        let outcomes = scene.through.send(vec![with_key(&format!("key {nth}"))]).await.unwrap();
        assert!(matches!(outcomes[..], [EnqueueOutcome::Enqueued { .. }]), "{outcomes:?}");
        assert_eq!(rule.fired(), 1, "{fault:?}");
        assert_eq!(scene.direct.messages().await, 1 + nth as u64, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_swallowed_is_not_waited_for_for_ever() {
    let patience = Patience { answer: Duration::from_millis(500), ..Patience::default() };
    let scene = Scene::with("silent", patience, |_| ()).await;
    let rule = scene.on(ENQUEUE, Fault::StallReply);
    scene.through.put().await.unwrap();
    assert_eq!(rule.fired(), 1);
    assert_eq!(scene.direct.messages().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_to_ask_leaves_the_outcome_unknown() {
    let patience = Patience { doubt: Duration::from_millis(300), ..Patience::default() };
    let scene = Scene::with("nobody", patience, |_| ()).await;
    let cut = scene.on(ENQUEUE, Fault::CutReply);
    let refuse =
        scene.proxy.inject(Rule::new(Trigger::Statement("redrive.mark".into()), Fault::CutBefore).always());
    let find = scene.proxy.inject(
        Rule::new(Trigger::Statement("-- Whether a transaction was".into()), Fault::CutBefore).always(),
    );
    let answer = scene.through.put().await;
    assert!(matches!(answer, Err(StoreError::OutcomeUnknown(_))), "{answer:?}");
    assert_eq!(cut.fired(), 1);
    refuse.lift();
    find.lift();
    assert_eq!(scene.direct.messages().await, 1);
    scene.through.put().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_whose_answer_is_lost_is_unknown_and_never_refused() {
    let scene = Scene::new("ack").await;
    scene.direct.put().await.unwrap();
    let claim = claims(&[scene.through.take_one().await]);
    let rule = scene.on(ACK, Fault::CutReply);
    let answer = scene.through.ack(&claim).await;
    assert!(matches!(answer, Err(StoreError::OutcomeUnknown(_))), "{answer:?}");
    assert_eq!((rule.fired(), scene.direct.messages().await), (1, 0));
    assert!(matches!(scene.through.ack(&claim).await.unwrap()[..], [Settled::NotFound]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_in_a_transaction_is_answered() {
    let keep = |config: &mut QueueConfig| {
        config.retain_done = Some(Some(Retention { age: Some(Millis::new(3_600_000)), count: None }));
    };
    let scene = Scene::with("kept", Patience::default(), keep).await;
    for fault in [Fault::CutReply, Fault::CutBefore] {
        scene.direct.put().await.unwrap();
        let claim = claims(&[scene.through.take_one().await]);
        let rule = scene.proxy.inject(Rule::new(Trigger::Commit, fault));
        let answer = scene.through.ack(&claim).await;
        assert!(matches!(answer.as_deref(), Ok([Settled::Applied(_)])), "{fault:?} {answer:?}");
        assert_eq!(rule.fired(), 1, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nack_whose_answer_is_lost_is_unknown_and_applied_once() {
    let scene = Scene::new("nack").await;
    scene.direct.put().await.unwrap();
    let claim = claims(&[scene.through.take_one().await]).remove(0);
    let item =
        NackItem { claim, asked: Asked::Nothing, error: ErrorText::new("it failed"), checkpoint: None };
    let rule = scene.on(NACK, Fault::CutReply);
    let answer = scene.through.store.nack(Now::Store, Batch::one(item.clone()).unwrap(), 1).await;
    assert!(matches!(answer, Err(StoreError::OutcomeUnknown(_))), "{answer:?}");
    assert_eq!(rule.fired(), 1);
    let again = scene.through.store.nack(Now::Store, Batch::one(item).unwrap(), 1).await.unwrap();
    assert!(matches!(again[..], [Settled::LeaseLost]), "{again:?}");
    let message = scene.direct.take_one().await;
    assert_eq!((message.progress.attempts, message.history.failures.len()), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_answer_is_lost_is_unknown_and_comes_back() {
    let scene = Scene::new("lease").await;
    let id = scene.direct.put().await.unwrap();
    let rule = scene.on(CLAIM, Fault::CutReply);
    let answer = scene.through.take(Now::Store, 1, Millis::new(1_000)).await;
    assert!(matches!(answer, Err(QueueError::Store(StoreError::OutcomeUnknown(_)))), "{answer:?}");
    assert_eq!(rule.fired(), 1);
    let leased = scene.through.take(LATER, 1, Millis::new(1_000)).await.unwrap();
    assert_eq!(leased.messages.iter().map(redrive_core::message::Message::id).collect::<Vec<_>>(), [id]);
}
