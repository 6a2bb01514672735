//! `redrive config check`: whether a server could be started so.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::config::{FILE, Layer, Sources};
use crate::output::Output;
use crate::remote::Failure;

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The file; `redrive.toml` where there is one and nothing is said.
    file: Option<PathBuf>,
}

pub(super) fn run(arguments: &CheckArguments, output: &Output) -> Result<(), Failure> {
    let read = Sources::read(Layer::default(), arguments.file.as_deref());
    let checked = read.and_then(|sources| sources.startable().map(|_| sources));
    // What is wrong in a file is a line each.
    let problems: Vec<String> = match &checked {
        Ok(_) => Vec::new(),
        Err(error) => format!("{error:#}").lines().map(str::to_owned).collect(),
    };
    let document = json!({"ok": problems.is_empty(), "problems": problems});
    output.document(&document, || match &checked {
        Err(_) => problems.join("\n") + "\n",
        Ok(sources) => match sources.file() {
            Some(file) => format!("{}: ok\n", file.display()),
            None => format!("ok: there is no {FILE} here, and what the environment says is right\n"),
        },
    })?;
    if problems.is_empty() { Ok(()) } else { Err(Failure::Failed("no server starts so".to_owned())) }
}
