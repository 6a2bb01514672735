//! What the server says, once a second.

use std::time::Duration;

use redrive_core::time::Timestamp;
use redrive_store_embedded::{Clock as _, MachineClock};
use redrive_wire::{Leases, MessageView, QueuePage, QueueStats};
use reqwest::Method;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};

use crate::remote::{Failure, Query, Remote};

/// How often the server is asked.
const PERIOD: Duration = Duration::from_secs(1);
/// How long it may take to answer before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most queues that are shown: each is a request.
pub(super) const QUEUES_MAX: u32 = 50;
/// Most leases that are shown.
pub(super) const LEASES_MAX: u32 = 50;

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueueLook {
    pub(super) stats: QueueStats,
    pub(super) paused: bool,
}

/// A server at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot {
    pub(super) queues: Vec<QueueLook>,
    /// Whether there are more queues than these.
    pub(super) more: bool,
    /// The queue whose leases these are.
    pub(super) chosen: Option<String>,
    pub(super) leases: Vec<MessageView>,
    /// This machine's time when the first queue was looked at.
    pub(super) at: Timestamp,
}

/// What came of a look.
pub(super) type Looked = Result<Snapshot, String>;

/// Looks once a second, and at once where another queue is chosen, until nobody listens.
pub(super) async fn go_on(
    remote: Remote,
    mut chosen: watch::Receiver<Option<String>>,
    tell: mpsc::Sender<Looked>,
) {
    let mut periods = tokio::time::interval(PERIOD);
    periods.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = periods.tick() => {}
            changed = chosen.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
        let wanted = chosen.borrow_and_update().clone();
        let looked = snapshot(&remote, wanted).await.map_err(|failure| failure.to_string());
        if tell.send(looked).await.is_err() {
            return;
        }
    }
}

async fn snapshot(remote: &Remote, chosen: Option<String>) -> Result<Snapshot, Failure> {
    let limit = |most: u32| vec![("limit", most.to_string())];
    let page: QueuePage = get(remote, &["v1", "queues"], &limit(QUEUES_MAX)).await?;
    let mut queues = Vec::new();
    let mut at = MachineClock.wall();
    for queue in &page.queues {
        if queues.is_empty() {
            at = MachineClock.wall();
        }
        match get(remote, &["v1", "queues", &queue.name, "stats"], &Query::new()).await {
            Ok(stats) => queues.push(QueueLook { stats, paused: queue.paused }),
            // It was deleted meanwhile.
            Err(Failure::Refused(refused)) if refused.problem.status == 404 => {}
            Err(failure) => return Err(failure),
        }
    }
    let names = || queues.iter().map(|queue: &QueueLook| queue.stats.queue.as_str());
    let chosen =
        chosen.filter(|chosen| names().any(|name| name == chosen)).or(names().next().map(str::to_owned));
    let leases = match &chosen {
        None => Vec::new(),
        Some(queue) => {
            match get::<Leases>(remote, &["v1", "queues", queue, "leases"], &limit(LEASES_MAX)).await {
                Ok(leases) => leases.leases,
                Err(Failure::Refused(refused)) if refused.problem.status == 404 => Vec::new(),
                Err(failure) => return Err(failure),
            }
        }
    };
    Ok(Snapshot { queues, more: page.next_cursor.is_some(), chosen, leases, at })
}

async fn get<T: DeserializeOwned>(remote: &Remote, path: &[&str], query: &Query) -> Result<T, Failure> {
    let request = remote.request(Method::GET, path, query).timeout(PATIENCE);
    Ok(remote.answer(request).await?.value)
}
