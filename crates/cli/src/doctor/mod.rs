//! `redrive doctor`: whether this machine, this configuration and the server that is asked are fit for work.
//!
//! Each file checks one thing and answers findings; nothing that is checked is changed.

mod configuration;
mod database;
mod directory;
mod finding;
mod machine;
mod port;
mod redis;
mod server;

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::config::Config;
use crate::output::Output;
use crate::remote::{Asking, ConnectionArguments, Failure, ask};
use crate::serve::ServeArguments;
use crate::store::StoreChoice;
use finding::{Finding, Level, text};

/// Checks the machine, the configuration and the server. It takes the flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    serve: ServeArguments,
}

impl DoctorArguments {
    pub(crate) fn run(self) -> ExitCode {
        let output = self.asking.output.output();
        let (connection, serve) = (self.asking.connection, self.serve);
        ask(&output, async || {
            let findings = examine(&connection, serve).await;
            told(&output, &findings)
        })
    }
}

async fn examine(connection: &ConnectionArguments, serve: ServeArguments) -> Vec<Finding> {
    let clocks = machine::Clocks::read();
    let (config, mut findings) = configuration::check(serve);
    findings.push(machine::files(&config));
    match &config.store {
        StoreChoice::Embedded(_) => findings.extend(directory::check(&config.data)),
        StoreChoice::Postgres(options) => findings.extend(database::check(options).await),
        StoreChoice::Redis(options) => findings.extend(redis::check(options).await),
        StoreChoice::Memory => {
            findings.push(Finding::warn("store", "memory: nothing survives the end of the server"));
        }
    }
    findings.push(port::check(&config).await);
    findings.extend(server::check(connection).await);
    // Last, so that there was time for a clock to move.
    findings.push(clocks.compared());
    findings
}

fn told(output: &Output, findings: &[Finding]) -> Result<(), Failure> {
    let failed = findings.iter().filter(|finding| finding.level == Level::Fail).count();
    output.document(&json!({"ok": failed == 0, "checks": findings}), || text(findings))?;
    if failed == 0 {
        return Ok(());
    }
    Err(Failure::Failed(format!("{failed} of {} checks failed", findings.len())))
}

/// What a finding needs of the configuration where that is wrong: the server would not be started at all.
fn fallback() -> Config {
    Config::of(crate::config::Layer::default()).expect("the defaults are right")
}
