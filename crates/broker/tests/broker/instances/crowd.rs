//! Many consumers at several instances, one of which is killed: each message is acked once, and none is left behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use redrive_broker::{Broker, LeaseCall, Nack};
use redrive_core::dice::Dice;
use redrive_core::message::{ErrorText, MessageId};
use redrive_core::policy::Asked;
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use tokio::task::JoinSet;

use super::{Resident, Town};
use crate::world::retry;

const MESSAGES: usize = 300;
const CONSUMERS: u64 = 4;

/// How often each message was acked.
type Acked = Arc<Mutex<BTreeMap<MessageId, u32>>>;

/// Takes what it gets; acks most of it, fails some, and forgets the rest.
async fn consume(broker: Broker, call: LeaseCall, mut dice: Dice, acked: Acked) {
    while let Ok(deliveries) = broker.lease(call.clone()).await {
        for delivery in deliveries {
            match dice.roll() % 10 {
                0..=5 => {
                    let done = broker.ack(vec![delivery.receipt]).await.unwrap().remove(0);
                    if done.applied().is_some() {
                        *acked.lock().unwrap().entry(delivery.message.id()).or_default() += 1;
                    }
                }
                6..=7 => {
                    let nack = Nack {
                        receipt: delivery.receipt,
                        asked: Asked::Nothing,
                        error: ErrorText::new("boom"),
                        checkpoint: None,
                    };
                    broker.nack(vec![nack]).await.unwrap();
                }
                _ => {}
            }
        }
    }
}

fn start(consumers: &mut JoinSet<()>, resident: &Resident, acked: &Acked, seed: u64) {
    for number in 0..CONSUMERS {
        let call = LeaseCall { wait: Millis::from_secs(2), ..resident.call(3) };
        let dice = Dice::seeded(seed * 100 + number);
        consumers.spawn(consume(resident.broker.clone(), call, dice, Arc::clone(acked)));
    }
}

#[tokio::test(start_paused = true)]
async fn each_message_is_acked_once_whoever_is_killed() {
    let config = QueueConfig { lease_timeout: Some(Millis::from_secs(7)), ..retry(Millis::new(500), 1_000) };
    let (town, a, b) = Town::two(config).await;
    let (mut staying, mut killed, acked) = (JoinSet::new(), JoinSet::new(), Acked::default());
    start(&mut killed, &a, &acked, 1);
    start(&mut staying, &b, &acked, 2);
    b.put(MESSAGES / 2).await;
    a.put(MESSAGES / 2).await;
    for _ in 0..5 {
        town.advance(Millis::from_secs(1)).await;
    }
    // The one that sweeps.
    a.kill();
    killed.abort_all();
    let late = town.instance().await;
    start(&mut staying, &late, &acked, 3);
    let mut rounds = 0;
    while b.states().await != (0, 0, 0, 0) {
        rounds += 1;
        assert!(rounds < 600, "{:?} is left", b.states().await);
        town.advance(Millis::from_secs(1)).await;
    }
    let acked = acked.lock().unwrap();
    assert_eq!((acked.len(), acked.values().all(|times| *times == 1)), (MESSAGES, true));
}
