//! The circuit breaker: tells an outage from a poison message, and stops handing out work during the outage.
//!
//! **Closed**, it listens. Each message counts once in a sliding window, with its latest outcome. When more
//! than the set share of at least `min_messages` messages failed, it opens. One message may fail for ever: it
//! is one failure among the others.
//!
//! **Open**, it hands out nothing, so no attempt is burned on a target that is down. Outcomes of messages
//! leased before are late news and change nothing.
//!
//! **Half-open** is not stored: it is an open breaker whose time is over. One probe goes out. First its slot
//! is reserved, then a message is leased into it, then its outcome decides: a success closes the breaker, a
//! failure opens it anew. A probe that is given back, buried or dropped decides nothing and frees the slot. A
//! probe that is forgotten frees it by time: a reservation after `probe_timeout`, a leased probe at its
//! deadline. So the slot cannot be lost, and until another probe takes it, an overdue probe's outcome still
//! counts.
//!
//! **Closed again**, it ramps: one message in flight, doubled by each success, until the limit means nothing
//! any more. A target that just recovered is not met with the whole backlog.
//!
//! **Several instances** share one [`BreakerRow`]: read and [`adopt`](Breaker::adopt) it, act, and where
//! [`row`](Breaker::row) changed, swap it in for the bytes that were read. A ticket and a [`Change`] count
//! once the swap succeeded; until then the breaker [stands](Breaker::stand_on) where it [stood](Breaker::footing),
//! and where it failed, adopt what is there now. The window and the ramp stay with the instance.

mod change;
mod config;
#[cfg(test)]
mod model;
mod row;
#[cfg(test)]
mod tests;
mod window;

pub use change::{BreakerState, Change, ChangeReason};
pub use config::BreakerConfig;
pub use row::{BreakerRow, ProbeSlot};
pub use window::Tally;

use crate::message::MessageId;
use crate::time::Timestamp;
use window::Window;

/// In-flight limit from which the next success ends the ramp: eleven successes after closing.
pub const RAMP_LIMIT_MAX: u32 = 1_024;

/// How many messages may be leased now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// The breaker sets no limit.
    Unlimited,
    /// At most this many, never zero.
    UpTo(u32),
    /// One, after [`Breaker::reserve_probe`].
    Probe,
    /// None. Ask again at `until`, or after the next outcome; where there is no time, only an outcome helps.
    Nothing {
        /// The time at which the answer changes by itself.
        until: Option<Timestamp>,
    },
}

/// How the lease of a message ended, as a breaker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Ack.
    Success,
    /// Nack, timeout or expire.
    Failure,
    /// Bury or release: it says nothing about the target.
    NoOutcome,
}

/// The right to lease one probe. Numbered, so that an old ticket can never free a newer probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeTicket(u64);

impl ProbeTicket {
    /// Its number, for logs.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The breaker of one queue or subscription. The module tells its story.
#[derive(Debug, Clone)]
pub struct Breaker {
    config: BreakerConfig,
    instance: u64,
    phase: Phase,
    window: Window,
    last_ticket: u64,
    last_probe: Option<MessageId>,
    closed_at: Timestamp,
}

/// Where a breaker stands, without its window: what a swap that is under way must be able to take back.
#[derive(Debug, Clone, Copy)]
pub struct Footing {
    phase: Phase,
    last_ticket: u64,
    last_probe: Option<MessageId>,
    closed_at: Timestamp,
}

impl Footing {
    /// What the other instances must know of it.
    pub fn row(&self) -> BreakerRow {
        let (open_until, probe) = match self.phase {
            Phase::Closed { .. } => (None, None),
            Phase::Open { until, probe, .. } => (Some(until), probe),
        };
        BreakerRow { open_until, probe, last_ticket: self.last_ticket, last_probe: self.last_probe }
    }
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// `ramp` is the in-flight limit; none once the ramp is over.
    Closed { ramp: Option<u32> },
    /// Half-open from `until` on; `reported` once `poll` has said so.
    Open { until: Timestamp, reported: bool, probe: Option<ProbeSlot> },
}

impl Breaker {
    /// A closed breaker that has seen nothing, on a store of its own. The config is taken as checked.
    pub fn new(config: BreakerConfig) -> Self {
        Self::shared(config, 0)
    }

    /// One of several breakers that go through one row. `instance` must differ between them: random bits do.
    pub fn shared(config: BreakerConfig, instance: u64) -> Self {
        let phase = Phase::Closed { ramp: None };
        Self {
            config,
            instance,
            phase,
            window: Window::default(),
            last_ticket: 0,
            last_probe: None,
            closed_at: Timestamp::EPOCH,
        }
    }

