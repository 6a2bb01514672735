//! enqueue: nothing → ready | delayed.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use redrive_core::lifecycle::When;
use redrive_core::message::{MessageType, Priority, Source, Spec, Uniqueness};
use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::{Batch, EnqueueItem, EnqueueOutcome, EnqueueRefusal, Now, QueueNotFound, StoreError};

use crate::error::{Fault, damaged, unavailable};
use crate::link::Args;
use crate::queue::Known;
use crate::reply::{Reply, read_id};
use crate::store::{LOOKS, Shared};
use crate::words::{content, key_word, maybe, pair, when_word};

/// What messages of a batch have in common, as `scripts/enqueue.lua` reads it: the place of their queue, priority, from when on, until when,
/// `max_attempts`, `lease_timeout`, and the type and source.
#[derive(PartialEq, Eq, Hash)]
struct Kind<'a> {
    queue: usize,
    priority: Priority,
    visible: When,
    expires: Option<When>,
    max_attempts: Option<NonZeroU32>,
    lease_timeout: Option<Millis>,
    pair: (&'a MessageType, &'a Source),
}

impl<'a> Kind<'a> {
    fn of(queue: usize, item: &'a EnqueueItem) -> Self {
        let (draft, spec) = (&item.draft, &item.draft.spec);
        Self {
            queue,
            priority: draft.priority,
            visible: draft.visible,
            expires: draft.expires,
            max_attempts: spec.max_attempts,
            lease_timeout: spec.lease_timeout,
            pair: (&spec.kind, &spec.source),
        }
    }

    fn args(&self, args: &mut Args) {
        args.number(self.queue + 1)
            .number(self.priority.get())
            .push(when_word(self.visible))
            .push(self.expires.map_or_else(|| "-".to_owned(), when_word))
            .push(maybe(self.max_attempts.map(|max| u64::from(max.get()))))
            .push(maybe(self.lease_timeout.map(Millis::get)))
            .push(pair(self.pair.0, self.pair.1));
    }
}

/// What is read of each message besides.
fn item(args: &mut Args, kind: usize, spec: &Spec) {
    let load = spec.body.bytes().len() + spec.headers.size();
    args.number(kind + 1)
        .number(spec.id)
        .push(content(spec))
        .push(key_word(&spec.fairness_key))
        .number(load)
        .push(spec.dedup.as_ref().map_or_else(String::new, |dedup| {
            let letter = match dedup.unique {
                Uniqueness::Window => 'w',
                Uniqueness::UntilDone => 'u',
            };
            format!("{letter}{}", dedup.key.as_str())
        }));
}

impl Shared {
    pub(crate) async fn enqueue(
        &self,
        now: Now,
        batch: &Batch<EnqueueItem>,
    ) -> Result<Vec<EnqueueOutcome>, Fault> {
        let mut names: Vec<&QueueName> = Vec::new();
        for item in batch.items() {
            if !names.contains(&&item.queue) {
                names.push(&item.queue);
            }
        }
        let mut outcomes: Vec<Option<EnqueueOutcome>> = vec![None; batch.items().len()];
        if !self.link.cluster {
            self.enqueue_to(now, batch, &names, &mut outcomes).await?;
        } else if batch.is_all_or_nothing() && names.len() > 1 {
            return Err(self.spans_queues().into());
        } else {
            for (done, name) in names.iter().enumerate() {
                self.enqueue_to(now, batch, &[*name], &mut outcomes)
                    .await
                    .map_err(|fault| part_done(fault, done))?;
            }
        }
        let missing = || damaged("an answer", "an outcome is missing").into();
        outcomes.into_iter().map(|outcome| outcome.ok_or_else(missing)).collect()
    }

