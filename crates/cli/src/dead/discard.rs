//! `redrive dead discard`.

use clap::Args;
use redrive_wire::DiscardRequest;

use crate::arguments::{queue_name, rate};
use crate::confirm::Consent;
use crate::message::filter::{DeadFilter, FilterArguments, described, something};
use crate::operation::{Bulk, Follow};
use crate::remote::{Failure, Session};

#[derive(Debug, Args)]
pub(super) struct DiscardArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    dead: DeadFilter,
    /// Everything that is dead in the queue.
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

pub(super) async fn run(session: &Session, arguments: &DiscardArguments) -> Result<(), Failure> {
    let body = arguments.filter.body(session, &arguments.queue).await?;
    let filter = arguments.dead.over(body);
    something(&filter, arguments.all)?;
    let path = ["v1", "queues", &*arguments.queue, "dead", "discard"];
    let bulk = Bulk {
        path: &path,
        verb: "discard",
        noun: "dead message",
        of: format!("of {}{}", arguments.queue, described(&filter)),
        consent: arguments.consent,
        follow: arguments.follow,
        asks_from: 1,
    };
    let request =
        |dry_run| DiscardRequest { filter: filter.clone(), dry_run, rate: arguments.rate, force: false };
    bulk.run(session, request).await
}
