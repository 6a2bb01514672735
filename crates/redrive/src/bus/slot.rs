//! Where the bus of a broker is: it is started when it is first used, and ended before its broker is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use redrive_broker::{Broker, BrokerError};
use redrive_bus::{Bus, BusBackground, BusConfig};
use redrive_store::{EntryKind, Limit};

use crate::error::Error;

/// A bus that may not have been started.
#[derive(Debug)]
pub(crate) struct Slot {
    state: tokio::sync::Mutex<State>,
    handling: Mutex<Handling>,
}

#[derive(Debug)]
enum State {
    /// Nobody has used it yet.
    Idle(Broker, BusConfig),
    Running(Bus, BusBackground),
    Closed,
}

/// Whose handlers are at work here, each with the number of its start.
#[derive(Debug, Default)]
struct Handling {
    starts: u64,
    by_name: HashMap<String, u64>,
}

impl Slot {
    /// A place for a bus. Where the store knows of topics or subscriptions, it is started at once: webhooks go on after a
    /// restart, whether anybody asks for the bus or not.
    pub(crate) async fn new(broker: Broker, config: BusConfig) -> Result<Self, Error> {
        // Whatever was ever set has left its mark there.
        let used = broker.store().registry_list(EntryKind::Topic, None, Limit::ONE).await?;
        let state = State::Idle(broker, config);
        let slot = Self { state: tokio::sync::Mutex::new(state), handling: Mutex::default() };
        if !used.is_empty() {
            slot.bus().await?;
        }
        Ok(slot)
    }

    /// The bus, started by now.
    pub(crate) async fn bus(&self) -> Result<Bus, Error> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Running(bus, _) => Ok(bus.clone()),
            State::Closed => Err(BrokerError::Stopping.into()),
            State::Idle(broker, config) => {
                let (bus, background) = Bus::start(broker.clone(), config.clone()).await?;
                *state = State::Running(bus.clone(), background);
                Ok(bus)
            }
        }
    }

    /// Ends it: handlers have a while, and what takes longer is given back.
    pub(crate) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state.lock().await, State::Closed);
        if let State::Running(_, background) = state {
            background.stop().await;
        }
    }

    fn handling(&self) -> MutexGuard<'_, Handling> {
        self.handling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a name for a handler; nothing where another one has it.
    pub(crate) fn claim(self: &Arc<Self>, name: &str) -> Option<Claim> {
        let mut handling = self.handling();
        if handling.by_name.contains_key(name) {
            return None;
        }
        handling.starts += 1;
        let start = handling.starts;
        handling.by_name.insert(name.to_owned(), start);
        Some(Claim { slot: Arc::clone(self), name: name.to_owned(), start, kept: false })
    }

    /// Whether the handler that was started then is still the one of that name.
    pub(crate) fn is_current(&self, name: &str, start: u64) -> bool {
        self.handling().by_name.get(name) == Some(&start)
    }

    /// Gives a name back.
    pub(crate) fn release(&self, name: &str) {
        self.handling().by_name.remove(name);
    }
}

/// A name that is taken. It is free again when this is dropped, unless it was kept.
#[derive(Debug)]
pub(crate) struct Claim {
    slot: Arc<Slot>,
    name: String,
    start: u64,
    kept: bool,
}

impl Claim {
    /// The handler is at work: it has its name until it is stopped. Answers the number of its start.
    pub(crate) fn keep(mut self) -> u64 {
        self.kept = true;
        self.start
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.kept {
            self.slot.release(&self.name);
        }
    }
}
