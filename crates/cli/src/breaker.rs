//! `redrive breaker`: what stops a queue or a subscription during an outage.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use redrive_wire::{BreakerStatus, BreakerView};
use reqwest::Method;

use crate::arguments::{queue_name, subscription_id};
use crate::output::{Card, Cell, Column, Row};
use crate::remote::{Asking, Failure, HowMany, Query, Session};

#[derive(Debug, Args)]
pub(crate) struct BreakerArguments {
    #[command(subcommand)]
    verb: BreakerVerb,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum BreakerVerb {
    /// Lists the breakers of queues and of subscriptions.
    List(HowMany),
    /// Shows how a breaker stands.
    Show(Whose),
    /// Opens a breaker: nothing is handed out until its time is over and a probe succeeds.
    Trip(Whose),
    /// Closes a breaker; it starts with one message in flight.
    Reset(Whose),
}

/// Whose breaker it is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Whose {
    /// Of this queue.
    #[arg(value_parser = queue_name)]
    queue: Option<String>,
    /// Of this subscription.
    #[arg(long, value_name = "ID", value_parser = subscription_id)]
    subscription: Option<String>,
}

impl Whose {
    /// The segments of the path below which it is.
    fn path(&self) -> [&str; 4] {
        match (&self.queue, &self.subscription) {
            (_, Some(id)) => ["v1", "subscriptions", id, "breaker"],
            (queue, None) => ["v1", "queues", queue.as_deref().unwrap_or_default(), "breaker"],
        }
    }

    fn name(&self) -> &str {
        self.subscription.as_ref().or(self.queue.as_ref()).map(String::as_str).unwrap_or_default()
    }

    fn told(&self) -> String {
        let kind = if self.subscription.is_some() { "subscription" } else { "queue" };
        format!("{kind} {}", self.name())
    }
}

pub(crate) fn run(arguments: BreakerArguments) -> ExitCode {
    arguments.asking.run(async |session| match arguments.verb {
        BreakerVerb::List(how_many) => {
            session.list::<BreakerView>(&["v1", "breakers"], Query::new(), "breakers", how_many).await
        }
        BreakerVerb::Show(whose) => {
            session.output.one(&session.remote.get::<BreakerStatus>(&whose.path(), &Query::new()).await?)
        }
        BreakerVerb::Trip(whose) => change(session, &whose, "trip", "open").await,
        BreakerVerb::Reset(whose) => change(session, &whose, "reset", "closed").await,
    })
}

async fn change(session: &Session, whose: &Whose, verb: &str, state: &str) -> Result<(), Failure> {
    let path = [&whose.path()[..], &[verb]].concat();
    session.remote.done(session.remote.request(Method::POST, &path, &Query::new())).await?;
    session.output.told(None, &format!("the breaker of {} is {state}", whose.told()), whose.name())
}

impl Row for BreakerView {
    const COLUMNS: &'static [Column] = &[
        Column::Text("QUEUE"),
        Column::Text("SUBSCRIPTION"),
        Column::Text("STATE"),
        Column::Number("MESSAGES"),
        Column::Number("FAILED"),
        Column::Text("OPEN UNTIL"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let status = &self.status;
        vec![
            Cell::text(&self.queue),
            Cell::maybe(self.subscription.as_ref(), Cell::text),
            Cell::state(&status.state),
            Cell::number(status.messages),
            Cell::number(status.failed),
            Cell::maybe(status.open_until, |until| Cell::text(until.to_string())),
        ]
    }

    fn id(&self) -> String {
        self.queue.clone()
    }
}

impl Card for BreakerStatus {
    fn fields(&self) -> Vec<(&'static str, Cell)> {
        vec![
            ("state", Cell::state(&self.state)),
            ("open until", Cell::maybe(self.open_until, |until| Cell::text(until.to_string()))),
            ("probe", Cell::maybe(self.probe.as_ref(), Cell::text)),
            ("messages", Cell::number(self.messages)),
            ("failed", Cell::number(self.failed)),
        ]
    }

    fn id(&self) -> String {
        self.state.clone()
    }
}
