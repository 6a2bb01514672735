//! Several brokers on one store. They share the clock, as instances on one database do; nothing but signals connects them,
//! so what one learns of another while the clock stands still it was told. The time of the machine, by which signals are
//! gathered, moves by itself when nobody has anything to do: no test waits for it.

mod breaker;
mod cached;
mod crowd;
mod door;
mod events;
mod numbers;
mod operations;
mod polls;
mod sweeper;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use redrive_broker::{Broker, BrokerConfig, ManualClock};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::CreateQueue;
use redrive_store_memory::{MemoryStore, Options};

use crate::world::{PATIENCE, World};
use door::Door;

/// A store that several brokers share.
struct Town {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
}

/// One of them.
struct Resident {
    world: World,
    door: Arc<Door>,
}

impl Deref for Resident {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Resident {
    /// Ends as a server ends that is told to.
    async fn stop(self) -> Arc<Door> {
        let World { _background: background, .. } = self.world;
        background.stop().await;
        self.door
    }

    /// Ends as a process ends that is killed: nothing that it began is finished, and it tells nobody.
    fn kill(self) -> Arc<Door> {
        self.door.hold(door::EVERYTHING);
        drop(self.world);
        self.door
    }
}

impl Town {
    fn new() -> Self {
        let options = Options { shared: true, ..Options::new(ReceiptKey::new([7; 32])) };
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
        Self { store: Arc::new(MemoryStore::new(options)), clock }
    }

    async fn instance(&self) -> Resident {
        let door = Arc::new(Door::new(self.store.door().unwrap()));
        let config = BrokerConfig { poll_wait_max: PATIENCE, ..BrokerConfig::default() };
        let store = Arc::<Door>::clone(&door);
        let (broker, background) =
            Broker::start(store, Arc::<ManualClock>::clone(&self.clock), config).await.unwrap();
        let world = World {
            broker,
            _background: background,
            clock: Arc::clone(&self.clock),
            store: Arc::clone(&self.store),
            queue: QueueName::new("orders").unwrap(),
        };
        settle().await;
        Resident { world, door }
    }

    /// Two instances, and a queue that both know.
    async fn two(config: QueueConfig) -> (Self, Resident, Resident) {
        let town = Self::new();
        let (a, b) = (town.instance().await, town.instance().await);
        a.broker.create_queue(CreateQueue { name: a.queue.clone(), config }).await.unwrap();
        for resident in [&a, &b] {
            resident.broker.breaker(&resident.queue).await.unwrap();
        }
        settle().await;
        (town, a, b)
    }

    /// Time passes, and whoever waited for it acts.
    async fn advance(&self, time: Millis) {
        self.clock.advance(time);
        settle().await;
    }
}

/// Lets everything happen that waits for nothing but its turn. The time of the machine stands still while anybody works, and
/// the signals of an instance are told a few of its milliseconds apart.
async fn settle() {
    machine_time(50).await;
}

/// Lets the machine's time pass, once nobody has anything to do.
pub(crate) async fn machine_time(ms: u64) {
    let nothing = std::future::pending::<()>();
    assert!(tokio::time::timeout(Duration::from_millis(ms), nothing).await.is_err());
}

/// Waits for something that must come to be.
async fn eventually(mut is: impl AsyncFnMut() -> bool) {
    for _ in 0..10_000 {
        if is().await {
            return;
        }
        machine_time(1).await;
    }
    panic!("it did not come to be");
}
