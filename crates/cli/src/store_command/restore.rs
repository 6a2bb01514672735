//! `redrive store restore`: a backup where a server can be started on it. What was there before is kept beside it.

use std::path::{Path, PathBuf};

use clap::Args;
use redrive_store_embedded::{contents, restore, verify};

use super::verify::{document, fields};
use super::{directory, failed};
use crate::confirm::Consent;
use crate::output::{Cell, Output, card};
use crate::remote::Failure;

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The backup: a directory that `store backup` made.
    from: PathBuf,
    /// Where to: what `--data` of the server will say. A store that is there is put aside.
    dir: PathBuf,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn run(arguments: &RestoreArguments, output: &Output) -> Result<(), Failure> {
    let (dir, options) = (&arguments.dir, directory::options());
    let source = directory::existing(&arguments.from)?;
    let found = verify(&source, &options).map_err(|error| failed(&error))?;
    let aside = replaced(dir)?;
    let what = match &aside {
        None => format!("restore {} messages into {}", found.messages, dir.display()),
        Some((aside, held)) => {
            let (messages, aside) = (found.messages, aside.display());
            format!("put {held} in {} aside as {aside}, and restore {messages} messages there", dir.display())
        }
    };
    // Into an empty directory there is nothing to lose.
    let asks = aside.is_some() || arguments.consent.dry_run;
    if asks && !arguments.consent.given(output, &what, found.messages).await? {
        return Ok(());
    }
    if let Some((aside, _)) = &aside {
        std::fs::rename(dir, aside)
            .map_err(|error| Failure::Io(format!("renaming {}", dir.display()), error))?;
    }
    let target = directory::opened(dir)?;
    let report = restore(&source, target.as_ref(), &options).map_err(|error| failed(&error))?;
    output.document(&document(&report), || {
        let mut fields = fields(&report);
        fields.insert(0, ("restored", Cell::text(dir.to_string_lossy())));
        card(&fields, output.coloured)
    })
}

/// Where the store goes that is there already, and what is in it; `None` where the place is free.
fn replaced(dir: &Path) -> Result<Option<(PathBuf, String)>, Failure> {
    let names: Vec<String> = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::Io(dir.display().to_string(), error)),
        Ok(entries) => {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        }
    };
    if names.is_empty() {
        return Ok(None);
    }
    let there = directory::taken(dir, "stop it first")?;
    let held = match contents(&there, &directory::options()) {
        Ok(held) => {
            let messages: u64 = held.queues.iter().map(|queue| queue.states.all()).sum();
            format!("{messages} messages of {} queues", held.queues.len())
        }
        // What is damaged is put aside like anything else.
        Err(_) => "a damaged store".to_owned(),
    };
    let free =
        (1..1_000).map(|n| with_suffix(dir, &format!(".before-restore-{n}"))).find(|path| !path.exists());
    let full =
        || Failure::Conflict(format!("{} was replaced a thousand times: remove some of them", dir.display()));
    Ok(Some((free.ok_or_else(full)?, held)))
}

fn with_suffix(dir: &Path, suffix: &str) -> PathBuf {
    // A slash at the end would put the name inside.
    let mut name = dir.components().as_path().as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
