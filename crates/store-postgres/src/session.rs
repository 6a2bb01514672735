//! Connections: a pool with a limit, answers that are not waited for for ever, and a transaction that is never left open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, Ordering};

use deadpool::Runtime;
use deadpool::managed::{Object, Pool};
use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod};
use redrive_core::time::Timestamp;
use redrive_store::{KnownClock, Now, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::clock::uptime;
use crate::doubt::Became;
use crate::durability::Promise;
use crate::error::{Fault, loses_connection};
use crate::options::{Options, Patience};
use crate::row::{millis, time};
use crate::server::{Connection, Connector, Place};
use crate::sql::{Statement, Statements, in_schema};
use crate::tls::connector;

/// What a parameter of a statement is.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// What connects an instance to its database.
#[derive(Debug)]
pub(crate) struct Link {
    pool: Pool<Connector>,
    pub(crate) sql: Arc<Statements>,
    schema: String,
    pub(crate) transaction_pooling: bool,
    pub(crate) patience: Patience,
    /// What begins a transaction.
    begin: String,
    /// The epoch of lease ids on the newest server that was seen.
    epoch: Arc<AtomicU16>,
    /// The upper half of all marks of this instance, and the lower half of the last one.
    marks: (u64, AtomicU64),
    /// The latest time seen: as this instance sees it, time never runs back.
    floor: AtomicI64,
    /// What time it is likely to be.
    pub(crate) clock: KnownClock,
    /// What an answer survives.
    pub(crate) promise: Promise,
}

impl Link {
    /// Connects nothing yet. `name` is what the instance is called among the others; the database said that it is `now`.
    pub(crate) fn new(
        options: &Options,
        name: Uuid,
        epoch: u16,
        now: Timestamp,
        promise: Promise,
    ) -> Result<Self, StoreError> {
        let mut config = options.config()?;
        let patience = options.patience;
        if !options.transaction_pooling {
            // Every statement has an index that serves it, and is planned once: a plan made while the tables were empty
            // must not be one that reads them whole.
            let ours = format!(
                "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off \
                 -c jit=off -c plan_cache_mode=force_generic_plan -c statement_timeout={} -c lock_timeout={} \
                 -c idle_in_transaction_session_timeout={} {}",
                patience.statement.as_millis(),
                patience.lock.as_millis(),
                patience.idle_in_transaction.as_millis(),
                config.get_options().unwrap_or_default()
            );
            config.options(ours);
        }
        // One host after the other may keep silent, and the last one is the right one.
        let connecting =
            patience.connection * u32::try_from(config.get_hosts().len() + 1).unwrap_or(u32::MAX);
        let manager = Manager::from_config(
            config,
            connector(options)?,
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let (sql, epoch) = (Arc::new(Statements::new(&options.schema)), Arc::new(AtomicU16::new(epoch)));
        let pool =
            Pool::builder(Connector::new(manager, Arc::clone(&sql), Arc::clone(&epoch), promise.clone()))
                .max_size(options.connections)
                .runtime(Runtime::Tokio1)
                .wait_timeout(Some(patience.connection))
                .create_timeout(Some(connecting))
                .build()
                .map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self {
            pool,
            sql,
            schema: options.schema.clone(),
            transaction_pooling: options.transaction_pooling,
            patience,
            begin: begin(options),
            epoch,
            marks: (name.as_u64_pair().0, AtomicU64::new(0)),
            floor: AtomicI64::new(0),
            clock: KnownClock::new(now, uptime),
            promise,
        })
    }

    /// A connection.
    pub(crate) async fn session(self: &Arc<Self>) -> Result<Session, Fault> {
        let client = Some(self.pool.get().await?);
        Ok(Session { client, link: Arc::clone(self), open: false, spoiled: AtomicBool::new(false) })
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
        let rows = session.begin_with(statement, params).await?;
        Ok((session, rows))
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
        self.clock.saw(now);
    }

    /// The time of a call as far as it is known before the database is asked.
    pub(crate) fn now_at_least(&self, now: Now) -> Timestamp {
        match now {
            Now::At(at) => at.max(self.seen()),
            Now::Store => self.clock.now().max(self.seen()),
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

    /// The epoch of lease ids. It is asked for while a connection is held: where that leads to a new server, it is known.
    pub(crate) fn epoch(&self) -> u16 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// A name for the next transaction.
    pub(crate) fn mark(&self) -> Uuid {
        Uuid::from_u64_pair(self.marks.0, self.marks.1.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Lets go of connections that nobody uses: they lead where one was just found to be of no use.
    fn distrust(&self) {
        drop(self.pool.retain(|_, _| false));
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// Behind a proxy that gives each transaction another connection, the limits are set for each transaction.
fn begin(options: &Options) -> String {
    if !options.transaction_pooling {
        return "BEGIN".to_owned();
    }
    let patience = &options.patience;
    format!(
        "BEGIN; SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {}",
        patience.statement.as_millis(),
        patience.lock.as_millis(),
        patience.idle_in_transaction.as_millis()
    )
}

/// The first column of the only row.
pub(crate) fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(rows: &[Row]) -> Result<T, Fault> {
    let row = rows.first().ok_or_else(|| crate::error::damaged("an answer", "there is no row"))?;
    Ok(row.try_get(0).map_err(|error| crate::error::damaged("an answer", error))?)
}

/// A connection, for as long as a call needs it.
pub(crate) struct Session {
    client: Option<Object<Connector>>,
    link: Arc<Link>,
    open: bool,
    /// Whether the connection must not be used again.
    spoiled: AtomicBool,
}

impl Session {
    pub(crate) fn client(&self) -> Result<&Connection, Fault> {
        let client = self.client.as_deref();
        client.ok_or_else(|| StoreError::Unavailable("the connection is gone".into()).into())
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Where it leads.
    pub(crate) fn place(&self) -> Result<&Place, Fault> {
        Ok(&self.client()?.place)
    }

    /// Begins a transaction with a statement; both go in one round trip.
    pub(crate) async fn begin_with(
        &mut self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Fault> {
        self.open = true;
        let (begun, rows) =
            futures::future::join(self.word(&self.link.begin, false), self.rows(statement, params)).await;
        begun?;
        rows
    }

    /// Carries out a statement within a transaction, or one that only reads.
    pub(crate) async fn rows(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        self.ask(statement, params, false).await
    }

    /// Carries out a statement that is a transaction of its own.
    pub(crate) async fn commit_rows(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Fault> {
        self.ask(statement, params, true).await
    }

    async fn ask(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
        committing: bool,
    ) -> Result<Vec<Row>, Fault> {
        let client = self.client()?;
        if self.link.transaction_pooling {
            let typed: Vec<(Param<'_>, Type)> =
                params.iter().copied().zip(statement.types.iter().cloned()).collect();
            return self.answer(client.query_typed(&statement.text, &typed), committing).await;
        }
        let prepared = self.prepared(statement).await?;
        self.answer(client.query(&prepared, params), committing).await
    }

    pub(crate) async fn prepared(&self, statement: &Statement) -> Result<tokio_postgres::Statement, Fault> {
        self.answer(self.client()?.prepare_typed_cached(&statement.text, statement.types), false).await
    }

    /// Carries out a statement whose text is made for the occasion.
    pub(crate) async fn rows_of(&self, text: &str, params: &[(Param<'_>, Type)]) -> Result<Vec<Row>, Fault> {
        self.answer(self.client()?.query_typed(text, params), false).await
    }

    /// Carries out a statement that answers nothing.
    async fn word(&self, text: &str, committing: bool) -> Result<(), Fault> {
        self.answer(self.client()?.batch_execute(text), committing).await
    }

    /// Waits for an answer for as long as one may take. A network that swallows it does not say so.
    pub(crate) async fn answer<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
        committing: bool,
    ) -> Result<T, Fault> {
        if self.client()?.is_closed() {
            // Nothing was sent.
            return Err(Fault::lost("the connection was closed", false));
        }
        match tokio::time::timeout(self.link.patience.answer, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                self.spoil(&error);
                Err(Fault::of(error, committing))
            }
            Err(_) => {
                self.spoiled.store(true, Ordering::Relaxed);
                self.link.distrust();
                Err(Fault::lost("the database did not answer in time", committing))
            }
        }
    }

    fn spoil(&self, error: &tokio_postgres::Error) {
        if loses_connection(error) {
            self.spoiled.store(true, Ordering::Relaxed);
        }
        // A primary of yesterday: whoever connects now finds the one of today, if the URL leads to it.
        if error.code() == Some(&tokio_postgres::error::SqlState::READ_ONLY_SQL_TRANSACTION) {
            self.link.distrust();
        }
    }

    /// Ends the transaction; what it did is there. Where the answer is lost, it is found out.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        self.commit_and_stay().await
    }

    /// The same, where more is to be done with the connection.
    pub(crate) async fn commit_and_stay(&mut self) -> Result<(), Fault> {
        let (mark, place) = (self.link.mark(), self.place()?.clone());
        match self.commit_with(mark).await {
            Err(Fault::Unknown(lost)) => {
                self.part();
                match self.link.became(&place, mark).await {
                    Some(Became::Committed { .. }) => Ok(()),
                    Some(Became::Undone) => Err(Fault::lost(lost, false)),
                    None => Err(Fault::Unknown(lost)),
                }
            }
            ended => {
                self.open = ended.is_err();
                ended
            }
        }
    }

    /// The mark and the commit go together, so that the one costs no time of its own. If the mark cannot be left, the
    /// commit undoes everything, and says nothing.
    async fn commit_with(&self, mark: Uuid) -> Result<(), Fault> {
        let params: [Param<'_>; 1] = [&mark];
        if self.link.transaction_pooling {
            self.rows(&self.link.sql.mark, &params).await?;
            return self.word("COMMIT", true).await;
        }
        // What is not prepared yet would be asked for behind the commit.
        let prepared = self.prepared(&self.link.sql.mark).await?;
        let marked = self.answer(self.client()?.query(&prepared, &params), true);
        let (marked, ended) = futures::future::join(marked, self.word("COMMIT", true)).await;
        marked.and(ended)
    }

    /// Ends a transaction that has only read. What it has read is right, whatever becomes of it.
    pub(crate) async fn end(mut self) {
        self.end_and_stay().await;
    }

    /// The same, where more is to be done with the connection.
    pub(crate) async fn end_and_stay(&mut self) {
        self.open = self.word("COMMIT", false).await.is_err();
    }

    /// Ends the transaction; nothing happened.
    pub(crate) async fn undo(mut self) -> Result<(), Fault> {
        self.word("ROLLBACK", false).await?;
        self.open = false;
        Ok(())
    }

    /// Lets go of the connection, which is of no use any more, before another one is asked for.
    pub(crate) fn part(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A transaction that was left open, because it failed or its caller went away, must not be the next caller's.
        if self.open || self.spoiled.load(Ordering::Relaxed) {
            self.part();
        }
    }
}
