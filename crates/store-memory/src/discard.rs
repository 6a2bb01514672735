//! discard: any but leased → gone; by force leased ones too. Retention is a discard with time as its cause.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{MessageId, Phase};
use redrive_core::queue::{QueueName, Retention};
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, QueueError, Selection, SweepRequest};

use crate::state::{QueueState, State};

impl State {
    pub(crate) fn discard(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        force: bool,
    ) -> Result<Bulk, QueueError> {
        let free =
            |message: &redrive_core::message::Message| lifecycle::may_discard(&message.progress, force);
        self.bulk(now, selection, free, |state, id| {
            state.remove(&selection.queue, id);
            Ok(())
        })
    }

    fn remove(&mut self, name: &QueueName, id: MessageId) {
        if let Some(queue) = self.queues.get_mut(name)
            && let Some(message) = queue.messages.remove(&id)
        {
            queue.let_go(&message);
            queue.totals.count(Verb::Discard);
        }
    }

    pub(crate) fn retain(&mut self, now: Timestamp, request: &SweepRequest) -> Result<u64, QueueError> {
        let mut left = request.limit.get();
        for name in self.queues_of(request.queue.as_ref())? {
            let beyond = self.queue(&name)?.beyond_retention(now, left);
            left -= beyond.len();
            for id in beyond {
                self.remove(&name, id);
            }
        }
        Ok((request.limit.get() - left) as u64)
    }
}

impl QueueState {
    /// The messages that retention no longer keeps, the oldest first.
    fn beyond_retention(&self, now: Timestamp, limit: usize) -> Vec<MessageId> {
        let mut done = Vec::new();
        let mut dead = Vec::new();
        for message in self.messages.values() {
            match &message.progress.phase {
                Phase::Done(at) => done.push((*at, message.id())),
                Phase::Dead(death) => dead.push((death.at, message.id())),
                Phase::Waiting | Phase::Leased(_) => {}
            }
        }
        let kept_done = self.settings.retain_done.unwrap_or(Retention { age: None, count: Some(0) });
        let kept_dead = self.settings.retain_dead.unwrap_or(Retention { age: None, count: None });
        let mut beyond = over(done, kept_done, now);
        beyond.extend(over(dead, kept_dead, now));
        beyond.sort_unstable();
        beyond.into_iter().take(limit).map(|(_, id)| id).collect()
    }
}

fn over(
    mut ended: Vec<(Timestamp, MessageId)>,
    kept: Retention,
    now: Timestamp,
) -> Vec<(Timestamp, MessageId)> {
    ended.sort_unstable();
    let too_many = match kept.count {
        Some(count) => ended.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX)),
        None => 0,
    };
    let too_old = match kept.age {
        Some(age) => ended.partition_point(|(at, _)| at.plus(age) <= now),
        None => 0,
    };
    ended.truncate(too_many.max(too_old));
    ended
}
