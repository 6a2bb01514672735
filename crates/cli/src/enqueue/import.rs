//! `redrive enqueue --ndjson`: many messages, a line of JSON each.
//!
//! Lines are read while batches are sent, so that a file of any length takes the memory of one batch. A server refuses a
//! batch as a whole where one message of it is wrong, and says which: that line is told, and the rest sent again, beginning
//! with small pieces that grow while they are taken. So a file of nothing but wrong lines costs one small call for each.

use std::path::Path;

use redrive_wire::EnqueueResult;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, BufReader};

use super::batch::{Pending, Pile, message, pointed_at};
use super::lines::{LINE_BYTES_MAX, Line, Lines};
use crate::output::{Format, Tree};
use crate::progress::Progress;
use crate::remote::{Answer, Failure, Session};

/// What became of the lines.
#[derive(Debug, Default)]
struct Tally {
    enqueued: u64,
    duplicates: u64,
    refused: u64,
}

impl Tally {
    fn lines(&self) -> u64 {
        self.enqueued + self.duplicates + self.refused
    }
}

struct Import<'a> {
    session: &'a Session,
    queue: &'a str,
    progress: Progress,
    tally: Tally,
}

#[derive(Serialize)]
struct Request<'a> {
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Answer<EnqueueResult>>,
}

pub(super) async fn run(session: &Session, queue: &str, path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        let progress = Progress::new(&session.output, "lines", None);
        let import = Import { session, queue, progress, tally: Tally::default() };
        return import.all(BufReader::new(tokio::io::stdin()), "stdin").await;
    }
    let named = path.display().to_string();
    let failed = |error| Failure::Io(format!("reading {named}"), error);
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let length = file.metadata().await.map_err(failed)?.len();
    let progress = Progress::bytes(&session.output, length);
    let import = Import { session, queue, progress, tally: Tally::default() };
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
            match message(&text) {
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
                Err(failure) => match wrong(&failure, now.len()) {
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

    async fn post(&self, batch: &[Pending]) -> Result<Vec<Answer<EnqueueResult>>, Failure> {
        // The lines as they were written, and not what a `Value` would make of their numbers.
        let request = Request { messages: batch.iter().map(|pending| &*pending.json).collect() };
        let path = ["v1", "queues", self.queue, "messages", "batch"];
        let answer: Answer<Results> = self.session.remote.post(&path, &request).await?;
        Ok(answer.value.results)
    }

    fn take(&mut self, line: u64, result: &Answer<EnqueueResult>) -> Result<(), Failure> {
        let EnqueueResult { id, duplicate, code, detail, .. } = &result.value;
        match id {
            Some(_) if *duplicate == Some(true) => self.tally.duplicates += 1,
            Some(_) => self.tally.enqueued += 1,
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
        let Tally { enqueued, duplicates, .. } = self.tally;
        let said =
            format!("stopped at line {line}; {enqueued} enqueued and {duplicates} duplicates before it");
        self.progress.suspended(|| self.session.output.complain(&said));
        failure
    }

    fn end(self) -> Result<(), Failure> {
        let Tally { enqueued, duplicates, refused } = self.tally;
        let total = self.tally.lines();
        drop(self.progress);
        let output = &self.session.output;
        match output.format {
            Format::Table => {
                output.line(&format!("{enqueued} enqueued, {duplicates} duplicates, {refused} refused"))?;
            }
            Format::Json => {
                let json = json!({"enqueued": enqueued, "duplicates": duplicates, "refused": refused});
                output.line(&format!("{json:#}"))?;
            }
            Format::Yaml => {
                output
                    .line(&format!("enqueued: {enqueued}\nduplicates: {duplicates}\nrefused: {refused}"))?;
            }
            Format::Ndjson | Format::Id => {}
        }
        if refused > 0 { Err(Failure::Partial { failed: refused, total, what: "lines" }) } else { Ok(()) }
    }
}

/// Which message of a batch the server points at, and why; nothing where the batch is not what is wrong.
fn wrong(failure: &Failure, sent: usize) -> Option<(usize, String)> {
    let Failure::Refused(refused) = failure else { return None };
    let error = refused.problem.errors.first()?;
    let at = pointed_at(&error.pointer).filter(|at| *at < sent)?;
    let field = error.pointer.split('/').skip(3).collect::<Vec<_>>().join("/");
    let why = if field.is_empty() { error.detail.clone() } else { format!("{field}: {}", error.detail) };
    Some((at, why))
}
