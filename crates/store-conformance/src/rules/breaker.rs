//! The shared row of a circuit breaker: one probe means one over all instances.

use bytes::Bytes;
use redrive_core::message::MessageId;
use redrive_core::policy::{Breaker, BreakerConfig, BreakerRow, BreakerState, Outcome, ProbeTicket};
use redrive_core::time::Timestamp;
use redrive_store::{EntryKey, EntryKind, EntryName, Expect, Pick, Write, WriteOutcome, Writes};

use crate::world::World;

/// One instance's breaker, with the version of the shared row it has seen.
struct Instance {
    breaker: Breaker,
    seen: Option<u64>,
}

impl Instance {
    fn new(number: u64) -> Self {
        Self { breaker: Breaker::shared(BreakerConfig::default(), number), seen: None }
    }

    /// Takes over what the row says.
    async fn look(&mut self, w: &World) {
        let entry = w.store().registry_get(&row_key()).await.expect("answers");
        self.seen = entry.as_ref().map(|entry| entry.version);
        if let Some(entry) = entry {
            let row = BreakerRow::from_bytes(&entry.value).expect("a row that was written");
            self.breaker.adopt(row, w.now());
        }
    }

    /// Tries to make its own state the shared one; `false` where another instance was faster.
    async fn publish(&mut self, w: &World) -> bool {
        let expect = self.seen.map_or(Expect::Absent, Expect::Version);
        let value = Some(Bytes::from(self.breaker.row().to_bytes().to_vec()));
        let writes = Writes::new(vec![Write { key: row_key(), expect, value }]).expect("one write");
        match w.store().registry_write(writes).await.expect("answers") {
            WriteOutcome::Committed(versions) => {
                self.seen = versions[0];
                true
            }
            WriteOutcome::Conflict { .. } => false,
        }
    }
}

fn row_key() -> EntryKey {
    EntryKey { kind: EntryKind::Breaker, name: EntryName::new("q").expect("good") }
}

fn open_by_failures(breaker: &mut Breaker, now: Timestamp) {
    for n in 0..8u128 {
        breaker.record(now, now, MessageId::new(now, n), Outcome::Failure);
    }
    assert_eq!(breaker.state(now), BreakerState::Open);
}

async fn one_probe_means_one_over_all_instances(w: &mut World) {
    let mut instances: Vec<Instance> = (1..=3).map(Instance::new).collect();
    open_by_failures(&mut instances[0].breaker, w.now());
    assert!(instances[0].publish(w).await);
    for instance in &mut instances[1..] {
        instance.look(w).await;
        assert_eq!(instance.breaker.state(w.now()), BreakerState::Open, "an open breaker is open for all");
    }
    w.advance(30_000);
    let tickets: Vec<Option<ProbeTicket>> =
        instances.iter_mut().map(|instance| instance.breaker.reserve_probe(w.now())).collect();
    assert!(tickets.iter().all(Option::is_some), "each thinks that the slot is free");
    let mut probes = 0;
    for instance in &mut instances {
        probes += usize::from(instance.publish(w).await);
    }
    assert_eq!(probes, 1, "but only one of them gets it");
    for instance in &mut instances[1..] {
        instance.look(w).await;
        assert_eq!(instance.breaker.reserve_probe(w.now()), None, "the others see that it is taken");
    }
}

async fn an_open_breaker_burns_no_attempt(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 5, |_, _| ()).await;
    let mut instance = Instance::new(1);
    open_by_failures(&mut instance.breaker, w.now());
    let mut probed = Vec::new();
    for _ in 0..3 {
        w.advance(30_000);
        let ticket = instance.breaker.reserve_probe(w.now()).expect("half-open");
        let avoid = instance.breaker.last_probe();
        let probe = w.lease_with(&q, 10, |r| r.pick = Pick::Probe { avoid }).await.messages;
        assert_eq!(probe.len(), 1, "exactly one probe");
        let deadline = probe[0].lease().expect("leased").deadline;
        assert!(instance.breaker.probe_leased(ticket, probe[0].id(), deadline));
        w.nack(&probe[0]).await;
        instance.breaker.record(w.now(), w.now(), probe[0].id(), Outcome::Failure);
        assert_eq!(instance.breaker.state(w.now()), BreakerState::Open);
        probed.push(probe[0].id());
    }
    probed.sort_unstable();
    probed.dedup();
    assert_eq!(probed.len(), 3, "another message each time");
    let untouched = ids.into_iter().filter(|id| !probed.contains(id));
    let untouched = w.list(&q, redrive_store::Filter::ids(untouched)).await;
    assert!(untouched.len() == 2 && untouched.iter().all(|message| message.progress.deliveries == 0));
}

rules!("breaker"; one_probe_means_one_over_all_instances, an_open_breaker_burns_no_attempt);
