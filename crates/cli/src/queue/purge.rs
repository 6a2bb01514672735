//! `redrive queue purge`.

use clap::Args;
use redrive_wire::PurgeRequest;

use crate::arguments::queue_name;
use crate::confirm::Consent;
use crate::operation::{Bulk, Follow};
use crate::remote::{Failure, Session};

#[derive(Debug, Args)]
pub(super) struct PurgeArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    name: String,
    /// Leased messages, too, which fences their consumers.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    follow: Follow,
}

pub(super) async fn run(session: &Session, arguments: &PurgeArguments) -> Result<(), Failure> {
    let path = ["v1", "queues", &*arguments.name, "purge"];
    let leased = if arguments.force { "" } else { " that are not leased" };
    let bulk = Bulk {
        path: &path,
        verb: "discard",
        noun: "message",
        of: format!("of {}{leased}", arguments.name),
        consent: arguments.consent,
        follow: arguments.follow,
        asks_from: 1,
    };
    bulk.run(session, |dry_run| PurgeRequest { dry_run, force: arguments.force }).await
}
