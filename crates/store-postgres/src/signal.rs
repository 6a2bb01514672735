//! What instances tell each other, by LISTEN and NOTIFY.
//!
//! The channel has the name of the schema. A notification is a line `@` with the name of its sender, which then does not
//! listen to itself, and a line for each signal. The SQL functions send signals without a sender: everybody hears them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use redrive_store::{Heard, Listener, Signal, StoreError};
use redrive_store_shared::Pauses;
use tokio::sync::Notify;
use tokio_postgres::AsyncMessage;

use crate::error::{Fault, unreached};
use crate::options::Options;
use crate::store::Shared;
use crate::tls::connector;

/// PostgreSQL carries less than 8,000 bytes at a time.
const PAYLOAD_MAX: usize = 7_900;
/// Signals that were heard and not yet taken; whoever is slower misses some, and is told so.
const HEARD_MAX: usize = 1_024;
/// How long a listener waits before it connects again, at first and at most.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

impl Shared {
    pub(crate) async fn tell(&self, signals: &[Signal]) -> Result<(), Fault> {
        let session = self.link.session().await?;
        for payload in payloads(&self.name, signals) {
            session.rows(&self.link.sql.notify, &[&self.options.schema, &payload]).await?;
        }
        Ok(())
    }

    pub(crate) fn listen(&self) -> Hearing {
        let heard = Arc::new(Heap::default());
        let ear = Ear { options: self.options.clone(), name: self.name.clone(), heard: Arc::clone(&heard) };
        Hearing { heard, running: tokio::spawn(ear.run()) }
    }
}

fn payloads(sender: &str, signals: &[Signal]) -> Vec<String> {
    let head = format!("@{sender}");
    let mut all: Vec<String> = Vec::new();
    for signal in signals {
        let text = signal.encode();
        match all.last_mut().filter(|payload| payload.len() + 1 + text.len() <= PAYLOAD_MAX) {
            Some(payload) => {
                payload.push('\n');
                payload.push_str(&text);
            }
            None => all.push(format!("{head}\n{text}")),
        }
    }
    all
}

/// What a notification says to an instance of that name; nothing where it comes from itself.
fn signals<'p>(name: &str, payload: &'p str) -> impl Iterator<Item = Signal> + 'p {
    let own = payload.lines().next().and_then(|line| line.strip_prefix('@')) == Some(name);
    payload.lines().filter(move |_| !own).filter_map(Signal::decode)
}

/// What was heard and not yet taken.
#[derive(Debug, Default)]
struct Heap {
    state: Mutex<HeapState>,
    woken: Notify,
}

#[derive(Debug, Default)]
struct HeapState {
    signals: VecDeque<Signal>,
    /// Whether some in front of the first were missed.
    lost: bool,
}

impl Heap {
    fn lock(&self) -> MutexGuard<'_, HeapState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what was heard; the oldest makes room.
    fn add(&self, signals: impl Iterator<Item = Signal>) {
        let mut state = self.lock();
        for signal in signals {
            if state.signals.len() == HEARD_MAX {
                state.signals.pop_front();
                state.lost = true;
            }
            state.signals.push_back(signal);
        }
        self.woken.notify_one();
    }

    /// Anything may have been missed; what was heard before tells nothing more.
    fn lose(&self) {
        let mut state = self.lock();
        state.signals.clear();
        state.lost = true;
        self.woken.notify_one();
    }

    fn take(&self) -> Option<Heard> {
        let mut state = self.lock();
        if std::mem::take(&mut state.lost) {
            return Some(Heard::Lost);
        }
        state.signals.pop_front().map(Heard::Signal)
    }
}

/// A connection that listens, and is made again when it is cut.
struct Ear {
    options: Options,
    name: String,
    heard: Arc<Heap>,
}

impl Ear {
    async fn run(self) {
        let mut pauses = Pauses::new(RECONNECT.0, RECONNECT.1);
        loop {
            let mut is_listening = false;
            if let Err(error) = self.listen(&mut is_listening).await {
                tracing::warn!(%error, "the connection that listens to other instances was lost");
            }
            if is_listening {
                pauses = Pauses::new(RECONNECT.0, RECONNECT.1);
            }
            pauses.wait().await;
        }
    }

    /// Listens for as long as the connection lasts. An error is one of the connection.
    async fn listen(&self, is_listening: &mut bool) -> Result<(), StoreError> {
        let (client, mut connection) =
            self.options.config()?.connect(connector(&self.options)?).await.map_err(unreached)?;
        let channel = format!("LISTEN \"{}\"", self.options.schema.replace('"', "\"\""));
        let mut messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
        let mut listening = std::pin::pin!(client.batch_execute(&channel));
        loop {
            tokio::select! {
                listens = &mut listening, if !*is_listening => {
                    listens.map_err(unreached)?;
                    *is_listening = true;
                    // From here on nothing is missed; before, anything was.
                    self.heard.lose();
                }
                message = messages.next() => match message {
                    Some(Ok(AsyncMessage::Notification(heard))) => {
                        self.heard.add(signals(&self.name, heard.payload()));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(unreached(error)),
                    None => return Ok(()),
                },
            }
        }
    }
}

/// One who listens.
#[derive(Debug)]
pub(crate) struct Hearing {
    heard: Arc<Heap>,
    running: tokio::task::JoinHandle<()>,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.running.abort();
    }
}

#[async_trait]
impl Listener for Hearing {
    async fn hear(&mut self) -> Heard {
        loop {
            if let Some(heard) = self.heard.take() {
                return heard;
            }
            self.heard.woken.notified().await;
        }
    }
}
