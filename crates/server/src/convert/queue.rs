//! Queues and their settings.

use std::num::{NonZeroU32, NonZeroU64};

use redrive_broker::{BreakerView, RetryShare, Sample};
use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::Verb;
use redrive_core::message::State;
use redrive_core::policy::{
    BreakerConfig, Jitter, Multiplier, PlannedRetry, RetryLane, RetryOverride, RetryPolicy, Share, Weight,
};
use redrive_core::queue as domain;
use redrive_core::queue::{QueueSettings, Weights};
use redrive_core::time::{Millis, Timestamp};
use redrive_store as store;
use redrive_wire as wire;
use redrive_wire::Maybe;

use super::{millis, time};

/// How many retries of a policy are shown at most.
const SCHEDULE_COUNT_MAX: u32 = 50;
/// How many are shown where nothing is said.
const SCHEDULE_COUNT_DEFAULT: u32 = 8;

/// What is set, checked field by field; whether the fields go together the store says.
pub(crate) fn config(config: wire::QueueConfig) -> Result<domain::QueueConfig, Invalid> {
    let retention = |value: Maybe<wire::Retention>| {
        let retention =
            |value: wire::Retention| domain::Retention { age: millis(value.age_ms), count: value.count };
        value.set().map(|value| value.map(retention))
    };
    Ok(domain::QueueConfig {
        lease_timeout: millis(config.lease_timeout_ms),
        max_lease: millis(config.max_lease_ms),
        max_deliveries: positive("max_deliveries", config.max_deliveries)?,
        retry: retry(&config.retry.unwrap_or_default())?,
        retry_share: config.retry_share.map(Share::new).transpose()?,
        retry_lane: config.retry_lane.as_deref().map(retry_lane).transpose()?,
        max_retries_in_flight: positive("max_retries_in_flight", config.max_retries_in_flight)?,
        overdue_backoff: config.overdue_backoff,
        breaker: match config.breaker.set() {
            None => None,
            Some(None) => Some(None),
            Some(Some(value)) => Some(Some(breaker(&value)?)),
        },
        dead_letter_to: match config.dead_letter_to.set() {
            None => None,
            Some(None) => Some(None),
            Some(Some(name)) => Some(Some(named("dead_letter_to", &name)?)),
        },
        retain_done: retention(config.retain_done),
        retain_dead: retention(config.retain_dead),
        dedup_window: millis(config.dedup_window_ms),
        max_waiting: match config.max_waiting.set() {
            None => None,
            Some(None) => Some(None),
            Some(Some(max)) => Some(Some(
                NonZeroU64::new(max).ok_or_else(|| Invalid::out_of_range("max_waiting", 1, u64::MAX))?,
            )),
        },
        weights: config.weights.map(weights).transpose()?,
    })
}

/// The name of another queue, refused under the field it stands in.
fn named(field: &'static str, name: &str) -> Result<domain::QueueName, Invalid> {
    domain::QueueName::new(name).map_err(|invalid| Invalid { field, ..invalid })
}

pub(crate) fn weights(weights: wire::KeyWeights) -> Result<Weights, Invalid> {
    let pairs: Result<Vec<_>, Invalid> =
        weights.into_iter().map(|(key, weight)| Ok((key.parse()?, Weight::new(weight)?))).collect();
    Weights::new(pairs?)
}

/// A count that is not zero; left out, and set to none, are two things.
#[expect(clippy::option_option, reason = "the shape of a setting that may be set to no limit")]
fn positive(field: &'static str, value: Maybe<u32>) -> Result<Option<Option<NonZeroU32>>, Invalid> {
    match value.set() {
        None => Ok(None),
        Some(None) => Ok(Some(None)),
        Some(Some(value)) => match NonZeroU32::new(value) {
            Some(value) => Ok(Some(Some(value))),
            None => Err(Invalid::out_of_range(field, 1, u32::MAX)),
        },
    }
}

pub(crate) fn retry(retry: &wire::Retry) -> Result<RetryOverride, Invalid> {
    Ok(RetryOverride {
        max_attempts: positive("retry.max_attempts", retry.max_attempts)?,
        base_delay: millis(retry.base_delay_ms),
        multiplier: retry.multiplier.map(Multiplier::new).transpose()?,
        max_delay: retry.max_delay_ms.set().map(|max| max.map(Millis::new)),
        jitter: retry.jitter.as_deref().map(jitter).transpose()?,
    })
}

