//! What was asked and told, and where every message may stand after it.
//!
//! The lines of different tasks come in any order, those about one lease in the order in which they happened. So a
//! message is followed lease by lease, in the order of their ids, and judged when the process has ended and all its
//! lines are in. What was told must have happened; what was asked and not told may have.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::lease::LeaseId;
use redrive_core::message::{Message, MessageId, Phase};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;

use crate::caller::{foreign, queue_of};
use crate::line::{Answer, Ask, Grant, Line, Verb};

/// Where a message stands, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    place: Place,
    attempts: u32,
    /// The lease that wrote the checkpoint.
    checkpoint: Option<LeaseId>,
}

/// `None` is a time that nobody was told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Absent,
    Waiting(Option<Timestamp>),
    Leased(LeaseId, Option<Timestamp>),
    Dead,
}

/// One lease of a message: where the message stands through it, and what was asked last.
#[derive(Debug)]
struct Hold {
    receipt: Option<Grant>,
    standing: Standing,
    attempts: u32,
    /// Asked and not told yet.
    asked: Option<Verb>,
}

#[derive(Debug)]
struct Fate {
    /// Where it may stand before the first of these leases.
    before: Vec<Standing>,
    holds: BTreeMap<LeaseId, Hold>,
    /// Whether it is known to have been in the store.
    lived: bool,
}

/// Everything that was asked and told in one directory.
#[derive(Debug, Default)]
pub(crate) struct History {
    fates: BTreeMap<MessageId, Fate>,
    open: BTreeMap<String, Ask>,
    wrong: Vec<String>,
    pub(crate) told: u64,
    pub(crate) cleaned: u64,
}

/// What a look at the store leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// What contradicts the history.
    pub(crate) problems: Vec<String>,
    /// Leases that are current, with the receipt from before.
    pub(crate) held: Vec<Grant>,
    /// Leases that have ended.
    pub(crate) ended: Vec<Grant>,
}

impl Standing {
    const ABSENT: Self = Self { place: Place::Absent, attempts: 0, checkpoint: None };

    fn waiting(from: Option<Timestamp>, attempts: u32, checkpoint: Option<LeaseId>) -> Self {
        Self { place: Place::Waiting(from), attempts, checkpoint }
    }

    fn of(message: &Message) -> Self {
        let progress = &message.progress;
        let place = match &progress.phase {
            Phase::Waiting => Place::Waiting(Some(progress.visible_at)),
            Phase::Leased(lease) => Place::Leased(lease.id, Some(lease.deadline)),
            Phase::Dead(_) => Place::Dead,
            Phase::Done(_) => Place::Absent,
        };
        let checkpoint = message.history.checkpoint.as_ref();
        let checkpoint = checkpoint.and_then(|text| str::from_utf8(text.bytes()).ok()?.parse().ok());
        Self { place, attempts: progress.attempts, checkpoint }
    }

    fn allows(&self, seen: &Self) -> bool {
        let times = |known: Option<Timestamp>, seen: Option<Timestamp>| known.is_none() || known == seen;
        let place = match (&self.place, &seen.place) {
            (Place::Absent, Place::Absent) | (Place::Dead, Place::Dead) => true,
            (Place::Waiting(known), Place::Waiting(seen)) => times(*known, *seen),
            (Place::Leased(id, known), Place::Leased(seen_id, seen)) => id == seen_id && times(*known, *seen),
            _ => false,
        };
        place && self.attempts == seen.attempts && self.checkpoint == seen.checkpoint
    }

    /// Whether a lease call that was never answered may have taken it from here to there.
    fn may_be_taken(&self, seen: &Self) -> bool {
        matches!((&self.place, &seen.place), (Place::Waiting(_), Place::Leased(..)))
            && seen.attempts == self.attempts + 1
            && seen.checkpoint == self.checkpoint
    }
}

impl Hold {
    fn new(grant: Grant, checkpoint: Option<LeaseId>) -> Self {
        let place = Place::Leased(grant.lease, Some(grant.deadline));
        let standing = Standing { place, attempts: grant.attempts, checkpoint };
        Self { attempts: grant.attempts, receipt: Some(grant), standing, asked: None }
    }

