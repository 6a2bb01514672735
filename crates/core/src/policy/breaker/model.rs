//! Random runs of a breaker beside a model that states the rules another way, and of two breakers on one row.

use proptest::prelude::*;

use super::*;
use crate::time::Millis;

const PROBE_TIMEOUT: Millis = Millis::from_secs(30);
const LEASE_MAX: u64 = 60_000;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn message(number: u8) -> MessageId {
    MessageId::new(Timestamp::EPOCH, u128::from(number))
}

/// What can happen to a breaker.
#[derive(Debug, Clone)]
enum Op {
    Wait(u64),
    Reserve,
    Lease { ticket: usize, message: u8, lease: u64 },
    Extend { message: u8, lease: u64 },
    Drop { ticket: usize },
    Record(u8, Outcome),
    Trip,
    Reset,
}

fn an_outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![Outcome::Success, Outcome::Failure, Outcome::Failure, Outcome::NoOutcome])
}

fn an_op() -> impl Strategy<Value = Op> {
    let lease = 0..=LEASE_MAX;
    prop_oneof![
        3 => (0u64..45_000).prop_map(Op::Wait),
        3 => Just(Op::Reserve),
        2 => (0usize..2, 0u8..8, lease.clone())
            .prop_map(|(ticket, message, lease)| Op::Lease { ticket, message, lease }),
        1 => (0u8..8, lease).prop_map(|(message, lease)| Op::Extend { message, lease }),
        1 => (0usize..3).prop_map(|ticket| Op::Drop { ticket }),
        8 => (0u8..8, an_outcome()).prop_map(|(message, outcome)| Op::Record(message, outcome)),
        1 => Just(Op::Trip),
        1 => Just(Op::Reset),
    ]
}

fn a_valid_config() -> impl Strategy<Value = BreakerConfig> {
    let share = |min_messages: u32| (1_000u32.div_ceil(min_messages)..1_000, Just(min_messages));
    (100u64..60_000, (2u32..20).prop_flat_map(share)).prop_map(|(window, (share, min_messages))| {
        BreakerConfig {
            window: Millis::new(window),
            min_messages,
            failure_share_permille: share,
            ..BreakerConfig::default()
        }
    })
}

/// A breaker beside what a test knows about it without asking it.
struct World {
    breaker: Breaker,
    now: Timestamp,
    /// All tickets ever given, newest first; the ticket of an operation is an index into it.
    tickets: Vec<ProbeTicket>,
    /// The probe: its ticket, until when the slot is taken, the message once leased.
    probe: Option<(ProbeTicket, Timestamp, Option<u8>)>,
    /// Every outcome since the breaker closed last.
    history: Vec<(Timestamp, u8, bool)>,
    changes: Vec<Change>,
}

impl World {
    fn new() -> Self {
        let breaker = Breaker::new(BreakerConfig::default());
        Self { breaker, now: at(0), tickets: vec![], probe: None, history: vec![], changes: vec![] }
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let polled = self.breaker.poll(self.now);
        self.changes.extend(polled);
        match *op {
            Op::Wait(ms) => self.now = self.now.plus(Millis::new(ms)),
            Op::Reserve => self.reserve()?,
            Op::Lease { ticket, message, lease } => self.lease(ticket, message, lease)?,
            Op::Extend { message: number, lease } => {
                let deadline = self.now.plus(Millis::new(lease));
                self.breaker.probe_extended(message(number), deadline);
                if let Some((_, until, Some(probe))) = &mut self.probe
                    && *probe == number
                {
                    *until = deadline;
                }
            }
            Op::Drop { ticket } => {
                if let Some(ticket) = self.tickets.get(ticket).copied() {
                    self.breaker.drop_probe(ticket);
                    self.probe = self.probe.filter(|(held, ..)| *held != ticket);
                }
            }
            Op::Record(message, outcome) => self.record(message, outcome)?,
            Op::Trip => {
                let change = self.breaker.trip(self.now);
                self.note(change);
                self.probe = None;
            }
            Op::Reset => {
                let change = self.breaker.reset(self.now);
                self.note(change);
                (self.probe, self.history) = (None, vec![]);
            }
        }
        self.check()
    }

    fn note(&mut self, change: Option<Change>) {
        self.changes.extend(change);
    }

