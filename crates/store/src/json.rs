//! How a queue is kept: its configuration and its pauses as JSON that a person can read.
//!
//! What is not set is not there; `null` is "none" where a setting may be none.

use std::num::{NonZeroU32, NonZeroU64};

use redrive_core::invalid::Invalid;
use redrive_core::limits::Limits;
use redrive_core::message::FairnessKey;
use redrive_core::policy::{BreakerConfig, Jitter, Multiplier, RetryLane, RetryOverride, Share, Weight};
use redrive_core::queue::{Pause, Pauses, QueueConfig, QueueName, QueueSettings, Retention, Weights};
use redrive_core::time::{Millis, Timestamp};
use serde_json::{Map, Value, json};

/// What is wrong with a configuration that was read.
pub type Problem = String;

fn put<T>(map: &mut Map<String, Value>, name: &str, value: Option<T>, write: impl FnOnce(T) -> Value) {
    if let Some(value) = value {
        map.insert(name.to_owned(), write(value));
    }
}

fn millis(span: Millis) -> Value {
    span.get().into()
}

fn cap(cap: Option<NonZeroU32>) -> Value {
    cap.map_or(Value::Null, |cap| cap.get().into())
}

fn retention(kept: Option<Retention>) -> Value {
    kept.map_or(Value::Null, |kept| json!({ "age": kept.age.map(Millis::get), "count": kept.count }))
}

fn jitter(jitter: Jitter) -> Value {
    match jitter {
        Jitter::None => json!("none"),
        Jitter::Proportional(thousandths) => json!({ "proportional": thousandths }),
        Jitter::Full => json!("full"),
    }
}

fn breaker(breaker: Option<BreakerConfig>) -> Value {
    breaker.map_or(Value::Null, |breaker| {
        json!({
            "window": breaker.window.get(),
            "min_messages": breaker.min_messages,
            "failure_share_permille": breaker.failure_share_permille,
            "open_for": breaker.open_for.get(),
            "probe_timeout": breaker.probe_timeout.get(),
        })
    })
}

/// Writes a configuration.
pub fn write(config: &QueueConfig) -> Value {
    let mut map = Map::new();
    let to = &mut map;
    put(to, "lease_timeout", config.lease_timeout, millis);
    put(to, "max_lease", config.max_lease, millis);
    put(to, "max_deliveries", config.max_deliveries, cap);
    put(to, "retry_share", config.retry_share, |share| share.millionths().into());
    put(to, "retry_lane", config.retry_lane, |lane| match lane {
        RetryLane::Shared => json!("shared"),
        RetryLane::Separate => json!("separate"),
    });
    put(to, "max_retries_in_flight", config.max_retries_in_flight, cap);
    put(to, "overdue_backoff", config.overdue_backoff, Value::Bool);
    put(to, "breaker", config.breaker, breaker);
    put(to, "dead_letter_to", config.dead_letter_to.as_ref(), |target| {
        target.as_ref().map_or(Value::Null, |target| target.as_str().into())
    });
    put(to, "retain_done", config.retain_done, retention);
    put(to, "retain_dead", config.retain_dead, retention);
    put(to, "dedup_window", config.dedup_window, millis);
    put(to, "max_waiting", config.max_waiting, |max| max.map_or(Value::Null, |max| max.get().into()));
    put(to, "weights", config.weights.as_ref(), |weights| {
        weights.iter().map(|(key, weight)| (key.as_str().to_owned(), Value::from(weight.get()))).collect()
    });
    put(to, "max_attempts", config.retry.max_attempts, cap);
    put(to, "base_delay", config.retry.base_delay, millis);
    put(to, "multiplier", config.retry.multiplier, |multiplier| multiplier.thousandths().into());
    put(to, "max_delay", config.retry.max_delay, |max| max.map_or(Value::Null, millis));
    put(to, "jitter", config.retry.jitter, jitter);
    Value::Object(map)
}

