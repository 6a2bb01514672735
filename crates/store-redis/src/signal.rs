//! Signals: PUBLISH on one channel, which a cluster carries to all of its nodes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use redis::aio::PubSub;
use redrive_store::{Heard, Listener, Signal};
use redrive_store_shared::Pauses;
use tokio::time::timeout;

use crate::error::{Fault, unavailable, unreached};
use crate::link::Link;
use crate::store::Shared;

/// The first and the longest pause before it is tried again to listen.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// The name that no instance has.
pub(crate) const NOBODY: &str = "nobody";

impl Shared {
    /// Tells the other instances: who tells it, and the signals, a line each.
    pub(crate) async fn tell(&self, signals: &[Signal]) -> Result<(), Fault> {
        self.tell_as(&self.name, signals).await
    }

    /// The same in the name of somebody else, so that this instance hears it as well.
    pub(crate) async fn tell_as(&self, name: &str, signals: &[Signal]) -> Result<(), Fault> {
        if signals.is_empty() {
            return Ok(());
        }
        let mut text = name.to_owned();
        for signal in signals {
            text.push('\n');
            text.push_str(&signal.encode());
        }
        let channel = self.link.keys.signals();
        let key = self.link.keys.store();
        // Where its answer was lost it may have been heard, and to tell it again would be to tell it twice.
        self.link.send(&key, redis::cmd("PUBLISH").arg(&channel).arg(text), true).await?;
        Ok(())
    }
}

/// An instance that listens, on a connection of its own: nobody waits behind what it waits for.
pub(crate) struct Ear {
    link: Arc<Link>,
    name: String,
    listens: Option<PubSub>,
    heard: VecDeque<Signal>,
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ear").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Ear {
    pub(crate) fn new(link: Arc<Link>, name: String) -> Self {
        Self { link, name, listens: None, heard: VecDeque::new() }
    }

    async fn listen(&self) -> Result<PubSub, Fault> {
        let mut last = Fault::Again(unavailable("there is no node to listen to"));
        for node in self.link.entrances().await? {
            let listens = async {
                let mut listens = self.link.client(&node)?.get_async_pubsub().await.map_err(lost)?;
                listens.subscribe(self.link.keys.signals()).await.map_err(lost)?;
                Ok(listens)
            };
            let listens = timeout(self.link.patience.connection, listens).await;
            match listens.unwrap_or_else(|_| Err(Fault::Again(unavailable("a node does not answer")))) {
                Ok(listens) => return Ok(listens),
                Err(fault) => {
                    // It may be the master no more.
                    self.link.said.forget(&node);
                    last = fault;
                }
            }
        }
        Err(last)
    }

    /// Whether somebody is still there when nothing was heard for a while: to subscribe once more changes nothing, and is answered. A
    /// connection whose other end is gone without a word would be silent for ever.
    async fn is_heard(link: &Link, listens: &mut PubSub) -> bool {
        let answer = timeout(link.patience.connection, listens.subscribe(link.keys.signals())).await;
        matches!(answer, Ok(Ok(())))
    }

    /// What a message says, unless this instance has told it itself.
    fn take(&mut self, text: &str) {
        let mut lines = text.lines();
        if lines.next() != Some(self.name.as_str()) {
            self.heard.extend(lines.filter_map(Signal::decode));
        }
    }
}

fn lost(error: redis::RedisError) -> Fault {
    Fault::Again(unreached(error))
}

#[async_trait]
impl Listener for Ear {
    async fn hear(&mut self) -> Heard {
        let mut pauses = Pauses::new(PAUSES.0, PAUSES.1);
        loop {
            if let Some(signal) = self.heard.pop_front() {
                return Heard::Signal(signal);
            }
            if let Some(listens) = &mut self.listens {
                let message = timeout(self.link.patience.silence, listens.on_message().next()).await;
                match message.map(|message| message.map(|message| message.get_payload::<String>())) {
                    Ok(Some(Ok(text))) => self.take(&text),
                    // What is no text was told by nobody of us.
                    Ok(Some(Err(_))) => {}
                    Err(_) if Self::is_heard(&self.link, listens).await => {}
                    Ok(None) | Err(_) => self.listens = None,
                }
                continue;
            }
            match self.listen().await {
                Ok(listens) => {
                    self.listens = Some(listens);
                    return Heard::Lost;
                }
                Err(fault) => {
                    tracing::debug!(?fault, "nothing is heard of other instances");
                    pauses.wait().await;
                }
            }
        }
    }
}