    fn reserve(&mut self) -> Result<(), TestCaseError> {
        let taken = self.probe.is_some_and(|(_, until, _)| self.now < until);
        let expected = self.breaker.state(self.now) == BreakerState::HalfOpen && !taken;
        let ticket = self.breaker.reserve_probe(self.now);
        prop_assert_eq!(ticket.is_some(), expected);
        if let Some(ticket) = ticket {
            prop_assert!(!self.tickets.contains(&ticket), "numbers never come back");
            self.tickets.insert(0, ticket);
            let until = self.now.plus(PROBE_TIMEOUT);
            self.probe = Some((ticket, until, None));
        }
        Ok(())
    }

    fn lease(&mut self, ticket: usize, number: u8, lease: u64) -> Result<(), TestCaseError> {
        let Some(ticket) = self.tickets.get(ticket).copied() else {
            return Ok(());
        };
        let deadline = self.now.plus(Millis::new(lease));
        let expected = self
            .probe
            .is_some_and(|(held, _, probe)| held == ticket && probe.is_none_or(|probe| probe == number));
        prop_assert_eq!(self.breaker.probe_leased(ticket, message(number), deadline), expected);
        if expected {
            self.probe = Some((ticket, deadline, Some(number)));
        }
        Ok(())
    }

    fn record(&mut self, number: u8, outcome: Outcome) -> Result<(), TestCaseError> {
        let closed = self.breaker.state(self.now) == BreakerState::Closed;
        let is_probe = self.probe.is_some_and(|(_, _, probe)| probe == Some(number));
        if closed && outcome != Outcome::NoOutcome {
            self.history.push((self.now, number, outcome == Outcome::Failure));
        }
        let tally = self.recount();
        let opens = closed
            && outcome != Outcome::NoOutcome
            && tally.messages >= 4
            && tally.failed * 2 > tally.messages;
        let change = self.breaker.record(self.now, self.now, message(number), outcome);
        prop_assert_eq!(change.is_some(), opens || (is_probe && outcome != Outcome::NoOutcome));
        if let Some(Change { reason: ChangeReason::FailureShare(counted), .. }) = change {
            prop_assert_eq!(counted, tally);
        }
        if is_probe {
            self.probe = None;
        }
        if is_probe && outcome == Outcome::Success {
            self.history.clear();
        }
        self.note(change);
        Ok(())
    }

    /// The window, counted from the whole history.
    fn recount(&self) -> Tally {
        let mut tally = Tally::default();
        for number in 0..=u8::MAX {
            let latest = self.history.iter().rev().find(|(_, message, _)| *message == number);
            if let Some((_, _, failed)) = latest.filter(|(at, ..)| self.now.since(*at).get() < 60_000) {
                tally.messages += 1;
                tally.failed += u32::from(*failed);
            }
        }
        tally
    }

    /// What holds after every step.
    fn check(&self) -> Result<(), TestCaseError> {
        let row = self.breaker.row();
        prop_assert_eq!(row.probe.map(|slot| (slot.ticket, slot.until)), self.held());
        let taken = self.probe.filter(|(_, until, _)| self.now < *until);
        match (self.breaker.state(self.now), self.breaker.allowance(self.now, 0)) {
            (BreakerState::Closed, Allowance::Unlimited) => {}
            (BreakerState::Closed, Allowance::UpTo(limit)) => prop_assert!(limit >= 1),
            (BreakerState::Open, Allowance::Nothing { until }) => {
                prop_assert!(until == row.open_until && until > Some(self.now));
                prop_assert_eq!(self.breaker.clone().reserve_probe(self.now), None);
            }
            (BreakerState::HalfOpen, Allowance::Probe) => prop_assert!(taken.is_none()),
            (BreakerState::HalfOpen, Allowance::Nothing { until }) => {
                prop_assert_eq!(until, taken.map(|(_, until, _)| until));
            }
            impossible => prop_assert!(false, "{:?}", impossible),
        }
        Ok(())
    }

    fn held(&self) -> Option<(u64, Timestamp)> {
        self.probe.map(|(ticket, until, _)| (ticket.number(), until))
    }
}

