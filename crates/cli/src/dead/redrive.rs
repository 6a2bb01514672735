//! `redrive dead redrive`.

use clap::Args;
use redrive_wire::RedriveRequest;

use crate::arguments::{queue_name, rate};
use crate::confirm::Consent;
use crate::message::filter::{DeadFilter, FilterArguments, described, something};
use crate::operation::{Bulk, Follow};
use crate::remote::{Failure, Session};

#[derive(Debug, Args)]
pub(super) struct RedriveArguments {
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
    /// Who asks, for the messages' history; the user of this machine where nothing is said.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Why, for the messages' history.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    follow: Follow,
}

pub(super) async fn run(session: &Session, arguments: &RedriveArguments) -> Result<(), Failure> {
    let body = arguments.filter.body(session, &arguments.queue).await?;
    let filter = arguments.dead.over(body);
    something(&filter, arguments.all)?;
    let path = ["v1", "queues", &*arguments.queue, "dead", "redrive"];
    let bulk = Bulk {
        path: &path,
        verb: "redrive",
        noun: "dead message",
        of: format!("of {}{}", arguments.queue, described(&filter)),
        consent: arguments.consent,
        follow: arguments.follow,
        // One message is soon looked after; many may be an outage again.
        asks_from: 2,
    };
    let by = arguments.by.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    let request = |dry_run| RedriveRequest {
        filter: filter.clone(),
        dry_run,
        rate: arguments.rate,
        by: by.clone(),
        reason: arguments.reason.clone().unwrap_or_default(),
    };
    bulk.run(session, request).await
}
