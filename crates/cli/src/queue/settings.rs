//! The settings of a queue: as flags, and as a table.

use clap::{Args, ValueEnum};
use redrive_wire::{Breaker, Maybe, QueueConfig, QueueView, Retention, Retry};

use super::retry::{self, RetryArguments, breaker, breaker_text, or_none};
use crate::arguments::{OrNone, queue_name};
use crate::output::{Cell, Column};
use crate::span::Span;

/// Settings, each only where it is given.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct SettingArguments {
    /// How long a lease lasts.
    #[arg(long, value_name = "SPAN", help_heading = "Settings")]
    lease_timeout: Option<Span>,
    /// How long a lease may last, all extensions together.
    #[arg(long, value_name = "SPAN", help_heading = "Settings")]
    max_lease: Option<Span>,
    /// How often a message may be handed out, whoever is charged.
    #[arg(long, value_name = "N|none", help_heading = "Settings")]
    max_deliveries: Option<OrNone<u32>>,
    #[command(flatten)]
    retry: RetryArguments,
    /// What retries get of what is handed out while there is fresh work, 0 to 1.
    #[arg(long, value_name = "SHARE", help_heading = "Settings")]
    retry_share: Option<f64>,
    /// Whether retries go to every consumer, or only to those that ask for them.
    #[arg(long, value_name = "LANE", help_heading = "Settings")]
    retry_lane: Option<RetryLane>,
    /// How many leased messages may be retries.
    #[arg(long, value_name = "N|none", help_heading = "Settings")]
    max_retries_in_flight: Option<OrNone<u32>>,
    /// Whether an overdue lease waits for the backoff, instead of being ready at once.
    #[arg(long, value_name = "BOOL", help_heading = "Settings")]
    overdue_backoff: Option<bool>,
    /// Whether a breaker stops the queue during an outage: on, off, or some of
    /// window=1m,min-messages=4,failure-share=0.5,open-for=30s,probe-timeout=30s.
    #[arg(long, value_name = "on|off|WHEN", value_parser = breaker, help_heading = "Settings")]
    breaker: Option<OrNone<Breaker>>,
    /// Where dead messages are moved.
    #[arg(long, value_name = "QUEUE|none", value_parser = target, help_heading = "Settings")]
    dead_letter_to: Option<OrNone<String>>,
    /// How long a dedup key keeps a second message out.
    #[arg(long, value_name = "SPAN", help_heading = "Settings")]
    dedup_window: Option<Span>,
    /// How many messages may wait before enqueues are refused.
    #[arg(long, value_name = "N|none", help_heading = "Settings")]
    max_waiting: Option<OrNone<u64>>,
    /// How long acked messages are kept: 7d, count=1000, or both as 7d,count=1000.
    #[arg(long, value_name = "SPAN,count=N|none", value_parser = retention, help_heading = "Settings")]
    retain_done: Option<OrNone<Retention>>,
    /// How long dead messages are kept, in the same way.
    #[arg(long, value_name = "SPAN,count=N|none", value_parser = retention, help_heading = "Settings")]
    retain_dead: Option<OrNone<Retention>>,
    /// How many messages a fairness key is served in its turn; give it again for another key.
    #[arg(long = "weight", value_name = "KEY=N", value_parser = weight, help_heading = "Settings")]
    weights: Vec<(String, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RetryLane {
    Shared,
    Separate,
}

/// A setting that can go back to the server's default, by the name of its flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Field {
    LeaseTimeout,
    MaxLease,
    MaxAttempts,
    MaxDeliveries,
    BaseDelay,
    Multiplier,
    MaxDelay,
    Jitter,
    RetryShare,
    RetryLane,
    MaxRetriesInFlight,
    OverdueBackoff,
    Breaker,
    DeadLetterTo,
    DedupWindow,
    MaxWaiting,
    RetainDone,
    RetainDead,
    Weights,
}

fn target(text: &str) -> Result<OrNone<String>, String> {
    if text == "none" { Ok(OrNone::None) } else { queue_name(text).map(OrNone::Some) }
}

fn weight(text: &str) -> Result<(String, u32), String> {
    let (key, weight) = text.rsplit_once('=').ok_or("must be KEY=N")?;
    let weight = weight.parse().ok().filter(|weight| (1..=1_000).contains(weight));
    Ok((key.to_owned(), weight.ok_or("must be KEY=N, with N from 1 to 1000")?))
}

fn retention(text: &str) -> Result<OrNone<Retention>, String> {
    if text == "none" {
        return Ok(OrNone::None);
    }
    let mut retention = Retention::default();
    for part in text.split(',') {
        if let Some(count) = part.strip_prefix("count=") {
            let count = count.parse().map_err(|_| format!("`{count}` is no number of messages"))?;
            retention.count = Some(count);
        } else {
            let age: Span =
                part.parse().map_err(|wrong| format!("`{part}` {wrong}; a number of messages is count=N"))?;
            retention.age_ms = Some(age.millis());
        }
    }
    Ok(OrNone::Some(retention))
}

