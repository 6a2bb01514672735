//! Dead letters: a look at them, and the way back.

use bytes::Bytes;
use redrive_broker::{Broker, NewOperation, OperationId, Work};
use redrive_core::message::{Message, Note, State};
use redrive_store::{Filter, Limit, ListRequest};

use crate::error::Error;
use crate::open::Redrive;

/// A message that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id.
    pub id: String,
    /// What it says.
    pub body: Bytes,
    /// What kind of message it is.
    pub kind: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it was given up: `max_attempts`, `buried`, `expired_ttl`, `max_deliveries` or `not_reached`.
    pub reason: &'static str,
    /// What went wrong the last time.
    pub error: String,
    /// The same for all whose errors are alike.
    pub fingerprint: String,
}

/// Which dead letters are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All of the queue.
    All,
    /// These, at most a hundred.
    Ids(Vec<String>),
    /// Those whose error has this text in it.
    Error(String),
}

impl Which {
    pub(crate) fn filter(self) -> Result<Filter, Error> {
        let dead = Filter::state(State::Dead);
        Ok(match self {
            Self::All => dead,
            Self::Error(text) => Filter { error: Some(text), ..dead },
            Self::Ids(ids) => {
                let ids = ids.iter().map(|id| id.parse()).collect::<Result<_, _>>()?;
                Filter { ids, ..dead }
            }
        })
    }
}

impl Redrive {
    /// The dead letters of a queue, the oldest first, at most `limit` of them, which is 1 to 1000.
    pub async fn dead_letters(&self, queue: &str, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let mut request = ListRequest::new(queue.parse()?, Filter::state(State::Dead));
        request.limit = Limit::new(limit)?;
        let mut dead = Vec::new();
        loop {
            let page = self.broker().list(request.clone()).await?;
            dead.extend(page.messages.into_iter().filter_map(letter).take(limit - dead.len()));
            match page.next {
                Some(next) if dead.len() < limit => request.after = Some(next),
                _ => return Ok(dead),
            }
        }
    }

    /// Brings dead letters back: they are ready, with no attempt counted. Answers how many.
    pub async fn redrive(&self, queue: &str, which: Which) -> Result<u64, Error> {
        let new = NewOperation {
            queue: queue.parse()?,
            filter: which.filter()?,
            work: Work::Redrive { by: Note::new("this program")?, reason: Note::new("Redrive::redrive")? },
            rate: None,
        };
        let operation = self.broker().start_operation(new).await?;
        applied(self.broker(), operation.id).await
    }
}

/// Waits for the end of an operation. Answers how many messages it was applied to.
pub(crate) async fn applied(broker: &Broker, id: OperationId) -> Result<u64, Error> {
    // From here on the end of the operation is not missed.
    let mut events = broker.watch(None);
    loop {
        let operation = broker.operation(id).await?;
        if operation.state.is_ended() {
            return Ok(operation.progress.applied);
        }
        drop(events.next().await);
    }
}

fn letter(message: Message) -> Option<DeadLetter> {
    let death = message.progress.death()?;
    let (reason, fingerprint) = (death.reason.name(), death.fingerprint.to_string());
    Some(DeadLetter {
        id: message.spec.id.to_string(),
        body: message.spec.body.bytes().clone(),
        kind: message.spec.kind.as_str().to_owned(),
        attempts: message.progress.attempts,
        reason,
        error: message.history.last_error.map(|error| error.as_str().to_owned()).unwrap_or_default(),
        fingerprint,
    })
}
