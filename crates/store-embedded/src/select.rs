//! Which messages of a queue are meant, in the order of their ids: what listings and bulk verbs have in common.
//!
//! One call looks at so many messages and no more, so that nobody waits for a search. Most of a filter is answered from
//! memory; when a message was enqueued and what its last error says are on the disk.

use redrive_core::message::{DeadReason, MessageId, State};
use redrive_core::time::Timestamp;
use redrive_store::Filter;

use crate::core::Core;
use crate::load::Shot;
use crate::state::entry::{End, Stage};
use crate::state::ids;

/// Most messages that one call looks at in memory.
const LOOKS_MAX: usize = 20_000;
/// Most messages that one call reads for its filter.
const READS_MAX: usize = 1_000;

/// What a call is looking for.
pub(crate) struct Search<'a> {
    pub(crate) queue: u32,
    pub(crate) filter: &'a Filter,
    pub(crate) after: Option<MessageId>,
    /// The last that may be found. Only what is looked for from the oldest on has one.
    pub(crate) until: Option<MessageId>,
    pub(crate) newest_first: bool,
    pub(crate) limit: usize,
    /// Most bytes of bodies, headers and checkpoints, unless the first has more.
    pub(crate) bytes: usize,
}

/// What was found, and where the next call goes on; `None` is the end.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    pub(crate) slots: Vec<u32>,
    pub(crate) next: Option<MessageId>,
}

impl Core {
    /// Finds the next messages that match.
    pub(crate) fn select(
        &mut self,
        now: Timestamp,
        search: &Search<'_>,
        starts: impl Fn(Stage) -> bool,
    ) -> Selected {
        let (queue, messages) = self.parts(search.queue);
        queue.promote(messages, now);
        let mut selected = Selected::default();
        let (mut bytes, mut reads) = (0, 0);
        let mut last = None;
        for (looked, (id, slot)) in self.candidates(search).into_iter().enumerate() {
            let full = selected.slots.len() == search.limit;
            if looked == LOOKS_MAX || reads == READS_MAX {
                selected.next = last.map(ids::id);
                break;
            }
            if starts(self.stage(slot)) && self.matches(search.filter, slot, &mut reads) {
                bytes += self.load_of(slot);
                if full || (bytes > search.bytes && !selected.slots.is_empty()) {
                    selected.next = selected.slots.last().map(|slot| self.id(*slot));
                    break;
                }
                selected.slots.push(slot);
            }
            last = Some(id);
        }
        selected
    }

    /// The messages to look at, in order: those that are named, or all.
    fn candidates(&self, search: &Search<'_>) -> Vec<(u128, u32)> {
        let all = &self.queue(search.queue).ids;
        let (after, until) = (search.after.map(ids::number), search.until.map(ids::number));
        let within = |id: &u128| until.is_none_or(|until| *id <= until);
        let beyond = |id: &u128| {
            after.is_none_or(|after| if search.newest_first { *id < after } else { *id > after })
                && within(id)
        };
        if search.filter.ids.is_empty() {
            if let Some(mut few) = self.of_state(search) {
                few.retain(|(id, _)| beyond(id));
                few.sort_unstable();
                if search.newest_first {
                    few.reverse();
                }
                return few;
            }
            return if search.newest_first {
                all.before(after).take(LOOKS_MAX + 1).collect()
            } else {
                all.after(after).take_while(|(id, _)| within(id)).take(LOOKS_MAX + 1).collect()
            };
        }
        let mut named: Vec<u128> = search.filter.ids.iter().map(|id| ids::number(*id)).collect();
        named.sort_unstable();
        named.dedup();
        if search.newest_first {
            named.reverse();
        }
        named.into_iter().filter(beyond).filter_map(|id| Some((id, all.get(id)?))).collect()
    }

    /// The messages of a state that has a set of its own, in any order: among a million that wait, a few that are leased or
    /// dead are found at once. `None` where they are more than one call looks at, and would be sorted for each page anew.
    fn of_state(&self, search: &Search<'_>) -> Option<Vec<(u128, u32)>> {
        let queue = self.queue(search.queue);
        let with_id = |slot: u32| (ids::number(self.id(slot)), slot);
        match search.filter.states.as_slice() {
            [State::Leased] if queue.deadlines.len() <= LOOKS_MAX => {
                Some(queue.deadlines.iter().map(|(.., slot)| with_id(*slot)).collect())
            }
            [State::Dead] if queue.dead.len() <= LOOKS_MAX => {
                Some(queue.dead.iter().map(|(.., slot)| with_id(*slot)).collect())
            }
            _ => None,
        }
    }

    fn matches(&mut self, filter: &Filter, slot: u32, reads: &mut usize) -> bool {
        if !self.matches_memory(filter, slot) {
            return false;
        }
        if filter.created.is_none() && filter.error.is_none() {
            return true;
        }
        *reads += 1;
        match self.journal.load(vec![self.shot(slot)]) {
            Ok(messages) => messages.iter().all(|message| filter.matches(message, self.time.floor)),
            Err(fault) => {
                self.fault.get_or_insert(fault);
                false
            }
        }
    }

    fn matches_memory(&self, filter: &Filter, slot: u32) -> bool {
        let entry = self.messages.at(slot);
        let queue = self.queue(entry.queue);
        let (kind, source) = queue.classes.get(entry.class);
        let held = self.messages.held(slot);
        let death = match self.messages.end(slot) {
            Some(End::Dead(death)) => Some(death),
            _ => None,
        };
        let reason: Option<DeadReason> = death.map(|death| death.reason);
        any_of(&filter.states, Some(&state(entry.stage, entry.visible_at, self.time.floor)))
            && any_of(&filter.kinds, Some(kind))
            && any_of(&filter.sources, Some(source))
            && any_of(&filter.keys, Some(queue.keys.name(entry.key)))
            && any_of(&filter.consumers, held.map(|held| &held.consumer))
            && any_of(&filter.reasons, reason.as_ref())
            && filter.fingerprint.is_none_or(|print| death.is_some_and(|death| death.fingerprint == print))
            && filter.attempts.as_ref().is_none_or(|range| range.contains(&entry.attempts))
    }

    /// Messages as they stand now, to be read later.
    pub(crate) fn shots(&self, slots: &[u32]) -> Vec<Shot> {
        slots.iter().map(|slot| self.shot(*slot)).collect()
    }
}

/// The state of a message as people see it.
pub(crate) fn state(stage: Stage, visible_at: Timestamp, now: Timestamp) -> State {
    match stage {
        Stage::Leased => State::Leased,
        Stage::Dead => State::Dead,
        Stage::Done => State::Done,
        _ if visible_at > now => State::Delayed,
        _ => State::Ready,
    }
}

fn any_of<T: PartialEq>(wanted: &[T], actual: Option<&T>) -> bool {
    wanted.is_empty() || actual.is_some_and(|actual| wanted.contains(actual))
}
