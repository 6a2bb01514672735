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
//! once the swap succeeded; where it failed, adopt what is there now. The window and the ramp stay with the
//! instance.

mod change;
mod config;
#[cfg(test)]
mod model;
mod row;
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
        Self { config, instance, phase, window: Window::default(), last_ticket: 0, last_probe: None }
    }

    /// The state at `now`.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until, .. } if now < until => BreakerState::Open,
            Phase::Open { .. } => BreakerState::HalfOpen,
        }
    }

    /// How many more messages may be leased while `in_flight` are. The caller counts leases, so nothing
    /// leaks.
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

    /// Hears how a lease ended. Closed, it may open; half-open, only the probe's outcome moves it.
    ///
    /// Only what the store applied is an outcome. A settle that was fenced off ended nothing, and counting it
    /// could free the slot of a probe that is still running.
    pub fn record(&mut self, now: Timestamp, message: MessageId, outcome: Outcome) -> Option<Change> {
        match self.phase {
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
        self.close();
        changed(from, BreakerState::Closed, now, ChangeReason::Operator)
    }

    /// What the other instances must know.
    pub fn row(&self) -> BreakerRow {
        let (open_until, probe) = match self.phase {
            Phase::Closed { .. } => (None, None),
            Phase::Open { until, probe, .. } => (Some(until), probe),
        };
        BreakerRow { open_until, probe, last_ticket: self.last_ticket, last_probe: self.last_probe }
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
            (None, Phase::Open { .. }) => self.close(),
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
                self.close();
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
    fn close(&mut self) {
        if let Phase::Open { .. } = self.phase {
            self.phase = Phase::Closed { ramp: Some(1) };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn message(number: u8) -> MessageId {
        MessageId::new(Timestamp::EPOCH, u128::from(number))
    }

    /// Open since `EPOCH`, half-open from 30 s on.
    fn opened() -> Breaker {
        let mut breaker = Breaker::new(BreakerConfig::default());
        breaker.trip(Timestamp::EPOCH);
        breaker
    }

    /// Half-open at 30 s, with `message(1)` as its probe until 60 s.
    fn probing() -> Breaker {
        let mut breaker = opened();
        let ticket = breaker.reserve_probe(at(30_000)).unwrap();
        assert!(breaker.probe_leased(ticket, message(1), at(60_000)));
        breaker
    }

    fn arrow(change: Option<Change>) -> Option<(BreakerState, BreakerState, &'static str)> {
        change.map(|change| (change.from, change.to, change.reason.as_str()))
    }

    #[test]
    fn more_than_half_of_four_messages_failing_opens_it() {
        let mut breaker = Breaker::new(BreakerConfig::default());
        for number in 1..=3 {
            assert_eq!(breaker.record(at(1), message(number), Outcome::Failure), None, "three are too few");
        }
        let change = breaker.record(at(2), message(4), Outcome::Success).unwrap();
        assert_eq!(change.reason, ChangeReason::FailureShare(Tally { messages: 4, failed: 3 }));
        assert_eq!(breaker.allowance(at(2), 0), Allowance::Nothing { until: Some(at(30_002)) });
    }

    #[test]
    fn exactly_half_failing_does_not_open_it() {
        let mut breaker = Breaker::new(BreakerConfig::default());
        for number in 1..=20 {
            let outcome = if number % 2 == 0 { Outcome::Failure } else { Outcome::Success };
            assert_eq!(breaker.record(at(1), message(number), outcome), None);
        }
        assert_eq!(breaker.allowance(at(1), 1_000_000), Allowance::Unlimited);
    }

    #[test]
    fn a_message_counts_with_its_latest_outcome() {
        let mut breaker = Breaker::new(BreakerConfig::default());
        for number in 1..=3 {
            breaker.record(at(1), message(number), Outcome::Failure);
        }
        breaker.record(at(2), message(3), Outcome::Success);
        breaker.record(at(2), message(2), Outcome::Success);
        breaker.record(at(2), message(2), Outcome::NoOutcome);
        assert_eq!(breaker.record(at(3), message(4), Outcome::Success), None);
        assert_eq!(breaker.tally(at(3)), Tally { messages: 4, failed: 1 });
    }

    #[test]
    fn half_open_is_reported_once() {
        let mut breaker = opened();
        assert_eq!(breaker.poll(at(29_999)), None);
        let expected = (BreakerState::Open, BreakerState::HalfOpen, "open_elapsed");
        assert_eq!(arrow(breaker.poll(at(30_000))), Some(expected));
        assert_eq!(breaker.poll(at(30_001)), None);
    }

    #[test]
    fn a_probe_that_succeeds_closes_it_and_the_ramp_doubles() {
        let mut breaker = probing();
        let expected = (BreakerState::HalfOpen, BreakerState::Closed, "probe_succeeded");
        assert_eq!(arrow(breaker.record(at(31_000), message(1), Outcome::Success)), Some(expected));
        let mut limit = 1;
        while limit <= RAMP_LIMIT_MAX {
            assert_eq!(breaker.allowance(at(31_000), 0), Allowance::UpTo(limit));
            assert_eq!(breaker.allowance(at(31_000), limit), Allowance::Nothing { until: None });
            breaker.record(at(31_000), message(9), Outcome::Success);
            limit *= 2;
        }
        assert_eq!(breaker.allowance(at(31_000), u32::MAX), Allowance::Unlimited);
    }

    #[test]
    fn a_probe_that_fails_opens_it_anew() {
        let mut breaker = probing();
        let expected = (BreakerState::HalfOpen, BreakerState::Open, "probe_failed");
        assert_eq!(arrow(breaker.record(at(31_000), message(1), Outcome::Failure)), Some(expected));
        assert_eq!(breaker.allowance(at(60_999), 0), Allowance::Nothing { until: Some(at(61_000)) });
        assert_eq!(breaker.allowance(at(61_000), 0), Allowance::Probe);
        assert_eq!(breaker.last_probe(), Some(message(1)));
    }

    #[test]
    fn failures_of_the_outage_do_not_count_after_closing() {
        let mut breaker = Breaker::new(BreakerConfig::default());
        for number in 1..=4 {
            breaker.record(at(1), message(number), Outcome::Failure);
        }
        breaker.reset(at(2));
        assert_eq!(breaker.tally(at(2)), Tally::default());
        assert_eq!(breaker.record(at(3), message(9), Outcome::Failure), None);
    }

    #[test]
    fn outcomes_of_other_messages_move_nothing_while_open_or_half_open() {
        for (mut breaker, now) in [(opened(), at(10_000)), (probing(), at(40_000))] {
            let row = breaker.row();
            for number in 2..=20 {
                assert_eq!(breaker.record(now, message(number), Outcome::Success), None);
                assert_eq!(breaker.record(now, message(number), Outcome::Failure), None);
            }
            assert_eq!(breaker.row(), row);
        }
    }

    #[test]
    fn a_probe_without_an_outcome_frees_the_slot() {
        let mut breaker = probing();
        assert_eq!(breaker.allowance(at(31_000), 1), Allowance::Nothing { until: Some(at(60_000)) });
        assert_eq!(breaker.record(at(31_000), message(1), Outcome::NoOutcome), None);
        assert_eq!(breaker.allowance(at(31_000), 0), Allowance::Probe);
    }

    #[test]
    fn a_forgotten_probe_frees_the_slot_by_time() {
        let mut breaker = opened();
        assert!(breaker.reserve_probe(at(30_000)).is_some());
        assert_eq!(breaker.reserve_probe(at(59_999)), None);
        assert!(breaker.reserve_probe(at(60_000)).is_some(), "the reservation ran out");
        let mut breaker = probing();
        breaker.probe_extended(message(2), at(31_000));
        breaker.probe_extended(message(1), at(90_000));
        assert_eq!(breaker.reserve_probe(at(89_999)), None);
        assert!(breaker.reserve_probe(at(90_000)).is_some(), "the lease ran out");
    }

    #[test]
    fn an_overdue_probe_still_decides_until_another_takes_the_slot() {
        let mut breaker = probing();
        let change = breaker.clone().record(at(60_000), message(1), Outcome::Failure);
        assert_eq!(
            change.map(|change| change.to),
            Some(BreakerState::Open),
            "expire comes after the deadline"
        );
        assert!(breaker.reserve_probe(at(60_000)).is_some());
        assert_eq!(breaker.record(at(60_000), message(1), Outcome::Failure), None);
        assert_eq!(breaker.state(at(60_000)), BreakerState::HalfOpen);
    }

    #[test]
    fn a_stale_ticket_neither_frees_nor_fills_a_newer_slot() {
        let mut breaker = opened();
        let stale = breaker.reserve_probe(at(30_000)).unwrap();
        let fresh = breaker.reserve_probe(at(60_000)).unwrap();
        let row = breaker.row();
        breaker.drop_probe(stale);
        assert!(!breaker.probe_leased(stale, message(1), at(99_000)));
        assert_eq!(breaker.row(), row);
        assert!(breaker.probe_leased(fresh, message(2), at(99_000)));
        assert!(!breaker.probe_leased(fresh, message(3), at(99_000)), "one ticket, one message");
        breaker.drop_probe(fresh);
        assert_eq!(breaker.allowance(at(60_000), 0), Allowance::Probe);
    }

    #[test]
    fn an_operator_trips_and_resets() {
        let mut breaker = Breaker::new(BreakerConfig::default());
        let tripped = (BreakerState::Closed, BreakerState::Open, "operator");
        assert_eq!(arrow(breaker.trip(at(0))), Some(tripped));
        assert_eq!(breaker.trip(at(10_000)), None);
        assert_eq!(breaker.allowance(at(39_999), 0), Allowance::Nothing { until: Some(at(40_000)) });
        let reset = (BreakerState::Open, BreakerState::Closed, "operator");
        assert_eq!(arrow(breaker.reset(at(11_000))), Some(reset));
        assert_eq!(breaker.reset(at(11_000)), None);
        assert_eq!(breaker.allowance(at(11_000), 0), Allowance::UpTo(1), "a reset ramps, and twice is once");
        let mut breaker = probing();
        let again = (BreakerState::HalfOpen, BreakerState::Open, "operator");
        assert_eq!(arrow(breaker.trip(at(31_000))), Some(again));
        assert_eq!(breaker.record(at(31_001), message(1), Outcome::Success), None, "no longer the probe");
    }

    #[test]
    fn a_probe_may_be_settled_at_another_instance() {
        let ours = probing();
        let mut other = Breaker::shared(BreakerConfig::default(), 7);
        let met = (BreakerState::Closed, BreakerState::Open, "adopted");
        assert_eq!(arrow(other.adopt(ours.row(), at(31_000))), Some(met));
        assert_eq!(arrow(other.poll(at(31_000))).map(|(_, to, _)| to), Some(BreakerState::HalfOpen));
        assert_eq!(other.reserve_probe(at(31_000)), None);
        assert_eq!(other.last_probe(), Some(message(1)));
        let closed = other.record(at(32_000), message(1), Outcome::Success);
        assert_eq!(closed.map(|change| change.to), Some(BreakerState::Closed));
        let mut ours = ours;
        let told = (BreakerState::HalfOpen, BreakerState::Closed, "adopted");
        assert_eq!(arrow(ours.adopt(other.row(), at(32_000))), Some(told));
        assert_eq!(ours.allowance(at(32_000), 0), Allowance::UpTo(1));
    }

    #[test]
    fn numbers_go_on_where_another_instance_freed_the_slot() {
        let mut first = opened();
        let ticket = first.reserve_probe(at(30_000)).unwrap();
        first.drop_probe(ticket);
        let mut second = Breaker::shared(BreakerConfig::default(), 2);
        second.adopt(first.row(), at(30_000));
        let next = second.reserve_probe(at(30_000)).unwrap();
        assert!(next.number() > ticket.number());
    }

    #[test]
    fn reading_the_row_again_does_not_report_half_open_again() {
        let mut breaker = opened();
        assert!(breaker.poll(at(30_000)).is_some());
        assert_eq!(breaker.adopt(breaker.row(), at(30_000)), None);
        assert_eq!(breaker.poll(at(30_000)), None);
    }

    #[test]
    fn the_loser_of_a_race_for_the_same_number_cannot_touch_the_winners_probe() {
        let row = opened().row();
        let mut winner = Breaker::shared(BreakerConfig::default(), 1);
        let mut loser = Breaker::shared(BreakerConfig::default(), 2);
        winner.adopt(row, at(30_000));
        loser.adopt(row, at(30_000));
        winner.reserve_probe(at(30_000)).unwrap();
        let lost = loser.reserve_probe(at(30_000)).unwrap();
        loser.adopt(winner.row(), at(30_000));
        assert!(!loser.probe_leased(lost, message(1), at(40_000)));
        loser.drop_probe(lost);
        assert_eq!(loser.row(), winner.row());
    }
}
