//! `redrive dead groups`.

use clap::Args;
use redrive_wire::FailureGroupView;

use crate::arguments::queue_name;
use crate::output::{Cell, Column, Row};
use crate::remote::{Failure, HowMany, Query, Session};

#[derive(Debug, Args)]
pub(super) struct GroupsArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    queue: String,
    /// How many groups at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    limit: u64,
}

pub(super) async fn run(session: &Session, arguments: &GroupsArguments) -> Result<(), Failure> {
    let path = ["v1", "queues", &*arguments.queue, "dead", "groups"];
    let how_many = HowMany { limit: arguments.limit, all: false };
    session.list::<FailureGroupView>(&path, Query::new(), "groups", how_many).await
}

impl Row for FailureGroupView {
    const COLUMNS: &'static [Column] = &[
        Column::Text("FINGERPRINT"),
        Column::Number("MESSAGES"),
        Column::Text("FIRST"),
        Column::Text("LAST"),
        Column::Text("SAMPLE"),
    ];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(&self.fingerprint),
            Cell::number(self.messages),
            Cell::text(self.first.to_string()),
            Cell::text(self.last.to_string()),
            Cell::maybe(Some(&self.sample).filter(|text| !text.is_empty()), Cell::clipped),
        ]
    }

    fn id(&self) -> String {
        self.fingerprint.clone()
    }
}
