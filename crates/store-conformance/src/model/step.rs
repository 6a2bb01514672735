//! What can happen next in a history.

use proptest::prelude::*;
use proptest::sample::Index;

/// One step. Queues, consumers, receipts and messages are named by number, whatever there is of them.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Time passes.
    Advance(u64),
    /// The process ends, and another begins so much later.
    Restart(u64),
    /// A producer enqueues a batch.
    Enqueue { items: Vec<Item>, all_or_nothing: bool },
    /// A consumer asks for work.
    Lease(Ask),
    /// Consumers settle leases they have, or had.
    Settle { act: Act, receipts: Vec<Index>, all_or_nothing: bool },
    /// An operator extends or releases whatever lease a message has.
    Override { queue: u8, message: Index, release: bool },
    /// A sweeper passes.
    Sweep { sweep: Sweep, queue: Option<u8>, limit: usize },
    /// An operator changes many messages.
    Bulk { bulk: Bulk, queue: u8, pick: Select, limit: usize, dry_run: bool },
    /// An operator configures a queue.
    Configure { queue: u8, config: Setting },
    /// An operator pauses or resumes a queue, or one key of it.
    Pause { queue: u8, key: Option<u8>, pause: Pausing },
    /// A queue is created, if it is not there.
    Create(u8),
    /// A queue is deleted.
    Delete { queue: u8, force: bool },
    /// Entries of the registry are written.
    Register(Vec<(u8, Expected, bool)>),
    /// A log grows or is trimmed to the last so many milliseconds.
    Log { records: usize, trim: Option<u64> },
}

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) queue: u8,
    pub(super) delay: u64,
    pub(super) ttl: Option<u64>,
    pub(super) priority: u8,
    pub(super) key: u8,
    pub(super) kind: u8,
    pub(super) dedup: Option<(u8, bool)>,
    pub(super) max_attempts: Option<u32>,
    pub(super) lease_timeout: Option<u64>,
    /// Takes the id of an earlier message again.
    pub(super) repeat: Option<Index>,
}

#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) queue: u8,
    pub(super) limit: usize,
    pub(super) consumer: u8,
    pub(super) lane: Option<bool>,
    pub(super) kind: Option<u8>,
    pub(super) time: Option<u64>,
    pub(super) pick: Picking,
}

#[derive(Debug, Clone)]
pub(super) enum Picking {
    Fair,
    Probe,
    ProbeOtherThan(Index),
}

#[derive(Debug, Clone)]
pub(super) enum Act {
    Ack,
    Nack { asked: Option<(bool, u64)>, error: u8, checkpoint: bool },
    Extend { time: u64, checkpoint: bool },
    Release(Option<u64>),
    Bury,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Sweep {
    Expire,
    Lapse,
    Retain,
}

#[derive(Debug, Clone)]
pub(super) enum Bulk {
    Reschedule { delay: Option<u64>, priority: Option<u8> },
    Move(u8),
    Redrive,
    Discard { force: bool },
}

/// Which messages an operator means.
#[derive(Debug, Clone)]
pub(super) enum Select {
    All,
    State(u8),
    Kind(u8),
    Message(Index),
    Attempts(u32),
    Error(u8),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Pausing {
    UntilResumed,
    For(u64),
    Over,
}

#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) max_attempts: Option<u32>,
    pub(super) base_delay: u64,
    pub(super) jitter: bool,
    pub(super) max_deliveries: Option<u32>,
    pub(super) separate: bool,
    pub(super) retries_in_flight: Option<u32>,
    pub(super) overdue_backoff: bool,
    pub(super) dead_letter_to: Option<u8>,
    pub(super) retain_done: Option<u64>,
    pub(super) retain_dead: Option<u64>,
    pub(super) dedup_window: u64,
    pub(super) max_waiting: Option<u64>,
    pub(super) weight: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    Anything,
    Absent,
    Current,
    Stale,
}

const QUEUES: u8 = 3;

fn span() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 1..50u64, 500..2_000u64, Just(30_000)]
}

fn item() -> impl Strategy<Value = Item> {
    let plain =
        (0..QUEUES, prop_oneof![3 => Just(0), 1 => span()], prop_oneof![4 => Just(5), 1 => 0..=9u8], 0..3u8);
    let rest = (
        proptest::option::weighted(0.1, span()),
        0..3u8,
        proptest::option::weighted(0.25, (0..3u8, any::<bool>())),
        proptest::option::weighted(0.1, 1..4u32),
        proptest::option::weighted(0.1, 1..60_000u64),
        proptest::option::weighted(0.05, any::<Index>()),
    );
    (plain, rest).prop_map(
        |((queue, delay, priority, key), (ttl, kind, dedup, max_attempts, lease_timeout, repeat))| Item {
            queue,
            delay,
            ttl,
            priority,
            key,
            kind,
            dedup,
            max_attempts,
            lease_timeout,
            repeat,
        },
    )
}

fn ask() -> impl Strategy<Value = Ask> {
    let rare = 0.15;
    (
        0..QUEUES,
        1..6usize,
        0..3u8,
        proptest::option::weighted(rare, any::<bool>()),
        proptest::option::weighted(rare, 0..3u8),
        proptest::option::weighted(rare, 1..90_000u64),
        prop_oneof![6 => Just(Picking::Fair), 1 => Just(Picking::Probe), 1 => any::<Index>().prop_map(Picking::ProbeOtherThan)],
    )
        .prop_map(|(queue, limit, consumer, lane, kind, time, pick)| Ask { queue, limit, consumer, lane, kind, time, pick })
}