    /// The state at `now`.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until, .. } if now < until => BreakerState::Open,
            Phase::Open { .. } => BreakerState::HalfOpen,
        }
    }

    /// How many more messages may be leased while `in_flight` are, of the leases taken since
    /// [`Breaker::closed_at`]: one from before the outage may last for hours and says nothing about the ramp. The
    /// caller counts leases, so nothing leaks.
    pub fn allowance(&self, now: Timestamp, in_flight: u32) -> Allowance {
        match self.phase {
            Phase::Closed { ramp: None } => Allowance::Unlimited,
            Phase::Closed { ramp: Some(limit) } => match limit.saturating_sub(in_flight) {
                0 => Allowance::Nothing { until: None },
                free => Allowance::UpTo(free),
            },
            Phase::Open { until, .. } if now < until => Allowance::Nothing { until: Some(until) },
            Phase::Open { probe: Some(slot), .. } if now < slot.until => {
                Allowance::Nothing { until: Some(slot.until) }
            }
            Phase::Open { .. } => Allowance::Probe,
        }
    }

    /// What the window holds at `now`. An open breaker still shows what opened it, as long as that is recent.
    pub fn tally(&mut self, now: Timestamp) -> Tally {
        self.window.slide(now, self.config.window);
        self.window.tally()
    }

    /// When it last closed. Leases taken before are of another time: they neither count in the window nor against
    /// the ramp.
    pub fn closed_at(&self) -> Timestamp {
        self.closed_at
    }

    /// The message probed last: another one that is ready makes the better probe.
    pub fn last_probe(&self) -> Option<MessageId> {
        self.last_probe
    }

    /// Reports open → half-open once; time moves that arrow, so no other call can. Ask before acting on a
    /// breaker, and the changes reported form an unbroken chain.
    pub fn poll(&mut self, now: Timestamp) -> Option<Change> {
        match &mut self.phase {
            Phase::Open { until, reported, .. } if !*reported && now >= *until => {
                *reported = true;
                let (from, to) = (BreakerState::Open, BreakerState::HalfOpen);
                Some(Change { from, to, at: now, reason: ChangeReason::OpenElapsed })
            }
            _ => None,
        }
    }

    /// Takes the probe slot if the breaker is half-open and the slot free.
    pub fn reserve_probe(&mut self, now: Timestamp) -> Option<ProbeTicket> {
        let Phase::Open { until, ref mut probe, .. } = self.phase else {
            return None;
        };
        if now < until || probe.is_some_and(|slot| now < slot.until) {
            return None;
        }
        self.last_ticket = self.last_ticket.saturating_add(1);
        let until = now.plus(self.config.probe_timeout);
        *probe = Some(ProbeSlot { ticket: self.last_ticket, holder: self.instance, until, message: None });
        Some(ProbeTicket(self.last_ticket))
    }

    /// Puts the leased message into the slot until its deadline. False: the slot is no longer this ticket's,
    /// or holds another message; release the message, it is not a probe.
    #[must_use = "a message that did not get the slot must be released"]
    pub fn probe_leased(&mut self, ticket: ProbeTicket, message: MessageId, deadline: Timestamp) -> bool {
        let Some(slot) = self.slot_of(ticket) else {
            return false;
        };
        if slot.message.is_some_and(|probe| probe != message) {
            return false;
        }
        slot.message = Some(message);
        slot.until = deadline;
        self.last_probe = Some(message);
        true
    }

    /// The probe's lease was extended; for any other message nothing happens.
    pub fn probe_extended(&mut self, message: MessageId, deadline: Timestamp) {
        if let Phase::Open { probe: Some(slot), .. } = &mut self.phase
            && slot.message == Some(message)
        {
            slot.until = deadline;
        }
    }

    /// Frees the slot without an outcome: nothing was ready, or the probe was not reached. A stale ticket
    /// frees nothing.
    pub fn drop_probe(&mut self, ticket: ProbeTicket) {
        if self.slot_of(ticket).is_some() {
            self.free_slot();
        }
    }

    /// Hears how a lease that was taken at `leased_at` ended. Closed, it may open; half-open, only the probe's outcome
    /// moves it. Leases that were taken during the outage and end after it say nothing about the target that came
    /// back.
    ///
    /// Only what the store applied is an outcome. A settle that was fenced off ended nothing, and counting it
    /// could free the slot of a probe that is still running.
    pub fn record(
        &mut self,
        now: Timestamp,
        leased_at: Timestamp,
        message: MessageId,
        outcome: Outcome,
    ) -> Option<Change> {
        match self.phase {
            Phase::Closed { .. } if leased_at < self.closed_at => None,
            Phase::Closed { ramp } => self.count(now, message, outcome, ramp),
            Phase::Open { probe: Some(slot), .. } if slot.message == Some(message) => {
                self.settle_probe(now, outcome)
            }
            Phase::Open { .. } => None,
        }
    }

    /// An operator opens it. Where it is open already, its time starts over, and nothing is reported.
    pub fn trip(&mut self, now: Timestamp) -> Option<Change> {
        let from = self.state(now);
        let open_until = self.row().open_until;
        self.open(open_until.unwrap_or(now).max(now.plus(self.config.open_for)));
        changed(from, BreakerState::Open, now, ChangeReason::Operator)
    }

    /// An operator closes it; the ramp applies. Where it is closed already, it only forgets its window.
    pub fn reset(&mut self, now: Timestamp) -> Option<Change> {
        let from = self.state(now);
        self.close(now);
        changed(from, BreakerState::Closed, now, ChangeReason::Operator)
    }

    /// What the other instances must know.
    pub fn row(&self) -> BreakerRow {
        self.footing().row()
    }

    /// Where it stands.
    pub fn footing(&self) -> Footing {
        let Self { phase, last_ticket, last_probe, closed_at, .. } = *self;
        Footing { phase, last_ticket, last_probe, closed_at }
    }

    /// Puts it where it stood: before something that was not swapped in yet, or after something that was. What the window
    /// has let go of stays forgotten.
    pub fn stand_on(&mut self, at: Footing) {
        self.phase = at.phase;
        self.last_ticket = at.last_ticket;
        self.last_probe = at.last_probe;
        self.closed_at = at.closed_at;
    }

    /// Takes over the row as it is in the store; it wins over everything that was not swapped in. A breaker
    /// that meets a row past its `open_until` reports open here and half-open by [`Breaker::poll`].
    pub fn adopt(&mut self, row: BreakerRow, now: Timestamp) -> Option<Change> {
        let from = self.state(now);
        let slot_ticket = row.probe.map_or(0, |slot| slot.ticket);
        self.last_ticket = self.last_ticket.max(row.last_ticket).max(slot_ticket);
        self.last_probe = row.last_probe.or(self.last_probe);
        match (row.open_until, self.phase) {
            (None, Phase::Closed { .. }) => {}
            (None, Phase::Open { .. }) => self.close(now),
            (Some(until), Phase::Open { until: known, reported, .. }) if until == known => {
                self.phase = Phase::Open { until, reported, probe: row.probe };
            }
            (Some(until), _) => self.phase = Phase::Open { until, reported: false, probe: row.probe },
        }
        let to = match (from, self.state(now)) {
            (BreakerState::Closed, BreakerState::HalfOpen) => BreakerState::Open,
            (BreakerState::Open, BreakerState::HalfOpen) => return None,
            (_, to) => to,
        };
        changed(from, to, now, ChangeReason::Adopted)
    }

    /// Counts an outcome while closed, and opens where too many failed.
    fn count(
        &mut self,
        now: Timestamp,
        message: MessageId,
        outcome: Outcome,
        ramp: Option<u32>,
    ) -> Option<Change> {
        match outcome {
            Outcome::NoOutcome => return None,
            Outcome::Success => self.phase = Phase::Closed { ramp: ramp.and_then(next_limit) },
            Outcome::Failure => {}
        }
        self.window.note(now, message, outcome == Outcome::Failure);
        let tally = self.tally(now);
        if tally.messages < self.config.min_messages || !self.config.exceeded(tally.failed, tally.messages) {
            return None;
        }
        self.open(now.plus(self.config.open_for));
        changed(BreakerState::Closed, BreakerState::Open, now, ChangeReason::FailureShare(tally))
    }

    /// The probe's outcome decides, even a late one: nobody has taken the slot since.
    fn settle_probe(&mut self, now: Timestamp, outcome: Outcome) -> Option<Change> {
        let (to, reason) = match outcome {
            Outcome::Success => {
                self.close(now);
                (BreakerState::Closed, ChangeReason::ProbeSucceeded)
            }
            Outcome::Failure => {
                self.open(now.plus(self.config.open_for));
                (BreakerState::Open, ChangeReason::ProbeFailed)
            }
            Outcome::NoOutcome => {
                self.free_slot();
                return None;
            }
        };
        changed(BreakerState::HalfOpen, to, now, reason)
    }

    /// The window is kept: until it slides away it shows a person why the breaker opened.
    fn open(&mut self, until: Timestamp) {
        self.phase = Phase::Open { until, reported: false, probe: None };
    }

    /// The window starts empty: failures of the outage say nothing about the target that came back. A ramp
    /// that is under way goes on.
    fn close(&mut self, now: Timestamp) {
        if let Phase::Open { .. } = self.phase {
            self.phase = Phase::Closed { ramp: Some(1) };
            self.closed_at = now;
        }
        self.window.clear();
    }

    fn free_slot(&mut self) {
        if let Phase::Open { probe, .. } = &mut self.phase {
            *probe = None;
        }
    }

    /// The slot, if this ticket of this instance still holds it.
    fn slot_of(&mut self, ticket: ProbeTicket) -> Option<&mut ProbeSlot> {
        match &mut self.phase {
            Phase::Open { probe: Some(slot), .. }
                if slot.ticket == ticket.0 && slot.holder == self.instance =>
            {
                Some(slot)
            }
            _ => None,
        }
    }
}

/// The in-flight limit after one more success; none where the ramp is over.
fn next_limit(limit: u32) -> Option<u32> {
    Some(limit.saturating_mul(2)).filter(|doubled| *doubled <= RAMP_LIMIT_MAX)
}

fn changed(from: BreakerState, to: BreakerState, at: Timestamp, reason: ChangeReason) -> Option<Change> {
    (from != to).then_some(Change { from, to, at, reason })
}
