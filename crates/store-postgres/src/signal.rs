//! What instances tell each other, by LISTEN and NOTIFY.
//!
//! The channel has the name of the schema. A notification is a line `@` with the name of its sender, which then does not
//! listen to itself, and a line for each signal. The SQL functions send signals without a sender: everybody hears them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use redrive_store::{Heard, Listener, Signal};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::error::Fault;
use crate::options::Options;
use crate::store::Shared;

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
        let (told, heard) = mpsc::channel(HEARD_MAX);
        let lost = Arc::new(Lost { told: AtomicBool::new(false), woken: Notify::new() });
        let ear = Ear { options: self.options.clone(), name: self.name.clone(), told, lost: Arc::clone(&lost) };
        let running = tokio::spawn(ear.run());
        Hearing { heard, lost, running }
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

#[derive(Debug)]
struct Lost {
    told: AtomicBool,
    woken: Notify,
}

impl Lost {
    fn tell(&self) {
        self.told.store(true, Ordering::Release);
        self.woken.notify_one();
    }
}

/// A connection that listens, and is made again when it is cut.
struct Ear {
    options: Options,
    name: String,
    told: mpsc::Sender<Signal>,
    lost: Arc<Lost>,
}

impl Ear {
    async fn run(self) {
        let mut wait = RECONNECT.0;
        while !self.told.is_closed() {
            match self.listen().await {
                Ok(()) => wait = RECONNECT.0,
                Err(error) => {
                    tracing::warn!(%error, "the connection that listens to other instances was lost");
                    wait = (wait * 2).min(RECONNECT.1);
                }
            }
            tokio::select! {
                () = pause(wait) => {}
                () = self.told.closed() => {}
            }
        }
    }

    /// Listens for as long as the connection lasts. An error is one of the connection.
    async fn listen(&self) -> Result<(), tokio_postgres::Error> {
        let (client, mut connection) = tokio_postgres::connect(&self.options.url, NoTls).await?;
        let channel = format!("LISTEN \"{}\"", self.options.schema.replace('"', "\"\""));
        let mut messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
        let mut listening = std::pin::pin!(client.batch_execute(&channel));
        let mut is_listening = false;
        loop {
            tokio::select! {
                listens = &mut listening, if !is_listening => {
                    listens?;
                    is_listening = true;
                    // From here on nothing is missed; before, anything was.
                    self.lost.tell();
                }
                message = messages.next() => match message {
                    Some(Ok(AsyncMessage::Notification(heard))) => self.heard(heard.payload()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                },
                () = self.told.closed() => return Ok(()),
            }
        }
    }

    fn heard(&self, payload: &str) {
        for signal in signals(&self.name, payload) {
            if self.told.try_send(signal).is_err() {
                self.lost.tell();
            }
        }
    }
}

/// Waits before the next connection.
#[expect(clippy::disallowed_methods, reason = "a server that is down gives no signal when it is back")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// One who listens.
#[derive(Debug)]
pub(crate) struct Hearing {
    heard: mpsc::Receiver<Signal>,
    lost: Arc<Lost>,
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
            if self.lost.told.swap(false, Ordering::AcqRel) {
                return Heard::Lost;
            }
            tokio::select! {
                biased;
                signal = self.heard.recv() => match signal {
                    Some(signal) => return Heard::Signal(signal),
                    // The task only ends with this.
                    None => std::future::pending().await,
                },
                () = self.lost.woken.notified() => {}
            }
        }
    }
}
