//! Laws that every simulation keeps, whatever the policy and the load.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use proptest::prelude::*;
use redrive_core::dice::Dice;
use redrive_core::lifecycle::Terms;
use redrive_core::message::{Lane, MessageId};
use redrive_core::policy::{Asked, Failure, Jitter, Multiplier, RetryPolicy, Sentence, Share, sentence};
use redrive_core::queue::QueueSettings;
use redrive_core::time::{Millis, Timestamp};

use super::report::Drains;
use super::schedule::{ROWS_MAX, Schedule};
use super::simulated;
use super::world::{self, Event, Look, Setting, Watch};

fn policies() -> impl Strategy<Value = RetryPolicy> {
    let delay = || prop_oneof![Just(0), 1..100_000u64].prop_map(Millis::new);
    let jitter =
        prop_oneof![Just(Jitter::None), (0..=1_000u16).prop_map(Jitter::Proportional), Just(Jitter::Full)];
    let cap =
        prop_oneof![Just(None), (1..9u32).prop_map(NonZeroU32::new), any::<u32>().prop_map(NonZeroU32::new)];
    let factor = prop_oneof![Just(1.0), 1.0..=5.0f64, Just(1_000.0)];
    (cap, delay(), factor, proptest::option::of(delay()), jitter).prop_map(
        |(max_attempts, base_delay, multiplier, max_delay, jitter)| RetryPolicy {
            max_attempts,
            base_delay,
            multiplier: Multiplier::new(multiplier).unwrap(),
            max_delay,
            jitter,
        },
    )
}

fn settings() -> impl Strategy<Value = Setting> {
    let outage = proptest::option::of((0..20_000u64, 0..20_000u64));
    (policies(), 0.0..=1.0f64, 0.1..40.0f64, 1..20u32, 1..2_000u64, 0.0..=1.0f64, outage, any::<u64>())
        .prop_map(|(policy, share, arrival_rate, workers, run_time, failure_rate, outage, seed)| Setting {
            terms: Terms::new(&QueueSettings { retry: policy, ..QueueSettings::default() }, None),
            retry_share: Share::new(share).unwrap(),
            arrival_rate,
            workers,
            run_time: Millis::new(run_time),
            failure_rate,
            outage: outage
                .map(|(from, length)| (Timestamp::from_millis(from), Timestamp::from_millis(from + length))),
            length: Millis::from_secs(20),
            seed,
        })
}

/// Where a message is, as far as somebody knows who was only told what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Fresh,
    Waits { due: Timestamp },
    Runs { since: Timestamp },
    Over,
}

/// Follows each message, and finds whatever must not happen.
struct Witness<'a> {
    setting: &'a Setting,
    messages: BTreeMap<MessageId, (Where, u32)>,
    contested: Vec<Lane>,
    wrong: Vec<String>,
}

impl Witness<'_> {
    fn count(&self, wanted: impl Fn(Where) -> bool) -> u64 {
        self.messages.values().filter(|(place, _)| wanted(*place)).count() as u64
    }
}

