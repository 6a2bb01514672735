//! Queues: create, update, delete, pause, and looking at them; and what an instance remembers of them.

use std::collections::HashMap;
use std::sync::Arc;

use redis::Value;
use redrive_core::lifecycle::Verb;
use redrive_core::queue::{Pause, Queue, QueueName, QueueSettings, Totals};
use redrive_core::time::Timestamp;
use redrive_store::{
    CreateQueue, DeleteQueue, Limit, Now, PauseQueue, QueueError, QueueNotFound, StoreError, UpdateQueue,
    json,
};

use crate::enqueue::part_done;
use crate::error::{Fault, damaged, unavailable};
use crate::link::Args;
use crate::lock::Lock;
use crate::reply::{self, Reply};
use crate::script::Verb as Script;
use crate::store::{LOOKS, Shared};
use crate::words::key_word;

/// A queue as an instance knows it. It is right as long as the queue's stamp is the same.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) keys: [String; 2],
    pub(crate) stamp: String,
    pub(crate) queue: Queue,
    pub(crate) settings: QueueSettings,
}

/// What is written down of a queue while it comes or goes, in case that whoever is at it comes to no end.
struct Trace<'a> {
    id: &'a str,
    name: &'a str,
}

impl std::fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}

/// The fields of a record.
pub(crate) type Fields = HashMap<String, String>;

pub(crate) fn fields(value: Value) -> Result<Fields, StoreError> {
    let flat = match value {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        Value::Array(flat) => flat,
        Value::Nil => Vec::new(),
        other => return Err(damaged("a record", format!("{other:?}"))),
    };
    let mut fields = Fields::new();
    let mut flat = flat.into_iter();
    while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
        fields.insert(reply::text(name)?, reply::text(value)?);
    }
    Ok(fields)
}

