//! The gate of the bus: whoever may do something with a topic or a subscription is handed the bus, and nobody else.

use redrive_broker::{Broker, BrokerError, Caller};
use redrive_core::access::{Deed, On, Right};

use crate::bus::Bus;
use crate::error::BusError;

/// Where APIs ask for the bus.
#[derive(Debug, Clone)]
pub struct BusGate(Bus);

impl BusGate {
    /// A gate before a bus.
    pub const fn new(bus: Bus) -> Self {
        Self(bus)
    }

    /// The bus, for who may do that; who may not is noted by the caller's own gate.
    pub fn may<'a>(
        &self,
        caller: &Caller,
        right: impl Right,
        on: impl Into<On<'a>>,
    ) -> Result<&Bus, BrokerError> {
        caller.may(right, on)?;
        Ok(&self.0)
    }

    /// Does what an operator does, if the caller may, and writes it down with what came of it.
    pub async fn act<'a, T>(
        &self,
        caller: &Caller,
        deed: Deed,
        on: impl Into<On<'a>>,
        work: impl AsyncFnOnce(Bus) -> Result<T, BusError>,
    ) -> Result<T, BusError> {
        caller.act(deed, on, async |_: Broker| work(self.0.clone()).await).await
    }
}
