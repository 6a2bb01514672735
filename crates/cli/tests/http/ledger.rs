//! What consumers saw of each message, and what must be true of it. Only what clients were told proves anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::watch;

/// What came of a lease, as its consumer was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was left to run out.
    Left,
    /// An ack was applied.
    Acked,
    /// A nack was applied.
    Nacked,
    /// A settlement was refused, because the lease was over.
    Refused,
    /// An ack was sent, and nobody said what came of it. When it was sent again the message was gone.
    PerhapsAcked,
    /// A nack was sent, and the lease was over when it was sent again.
    PerhapsNacked,
}

#[derive(Debug, Clone)]
struct Delivery {
    attempt: u64,
    leased_at: String,
    deadline: String,
    fate: Fate,
}

#[derive(Debug, Default)]
struct Entries {
    /// By message, by fencing token.
    deliveries: BTreeMap<String, BTreeMap<u64, Delivery>>,
    left: u64,
    nacked: u64,
    refused: u64,
    unknown: u64,
}

/// What all consumers saw.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: Mutex<Entries>,
    acked: watch::Sender<u64>,
}

/// How often what happened; for who reads the output of a test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) acked: u64,
    pub(crate) left: u64,
    pub(crate) nacked: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self { entries: Mutex::default(), acked: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap()
    }

    /// A message was handed out.
    pub(crate) fn leased(&self, message: &Value) {
        let lease = &message["lease"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let delivery = Delivery {
            attempt: message["attempts"].as_u64().unwrap(),
            leased_at: text(&lease["leased_at"]),
            deadline: text(&lease["deadline"]),
            fate: Fate::Left,
        };
        let mut entries = self.lock();
        entries.left += 1;
        let before =
            entries.deliveries.entry(text(&message["id"])).or_default().insert(token(message), delivery);
        assert!(before.is_none(), "a lease was handed out twice: {message}");
    }

    /// A settlement was answered.
    pub(crate) fn settled(&self, message: &Value, fate: Fate) {
        let mut entries = self.lock();
        let id = message["id"].as_str().unwrap();
        let delivery = entries.deliveries.get_mut(id).unwrap().get_mut(&token(message)).unwrap();
        assert_eq!(delivery.fate, Fate::Left, "a lease was settled twice: {message}");
        delivery.fate = fate;
        entries.left -= 1;
        match fate {
            Fate::Left => entries.left += 1,
            Fate::Acked => self.acked.send_modify(|acked| *acked += 1),
            Fate::Nacked => entries.nacked += 1,
            Fate::Refused => entries.refused += 1,
            Fate::PerhapsAcked | Fate::PerhapsNacked => entries.unknown += 1,
        }
    }

    /// Returns when so many acks were applied.
    pub(crate) async fn acked(&self, count: u64) {
        self.acked.subscribe().wait_for(|acked| *acked >= count).await.unwrap();
    }

    pub(crate) fn seen(&self) -> Seen {
        let entries = self.lock();
        let Entries { left, nacked, refused, unknown, .. } = *entries;
        Seen { acked: *self.acked.borrow(), left, nacked, refused, unknown }
    }

    /// Whether every one of `ids` was acked once, or is one of the `dead`, and no two leases of it were current at a time.
    pub(crate) fn check(&self, ids: &BTreeSet<String>, dead: &BTreeSet<String>, attempts_max: u64) {
        let entries = self.lock();
        assert!(dead.is_subset(ids));
        for (id, deliveries) in &entries.deliveries {
            assert!(ids.contains(id), "{id} came from nowhere");
            check_leases(id, deliveries, attempts_max);
        }
        for id in ids {
            let none = BTreeMap::new();
            let deliveries = entries.deliveries.get(id).unwrap_or(&none);
            let with = |fate| deliveries.values().filter(|delivery| delivery.fate == fate).count();
            let (acked, perhaps) = (with(Fate::Acked), with(Fate::PerhapsAcked));
            if dead.contains(id) {
                assert_eq!((acked, perhaps), (0, 0), "{id} is dead and was acked: {deliveries:?}");
            } else {
                // One whose answer was lost may have come too late for a lease that somebody else acked.
                let once = acked == 1 || acked == 0 && perhaps > 0;
                assert!(once, "{id} is gone and was not acked once: {deliveries:?}");
            }
        }
    }
}

fn token(message: &Value) -> u64 {
    message["lease"]["lease_id"].as_str().unwrap().parse().unwrap()
}

/// By the order of fencing tokens: what ends a message comes last, attempts grow, and no lease begins before the one
/// before it has ended.
fn check_leases(id: &str, deliveries: &BTreeMap<u64, Delivery>, attempts_max: u64) {
    let all: Vec<&Delivery> = deliveries.values().collect();
    assert!(all.iter().all(|delivery| delivery.attempt <= attempts_max), "{id}: {all:?}");
    for pair in all.windows(2) {
        let [earlier, later] = pair else { unreachable!("windows of two") };
        assert!(earlier.attempt < later.attempt, "{id} was not charged for an attempt: {all:?}");
        let ended = match earlier.fate {
            Fate::Acked => false,
            Fate::Nacked => earlier.leased_at <= later.leased_at,
            Fate::Left | Fate::Refused | Fate::PerhapsAcked | Fate::PerhapsNacked => {
                earlier.deadline <= later.leased_at
            }
        };
        // A nack that nobody answered may have been applied before the deadline.
        let perhaps = earlier.fate == Fate::PerhapsNacked && earlier.leased_at <= later.leased_at;
        assert!(ended || perhaps, "{id} was leased while it was leased, or after its ack: {all:?}");
    }
}