fn jitter(text: &str) -> Result<Jitter, Invalid> {
    match text {
        "none" => Ok(Jitter::None),
        "full" => Ok(Jitter::Full),
        share => match share.parse() {
            Ok(share) => Jitter::proportional(share),
            Err(_) => Err(Invalid::unusable("retry.jitter", "must be none, full, or a share such as 0.1")),
        },
    }
}

fn retry_lane(text: &str) -> Result<RetryLane, Invalid> {
    match text {
        "shared" => Ok(RetryLane::Shared),
        "separate" => Ok(RetryLane::Separate),
        _ => Err(Invalid::unusable("retry_lane", "must be shared or separate")),
    }
}

pub(crate) fn breaker(breaker: &wire::Breaker) -> Result<BreakerConfig, Invalid> {
    let default = BreakerConfig::default();
    Ok(BreakerConfig {
        window: millis(breaker.window_ms).unwrap_or(default.window),
        min_messages: breaker.min_messages.unwrap_or(default.min_messages),
        failure_share_permille: match breaker.failure_share {
            None => default.failure_share_permille,
            Some(share) if (0.001..=0.999).contains(&share) => {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 999 fits")]
                let permille = (share * 1_000.0).round() as u32;
                permille
            }
            Some(_) => return Err(Invalid::out_of_range("breaker.failure_share", 0.001, 0.999)),
        },
        open_for: millis(breaker.open_for_ms).unwrap_or(default.open_for),
        probe_timeout: millis(breaker.probe_timeout_ms).unwrap_or(default.probe_timeout),
    })
}

pub(crate) fn breaker_view(breaker: &BreakerConfig) -> wire::Breaker {
    wire::Breaker {
        window_ms: Some(breaker.window.get()),
        min_messages: Some(breaker.min_messages),
        failure_share: Some(f64::from(breaker.failure_share_permille) / 1_000.0),
        open_for_ms: Some(breaker.open_for.get()),
        probe_timeout_ms: Some(breaker.probe_timeout.get()),
    }
}

fn jitter_view(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".to_owned(),
        Jitter::Full => "full".to_owned(),
        Jitter::Proportional(thousandths) => (f64::from(thousandths) / 1_000.0).to_string(),
    }
}

fn multiplier_view(multiplier: Multiplier) -> f64 {
    f64::from(multiplier.thousandths()) / 1_000.0
}

fn share_view(share: Share) -> f64 {
    f64::from(share.millionths()) / 1_000_000.0
}

fn lane_view(lane: RetryLane) -> String {
    match lane {
        RetryLane::Shared => "shared",
        RetryLane::Separate => "separate",
    }
    .to_owned()
}

fn retention_view(retention: domain::Retention) -> wire::Retention {
    wire::Retention { age_ms: retention.age.map(Millis::get), count: retention.count }
}

fn weights_view(weights: &Weights) -> wire::KeyWeights {
    weights.iter().map(|(key, weight)| (key.as_str().to_owned(), weight.get())).collect()
}

/// What is set of retries, where anything is.
pub(crate) fn retry_view(retry: &RetryOverride) -> Option<wire::Retry> {
    let view = wire::Retry {
        max_attempts: Maybe::from_set(retry.max_attempts.map(|max| max.map(NonZeroU32::get))),
        base_delay_ms: retry.base_delay.map(Millis::get),
        multiplier: retry.multiplier.map(multiplier_view),
        max_delay_ms: Maybe::from_set(retry.max_delay.map(|max| max.map(Millis::get))),
        jitter: retry.jitter.map(jitter_view),
    };
    (view != wire::Retry::default()).then_some(view)
}

/// A whole policy.
pub(crate) fn policy_view(policy: &RetryPolicy) -> wire::Retry {
    let RetryPolicy { max_attempts, base_delay, multiplier, max_delay, jitter } = *policy;
    wire::Retry {
        max_attempts: Maybe::from_set(Some(max_attempts.map(NonZeroU32::get))),
        base_delay_ms: Some(base_delay.get()),
        multiplier: Some(multiplier_view(multiplier)),
        max_delay_ms: Maybe::from_set(Some(max_delay.map(Millis::get))),
        jitter: Some(jitter_view(jitter)),
    }
}

