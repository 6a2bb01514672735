//! discard: any but leased → gone; by force leased ones too. Retention is a discard with time as its cause.

use redrive_core::lifecycle::Verb;
use redrive_core::queue::Retention;
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, QueueError, Selection, SweepRequest};

use crate::core::Core;
use crate::state::entry::Stage;
use crate::state::queue::QueueState;

impl Core {
    pub(crate) fn discard(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        force: bool,
    ) -> Result<Bulk, QueueError> {
        self.bulk(
            now,
            selection,
            |stage| force || stage != Stage::Leased,
            |core, slot| {
                core.discard_one(slot);
                Ok(())
            },
        )
    }

    fn discard_one(&mut self, slot: u32) {
        self.count(self.messages.at(slot).queue, Verb::Discard);
        self.remove_all(&[slot]);
    }

    pub(crate) fn retain(&mut self, now: Timestamp, request: &SweepRequest) -> Result<u64, QueueError> {
        let mut left = request.limit.get();
        for number in self.numbers_of(request.queue.as_ref())? {
            let beyond = self.queue(number).beyond_retention(now, left);
            left -= beyond.len();
            for slot in beyond {
                self.discard_one(slot);
            }
        }
        Ok((request.limit.get() - left) as u64)
    }
}

impl QueueState {
    /// The messages that retention no longer keeps, the oldest first.
    fn beyond_retention(&self, now: Timestamp, limit: usize) -> Vec<u32> {
        let kept_done = self.settings.retain_done.unwrap_or(Retention { age: None, count: Some(0) });
        let kept_dead = self.settings.retain_dead.unwrap_or(Retention { age: None, count: None });
        let mut beyond: Vec<_> = over(&self.done, kept_done, now).take(limit).collect();
        beyond.extend(over(&self.dead, kept_dead, now).take(limit));
        beyond.sort_unstable();
        beyond.into_iter().take(limit).map(|(.., slot)| slot).collect()
    }
}

type Ended = (Timestamp, u128, u32);

fn over(
    ended: &std::collections::BTreeSet<Ended>,
    kept: Retention,
    now: Timestamp,
) -> impl Iterator<Item = Ended> {
    let too_many = match kept.count {
        Some(count) => ended.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX)),
        None => 0,
    };
    let too_old = move |at: Timestamp| kept.age.is_some_and(|age| at.plus(age) <= now);
    let beyond = move |(nth, (at, ..)): &(usize, &Ended)| *nth < too_many || too_old(*at);
    ended.iter().enumerate().take_while(beyond).map(|(_, ended)| *ended)
}
