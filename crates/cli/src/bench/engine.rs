//! The engine in this process: what the server could do at best, were there no network.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, FairnessKey, Headers, MessageId, MessageType, Priority, Source, Spec,
};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{
    AckItem, Batch, CreateQueue, EnqueueItem, EnqueueOutcome, LeaseRequest, Limit, Now, Settled, Store,
};
use redrive_store_embedded::{EmbeddedStore, Options};

/// One caller of a store, with a queue of its own.
#[derive(Debug)]
pub(crate) struct Engine {
    store: Arc<EmbeddedStore>,
    queue: QueueName,
    spec: Spec,
    made: u64,
    dice: Dice,
}

impl Engine {
    /// As many callers of one new store.
    pub(crate) async fn callers(dir: &Path, count: u32, body_bytes: usize) -> anyhow::Result<Vec<Self>> {
        let store = Arc::new(EmbeddedStore::open(dir, Options::default()).context("opening a store")?);
        let mut callers = Vec::new();
        for number in 0..count {
            let queue = QueueName::new(format!("redrive-bench-{number}"))?;
            let request = CreateQueue { name: queue.clone(), config: QueueConfig::default() };
            store.create_queue(Now::Store, request).await?;
            let spec = Spec {
                id: MessageId::MIN,
                body: Body::new(vec![b'a'; body_bytes])?,
                content_type: ContentType::default(),
                headers: Headers::default(),
                kind: MessageType::new("invoice.paid")?,
                source: Source::new("bench")?,
                fairness_key: FairnessKey::default(),
                dedup: None,
                lease_timeout: None,
                max_attempts: None,
            };
            let dice = Dice::seeded(u64::from(number));
            callers.push(Self { store: Arc::clone(&store), queue, spec, made: 0, dice });
        }
        Ok(callers)
    }

    /// enqueue, lease, ack.
    pub(crate) async fn life_cycle(&mut self, count: usize) -> anyhow::Result<()> {
        let items = (0..count).map(|_| EnqueueItem { queue: self.queue.clone(), draft: self.draft() });
        let batch = Batch::each(items.collect())?;
        let outcomes = self.store.enqueue(Now::Store, batch).await?;
        ensure!(outcomes.iter().all(|outcome| matches!(outcome, EnqueueOutcome::Enqueued { .. })));
        let consumer = ConsumerName::new("redrive-bench")?;
        let request = LeaseRequest::new(self.queue.clone(), Limit::new(count)?, consumer, self.dice.roll());
        let messages = self.store.lease(Now::Store, request).await?.messages;
        ensure!(messages.len() == count, "what is ready is handed out");
        let claims = messages.iter().filter_map(Claim::on).map(|claim| AckItem { claim });
        let outcomes = self.store.ack(Now::Store, Batch::each(claims.collect())?).await?;
        ensure!(outcomes.iter().all(Settled::is_applied), "a lease of ours was lost");
        Ok(())
    }

    fn draft(&mut self) -> Draft {
        // As ids of a producer are: the time in front, chance behind.
        let at = Timestamp::from_millis(1_800_000_000_000 + self.made / 100);
        let id = MessageId::new(at, u128::from(self.dice.roll()) << 10 | u128::from(self.made & 0x3FF));
        self.made += 1;
        Draft {
            spec: Spec { id, ..self.spec.clone() },
            priority: Priority::default(),
            visible: When::Now,
            expires: None,
        }
    }
}