pub(crate) fn set<T>(field: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *field = value;
    }
}

pub(crate) fn set_or_none<T, U>(field: &mut Maybe<U>, value: Option<OrNone<T>>, of: impl FnOnce(T) -> U) {
    match value {
        None => {}
        Some(OrNone::None) => *field = Maybe::Nothing,
        Some(OrNone::Some(value)) => *field = Maybe::Some(of(value)),
    }
}

impl SettingArguments {
    /// What is set, over what was.
    pub(super) fn over(self, mut config: QueueConfig) -> QueueConfig {
        let ms = |span: Option<Span>| span.map(Span::millis);
        let lane = self.retry_lane.map(|lane| if lane == RetryLane::Shared { "shared" } else { "separate" });
        set(&mut config.lease_timeout_ms, ms(self.lease_timeout));
        set(&mut config.max_lease_ms, ms(self.max_lease));
        set_or_none(&mut config.max_deliveries, self.max_deliveries, |max| max);
        set(&mut config.retry_share, self.retry_share);
        set(&mut config.retry_lane, lane.map(str::to_owned));
        set_or_none(&mut config.max_retries_in_flight, self.max_retries_in_flight, |max| max);
        set(&mut config.overdue_backoff, self.overdue_backoff);
        set_or_none(&mut config.breaker, self.breaker, |breaker| breaker);
        set_or_none(&mut config.dead_letter_to, self.dead_letter_to, |queue| queue);
        set_or_none(&mut config.retain_done, self.retain_done, |kept| kept);
        set_or_none(&mut config.retain_dead, self.retain_dead, |kept| kept);
        set(&mut config.dedup_window_ms, ms(self.dedup_window));
        set_or_none(&mut config.max_waiting, self.max_waiting, |max| max);
        if !self.weights.is_empty() {
            config.weights.get_or_insert_default().extend(self.weights);
        }
        config.retry = self.retry.over(config.retry.take());
        config
    }
}

impl Field {
    /// Lets the server's default decide again.
    pub(super) fn unset(self, config: &mut QueueConfig) {
        let mut retry = config.retry.take().unwrap_or_default();
        match self {
            Self::LeaseTimeout => config.lease_timeout_ms = None,
            Self::MaxLease => config.max_lease_ms = None,
            Self::MaxAttempts => retry.max_attempts = Maybe::Unset,
            Self::MaxDeliveries => config.max_deliveries = Maybe::Unset,
            Self::BaseDelay => retry.base_delay_ms = None,
            Self::Multiplier => retry.multiplier = None,
            Self::MaxDelay => retry.max_delay_ms = Maybe::Unset,
            Self::Jitter => retry.jitter = None,
            Self::RetryShare => config.retry_share = None,
            Self::RetryLane => config.retry_lane = None,
            Self::MaxRetriesInFlight => config.max_retries_in_flight = Maybe::Unset,
            Self::OverdueBackoff => config.overdue_backoff = None,
            Self::Breaker => config.breaker = Maybe::Unset,
            Self::DeadLetterTo => config.dead_letter_to = Maybe::Unset,
            Self::DedupWindow => config.dedup_window_ms = None,
            Self::MaxWaiting => config.max_waiting = Maybe::Unset,
            Self::RetainDone => config.retain_done = Maybe::Unset,
            Self::RetainDead => config.retain_dead = Maybe::Unset,
            Self::Weights => config.weights = None,
        }
        config.retry = (retry != Retry::default()).then_some(retry);
    }
}

/// The heads of the table of settings.
pub(crate) const COLUMNS: [Column; 3] =
    [Column::Text("SETTING"), Column::Text("VALUE"), Column::Text("FROM")];

