//! A store in a schema of its own, and a connection of an application beside it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use futures::stream::StreamExt;
use redrive_core::lease::ConsumerName;
use redrive_core::message::{Message, MessageId, State};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::time::Millis;
use redrive_store::{
    CreateQueue, ExpireRequest, Filter, Judged, LeaseRequest, Limit, ListRequest, Now, QueueStats, Store,
};
use redrive_store_postgres::{Durability, Options, PostgresStore};
use redrive_test_servers::shared_postgres_url;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, NoTls, Row};
use uuid::Uuid;

pub(crate) struct World {
    pub(crate) store: PostgresStore,
    pub(crate) sql: Client,
    pub(crate) schema: String,
    pub(crate) url: String,
    /// What the application's connection is told.
    pub(crate) told: Receiver<String>,
}

impl World {
    /// A store with an empty queue `orders`.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}, QueueConfig::default()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options), config: QueueConfig) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let url = tokio::task::spawn_blocking(shared_postgres_url).await.expect("a server");
        let schema = format!("Functions {} {}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let mut options = Options {
            durability: Durability::Any,
            schema: schema.clone(),
            connections: 4,
            ..Options::new(&url)
        };
        change(&mut options);
        let store = PostgresStore::open(options, [7; 32]).await.expect("it answers");
        let (sql, told) = connected(&url).await;
        let world = Self { store, sql, schema, url, told };
        world.create("orders", config).await;
        world
    }

    pub(crate) async fn create(&self, name: &str, config: QueueConfig) {
        let request = CreateQueue { name: queue(name), config };
        self.store.create_queue(Now::Store, request).await.expect("it answers");
    }

    /// A statement, with the schema in it that is meant.
    pub(crate) fn text(&self, statement: &str) -> String {
        statement.replace("redrive.", &format!("\"{}\".", self.schema))
    }

    pub(crate) async fn rows(&self, statement: &str, params: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        self.sql.query(&self.text(statement), params).await.expect("it answers")
    }

    pub(crate) async fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(&self, statement: &str) -> T {
        self.rows(statement, &[]).await.first().expect("a row").get(0)
    }

    pub(crate) async fn run(&self, statements: &str) {
        self.sql.batch_execute(&self.text(statements)).await.expect("it answers");
    }

    /// What a statement is refused with: the code and the message.
    pub(crate) async fn refused(&self, statement: &str) -> (String, String) {
        let error = self.sql.query(&self.text(statement), &[]).await.expect_err(statement);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}"));
        (error.code().code().to_owned(), error.message().to_owned())
    }

    /// The receipts of a claim, in order.
    pub(crate) async fn claim(&self, arguments: &str) -> Vec<String> {
        let rows = self.rows(&format!("SELECT receipt FROM redrive.claim({arguments})"), &[]).await;
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// The texts of the bodies that a claim hands out, in order.
    pub(crate) async fn claim_bodies(&self, arguments: &str) -> Vec<String> {
        let statement = format!("SELECT convert_from(body, 'UTF8') FROM redrive.claim({arguments})");
        self.rows(&statement, &[]).await.iter().map(|row| row.get(0)).collect()
    }

    /// What a settlement answers: `ack` or `nack`, with what follows the receipt.
    pub(crate) async fn settle(&self, verb: &str, receipt: &str, rest: &str) -> String {
        let rows = self.rows(&format!("SELECT redrive.{verb}($1{rest})"), &[&receipt]).await;
        rows.first().expect("a row").get(0)
    }

    pub(crate) async fn lease(&self, limit: usize) -> Vec<Message> {
        let mut request = LeaseRequest::new(
            queue("orders"),
            Limit::new(limit).expect("a good limit"),
            ConsumerName::default(),
            1,
        );
        request.time = Some(Millis::from_secs(60));
        self.store.lease(Now::Store, request).await.expect("it answers").messages
    }

    pub(crate) async fn expire(&self) -> Vec<Judged> {
        let request = ExpireRequest { queue: None, limit: Limit::MAX, error: None, seed: 1 };
        self.store.expire(Now::Store, request).await.expect("it answers")
    }

    /// The only message of the queue.
    pub(crate) async fn only(&self) -> Message {
        let mut all = self.all().await;
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    pub(crate) async fn all(&self) -> Vec<Message> {
        let mut all = Vec::new();
        let mut request = ListRequest::new(queue("orders"), Filter::default());
        loop {
            let page = self.store.list(Now::Store, request.clone()).await.expect("it answers");
            all.extend(page.messages);
            match page.next {
                Some(next) => request.after = Some(next),
                None => return all,
            }
        }
    }

    pub(crate) async fn get(&self, id: Uuid) -> Message {
        let id = MessageId::from_bytes(*id.as_bytes());
        self.store.get(&queue("orders"), id).await.expect("it answers").expect("it is there")
    }

    /// Nothing was lost and nothing came from nowhere.
    pub(crate) async fn audit(&self) -> QueueStats {
        let stats = self.store.stats(Now::Store, &queue("orders")).await.expect("it answers");
        let all = self.all().await;
        for state in State::ALL {
            let here = all.iter().filter(|message| message.state(stats.at) == state).count();
            assert_eq!(stats.states.of(state), here as u64, "{state}");
        }
        assert_eq!(stats.totals.expected_present(), Some(all.len() as u64));
        let holds: i64 = self.one("SELECT count(*) FROM redrive.hold").await;
        let counted: i64 = self.one("SELECT coalesce(sum(holds), 0)::bigint FROM redrive.tally").await;
        assert_eq!(holds, counted, "dedup keys");
        for table in ["content", "history", "failure"] {
            let orphans = format!(
                "SELECT count(*) FROM redrive.{table} t WHERE NOT EXISTS
                    (SELECT FROM redrive.message m WHERE m.no = t.no)"
            );
            assert_eq!(self.one::<i64>(&orphans).await, 0, "{table}");
        }
        stats
    }

    /// Everybody's lease has run out.
    pub(crate) async fn run_out(&self) {
        self.run("UPDATE redrive.message SET deadline = leased_at WHERE state = 2").await;
    }
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a good name")
}

/// A connection, and what it is told.
pub(crate) async fn connected(url: &str) -> (Client, Receiver<String>) {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.expect("it answers");
    let (tell, told) = sync_channel(100);
    tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(note) = message {
                tell.send(format!("{}: {}", note.channel(), note.payload())).expect("the test listens");
            }
        }
    });
    (client, told)
}
