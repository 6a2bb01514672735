//! A retry policy and a breaker as flags: of a queue, and of a subscription.

use clap::Args;
use redrive_wire::{Breaker, Maybe, Retry};

use super::settings::{set, set_or_none};
use crate::arguments::{OrNone, pair};
use crate::span::Span;

/// When what failed is tried again; each only where it is given.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct RetryArguments {
    /// How often a message may be attempted.
    #[arg(long, value_name = "N|none", help_heading = "Settings")]
    max_attempts: Option<OrNone<u32>>,
    /// The delay after the first failure.
    #[arg(long, value_name = "SPAN", help_heading = "Settings")]
    base_delay: Option<Span>,
    /// By how much the delay grows from one attempt to the next.
    #[arg(long, value_name = "FACTOR", help_heading = "Settings")]
    multiplier: Option<f64>,
    /// The longest delay.
    #[arg(long, value_name = "SPAN|none", help_heading = "Settings")]
    max_delay: Option<OrNone<Span>>,
    /// How much chance spreads the delays: none, full, or a share such as 0.1.
    #[arg(long, value_name = "none|full|SHARE", value_parser = jitter, help_heading = "Settings")]
    jitter: Option<String>,
}

impl RetryArguments {
    /// What is set, over what was.
    pub(crate) fn over(self, retry: Option<Retry>) -> Option<Retry> {
        let mut retry = retry.unwrap_or_default();
        set_or_none(&mut retry.max_attempts, self.max_attempts, |max| max);
        set(&mut retry.base_delay_ms, self.base_delay.map(Span::millis));
        set(&mut retry.multiplier, self.multiplier);
        set_or_none(&mut retry.max_delay_ms, self.max_delay, Span::millis);
        set(&mut retry.jitter, self.jitter);
        (retry != Retry::default()).then_some(retry)
    }
}

/// The settings of a policy by the names of their flags, their fields, and their values.
pub(crate) fn rows(retry: &Retry) -> [(&'static str, &'static str, Option<String>); 5] {
    let span = |ms: u64| Span::from_millis(ms).to_string();
    [
        ("max-attempts", "retry.max_attempts", or_none(retry.max_attempts, |max| max.to_string())),
        ("base-delay", "retry.base_delay_ms", retry.base_delay_ms.map(span)),
        ("multiplier", "retry.multiplier", retry.multiplier.map(|factor| factor.to_string())),
        ("max-delay", "retry.max_delay_ms", or_none(retry.max_delay_ms, span)),
        ("jitter", "retry.jitter", retry.jitter.clone()),
    ]
}

pub(super) fn or_none<T>(value: Maybe<T>, text: impl FnOnce(T) -> String) -> Option<String> {
    match value {
        Maybe::Unset => None,
        Maybe::Nothing => Some("none".to_owned()),
        Maybe::Some(value) => Some(text(value)),
    }
}

fn jitter(text: &str) -> Result<String, String> {
    let share = text.parse().is_ok_and(|share: f64| (0.0..=1.0).contains(&share));
    if share || matches!(text, "none" | "full") {
        Ok(text.to_owned())
    } else {
        Err("must be none, full, or a share between 0 and 1 such as 0.1".to_owned())
    }
}

/// Reads the flag of a breaker: `on`, `off`, or what is otherwise than most have it.
pub(crate) fn breaker(text: &str) -> Result<OrNone<Breaker>, String> {
    let mut breaker = Breaker::default();
    match text {
        "off" => return Ok(OrNone::None),
        "on" => return Ok(OrNone::Some(breaker)),
        _ => {}
    }
    for part in text.split(',') {
        let (name, value) = pair(part).map_err(|_| "must be on, off, or NAME=VALUE,…".to_owned())?;
        let span = || value.parse::<Span>().map(Span::millis).map_err(|wrong| format!("{name}: {wrong}"));
        let number = |wrong: &str| format!("{name}: `{value}` {wrong}");
        match &*name {
            "window" => breaker.window_ms = Some(span()?),
            "open-for" => breaker.open_for_ms = Some(span()?),
            "probe-timeout" => breaker.probe_timeout_ms = Some(span()?),
            "min-messages" => {
                breaker.min_messages = Some(value.parse().map_err(|_| number("is no whole number"))?);
            }
            "failure-share" => {
                breaker.failure_share = Some(value.parse().map_err(|_| number("is no number"))?);
            }
            _ => {
                let known = "window, min-messages, failure-share, open-for and probe-timeout";
                return Err(format!("there is no `{name}`: {known} are"));
            }
        }
    }
    Ok(OrNone::Some(breaker))
}

/// As the flag takes it.
pub(crate) fn breaker_text(breaker: &Maybe<Breaker>) -> String {
    let Maybe::Some(breaker) = breaker else { return "off".to_owned() };
    let span = |name: &str, ms: Option<u64>| ms.map(|ms| format!("{name}={}", Span::from_millis(ms)));
    let parts = [
        span("window", breaker.window_ms),
        breaker.min_messages.map(|min| format!("min-messages={min}")),
        breaker.failure_share.map(|share| format!("failure-share={share}")),
        span("open-for", breaker.open_for_ms),
        span("probe-timeout", breaker.probe_timeout_ms),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(",")
}