/// Writes settings as the configuration that sets all of them.
pub fn write_settings(settings: &QueueSettings) -> Value {
    let settings = settings.clone();
    let retry = settings.retry;
    write(&QueueConfig {
        lease_timeout: Some(settings.lease_timeout),
        max_lease: Some(settings.max_lease),
        max_deliveries: Some(settings.max_deliveries),
        retry_share: Some(settings.retry_share),
        retry_lane: Some(settings.retry_lane),
        max_retries_in_flight: Some(settings.max_retries_in_flight),
        overdue_backoff: Some(settings.overdue_backoff),
        breaker: Some(settings.breaker),
        dead_letter_to: Some(settings.dead_letter_to),
        retain_done: Some(settings.retain_done),
        retain_dead: Some(settings.retain_dead),
        dedup_window: Some(settings.dedup_window),
        max_waiting: Some(settings.max_waiting),
        weights: Some(settings.weights),
        retry: RetryOverride {
            max_attempts: Some(retry.max_attempts),
            base_delay: Some(retry.base_delay),
            multiplier: Some(retry.multiplier),
            max_delay: Some(retry.max_delay),
            jitter: Some(retry.jitter),
        },
    })
}

/// Writes what a queue may hold.
pub fn write_limits(limits: Limits) -> Value {
    json!({
        "classes_per_queue": limits.classes_per_queue,
        "dedup_keys_per_queue": limits.dedup_keys_per_queue,
    })
}

fn number(value: &Value) -> Result<u64, Problem> {
    value.as_u64().ok_or_else(|| format!("{value} is not a number"))
}

fn small(value: &Value) -> Result<u32, Problem> {
    u32::try_from(number(value)?).map_err(|_| format!("{value} is too large"))
}

fn span(value: &Value) -> Result<Millis, Problem> {
    number(value).map(Millis::new)
}

fn text(value: &Value) -> Result<&str, Problem> {
    value.as_str().ok_or_else(|| format!("{value} is not a text"))
}

fn said<T>(value: Result<T, Invalid>) -> Result<T, Problem> {
    value.map_err(|invalid| invalid.to_string())
}

/// A value that may be none.
fn or_none<T>(value: &Value, read: impl FnOnce(&Value) -> Result<T, Problem>) -> Result<Option<T>, Problem> {
    if value.is_null() { Ok(None) } else { read(value).map(Some) }
}

fn read_cap(value: &Value) -> Result<Option<NonZeroU32>, Problem> {
    Ok(or_none(value, small)?.and_then(NonZeroU32::new))
}

fn read_retention(value: &Value) -> Result<Option<Retention>, Problem> {
    or_none(value, |kept| {
        let field = |name: &str| kept.get(name).unwrap_or(&Value::Null);
        Ok(Retention { age: or_none(field("age"), span)?, count: or_none(field("count"), number)? })
    })
}

fn read_jitter(value: &Value) -> Result<Jitter, Problem> {
    match (value.as_str(), value.get("proportional").and_then(Value::as_u64)) {
        (Some("none"), _) => Ok(Jitter::None),
        (Some("full"), _) => Ok(Jitter::Full),
        (None, Some(thousandths)) => {
            u16::try_from(thousandths).map(Jitter::Proportional).map_err(|_| format!("{value} is too large"))
        }
        _ => Err(format!("{value} is no jitter")),
    }
}

fn read_breaker(value: &Value) -> Result<Option<BreakerConfig>, Problem> {
    or_none(value, |breaker| {
        let field = |name: &str| breaker.get(name).unwrap_or(&Value::Null);
        Ok(BreakerConfig {
            window: span(field("window"))?,
            min_messages: small(field("min_messages"))?,
            failure_share_permille: small(field("failure_share_permille"))?,
            open_for: span(field("open_for"))?,
            probe_timeout: span(field("probe_timeout"))?,
        })
    })
}

fn read_weights(value: &Value) -> Result<Weights, Problem> {
    let pairs = value
        .as_object()
        .ok_or("weights are not an object")?
        .iter()
        .map(|(key, weight)| Ok((said(FairnessKey::new(key))?, said(Weight::new(small(weight)?))?)));
    said(Weights::new(pairs.collect::<Result<Vec<_>, Problem>>()?))
}

