//! How the reference follows another store's choice, where the design leaves one.
//!
//! Whose turn it is, is what an instance keeps for itself, so two right stores may hand out different messages
//! to the same call. The model tests therefore ask the other store first, and then ask the reference whether
//! that was lawful, and to do the same. Who may be chosen at all, and in which order within a lane and a key, is
//! no choice; it is checked here message by message, without the ring and the credit by which `lease.rs` chooses.

use redrive_core::message::{Lane, Message, MessageId};
use redrive_core::time::Timestamp;
use redrive_store::{LeaseRequest, Leased, Now, Pick, QueueError};

use crate::MemoryStore;
use crate::lease::place;
use crate::state::QueueState;

impl MemoryStore {
    /// Leases exactly `picked`, in that order, or says why that would break a rule. `more` is what the other store
    /// said about what is left.
    pub fn follow_lease(
        &self,
        now: Now,
        request: &LeaseRequest,
        (picked, more): (&[MessageId], bool),
    ) -> Result<Result<Leased, QueueError>, String> {
        self.with(|state| {
            let now = match state.clock(now) {
                Ok(now) => now,
                Err(error) => return Ok(Err(error.into())),
            };
            let swept = match state.sweep_before_lease(now, request) {
                Ok(swept) => swept,
                Err(error) => return Ok(Err(error)),
            };
            let mut messages = Vec::new();
            for id in picked {
                state.queue(&request.queue).map_err(told)?.lawful(now, request, *id)?;
                let lease = state.next_lease().map_err(told)?;
                messages.extend(state.hand_out(now, request, *id, lease).map_err(told)?);
            }
            let limit = if request.pick == Pick::Fair { request.limit.get() } else { 1 };
            if picked.len() > limit {
                return Err(format!("{} came, {limit} were asked for", picked.len()));
            }
            if !more && state.queue(&request.queue).map_err(told)?.may_have_more(now, request) {
                return Err("something is left, though the call said that nothing is".to_owned());
            }
            Ok(Ok(Leased { at: now, messages, more, swept }))
        })
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl QueueState {
    /// Messages that this call may take.
    pub(crate) fn allowed(&self, now: Timestamp, request: &LeaseRequest) -> impl Iterator<Item = &Message> {
        let (fresh, retry) = self.lanes_of(request.lane);
        let retry = retry && self.retries_left() > 0;
        let probe = matches!(request.pick, Pick::Probe { .. });
        let paused = self.queue.pauses.holds_queue(now);
        self.leasable(now).filter(move |message| {
            let lane = if message.progress.lane() == Lane::Fresh { fresh } else { retry };
            !paused && (probe || lane) && request.filter.takes(&message.spec.kind, &message.spec.source)
        })
    }

    fn lawful(&self, now: Timestamp, request: &LeaseRequest, id: MessageId) -> Result<(), String> {
        let picked = self.allowed(now, request).find(|message| message.id() == id);
        let picked = picked.ok_or_else(|| format!("{id} was handed out, and may not be"))?;
        let ahead = self.allowed(now, request).find(|other| match request.pick {
            Pick::Fair => {
                other.progress.lane() == picked.progress.lane()
                    && other.spec.fairness_key == picked.spec.fairness_key
                    && place(other) < place(picked)
            }
            Pick::Probe { avoid } => {
                let rank = |message: &Message| (Some(message.id()) == avoid, message.progress.attempts);
                rank(other) < rank(picked)
            }
        });
        match ahead {
            Some(ahead) => Err(format!("{id} was handed out before {}", ahead.id())),
            None => Ok(()),
        }
    }
}
