//! Which server a connection has reached, and whether it is another one than before.
//!
//! A standby that is promoted begins a new timeline. It may have lost what the old primary had committed last, lease ids
//! among it, so that it would give out the same ones again. Therefore the database keeps which server it was last on: who
//! connects and finds another one there raises the epoch of lease ids and lets all numbers that are never given out twice
//! jump ahead. Every connection looks before it is used, so that nobody goes on with an old epoch on a new server.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::{ClientWrapper, Manager};
use redrive_store::StoreError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::durability::Promise;
use crate::error::{Fault, damaged};
use crate::sql::{Statement, Statements};

/// A connection and where it leads.
#[derive(Debug)]
pub(crate) struct Connection {
    client: ClientWrapper,
    pub(crate) place: Place,
}

impl Deref for Connection {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

/// The process that serves a connection, on its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The cluster and its timeline: the same after a crash, another one after a promotion. Where we may not know them,
    /// since when the server runs: then every restart counts as a promotion.
    pub(crate) history: String,
    pub(crate) pid: i32,
    /// When the process began, as numbers of processes are used again.
    pub(crate) began: i64,
}

/// Makes connections for the pool.
#[derive(Debug)]
pub(crate) struct Connector {
    manager: Manager,
    sql: Arc<Statements>,
    epoch: Arc<AtomicU16>,
    promise: Promise,
}

impl Connector {
    pub(crate) fn new(
        manager: Manager,
        sql: Arc<Statements>,
        epoch: Arc<AtomicU16>,
        promise: Promise,
    ) -> Self {
        Self { manager, sql, epoch, promise }
    }
}

impl managed::Manager for Connector {
    type Type = Connection;
    type Error = Fault;

    async fn create(&self) -> Result<Connection, Fault> {
        let client = self.manager.create().await.map_err(|error| Fault::of(error, false))?;
        let place = Place::of(&client, &self.sql).await?;
        let epoch = epoch(&client, &self.sql, &place.history).await?;
        self.epoch.fetch_max(epoch, Ordering::Relaxed);
        self.promise.renew(&*client).await.map_err(|error| Fault::of(error, false))?;
        Ok(Connection { client, place })
    }

    async fn recycle(&self, connection: &mut Connection, metrics: &Metrics) -> RecycleResult<Fault> {
        let recycled = self.manager.recycle(&mut connection.client, metrics).await;
        recycled.map_err(|error| RecycleError::message(error.to_string()))
    }

    fn detach(&self, connection: &mut Connection) {
        self.manager.detach(&mut connection.client);
    }
}

impl Place {
    async fn of(client: &Client, sql: &Statements) -> Result<Self, Fault> {
        let row = match first(client, &sql.server, &[]).await {
            // Some who run PostgreSQL for others keep this to themselves.
            Err(error) if hidden(&error) => first(client, &sql.server_hidden, &[]).await,
            answer => answer,
        };
        let row = row.map_err(|error| Fault::of(error, false))?;
        let row = row.ok_or_else(|| damaged("an answer", "there is no row"))?;
        let column = |error: tokio_postgres::Error| damaged("an answer", error);
        let history: Option<String> = row.try_get(0).map_err(column)?;
        let Some(history) = history else {
            // It may be behind, and what it says is not what is.
            return Err(Fault::Again(StoreError::Unavailable("the server is a standby".into())));
        };
        Ok(Self { history, pid: row.try_get(1).map_err(column)?, began: row.try_get(2).map_err(column)? })
    }
}

fn hidden(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::FEATURE_NOT_SUPPORTED, SqlState::UNDEFINED_FUNCTION]
        .iter()
        .any(|known| code == Some(known))
}

type Param<'a> = &'a (dyn ToSql + Sync);

async fn first(
    client: &Client,
    statement: &Statement,
    params: &[Param<'_>],
) -> Result<Option<Row>, tokio_postgres::Error> {
    let typed: Vec<(Param<'_>, Type)> = params.iter().copied().zip(statement.types.iter().cloned()).collect();
    Ok(client.query_typed(&statement.text, &typed).await?.into_iter().next())
}

/// The epoch of lease ids on this server, raised if the database was on another one before.
async fn epoch(client: &Client, sql: &Statements, history: &str) -> Result<u16, Fault> {
    let (mut before, mut epoch) = read(client, sql).await?;
    if before.is_none() {
        let params: [Param<'_>; 1] = [&history.as_bytes()];
        first(client, &sql.server_first, &params).await.map_err(|error| Fault::of(error, false))?;
        (before, epoch) = read(client, sql).await?;
    }
    if before.as_deref() == Some(history.as_bytes()) {
        return Ok(epoch);
    }
    client.batch_execute("BEGIN").await.map_err(|error| Fault::of(error, false))?;
    let raised = raise(client, sql, before.as_deref(), history).await?;
    // Whether this arrives or not, whoever connects next sees what became of it.
    client.batch_execute("COMMIT").await.map_err(|error| Fault::of(error, false))?;
    let (_, epoch) = read(client, sql).await?;
    if raised {
        tracing::warn!(
            history,
            epoch,
            "the database is another one than before: what the last one had not passed on is lost"
        );
    }
    Ok(epoch)
}

/// The server that the database was last on, and the epoch.
async fn read(client: &Client, sql: &Statements) -> Result<(Option<Vec<u8>>, u16), Fault> {
    let row = first(client, &sql.epoch_get, &[]).await.map_err(|error| Fault::of(error, false))?;
    let row = row.ok_or_else(|| damaged("an answer", "there is no row"))?;
    let column = |error: tokio_postgres::Error| damaged("shared", error);
    let epoch: Option<&[u8]> = row.try_get(1).map_err(column)?;
    let epoch: Option<[u8; 2]> = epoch.and_then(|epoch| epoch.try_into().ok());
    let epoch = epoch.ok_or_else(|| damaged("shared.epoch", "it is not 2 bytes long"))?;
    Ok((row.try_get(0).map_err(column)?, u16::from_be_bytes(epoch)))
}

/// Whether it was us who raised it: of all who see a new server, the first one does.
async fn raise(
    client: &Client,
    sql: &Statements,
    before: Option<&[u8]>,
    history: &str,
) -> Result<bool, Fault> {
    let failed = |error: tokio_postgres::Error| Fault::of(error, false);
    let params: [Param<'_>; 2] = [&before, &history.as_bytes()];
    if first(client, &sql.server_changed, &params).await.map_err(failed)?.is_none() {
        return Ok(false);
    }
    let (_, epoch) = read(client, sql).await?;
    // The last epoch does not end: tokens go on in it.
    let next = epoch.saturating_add(1).to_be_bytes();
    let params: [Param<'_>; 1] = [&&next[..]];
    first(client, &sql.epoch_put, &params).await.map_err(failed)?;
    first(client, &sql.numbers_jump, &[]).await.map_err(failed)?;
    first(client, &sql.stamps_renew, &[]).await.map_err(failed)?;
    first(client, &sql.logs_jump, &[]).await.map_err(failed)?;
    Ok(true)
}
