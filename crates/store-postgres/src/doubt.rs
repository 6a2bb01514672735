//! What became of a commit whose answer was lost.
//!
//! Every transaction that writes leaves a mark, under a name that its instance made before. Who does not hear whether it
//! was committed asks for the mark on another connection. That a mark is there is an answer. That it is not is one only
//! when nothing can come after it: the process that served the lost connection must be gone, or the server be another one
//! by now, to whose history it can add nothing.
//!
//! Neither the ids of messages nor the number of the transaction would do. A message that was acknowledged meanwhile is
//! gone, and to send it again would make a second one of it. The number of a one-statement transaction is not known
//! before its answer, and after a crash or a promotion it may be another transaction's.
//!
//! Behind a proxy that gives each transaction another connection, the process is not known. Then only a mark that is
//! found says something.

use std::sync::Arc;
use std::time::Duration;

use redrive_store_shared::Pauses;
use uuid::Uuid;

use crate::error::Fault;
use crate::row::Columns;
use crate::server::Place;
use crate::session::Link;

/// The first and the longest pause between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

/// What became of a transaction.
#[derive(Debug)]
pub(crate) enum Became {
    /// It was committed. For an enqueue of one statement: when, and which items the queue had already, counted from 1.
    Committed { at: Option<i64>, repeated: Vec<i32> },
    /// It was undone, and will not be committed any more.
    Undone,
}

impl Link {
    /// What became of the transaction with that mark, whose connection led to that place. `None` where nobody can say
    /// within the time there is.
    pub(crate) async fn became(self: &Arc<Self>, place: &Place, mark: Uuid) -> Option<Became> {
        let known = tokio::time::timeout(self.patience.doubt, self.ask_until_known(place, mark)).await;
        if known.is_err() {
            tracing::warn!(%mark, "nobody could say in time what became of a commit");
        }
        known.ok()
    }

    async fn ask_until_known(self: &Arc<Self>, place: &Place, mark: Uuid) -> Became {
        let mut pauses = Pauses::new(PAUSES.0, PAUSES.1);
        loop {
            match self.ask(place, mark).await {
                Ok(Some(became)) => return became,
                Ok(None) => {}
                // The database may take a while to come back.
                Err(fault) => tracing::debug!(?fault, "what became of a commit cannot be asked yet"),
            }
            pauses.wait().await;
        }
    }

    async fn ask(self: &Arc<Self>, place: &Place, mark: Uuid) -> Result<Option<Became>, Fault> {
        let session = self.session().await?;
        // First whether it is over, then what became of it, or it could end between the two.
        let is_over = if session.place()?.history != place.history {
            true
        } else if self.transaction_pooling {
            false
        } else {
            session.rows(&self.sql.mark_end, &[&place.pid, &place.began]).await?.is_empty()
        };
        let rows = session.commit_rows(&self.sql.mark_find, &[&mark]).await?;
        let Some(row) = rows.first() else {
            return Ok(is_over.then_some(Became::Undone));
        };
        let mut from = Columns::from(row, 0);
        let at = from.take()?;
        Ok(Some(Became::Committed { at, repeated: from.take::<Option<Vec<i32>>>()?.unwrap_or_default() }))
    }
}