impl Watch for Witness<'_> {
    fn saw(&mut self, now: Timestamp, message: MessageId, event: Event) {
        let known = self.messages.get(&message).copied();
        let run_time = self.setting.run_time;
        let cap = self.setting.terms.policy.max_attempts.map_or(u32::MAX, NonZeroU32::get);
        let next = match (known, event) {
            (None, Event::Arrived) => Some((Where::Fresh, 0)),
            (Some((Where::Fresh, 0)), Event::Handed { lane: Lane::Fresh, .. }) => {
                Some((Where::Runs { since: now }, 1))
            }
            (Some((Where::Waits { due }, attempts)), Event::Handed { lane: Lane::Retry, waited, .. })
                if due <= now && attempts < cap && waited == now.since(due) =>
            {
                Some((Where::Runs { since: now }, attempts + 1))
            }
            (Some((Where::Runs { since }, attempts)), Event::Done) if since.plus(run_time) == now => {
                Some((Where::Over, attempts))
            }
            (Some((Where::Runs { since }, attempts)), Event::Dead)
                if since.plus(run_time) == now && attempts == cap =>
            {
                Some((Where::Over, attempts))
            }
            (Some((Where::Runs { since }, attempts)), Event::Retry { due })
                if since.plus(run_time) == now && due >= now =>
            {
                Some((Where::Waits { due }, attempts))
            }
            _ => None,
        };
        match next {
            Some(next) => drop(self.messages.insert(message, next)),
            None => self.wrong.push(format!("{event:?} at {now:?} where it was {known:?}")),
        }
        if let Event::Handed { lane, contested: true, .. } = event {
            self.contested.push(lane);
        }
    }

    fn looked(&mut self, now: Timestamp, look: Look) {
        let ready = self.count(|place| match place {
            Where::Fresh => true,
            Where::Waits { due } => due <= now,
            _ => false,
        });
        let delayed = self.count(|place| matches!(place, Where::Waits { due } if due > now));
        let running = self.count(|place| matches!(place, Where::Runs { .. }));
        if (Look { ready, delayed, running }) != look {
            self.wrong.push(format!("{look:?} at {now:?}, and {ready}, {delayed}, {running} were told"));
        }
        let workers = u64::from(self.setting.workers);
        if running > workers || (ready > 0 && running < workers) {
            self.wrong.push(format!("{running} of {workers} workers run while {ready} wait"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_message_goes_its_way_and_none_is_tried_before_its_time(setting in settings()) {
        let mut witness =
            Witness { setting: &setting, messages: BTreeMap::new(), contested: Vec::new(), wrong: Vec::new() };
        world::run(&setting, &mut witness).unwrap();
        prop_assert!(witness.wrong.is_empty(), "{:?}", &witness.wrong[..1]);
        // Retries get their share of the contested hand-outs, and less than one more or less.
        let retries = witness.contested.iter().filter(|lane| **lane == Lane::Retry).count() * 1_000_000;
        let owed = witness.contested.len() * setting.retry_share.millionths() as usize;
        prop_assert!(retries.abs_diff(owed) <= 1_000_000, "{retries} retries of {owed}");
    }

    #[test]
    fn nothing_is_lost_or_made_and_the_same_seed_says_the_same(setting in settings()) {
        let report = simulated(&setting).unwrap();
        let there = report.done + report.dead + report.ready + report.delayed + report.running;
        prop_assert_eq!(report.arrived, there);
        prop_assert_eq!(&report, &simulated(&setting).unwrap());
        prop_assert_eq!(report.text(), simulated(&setting).unwrap().text());
    }

    #[test]
    fn the_schedule_is_the_judges(policy in policies(), seed: u64) {
        let schedule = Schedule::of(&policy);
        let mut dice = Dice::seeded(seed);
        let mut starts = (0, 0, 0);
        for row in &schedule.attempts {
            prop_assert_eq!((row.starts.low, row.starts.usual, row.starts.high), starts);
            match (sentence(&policy, row.attempt, Failure::Nack(Asked::Nothing), &mut dice), row.delay) {
                (Sentence::Dead(_), None) => prop_assert_eq!(schedule.attempts.last(), Some(row)),
                (Sentence::RetryAfter(delay, _), Some(band)) => {
                    prop_assert_eq!(band.usual, policy.delay(row.attempt).get());
                    prop_assert!((band.low..=band.high).contains(&delay.get()));
                    starts = (starts.0 + band.low, starts.1 + band.usual, starts.2 + band.high);
                }
                (judged, row) => prop_assert!(false, "{judged:?} and {row:?}"),
            }
        }
        if schedule.more == Some(0) {
            let dead = schedule.dead_after.unwrap();
            prop_assert_eq!((dead.low, dead.usual, dead.high), starts);
        }
    }
}

fn steady(failure_rate: f64, workers: u32) -> Setting {
    let retry = RetryPolicy { jitter: Jitter::None, ..RetryPolicy::default() };
    Setting {
        terms: Terms::new(&QueueSettings { retry, ..QueueSettings::default() }, None),
        retry_share: Share::FIFTH,
        arrival_rate: 50.0,
        workers,
        run_time: Millis::new(100),
        failure_rate,
        outage: None,
        length: Millis::from_secs(120),
        seed: 7,
    }
}

#[test]
fn the_table_of_the_design() {
    let policy =
        RetryPolicy { max_attempts: NonZeroU32::new(7), jitter: Jitter::None, ..RetryPolicy::default() };
    let schedule = Schedule::of(&policy);
    let delays: Vec<u64> = schedule.attempts.iter().filter_map(|row| Some(row.delay?.usual)).collect();
    assert_eq!(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
    assert_eq!(schedule.dead_after.unwrap().usual, 61_000);
}

#[test]
fn a_policy_with_very_many_attempts_is_summed_up() {
    let policy = RetryPolicy {
        max_attempts: NonZeroU32::new(u32::MAX),
        jitter: Jitter::None,
        ..RetryPolicy::default()
    };
    let schedule = Schedule::of(&policy);
    assert_eq!((schedule.attempts.len(), schedule.more), (ROWS_MAX as usize, Some(u32::MAX - ROWS_MAX)));
    // 1, 2, 4, 8 and 16 seconds, and all the others half a minute.
    let delays = 31_000 + 30_000 * (u64::from(u32::MAX) - 1 - 5);
    assert_eq!(schedule.dead_after.unwrap().usual, delays);
}

#[test]
fn retries_add_what_the_failures_ask_for() {
    let report = simulated(&steady(0.3, 20)).unwrap();
    // 0.3 + 0.09 of the messages come a second and a third time.
    assert!((report.retry_load - 0.39).abs() < 0.03, "{report:?}");
    assert!((report.utilisation.unwrap() - 0.3475).abs() < 1e-9, "{report:?}");
    assert_eq!(simulated(&steady(0.0, 20)).unwrap().retries, 0);
    let all_fail = simulated(&steady(1.0, 200)).unwrap();
    assert_eq!(all_fail.done, 0);
}

#[test]
fn a_backlog_of_an_outage_drains_and_one_of_too_few_workers_never_does() {
    let outage = (Timestamp::from_millis(20_000), Timestamp::from_millis(40_000));
    let setting = Setting { outage: Some(outage), ..steady(0.0, 8) };
    let report = simulated(&setting).unwrap();
    assert_eq!(report.drains, Drains::Drained, "{report:?}");
    assert!(report.backlog_max > 100 && report.dead > 0, "{report:?}");
    let short = simulated(&steady(0.0, 4)).unwrap();
    assert_eq!(short.drains, Drains::Never);
    // Of 50 a second 40 are done: who comes at the end of two minutes waits for about 30 seconds.
    assert!((20_000..40_000).contains(&short.fresh_wait_p99_ms), "{short:?}");
    // While both have work, retries get a fifth.
    assert!((report.fresh_share.unwrap() - 0.8).abs() < 0.01, "{report:?}");
}

#[test]
fn what_fails_for_ever_needs_workers_without_end() {
    let mut setting = steady(1.0, 8);
    setting.terms.policy.max_attempts = None;
    let report = simulated(&setting).unwrap();
    assert_eq!((report.utilisation, report.drains), (None, Drains::Never));
}