    /// What the answer to `verb` makes of it.
    fn settle(&mut self, lease: LeaseId, verb: Verb, answer: &Answer) -> Result<(), String> {
        let written =
            if matches!(verb, Verb::Nack | Verb::Extend) { Some(lease) } else { self.standing.checkpoint };
        let refunded = self.attempts - u32::from(verb == Verb::Release);
        self.standing = match answer {
            Answer::Gone => Standing::ABSENT,
            Answer::Waiting(from) => Standing::waiting(Some(*from), refunded, written),
            Answer::Dead => Standing { place: Place::Dead, attempts: self.attempts, checkpoint: written },
            Answer::Extended(until) => {
                let place = Place::Leased(lease, Some(*until));
                Standing { place, attempts: self.attempts, checkpoint: written }
            }
            other => return Err(format!("{verb:?} of the current lease {lease} was answered {other}")),
        };
        Ok(())
    }

    /// Where the message may stand after this lease.
    fn after(&self, lease: LeaseId) -> Vec<Standing> {
        let mut after = vec![self.standing.clone()];
        let (attempts, checkpoint) = (self.attempts, self.standing.checkpoint);
        match self.asked {
            None => {}
            Some(Verb::Ack) => after.push(Standing::ABSENT),
            Some(Verb::Nack) => {
                after.push(Standing::waiting(None, attempts, Some(lease)));
                after.push(Standing { place: Place::Dead, attempts, checkpoint: Some(lease) });
            }
            Some(Verb::Release) => after.push(Standing::waiting(None, attempts - 1, checkpoint)),
            Some(Verb::Bury) => after.push(Standing { place: Place::Dead, attempts, checkpoint }),
            Some(Verb::Extend) => {
                let place = Place::Leased(lease, None);
                after.push(Standing { place, attempts, checkpoint: Some(lease) });
            }
        }
        after
    }
}

impl Fate {
    /// Where the message may stand now, or which lease of it should not have been.
    fn now(&self) -> Result<Vec<Standing>, String> {
        let mut now = self.before.clone();
        for (lease, hold) in &self.holds {
            let from = |standing: &Standing| {
                matches!(standing.place, Place::Waiting(_)) && standing.attempts + 1 == hold.attempts
            };
            if !now.iter().any(from) {
                return Err(format!("was leased as {lease}, attempt {}, from {now:?}", hold.attempts));
            }
            now = hold.after(*lease);
        }
        Ok(now)
    }

    /// Where it stands is known now: everything before is history.
    fn settle(&mut self, seen: Standing) {
        let last = self.holds.pop_last();
        self.holds.clear();
        let Place::Leased(lease, _) = seen.place else {
            self.before = vec![seen];
            return;
        };
        let receipt = last.filter(|(id, _)| *id == lease).and_then(|(_, hold)| hold.receipt);
        self.before = vec![Standing::waiting(None, seen.attempts.saturating_sub(1), None)];
        self.holds.insert(lease, Hold { receipt, attempts: seen.attempts, standing: seen, asked: None });
    }
}

impl History {
    /// Takes a line in.
    pub(crate) fn read(&mut self, line: Line) {
        match line {
            Line::Opening => {}
            Line::Cleaned(segments) => self.cleaned += segments,
            Line::Wrong(text) => self.wrong.push(text),
            Line::Asks(call, ask) => {
                self.asks(&ask);
                self.open.insert(call, ask);
            }
            Line::Told(call, answer) => {
                self.told += 1;
                match self.open.remove(&call) {
                    Some(ask) => self.tells(&ask, answer),
                    None => self.wrong.push(format!("{call} was answered, and nobody asked")),
                }
            }
        }
    }

    /// A message that was discarded.
    pub(crate) fn discarded(&mut self, id: MessageId) {
        if let Some(fate) = self.fates.get_mut(&id) {
            fate.settle(Standing::ABSENT);
        }
    }

    fn asks(&mut self, ask: &Ask) {
        match ask {
            Ask::Enqueue(ids) => {
                for id in ids {
                    let before = vec![Standing::ABSENT, Standing::waiting(None, 0, None)];
                    self.fates.insert(*id, Fate { before, holds: BTreeMap::new(), lived: false });
                }
            }
            Ask::Lease => {}
            Ask::Settle(verb, id, lease) => {
                if let Some(hold) = self.hold(*id, *lease) {
                    hold.asked = Some(*verb);
                }
            }
        }
    }

