//! A queue on a virtual clock. Messages come by chance, workers take them one at a time, some attempts fail; what follows
//! from that is decided by the rules of `core` and nothing else.

use std::collections::{BTreeMap, VecDeque};

use redrive_core::dice::Dice;
use redrive_core::lease::{ConsumerName, LeaseId};
use redrive_core::lifecycle::{self, Terms};
use redrive_core::message::{ErrorText, Lane, MessageId, Phase, Priority, Progress};
use redrive_core::policy::{Asked, LaneCredit, Share, Verdict};
use redrive_core::time::{Millis, Timestamp};

/// Most attempts of one simulation.
pub(super) const ATTEMPTS_MAX: u64 = 10_000_000;

/// Chance is one stream for each purpose: another policy meets the same messages, and the same attempts fail.
const ARRIVALS: u64 = 0xA221_7A15;
const FAILURES: u64 = 0xFA11_0E5D;

/// What is simulated.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) terms: Terms,
    pub(super) retry_share: Share,
    /// Messages a second.
    pub(super) arrival_rate: f64,
    pub(super) workers: u32,
    /// How long an attempt takes, failed or not.
    pub(super) run_time: Millis,
    /// How many of all attempts fail, from 0 to 1.
    pub(super) failure_rate: f64,
    /// From when until when every attempt fails.
    pub(super) outage: Option<(Timestamp, Timestamp)>,
    pub(super) length: Millis,
    pub(super) seed: u64,
}

/// Something that happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Arrived,
    Handed {
        lane: Lane,
        /// Whether the other lane could have served as well.
        contested: bool,
        /// Since it could have been handed out.
        waited: Millis,
    },
    Done,
    Retry {
        due: Timestamp,
    },
    Dead,
}

/// How many messages are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look {
    /// Due, and no worker is free.
    pub(super) ready: u64,
    pub(super) delayed: u64,
    pub(super) running: u64,
}

/// Who is told what happens.
pub(super) trait Watch {
    fn saw(&mut self, now: Timestamp, message: MessageId, event: Event);

    /// Everything that happened at `now` has been told.
    fn looked(&mut self, now: Timestamp, look: Look);
}

/// More happens than anybody would wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMuch;

/// When something happens: the time, and among those of one time the order of their making.
type Moment = (Timestamp, u64);

#[derive(Debug, Clone)]
struct Item {
    id: MessageId,
    progress: Progress,
}

struct World<'a> {
    setting: &'a Setting,
    credit: LaneCredit,
    fresh: VecDeque<Item>,
    due: VecDeque<Item>,
    delayed: BTreeMap<Moment, Item>,
    running: BTreeMap<Moment, Item>,
    next_arrival: Arrivals,
    /// Given to whatever goes to the back.
    sequence: u64,
    leases: u64,
}

/// Runs a simulation to its end, and answers how many messages are where then.
pub(super) fn run(setting: &Setting, watch: &mut impl Watch) -> Result<Look, TooMuch> {
    let mut world = World {
        setting,
        credit: LaneCredit::default(),
        fresh: VecDeque::new(),
        due: VecDeque::new(),
        delayed: BTreeMap::new(),
        running: BTreeMap::new(),
        next_arrival: Arrivals::new(setting),
        sequence: 0,
        leases: 0,
    };
    let end = Timestamp::EPOCH.plus(setting.length);
    while let Some(now) = world.next().filter(|now| *now < end) {
        world.step(now, watch);
        if world.leases > ATTEMPTS_MAX {
            return Err(TooMuch);
        }
    }
    Ok(world.look())
}