/// A field, where it is set.
fn field<T>(
    map: &Map<String, Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    map.get(name).map(read).transpose().map_err(|problem| format!("{name}: {problem}"))
}

/// Reads a configuration.
pub fn read(value: &Value) -> Result<QueueConfig, Problem> {
    let map = value.as_object().ok_or("the configuration is not an object")?;
    Ok(QueueConfig {
        lease_timeout: field(map, "lease_timeout", span)?,
        max_lease: field(map, "max_lease", span)?,
        max_deliveries: field(map, "max_deliveries", read_cap)?,
        retry_share: field(map, "retry_share", |share| {
            said(Share::new(f64::from(small(share)?) / 1_000_000.0))
        })?,
        retry_lane: field(map, "retry_lane", |lane| match text(lane)? {
            "shared" => Ok(RetryLane::Shared),
            "separate" => Ok(RetryLane::Separate),
            other => Err(format!("{other} is no lane")),
        })?,
        max_retries_in_flight: field(map, "max_retries_in_flight", read_cap)?,
        overdue_backoff: field(map, "overdue_backoff", |on| {
            on.as_bool().ok_or_else(|| "not a boolean".to_owned())
        })?,
        breaker: field(map, "breaker", read_breaker)?,
        dead_letter_to: field(map, "dead_letter_to", |target| {
            or_none(target, |target| said(QueueName::new(text(target)?)))
        })?,
        retain_done: field(map, "retain_done", read_retention)?,
        retain_dead: field(map, "retain_dead", read_retention)?,
        dedup_window: field(map, "dedup_window", span)?,
        max_waiting: field(map, "max_waiting", |max| Ok(or_none(max, number)?.and_then(NonZeroU64::new)))?,
        weights: field(map, "weights", read_weights)?,
        retry: RetryOverride {
            max_attempts: field(map, "max_attempts", read_cap)?,
            base_delay: field(map, "base_delay", span)?,
            multiplier: field(map, "multiplier", |thousandths| {
                said(Multiplier::from_thousandths(small(thousandths)?))
            })?,
            max_delay: field(map, "max_delay", |max| or_none(max, span))?,
            jitter: field(map, "jitter", read_jitter)?,
        },
    })
}

fn write_pause(pause: Pause) -> Value {
    json!({ "until": pause.end().map(Timestamp::as_millis) })
}

fn read_pause(value: &Value) -> Result<Pause, Problem> {
    let end = or_none(value.get("until").unwrap_or(&Value::Null), number)?;
    Ok(end.map_or(Pause::UntilResumed, |end| Pause::Until(Timestamp::from_millis(end))))
}

/// Writes what is paused.
pub fn write_pauses(pauses: &Pauses) -> Value {
    let mut map = Map::new();
    put(&mut map, "queue", pauses.queue, write_pause);
    if !pauses.keys.is_empty() {
        let keys = pauses.keys.iter().map(|(key, pause)| (key.as_str().to_owned(), write_pause(*pause)));
        map.insert("keys".to_owned(), keys.collect());
    }
    Value::Object(map)
}

/// Reads what is paused.
pub fn read_pauses(value: &Value) -> Result<Pauses, Problem> {
    let queue = value.get("queue").map(read_pause).transpose()?;
    let keys = value.get("keys").and_then(Value::as_object).into_iter().flatten();
    let keys = keys.map(|(key, pause)| Ok((said(FairnessKey::new(key))?, read_pause(pause)?)));
    Ok(Pauses { queue, keys: keys.collect::<Result<_, Problem>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_whole_so_that_nothing_is_left_to_other_defaults() {
        let settings = QueueSettings { max_lease: Millis::from_secs(77), ..QueueSettings::default() };
        let written = read(&write_settings(&settings)).unwrap();
        let others =
            QueueSettings { overdue_backoff: true, max_lease: Millis::new(1), ..QueueSettings::default() };
        assert_eq!(written.over(&others), settings);
    }
}
