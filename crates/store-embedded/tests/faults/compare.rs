//! When a store that was opened again is what it must be, as far as anybody can tell.

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures::executor::block_on;
use redrive_core::lease::LeaseId;
use redrive_core::message::{FairnessKey, Lane, Message, MessageId, Phase};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::time::Timestamp;
use redrive_store::{CountBy, EntryKind, Filter, Limit, ListRequest, Now, QueueStats, Store};

use crate::oracle::{Checked, Known};

/// `Ok` where two answers are the same.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, subject: &T, reference: &T) -> Checked {
    if subject == reference {
        Ok(())
    } else {
        Err(format!("{what} differs\n  subject:   {subject:?}\n  reference: {reference:?}"))
    }
}

fn told(error: impl std::fmt::Display) -> String {
    format!("the store does not answer: {error}")
}

/// A message without what stores choose for themselves: lease ids and sequence numbers.
pub(crate) fn plain(mut message: Message) -> Message {
    message.progress.sequence = 0;
    if let Phase::Leased(lease) = &mut message.progress.phase {
        lease.id = LeaseId::from_bits(0);
    }
    message
}

/// Every message of a queue, over as many pages as it takes.
fn list(store: &dyn Store, now: Timestamp, queue: &QueueName, filter: &Filter) -> Checked<Vec<Message>> {
    let mut request = ListRequest::new(queue.clone(), filter.clone());
    let mut all = Vec::new();
    loop {
        let page = block_on(store.list(Now::At(now), request.clone())).map_err(told)?;
        all.extend(page.messages);
        match page.next {
            Some(next) => request.after = Some(next),
            None => return Ok(all),
        }
    }
}

fn queues(store: &dyn Store) -> Checked<Vec<Queue>> {
    block_on(store.list_queues(None, Limit::MAX)).map_err(told)
}

/// Every leased message, in the order of the leases.
pub(crate) fn leased_messages(store: &dyn Store, now: Timestamp) -> Checked<Vec<Message>> {
    let mut all = Vec::new();
    for queue in queues(store)? {
        all.extend(list(store, now, &queue.name, &Filter::default())?);
    }
    all.retain(|message| message.lease().is_some());
    all.sort_by_key(|message| message.lease().map(|lease| lease.id));
    Ok(all)
}

/// Compares everything that can be seen; answers what is now known of the store's own choices.
pub(crate) fn compare(
    subject: &dyn Store,
    reference: &dyn Store,
    now: Timestamp,
    known: &Known,
) -> Checked<Known> {
    let mut learned = known.clone();
    let (ours, theirs) = (queues(subject)?, queues(reference)?);
    let plainly = |queues: &[Queue]| -> Vec<Queue> {
        queues.iter().map(|queue| Queue { version: 0, ..queue.clone() }).collect()
    };
    same("the list of queues", &plainly(&ours), &plainly(&theirs))?;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let versions = adopt(known.queues.get(&ours.name), (ours.version, theirs.version));
        let versions = versions.map_err(|reason| format!("queue {}: {reason}", ours.name))?;
        learned.queues.insert(ours.name.clone(), versions);
        compare_queue(subject, reference, now, &ours.name, known)?;
    }
    learned.queues.retain(|name, _| ours.iter().any(|queue| queue.name == *name));
    compare_registry(subject, reference, &mut learned)?;
    Ok(learned)
}

/// A version that the reference did not raise must be the one that was told; any other is news.
fn adopt(known: Option<&(u64, u64)>, now: (u64, u64)) -> Checked<(u64, u64)> {
    match known {
        Some(known) if known.1 == now.1 && known.0 != now.0 => {
            Err(format!("version {} was told, and is now {}", known.0, now.0))
        }
        Some(known) if known.1 != now.1 && known.0 >= now.0 => {
            Err(format!("version {} was told, {} is no later one", known.0, now.0))
        }
        _ => Ok(now),
    }
}

