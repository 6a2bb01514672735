//! How a queue is written: its configuration, its pauses, its totals.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::num::{NonZeroU32, NonZeroU64};

use redrive_core::lifecycle::Verb;
use redrive_core::policy::{BreakerConfig, Jitter, Multiplier, RetryLane, RetryOverride, Share, Weight};
use redrive_core::queue::{Pause, Pauses, Queue, QueueConfig, Retention, Totals, Weights};
use redrive_core::time::Millis;

use super::Malformed;
use super::bytes::{Put, Take, size};

const BROKEN: Malformed = Malformed("a setting breaks its rule");

pub(crate) fn put_queue(out: &mut Vec<u8>, queue: &Queue) {
    out.put_short(queue.name.as_str().as_bytes());
    out.put_time(queue.created_at);
    out.put_u64(queue.version);
    put_config(out, &queue.config);
    put_pauses(out, &queue.pauses);
}

pub(crate) fn take_queue(from: &mut Take<'_>) -> Result<Queue, Malformed> {
    Ok(Queue {
        name: from.parse()?,
        created_at: from.time()?,
        version: from.u64()?,
        config: take_config(from)?,
        pauses: take_pauses(from)?,
    })
}

fn put_config(out: &mut Vec<u8>, config: &QueueConfig) {
    let millis = |out: &mut Vec<u8>, span: Millis| out.put_u64(span.get());
    let cap = |out: &mut Vec<u8>, cap: Option<NonZeroU32>| out.put_u32(cap.map_or(0, NonZeroU32::get));
    out.put_option(config.lease_timeout, millis);
    out.put_option(config.max_lease, millis);
    out.put_option(config.max_deliveries, cap);
    out.put_option(config.retry_share, |out, share| out.put_u32(share.millionths()));
    out.put_option(config.retry_lane, |out, lane| out.put_u8(u8::from(lane == RetryLane::Separate)));
    out.put_option(config.max_retries_in_flight, cap);
    out.put_option(config.overdue_backoff, |out, on| out.put_u8(u8::from(on)));
    out.put_option(config.breaker, |out, breaker| out.put_option(breaker, put_breaker));
    out.put_option(config.dead_letter_to.as_ref(), |out, target| {
        out.put_option(target.as_ref(), |out, target| out.put_short(target.as_str().as_bytes()));
    });
    out.put_option(config.retain_done, |out, kept| out.put_option(kept, put_retention));
    out.put_option(config.retain_dead, |out, kept| out.put_option(kept, put_retention));
    out.put_option(config.dedup_window, millis);
    out.put_option(config.max_waiting, |out, max| out.put_u64(max.map_or(0, NonZeroU64::get)));
    out.put_option(config.weights.as_ref(), |out, weights| {
        out.put_u32(size(weights.iter().count()));
        for (key, weight) in weights.iter() {
            out.put_short(key.as_str().as_bytes());
            out.put_u32(weight.get());
        }
    });
    let retry = &config.retry;
    out.put_option(retry.max_attempts, cap);
    out.put_option(retry.base_delay, millis);
    out.put_option(retry.multiplier, |out, multiplier| out.put_u32(multiplier.thousandths()));
    out.put_option(retry.max_delay, |out, max| out.put_option(max, millis));
    out.put_option(retry.jitter, put_jitter);
}

fn take_config(from: &mut Take<'_>) -> Result<QueueConfig, Malformed> {
    let cap = |from: &mut Take<'_>| from.u32().map(NonZeroU32::new);
    Ok(QueueConfig {
        lease_timeout: from.option(Take::millis)?,
        max_lease: from.option(Take::millis)?,
        max_deliveries: from.option(cap)?,
        retry_share: from
            .option(|from| Share::new(f64::from(from.u32()?) / 1_000_000.0).map_err(|_| BROKEN))?,
        retry_lane: from.option(|from| {
            let separate = from.bool()?;
            Ok(if separate { RetryLane::Separate } else { RetryLane::Shared })
        })?,
        max_retries_in_flight: from.option(cap)?,
        overdue_backoff: from.option(Take::bool)?,
        breaker: from.option(|from| from.option(take_breaker))?,
        dead_letter_to: from.option(|from| from.option(Take::parse))?,
        retain_done: from.option(|from| from.option(take_retention))?,
        retain_dead: from.option(|from| from.option(take_retention))?,
        dedup_window: from.option(Take::millis)?,
        max_waiting: from.option(|from| from.u64().map(NonZeroU64::new))?,
        weights: from.option(take_weights)?,
        retry: RetryOverride {
            max_attempts: from.option(cap)?,
            base_delay: from.option(Take::millis)?,
            multiplier: from.option(|from| Multiplier::from_thousandths(from.u32()?).map_err(|_| BROKEN))?,
            max_delay: from.option(|from| from.option(Take::millis))?,
            jitter: from.option(take_jitter)?,
        },
    })
}

