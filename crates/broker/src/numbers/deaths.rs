//! When messages died of what: how many of each group of failures in each of the last minutes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::policy::{Fingerprint, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::Judged;

use crate::broker::Broker;

/// For how many minutes deaths are remembered, and told one by one.
pub const DEATH_MINUTES: usize = 30;
/// Most groups of failures that are remembered, of all queues together. The one that was last heard of longest ago makes
/// room.
const GROUPS_MAX: usize = 10_000;
/// How many make room at a time: to find them takes a look at all.
const GROUPS_FORGOTTEN: usize = 1_000;
const MINUTE_MS: u64 = 60_000;

const fn minute(at: Timestamp) -> u64 {
    at.as_millis() / MINUTE_MS
}

/// The deaths of one group: a ring of minutes.
#[derive(Debug, Clone)]
struct Minutes {
    counts: [u32; DEATH_MINUTES],
    /// The minute of the last death.
    last: u64,
}

/// The place of a minute in the ring.
fn place(minute: u64) -> usize {
    usize::try_from(minute % DEATH_MINUTES as u64).unwrap_or_default()
}

impl Minutes {
    fn count(&mut self, minute: u64) {
        // The minutes since the last death have nothing yet; what stands in their place is older than the ring.
        let passed = minute.saturating_sub(self.last).min(DEATH_MINUTES as u64);
        for empty in 0..passed {
            if let Some(count) = self.counts.get_mut(place(minute - empty)) {
                *count = 0;
            }
        }
        self.last = self.last.max(minute);
        // A clock that lags behind that of another call may say a minute that has passed.
        if self.last - minute.min(self.last) < DEATH_MINUTES as u64
            && let Some(count) = self.counts.get_mut(place(minute))
        {
            *count = count.saturating_add(1);
        }
    }

    /// The counts of the minutes that end with that one, the oldest first.
    fn until(&self, minute: u64) -> [u64; DEATH_MINUTES] {
        std::array::from_fn(|at| {
            let back = (DEATH_MINUTES - 1 - at) as u64;
            let known = minute
                .checked_sub(back)
                .filter(|minute| *minute <= self.last && self.last - minute < DEATH_MINUTES as u64);
            known.and_then(|minute| self.counts.get(place(minute))).map_or(0, |count| u64::from(*count))
        })
    }
}

/// When messages died of what.
#[derive(Debug, Default)]
pub(crate) struct Deaths(Mutex<HashMap<QueueName, HashMap<Fingerprint, Minutes>>>);

impl Deaths {
    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, HashMap<Fingerprint, Minutes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message of a queue died, and stays there.
    pub(crate) fn count(&self, queue: &QueueName, group: Fingerprint, at: Timestamp) {
        let mut queues = self.lock();
        let known = queues.get_mut(queue).and_then(|groups| groups.get_mut(&group));
        if let Some(minutes) = known {
            return minutes.count(minute(at));
        }
        if queues.values().map(HashMap::len).sum::<usize>() >= GROUPS_MAX {
            make_room(&mut queues);
        }
        let mut minutes = Minutes { counts: [0; DEATH_MINUTES], last: minute(at) };
        minutes.count(minute(at));
        queues.entry(queue.clone()).or_default().insert(group, minutes);
    }

    /// How many died of that in each of the last minutes, the oldest first.
    pub(crate) fn of(&self, queue: &QueueName, group: Fingerprint, now: Timestamp) -> [u64; DEATH_MINUTES] {
        let queues = self.lock();
        let minutes = queues.get(queue).and_then(|groups| groups.get(&group));
        minutes.map_or([0; DEATH_MINUTES], |minutes| minutes.until(minute(now)))
    }

    /// The queue is gone.
    pub(crate) fn forget(&self, queue: &QueueName) {
        self.lock().remove(queue);
    }
}

impl Broker {
    /// A message was judged: if it died and stays where it is, that is one more death of its group.
    pub(crate) fn note_death(&self, judged: &Judged) {
        if matches!(judged.verdict, Verdict::Dead(_)) && judged.moved_to.is_none() {
            self.deaths.count(&judged.queue, Fingerprint::of(judged.error.as_str()), judged.at);
        }
    }
}

/// Forgets the groups that were last heard of longest ago.
fn make_room(queues: &mut HashMap<QueueName, HashMap<Fingerprint, Minutes>>) {
    let mut last: Vec<u64> = queues.values().flat_map(HashMap::values).map(|minutes| minutes.last).collect();
    let (_, newest, _) = last.select_nth_unstable(GROUPS_FORGOTTEN - 1);
    let newest = *newest;
    let mut left = GROUPS_FORGOTTEN;
    for groups in queues.values_mut() {
        groups.retain(|_, minutes| {
            let goes = left > 0 && minutes.last <= newest;
            left -= usize::from(goes);
            !goes
        });
    }
    queues.retain(|_, groups| !groups.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> QueueName {
        QueueName::new("q").unwrap()
    }

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_millis(minutes * MINUTE_MS + 1)
    }

    fn group(bits: u64) -> Fingerprint {
        Fingerprint::from_bits(bits)
    }

    #[test]
    fn deaths_are_told_by_the_minute_and_forgotten_after_half_an_hour() {
        let deaths = Deaths::default();
        for minute in [100, 100, 101, 105] {
            deaths.count(&queue(), group(1), at(minute));
        }
        let told = |now| deaths.of(&queue(), group(1), at(now));
        assert_eq!(told(105)[29], 1);
        assert_eq!(told(105)[24..], [2, 1, 0, 0, 0, 1]);
        assert_eq!(told(129)[..6], [2, 1, 0, 0, 0, 1]);
        assert_eq!(told(130).iter().sum::<u64>(), 2, "the first minute is out");
        assert_eq!(told(1_000), [0; DEATH_MINUTES]);
        deaths.count(&queue(), group(1), at(131));
        assert_eq!(told(131).iter().sum::<u64>(), 2, "what stood in the ring is not counted again");
        assert_eq!(deaths.of(&queue(), group(2), at(105)), [0; DEATH_MINUTES]);
    }

    #[test]
    fn a_clock_that_lags_counts_where_it_belongs_or_not_at_all() {
        let deaths = Deaths::default();
        for minute in [100, 98, 60] {
            deaths.count(&queue(), group(1), at(minute));
        }
        let told = deaths.of(&queue(), group(1), at(100));
        assert_eq!((told[27], told[29], told.iter().sum::<u64>()), (1, 1, 2));
    }

    #[test]
    fn however_many_groups_there_are_only_so_many_are_remembered_and_the_latest_are_among_them() {
        let deaths = Deaths::default();
        let groups = GROUPS_MAX as u64 + 50;
        for bits in 0..groups {
            deaths.count(&queue(), group(bits), at(bits / 100));
        }
        let known = deaths.lock().values().map(HashMap::len).sum::<usize>();
        assert!((GROUPS_MAX - GROUPS_FORGOTTEN..=GROUPS_MAX).contains(&known), "{known}");
        let now = at((groups - 1) / 100);
        assert_eq!(deaths.of(&queue(), group(groups - 1), now)[29], 1);
        deaths.forget(&queue());
        assert_eq!(deaths.of(&queue(), group(groups - 1), now)[29], 0);
    }
}