    fn tells(&mut self, ask: &Ask, answer: Answer) {
        match (ask, answer) {
            (Ask::Enqueue(ids), Answer::Enqueued(times)) if ids.len() == times.len() => {
                for (id, from) in ids.iter().zip(times) {
                    self.born(*id, Standing::waiting(Some(from), 0, None));
                }
            }
            (Ask::Enqueue(ids), Answer::Refused(_)) => {
                for id in ids {
                    self.born(*id, Standing::ABSENT);
                }
            }
            (Ask::Lease, Answer::Leased(grants)) => grants.iter().for_each(|grant| self.granted(grant)),
            (Ask::Settle(verb, id, lease), answer) => {
                let Some(hold) = self.hold(*id, *lease) else { return };
                hold.asked = None;
                if let Err(problem) = hold.settle(*lease, *verb, &answer) {
                    self.wrong.push(format!("{id}: {problem}"));
                }
            }
            (ask, answer) => self.wrong.push(format!("{ask} was answered {answer}")),
        }
    }

    fn born(&mut self, id: MessageId, standing: Standing) {
        if let Some(fate) = self.fates.get_mut(&id) {
            fate.before = vec![standing];
        }
    }

    fn granted(&mut self, grant: &Grant) {
        let Some(fate) = self.fates.get_mut(&grant.id) else {
            self.wrong.push(format!("{grant:?}: nobody enqueued it"));
            return;
        };
        // The checkpoint comes with the message: the last lease before this one that may have written one did.
        let earlier = fate.holds.range(..grant.lease).next_back().map(|(lease, hold)| (*lease, hold));
        let checkpoint = match earlier {
            Some((lease, Hold { asked: Some(Verb::Nack), .. })) => Some(lease),
            Some((_, hold)) => hold.standing.checkpoint,
            None => fate.before.first().and_then(|standing| standing.checkpoint),
        };
        let hold = Hold::new(grant.clone(), checkpoint);
        if fate.holds.insert(grant.lease, hold).is_some() {
            self.wrong.push(format!("{grant:?}: this lease was handed out twice"));
        }
    }

    fn hold(&mut self, id: MessageId, lease: LeaseId) -> Option<&mut Hold> {
        let hold = self.fates.get_mut(&id).and_then(|fate| fate.holds.get_mut(&lease));
        if hold.is_none() {
            self.wrong.push(format!("{id}: {lease} was settled, and nobody has it"));
        }
        hold
    }

    /// Compares the messages that are there with everything that was asked and told; from here on they are what is
    /// known.
    pub(crate) fn look(&mut self, present: &[Message]) -> Looked {
        let mut looked = Looked { problems: std::mem::take(&mut self.wrong), ..Looked::default() };
        looked.problems.extend(present.iter().filter_map(foreign));
        let calls: BTreeSet<String> = std::mem::take(&mut self.open)
            .into_iter()
            .filter_map(|(call, ask)| (ask == Ask::Lease).then_some(call))
            .collect();
        let mut present: BTreeMap<MessageId, &Message> =
            present.iter().map(|message| (message.id(), message)).collect();
        for (id, fate) in &mut self.fates {
            let message = present.remove(id);
            let seen = message.map_or(Standing::ABSENT, Standing::of);
            if let Some(problem) = unexplained(fate, &seen, message, &calls) {
                looked.problems.push(format!("{id} {problem}"));
            }
            let receipts: Vec<_> = fate.holds.values().filter_map(|hold| hold.receipt.clone()).collect();
            let current =
                |grant: &Grant| matches!(seen.place, Place::Leased(lease, _) if lease == grant.lease);
            let (held, ended): (Vec<_>, Vec<_>) = receipts.into_iter().partition(current);
            looked.held.extend(held);
            looked.ended.extend(ended);
            fate.lived |= !fate.holds.is_empty() || seen != Standing::ABSENT || !fate.before.contains(&seen);
            fate.settle(seen);
        }
        looked.problems.extend(present.keys().map(|id| format!("{id} came from nowhere")));
        looked
    }

    /// How many messages were ever in that queue. Right after a look there is no doubt about any.
    pub(crate) fn enqueued(&self, queue: &QueueName) -> u64 {
        let lived = self.fates.iter().filter(|(id, fate)| fate.lived && queue_of(**id) == *queue);
        lived.count() as u64
    }
}

fn unexplained(
    fate: &Fate,
    seen: &Standing,
    message: Option<&Message>,
    calls: &BTreeSet<String>,
) -> Option<String> {
    let now = match fate.now() {
        Ok(now) => now,
        Err(problem) => return Some(problem),
    };
    let consumer = message.and_then(Message::lease).map(|lease| lease.consumer.as_str());
    let taken = consumer.is_some_and(|consumer| calls.contains(consumer));
    let explained = |known: &Standing| known.allows(seen) || (taken && known.may_be_taken(seen));
    if now.iter().any(explained) { None } else { Some(format!("is {seen:?}, but was told to be {now:?}")) }
}
