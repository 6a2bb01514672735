//! Producers and consumers that go on whatever happens, and write down what they are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redrive_core::time::Millis;
use redrive_store::Now;
use tokio::task::JoinSet;

use crate::ledger::{Ledger, PATIENCE};
use crate::world::{LATER, World, claims, unique};

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 3;
/// Short, so that what a lost answer has leased comes back.
const LEASE: Millis = Millis::new(2_000);

pub(crate) struct Load {
    world: World,
    pub(crate) ledger: Arc<Ledger>,
    over: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Load {
    pub(crate) fn on(world: &World) -> Self {
        let (ledger, over) = (Arc::new(Ledger::new()), Arc::new(AtomicBool::new(false)));
        let mut tasks = JoinSet::new();
        for _ in 0..PRODUCERS {
            let (world, ledger, over) = (world.clone(), Arc::clone(&ledger), Arc::clone(&over));
            tasks.spawn(async move {
                let mut transaction = false;
                while !over.load(Ordering::Relaxed) {
                    produce(&world, &ledger, transaction).await;
                    transaction = !transaction;
                }
            });
        }
        for _ in 0..CONSUMERS {
            let (world, ledger, over) = (world.clone(), Arc::clone(&ledger), Arc::clone(&over));
            tasks.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    consume(&world, &ledger, Now::Store).await;
                }
            });
        }
        Self { world: world.clone(), ledger, over, tasks }
    }

    /// Ends the load, empties the queue, and looks whether everything that was told is true.
    pub(crate) async fn end(mut self) -> Arc<Ledger> {
        self.over.store(true, Ordering::Relaxed);
        let ended = async {
            while let Some(task) = self.tasks.join_next().await {
                task.unwrap();
            }
            while consume(&self.world, &self.ledger, LATER).await {}
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("the queue becomes empty");
        assert_eq!(self.world.messages().await, 0);
        self.ledger.check();
        self.ledger
    }
}

async fn produce(world: &World, ledger: &Ledger, transaction: bool) {
    let mut drafts: Vec<_> = (0..5).map(|_| World::draft()).collect();
    let ids: Vec<_> = drafts.iter().map(|draft| draft.spec.id).collect();
    // Every other batch is one statement, the others have something to look up and are a transaction.
    if transaction {
        for draft in &mut drafts {
            draft.spec.dedup = Some(unique(&draft.spec.id.to_string()));
        }
    }
    ledger.sent(&ids, &world.send(drafts).await);
}

/// Whether there was anything, or could have been.
async fn consume(world: &World, ledger: &Ledger, now: Now) -> bool {
    let Ok(leased) = world.take(now, 10, LEASE).await else { return true };
    if leased.messages.is_empty() {
        return leased.more;
    }
    ledger.delivered(&leased.messages);
    let claims = claims(&leased.messages);
    ledger.acked(&claims, &world.ack(&claims).await);
    true
}
