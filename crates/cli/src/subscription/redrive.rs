//! `redrive subscription redrive`.

use clap::Args;
use redrive_wire::{Matched, OperationView, RedriveRequest};
use serde::Deserialize;

use super::get;
use crate::arguments::{rate, subscription_id};
use crate::confirm::Consent;
use crate::message::filter::{DeadFilter, FilterArguments, described, something};
use crate::operation::Follow;
use crate::output::counted;
use crate::remote::{Answer, Failure, Session};

#[derive(Debug, Args)]
pub(super) struct RedriveArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    dead: DeadFilter,
    /// Everything that is dead for the subscription.
    #[arg(long)]
    all: bool,
    /// How many events a second at most.
    #[arg(long, value_name = "N/s", value_parser = rate)]
    rate: Option<u32>,
    /// Who asks, for the events' history; the user of this machine where nothing is said.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Why, for the events' history.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    follow: Follow,
}

/// One for each queue in which something was dead: its own, and those of sequential topics.
#[derive(Deserialize)]
struct Begun {
    operations: Vec<Answer<OperationView>>,
}

pub(super) async fn run(session: &Session, arguments: &RedriveArguments) -> Result<(), Failure> {
    let id = &*arguments.id;
    let queue = get(session, id).await?.value.queue;
    let filter = arguments.dead.over(arguments.filter.body(session, &queue).await?);
    something(&filter, arguments.all)?;
    let by = arguments.by.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    let request = |dry_run| RedriveRequest {
        filter: filter.clone(),
        dry_run,
        rate: arguments.rate,
        by: by.clone(),
        reason: arguments.reason.clone().unwrap_or_default(),
    };
    let path = ["v1", "subscriptions", id, "dead", "redrive"];
    let matched: Answer<Matched> = session.remote.post(&path, &request(true)).await?;
    let (count, of) = (matched.value.matched, format!("of subscription {id}{}", described(&filter)));
    let what = format!("redrive {} {of}", counted(count, "dead event"));
    // One event is soon looked after; many may be an outage again.
    if arguments.consent.dry_run || count > 1 {
        if !arguments.consent.given(&session.output, &what, count).await? {
            return Ok(());
        }
    } else if count == 0 {
        return session.output.told(Some(&matched.json), &format!("there is no dead event {of}"), "");
    }
    let begun: Answer<Begun> = session.remote.post(&path, &request(false)).await?;
    for operation in begun.value.operations {
        let what = format!("redrive {}", counted(operation.value.total, "dead event"));
        arguments.follow.after(session, operation, &what).await?;
    }
    Ok(())
}
