//! `redrive subscription dead` and `groups`.

use clap::Args;
use redrive_wire::{DeadDeliveryView, FailureGroupView};

use crate::arguments::subscription_id;
use crate::output::{Cell, Column, Row};
use crate::remote::{Failure, HowMany, Query, Session};

#[derive(Debug, Args)]
pub(super) struct DeadArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    #[command(flatten)]
    how_many: HowMany,
}

#[derive(Debug, Args)]
pub(super) struct GroupsArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    /// How many groups at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    limit: u64,
}

pub(super) async fn list(session: &Session, arguments: &DeadArguments) -> Result<(), Failure> {
    let path = ["v1", "subscriptions", &*arguments.id, "dead"];
    session.list::<DeadDeliveryView>(&path, Query::new(), "dead", arguments.how_many).await
}

pub(super) async fn groups(session: &Session, arguments: &GroupsArguments) -> Result<(), Failure> {
    let path = ["v1", "subscriptions", &*arguments.id, "dead", "groups"];
    let how_many = HowMany { limit: arguments.limit, all: false };
    session.list::<FailureGroupView>(&path, Query::new(), "groups", how_many).await
}

impl Row for DeadDeliveryView {
    const COLUMNS: &'static [Column] = &[
        Column::Text("EVENT"),
        Column::Text("REASON"),
        Column::Number("ATTEMPTS"),
        Column::Text("DIED"),
        Column::Text("QUEUE"),
        Column::Text("LAST ERROR"),
    ];

    fn cells(&self) -> Vec<Cell> {
        let message = &self.message;
        let error = message.last_error.as_ref().filter(|error| !error.is_empty());
        vec![
            Cell::text(&message.id),
            Cell::text(&self.reason),
            Cell::number(message.attempts),
            Cell::maybe(message.dead_at, |at| Cell::text(at.to_string())),
            Cell::text(&message.queue),
            Cell::maybe(error, Cell::clipped),
        ]
    }

    fn id(&self) -> String {
        self.message.id.clone()
    }
}
