//! What a server or a cluster is, looked at without changing anything in it: a store that is opened writes down whom it met.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Value};
use redrive_core::time::Timestamp;
use redrive_store::{StoreError, Survives};

use crate::clock::read_time;
use crate::durability::Keeping;
use crate::error::{Fault, store_error, unavailable, unreached};
use crate::greet::{FORMAT, ask, info};
use crate::keys::{Keys, SLOTS, slot};
use crate::link::read_slots;
use crate::options::{Address, Options};
use crate::reply::{self, Reply};
use crate::sentinel::master_of;

/// What a server or a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The server, or the masters of a cluster.
    pub servers: Vec<Server>,
    /// How the cluster is, where it is one.
    pub cluster: Option<ClusterState>,
    /// What an answer survives, wherever it comes from.
    pub survives: Survives,
    /// Why that is less than the options ask for, and where.
    pub short: Option<String>,
    /// What is kept under the prefix that the options name.
    pub format: Format,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its host and port.
    pub place: String,
    /// The version, as it tells it.
    pub version: String,
    /// Whether it is a replica, on which nothing can be written.
    pub replica: bool,
    /// What time it is there.
    pub now: Timestamp,
    /// How many bytes it uses.
    pub memory: u64,
    /// How many it may use, where there is a limit.
    pub memory_max: Option<u64>,
    /// Whether it has a limit and throws keys away when that is reached.
    pub evicts: bool,
}

/// How a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterState {
    /// Whether it serves clients, by its own account.
    pub ok: bool,
    /// Slots that no node has.
    pub slots_missing: u16,
}

/// Whether what is kept can be read by this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// Nothing is there.
    Missing,
    /// It is the one of this version.
    Current(&'static str),
    /// It is another one.
    Other(String),
}

/// Looks at the server or the cluster that the options name.
pub async fn inspect(options: &Options) -> Result<Inspection, StoreError> {
    options.check().map_err(|wrong| StoreError::Unavailable(wrong.into()))?;
    let address = Address::parse(&options.url).map_err(|wrong| StoreError::Unavailable(wrong.into()))?;
    Visitor { options, address }.look().await.map_err(store_error)
}

/// Whoever looks, with connections that no call ever uses.
struct Visitor<'a> {
    options: &'a Options,
    address: Address,
}

impl Visitor<'_> {
    async fn look(&self) -> Result<Inspection, Fault> {
        let (seed, mut connection) = self.first().await?;
        let (places, cluster, keeper) = if self.address.cluster {
            self.cluster(&seed, &mut connection).await?
        } else {
            (vec![seed.clone()], None, seed)
        };
        let mut found = Inspection {
            servers: Vec::new(),
            cluster,
            survives: Survives::DiskLoss,
            short: None,
            format: Format::Missing,
        };
        for place in places {
            let mut connection = self.connect(&place).await?;
            let server = server(&place, &mut connection).await?;
            let keeping = Keeping::read(&mut connection).await?;
            found.survives = found.survives.min(keeping.survives());
            let short = keeping.short(self.options.durability, &place);
            found.short = found.short.or(short.map(|short| short.to_string()));
            if place == keeper && !server.replica {
                found.format = self.format(&mut connection).await?;
            }
            found.servers.push(server);
        }
        Ok(found)
    }

    async fn connect(&self, place: &str) -> Result<MultiplexedConnection, Fault> {
        let client = self.address.client(place, self.options.authorities.as_deref());
        let client = client.map_err(|error| Fault::Undone(unreached(error)))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.patience.connection))
            .set_response_timeout(Some(self.options.patience.answer));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        connection.map_err(|error| Fault::Again(unreached(error)))
    }

    /// The servers that the address names, or the one that sentinels name.
    async fn places(&self) -> Result<Vec<String>, Fault> {
        if self.address.master.is_none() {
            return Ok(self.address.nodes.clone());
        }
        Ok(vec![master_of(&self.address, self.options.authorities.as_deref()).await?])
    }

    /// The first of the nodes that answers.
    async fn first(&self) -> Result<(String, MultiplexedConnection), Fault> {
        let mut last = Fault::Again(unavailable("the address names no server"));
        for place in self.places().await? {
            match self.connect(&place).await {
                Ok(connection) => return Ok((place, connection)),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// The masters of a cluster, how it is, and which of them keeps the record of the store.
    async fn cluster(
        &self,
        seed: &str,
        connection: &mut MultiplexedConnection,
    ) -> Result<(Vec<String>, Option<ClusterState>, String), Fault> {
        let said = reply::text(ask(connection, redis::cmd("CLUSTER").arg("INFO")).await?)?;
        let slots = read_slots(seed, ask(connection, redis::cmd("CLUSTER").arg("SLOTS")).await?)?;
        let has: usize = slots.iter().map(|(first, end, _)| end + 1 - first).sum();
        let state = ClusterState {
            ok: info(&said, "cluster_state") == Some("ok"),
            slots_missing: SLOTS.saturating_sub(u16::try_from(has).unwrap_or(SLOTS)),
        };
        let record = usize::from(slot(&Keys::new(&self.options.prefix).store()));
        let keeper = slots.iter().find(|(first, end, _)| (*first..=*end).contains(&record));
        let keeper = keeper.map(|(_, _, place)| place.clone()).unwrap_or_default();
        let mut places: Vec<String> = slots.into_iter().map(|(_, _, place)| place).collect();
        places.sort_unstable();
        places.dedup();
        Ok((places, Some(state), keeper))
    }

    async fn format(&self, connection: &mut MultiplexedConnection) -> Result<Format, Fault> {
        let store = Keys::new(&self.options.prefix).store();
        Ok(match ask(connection, redis::cmd("HGET").arg(store).arg("format")).await? {
            Value::Nil => Format::Missing,
            other => match reply::text(other)? {
                format if format == FORMAT => Format::Current(FORMAT),
                format => Format::Other(format),
            },
        })
    }
}

async fn server(place: &str, connection: &mut MultiplexedConnection) -> Result<Server, Fault> {
    let said = reply::text(ask(connection, &redis::cmd("INFO")).await?)?;
    let number = |name: &str| info(&said, name).and_then(|number| number.parse::<u64>().ok());
    let memory_max = number("maxmemory").filter(|max| *max > 0);
    let keeps = info(&said, "maxmemory_policy").is_none_or(|policy| policy == "noeviction");
    Ok(Server {
        place: place.to_owned(),
        version: info(&said, "redis_version").unwrap_or("of an unknown version").to_owned(),
        replica: info(&said, "role") != Some("master"),
        memory: number("used_memory").unwrap_or_default(),
        memory_max,
        evicts: memory_max.is_some() && !keeps,
        now: read_time(Reply::of(ask(connection, &redis::cmd("TIME")).await?)?)?,
    })
}
