//! `redrive subscription replay`, `replays` and `cancel-replay`.

use clap::Args;
use redrive_wire::{ReplayRequest, ReplayStarted, ReplayView};
use reqwest::Method;

use super::get;
use crate::arguments::{message_id, subscription_id};
use crate::message::filter::server_time;
use crate::output::{Cell, Column, Row};
use crate::remote::{Answer, Failure, Query, Session};
use crate::when::When;

#[derive(Debug, Args)]
pub(super) struct ReplayArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    /// Since this time, or since this span ago.
    #[arg(long, value_name = "TIME|SPAN")]
    from: When,
}

#[derive(Debug, Args)]
pub(super) struct CancelArguments {
    /// The subscription.
    #[arg(value_parser = subscription_id)]
    id: String,
    /// The replay.
    #[arg(value_parser = message_id)]
    replay: String,
}

pub(super) async fn run(session: &Session, arguments: &ReplayArguments) -> Result<(), Failure> {
    let started = start(session, &arguments.id, arguments.from).await?;
    let replay = &started.value.id;
    session.output.told(Some(&started.json), &format!("replay {replay} has begun"), replay)
}

/// Begins a replay. A span ago is counted from the server's time: its clock has stamped the events.
pub(super) async fn start(session: &Session, id: &str, from: When) -> Result<Answer<ReplayStarted>, Failure> {
    let from = match from {
        When::At(time) => time,
        When::Span(_) => {
            let queue = get(session, id).await?.value.queue;
            from.ago(server_time(session, &queue).await?)
        }
    };
    session.remote.post(&["v1", "subscriptions", id, "replays"], &ReplayRequest { from }).await
}

pub(super) async fn list(session: &Session, id: &str) -> Result<(), Failure> {
    session.whole::<ReplayView>(&["v1", "subscriptions", id, "replays"], "replays").await
}

pub(super) async fn cancel(session: &Session, arguments: &CancelArguments) -> Result<(), Failure> {
    let CancelArguments { id, replay } = arguments;
    let path = ["v1", "subscriptions", id, "replays", replay];
    session.remote.done(session.remote.request(Method::DELETE, &path, &Query::new())).await?;
    session.output.told(None, &format!("replay {replay} is cancelled"), replay)
}

impl Row for ReplayView {
    const COLUMNS: &'static [Column] =
        &[Column::Text("ID"), Column::Text("FROM"), Column::Text("STARTED"), Column::Number("REPLAYED")];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(&self.id),
            Cell::text(self.from.to_string()),
            Cell::text(self.started_at.to_string()),
            Cell::number(self.replayed),
        ]
    }

    fn id(&self) -> String {
        self.id.clone()
    }
}
