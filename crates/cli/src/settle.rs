//! `redrive ack`, `nack`, `extend`, `release` and `bury`: what becomes of a lease.
//!
//! One receipt is one call whose refusal is the command's. Several go in batches; each has a result of its own.

use std::process::ExitCode;

use clap::Args;
use redrive_core::limits::BATCH_ITEMS_MAX;
use redrive_wire::{
    AckRequest, Acked, Batch, BuryRequest, ExtendRequest, Extended, NackRequest, Nacked, ReleaseRequest,
    Released, SettleResult,
};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::output::{Cell, Column, Row};
use crate::remote::{Answer, Asking, Failure, Query, Session};
use crate::span::Span;

/// Which leases.
#[derive(Debug, Args)]
struct Receipts {
    /// What `redrive lease` printed; `-` reads receipts from stdin, one on each line.
    #[arg(required = true, value_name = "RECEIPT")]
    receipts: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AckArguments {
    #[command(flatten)]
    receipts: Receipts,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct NackArguments {
    #[command(flatten)]
    receipts: Receipts,
    /// What went wrong.
    #[arg(long, value_name = "TEXT", default_value = "")]
    error: String,
    /// Not before this much time; the queue's policy may say longer.
    #[arg(long, value_name = "SPAN")]
    delay: Option<Span>,
    /// Exactly after that time, whatever the policy says.
    #[arg(long, requires = "delay")]
    exact: bool,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ExtendArguments {
    #[command(flatten)]
    receipts: Receipts,
    /// For how long from now; as long as the queue's leases are where nothing is said.
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArguments {
    #[command(flatten)]
    receipts: Receipts,
    /// Not before this much time; it gets its old place back where nothing is said.
    #[arg(long, value_name = "SPAN")]
    delay: Option<Span>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct BuryArguments {
    #[command(flatten)]
    receipts: Receipts,
    /// Why it must never be tried again.
    #[arg(long, value_name = "TEXT", default_value = "")]
    error: String,
    #[command(flatten)]
    asking: Asking,
}

pub(crate) fn ack(arguments: AckArguments) -> ExitCode {
    let receipts = arguments.receipts;
    arguments.asking.run(async |session| {
        settle::<_, Acked>(session, "ack", receipts, |receipt| AckRequest { receipt }).await
    })
}

pub(crate) fn nack(arguments: NackArguments) -> ExitCode {
    let NackArguments { receipts, error, delay, exact, asking } = arguments;
    let delay_ms = delay.map(Span::millis);
    let request =
        |receipt| NackRequest { receipt, error: error.clone(), delay_ms, exact, checkpoint_base64: None };
    asking.run(async |session| settle::<_, Nacked>(session, "nack", receipts, request).await)
}

pub(crate) fn extend(arguments: ExtendArguments) -> ExitCode {
    let ExtendArguments { receipts, lease, asking } = arguments;
    let request =
        |receipt| ExtendRequest { receipt, lease_ms: lease.map(Span::millis), checkpoint_base64: None };
    asking.run(async |session| settle::<_, Extended>(session, "extend", receipts, request).await)
}

pub(crate) fn release(arguments: ReleaseArguments) -> ExitCode {
    let ReleaseArguments { receipts, delay, asking } = arguments;
    let request = |receipt| ReleaseRequest { receipt, delay_ms: delay.map(Span::millis) };
    asking.run(async |session| settle::<_, Released>(session, "release", receipts, request).await)
}

pub(crate) fn bury(arguments: BuryArguments) -> ExitCode {
    let BuryArguments { receipts, error, asking } = arguments;
    let request = |receipt| BuryRequest { receipt, error: error.clone() };
    asking.run(async |session| settle::<_, Nacked>(session, "bury", receipts, request).await)
}

/// What came of a settlement, as a sentence.
trait Told: DeserializeOwned {
    fn told(&self) -> String;
}

impl Told for Acked {
    fn told(&self) -> String {
        "acked".to_owned()
    }
}

impl Told for Nacked {
    fn told(&self) -> String {
        let reason = self.dead_reason.as_deref().unwrap_or("buried");
        match (&self.moved_to, &*self.state, self.retry_at) {
            (Some(queue), ..) => format!("dead ({reason}), and moved to {queue}"),
            (None, "dead", _) => format!("dead ({reason})"),
            (None, _, Some(at)) => {
                let span = Span::from_millis(self.delay_ms.unwrap_or_default());
                let rule = self.delay_rule.as_deref().unwrap_or("backoff");
                format!("tried again in {span}, at {at} ({rule})")
            }
            (None, state, None) => state.to_owned(),
        }
    }
}

impl Told for Extended {
    fn told(&self) -> String {
        format!("leased until {}", self.deadline)
    }
}

impl Told for Released {
    fn told(&self) -> String {
        match &self.dead_reason {
            Some(reason) => format!("dead ({reason})"),
            None => format!("released, ready from {} on", self.visible_at),
        }
    }
}

/// The result for one receipt of several, whose place is known from the order.
#[derive(Debug, Deserialize)]
#[serde(transparent, bound(deserialize = "T: DeserializeOwned"))]
struct Settled<T>(SettleResult<T>);

impl<T: Told> Row for Settled<T> {
    const COLUMNS: &'static [Column] = &[Column::Text("RESULT"), Column::Text("OUTCOME")];

    fn cells(&self) -> Vec<Cell> {
        let result = if self.0.ok { "ok" } else { "failed" };
        let outcome = match (&self.0.outcome, &self.0.code) {
            (Some(outcome), _) => Cell::text(outcome.told()),
            (None, Some(code)) => Cell::text(code),
            (None, None) => Cell::none(),
        };
        vec![Cell::state(result), outcome]
    }

    fn id(&self) -> String {
        self.0.code.clone().unwrap_or_else(|| "ok".to_owned())
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
struct Results<T> {
    results: Vec<Answer<Settled<T>>>,
}

async fn settle<B: Serialize, T: Told>(
    session: &Session,
    verb: &str,
    receipts: Receipts,
    request: impl Fn(String) -> B,
) -> Result<(), Failure> {
    let receipts = receipts.read().await?;
    match <[String; 1]>::try_from(receipts) {
        Ok([receipt]) => one::<B, T>(session, verb, &request(receipt)).await,
        Err(receipts) => several::<B, T>(session, verb, receipts, request).await,
    }
}

async fn one<B: Serialize, T: Told>(session: &Session, verb: &str, body: &B) -> Result<(), Failure> {
    if verb == "ack" {
        let request = session.remote.request(Method::POST, &["v1", "leases", verb], &Query::new());
        session.remote.done(request.json(body)).await?;
        return session.output.told(None, "acked", "ok");
    }
    let answer = session.remote.post::<T>(&["v1", "leases", verb], body).await?;
    session.output.told(Some(&answer.json), &answer.value.told(), "ok")
}

async fn several<B: Serialize, T: Told>(
    session: &Session,
    verb: &str,
    receipts: Vec<String>,
    request: impl Fn(String) -> B,
) -> Result<(), Failure> {
    let mut list = session.output.list::<Settled<T>>();
    let (total, mut failed) = (receipts.len() as u64, 0);
    let mut receipts = receipts.into_iter().peekable();
    while receipts.peek().is_some() {
        let items = receipts.by_ref().take(BATCH_ITEMS_MAX).map(&request).collect();
        let path = ["v1", "leases", verb, "batch"];
        let answer: Answer<Results<T>> = session.remote.post(&path, &Batch { items }).await?;
        for result in &answer.value.results {
            failed += u64::from(!result.value.0.ok);
            list.item(result)?;
        }
    }
    list.end()?;
    if failed > 0 { Err(Failure::Partial { failed, total, what: "receipts" }) } else { Ok(()) }
}

impl Receipts {
    /// The receipts, those on stdin in the place of `-`. Blank lines are none.
    async fn read(self) -> Result<Vec<String>, Failure> {
        let mut receipts = Vec::new();
        for receipt in self.receipts {
            if receipt != "-" {
                receipts.push(receipt);
                continue;
            }
            let failed = |error| Failure::Io("stdin".to_owned(), error);
            let mut lines = BufReader::new(tokio::io::stdin()).lines();
            while let Some(line) = lines.next_line().await.map_err(failed)? {
                receipts.extend(Some(line.trim().to_owned()).filter(|line| !line.is_empty()));
            }
        }
        if receipts.is_empty() {
            Err(Failure::Usage("there is no receipt on stdin".to_owned()))
        } else {
            Ok(receipts)
        }
    }
}