/// Every setting by the name of its flag, its value, and who set it.
pub(super) fn rows(view: &QueueView) -> Vec<Vec<Cell>> {
    let settings = &view.settings;
    let [max_attempts, base_delay, multiplier, max_delay, jitter] =
        retry::rows(&settings.retry.clone().unwrap_or_default());
    let count = |value: Maybe<u32>| or_none(value, |value| value.to_string());
    let span = |ms: u64| Span::from_millis(ms).to_string();
    let weights = settings.weights.iter().flatten().map(|(key, weight)| format!("{key}={weight}"));
    let weights = weights.collect::<Vec<_>>().join(", ");
    let values = [
        ("lease-timeout", "lease_timeout_ms", settings.lease_timeout_ms.map(span)),
        ("max-lease", "max_lease_ms", settings.max_lease_ms.map(span)),
        max_attempts,
        ("max-deliveries", "max_deliveries", count(settings.max_deliveries)),
        base_delay,
        multiplier,
        max_delay,
        jitter,
        ("retry-share", "retry_share", settings.retry_share.map(|share| share.to_string())),
        ("retry-lane", "retry_lane", settings.retry_lane.clone()),
        ("max-retries-in-flight", "max_retries_in_flight", count(settings.max_retries_in_flight)),
        ("overdue-backoff", "overdue_backoff", settings.overdue_backoff.map(|on| on.to_string())),
        ("breaker", "breaker", Some(breaker_text(&settings.breaker))),
        ("dead-letter-to", "dead_letter_to", or_none(settings.dead_letter_to.clone(), |name| name)),
        ("dedup-window", "dedup_window_ms", settings.dedup_window_ms.map(span)),
        ("max-waiting", "max_waiting", or_none(settings.max_waiting, |max| max.to_string())),
        ("retain-done", "retain_done", or_none(settings.retain_done, retention_text)),
        ("retain-dead", "retain_dead", or_none(settings.retain_dead, retention_text)),
        ("weights", "weights", Some(weights).filter(|weights| !weights.is_empty())),
    ];
    let row = |(name, field, value): (&str, &str, Option<String>)| {
        let from = if view.set.iter().any(|set| set == field) { "queue" } else { "default" };
        vec![Cell::text(name), Cell::maybe(value, Cell::clipped), Cell::text(from)]
    };
    values.into_iter().map(row).collect()
}

/// As the flag takes it.
fn retention_text(kept: Retention) -> String {
    let age = kept.age_ms.map(|ms| Span::from_millis(ms).to_string());
    let count = kept.count.map(|count| format!("count={count}"));
    age.into_iter().chain(count).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingArguments,
    }

    fn read(flags: &[&str]) -> Result<QueueConfig, String> {
        let line = Line::try_parse_from([&["line"], flags].concat()).map_err(|error| error.to_string())?;
        Ok(line.settings.over(QueueConfig::default()))
    }

    #[test]
    fn what_is_not_given_is_not_set() {
        assert_eq!(read(&[]).unwrap(), QueueConfig::default());
        let config = read(&["--lease-timeout", "1m", "--max-attempts", "none", "--weight", "a=b=3"]).unwrap();
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(json, r#"{"lease_timeout_ms":60000,"retry":{"max_attempts":null},"weights":{"a=b":3}}"#);
    }

    #[test]
    fn what_is_printed_of_a_setting_is_taken_by_its_flag() {
        let text = "window=1m,min-messages=4,failure-share=0.5,open-for=30s,probe-timeout=1.5s";
        let OrNone::Some(read) = breaker(text).unwrap() else { panic!("it is on") };
        assert_eq!(breaker_text(&Maybe::Some(read)), text);
        let OrNone::Some(kept) = retention("7d,count=1000").unwrap() else { panic!("it is kept") };
        assert_eq!(retention_text(kept), "7d,count=1000");
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (flags, said) in [
            (["--lease-timeout", "30"], "has no unit: write 30s"),
            (["--max-attempts", "many"], "or none for no limit"),
            (["--jitter", "1.5"], "between 0 and 1"),
            (["--jitter", "some"], "must be none, full"),
            (["--retain-dead", "30"], "a number of messages is count=N"),
            (["--retain-dead", "count=x"], "no number of messages"),
            (["--breaker", "maybe"], "must be on, off"),
            (["--breaker", "windows=1m"], "there is no `windows`"),
            (["--breaker", "window=1"], "window: has no unit"),
            (["--breaker", "min-messages=x"], "is no whole number"),
            (["--dead-letter-to", "a b"], "dead-letter-to"),
            (["--weight", "a"], "must be KEY=N"),
            (["--weight", "a=0"], "from 1 to 1000"),
            (["--retry-lane", "seperate"], "a similar value exists: 'separate'"),
        ] {
            let error = read(&flags).unwrap_err();
            assert!(error.contains(said), "{flags:?}: {error}");
        }
    }

    #[test]
    fn every_field_can_be_unset() {
        let flags = "--lease-timeout 1s --max-lease 1s --max-attempts 1 --max-deliveries 1 --base-delay 1s --multiplier 2 \
                     --max-delay 1s --jitter full --retry-share 0.5 --retry-lane separate --max-retries-in-flight 1 \
                     --overdue-backoff true --breaker on --dead-letter-to q --dedup-window 1s --max-waiting 1 \
                     --retain-done 1s --retain-dead none --weight a=1";
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let mut config = read(&flags).unwrap();
        let count = |config: &QueueConfig| {
            let value = serde_json::to_value(config).unwrap();
            let retry = value["retry"].as_object().map_or(0, |retry| retry.len() - 1);
            value.as_object().unwrap().len() + retry
        };
        for (done, field) in Field::value_variants().iter().enumerate() {
            assert_eq!(count(&config), Field::value_variants().len() - done, "{field:?}");
            field.unset(&mut config);
        }
        assert_eq!(config, QueueConfig::default());
    }
}
