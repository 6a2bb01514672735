//! Connections: a pool with a limit, and a transaction that is never left open.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use redrive_core::time::Timestamp;
use redrive_store::{Now, StoreError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, Row};

use crate::error::Fault;
use crate::options::Options;
use crate::row::{millis, time};
use crate::sql::{Statement, Statements, in_schema};

/// How long a call waits for a connection before it says that the store is busy.
const CONNECTION_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

/// What a parameter of a statement is.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// What connects an instance to its database.
#[derive(Debug)]
pub(crate) struct Link {
    pool: Pool,
    pub(crate) sql: Statements,
    schema: String,
    transaction_pooling: bool,
    /// The latest time seen: as this instance sees it, time never runs back.
    floor: AtomicI64,
}

impl Link {
    pub(crate) fn new(options: &Options) -> Result<Self, StoreError> {
        let unusable = |error: tokio_postgres::Error| StoreError::Unavailable(error.into());
        let mut config: tokio_postgres::Config = options.url.parse().map_err(unusable)?;
        config.application_name("redrive").connect_timeout(CONNECTION_WAIT);
        if !options.transaction_pooling && config.get_options().is_none() {
            // Every statement has an index that serves it, and is planned once: a plan made while the tables were empty
            // must not be one that reads them whole.
            config.options(
                "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off \
                 -c jit=off -c plan_cache_mode=force_generic_plan",
            );
        }
        let manager =
            Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager)
            .max_size(options.connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECTION_WAIT))
            .create_timeout(Some(CONNECTION_WAIT))
            .build()
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self {
            pool,
            sql: Statements::new(&options.schema),
            schema: options.schema.clone(),
            transaction_pooling: options.transaction_pooling,
            floor: AtomicI64::new(0),
        })
    }

    /// A connection.
    pub(crate) async fn session(self: &Arc<Self>) -> Result<Session, Fault> {
        Ok(Session { client: Some(self.pool.get().await?), link: Arc::clone(self), open: false })
    }

    /// A connection with a transaction under way, and what time it is in it.
    pub(crate) async fn begin(self: &Arc<Self>, now: Now) -> Result<(Session, Timestamp), Fault> {
        let (at, floor) = self.time(now);
        let (session, clock) = self.begin_with(&self.sql.clock, &[&at, &floor]).await?;
        let now = time(one(&clock)?);
        self.saw(now);
        Ok((session, now))
    }

    /// A connection with a transaction under way, and what its first statement answered; both go in one round trip.
    pub(crate) async fn begin_with(
        self: &Arc<Self>,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<(Session, Vec<Row>), Fault> {
        let mut session = self.session().await?;
        session.open = true;
        let client = session.client()?;
        let first = session.rows(statement, params);
        let (begun, rows) = futures::future::join(client.batch_execute("BEGIN"), first).await;
        begun.map_err(|error| Fault::of(error, false))?;
        Ok((session, rows?))
    }

    /// Whether statements can be prepared ahead, and COPY be used.
    pub(crate) fn keeps_connections(&self) -> bool {
        !self.transaction_pooling
    }

    /// The time of a call, and the earliest that it may be.
    pub(crate) fn time(&self, now: Now) -> (Option<i64>, i64) {
        let at = match now {
            Now::At(at) => Some(millis(at)),
            Now::Store => None,
        };
        (at, self.floor.load(Ordering::Relaxed))
    }

    /// It was that time.
    pub(crate) fn saw(&self, now: Timestamp) {
        self.floor.fetch_max(millis(now), Ordering::Relaxed);
    }

    /// The time of a call as far as it is known before the database is asked.
    pub(crate) fn now_at_least(&self, now: Now) -> Timestamp {
        match now {
            Now::At(at) => at.max(self.seen()),
            Now::Store => self.seen(),
        }
    }

    /// The latest time seen.
    pub(crate) fn seen(&self) -> Timestamp {
        time(self.floor.load(Ordering::Relaxed))
    }

    /// A piece of SQL, with the schema in it that is meant.
    pub(crate) fn in_schema(&self, text: &str) -> String {
        in_schema(text, &self.schema)
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// The first column of the only row.
pub(crate) fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(rows: &[Row]) -> Result<T, Fault> {
    let row = rows.first().ok_or_else(|| crate::error::damaged("an answer", "there is no row"))?;
    Ok(row.try_get(0).map_err(|error| crate::error::damaged("an answer", error))?)
}

/// A connection, for as long as a call needs it.
pub(crate) struct Session {
    client: Option<Object>,
    link: Arc<Link>,
    open: bool,
}

impl Session {
    pub(crate) fn client(&self) -> Result<&Object, Fault> {
        self.client.as_ref().ok_or_else(|| StoreError::Unavailable("the connection is gone".into()).into())
    }

    pub(crate) fn connection(&self) -> &Object {
        self.client.as_ref().expect("a session has a connection until it ends")
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Carries out a statement within a transaction, or one that only reads.
    pub(crate) async fn rows(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        self.ask(statement, params).await.map_err(|error| Fault::of(error, false))
    }

    /// Carries out a statement that is a transaction of its own.
    pub(crate) async fn commit_rows(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Fault> {
        self.ask(statement, params).await.map_err(|error| Fault::of(error, true))
    }

    async fn ask(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let client = self.connection();
        if self.link.transaction_pooling {
            let typed: Vec<(Param<'_>, Type)> =
                params.iter().copied().zip(statement.types.iter().cloned()).collect();
            return client.query_typed(&statement.text, &typed).await;
        }
        let prepared = client.prepare_typed_cached(&statement.text, statement.types).await?;
        client.query(&prepared, params).await
    }

    /// Carries out a statement whose text is made for the occasion.
    pub(crate) async fn rows_of(&self, text: &str, params: &[(Param<'_>, Type)]) -> Result<Vec<Row>, Fault> {
        self.client()?.query_typed(text, params).await.map_err(|error| Fault::of(error, false))
    }

    /// Ends the transaction; what it did is there.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        self.client()?.batch_execute("COMMIT").await.map_err(|error| Fault::of(error, true))?;
        self.open = false;
        Ok(())
    }

    /// Ends the transaction; nothing happened.
    pub(crate) async fn undo(mut self) -> Result<(), Fault> {
        self.client()?.batch_execute("ROLLBACK").await.map_err(|error| Fault::of(error, false))?;
        self.open = false;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A transaction that was left open, because it failed or its caller went away, must not be the next caller's.
        if self.open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}
