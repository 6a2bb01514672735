//! `redrive enqueue --ndjson` and `redrive publish --ndjson`: many messages or events, a line of JSON each.
//!
//! Lines are read while batches are sent, so that a file of any length takes the memory of one batch. A server refuses a
//! batch as a whole where one item of it is wrong, and says which: that line is told, and the rest sent again, beginning
//! with small pieces that grow while they are taken. So a file of nothing but wrong lines costs one small call for each.

mod batch;
mod lines;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, BufReader};

pub(crate) use batch::item;
use batch::{Pending, Pile, pointed_at};
use lines::{LINE_BYTES_MAX, Line, Lines};

use crate::output::{Format, Tree};
use crate::progress::Progress;
use crate::remote::{Answer, Failure, Session};

/// What lines are, and where they go.
pub(crate) struct Destination<'a> {
    /// Where the server takes a batch of them.
    pub(crate) path: &'a [&'a str],
    /// The field that they stand in.
    pub(crate) field: &'static str,
    /// Reads one, and says what is wrong with it.
    pub(crate) read: fn(&[u8]) -> Result<Box<RawValue>, String>,
    /// What became of those that came in.
    pub(crate) done: &'static str,
}

/// What became of the lines.
#[derive(Debug, Default)]
struct Tally {
    done: u64,
    duplicates: u64,
    refused: u64,
}

impl Tally {
    fn lines(&self) -> u64 {
        self.done + self.duplicates + self.refused
    }
}

struct Import<'a> {
    session: &'a Session,
    to: &'a Destination<'a>,
    progress: Progress,
    tally: Tally,
}

/// What became of one line, as far as it matters here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LineResult {
    id: Option<String>,
    duplicate: Option<bool>,
    code: Option<String>,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Answer<LineResult>>,
}

pub(crate) async fn run(session: &Session, to: &Destination<'_>, path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        let progress = Progress::new(&session.output, "lines", None);
        let import = Import { session, to, progress, tally: Tally::default() };
        return import.all(BufReader::new(tokio::io::stdin()), "stdin").await;
    }
    let named = path.display().to_string();
    let failed = |error| Failure::Io(format!("reading {named}"), error);
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let length = file.metadata().await.map_err(failed)?.len();
    let progress = Progress::bytes(&session.output, length);
    let import = Import { session, to, progress, tally: Tally::default() };
    import.all(BufReader::new(file), &named).await
}

