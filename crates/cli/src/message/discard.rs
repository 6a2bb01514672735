//! `redrive message discard`.

use clap::Args;
use redrive_wire::{DiscardRequest, MessageView};
use reqwest::Method;

use super::filter::{DeadFilter, FilterArguments, StateFilter, described, something};
use crate::arguments::{message_id, queue_name, rate};
use crate::confirm::Consent;
use crate::operation::{Bulk, Follow};
use crate::remote::{Failure, Query, Session};

#[derive(Debug, Args)]
pub(super) struct DiscardArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    /// One message; otherwise all that match, as an operation.
    #[arg(value_parser = message_id, conflicts_with_all = ["FilterArguments", "StateFilter", "DeadFilter", "all"])]
    id: Option<String>,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    states: StateFilter,
    #[command(flatten)]
    dead: DeadFilter,
    /// Everything in the queue.
    #[arg(long)]
    all: bool,
    /// Leased messages, too, which fences their consumers.
    #[arg(long)]
    force: bool,
    /// How many messages a second at most.
    #[arg(long, value_name = "N/s", value_parser = rate)]
    rate: Option<u32>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    follow: Follow,
}

pub(super) async fn run(session: &Session, arguments: &DiscardArguments) -> Result<(), Failure> {
    match &arguments.id {
        Some(id) => one(session, arguments, id).await,
        None => many(session, arguments).await,
    }
}

async fn one(session: &Session, arguments: &DiscardArguments, id: &str) -> Result<(), Failure> {
    let path = ["v1", "queues", &*arguments.queue, "messages", id];
    let message: MessageView = session.remote.get(&path, &Query::new()).await?.value;
    let what = format!("discard message {id} of {}, which is {}", message.queue, message.state);
    if !arguments.consent.given(&session.output, &what, 1).await? {
        return Ok(());
    }
    let query: Query = if arguments.force { vec![("force", "true".to_owned())] } else { Query::new() };
    session.remote.done(session.remote.request(Method::DELETE, &path, &query)).await?;
    session.output.told(None, &format!("message {id} discarded"), id)
}

async fn many(session: &Session, arguments: &DiscardArguments) -> Result<(), Failure> {
    let body = arguments.filter.body(session, &arguments.queue).await?;
    let filter = arguments.states.over(arguments.dead.over(body));
    something(&filter, arguments.all)?;
    let path = ["v1", "queues", &*arguments.queue, "messages", "discard"];
    let bulk = Bulk {
        path: &path,
        verb: "discard",
        noun: "message",
        of: format!("of {}{}", arguments.queue, described(&filter)),
        consent: arguments.consent,
        follow: arguments.follow,
        asks_from: 1,
    };
    let request = |dry_run| DiscardRequest {
        filter: filter.clone(),
        dry_run,
        rate: arguments.rate,
        force: arguments.force,
    };
    bulk.run(session, request).await
}
