//! The flags of a policy.

use std::num::NonZeroU32;

use clap::Args;
use redrive_core::invalid::Invalid;
use redrive_core::policy::{Jitter, Multiplier, RetryPolicy};
use redrive_core::time::Millis;

use crate::arguments::OrNone;
use crate::remote::Failure;
use crate::span::Span;

/// The policy; what is not said is as in a queue that says nothing.
#[derive(Debug, Args)]
#[command(next_help_heading = "Policy")]
pub(super) struct PolicyArguments {
    /// How long a message waits after its first attempt failed.
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    base_delay: Span,
    /// By how much the delay grows with each failed attempt, from 1 to 1000.
    #[arg(long, value_name = "FACTOR", default_value = "2")]
    multiplier: f64,
    /// The longest delay, or `none`.
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    max_delay: OrNone<Span>,
    /// How chance spreads the delays: `none`, `full`, or a share such as 0.1 for ± 10 %.
    #[arg(long, value_name = "JITTER", value_parser = jitter, default_value = "0.1")]
    jitter: Jitter,
    /// Most attempts, the first included, or `none`.
    #[arg(long, value_name = "N", default_value = "3")]
    max_attempts: OrNone<NonZeroU32>,
}

fn jitter(text: &str) -> Result<Jitter, String> {
    match text {
        "none" => Ok(Jitter::None),
        "full" => Ok(Jitter::Full),
        share => {
            let share = share.parse().map_err(|_| "must be none, full, or a share such as 0.1".to_owned())?;
            Jitter::proportional(share).map_err(|invalid| invalid.problem.to_string())
        }
    }
}

impl PolicyArguments {
    pub(super) fn policy(&self) -> Result<RetryPolicy, Failure> {
        let policy = RetryPolicy {
            max_attempts: limit(self.max_attempts),
            base_delay: Millis::new(self.base_delay.millis()),
            multiplier: Multiplier::new(self.multiplier).map_err(refused)?,
            max_delay: limit(self.max_delay).map(|span| Millis::new(span.millis())),
            jitter: self.jitter,
        };
        policy.check().map_err(refused)?;
        Ok(policy)
    }
}

fn limit<T>(value: OrNone<T>) -> Option<T> {
    match value {
        OrNone::None => None,
        OrNone::Some(value) => Some(value),
    }
}

/// A value that the core refuses, by the name of its flag.
#[expect(clippy::needless_pass_by_value, reason = "an error is handed over where it ends")]
pub(super) fn refused(invalid: Invalid) -> Failure {
    let name = invalid.field.rsplit('.').next().unwrap_or_default().replace('_', "-");
    Failure::Usage(format!("--{name}: {}", invalid.problem))
}
