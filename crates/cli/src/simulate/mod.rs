//! `redrive simulate`: what a retry policy does, before anybody has to live with it.
//!
//! `schedule` is the policy alone: when a message that always fails is tried again. `world` is a queue on a virtual clock,
//! with messages that come, workers that take them and attempts that fail; `tally` counts what is asked of it, `report`
//! and `chart` tell it. All decisions are those of `redrive_core`, which the broker runs. `policy` and `load` are the flags.

mod chart;
mod load;
mod policy;
mod report;
mod schedule;
mod tally;
#[cfg(test)]
mod tests;
mod world;

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::output::{Output, OutputArguments};
use crate::remote::Failure;
use load::LoadArguments;
use policy::PolicyArguments;
use report::Report;
use schedule::Schedule;
use tally::Tally;
use world::{ATTEMPTS_MAX, Setting, TooMuch};

/// What a retry policy does.
#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    #[command(flatten)]
    policy: PolicyArguments,
    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    output: OutputArguments,
}

impl SimulateArguments {
    pub(crate) fn run(&self) -> ExitCode {
        let output = self.output.output();
        output.ended(self.print(&output))
    }

    fn print(&self, output: &Output) -> Result<(), Failure> {
        let policy = self.policy.policy()?;
        let schedule = Schedule::of(&policy);
        let report = self.load.setting(policy)?.map(|setting| simulated(&setting)).transpose()?;
        output.document(&json!({"schedule": schedule, "simulation": report}), || {
            let queue = report.as_ref().map(|report| format!("\n{}", report.text()));
            report::table(&schedule) + &queue.unwrap_or_default()
        })
    }
}

fn simulated(setting: &Setting) -> Result<Report, Failure> {
    let mut tally = Tally::new(setting.length);
    let end = world::run(setting, &mut tally).map_err(|TooMuch| {
        Failure::Usage(format!("--for: these are more than {ATTEMPTS_MAX} attempts; simulate a shorter time"))
    })?;
    tally.finish();
    Ok(Report::of(setting, &tally, end))
}
