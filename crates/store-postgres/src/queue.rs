//! Queues: create, update, delete, pause, and looking at them; and what an instance remembers of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::message::{MessageType, Source};
use redrive_core::queue::{Pause, Queue, QueueName, QueueSettings};
use redrive_core::time::Timestamp;
use redrive_store::{
    CreateQueue, DeleteQueue, Limit, Now, PauseQueue, QueueError, QueueNotFound, StoreError, UpdateQueue,
    json,
};
use tokio_postgres::Row;

use crate::error::{Fault, damaged};
use crate::row::{count, millis, time};
use crate::session::{Session, one};
use crate::store::Shared;
use crate::work::Lock;

/// A queue as an instance knows it. It is right as long as the queue's stamp is the same.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) id: i32,
    pub(crate) stamp: i64,
    pub(crate) queue: Queue,
    pub(crate) settings: QueueSettings,
    classes: Mutex<Classes>,
}

/// The pairs of type and source of a queue, and their numbers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Classes {
    by_id: HashMap<i32, (MessageType, Source)>,
    by_pair: HashMap<(MessageType, Source), i32>,
}

impl Classes {
    /// The pairs of a queue as they are.
    pub(crate) async fn read(session: &Session, queue: i32) -> Result<Self, Fault> {
        let rows = session.rows(&session.link().sql.class_get, &[&queue]).await?;
        let mut classes = Self::default();
        for row in rows {
            let column = |error: tokio_postgres::Error| damaged("a class", error);
            let (kind, source): (&str, &str) =
                (row.try_get(1).map_err(column)?, row.try_get(2).map_err(column)?);
            let broken = |error| damaged("a class", error);
            let pair = (MessageType::new(kind).map_err(broken)?, Source::new(source).map_err(broken)?);
            classes.add(row.try_get(0).map_err(column)?, pair);
        }
        Ok(classes)
    }

    pub(crate) fn pair(&self, id: i32) -> Option<&(MessageType, Source)> {
        self.by_id.get(&id)
    }

    pub(crate) fn id(&self, kind: &MessageType, source: &Source) -> Option<i32> {
        self.by_pair.get(&(kind.clone(), source.clone())).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn add(&mut self, id: i32, pair: (MessageType, Source)) {
        self.by_pair.insert(pair.clone(), id);
        self.by_id.insert(id, pair);
    }

    /// The numbers of those that pass.
    pub(crate) fn those(&self, passes: impl Fn(&MessageType, &Source) -> bool) -> Vec<i32> {
        self.by_id.iter().filter(|(_, (kind, source))| passes(kind, source)).map(|(id, _)| *id).collect()
    }
}

impl Known {
    pub(crate) fn read(row: &Row, defaults: &QueueSettings) -> Result<Self, StoreError> {
        let column = |error: tokio_postgres::Error| damaged("a queue", error);
        let name: &str = row.try_get(1).map_err(column)?;
        let broken = |problem: String| damaged(format!("the queue {name}"), problem);
        let version: i64 = row.try_get(3).map_err(column)?;
        let config = json::read(&row.try_get(5).map_err(column)?).map_err(broken)?;
        let queue = Queue {
            name: QueueName::new(name).map_err(|error| broken(error.to_string()))?,
            created_at: time(row.try_get(2).map_err(column)?),
            version: u64::try_from(version).unwrap_or_default(),
            pauses: json::read_pauses(&row.try_get(6).map_err(column)?).map_err(broken)?,
            config,
        };
        Ok(Self {
            id: row.try_get(0).map_err(column)?,
            stamp: row.try_get(4).map_err(column)?,
            settings: queue.config.over(defaults),
            queue,
            classes: Mutex::default(),
        })
    }

    /// Whether any fairness key has a weight or a pause of its own.
    pub(crate) fn has_key_settings(&self) -> bool {
        self.settings.weights.iter().next().is_some() || !self.queue.pauses.keys.is_empty()
    }