impl Import<'_> {
    async fn all(mut self, from: impl AsyncBufRead + Unpin, named: &str) -> Result<(), Failure> {
        let mut lines = Lines::new(from);
        let mut pile = Pile::default();
        let failed = |error| Failure::Io(format!("reading {named}"), error);
        while let Some(line) = lines.next().await.map_err(failed)? {
            let text = match line {
                Line::TooLong => {
                    self.refuse(lines.number, &format!("is longer than {LINE_BYTES_MAX} bytes"));
                    continue;
                }
                Line::Text(text) if text.trim_ascii().is_empty() => continue,
                Line::Text(text) => text,
            };
            match (self.to.read)(&text) {
                Ok(json) => {
                    if !pile.takes(json.get().len()) {
                        self.send(pile.take()).await?;
                        self.progress.reached(lines.bytes, self.tally.lines());
                    }
                    pile.push(Pending { line: lines.number, json });
                }
                Err(why) => self.refuse(lines.number, &why),
            }
        }
        self.send(pile.take()).await?;
        self.end()
    }

    /// Tells about a line that did not come in.
    fn refuse(&mut self, line: u64, why: &str) {
        self.tally.refused += 1;
        self.progress.suspended(|| self.session.output.complain(&format!("line {line}: {why}")));
    }

    /// Sends a batch, in pieces where something in it is wrong.
    async fn send(&mut self, batch: Vec<Pending>) -> Result<(), Failure> {
        let (mut left, mut piece) = (&batch[..], batch.len());
        while let Some(first) = left.first() {
            let now = &left[..piece.min(left.len())];
            match self.post(now).await {
                Ok(results) => {
                    now.iter()
                        .zip(&results)
                        .try_for_each(|(pending, result)| self.take(pending.line, result))?;
                    left = &left[now.len()..];
                    piece = piece.saturating_mul(2);
                }
                Err(failure) => match wrong(&failure, self.to.field, now.len()) {
                    // Those before it were looked at first, and are right.
                    Some((at, _)) if at > 0 => piece = at,
                    Some((_, why)) => {
                        self.refuse(first.line, &why);
                        left = &left[1..];
                        piece = 1;
                    }
                    None => return Err(self.stopped(first.line, failure)),
                },
            }
        }
        Ok(())
    }

    async fn post(&self, batch: &[Pending]) -> Result<Vec<Answer<LineResult>>, Failure> {
        // The lines as they were written, and not what a `Value` would make of their numbers.
        let lines: Vec<&RawValue> = batch.iter().map(|pending| &*pending.json).collect();
        let request = BTreeMap::from([(self.to.field, lines)]);
        let answer: Answer<Results> = self.session.remote.post(self.to.path, &request).await?;
        Ok(answer.value.results)
    }

    fn take(&mut self, line: u64, result: &Answer<LineResult>) -> Result<(), Failure> {
        let LineResult { id, duplicate, code, detail } = &result.value;
        match id {
            Some(_) if *duplicate == Some(true) => self.tally.duplicates += 1,
            Some(_) => self.tally.done += 1,
            None => {
                let code = code.as_deref().unwrap_or("REFUSED");
                self.refuse(line, &format!("{} ({code})", detail.as_deref().unwrap_or("refused")));
            }
        }
        let output = &self.session.output;
        match (output.format, id) {
            (Format::Id, Some(id)) => self.progress.suspended(|| output.line(id)),
            (Format::Ndjson, _) => {
                let fields = Tree::of(&result.json).compact();
                let fields = fields.trim_start_matches('{');
                self.progress.suspended(|| output.line(&format!("{{\"line\":{line},{fields}")))
            }
            _ => Ok(()),
        }
    }

    /// The whole batch was not taken: what came in before is said, so that one can go on from there.
    fn stopped(&self, line: u64, failure: Failure) -> Failure {
        let (Tally { done, duplicates, .. }, what) = (&self.tally, self.to.done);
        let said = format!("stopped at line {line}; {done} {what} and {duplicates} duplicates before it");
        self.progress.suspended(|| self.session.output.complain(&said));
        failure
    }

    fn end(self) -> Result<(), Failure> {
        let (Tally { done, duplicates, refused }, what) = (&self.tally, self.to.done);
        let total = self.tally.lines();
        drop(self.progress);
        let output = &self.session.output;
        match output.format {
            Format::Table => {
                output.line(&format!("{done} {what}, {duplicates} duplicates, {refused} refused"))?;
            }
            Format::Json => {
                output.line(&format!(
                    "{{\n  \"{what}\": {done},\n  \"duplicates\": {duplicates},\n  \"refused\": {refused}\n}}"
                ))?;
            }
            Format::Yaml => {
                output.line(&format!("{what}: {done}\nduplicates: {duplicates}\nrefused: {refused}"))?;
            }
            Format::Ndjson | Format::Id => {}
        }
        if *refused > 0 {
            return Err(Failure::Partial { failed: *refused, total, what: "lines" });
        }
        Ok(())
    }
}

/// Which item of a batch the server points at, and why; nothing where the batch is not what is wrong.
fn wrong(failure: &Failure, list: &str, sent: usize) -> Option<(usize, String)> {
    let Failure::Refused(refused) = failure else { return None };
    let error = refused.problem.errors.first()?;
    let at = pointed_at(list, &error.pointer).filter(|at| *at < sent)?;
    let field = error.pointer.split('/').skip(3).collect::<Vec<_>>().join("/");
    let why = if field.is_empty() { error.detail.clone() } else { format!("{field}: {}", error.detail) };
    Some((at, why))
}