pub(crate) fn number(fields: &Fields, name: &str) -> u64 {
    fields.get(name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// The queue that a record is of.
pub(crate) fn read(fields: &Fields) -> Result<Queue, StoreError> {
    let text = |name: &str| fields.get(name).map_or("", String::as_str);
    let name = text("name");
    let broken = |problem: String| damaged(format!("the queue {name}"), problem);
    let value = |name: &str| serde_json::from_str(text(name)).map_err(|error| broken(error.to_string()));
    Ok(Queue {
        name: QueueName::new(name).map_err(|error| broken(error.to_string()))?,
        created_at: Timestamp::from_millis(number(fields, "created")),
        version: number(fields, "version"),
        config: json::read(&value("config")?).map_err(broken)?,
        pauses: json::read_pauses(&value("paused")?).map_err(broken)?,
    })
}

/// What a record has counted.
pub(crate) fn totals(fields: &Fields) -> Totals {
    let total = |name: &str| number(fields, &format!("total:{name}"));
    let mut totals = Totals::default();
    totals.moved_in = total("moved_in");
    totals.retained = total("retained");
    totals.died = total("died");
    totals.duplicates = total("duplicates");
    for verb in Verb::ALL {
        totals.add(verb, total(verb.name()));
    }
    totals
}

fn weights(args: &mut Args, settings: &QueueSettings) {
    for (key, weight) in settings.weights.iter() {
        args.push(key_word(key)).number(weight.get());
    }
}

/// Until when a pause holds, as a script compares it.
pub(crate) fn paused_until(pause: Pause) -> String {
    pause.end().map_or_else(|| "inf".to_owned(), |end| end.as_millis().to_string())
}

impl Shared {
    /// A queue as it was when somebody last looked, or as it is.
    pub(crate) async fn known(&self, name: &QueueName) -> Result<Option<Arc<Known>>, Fault> {
        let known = self.cache().get(name).cloned();
        match known {
            Some(known) => Ok(Some(known)),
            None => self.look(name).await,
        }
    }

    /// A queue that must be there.
    pub(crate) async fn there(&self, name: &QueueName) -> Result<Arc<Known>, Fault> {
        self.known(name).await?.ok_or_else(|| QueueNotFound(name.clone()).into())
    }

    /// A queue as it is.
    pub(crate) async fn look(&self, name: &QueueName) -> Result<Option<Arc<Known>>, Fault> {
        let directory = self.link.keys.queues();
        let id =
            self.link.send(&directory, redis::cmd("HGET").arg(&directory).arg(name.as_str()), false).await?;
        let known = match id {
            Value::Nil => None,
            id => self.look_at(reply::text(id)?).await?,
        };
        match &known {
            Some(known) => self.cache().insert(name.clone(), Arc::clone(known)),
            None => self.cache().remove(name),
        };
        Ok(known)
    }

    async fn look_at(&self, id: String) -> Result<Option<Arc<Known>>, Fault> {
        let keys = self.link.keys.queue(&id);
        let [record, _] = &keys;
        let found = fields(self.link.send(record, redis::cmd("HGETALL").arg(record), false).await?)?;
        if found.is_empty() {
            return Ok(None);
        }
        let queue = read(&found)?;
        let stamp = found.get("stamp").cloned().unwrap_or_default();
        let settings = queue.config.over(&self.options.defaults);
        Ok(Some(Arc::new(Known { id, keys, stamp, queue, settings })))
    }

    pub(crate) fn forget(&self, name: &QueueName) {
        self.cache().remove(name);
    }

    /// Runs a script on one queue, with what is known of it anew where that was not right any more. What comes back begins
    /// behind `ok`.
    pub(crate) async fn on_queue(
        &self,
        name: &QueueName,
        verb: &Script,
        args: &Args,
    ) -> Result<(Arc<Known>, Reply), Fault> {
        let (known, answer, _) = self.on_queue_saying(name, verb, args).await?;
        Ok((known, answer))
    }

    /// The same for a script that says something else than `ok`, too.
    pub(crate) async fn on_queue_saying(
        &self,
        name: &QueueName,
        verb: &Script,
        args: &Args,
    ) -> Result<(Arc<Known>, Reply, String), Fault> {
        for _ in 0..LOOKS {
            let known = self.there(name).await?;
            let mut answer = Reply::of(self.link.run(verb, &known.keys, args).await?)?;
            match answer.text()? {
                said if said == "gone" || said == "stale" => self.forget(name),
                said => return Ok((known, answer, said)),
            }
        }
        Err(Fault::Again(unavailable("the queue is changed all the time")))
    }

    /// A number that no queue and no entry has had as its version.
    async fn next_version(&self) -> Result<u64, Fault> {
        let version = &self.link.scripts.version;
        Ok(reply::number(self.link.run(version, &[self.link.keys.store()], &Args::default()).await?)?)
    }

    pub(crate) async fn create_queue(&self, now: Now, request: &CreateQueue) -> Result<Queue, Fault> {
        let _lock = Lock::take(&self.link, self.token(), "queues").await?;
        if self.look(&request.name).await?.is_some() {
            return Err(QueueError::AlreadyExists(request.name.clone()).into());
        }
        self.free_name(&request.name).await?;
        let settings = request.config.over(&self.options.defaults);
        // What is refused for the number of queues is refused before the settings are looked at.
        let directory = self.link.keys.queues();
        let queues =
            reply::number(self.link.send(&directory, redis::cmd("HLEN").arg(&directory), false).await?)?;
        let max = self.options.limits.queues;
        if usize::try_from(queues).is_ok_and(|queues| queues >= max) {
            return Err(QueueError::TooManyQueues { max }.into());
        }
        self.check_settings(&request.name, &settings).await?;
        let store = self.link.keys.store();
        let id = self.link.send(&store, redis::cmd("HINCRBY").arg(&store).arg("queues").arg(1), true).await?;
        let id = reply::text(id)?;
        // Whoever comes after us clears it away, should we not come as far as to its name.
        let trace = Trace { id: &id, name: request.name.as_str() };
        self.note_trace(&trace).await?;
        let mut args = Args::default();
        args.push(self.time_arg(now))
            .push(request.name.as_str())
            .number(self.next_version().await?)
            .push(json::write(&request.config).to_string());
        weights(&mut args, &settings);
        let keys = self.link.keys.queue(&id);
        // The queue first and its name after it: nobody finds one that is not all there.
        self.link.run(&self.link.scripts.queue_create, &keys, &args).await?;
        let mut args = Args::default();
        args.push(request.name.as_str()).push(id.as_str()).number(max);
        let both = [directory, self.link.keys.names()];
        let answer = reply::text(self.link.run(&self.link.scripts.directory_add, &both, &args).await?)?;
        if answer != "ok" {
            self.bury_queue(&trace).await?;
            let taken = QueueError::AlreadyExists(request.name.clone());
            return Err(if answer == "full" { QueueError::TooManyQueues { max } } else { taken }.into());
        }
        tidied(&request.name, self.forget_trace(&trace).await);
        self.as_it_is(&request.name).await
    }

    pub(crate) async fn update_queue(&self, now: Now, request: &UpdateQueue) -> Result<Queue, Fault> {
        let _lock = Lock::take(&self.link, self.token(), "queues").await?;
        let settings = request.config.over(&self.options.defaults);
        for _ in 0..LOOKS {
            let known = self.look(&request.name).await?.ok_or_else(|| QueueNotFound(request.name.clone()))?;
            let actual = known.queue.version;
            if let Some(expected) = request.expected.filter(|expected| *expected != actual) {
                return Err(QueueError::VersionMismatch { expected, actual }.into());
            }
            self.check_settings(&request.name, &settings).await?;
            let mut args = Args::default();
            args.push(self.time_arg(now))
                .push(known.stamp.as_str())
                .number(self.next_version().await?)
                .push(json::write(&request.config).to_string());
            weights(&mut args, &settings);
            if self
                .changed(&known, self.link.run(&self.link.scripts.queue_update, &known.keys, &args).await?)?
            {
                return self.as_it_is(&request.name).await;
            }
        }
        Err(Fault::Again(unavailable("the queue is changed all the time")))
    }

    pub(crate) async fn pause_queue(&self, now: Now, request: &PauseQueue) -> Result<Queue, Fault> {
        for _ in 0..LOOKS {
            let known = self.look(&request.name).await?.ok_or_else(|| QueueNotFound(request.name.clone()))?;
            let mut pauses = known.queue.pauses.clone();
            pauses.set(request.key.clone(), request.pause, self.clock(now).await?)?;
            let mut args = Args::default();
            args.push(self.time_arg(now))
                .push(known.stamp.as_str())
                .push(json::write_pauses(&pauses).to_string());
            pauses.keys.iter().for_each(|(key, pause)| {
                args.push(key_word(key)).push(paused_until(*pause));
            });
            if self
                .changed(&known, self.link.run(&self.link.scripts.queue_pause, &known.keys, &args).await?)?
            {
                return self.as_it_is(&request.name).await;
            }
        }
        Err(Fault::Again(unavailable("the queue is changed all the time")))
    }

    /// Whether a change was made; where not, somebody else was faster.
    fn changed(&self, known: &Known, answer: Value) -> Result<bool, Fault> {
        self.forget(&known.queue.name);
        Ok(Reply::of(answer)?.text()? == "ok")
    }

    /// A queue that was just changed. Where it cannot be read, now or in a moment, it was changed all the same.
    async fn as_it_is(&self, name: &QueueName) -> Result<Queue, Fault> {
        let known = self.link.again(|| self.look(name)).await.map_err(|fault| part_done(fault, 1))?;
        known.map(|known| known.queue.clone()).ok_or_else(|| QueueNotFound(name.clone()).into())
    }

    pub(crate) async fn delete_queue(&self, now: Now, request: &DeleteQueue) -> Result<(), Fault> {
        let _lock = Lock::take(&self.link, self.token(), "queues").await?;
        let known = self.look(&request.name).await?.ok_or_else(|| QueueNotFound(request.name.clone()))?;
        // Whoever comes after us clears it away, should we not come that far.
        let trace = Trace { id: &known.id, name: request.name.as_str() };
        self.note_trace(&trace).await?;
        let mut args = Args::default();
        args.push(self.time_arg(now)).flag(request.force);
        let mut answer =
            Reply::of(self.link.run(&self.link.scripts.queue_delete, &known.keys, &args).await?)?;
        match answer.text()?.as_str() {
            "full" => {
                self.forget_trace(&trace).await?;
                return Err(QueueError::NotEmpty { messages: answer.number()? }.into());
            }
            "gone" => return Err(QueueNotFound(request.name.clone()).into()),
            _ => {}
        }
        self.forget(&request.name);
        tidied(&request.name, self.clear(&trace).await);
        Ok(())
    }

    /// A queue that got no name.
    async fn bury_queue(&self, trace: &Trace<'_>) -> Result<(), Fault> {
        let [record, _] = self.link.keys.queue(trace.id);
        self.link.send(&record, redis::cmd("DEL").arg(&record), true).await?;
        self.clear(trace).await
    }

    /// Takes a name from a queue that is not there any more: its deletion came no further.
    async fn free_name(&self, name: &QueueName) -> Result<(), Fault> {
        let directory = self.link.keys.queues();
        let held = redis::cmd("HGET").arg(&directory).arg(name.as_str()).clone();
        match self.link.send(&directory, &held, false).await? {
            Value::Nil => Ok(()),
            id => self.let_name_go(&Trace { id: &reply::text(id)?, name: name.as_str() }).await,
        }
    }

    async fn let_name_go(&self, trace: &Trace<'_>) -> Result<(), Fault> {
        let mut args = Args::default();
        args.push(trace.name).push(trace.id);
        let keys = [self.link.keys.queues(), self.link.keys.names()];
        self.link.run(&self.link.scripts.directory_remove, &keys, &args).await?;
        Ok(())
    }

    /// Clears away what is left of a queue that is gone: its name, and whatever belonged to it.
    async fn clear(&self, trace: &Trace<'_>) -> Result<(), Fault> {
        self.let_name_go(trace).await?;
        let keys = self.link.keys.queue(trace.id);
        while reply::number(self.link.run(&self.link.scripts.queue_clear, &keys, &Args::default()).await?)?
            > 0
        {}
        self.forget_trace(trace).await
    }

    async fn note_trace(&self, trace: &Trace<'_>) -> Result<(), Fault> {
        let mut args = Args::default();
        args.push(trace.to_string());
        self.link.run(&self.link.scripts.trace_note, &[self.link.keys.gone()], &args).await?;
        Ok(())
    }

    async fn forget_trace(&self, trace: &Trace<'_>) -> Result<(), Fault> {
        let gone = self.link.keys.gone();
        self.link.send(&gone, redis::cmd("SREM").arg(&gone).arg(trace.to_string()), true).await?;
        Ok(())
    }

    /// Clears away what queues left whose creation or deletion came to no end.
    pub(crate) async fn clear_gone(&self) -> Result<(), Fault> {
        let gone = self.link.keys.gone();
        let traces = redis::cmd("SMEMBERS").arg(&gone).clone();
        if Reply::of(self.link.send(&gone, &traces, false).await?)?.len() == 0 {
            return Ok(());
        }
        // Somebody who is at it is left alone.
        let Some(_lock) = Lock::take_free(&self.link, self.token(), "queues").await? else { return Ok(()) };
        for trace in Reply::of(self.link.send(&gone, &traces, false).await?)?.texts()? {
            let Some((id, name)) = trace.split_once(' ') else { continue };
            let trace = Trace { id, name };
            let [record, _] = self.link.keys.queue(id);
            let there = self.link.send(&record, redis::cmd("EXISTS").arg(&record), false).await?;
            let directory = self.link.keys.queues();
            let named = redis::cmd("HGET").arg(&directory).arg(name).clone();
            let named = self.link.send(&directory, &named, false).await?;
            match (reply::number(there)? > 0, named != Value::Nil && reply::text(named)? == id) {
                (true, true) => self.forget_trace(&trace).await?,
                (true, false) => self.bury_queue(&trace).await?,
                (false, _) => self.clear(&trace).await?,
            }
        }
        Ok(())
    }

    pub(crate) async fn get_queue(&self, name: &QueueName) -> Result<Option<Queue>, Fault> {
        Ok(self.look(name).await?.map(|known| known.queue.clone()))
    }

    /// The names of queues, after the one given.
    pub(crate) async fn queue_names(
        &self,
        after: Option<&QueueName>,
        limit: usize,
    ) -> Result<Vec<QueueName>, Fault> {
        let names = self.link.keys.names();
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let command =
            redis::cmd("ZRANGEBYLEX").arg(&names).arg(from).arg("+").arg("LIMIT").arg(0).arg(limit).clone();
        let names = Reply::of(self.link.send(&names, &command, false).await?)?.texts()?;
        let read =
            |name: String| QueueName::new(name).map_err(|error| damaged("the name of a queue", error).into());
        names.into_iter().map(read).collect()
    }

    pub(crate) async fn list_queues(
        &self,
        after: Option<&QueueName>,
        limit: Limit,
    ) -> Result<Vec<Queue>, Fault> {
        let names = self.queue_names(after, limit.get()).await?;
        let looks = names.iter().map(|name| self.look(name));
        let found = futures::future::try_join_all(looks).await?;
        Ok(found.into_iter().flatten().map(|known| known.queue.clone()).collect())
    }

    /// Refuses settings that contradict each other, and dead letters that would go round in a circle.
    async fn check_settings(&self, name: &QueueName, settings: &QueueSettings) -> Result<(), Fault> {
        settings.check()?;
        let first = settings.dead_letter_to.clone();
        let mut next = first.clone();
        // A line longer than there may be queues goes round in a circle somewhere, with or without this queue.
        for _ in 0..self.options.limits.queues + 2 {
            let Some(target) = next else { return Ok(()) };
            if target == *name {
                break;
            }
            next = self.look(&target).await?.and_then(|known| known.settings.dead_letter_to.clone());
        }
        Err(QueueError::DeadLetterCycle(first.unwrap_or_else(|| name.clone())).into())
    }
}

/// What is to be cleared away behind a queue that has come or gone. Where that does not work, a sweeper does it: nobody is told that the queue
/// has not.
fn tidied(name: &QueueName, tidied: Result<(), Fault>) {
    if let Err(fault) = tidied {
        tracing::warn!(?fault, queue = %name, "what is to be cleared away stays for now");
    }
}

/// Whether keys have weights or pauses of their own.
pub(crate) fn key_settings(known: &Known) -> (bool, bool) {
    (known.settings.weights.iter().next().is_some(), !known.queue.pauses.keys.is_empty())
}
