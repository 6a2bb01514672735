//! The flags of a load, and their limits.

use clap::Args;
use redrive_core::lifecycle::Terms;
use redrive_core::policy::{RetryPolicy, Share};
use redrive_core::queue::QueueSettings;
use redrive_core::time::{Millis, Timestamp};

use super::policy::refused;
use super::world::Setting;
use crate::remote::Failure;
use crate::span::Span;

/// Most messages that come in one simulation.
const MESSAGES_MAX: f64 = 2_000_000.0;
/// Most workers.
const WORKERS_MAX: u32 = 100_000;
/// Longest simulated time, and longest run time of an attempt.
const LENGTH_MAX: Span = Span::from_millis(30 * 86_400_000);

/// The load, for more than the schedule.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadArguments {
    /// Messages that come in, a second on average. With it, a queue is simulated.
    #[arg(long, value_name = "RATE", requires = "workers")]
    arrival_rate: Option<f64>,
    /// Workers, each with one message at a time.
    #[arg(long, value_name = "N", requires = "arrival_rate")]
    workers: Option<u32>,
    /// How many attempts fail, from 0 to 1.
    #[arg(long, value_name = "SHARE", requires = "arrival_rate", default_value = "0")]
    failure_rate: f64,
    /// How long an attempt takes.
    #[arg(long, value_name = "SPAN", requires = "arrival_rate", default_value = "100ms")]
    run_time: Span,
    /// What retries get of what is handed out while there is fresh work, from 0 to 1.
    #[arg(long, value_name = "SHARE", requires = "arrival_rate", default_value = "0.2")]
    retry_share: f64,
    /// For how long every attempt fails.
    #[arg(long, value_name = "SPAN", requires = "arrival_rate")]
    outage: Option<Span>,
    /// When that begins; after a quarter of the time where nothing is said.
    #[arg(long, value_name = "SPAN", requires = "outage")]
    outage_at: Option<Span>,
    /// How much time is simulated.
    #[arg(long = "for", value_name = "SPAN", requires = "arrival_rate", default_value = "10m")]
    length: Span,
    /// The same number, the same messages and failures.
    #[arg(long, value_name = "N", requires = "arrival_rate", default_value = "1")]
    seed: u64,
}

impl LoadArguments {
    /// What is to be simulated, if anything; every number within its limits.
    pub(super) fn setting(&self, policy: RetryPolicy) -> Result<Option<Setting>, Failure> {
        let (Some(arrival_rate), Some(workers)) = (self.arrival_rate, self.workers) else { return Ok(None) };
        self.check(arrival_rate, workers)?;
        let settings = QueueSettings { retry: policy, ..QueueSettings::default() };
        Ok(Some(Setting {
            terms: Terms::new(&settings, None),
            retry_share: Share::new(self.retry_share).map_err(refused)?,
            arrival_rate,
            workers,
            run_time: Millis::new(self.run_time.millis()),
            failure_rate: self.failure_rate,
            outage: self.outage.map(|outage| {
                let from = self.outage_at.map_or(self.length.millis() / 4, Span::millis);
                let from = Timestamp::from_millis(from);
                (from, from.plus(Millis::new(outage.millis())))
            }),
            length: Millis::new(self.length.millis()),
            seed: self.seed,
        }))
    }

    fn check(&self, arrival_rate: f64, workers: u32) -> Result<(), Failure> {
        let wrong = |flag: &str, must: String| Err(Failure::Usage(format!("{flag}: {must}")));
        if !(0.0..=1.0).contains(&self.failure_rate) {
            return wrong("--failure-rate", "must lie between 0 and 1".to_owned());
        }
        if !(1..=WORKERS_MAX).contains(&workers) {
            return wrong("--workers", format!("must lie between 1 and {WORKERS_MAX}"));
        }
        for (flag, span) in [("--run-time", self.run_time), ("--for", self.length)] {
            if !(Span::from_millis(1)..=LENGTH_MAX).contains(&span) {
                return wrong(flag, format!("must lie between 1ms and {LENGTH_MAX}"));
            }
        }
        let limit = MESSAGES_MAX / self.length.duration().as_secs_f64();
        if !(arrival_rate > 0.0 && arrival_rate <= limit) {
            let why = format!("{MESSAGES_MAX} messages are simulated at most");
            let must = format!("must be above 0 and, for {}, at most {limit:.1}: {why}", self.length);
            return wrong("--arrival-rate", must);
        }
        Ok(())
    }
}
