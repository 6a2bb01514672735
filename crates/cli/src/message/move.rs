//! `redrive message move`.

use clap::Args;
use redrive_wire::{MoveManyRequest, MoveRequest};
use reqwest::Method;

use super::filter::{DeadFilter, FilterArguments, StateFilter, described, something};
use crate::arguments::{message_id, queue_name, rate};
use crate::confirm::Consent;
use crate::operation::{Bulk, Follow};
use crate::remote::{Failure, Query, Session};

#[derive(Debug, Args)]
pub(super) struct MoveArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    /// One message; otherwise all that match, as an operation.
    #[arg(value_parser = message_id, conflicts_with_all = ["FilterArguments", "StateFilter", "DeadFilter", "all"])]
    id: Option<String>,
    /// Where to.
    #[arg(long, value_name = "QUEUE", value_parser = queue_name)]
    to: String,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    states: StateFilter,
    #[command(flatten)]
    dead: DeadFilter,
    /// Everything in the queue that is not leased.
    #[arg(long)]
    all: bool,
    /// How many messages a second at most.
    #[arg(long, value_name = "N/s", value_parser = rate)]
    rate: Option<u32>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    follow: Follow,
}

pub(super) async fn run(session: &Session, arguments: &MoveArguments) -> Result<(), Failure> {
    match &arguments.id {
        Some(id) => one(session, arguments, id).await,
        None => many(session, arguments).await,
    }
}

async fn one(session: &Session, arguments: &MoveArguments, id: &str) -> Result<(), Failure> {
    let (queue, to) = (&*arguments.queue, &*arguments.to);
    if arguments.consent.dry_run {
        return arguments
            .consent
            .given(&session.output, &format!("move message {id} of {queue} to {to}"), 1)
            .await
            .map(drop);
    }
    let path = ["v1", "queues", queue, "messages", id, "move"];
    let request = session.remote.request(Method::POST, &path, &Query::new());
    session.remote.done(request.json(&MoveRequest { queue: to.to_owned() })).await?;
    session.output.told(None, &format!("message {id} moved to {to}"), id)
}

async fn many(session: &Session, arguments: &MoveArguments) -> Result<(), Failure> {
    let body = arguments.filter.body(session, &arguments.queue).await?;
    let filter = arguments.states.over(arguments.dead.over(body));
    something(&filter, arguments.all)?;
    let path = ["v1", "queues", &*arguments.queue, "messages", "move"];
    let bulk = Bulk {
        path: &path,
        verb: "move",
        noun: "message",
        of: format!("of {}{} to {}", arguments.queue, described(&filter), arguments.to),
        consent: arguments.consent,
        follow: arguments.follow,
        asks_from: 1,
    };
    let request = |dry_run| MoveManyRequest {
        filter: filter.clone(),
        queue: arguments.to.clone(),
        dry_run,
        rate: arguments.rate,
    };
    bulk.run(session, request).await
}
