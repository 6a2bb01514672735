//! Random histories: what producers, consumers, sweepers and operators do next.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use bytes::Bytes;
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, Reschedule, When};
use redrive_core::message::{
    Body, Checkpoint, ContentType, DeadReason, Dedup, DedupKey, ErrorText, FairnessKey, Headers, Message,
    MessageId, MessageType, Priority, Source, Spec, State, Uniqueness,
};
use redrive_core::policy::{Asked, Jitter, RetryOverride, Weight};
use redrive_core::queue::{Pause, QueueConfig, QueueName, Retention, Weights};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Append, Batch, BuryItem, CreateQueue, DeleteQueue, EnqueueItem, EntryKey, EntryKind, EntryName,
    Expect, ExpireRequest, ExtendItem, Filter, LeaseRequest, LeaseTarget, Limit, LogName, NackItem,
    PauseQueue, ReleaseItem, Selection, SweepRequest, UpdateQueue, Write, WriteOutcome, Writes,
};

use crate::command::{Answer, Command, Outcome};

/// Most receipts that consumers remember; settled and lost ones among them.
const RECEIPTS_MAX: usize = 40;

const ERRORS: [&str; 3] = ["timeout after 31 ms", "timeout after 577 ms", "no route to host"];

/// What consumers and producers remember, and chance.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) dice: Dice,
    ids: Vec<MessageId>,
    receipts: Vec<Claim>,
    versions: BTreeMap<EntryKey, Option<u64>>,
    consumers: u64,
    /// The longest body; some histories are of large messages.
    body_max: u64,
    /// How often, of a hundred, a producer is next.
    producing: u64,
    /// How often, of a hundred, a queue is purged: what is there is soon gone, and the cleaner has work.
    purging: u64,
}

pub(crate) fn queue(number: u64) -> QueueName {
    QueueName::new(format!("q{number}")).expect("a good name")
}

fn limit(items: u64) -> Limit {
    Limit::new(usize::try_from(items).expect("small")).expect("1 to 1,000")
}

impl Workload {
    pub(crate) fn new(mut dice: Dice) -> Self {
        let purging = [0, 10][usize::try_from(dice.between(0, 1)).expect("small")];
        let bodies = if purging > 0 { [600, 3_000, 3_000] } else { [40, 600, 3_000] };
        let body_max = bodies[usize::try_from(dice.between(0, 2)).expect("small")];
        let producing = dice.between(15, 45);
        Self {
            dice,
            ids: Vec::new(),
            receipts: Vec::new(),
            versions: BTreeMap::new(),
            consumers: 0,
            body_max,
            producing,
            purging,
        }
    }

    /// A history of large messages.
    pub(crate) fn write_large_messages(&mut self) {
        self.body_max = 3_000;
    }

    /// Whether something happens that happens `times` in a hundred.
    pub(crate) fn chance(&mut self, times: u64) -> bool {
        self.dice.between(0, 99) < times
    }

    fn maybe<T>(&mut self, times: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(times).then(|| make(self))
    }