    pub(crate) fn classes(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the pairs of type and source again.
    pub(crate) async fn read_classes(&self, session: &Session) -> Result<(), Fault> {
        let classes = Classes::read(session, self.id).await?;
        *self.classes() = classes;
        Ok(())
    }

    /// The type and source of a class that was read.
    pub(crate) fn class(&self, id: i32) -> Result<(MessageType, Source), StoreError> {
        self.classes().pair(id).cloned().ok_or_else(|| damaged("class_id", format!("there is no class {id}")))
    }
}

impl Shared {
    /// A queue as it was when somebody last looked, or as it is.
    pub(crate) async fn known(&self, session: &Session, name: &QueueName) -> Result<Arc<Known>, Fault> {
        if let Some(known) = self.cache().get(name) {
            return Ok(Arc::clone(known));
        }
        self.look(session, name).await?.ok_or_else(|| QueueNotFound(name.clone()).into())
    }

    /// A queue as it is.
    pub(crate) async fn look(
        &self,
        session: &Session,
        name: &QueueName,
    ) -> Result<Option<Arc<Known>>, Fault> {
        let rows = session.rows(&self.link.sql.queue_get, &[&name.as_str()]).await?;
        let Some(row) = rows.first() else {
            self.cache().remove(name);
            return Ok(None);
        };
        let known = Arc::new(Known::read(row, &self.options.defaults)?);
        known.read_classes(session).await?;
        self.cache().insert(name.clone(), Arc::clone(&known));
        Ok(Some(known))
    }

    pub(crate) async fn create_queue(&self, now: Now, request: &CreateQueue) -> Result<Queue, Fault> {
        let (session, now) = self.link.begin(now).await?;
        self.lock(&session, Lock::Queues, 0).await?;
        let sql = &self.link.sql;
        if !session.rows(&sql.queue_get, &[&request.name.as_str()]).await?.is_empty() {
            return Err(QueueError::AlreadyExists(request.name.clone()).into());
        }
        let queues: i64 = one(&session.rows(&sql.queue_count, &[]).await?)?;
        if usize::try_from(queues).is_ok_and(|queues| queues >= self.options.limits.queues) {
            return Err(QueueError::TooManyQueues { max: self.options.limits.queues }.into());
        }
        let settings = request.config.over(&self.options.defaults);
        self.check_settings(&session, &request.name, &settings).await?;
        let params = (request.name.as_str(), millis(now), json::write(&request.config));
        let rows = session.rows(&sql.queue_insert, &[&params.0, &params.1, &params.2]).await?;
        let known = read_one(&rows, &self.options.defaults)?;
        self.write_keys(&session, &known).await?;
        session.commit().await?;
        Ok(known.queue)
    }

    pub(crate) async fn update_queue(&self, now: Now, request: &UpdateQueue) -> Result<Queue, Fault> {
        let (session, _) = self.link.begin(now).await?;
        self.lock(&session, Lock::Queues, 0).await?;
        let known = self.there(&session, &request.name).await?;
        let actual = known.queue.version;
        if let Some(expected) = request.expected.filter(|expected| *expected != actual) {
            return Err(QueueError::VersionMismatch { expected, actual }.into());
        }
        let settings = request.config.over(&self.options.defaults);
        self.check_settings(&session, &request.name, &settings).await?;
        let config = json::write(&request.config);
        let rows = session.rows(&self.link.sql.queue_update, &[&known.id, &config]).await?;
        let known = read_one(&rows, &self.options.defaults)?;
        self.write_keys(&session, &known).await?;
        session.commit().await?;
        self.cache().remove(&request.name);
        Ok(known.queue)
    }

    pub(crate) async fn pause_queue(&self, now: Now, request: &PauseQueue) -> Result<Queue, Fault> {
        let (session, now) = self.link.begin(now).await?;
        self.lock(&session, Lock::Queues, 0).await?;
        let known = self.there(&session, &request.name).await?;
        let mut pauses = known.queue.pauses.clone();
        pauses.set(request.key.clone(), request.pause, now)?;
        let pauses = json::write_pauses(&pauses);
        let rows = session.rows(&self.link.sql.queue_pause, &[&known.id, &pauses]).await?;
        let known = read_one(&rows, &self.options.defaults)?;
        self.write_keys(&session, &known).await?;
        session.commit().await?;
        self.cache().remove(&request.name);
        Ok(known.queue)
    }

