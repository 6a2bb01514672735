//! What the promises of the design say about the answers of one store, without asking another.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::lease::LeaseId;
use redrive_core::lifecycle::{ARROWS, Verb};
use redrive_core::message::{Message, MessageId, State};
use redrive_core::queue::{QueueName, QueueSettings};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;

type Address = (QueueName, MessageId);

/// Where every message is, and in which state.
pub(super) type States = BTreeMap<Address, State>;

/// What is known of leases from the answers alone.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    current: BTreeMap<Address, LeaseId>,
    largest: BTreeMap<MessageId, LeaseId>,
}

impl Ledger {
    /// A message was handed out: alone, with a larger token, not early, not too old and not over its cap.
    pub(super) fn granted(
        &mut self,
        message: &Message,
        settings: &QueueSettings,
        now: Timestamp,
    ) -> Result<(), String> {
        let id = message.id();
        let lease = message.lease().ok_or_else(|| format!("{id} was handed out without a lease"))?;
        let address = (message.queue.clone(), id);
        if let Some(other) = self.current.insert(address, lease.id) {
            return Err(format!("{id} has two current leases, {other} and {}", lease.id));
        }
        if let Some(before) = self.largest.insert(id, lease.id).filter(|before| *before >= lease.id) {
            return Err(format!("{id}: lease id {} follows {before}", lease.id));
        }
        let progress = &message.progress;
        if progress.visible_at > now {
            return Err(format!("{id} was handed out {} early", progress.visible_at.since(now)));
        }
        if progress.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(format!("{id} was handed out after its time to live"));
        }
        let cap = message.spec.max_attempts.or(settings.retry.max_attempts);
        if cap.is_some_and(|cap| progress.attempts > cap.get()) {
            return Err(format!("{id} was handed out for attempt {} of {cap:?}", progress.attempts));
        }
        Ok(())
    }

    /// A receipt was accepted: it must have been the current one.
    pub(super) fn accepted(&mut self, claim: &Claim, ends: bool) -> Result<(), String> {
        let address = (claim.queue.clone(), claim.message);
        if self.current.get(&address) != Some(&claim.lease) {
            return Err(format!(
                "a receipt of lease {} of {} was accepted; it is not current",
                claim.lease, claim.message
            ));
        }
        if ends {
            self.current.remove(&address);
        }
        Ok(())
    }

    /// A lease was ended by somebody else.
    pub(super) fn ended(&mut self, queue: &QueueName, id: MessageId) {
        self.current.remove(&(queue.clone(), id));
    }

    /// A queue was deleted with everything in it.
    pub(super) fn deleted(&mut self, queue: &QueueName) {
        self.current.retain(|(name, _), _| name != queue);
    }

    /// The leases that are left must be those that the ledger knows.
    pub(super) fn agrees(&self, states: &States) -> Result<(), String> {
        let leased: BTreeSet<&Address> =
            states.iter().filter(|(_, state)| **state == State::Leased).map(|(address, _)| address).collect();
        let known: BTreeSet<&Address> = self.current.keys().collect();
        if leased == known {
            Ok(())
        } else {
            Err(format!("leased are {leased:?}, handed out were {known:?}"))
        }
    }
}

/// Every change of state must be a way along arrows of these verbs, and no other.
pub(super) fn explained(before: &States, after: &States, verbs: &[Verb]) -> Result<(), String> {
    let addresses: BTreeSet<&Address> = before.keys().chain(after.keys()).collect();
    for address in addresses {
        let (from, to) = (before.get(address).copied(), after.get(address).copied());
        if from != to && !reachable(from, to, verbs) {
            return Err(format!("{} went from {from:?} to {to:?}, which {verbs:?} cannot do", address.1));
        }
    }
    Ok(())
}

fn reachable(from: Option<State>, to: Option<State>, verbs: &[Verb]) -> bool {
    let mut seen = BTreeSet::from([from]);
    loop {
        let before = seen.len();
        for arrow in ARROWS.iter().filter(|arrow| verbs.contains(&arrow.verb)) {
            // The ends of a move are in two queues: in each, it is a way out or a way in.
            let ways = match arrow.verb {
                Verb::Move => vec![(arrow.from, None), (None, arrow.to)],
                _ => vec![(arrow.from, arrow.to)],
            };
            for (start, end) in ways {
                if seen.contains(&start) {
                    seen.insert(end);
                }
            }
        }
        if seen.contains(&to) {
            return true;
        }
        if seen.len() == before {
            return false;
        }
    }
}