impl World<'_> {
    /// When something happens next.
    fn next(&self) -> Option<Timestamp> {
        let first = |items: &BTreeMap<Moment, Item>| items.first_key_value().map(|((at, _), _)| *at);
        [Some(self.next_arrival.at()), first(&self.delayed), first(&self.running)].into_iter().flatten().min()
    }

    fn step(&mut self, now: Timestamp, watch: &mut impl Watch) {
        while let Some(ended) = self.running.first_entry().filter(|ended| ended.key().0 <= now) {
            let item = ended.remove();
            self.settle(now, item, watch);
        }
        while self.next_arrival.at() <= now {
            self.arrive(now, watch);
        }
        while let Some(waiting) = self.delayed.first_entry().filter(|waiting| waiting.key().0 <= now) {
            self.due.push_back(waiting.remove());
        }
        while self.running.len() < self.setting.workers as usize && self.hand_out(now, watch) {}
        watch.looked(now, self.look());
    }

    fn arrive(&mut self, now: Timestamp, watch: &mut impl Watch) {
        let id = self.next_arrival.take(now);
        self.sequence += 1;
        let progress = Progress {
            phase: Phase::Waiting,
            visible_at: now,
            sequence: self.sequence,
            priority: Priority::default(),
            expires_at: None,
            attempts: 0,
            deliveries: 0,
            deliveries_before: 0,
            redrives: 0,
        };
        self.fresh.push_back(Item { id, progress });
        watch.saw(now, id, Event::Arrived);
    }

    /// Gives a worker the message whose turn it is, if there is one.
    fn hand_out(&mut self, now: Timestamp, watch: &mut impl Watch) -> bool {
        let (fresh, retry) = (!self.fresh.is_empty(), !self.due.is_empty());
        let lane = self.credit.pick(self.setting.retry_share, fresh, retry);
        let item = lane.and_then(|lane| match lane {
            Lane::Fresh => self.fresh.pop_front(),
            Lane::Retry => self.due.pop_front(),
        });
        let (Some(lane), Some(mut item)) = (lane, item) else { return false };
        let waited = now.since(item.progress.visible_at);
        self.leases += 1;
        let lease = LeaseId::from_bits(self.leases);
        lifecycle::lease(&mut item.progress, lease, ConsumerName::default(), self.setting.run_time, now);
        watch.saw(now, item.id, Event::Handed { lane, contested: fresh && retry, waited });
        self.running.insert((now.plus(self.setting.run_time), self.leases), item);
        true
    }

    /// Ends an attempt as chance has it.
    fn settle(&mut self, now: Timestamp, mut item: Item, watch: &mut impl Watch) {
        let attempts = item.progress.attempts;
        if !self.fails(now, item.id, attempts) {
            lifecycle::ack(&mut item.progress, now);
            return watch.saw(now, item.id, Event::Done);
        }
        let lease = item.progress.lease().cloned().expect("what runs is leased");
        self.sequence += 1;
        let mut dice = Dice::for_attempt(self.setting.seed, item.id, attempts);
        let said = (Asked::Nothing, ErrorText::default());
        let ended = lifecycle::nack(
            &mut item.progress,
            lease,
            &self.setting.terms,
            said,
            self.sequence,
            now,
            &mut dice,
        );
        match ended.verdict {
            Verdict::Dead(_) => watch.saw(now, item.id, Event::Dead),
            Verdict::RetryAt(due, _) => {
                watch.saw(now, item.id, Event::Retry { due });
                self.delayed.insert((due, self.sequence), item);
            }
        }
    }

    fn fails(&self, now: Timestamp, message: MessageId, attempts: u32) -> bool {
        let out = self.setting.outage.is_some_and(|(from, until)| (from..until).contains(&now));
        let mut dice = Dice::for_attempt(self.setting.seed ^ FAILURES, message, attempts);
        out || unit(&mut dice) < self.setting.failure_rate
    }

    fn look(&self) -> Look {
        Look {
            ready: (self.fresh.len() + self.due.len()) as u64,
            delayed: self.delayed.len() as u64,
            running: self.running.len() as u64,
        }
    }
}

/// When messages come: each independent of the others, so many a second on average.
struct Arrivals {
    dice: Dice,
    /// Between two, on average.
    gap_ms: f64,
    at_ms: f64,
}

impl Arrivals {
    fn new(setting: &Setting) -> Self {
        let dice = Dice::seeded(setting.seed ^ ARRIVALS);
        let mut arrivals = Self { dice, gap_ms: 1_000.0 / setting.arrival_rate, at_ms: 0.0 };
        arrivals.go_on();
        arrivals
    }

    fn go_on(&mut self) {
        self.at_ms -= (1.0 - unit(&mut self.dice)).ln() * self.gap_ms;
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.at_ms as u64)
    }

    /// The id of the one that comes now.
    fn take(&mut self, now: Timestamp) -> MessageId {
        let id = MessageId::new(now, u128::from(self.dice.roll()));
        self.go_on();
        id
    }
}

/// A number from 0 up to, and never, 1.
fn unit(dice: &mut Dice) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let bits = (dice.roll() >> 11) as f64;
    bits / 9_007_199_254_740_992.0
}
