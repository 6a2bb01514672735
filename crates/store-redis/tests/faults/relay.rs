//! A message on its way to a queue at another node, of which one answer is lost: whatever step it was, it is there once.

use redrive_core::message::{DeadReason, ErrorText, Message, MessageId};
use redrive_core::queue::QueueConfig;
use redrive_core::receipt::Claim;
use redrive_core::time::Millis;
use redrive_store::{
    Batch, Bulk, BuryItem, ExpireRequest, Filter, Judged, Limit, Now, QueueError, Selection, Settled, Store,
    StoreError, SweepRequest,
};
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{RedisCluster, RedisSettings};
use tokio::runtime::Handle;

use crate::cluster::{home_of, queue_at, slot_of};
use crate::world::{PATIENCE, World, hasty, options, patient, until_it_works};

pub(crate) async fn bury(world: &World, message: &Message) -> Judged {
    let (claim, error) = (Claim::on(message).unwrap(), ErrorText::new("hopeless"));
    let item = BuryItem { claim, reason: DeadReason::Buried, error };
    let buried = world.store.bury(Now::Store, Batch::one(item).unwrap()).await.unwrap();
    let [Settled::Applied(judged)] = buried.as_slice() else { panic!("{buried:?}") };
    judged.clone()
}

/// A sweeper goes on with what is on its way.
async fn sweep(world: &World) {
    until_it_works(async || {
        let request = SweepRequest { queue: None, limit: Limit::MAX };
        match world.store.retain(Now::Store, request).await {
            Ok(_) => Ok(()),
            Err(QueueError::Store(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    })
    .await;
}

/// A cluster with a proxy before each node, which is all that clients hear of.
struct Proxied {
    cluster: RedisCluster,
    proxies: Vec<Proxy>,
    source: World,
    graveyard: World,
    /// Where these two queues are.
    nodes: [usize; 2],
}

impl Proxied {
    async fn start() -> Self {
        let cluster = RedisCluster::start(&RedisSettings::shared()).expect("it forms");
        let before = |url: String| Proxy::before(&url).expect("it stands before it");
        let proxies: Vec<Proxy> = cluster.urls().into_iter().map(before).collect();
        for (node, proxy) in proxies.iter().enumerate() {
            cluster.announce(node, proxy.port()).expect("they hear of it");
        }
        let places: Vec<String> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
        let world = World::beside(options(&format!("redis+cluster://{}", places.join(",")))).await;
        let home = home_of(&cluster);
        let nodes = [home, (home + 1) % 3];
        let graveyard = queue_at(&cluster, &world, nodes[1], patient()).await;
        let config = QueueConfig { dead_letter_to: Some(Some(graveyard.queue.clone())), ..patient() };
        let source = queue_at(&cluster, &world, nodes[0], config).await;
        let started = Self { cluster, proxies, source, graveyard, nodes };
        // From here on the nodes know the scripts by their hashes.
        let known = started.leased().await;
        assert!(
            bury(&started.source, &known).await.moved_to.is_some(),
            "where nothing is lost it is there at once"
        );
        started.collect(known.id()).await;
        started
    }

    async fn leased(&self) -> Message {
        self.source.put(1).await;
        self.source.lease(1).await.remove(0)
    }

    /// Takes the message out of the graveyard, where it is all that there is.
    async fn collect(&self, id: MessageId) {
        let there = self.graveyard.lease(10).await;
        assert_eq!(there.iter().map(Message::id).collect::<Vec<_>>(), [id]);
        assert!(self.graveyard.ack(&there).await.unwrap()[0].is_applied());
    }

    async fn counts(&self) -> (u64, u64, u64) {
        let (left, there) = (self.source.stats().await, self.graveyard.stats().await);
        (left.states.all(), there.totals.moved_in, there.states.all())
    }
}

/// A step of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    SetsOut,
    Arrives,
    IsTakenAway,
}

impl Step {
    /// At which of the two queues it is done, and what only its call says.
    fn of(self, proxied: &Proxied, id: MessageId) -> (usize, String) {
        match self {
            Self::SetsOut => (0, format!("{id} {}", proxied.graveyard.queue)),
            Self::Arrives => (1, id.to_string()),
            // That it has arrived.
            Self::IsTakenAway => (0, format!("{id} 1 ")),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_arrives_once_whichever_answer_on_its_way_is_lost() {
    let proxied = Proxied::start().await;
    let mut arrived = 1;
    for step in [Step::SetsOut, Step::Arrives, Step::IsTakenAway] {
        for collected in [false, true] {
            let message = proxied.leased().await;
            let (queue, words) = step.of(&proxied, message.id());
            let rule = Rule::new(Trigger::Statement(words), Fault::CutReply);
            let lost = proxied.proxies[proxied.nodes[queue]].inject(rule);
            let judged = bury(&proxied.source, &message).await;
            assert_eq!((lost.fired(), &judged.moved_to), (1, &None), "{step:?}");
            arrived += 1;
            // Where it is by now; and who comes first, the sweeper or a consumer.
            let (left, there) = match step {
                Step::SetsOut => (1, 0),
                Step::Arrives => (1, 1),
                Step::IsTakenAway => (0, 1),
            };
            let counts = (left, arrived - 1 + there, there);
            assert_eq!(proxied.counts().await, counts, "{step:?}");
            assert!(proxied.source.lease(1).await.is_empty(), "it is handed out by nobody where it was");
            let first = collected && there == 1;
            if first {
                proxied.collect(message.id()).await;
            }
            // What has arrived is not brought again, however often somebody looks.
            sweep(&proxied.source).await;
            sweep(&proxied.source).await;
            assert_eq!(proxied.counts().await, (0, arrived, u64::from(!first)), "{step:?}");
            if !first {
                proxied.collect(message.id()).await;
            }
        }
    }
}

/// Moves messages from the one queue to the other.
async fn moved(source: &World, target: &World, ids: &[MessageId]) -> Result<Bulk, QueueError> {
    let selection = Selection::new(source.queue.clone(), Filter::ids(ids.iter().copied()));
    source.store.move_to(Now::Store, selection, target.queue.clone()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_comes_no_further_has_set_out_and_who_asks_again_goes_on_with_it() {
    let proxied = Proxied::start().await;
    let slot = slot_of(&proxied.cluster, &proxied.graveyard.queue);
    let ids = [proxied.source.put(2).await, proxied.source.put(1).await].concat();
    let handle = Handle::current();
    let moving = tokio::task::spawn_blocking({
        let ids = ids.clone();
        move || {
            let mut first = true;
            let to = proxied.nodes[0];
            let slot_moved = proxied.cluster.move_slot_slowly(slot, to, |_| {
                // The target can be looked at, and takes nothing.
                if std::mem::take(&mut first) {
                    let begun = handle.block_on(moved(&proxied.source, &proxied.graveyard, &ids[..1]));
                    let unknown = matches!(begun, Err(QueueError::Store(StoreError::OutcomeUnknown(_))));
                    assert!(unknown, "it has set out: {begun:?}");
                    let begun = handle.block_on(moved(&proxied.source, &proxied.graveyard, &ids[1..2]));
                    let unknown = matches!(begun, Err(QueueError::Store(StoreError::OutcomeUnknown(_))));
                    assert!(unknown, "it has set out: {begun:?}");
                }
            });
            slot_moved.expect("it moves");
            proxied
        }
    });
    let proxied = tokio::time::timeout(PATIENCE, moving).await.expect("it moves").expect("no panic");
    assert_eq!(proxied.counts().await, (3, 1, 0), "each is counted where it was until it has arrived");

    // By whoever asks for it once more, or by a sweeper; and what did not set out goes with it.
    let again = moved(&proxied.source, &proxied.graveyard, &ids[1..]).await.unwrap();
    assert_eq!((again.matched, again.applied, again.refused), (2, ids[1..].to_vec(), Vec::new()));
    assert_eq!(proxied.counts().await, (1, 3, 2));
    sweep(&proxied.source).await;
    assert_eq!(proxied.counts().await, (0, 4, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_dies_though_nobody_can_look_for_the_queue_of_the_dead() {
    let settings = RedisSettings::default().set("cluster-require-full-coverage", "no");
    let mut cluster = RedisCluster::start(&settings).expect("it forms");
    let world = World::beside(hasty(&cluster.url())).await;
    let home = home_of(&cluster);
    let away = (home + 1) % 3;
    let graveyard = queue_at(&cluster, &world, away, patient()).await;
    let config = QueueConfig { dead_letter_to: Some(Some(graveyard.queue.clone())), ..patient() };
    let source = queue_at(&cluster, &world, home, config).await;
    // Somebody who has never heard of that queue.
    let beside = World { queue: source.queue.clone(), ..World::beside(hasty(&cluster.url())).await };
    source.put(2).await;
    let leased = source.lease(1).await;
    assert_eq!(source.take(1, Millis::new(1)).await.unwrap().messages.len(), 1);
    cluster.kill(away).expect("it is killed");

    let judged = bury(&beside, &leased[0]).await;
    assert_eq!(judged.moved_to, None, "it travels on later");
    let expired = async {
        loop {
            let request = ExpireRequest { queue: None, limit: Limit::MAX, error: None, seed: 1 };
            let expired = beside.store.expire(Now::Store, request).await.expect("nobody waits for that node");
            if !expired.is_empty() {
                return expired.len();
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, expired).await, Ok(1), "its lease has run out");

    cluster.restart(away).expect("it comes back");
    // The first sweep may find that it has to meet that node.
    let gone = async {
        while beside.stats().await.states.all() > 1 {
            sweep(&beside).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it travels on");
    let graveyard = World { queue: graveyard.queue, ..beside };
    let arrived = graveyard.lease(10).await;
    assert_eq!(arrived.iter().map(Message::id).collect::<Vec<_>>(), [leased[0].id()]);
}
