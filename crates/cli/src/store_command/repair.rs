//! `redrive store repair`: looks first, says what would be lost, asks, and only then cuts.

use std::path::PathBuf;

use clap::Args;
use redrive_store_embedded::RepairReport;
use serde_json::{Value, json};

use super::{directory, failed};
use crate::confirm::Consent;
use crate::output::Output;
use crate::remote::Failure;

#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    /// The directory: what `--data` of the server says.
    dir: PathBuf,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn run(arguments: &RepairArguments, output: &Output) -> Result<(), Failure> {
    let found = repair(arguments, true)?;
    if found.cut.is_none() {
        return output.document(&document(&found), || "nothing is damaged\n".to_owned());
    }
    if arguments.consent.dry_run {
        return output.document(&document(&found), || text(&found));
    }
    output.say(text(&found).trim_end());
    let what = format!("drop {} frames for good", found.frames_lost);
    if !arguments.consent.given(output, &what, found.frames_lost).await? {
        return Ok(());
    }
    let done = repair(arguments, false)?;
    output.document(&document(&done), || text(&done))
}

/// Each takes the directory for as long as it lasts.
fn repair(arguments: &RepairArguments, dry_run: bool) -> Result<RepairReport, Failure> {
    // Taken and let go: the repair takes it itself, and says less about who has it.
    drop(directory::taken(&arguments.dir, "stop it first")?);
    let disk = directory::existing(&arguments.dir)?;
    redrive_store_embedded::repair(&disk, &directory::options(), dry_run).map_err(|error| failed(&error))
}

fn document(report: &RepairReport) -> Value {
    json!({
        "damaged": report.cut.is_some(),
        "location": report.cut.as_ref().map(|(location, _)| location),
        "problem": report.cut.as_ref().map(|(_, problem)| problem),
        "frames_lost": report.frames_lost,
        "files_put_aside": report.files_lost,
        "done": report.done,
    })
}

fn text(report: &RepairReport) -> String {
    let (location, problem) = report.cut.clone().unwrap_or_default();
    let (lost, cut) = if report.done {
        ("were lost", "the journal was cut there")
    } else {
        ("would be lost, at least", "the journal would be cut there")
    };
    let put = if report.done { "was put aside as" } else { "would be put aside as" };
    let aside: Vec<String> =
        report.files_lost.iter().map(|name| format!("{name} {put} lost-{name}\n")).collect();
    format!(
        "{location}: {problem}; {cut}\n{} whole frames behind it {lost}, and what is in the damaged one\n{}",
        report.frames_lost,
        aside.concat()
    )
}