fn put_breaker(out: &mut Vec<u8>, breaker: BreakerConfig) {
    out.put_u64(breaker.window.get());
    out.put_u32(breaker.min_messages);
    out.put_u32(breaker.failure_share_permille);
    out.put_u64(breaker.open_for.get());
    out.put_u64(breaker.probe_timeout.get());
}

fn take_breaker(from: &mut Take<'_>) -> Result<BreakerConfig, Malformed> {
    Ok(BreakerConfig {
        window: from.millis()?,
        min_messages: from.u32()?,
        failure_share_permille: from.u32()?,
        open_for: from.millis()?,
        probe_timeout: from.millis()?,
    })
}

fn put_retention(out: &mut Vec<u8>, kept: Retention) {
    out.put_option(kept.age, |out, age| out.put_u64(age.get()));
    out.put_option(kept.count, Vec::put_u64);
}

fn take_retention(from: &mut Take<'_>) -> Result<Retention, Malformed> {
    Ok(Retention { age: from.option(Take::millis)?, count: from.option(Take::u64)? })
}

fn take_weights(from: &mut Take<'_>) -> Result<Weights, Malformed> {
    let mut weights = Vec::new();
    for _ in 0..from.u32()? {
        let key = from.parse()?;
        weights.push((key, Weight::new(from.u32()?).map_err(|_| BROKEN)?));
    }
    Weights::new(weights).map_err(|_| BROKEN)
}

fn put_jitter(out: &mut Vec<u8>, jitter: Jitter) {
    let (kind, share) = match jitter {
        Jitter::None => (0, 0),
        Jitter::Proportional(share) => (1, share),
        Jitter::Full => (2, 0),
    };
    out.put_u8(kind);
    out.put_u16(share);
}

fn take_jitter(from: &mut Take<'_>) -> Result<Jitter, Malformed> {
    match (from.u8()?, from.u16()?) {
        (0, _) => Ok(Jitter::None),
        (1, share) => Ok(Jitter::Proportional(share)),
        (2, _) => Ok(Jitter::Full),
        _ => Err(BROKEN),
    }
}

fn put_pause(out: &mut Vec<u8>, pause: Pause) {
    out.put_option(pause.end(), Vec::put_time);
}

fn take_pause(from: &mut Take<'_>) -> Result<Pause, Malformed> {
    Ok(from.option(Take::time)?.map_or(Pause::UntilResumed, Pause::Until))
}

fn put_pauses(out: &mut Vec<u8>, pauses: &Pauses) {
    out.put_option(pauses.queue, put_pause);
    out.put_u32(size(pauses.keys.len()));
    for (key, pause) in &pauses.keys {
        out.put_short(key.as_str().as_bytes());
        put_pause(out, *pause);
    }
}

fn take_pauses(from: &mut Take<'_>) -> Result<Pauses, Malformed> {
    let mut pauses = Pauses { queue: from.option(take_pause)?, ..Pauses::default() };
    for _ in 0..from.u32()? {
        let key = from.parse()?;
        pauses.keys.insert(key, take_pause(from)?);
    }
    Ok(pauses)
}

/// The counters of a queue in the order in which they are written: one for each verb, then the others.
pub(crate) const COUNTERS: usize = Verb::ALL.len() + 4;

/// The counters of a queue.
pub(crate) fn counters(totals: &Totals) -> [u64; COUNTERS] {
    let mut counters = [0; COUNTERS];
    let others = [totals.moved_in, totals.retained, totals.died, totals.duplicates];
    let all = Verb::ALL.into_iter().map(|verb| totals.of(verb)).chain(others);
    counters.iter_mut().zip(all).for_each(|(counter, total)| *counter = total);
    counters
}

/// Adds to the counters of a queue.
pub(crate) fn add_counters(totals: &mut Totals, more: &[u64; COUNTERS]) {
    let (verbs, others) = more.split_at(Verb::ALL.len());
    for (verb, count) in Verb::ALL.into_iter().zip(verbs) {
        totals.add(verb, *count);
    }
    if let [moved_in, retained, died, duplicates] = others {
        totals.moved_in += moved_in;
        totals.retained += retained;
        totals.died += died;
        totals.duplicates += duplicates;
    }
}

/// Writes the counters that are not zero.
pub(crate) fn put_counters(out: &mut Vec<u8>, counters: &[u64; COUNTERS]) {
    let set = counters.iter().filter(|count| **count > 0).count();
    out.put_u8(u8::try_from(set).expect("a queue has few counters"));
    for (number, count) in (0u8..).zip(counters).filter(|(_, count)| **count > 0) {
        out.put_u8(number);
        out.put_u64(*count);
    }
}

pub(crate) fn take_counters(from: &mut Take<'_>) -> Result<[u64; COUNTERS], Malformed> {
    let mut counters = [0; COUNTERS];
    for _ in 0..from.u8()? {
        let number = usize::from(from.u8()?);
        *counters.get_mut(number).ok_or(Malformed("a counter that no queue has"))? = from.u64()?;
    }
    Ok(counters)
}