fn act() -> impl Strategy<Value = Act> {
    let asked = proptest::option::weighted(0.3, (any::<bool>(), span()));
    prop_oneof![
        4 => Just(Act::Ack),
        6 => (asked, 0..3u8, any::<bool>())
            .prop_map(|(asked, error, checkpoint)| Act::Nack { asked, error, checkpoint }),
        2 => (0..90_000u64, any::<bool>()).prop_map(|(time, checkpoint)| Act::Extend { time, checkpoint }),
        2 => proptest::option::of(span()).prop_map(Act::Release),
        1 => Just(Act::Bury),
    ]
}

fn bulk() -> impl Strategy<Value = Bulk> {
    prop_oneof![
        2 => (proptest::option::of(span()), proptest::option::of(0..=9u8))
            .prop_map(|(delay, priority)| Bulk::Reschedule { delay, priority }),
        2 => (0..QUEUES).prop_map(Bulk::Move),
        6 => Just(Bulk::Redrive),
        1 => any::<bool>().prop_map(|force| Bulk::Discard { force }),
    ]
}

fn select() -> impl Strategy<Value = Select> {
    prop_oneof![
        5 => Just(Select::All),
        1 => (0..5u8).prop_map(Select::State),
        1 => (0..3u8).prop_map(Select::Kind),
        2 => any::<Index>().prop_map(Select::Message),
        1 => (0..3u32).prop_map(Select::Attempts),
        1 => (0..3u8).prop_map(Select::Error),
    ]
}

fn setting() -> impl Strategy<Value = Setting> {
    let judge = (
        proptest::option::weighted(0.7, 1..5u32),
        span(),
        any::<bool>(),
        proptest::option::weighted(0.2, 1..6u32),
        any::<bool>(),
    );
    let lanes = (proptest::bool::weighted(0.2), proptest::option::weighted(0.2, 1..3u32), 1..5u32);
    let keep = (
        proptest::option::weighted(0.4, 0..QUEUES),
        proptest::option::weighted(0.3, 0..5u64),
        proptest::option::weighted(0.2, 0..5u64),
        span(),
        proptest::option::weighted(0.2, 1..8u64),
    );
    (judge, lanes, keep).prop_map(|(judge, lanes, keep)| {
        let (max_attempts, base_delay, jitter, max_deliveries, overdue_backoff) = judge;
        let (separate, retries_in_flight, weight) = lanes;
        let (dead_letter_to, retain_done, retain_dead, dedup_window, max_waiting) = keep;
        Setting {
            max_attempts,
            base_delay,
            jitter,
            max_deliveries,
            separate,
            retries_in_flight,
            overdue_backoff,
            dead_letter_to,
            retain_done,
            retain_dead,
            dedup_window,
            max_waiting,
            weight,
        }
    })
}

fn pausing() -> impl Strategy<Value = Pausing> {
    prop_oneof![Just(Pausing::UntilResumed), span().prop_map(Pausing::For), Just(Pausing::Over)]
}

fn expected() -> impl Strategy<Value = Expected> {
    prop_oneof![
        Just(Expected::Anything),
        Just(Expected::Absent),
        Just(Expected::Current),
        Just(Expected::Stale)
    ]
}

/// Any step, the usual ones more often.
pub(super) fn steps() -> BoxedStrategy<Step> {
    let sweep = prop_oneof![3 => Just(Sweep::Expire), 2 => Just(Sweep::Lapse), 1 => Just(Sweep::Retain)];
    let rarely = || proptest::bool::weighted(0.2);
    prop_oneof![
        10 => span().prop_map(Step::Advance),
        1 => span().prop_map(Step::Restart),
        12 => (prop::collection::vec(item(), 0..5), rarely())
            .prop_map(|(items, all_or_nothing)| Step::Enqueue { items, all_or_nothing }),
        16 => ask().prop_map(Step::Lease),
        16 => (act(), prop::collection::vec(any::<Index>(), 1..4), rarely())
            .prop_map(|(act, receipts, all_or_nothing)| Step::Settle { act, receipts, all_or_nothing }),
        1 => (0..QUEUES, any::<Index>(), any::<bool>())
            .prop_map(|(queue, message, release)| Step::Override { queue, message, release }),
        5 => (sweep, proptest::option::of(0..QUEUES), 1..6usize)
            .prop_map(|(sweep, queue, limit)| Step::Sweep { sweep, queue, limit }),
        5 => (bulk(), 0..QUEUES, select(), 1..5usize, rarely())
            .prop_map(|(bulk, queue, pick, limit, dry_run)| Step::Bulk { bulk, queue, pick, limit, dry_run }),
        3 => (0..QUEUES, setting()).prop_map(|(queue, config)| Step::Configure { queue, config }),
        1 => (0..QUEUES, proptest::option::of(0..3u8), pausing())
            .prop_map(|(queue, key, pause)| Step::Pause { queue, key, pause }),
        1 => (0..QUEUES).prop_map(Step::Create),
        1 => (0..QUEUES, rarely()).prop_map(|(queue, force)| Step::Delete { queue, force }),
        1 => prop::collection::vec((0..3u8, expected(), any::<bool>()), 1..3).prop_map(Step::Register),
        1 => (0..3usize, proptest::option::of(span())).prop_map(|(records, trim)| Step::Log { records, trim }),
    ]
    .boxed()
}