    /// Enqueues what goes to these queues, in one step.
    async fn enqueue_to(
        &self,
        now: Now,
        batch: &Batch<EnqueueItem>,
        names: &[&QueueName],
        outcomes: &mut [Option<EnqueueOutcome>],
    ) -> Result<(), Fault> {
        for _ in 0..LOOKS {
            let mut queues: Vec<(&QueueName, Arc<Known>)> = Vec::new();
            for name in names {
                if let Some(known) = self.known(name).await? {
                    queues.push((name, known));
                }
            }
            let place = |name: &QueueName| queues.iter().position(|(known, _)| *known == name);
            let doomed = queues.len() < names.len();
            let mut args = Args::default();
            let all = match (batch.is_all_or_nothing(), doomed) {
                (false, _) => "0",
                (true, false) => "1",
                (true, true) => "2",
            };
            args.push(self.time_arg(now))
                .push(all)
                .number(self.options.limits.classes_per_queue)
                .number(self.options.limits.dedup_keys_per_queue);
            let mut kinds = Vec::new();
            let mut known_kinds = HashMap::new();
            let mut keys = Vec::with_capacity(2 * queues.len());
            for (_, known) in &queues {
                keys.extend(known.keys.iter().cloned());
            }
            let (mut sent, mut items) = (Vec::new(), Args::default());
            for (at, one) in batch.items().iter().enumerate().filter(|(_, item)| names.contains(&&item.queue))
            {
                match place(&one.queue) {
                    Some(queue) => {
                        let kind = *known_kinds.entry(Kind::of(queue, one)).or_insert_with(|| {
                            kinds.push(Kind::of(queue, one));
                            kinds.len() - 1
                        });
                        item(&mut items, kind, &one.draft.spec);
                        sent.push((at, queue));
                    }
                    None => {
                        set(outcomes, at, EnqueueOutcome::Refused(QueueNotFound(one.queue.clone()).into()));
                    }
                }
            }
            if sent.is_empty() {
                return Ok(());
            }
            args.number(queues.len()).number(kinds.len());
            for (_, known) in &queues {
                args.push(known.stamp.as_str())
                    .maybe(known.settings.max_waiting)
                    .number(known.settings.dedup_window.get());
            }
            for kind in &kinds {
                kind.args(&mut args);
            }
            args.append(items);
            let mut answer = Reply::of(self.link.run(&self.link.scripts.enqueue, &keys, &args).await?)?;
            let status = answer.text()?;
            if status != "ok" {
                let changed = usize::try_from(answer.number()?).unwrap_or_default();
                if let Some((name, _)) = queues.get(changed.wrapping_sub(1)) {
                    self.forget(name);
                }
                continue;
            }
            self.saw(now, answer.time()?);
            let mut said = answer.reply()?;
            for (at, queue) in sent {
                let max_waiting = queues.get(queue).and_then(|(_, known)| known.settings.max_waiting);
                let id = batch.items().get(at).map(|item| item.draft.spec.id);
                let outcome = self.outcome(&said.text()?, id, max_waiting.map(std::num::NonZeroU64::get))?;
                set(outcomes, at, outcome);
            }
            return Ok(());
        }
        Err(Fault::Again(unavailable("the queue is changed all the time")))
    }

    fn outcome(
        &self,
        said: &str,
        id: Option<redrive_core::message::MessageId>,
        max_waiting: Option<u64>,
    ) -> Result<EnqueueOutcome, StoreError> {
        let limits = self.options.limits;
        let rest = said.get(1..).unwrap_or_default();
        let refusal = match said.get(..1).unwrap_or_default() {
            "e" => {
                let id = id.ok_or_else(|| damaged("an answer", said))?;
                let visible_at = rest.parse().map_err(|_| damaged("an answer", said))?;
                let visible_at = redrive_core::time::Timestamp::from_millis(visible_at);
                return Ok(EnqueueOutcome::Enqueued { id, visible_at });
            }
            "d" => return Ok(EnqueueOutcome::Duplicate { id: read_id(rest)? }),
            "a" => return Ok(EnqueueOutcome::Aborted),
            "f" => EnqueueRefusal::QueueFull { max_waiting: max_waiting.unwrap_or_default() },
            "c" => EnqueueRefusal::TooManyClasses { max: limits.classes_per_queue },
            "k" => EnqueueRefusal::TooManyDedupKeys { max: limits.dedup_keys_per_queue },
            _ => return Err(damaged("an answer", said)),
        };
        Ok(EnqueueOutcome::Refused(refusal))
    }

    /// What a batch is told that is all or nothing and goes to several queues of a cluster.
    pub(crate) fn spans_queues(&self) -> StoreError {
        StoreError::Unsupported {
            backend: self.backend(),
            what: "an all-or-nothing batch over several queues",
        }
    }
}

fn set<T>(outcomes: &mut [Option<T>], at: usize, outcome: T) {
    if let Some(place) = outcomes.get_mut(at) {
        *place = Some(outcome);
    }
}

/// The fault of a step that others came before: that nothing happened is not true any more.
pub(crate) fn part_done(fault: Fault, done: usize) -> Fault {
    match fault {
        Fault::Again(StoreError::Unavailable(cause)) | Fault::Undone(StoreError::Unavailable(cause))
            if done > 0 =>
        {
            Fault::Unknown(StoreError::OutcomeUnknown(cause))
        }
        Fault::Undone(full @ StoreError::StorageFull) if done > 0 => {
            Fault::Unknown(StoreError::OutcomeUnknown(full.into()))
        }
        other => other,
    }
}
