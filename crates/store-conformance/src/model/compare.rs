//! When two stores are in the same state, as far as anybody can tell.

use std::fmt::Debug;

use redrive_core::lease::LeaseId;
use redrive_core::message::{Message, Phase};
use redrive_core::queue::{Queue, QueueConfig, QueueSettings};
use redrive_core::time::Timestamp;
use redrive_store::{CountBy, EntryKind, Filter, Limit, Now, QueueError, QueueStats, Store};

use crate::check;

/// `Ok` where two answers are the same.
pub(super) fn same<T: PartialEq + Debug>(what: &str, subject: &T, reference: &T) -> Result<(), String> {
    if subject == reference {
        Ok(())
    } else {
        Err(format!("{what} differs\n  subject:   {subject:?}\n  reference: {reference:?}"))
    }
}

/// An error by its code, which is all of it that stores must share.
pub(super) fn coded<T>(answer: Result<T, QueueError>) -> Result<T, &'static str> {
    answer.map_err(|error| error.code())
}

/// A message without what stores choose for themselves: lease ids and sequence numbers.
pub(super) fn plain(mut message: Message) -> Message {
    message.progress.sequence = 0;
    if let Phase::Leased(lease) = &mut message.progress.phase {
        lease.id = LeaseId::from_bits(0);
    }
    message
}

/// A queue without its version, and without its configuration: a store that keeps a setting and does not act on it
/// must be found by what it does. That it keeps it, a rule says.
fn plain_queue(queue: Queue) -> Queue {
    Queue { version: 0, config: QueueConfig::default(), ..queue }
}

/// Compares everything that can be seen.
pub(super) async fn compare(
    subject: &dyn Store,
    reference: &dyn Store,
    now: Timestamp,
) -> Result<(), String> {
    let ours = subject.list_queues(None, Limit::MAX).await.map_err(|error| error.to_string())?;
    let theirs = reference.list_queues(None, Limit::MAX).await.map_err(|error| error.to_string())?;
    let names: Vec<_> = ours.iter().map(|queue| queue.name.clone()).collect();
    let plain_queues = |queues: Vec<Queue>| queues.into_iter().map(plain_queue).collect::<Vec<_>>();
    same("the list of queues", &plain_queues(ours), &plain_queues(theirs))?;
    for name in &names {
        let list = async |store| -> Vec<Message> {
            let all = check::list(store, now, name, Filter::default()).await;
            all.into_iter().map(plain).collect()
        };
        same("the messages", &list(subject).await, &list(reference).await)?;
        let stats = async |store: &dyn Store| {
            coded(store.stats(Now::At(now), name).await).map(|stats| QueueStats {
                queue: plain_queue(stats.queue.clone()),
                settings: QueueSettings::default(),
                ..stats
            })
        };
        same("the numbers", &stats(subject).await, &stats(reference).await)?;
        let due = async |store: &dyn Store| coded(store.next_due(Now::At(now), Some(name)).await);
        same("what is due next", &due(subject).await, &due(reference).await)?;
        let by = CountBy { kind: true, source: false, key: true };
        let count = async |store: &dyn Store| coded(store.count(Now::At(now), name, by, Limit::MAX).await);
        same("the counts", &count(subject).await, &count(reference).await)?;
        let groups = async |store: &dyn Store| coded(store.failure_groups(name, Limit::MAX).await);
        same("the failure groups", &groups(subject).await, &groups(reference).await)?;
    }
    for kind in EntryKind::ALL {
        let entries = async |store: &dyn Store| {
            let entries = store.registry_list(kind, None, Limit::MAX).await.expect("the store answers");
            entries.into_iter().map(|entry| (entry.key, entry.value)).collect::<Vec<_>>()
        };
        same("the registry", &entries(subject).await, &entries(reference).await)?;
    }
    Ok(())
}
