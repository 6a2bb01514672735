//! `redrive queue delete`.

use clap::Args;
use redrive_wire::QueueStats;
use reqwest::Method;

use crate::arguments::queue_name;
use crate::confirm::Consent;
use crate::output::counted;
use crate::remote::{Failure, Query, Session};

#[derive(Debug, Args)]
pub(super) struct DeleteArguments {
    /// The queue.
    #[arg(value_parser = queue_name)]
    name: String,
    /// With everything in it, leased messages too; otherwise it must be empty.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn run(session: &Session, arguments: &DeleteArguments) -> Result<(), Failure> {
    let name = &*arguments.name;
    let stats: QueueStats = session.remote.get(&["v1", "queues", name, "stats"], &Query::new()).await?.value;
    let held = stats.states;
    let count = held.ready + held.delayed + held.leased + held.dead + held.done;
    let what = format!("delete queue {name} with {} in it", counted(count, "message"));
    if !arguments.consent.given(&session.output, &what, count).await? {
        return Ok(());
    }
    let query: Query = if arguments.force { vec![("force", "true".to_owned())] } else { Query::new() };
    session.remote.done(session.remote.request(Method::DELETE, &["v1", "queues", name], &query)).await?;
    session.output.told(None, &format!("queue {name} deleted"), name)
}
