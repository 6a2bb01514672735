//! Calls that share a statement, and batches that come by COPY: each caller and each message is treated as if it came alone.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use futures::future::join_all;
use redrive_core::lease::{ConsumerName, LeaseId};
use redrive_core::lifecycle::{Draft, Verb, When};
use redrive_core::message::{
    Body, ContentType, FairnessKey, Headers, Message, MessageId, MessageType, Priority, Source, Spec,
};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Batch, CreateQueue, EnqueueItem, EnqueueOutcome, LeaseRequest, Limit, Now, Settled, Store,
};
use redrive_store_postgres::{Durability, Options, PostgresStore};

const CALLERS: u64 = 32;

async fn store(schema: &str) -> Arc<PostgresStore> {
    let url = redrive_test_servers::shared_postgres_url();
    let schema = format!("{schema}_{}", std::process::id());
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("it runs");
    let running = tokio::spawn(connection);
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.expect("it is gone");
    drop(client);
    running.await.expect("it ends").expect("it ends well");
    let options = Options { durability: Durability::Any, schema, connections: 4, ..Options::new(url) };
    let store = PostgresStore::open(options, [42; 32]).await.expect("it opens");
    let request = CreateQueue { name: queue(), config: QueueConfig::default() };
    store.create_queue(Now::Store, request).await.expect("it is new");
    Arc::new(store)
}

fn queue() -> QueueName {
    QueueName::new("many").expect("a good name")
}

fn id(number: u64) -> MessageId {
    MessageId::new(Timestamp::from_millis(1_800_000_000_000), u128::from(number))
}

fn item(number: u64) -> EnqueueItem {
    let spec = Spec {
        id: id(number),
        body: Body::new(format!("body {number}")).expect("small"),
        content_type: ContentType::default(),
        headers: Headers::default(),
        kind: MessageType::new("kind").expect("a good type"),
        source: Source::new("source").expect("a good source"),
        fairness_key: FairnessKey::default(),
        dedup: None,
        lease_timeout: None,
        max_attempts: None,
    };
    let draft = Draft { spec, priority: Priority::default(), visible: When::Now, expires: None };
    EnqueueItem { queue: queue(), draft }
}

async fn lease(store: &PostgresStore, caller: u64) -> Vec<Message> {
    let consumer = ConsumerName::new(format!("caller-{caller}")).expect("a good name");
    let request = LeaseRequest::new(queue(), Limit::new(1).expect("one"), consumer, caller);
    store.lease(Now::Store, request).await.expect("it answers").messages
}

#[tokio::test]
async fn callers_who_share_a_statement_get_their_own_answers() {
    let store = store("joined").await;
    // Every second one brings the message of the one before.
    let enqueue = |caller: u64| store.enqueue(Now::Store, Batch::one(item(caller / 2)).expect("small"));
    let enqueued = join_all((0..CALLERS).map(enqueue)).await;
    let mut news = BTreeSet::new();
    for (caller, outcomes) in (0..CALLERS).zip(enqueued) {
        match outcomes.expect("it answers").as_slice() {
            [EnqueueOutcome::Enqueued { id: new, .. }] => assert!(news.insert(*new), "new only once"),
            [EnqueueOutcome::Duplicate { id: first }] => assert_eq!(*first, id(caller / 2)),
            other => panic!("caller {caller} got {other:?}"),
        }
    }
    assert_eq!(news, (0..CALLERS / 2).map(id).collect());

    let leased = join_all((0..CALLERS).map(|caller| lease(&store, caller))).await;
    let mut taken = Vec::new();
    for (caller, messages) in (0..CALLERS).zip(leased) {
        for message in messages {
            let lease = message.progress.lease().expect("it is leased");
            assert_eq!(lease.consumer.as_str(), format!("caller-{caller}"), "who got it has its lease");
            taken.push(message);
        }
    }
    let ids: BTreeSet<MessageId> = taken.iter().map(Message::id).collect();
    assert_eq!((taken.len(), &ids), (news.len(), &news), "each message once");

    // One of them comes with a lease that is not the message's.
    let mut claims: Vec<Claim> = taken.iter().map(|message| Claim::on(message).expect("leased")).collect();
    claims[3].lease = LeaseId::new(u16::MAX, 1).expect("a lease id");
    let acks = claims.iter().map(|claim| {
        let batch = Batch::one(AckItem { claim: claim.clone() }).expect("small");
        store.ack(Now::Store, batch)
    });
    for (nth, outcomes) in join_all(acks).await.into_iter().enumerate() {
        let outcomes = outcomes.expect("it answers");
        let is_right = match outcomes.as_slice() {
            [Settled::Applied(acked)] => nth != 3 && acked.message == claims[nth].message,
            [Settled::LeaseLost] => nth == 3,
            _ => false,
        };
        assert!(is_right, "caller {nth} got {outcomes:?}");
    }
    let stats = store.stats(Now::Store, &queue()).await.expect("it counts");
    assert_eq!(stats.totals.of(Verb::Ack), u64::try_from(taken.len()).expect("a few") - 1);
}