/// What is set.
pub(crate) fn config_view(config: &domain::QueueConfig) -> wire::QueueConfig {
    wire::QueueConfig {
        lease_timeout_ms: config.lease_timeout.map(Millis::get),
        max_lease_ms: config.max_lease.map(Millis::get),
        max_deliveries: Maybe::from_set(config.max_deliveries.map(|max| max.map(NonZeroU32::get))),
        retry: retry_view(&config.retry),
        retry_share: config.retry_share.map(share_view),
        retry_lane: config.retry_lane.map(lane_view),
        max_retries_in_flight: Maybe::from_set(
            config.max_retries_in_flight.map(|max| max.map(NonZeroU32::get)),
        ),
        overdue_backoff: config.overdue_backoff,
        breaker: Maybe::from_set(config.breaker.as_ref().map(|value| value.as_ref().map(breaker_view))),
        dead_letter_to: Maybe::from_set(
            config.dead_letter_to.as_ref().map(|name| name.as_ref().map(|name| name.as_str().to_owned())),
        ),
        retain_done: Maybe::from_set(config.retain_done.map(|value| value.map(retention_view))),
        retain_dead: Maybe::from_set(config.retain_dead.map(|value| value.map(retention_view))),
        dedup_window_ms: config.dedup_window.map(Millis::get),
        max_waiting: Maybe::from_set(config.max_waiting.map(|max| max.map(NonZeroU64::get))),
        weights: config.weights.as_ref().map(weights_view),
    }
}

/// The settings in force, every one of them.
fn settings_view(settings: &QueueSettings) -> wire::QueueConfig {
    let set = |value: Option<u32>| Maybe::from_set(Some(value));
    wire::QueueConfig {
        lease_timeout_ms: Some(settings.lease_timeout.get()),
        max_lease_ms: Some(settings.max_lease.get()),
        max_deliveries: set(settings.max_deliveries.map(NonZeroU32::get)),
        retry: Some(policy_view(&settings.retry)),
        retry_share: Some(share_view(settings.retry_share)),
        retry_lane: Some(lane_view(settings.retry_lane)),
        max_retries_in_flight: set(settings.max_retries_in_flight.map(NonZeroU32::get)),
        overdue_backoff: Some(settings.overdue_backoff),
        breaker: Maybe::from_set(Some(settings.breaker.as_ref().map(breaker_view))),
        dead_letter_to: Maybe::from_set(Some(
            settings.dead_letter_to.as_ref().map(|name| name.as_str().to_owned()),
        )),
        retain_done: Maybe::from_set(Some(settings.retain_done.map(retention_view))),
        retain_dead: Maybe::from_set(Some(settings.retain_dead.map(retention_view))),
        dedup_window_ms: Some(settings.dedup_window.get()),
        max_waiting: Maybe::from_set(Some(settings.max_waiting.map(NonZeroU64::get))),
        weights: Some(weights_view(&settings.weights)),
    }
}

/// The fields that are set, those of `retry` one by one.
fn fields(config: &wire::QueueConfig) -> Vec<(String, serde_json::Value)> {
    let mut value = serde_json::to_value(config).unwrap_or_default();
    let retry = value.get_mut("retry").map(serde_json::Value::take).unwrap_or_default();
    let named = |value: serde_json::Value, prefix: &'static str| {
        let object = match value {
            serde_json::Value::Object(object) => object,
            _ => serde_json::Map::new(),
        };
        object.into_iter().map(move |(name, value)| (format!("{prefix}{name}"), value))
    };
    named(value, "").filter(|(name, _)| name != "retry").chain(named(retry, "retry.")).collect()
}

/// The names of the fields that are set.
fn set_fields(config: &wire::QueueConfig) -> Vec<String> {
    fields(config).into_iter().map(|(name, _)| name).collect()
}

/// The names of the fields that are not set, and that the server's configuration says otherwise than what is built in.
fn configured_fields(config: &wire::QueueConfig, defaults: &QueueSettings) -> Vec<String> {
    let (set, built_in) = (set_fields(config), fields(&settings_view(&QueueSettings::default())));
    let configured = fields(&settings_view(defaults)).into_iter();
    configured
        .filter(|field| !built_in.contains(field) && !set.contains(&field.0))
        .map(|(name, _)| name)
        .collect()
}

