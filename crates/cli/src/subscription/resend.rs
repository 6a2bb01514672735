//! `redrive subscription resend`.

use clap::Args;
use redrive_wire::{ResendRequest, Resent};

use crate::arguments::{message_id, subscription_id};
use crate::remote::{Answer, Failure, Session};

#[derive(Debug, Args)]
pub(super) struct ResendArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    /// The event.
    #[arg(value_parser = message_id)]
    event: String,
}

pub(super) async fn run(session: &Session, arguments: &ResendArguments) -> Result<(), Failure> {
    let ResendArguments { id, event } = arguments;
    let path = ["v1", "subscriptions", id, "resend"];
    let resent: Answer<Resent> = session.remote.post(&path, &ResendRequest { event: event.clone() }).await?;
    let way = match &*resent.value.how {
        "redriven" => "was dead, and is redriven",
        "retried_now" => "waited, and is tried now",
        _ => "was over, and is enqueued again",
    };
    session.output.told(Some(&resent.json), &format!("event {event} {way}"), event)
}