#[tokio::test]
async fn a_large_batch_is_kept_as_a_small_one_is() {
    let store = store("copied").await;
    // The pair of type and source is there from here on, and one of the messages.
    let first = Batch::one(item(70)).expect("small");
    store.enqueue(Now::Store, first).await.expect("it answers");
    let rich = |number: u64| {
        let mut item = item(number);
        let spec = &mut item.draft.spec;
        spec.headers = Headers::new(
            [("trace", "1"), ("tenant", "ä\"b")].map(|(name, value)| (name.to_owned(), value.to_owned())),
        )
        .expect("good headers");
        spec.fairness_key = FairnessKey::new("key").expect("a good key");
        spec.max_attempts = NonZeroU32::new(3);
        spec.lease_timeout = Some(Millis::new(90_000));
        item.draft.priority = Priority::new(7).expect("a priority");
        item.draft.visible = When::After(Millis::from_days(1));
        item.draft.expires = Some(When::After(Millis::from_days(2)));
        item
    };
    let (small, large) = (vec![rich(0)], (1..=60).map(rich).collect());
    for items in [small, large] {
        let batch = Batch::each(items).expect("within the limits");
        let outcomes = store.enqueue(Now::Store, batch).await.expect("it answers");
        assert!(outcomes.iter().all(|outcome| matches!(outcome, EnqueueOutcome::Enqueued { .. })));
    }
    let kept = async |number| store.get(&queue(), id(number)).await.expect("it answers").expect("there");
    let (mut alone, copied) = (kept(0).await, kept(60).await);
    alone.spec.id = copied.spec.id;
    alone.spec.body = copied.spec.body.clone();
    assert_eq!(alone.spec, copied.spec);
    let spans = |message: &Message| {
        let expires_at = message.progress.expires_at.expect("it expires");
        (
            message.progress.priority,
            message.progress.visible_at.since(message.created_at),
            expires_at.since(message.created_at),
        )
    };
    assert_eq!(spans(&alone), spans(&copied));

    // One is there already: it alone is told so, and nothing is twice.
    let batch = Batch::each((61..=120).map(item).collect()).expect("within the limits");
    let outcomes = store.enqueue(Now::Store, batch).await.expect("it answers");
    for (number, outcome) in (61..=120).zip(outcomes) {
        let is_duplicate = matches!(outcome, EnqueueOutcome::Duplicate { id: first } if first == id(number));
        assert_eq!(is_duplicate, number == 70, "message {number} got {outcome:?}");
    }
    let stats = store.stats(Now::Store, &queue()).await.expect("it counts");
    assert_eq!((stats.totals.of(Verb::Enqueue), stats.totals.duplicates), (121, 1));
}