fn is_an_arrow(change: &Change) -> bool {
    use BreakerState::{Closed, HalfOpen, Open};
    match change.reason {
        ChangeReason::FailureShare(_) => (change.from, change.to) == (Closed, Open),
        ChangeReason::OpenElapsed => (change.from, change.to) == (Open, HalfOpen),
        ChangeReason::ProbeSucceeded => (change.from, change.to) == (HalfOpen, Closed),
        ChangeReason::ProbeFailed => (change.from, change.to) == (HalfOpen, Open),
        ChangeReason::Operator => change.from != change.to && change.to != HalfOpen,
        ChangeReason::Adopted => false,
    }
}

fn open_since_the_epoch() -> Breaker {
    let mut breaker = Breaker::new(BreakerConfig::default());
    breaker.trip(Timestamp::EPOCH);
    breaker
}

/// One place for the row, swapped only by whoever knows what is in it.
struct SharedRow(Vec<u8>);

/// An instance, the bytes it read last, and the probe it was granted.
struct Instance {
    number: u8,
    breaker: Breaker,
    read: Vec<u8>,
    granted: Option<Grant>,
}

/// A probe whose row was swapped in. It ends at `until`, or when it is dropped or settled.
#[derive(Clone, Copy)]
struct Grant {
    ticket: ProbeTicket,
    until: Timestamp,
    leased: bool,
}

impl Instance {
    fn new(number: u8, row: &SharedRow, now: Timestamp) -> Self {
        let breaker = Breaker::shared(BreakerConfig::default(), u64::from(number));
        let (read, granted) = (vec![], None);
        let mut started = Self { number, breaker, read, granted };
        started.read(row, now);
        started
    }

    fn read(&mut self, row: &SharedRow, now: Timestamp) {
        self.read.clone_from(&row.0);
        let row = BreakerRow::from_bytes(&self.read).unwrap();
        self.breaker.adopt(row, now);
    }

    /// Compares, then swaps; the loser takes what is there.
    fn swap(&mut self, row: &mut SharedRow, now: Timestamp) -> bool {
        let won = row.0 == self.read;
        if won {
            row.0 = self.breaker.row().to_bytes().to_vec();
        }
        self.read(row, now);
        won
    }

    fn reserve(&mut self, row: &mut SharedRow, now: Timestamp) {
        let reserved = self.breaker.reserve_probe(now);
        if let (true, Some(ticket)) = (self.swap(row, now), reserved) {
            let until = now.plus(PROBE_TIMEOUT);
            self.granted = Some(Grant { ticket, until, leased: false });
        }
    }

    fn lease(&mut self, row: &mut SharedRow, now: Timestamp) {
        let Some(Grant { ticket, .. }) = self.granted else {
            return;
        };
        let until = now.plus(Millis::new(LEASE_MAX));
        let leased = self.breaker.probe_leased(ticket, message(self.number), until);
        let won = leased && self.swap(row, now);
        self.granted = won.then_some(Grant { ticket, until, leased });
    }

    fn drop_probe(&mut self, row: &mut SharedRow, now: Timestamp) {
        if let Some(Grant { ticket, .. }) = self.granted.take() {
            self.breaker.drop_probe(ticket);
            self.swap(row, now);
        }
    }

    fn hear(&mut self, settled: u8, outcome: Outcome, row: &mut SharedRow, now: Timestamp) {
        self.breaker.record(now, now, message(settled), outcome);
        self.swap(row, now);
    }

    fn holds_a_probe(&self, now: Timestamp) -> bool {
        self.granted.is_some_and(|grant| now < grant.until)
    }
}

/// What one instance does. A message is settled once, wherever its consumer calls: the store fences the rest.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Read,
    Reserve,
    Lease,
    Drop,
    Settle { leased_by: usize, outcome: Outcome },
}

fn a_turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        2 => Just(Turn::Read),
        3 => Just(Turn::Reserve),
        2 => Just(Turn::Lease),
        1 => Just(Turn::Drop),
        1 => (0usize..2, an_outcome()).prop_map(|(leased_by, outcome)| Turn::Settle { leased_by, outcome }),
    ]
}