    pub(crate) async fn delete_queue(&self, now: Now, request: &DeleteQueue) -> Result<(), Fault> {
        let (session, _) = self.link.begin(now).await?;
        let sql = &self.link.sql;
        self.lock(&session, Lock::Queues, 0).await?;
        let known = self.there(&session, &request.name).await?;
        // Whoever is enqueueing finishes first; whoever comes later finds no queue.
        session.rows(&sql.queue_own, &[&known.id]).await?;
        let messages: i64 = one(&session.rows(&sql.queue_present, &[&known.id]).await?)?;
        if messages > 0 && !request.force {
            return Err(QueueError::NotEmpty { messages: messages.unsigned_abs() }.into());
        }
        session.rows(&sql.queue_delete, &[&known.id]).await?;
        session.commit().await?;
        self.cache().remove(&request.name);
        Ok(())
    }

    pub(crate) async fn get_queue(&self, name: &QueueName) -> Result<Option<Queue>, Fault> {
        let session = self.link.session().await?;
        let rows = session.rows(&self.link.sql.queue_get, &[&name.as_str()]).await?;
        Ok(rows
            .first()
            .map(|row| Known::read(row, &self.options.defaults))
            .transpose()?
            .map(|known| known.queue))
    }

    pub(crate) async fn list_queues(
        &self,
        after: Option<&QueueName>,
        limit: Limit,
    ) -> Result<Vec<Queue>, Fault> {
        let session = self.link.session().await?;
        let (after, limit) = (after.map(QueueName::as_str), i64::try_from(limit.get()).unwrap_or(i64::MAX));
        let rows = session.rows(&self.link.sql.queue_list, &[&after, &limit]).await?;
        let read = |row| Ok(Known::read(row, &self.options.defaults)?.queue);
        rows.iter().map(read).collect()
    }

    async fn there(&self, session: &Session, name: &QueueName) -> Result<Known, Fault> {
        let rows = session.rows(&self.link.sql.queue_get, &[&name.as_str()]).await?;
        let row = rows.first().ok_or_else(|| QueueNotFound(name.clone()))?;
        Ok(Known::read(row, &self.options.defaults)?)
    }

    /// Refuses settings that contradict each other, and dead letters that would go round in a circle.
    async fn check_settings(
        &self,
        session: &Session,
        name: &QueueName,
        settings: &QueueSettings,
    ) -> Result<(), Fault> {
        settings.check()?;
        let first = settings.dead_letter_to.clone();
        let mut next = first.clone();
        // A line longer than there may be queues goes round in a circle somewhere, with or without this queue.
        for _ in 0..self.options.limits.queues + 2 {
            let Some(target) = next else { return Ok(()) };
            if target == *name {
                break;
            }
            let rows = session.rows(&self.link.sql.queue_get, &[&target.as_str()]).await?;
            next = match rows.first() {
                Some(row) => Known::read(row, &self.options.defaults)?.settings.dead_letter_to,
                None => None,
            };
        }
        Err(QueueError::DeadLetterCycle(first.unwrap_or_else(|| name.clone())).into())
    }

    /// Writes the weights and pauses of single keys to where a claim looks them up.
    async fn write_keys(&self, session: &Session, known: &Known) -> Result<(), Fault> {
        let mut keys: HashMap<&str, (i32, i64)> = HashMap::new();
        for (key, weight) in known.settings.weights.iter() {
            keys.entry(key.as_str()).or_insert((1, 0)).0 = count(weight.get());
        }
        for (key, pause) in &known.queue.pauses.keys {
            keys.entry(key.as_str()).or_insert((1, 0)).1 = paused_until(*pause);
        }
        let sql = &self.link.sql;
        session.rows(&sql.queue_keys_clear, &[&known.id]).await?;
        if keys.is_empty() {
            return Ok(());
        }
        let (names, settings): (Vec<&str>, Vec<(i32, i64)>) = keys.into_iter().unzip();
        let (weights, pauses): (Vec<i32>, Vec<i64>) = settings.into_iter().unzip();
        session.rows(&sql.queue_keys, &[&known.id, &names, &weights, &pauses]).await?;
        Ok(())
    }
}

fn paused_until(pause: Pause) -> i64 {
    pause.end().map_or(i64::MAX, |end: Timestamp| millis(end))
}

fn read_one(rows: &[Row], defaults: &QueueSettings) -> Result<Known, Fault> {
    let row = rows.first().ok_or_else(|| damaged("a queue", "it is gone though it was just written"))?;
    Ok(Known::read(row, defaults)?)
}
