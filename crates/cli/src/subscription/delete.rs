//! `redrive subscription delete`.

use clap::Args;
use reqwest::Method;

use super::get;
use crate::arguments::subscription_id;
use crate::confirm::Consent;
use crate::output::counted;
use crate::queue::list::stats;
use crate::remote::{Failure, Query, Session};
use crate::topic::held;

#[derive(Debug, Args)]
pub(super) struct DeleteArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    #[command(flatten)]
    consent: Consent,
}

/// What waits for it and what is dead goes with it, so that is counted first. A queue of somebody else stays.
pub(super) async fn run(session: &Session, arguments: &DeleteArguments) -> Result<(), Failure> {
    let id = &*arguments.id;
    let known = get(session, id).await?.value;
    let (what, count) = if known.target.kind == "queue" {
        (format!("delete subscription {id}; queue {} stays", known.queue), 1)
    } else {
        let count = stats(session, &known.queue).await?.as_ref().map_or(0, held);
        (format!("delete subscription {id} with {} in its queue", counted(count, "event")), count)
    };
    if !arguments.consent.given(&session.output, &what, count).await? {
        return Ok(());
    }
    let path = ["v1", "subscriptions", id];
    session.remote.done(session.remote.request(Method::DELETE, &path, &Query::new())).await?;
    session.output.told(None, &format!("subscription {id} deleted"), id)
}