fn compare_queue(
    subject: &dyn Store,
    reference: &dyn Store,
    now: Timestamp,
    name: &QueueName,
    known: &Known,
) -> Checked {
    let ours = list(subject, now, name, &Filter::default())?;
    let theirs = list(reference, now, name, &Filter::default())?;
    let ids = |messages: &[Message]| messages.iter().map(Message::id).collect::<Vec<_>>();
    same(&format!("{name}: which messages there are"), &ids(&ours), &ids(&theirs))?;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        same(&format!("{name}: a message"), &plain(ours.clone()), &plain(theirs.clone()))?;
        if let (Some(ours), Some(theirs)) = (ours.lease(), theirs.lease())
            && known.leases.get(&ours.id) != Some(&theirs.id)
        {
            return Err(format!("{name}: a message has lease {}, which nobody was given for it", ours.id));
        }
        let again = block_on(subject.get(name, ours.id())).map_err(told)?;
        same(&format!("{name}: get and list"), &again.as_ref(), &Some(ours))?;
    }
    same(&format!("{name}: the order of what waits"), &order(&ours), &order(&theirs))?;
    compare_numbers(subject, reference, now, name)
}

type Line = (FairnessKey, bool, u8, Timestamp);

/// Within a lane, a key, a priority and a time: who came first.
fn order(messages: &[Message]) -> BTreeMap<Line, Vec<MessageId>> {
    let mut lines: BTreeMap<Line, Vec<(u64, MessageId)>> = BTreeMap::new();
    for message in messages.iter().filter(|message| message.progress.phase == Phase::Waiting) {
        let progress = &message.progress;
        let fresh = progress.lane() == Lane::Fresh;
        let line = (message.spec.fairness_key.clone(), fresh, progress.priority.get(), progress.visible_at);
        lines.entry(line).or_default().push((progress.sequence, message.id()));
    }
    let sorted = |mut line: Vec<(u64, MessageId)>| {
        line.sort_unstable();
        line.into_iter().map(|(_, id)| id).collect()
    };
    lines.into_iter().map(|(line, messages)| (line, sorted(messages))).collect()
}

fn compare_numbers(subject: &dyn Store, reference: &dyn Store, now: Timestamp, name: &QueueName) -> Checked {
    let stats = |store: &dyn Store| -> Checked<QueueStats> {
        let stats = block_on(store.stats(Now::At(now), name)).map_err(told)?;
        Ok(QueueStats { queue: Queue { version: 0, ..stats.queue.clone() }, ..stats })
    };
    same(&format!("{name}: the numbers"), &stats(subject)?, &stats(reference)?)?;
    let due = |store: &dyn Store| block_on(store.next_due(Now::At(now), Some(name))).map_err(told);
    same(&format!("{name}: what is due next"), &due(subject)?, &due(reference)?)?;
    let by = CountBy { kind: true, source: true, key: true };
    let count = |store: &dyn Store| block_on(store.count(Now::At(now), name, by, Limit::MAX)).map_err(told);
    same(&format!("{name}: the counts"), &count(subject)?, &count(reference)?)?;
    let groups = |store: &dyn Store| block_on(store.failure_groups(name, Limit::MAX)).map_err(told);
    same(&format!("{name}: the failure groups"), &groups(subject)?, &groups(reference)?)
}

fn compare_registry(subject: &dyn Store, reference: &dyn Store, known: &mut Known) -> Checked {
    let before = std::mem::take(&mut known.entries);
    for kind in EntryKind::ALL {
        let entries = |store: &dyn Store| block_on(store.registry_list(kind, None, Limit::MAX)).map_err(told);
        let (ours, theirs) = (entries(subject)?, entries(reference)?);
        let values = |entries: &[redrive_store::Entry]| -> Vec<_> {
            entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect()
        };
        same("the registry", &values(&ours), &values(&theirs))?;
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let versions = adopt(before.get(&ours.key), (ours.version, theirs.version));
            let versions = versions.map_err(|reason| format!("{:?}: {reason}", ours.key))?;
            known.entries.insert(ours.key.clone(), versions);
        }
    }
    Ok(())
}
