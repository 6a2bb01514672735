//! Sentinels, which watch over a master and its replicas and agree on who takes the place of one that is lost.
//!
//! They are asked who the master is whenever a connection is made: what they said before counts as long as that connection does. One that
//! ends, or leads to a server that is no master, is given up, and they are asked again. A sentinel is taken at its word: whether the server
//! is the one of before, `greet.rs` asks that itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, RedisError, Value};

use crate::error::{Fault, unavailable, unreached};
use crate::link::Link;
use crate::options::Address;
use crate::reply::Reply;

/// How long one of them is waited for at most. There are others.
const PATIENCE: Duration = Duration::from_secs(1);

/// What sentinels said last.
#[derive(Debug, Default)]
pub(crate) struct Said {
    master: Mutex<Option<String>>,
    /// One asks for all who wait.
    asking: tokio::sync::Mutex<()>,
}

impl Said {
    fn master(&self) -> MutexGuard<'_, Option<String>> {
        self.master.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to that server was given up.
    pub(crate) fn forget(&self, address: &str) {
        let mut master = self.master();
        if master.as_deref() == Some(address) {
            *master = None;
        }
    }
}

impl Link {
    /// The master, as sentinels say.
    pub(crate) async fn said_master(&self) -> Result<String, Fault> {
        let known = self.said.master().clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let _turn = self.said.asking.lock().await;
        let known = self.said.master().clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let (address, authorities) = self.whom();
        let master = master_of(address, authorities).await?;
        // Whoever it was before is of no interest, and if it is once more, it is met anew.
        self.keep_only(&master);
        *self.said.master() = Some(master.clone());
        Ok(master)
    }
}

/// Asks one sentinel after the other for the address of the master.
pub(crate) async fn master_of(address: &Address, authorities: Option<&[u8]>) -> Result<String, Fault> {
    let mut last = Fault::Again(unavailable("the address names no sentinel"));
    for sentinel in &address.nodes {
        match said_by(address, sentinel, authorities).await {
            Ok(Some(master)) => return Ok(master),
            Ok(None) => last = Fault::Again(unavailable("no sentinel knows a master of that name")),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

/// Sentinels often want no password, and refuse who shows one; those that want one get that of the servers.
async fn said_by(
    address: &Address,
    sentinel: &str,
    authorities: Option<&[u8]>,
) -> Result<Option<String>, Fault> {
    let name = address.master.as_deref().unwrap_or_default();
    let client = |known| address.sentinel(sentinel, known, authorities);
    let mut answer = asked(client(false), name).await;
    if answer.as_ref().is_err_and(|error| error.code() == Some("NOAUTH")) {
        answer = asked(client(true), name).await;
    }
    match answer.map_err(|error| Fault::Again(unreached(error)))? {
        Value::Nil => Ok(None),
        place => {
            let mut place = Reply::of(place)?;
            let (host, port) = (place.text()?, place.number()?);
            Ok(Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }))
        }
    }
}

async fn asked(client: Result<Client, RedisError>, name: &str) -> Result<Value, RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let mut connection = client?.get_multiplexed_async_connection_with_config(&config).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    connection.send_packed_command(&command).await.and_then(Value::extract_error)
}