    fn any<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let last = of.len().checked_sub(1)?;
        of.get(usize::try_from(self.dice.between(0, last as u64)).ok()?).cloned()
    }

    fn queue(&mut self) -> QueueName {
        queue(self.dice.between(0, 2))
    }

    /// A span of time: often none, sometimes longer than a lease.
    pub(crate) fn span(&mut self) -> Millis {
        Millis::new(match self.dice.between(0, 9) {
            0..=2 => 0,
            3..=5 => self.dice.between(1, 50),
            6..=8 => self.dice.between(100, 2_000),
            _ => 40_000,
        })
    }

    /// What sets the stage.
    pub(crate) fn first(&mut self) -> Vec<Command> {
        (0..3)
            .map(|number| {
                let config = self.config();
                Command::Create(CreateQueue { name: queue(number), config })
            })
            .collect()
    }

    /// What happens next.
    pub(crate) fn next(&mut self, now: Timestamp) -> Command {
        if self.chance(self.producing) {
            return self.enqueue(now);
        }
        if self.chance(self.purging) {
            return Command::Discard(Selection::new(self.queue(), Filter::default()), true);
        }
        match self.dice.between(0, 99) {
            0..=26 => self.lease(),
            27..=66 => self.settle(),
            67..=72 => self.sweep(),
            73..=83 => self.bulk(),
            84..=89 => self.operate(now),
            90..=94 => self.register(),
            _ => self.log(now),
        }
    }

    /// What may share a frame with others: nothing that could undo what another of them did, since after a crash
    /// the outcome of a lease is read from what is there.
    pub(crate) fn next_of_many(&mut self, now: Timestamp) -> Command {
        match self.dice.between(0, 9) {
            0..=3 => self.enqueue(now),
            4..=5 => self.lease(),
            6..=7 => self.settle(),
            8 => self.register(),
            _ => self.log(now),
        }
    }

    /// Remembers what the next calls can build on.
    pub(crate) fn learn(&mut self, command: &Command, outcome: &Outcome) {
        match (command, outcome) {
            (Command::Lease(_), Ok(Answer::Leased(leased))) => {
                self.receipts.extend(leased.messages.iter().filter_map(Claim::on));
                let excess = self.receipts.len().saturating_sub(RECEIPTS_MAX);
                self.receipts.drain(..excess);
            }
            (Command::Register(writes), Ok(Answer::Wrote(WriteOutcome::Committed(versions)))) => {
                for (write, version) in writes.items().iter().zip(versions) {
                    self.versions.insert(write.key.clone(), *version);
                }
            }
            _ => {}
        }
    }

    /// Messages that were leased by a call whose answer was lost: somebody has them all the same.
    pub(crate) fn found(&mut self, message: &Message) {
        self.receipts.extend(Claim::on(message));
    }

    pub(crate) fn enqueue(&mut self, now: Timestamp) -> Command {
        let items = (0..self.dice.between(1, 4)).map(|_| self.item(now)).collect();
        let together = self.chance(15);
        let batch = if together { Batch::all_or_nothing(items) } else { Batch::each(items) };
        Command::Enqueue(batch.expect("a small batch"))
    }

    fn item(&mut self, now: Timestamp) -> EnqueueItem {
        let ids = self.ids.clone();
        let again = self.maybe(3, |this| this.any(&ids)).flatten();
        let id = again.unwrap_or_else(|| MessageId::new(now, u128::from(self.dice.roll()) << 3));
        self.ids.push(id);
        let body = self.bytes(self.body_max);
        let headers = self.maybe(10, |this| vec![("n".to_owned(), this.dice.roll().to_string())]);
        let spec = Spec {
            id,
            body: Body::new(body).expect("a small body"),
            content_type: ContentType::default(),
            headers: Headers::new(headers.unwrap_or_default()).expect("few and small"),
            kind: MessageType::new(format!("type {}", self.dice.between(0, 2))).expect("a good type"),
            source: Source::new(format!("source {}", self.dice.between(0, 1))).expect("a good source"),
            fairness_key: self.tenant(),
            dedup: self.maybe(20, Self::dedup),
            lease_timeout: self.maybe(10, |this| Millis::new(this.dice.between(1, 60_000))),
            max_attempts: self.maybe(10, |this| this.dice.between(1, 4)).and_then(small),
        };
        let draft = Draft {
            spec,
            priority: self.priority(),
            visible: self.maybe(25, |this| When::After(this.span())).unwrap_or_default(),
            expires: self.maybe(10, |this| When::After(this.span())),
        };
        EnqueueItem { queue: self.queue(), draft }
    }

    /// As many bytes as chance likes, no two alike.
    fn bytes(&mut self, max: u64) -> Bytes {
        let length = usize::try_from(self.dice.between(0, max)).expect("small");
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend(self.dice.roll().to_le_bytes());
        }
        bytes.truncate(length);
        bytes.into()
    }

    fn tenant(&mut self) -> FairnessKey {
        FairnessKey::new(format!("tenant {}", self.dice.between(0, 2))).expect("a good key")
    }

    fn priority(&mut self) -> Priority {
        self.maybe(20, |this| this.dice.between(0, 9))
            .and_then(|level| Priority::new(u8::try_from(level).ok()?).ok())
            .unwrap_or_default()
    }

    fn dedup(&mut self) -> Dedup {
        let unique = if self.chance(50) { Uniqueness::UntilDone } else { Uniqueness::Window };
        let key = format!("key {}", self.dice.between(0, 5));
        Dedup { key: DedupKey::new(key).expect("a good key"), unique }
    }

    fn lease(&mut self) -> Command {
        let (queue, messages) = (self.queue(), self.dice.between(1, 5));
        self.lease_from(queue, messages)
    }

    pub(crate) fn lease_from(&mut self, queue: QueueName, messages: u64) -> Command {
        // A name of its own: after a crash it says which call a lease was of.
        self.consumers += 1;
        let consumer = ConsumerName::new(format!("consumer {}", self.consumers)).expect("a good name");
        let mut request = LeaseRequest::new(queue, limit(messages), consumer, self.dice.roll());
        request.time = self.maybe(20, |this| Millis::new(this.dice.between(1, 90_000)));
        Command::Lease(request)
    }

    fn settle(&mut self) -> Command {
        // Mostly what was handed out last; the older ones have often been settled or lost.
        let recent = self.receipts.len().saturating_sub(if self.chance(75) { 8 } else { RECEIPTS_MAX });
        let receipts = self.receipts.get(recent..).unwrap_or_default().to_vec();
        let claims: Vec<Claim> = (0..self.dice.between(1, 4)).filter_map(|_| self.any(&receipts)).collect();
        if claims.is_empty() {
            return self.lease();
        }
        let claims = claims.into_iter();
        let each = "a small batch";
        let error = ErrorText::new(self.any(&ERRORS).unwrap_or_default());
        match self.dice.between(0, 15) {
            0..=4 => Command::Ack(Batch::each(claims.map(|claim| AckItem { claim }).collect()).expect(each)),
            5..=9 => {
                let (asked, checkpoint) = (self.asked(), self.checkpoint());
                let nack =
                    |claim| NackItem { claim, asked, error: error.clone(), checkpoint: checkpoint.clone() };
                Command::Nack(Batch::each(claims.map(nack).collect()).expect(each), self.dice.roll())
            }
            10..=12 => {
                let (time, checkpoint) = (self.span(), self.checkpoint());
                let target = LeaseTarget::Claim;
                let extend =
                    |claim| ExtendItem { target: target(claim), time, checkpoint: checkpoint.clone() };
                Command::Extend(Batch::each(claims.map(extend).collect()).expect(each))
            }
            13..=14 => {
                let delay = self.maybe(50, Self::span);
                let release = |claim| ReleaseItem { target: LeaseTarget::Claim(claim), delay };
                Command::Release(Batch::each(claims.map(release).collect()).expect(each))
            }
            _ => {
                let bury = |claim| BuryItem { claim, reason: DeadReason::Buried, error: error.clone() };
                Command::Bury(Batch::each(claims.map(bury).collect()).expect(each))
            }
        }
    }

    fn asked(&mut self) -> Asked {
        let span = self.span();
        match self.dice.between(0, 4) {
            0 => Asked::AtLeast(span),
            1 => Asked::Exactly(span),
            _ => Asked::Nothing,
        }
    }

    fn checkpoint(&mut self) -> Option<Checkpoint> {
        self.maybe(40, |this| Checkpoint::new(this.bytes(200)).expect("small"))
    }

    /// One queue each: over all of them there is no order, and who dies first is first in the line of the dead.
    fn sweep(&mut self) -> Command {
        let (queue, limit) = (Some(self.queue()), limit(self.dice.between(1, 5)));
        match self.dice.between(0, 3) {
            0..=1 => Command::Expire(ExpireRequest { queue, limit, error: None, seed: self.dice.roll() }),
            2 => Command::Lapse(SweepRequest { queue, limit }),
            _ => Command::Retain(SweepRequest { queue, limit }),
        }
    }

    fn bulk(&mut self) -> Command {
        let states = State::ALL;
        let ids = self.ids.clone();
        let filter = match self.dice.between(0, 3) {
            0 => Filter::state(self.any(&states).unwrap_or(State::Dead)),
            1 => Filter::ids(self.any(&ids)),
            _ => Filter::default(),
        };
        let limit = limit(self.dice.between(1, 4));
        let selection = Selection { limit, ..Selection::new(self.queue(), filter) };
        match self.dice.between(0, 9) {
            0..=1 => {
                let visible = self.maybe(70, |this| When::After(this.span()));
                let priority = self.maybe(50, Self::priority);
                Command::Reschedule(selection, Reschedule { visible, priority })
            }
            2..=3 => Command::Move(selection, self.queue()),
            4..=7 => Command::Redrive(selection),
            _ => Command::Discard(selection, self.chance(30)),
        }
    }

    fn operate(&mut self, now: Timestamp) -> Command {
        let name = self.queue();
        match self.dice.between(0, 9) {
            0..=4 => Command::Update(UpdateQueue { name, config: self.config(), expected: None }),
            5..=7 => {
                let pause = match self.dice.between(0, 3) {
                    0 => Some(Pause::UntilResumed),
                    1 => Some(Pause::Until(now.plus(self.span()))),
                    _ => None,
                };
                let key = self.maybe(40, Self::tenant);
                Command::Pause(PauseQueue { name, key, pause })
            }
            8 => Command::Delete(DeleteQueue { name, force: self.chance(50) }),
            _ => Command::Create(CreateQueue { name, config: self.config() }),
        }
    }

    fn config(&mut self) -> QueueConfig {
        let kept = |count| Retention { age: None, count: Some(count) };
        let weight = Weight::new(u32::try_from(self.dice.between(1, 4)).expect("small")).expect("1 to 4");
        let tenant = self.tenant();
        QueueConfig {
            max_deliveries: Some(self.maybe(20, |this| this.dice.between(1, 6)).and_then(small)),
            overdue_backoff: Some(self.chance(50)),
            dead_letter_to: Some(self.maybe(40, Self::queue)),
            retain_done: Some(self.maybe(40, |this| kept(this.dice.between(0, 5)))),
            retain_dead: Some(self.maybe(20, |this| kept(this.dice.between(0, 5)))),
            dedup_window: Some(self.span()),
            max_waiting: Some(self.maybe(10, |this| this.dice.between(5, 30)).and_then(NonZeroU64::new)),
            weights: Some(Weights::new([(tenant, weight)]).expect("one key")),
            retry: RetryOverride {
                max_attempts: Some(self.maybe(70, |this| this.dice.between(1, 4)).and_then(small)),
                base_delay: Some(self.span()),
                jitter: Some(if self.chance(50) { Jitter::Proportional(100) } else { Jitter::None }),
                ..RetryOverride::default()
            },
            ..QueueConfig::default()
        }
    }

    fn register(&mut self) -> Command {
        let mut writes = Vec::new();
        for number in 0..3 {
            if writes.is_empty() && number == 2 || self.chance(40) {
                let name = EntryName::new(format!("entry {number}")).expect("a good name");
                let key = EntryKey { kind: EntryKind::ALL[number], name };
                let known = self.versions.get(&key).copied().flatten();
                let expect = match self.dice.between(0, 3) {
                    0 => Expect::Absent,
                    1 => known.map_or(Expect::Absent, Expect::Version),
                    _ => Expect::Anything,
                };
                let value = self.maybe(80, |this| this.bytes(500));
                writes.push(Write { key, expect, value });
            }
        }
        Command::Register(Writes::new(writes).expect("distinct entries"))
    }

    fn log(&mut self, now: Timestamp) -> Command {
        let log = logs()[usize::try_from(self.dice.between(0, 1)).expect("small")].clone();
        if self.chance(20) {
            return Command::Trim(log, now.minus(self.span()));
        }
        let record = |this: &mut Self| {
            Bytes::from([this.dice.roll().to_string().into_bytes(), this.bytes(300).to_vec()].concat())
        };
        let records = (0..self.dice.between(1, 3)).map(|_| record(self)).collect();
        Command::Append(log, Append::new(records).expect("few and small"))
    }
}

/// The logs that histories write.
pub(crate) fn logs() -> [LogName; 2] {
    ["audit", "topic"].map(|name| LogName::new(name).expect("a good name"))
}

fn small(number: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(number).ok()?)
}
