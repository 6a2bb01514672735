use redrive_core::queue::{Pauses, QueueConfig, QueueSettings};

use super::*;
use crate::numbers::Spread;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn at(secs: u64) -> Timestamp {
    START.plus(Millis::from_secs(secs))
}

/// A queue at a moment: so many ready, and how often each of these happened.
fn stats(secs: u64, ready: u64, happened: &[(Verb, u64)], died: u64) -> QueueStats {
    let mut states = StateCounts::default();
    states.add(State::Ready, ready);
    let mut totals = Totals::default();
    totals.died = died;
    for (verb, count) in happened {
        totals.add(*verb, *count);
    }
    QueueStats {
        at: at(secs),
        queue: Queue {
            name: QueueName::new("jobs").unwrap(),
            created_at: START,
            version: 1,
            config: QueueConfig::default(),
            pauses: Pauses::default(),
        },
        settings: QueueSettings::default(),
        states,
        overdue: 0,
        retries_in_flight: 0,
        oldest_ready: None,
        dedup_keys: 0,
        totals,
    }
}

fn counts(spans: &[u64]) -> Option<Counts> {
    let spread = Spread::default();
    for ms in spans {
        spread.add(Millis::new(*ms));
    }
    spread.take()
}

fn add(history: &mut History, stats: &QueueStats, young: bool) {
    let round = stats.at.since(START).get() / 10_000;
    history.add(stats, (None, None), (round, young, 360));
}

#[test]
fn a_queue_that_is_new_has_done_all_that_it_did_since_the_last_round() {
    let (mut old, mut young) = (History::default(), History::default());
    let first = stats(10, 0, &[(Verb::Enqueue, 30), (Verb::Ack, 20)], 1);
    add(&mut old, &first, false);
    add(&mut young, &first, true);
    let told = |history: &History| history.last().map(|last| (last.enqueued, last.acked, last.died)).unwrap();
    assert_eq!((told(&old), told(&young)), ((0, 0, 0), (30, 20, 1)));
    assert_eq!(format!("{:.1} {:.1}", old.rates().enqueued, young.rates().enqueued), "0.0 3.0");
}

#[test]
fn rates_are_those_of_the_last_minute_that_there_are_samples_of() {
    let mut history = History::default();
    for round in 0..=10_u64 {
        // Ten a second for the first forty seconds, and then one a second, of which half fail.
        let (fast, slow) = (round.min(4) * 100, round.saturating_sub(4) * 10);
        let happened = [(Verb::Enqueue, fast + slow), (Verb::Ack, slow / 2), (Verb::Nack, slow / 2)];
        add(&mut history, &stats(round * 10, 0, &happened, 0), false);
    }
    let rates = history.rates();
    assert_eq!(
        format!("{:.2} {:.2} {:.2?}", rates.enqueued, rates.failed, rates.failed_share),
        "1.00 0.50 Some(0.50)"
    );
    assert_eq!(history.failed_lately(), 30);
    assert_eq!(History::default().rates(), Rates::default());
}

#[test]
fn what_happened_lately_is_forgotten_after_a_quarter_of_an_hour_and_known_before_the_next_sample() {
    let mut history = History::default();
    add(&mut history, &stats(0, 0, &[], 0), false);
    add(&mut history, &stats(10, 0, &[(Verb::Expire, 4), (Verb::Lease, 9)], 2), false);
    let now = |secs, died| stats(secs, 0, &[(Verb::Expire, 5), (Verb::Lease, 9)], died);
    assert_eq!(history.happened(&now(15, 3), false), Lately { leased: 9, died: 3, expired: 5 });
    assert_eq!(history.happened(&now(100, 3), false), Lately { leased: 0, died: 3, expired: 5 });
    assert_eq!(history.happened(&now(911, 3), false), Lately { leased: 0, died: 1, expired: 1 });
}

#[test]
fn times_are_told_for_each_sample_and_for_the_last_quarter_of_an_hour() {
    let mut history = History::default();
    history.add(&stats(0, 0, &[], 0), (counts(&[100; 10]), counts(&[5])), (0, false, 360));
    history.add(&stats(10, 0, &[], 0), (counts(&[1_000; 90]), None), (1, false, 360));
    let p50 = |times: Option<Times>| times.map(|times| times.p50.get());
    let samples: Vec<_> = history.samples.iter().map(|one| (p50(one.wait), p50(one.run))).collect();
    assert_eq!(samples, [(Some(103), Some(5)), (Some(1_023), None)]);
    let (wait, run) = history.times(at(20));
    assert_eq!((p50(wait), p50(run)), (Some(1_023), Some(5)));
    assert_eq!(history.times(at(901)), (None, None), "that is too long ago");
    for secs in (20..2_000).step_by(10) {
        history.add(&stats(secs, 0, &[], 0), (counts(&[7]), counts(&[7])), (secs, false, 360));
    }
    assert!(history.waits.0.len() <= 6, "{} parts", history.waits.0.len());
    assert_eq!(p50(history.times(at(2_000)).0), Some(7), "what is old is forgotten");
}

#[test]
fn the_depth_of_a_queue_is_told_in_few_points_of_which_the_last_is_the_latest() {
    let mut history = History::default();
    assert_eq!(history.depths(at(0)), [] as [u64; 0]);
    for round in 0..200 {
        add(&mut history, &stats(round * 10, round, &[], 0), false);
    }
    let depths = history.depths(at(1_990));
    assert!(depths.len() <= DEPTHS_MAX && depths.is_sorted(), "{depths:?}");
    assert_eq!((depths.last(), depths.first()), (Some(&199), Some(&112)));
    assert_eq!(history.depths(at(9_000)), [] as [u64; 0]);
}

#[test]
fn samples_of_several_queues_are_added_up_and_their_times_left_out() {
    let mut history = History::default();
    history.add(&stats(0, 2, &[], 0), (counts(&[1]), counts(&[1])), (0, false, 360));
    let mut sum = *history.last().unwrap();
    sum.add(&Sample { acked: 3, at: at(1), ..sum });
    assert_eq!((sum.states.of(State::Ready), sum.acked, sum.at), (4, 3, at(1)));
    assert_eq!((sum.wait, sum.run), (None, None));
}