pub(crate) fn queue_view(queue: &domain::Queue, defaults: &QueueSettings, now: Timestamp) -> wire::QueueView {
    let config = config_view(&queue.config);
    let whole = queue.pauses.queue.filter(|pause| pause.holds(now)).map(|pause| (None, pause));
    let keys = queue.pauses.keys.iter().filter(|(_, pause)| pause.holds(now));
    let keys = keys.map(|(key, pause)| (Some(key.as_str().to_owned()), *pause));
    wire::QueueView {
        name: queue.name.as_str().to_owned(),
        created_at: time(queue.created_at),
        version: queue.version,
        settings: settings_view(&queue.config.over(defaults)),
        set: set_fields(&config),
        configured: configured_fields(&config, defaults),
        config,
        paused: queue.pauses.holds_queue(now),
        pauses: whole
            .into_iter()
            .chain(keys)
            .map(|(key, pause)| wire::PauseView { key, until: pause.end().map(time) })
            .collect(),
    }
}

pub(crate) fn states(counts: &store::StateCounts) -> wire::StateCounts {
    wire::StateCounts {
        delayed: counts.of(State::Delayed),
        ready: counts.of(State::Ready),
        leased: counts.of(State::Leased),
        dead: counts.of(State::Dead),
        done: counts.of(State::Done),
    }
}

pub(crate) fn stats(stats: &store::QueueStats) -> wire::QueueStats {
    let totals = &stats.totals;
    let verbs = Verb::ALL.into_iter().map(|verb| (verb.name().to_owned(), totals.of(verb)));
    let others = [
        ("moved_in", totals.moved_in),
        ("retained", totals.retained),
        ("died", totals.died),
        ("duplicates", totals.duplicates),
    ];
    wire::QueueStats {
        queue: stats.queue.name.as_str().to_owned(),
        at: time(stats.at),
        states: states(&stats.states),
        overdue: stats.overdue,
        retries_in_flight: stats.retries_in_flight,
        oldest_ready_age_ms: stats.oldest_ready.map(|since| stats.at.since(since).get()),
        dedup_keys: stats.dedup_keys,
        totals: verbs.chain(others.map(|(name, count)| (name.to_owned(), count))).collect(),
    }
}

pub(crate) fn sample(sample: &Sample) -> wire::HistorySample {
    wire::HistorySample {
        at: time(sample.at),
        states: states(&sample.states),
        enqueued: sample.enqueued,
        leased: sample.leased,
        acked: sample.acked,
        failed: sample.failed,
        expired: sample.expired,
        died: sample.died,
        wait_p50_ms: sample.wait.map(|times| times.p50.get()),
        wait_p99_ms: sample.wait.map(|times| times.p99.get()),
        run_p50_ms: sample.run.map(|times| times.p50.get()),
        run_p99_ms: sample.run.map(|times| times.p99.get()),
    }
}

/// The retries of a policy, as many as were asked for.
pub(crate) fn schedule(policy: &RetryPolicy, count: Option<u32>) -> Result<wire::RetrySchedule, Invalid> {
    let count = count.unwrap_or(SCHEDULE_COUNT_DEFAULT);
    if !(1..=SCHEDULE_COUNT_MAX).contains(&count) {
        return Err(Invalid::out_of_range("count", 1, SCHEDULE_COUNT_MAX));
    }
    policy.check()?;
    let attempts: Vec<wire::ScheduledRetry> = policy.schedule().take(count as usize).map(planned).collect();
    let total_ms = attempts.last().map_or(0, |last| last.after_ms);
    Ok(wire::RetrySchedule { attempts, max_attempts: policy.max_attempts.map(NonZeroU32::get), total_ms })
}

fn planned(retry: PlannedRetry) -> wire::ScheduledRetry {
    wire::ScheduledRetry {
        attempt: retry.failed,
        delay_ms: retry.delay.get(),
        earliest_ms: retry.earliest.get(),
        latest_ms: retry.latest.get(),
        after_ms: retry.after.get(),
    }
}

pub(crate) fn retries((name, share): (String, RetryShare)) -> wire::RetryStats {
    wire::RetryStats {
        r#type: name,
        retries: share.retries,
        succeeded_after_retry: share.succeeded_after_retry,
        died: share.died,
        succeeded_share: share.succeeded(),
        died_share: share.succeeded().map(|share| 1.0 - share),
    }
}

pub(crate) fn breaker_status(view: &BreakerView) -> wire::BreakerStatus {
    wire::BreakerStatus {
        state: view.state.as_str().to_owned(),
        open_until: view.open_until.map(time),
        probe: view.probe.map(|probe| probe.to_string()),
        messages: view.tally.messages,
        failed: view.tally.failed,
    }
}