fn take_turn(instances: &mut [Instance; 2], who: usize, turn: Turn, row: &mut SharedRow, now: Timestamp) {
    match turn {
        Turn::Read => instances[who].read(row, now),
        Turn::Reserve => instances[who].reserve(row, now),
        Turn::Lease => instances[who].lease(row, now),
        Turn::Drop => instances[who].drop_probe(row, now),
        Turn::Settle { leased_by, outcome } => {
            let owner = &mut instances[leased_by];
            if let Some(Grant { leased: true, .. }) = owner.granted {
                owner.granted = None;
                let settled = owner.number;
                instances[who].hear(settled, outcome, row, now);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_run_agrees_with_the_model(ops in prop::collection::vec(an_op(), 1..80)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op)?;
        }
    }

    #[test]
    fn no_arrow_but_the_documented_ones_occurs(ops in prop::collection::vec(an_op(), 1..80)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op)?;
        }
        let mut state = BreakerState::Closed;
        for change in &world.changes {
            prop_assert!(is_an_arrow(change), "{change:?}");
            prop_assert_eq!(change.from, state, "the chain is unbroken");
            state = change.to;
        }
    }

    #[test]
    fn no_run_blocks_the_breaker_for_ever(ops in prop::collection::vec(an_op(), 1..80)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op)?;
        }
        let later = world.now.plus(Millis::new(LEASE_MAX));
        let closed = world.breaker.state(later) == BreakerState::Closed;
        prop_assert!(closed || world.breaker.reserve_probe(later).is_some());
    }

    #[test]
    fn one_poison_message_never_opens_it(
        config in a_valid_config(),
        steps in prop::collection::vec((0u64..2_000, prop::option::of(1u8..30)), 1..200),
    ) {
        prop_assert_eq!(config.check(), Ok(()));
        let (mut breaker, mut now) = (Breaker::new(config), at(0));
        for (passed, healthy) in steps {
            now = now.plus(Millis::new(passed));
            let change = match healthy {
                Some(number) => breaker.record(now, now, message(number), Outcome::Success),
                None => breaker.record(now, now, message(0), Outcome::Failure),
            };
            prop_assert_eq!(change, None);
        }
    }

    #[test]
    fn fewer_messages_than_the_minimum_never_open_it(
        min_messages in 2u32..40,
        steps in prop::collection::vec((0u64..2_000, any::<u8>(), an_outcome()), 1..200),
    ) {
        let config = BreakerConfig { min_messages, ..BreakerConfig::default() };
        let (mut breaker, mut now) = (Breaker::new(config), at(0));
        let known = u8::try_from(min_messages - 1).unwrap();
        for (passed, number, outcome) in steps {
            now = now.plus(Millis::new(passed));
            prop_assert_eq!(breaker.record(now, now, message(number % known), outcome), None);
        }
    }

    #[test]
    fn instances_on_one_row_never_hold_two_probes(
        steps in prop::collection::vec((0usize..2, a_turn(), 0u64..9_000), 1..120),
    ) {
        let mut row = SharedRow(open_since_the_epoch().row().to_bytes().to_vec());
        let mut now = at(30_000);
        let mut instances = [Instance::new(1, &row, now), Instance::new(2, &row, now)];
        for (who, turn, passed) in steps {
            now = now.plus(Millis::new(passed));
            take_turn(&mut instances, who, turn, &mut row, now);
            let probes = instances.iter().filter(|instance| instance.holds_a_probe(now)).count();
            prop_assert!(probes <= 1, "two probes at {:?}", now);
        }
    }

    #[test]
    fn adopting_any_row_makes_it_ours(
        open_until in prop::option::of(0u64..100_000), ticket: u64, holder: u64, until in 0u64..100_000,
        ops in prop::collection::vec(an_op(), 0..20),
    ) {
        let mut world = World::new();
        for op in &ops {
            world.step(op)?;
        }
        let slot = ProbeSlot { ticket, holder, until: at(until), message: None };
        let open_until = open_until.map(at);
        let row = BreakerRow { open_until, probe: open_until.map(|_| slot), ..BreakerRow::default() };
        let from = world.breaker.state(world.now);
        let change = world.breaker.adopt(row, world.now);
        let ours = world.breaker.row();
        prop_assert_eq!((ours.open_until, ours.probe), (row.open_until, row.probe));
        prop_assert!(ours.last_ticket >= ticket || open_until.is_none());
        prop_assert!(change.is_none_or(|change| change.from == from && change.from != change.to));
    }
}
