//! What a command prints: data on stdout, talk on stderr, in the format that was asked for.
//!
//! A kind of thing says once what its columns are ([`Row`]) and what is to know about one of it ([`Card`]); which format
//! that becomes is decided here. Nothing depends on how wide the terminal is.

mod list;
mod table;
mod text;
mod tree;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) use list::List;
pub(crate) use table::{Cell, Column, card, table};
pub(crate) use text::{clipped, counted, printable};
pub(crate) use tree::Tree;

use crate::remote::{Answer, Failure};

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// What the server answered; of a list, an array.
    Json,
    /// The same, on one line for each item.
    Ndjson,
    /// The same, as YAML.
    Yaml,
    /// Names or ids only, one on each line.
    Id,
}

/// Whether there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set; or where `CLICOLOR_FORCE` is.
    Auto,
    Always,
    Never,
}

/// How it is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArguments {
    /// How data is printed.
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        global = true,
        help_heading = "Output"
    )]
    pub(crate) output: Format,
    /// Prints JSON, as `--output json` does; errors, too.
    #[arg(long, global = true, conflicts_with = "output", help_heading = "Output")]
    pub(crate) json: bool,
    /// Says nothing on stderr but errors.
    #[arg(short, long, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Whether there are colours.
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true, help_heading = "Output")]
    pub(crate) color: Colour,
}

impl Default for OutputArguments {
    /// As where nothing is said.
    fn default() -> Self {
        Self { output: Format::Table, json: false, quiet: false, color: Colour::Auto }
    }
}

impl OutputArguments {
    pub(crate) fn output(&self) -> Output {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let coloured = |terminal: bool| match self.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => !set("NO_COLOR") && (terminal || set("CLICOLOR_FORCE")),
        };
        Output {
            format: if self.json { Format::Json } else { self.output },
            coloured: coloured(std::io::stdout().is_terminal()),
            quiet: self.quiet,
            talks_to_person: std::io::stderr().is_terminal(),
        }
    }
}

/// A kind of thing that is listed.
pub(crate) trait Row {
    /// The heads of its columns.
    const COLUMNS: &'static [Column];

    /// What stands in them.
    fn cells(&self) -> Vec<Cell>;

    /// Its name or id.
    fn id(&self) -> String;
}

/// A kind of thing that is shown by itself.
pub(crate) trait Card {
    /// What is to know about it, by name.
    fn fields(&self) -> Vec<(&'static str, Cell)>;

    /// Its name or id.
    fn id(&self) -> String;
}

/// Where a command prints.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) coloured: bool,
    pub(crate) quiet: bool,
    /// Whether stderr is a terminal.
    pub(crate) talks_to_person: bool,
}

impl Output {
    /// Prints text as it stands.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    /// Prints data. Whoever reads it may have gone, which is no mistake.
    #[expect(clippy::unused_self, reason = "where things are printed is the output's to say")]
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        let printed = out.write_all(bytes).and_then(|()| out.flush());
        printed.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Io("stdout".to_owned(), error),
        })
    }

    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.print(&format!("{text}\n"))
    }

    /// Says something to whoever looks on.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            eprintln(&format!("redrive: {text}"));
        }
    }

    /// Says what is wrong with a part of what was asked for, while the rest goes on.
    #[expect(clippy::unused_self, reason = "where things are said is the output's to say")]
    pub(crate) fn complain(&self, text: &str) {
        eprintln(&format!("redrive: {}", printable(text)));
    }

    /// Says what went wrong, and how the program ends.
    pub(crate) fn failed(&self, failure: &Failure) -> ExitCode {
        match failure {
            // Nobody is there to be told.
            Failure::ClosedPipe => return ExitCode::SUCCESS,
            _ if matches!(self.format, Format::Json | Format::Ndjson) => eprintln(&failure.json()),
            _ => {
                eprintln(&format!("redrive: {}", printable(&failure.to_string())));
                if let Some(hint) = failure.hint() {
                    eprintln(&format!("redrive: {hint}"));
                }
            }
        }
        failure.exit().into()
    }

    /// Prints one thing.
    pub(crate) fn one<T: Card>(&self, answer: &Answer<T>) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.print(&card(&answer.value.fields(), self.coloured)),
            Format::Id => self.line(&answer.value.id()),
            _ => self.raw(&answer.json),
        }
    }

    /// Prints the server's JSON in one of the formats for programs.
    pub(crate) fn raw(&self, json: &RawValue) -> Result<(), Failure> {
        match self.format {
            Format::Ndjson => self.line(&Tree::of(json).compact()),
            Format::Yaml => self.print(&Tree::of(json).yaml()),
            Format::Table | Format::Json | Format::Id => self.line(&Tree::of(json).pretty()),
        }
    }

    /// Prints what this program itself found: for people as `text`, for programs as JSON.
    pub(crate) fn document(
        &self,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.format == Format::Table {
            return self.print(&text());
        }
        let wrong = |error: serde_json::Error| Failure::Failed(format!("printing: {error}"));
        self.raw(&serde_json::value::to_raw_value(document).map_err(wrong)?)
    }

    /// Tells how a command ended that asked nobody.
    pub(crate) fn ended(&self, done: Result<(), Failure>) -> ExitCode {
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => self.failed(&failure),
        }
    }

    /// Prints that something was done: a sentence for people, the server's answer for programs, where there is one.
    pub(crate) fn told(&self, json: Option<&RawValue>, sentence: &str, id: &str) -> Result<(), Failure> {
        match (self.format, json) {
            (Format::Table, _) => self.line(&printable(sentence)),
            (Format::Id, _) if id.is_empty() => Ok(()),
            (Format::Id, _) => self.line(id),
            (_, Some(json)) => self.raw(json),
            (_, None) => Ok(()),
        }
    }

    /// Begins a list.
    pub(crate) fn list<T: Row>(&self) -> List<'_, T> {
        List::new(self)
    }
}

/// Writes a line to stderr; where that is not possible, nobody can be told.
fn eprintln(text: &str) {
    let _written = writeln!(std::io::stderr().lock(), "{text}");
}
