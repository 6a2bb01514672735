//! The bare loop: a table, `FOR UPDATE SKIP LOCKED`, and nothing else. Its statements are in `sql/`.

use bytes::{BufMut, Bytes, BytesMut};
use futures::SinkExt;
use tokio_postgres::{Client, NoTls, Statement};

use crate::machine::{PLANS, Server};

/// What comes in front of the rows of a binary COPY, and behind them.
const COPY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const COPY_END: i16 = -1;

/// What of the loop's rate the store must reach: a hundred at a time, and one at a time.
pub(crate) const BATCHES_MIN: f64 = 0.5;
pub(crate) const SINGLES_MIN: f64 = 0.7;

/// How both arms are connected.
pub(crate) const CONNECTIONS: &str = "a connection for each caller at most";

/// One worker of the loop, on a connection of its own.
pub(crate) struct Bare {
    client: Client,
    insert: Statement,
    claim: Statement,
    delete: Statement,
    copy: Statement,
}

impl Bare {
    /// Makes the table anew.
    pub(crate) async fn fresh(server: &Server) {
        server.execute("DROP SCHEMA IF EXISTS bare CASCADE").await;
        server.execute(include_str!("sql/table.sql")).await;
    }

    pub(crate) async fn connect(server: &Server) -> Self {
        // The same aids to the planner as the store gives it: neither arm's plan should be one for an empty table.
        let mut config: tokio_postgres::Config = server.url().parse().expect("a good address");
        config.options(PLANS);
        let (client, connection) = config.connect(NoTls).await.expect("it connects");
        tokio::spawn(connection);
        let prepare = async |text: &str| client.prepare(text).await.expect("a good statement");
        Self {
            insert: prepare(include_str!("sql/insert.sql")).await,
            claim: prepare(include_str!("sql/claim.sql")).await,
            delete: prepare(include_str!("sql/delete.sql")).await,
            copy: prepare(include_str!("sql/copy.sql")).await,
            client,
        }
    }

    pub(crate) async fn insert(&self, bodies: &[Bytes]) {
        let bodies: Vec<&[u8]> = bodies.iter().map(|body| &body[..]).collect();
        self.client.execute(&self.insert, &[&bodies]).await.expect("it inserts");
    }

    /// One life cycle of as many messages as there are bodies.
    pub(crate) async fn life_cycle(&self, bodies: &[Bytes]) {
        self.insert(bodies).await;
        let limit = i64::try_from(bodies.len()).expect("a batch is small");
        let rows = self.client.query(&self.claim, &[&limit]).await.expect("it claims");
        assert_eq!(rows.len(), bodies.len(), "what is ready is handed out");
        let claimed: Vec<(i64, &[u8])> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let ids: Vec<i64> = claimed.iter().map(|(id, _)| *id).collect();
        let gone = self.client.execute(&self.delete, &[&ids]).await.expect("it deletes");
        assert_eq!(gone, ids.len() as u64, "what was claimed is ours");
    }

    pub(crate) async fn copy(&self, bodies: &[Bytes]) {
        let mut data = BytesMut::with_capacity(bodies.iter().map(|body| body.len() + 6).sum::<usize>() + 32);
        data.put_slice(COPY_HEAD);
        for body in bodies {
            data.put_i16(1);
            data.put_i32(i32::try_from(body.len()).expect("a body is small"));
            data.put_slice(body);
        }
        data.put_i16(COPY_END);
        let sink = self.client.copy_in(&self.copy).await.expect("it copies");
        let mut sink = std::pin::pin!(sink);
        sink.send(data.freeze()).await.expect("it takes the rows");
        sink.finish().await.expect("it has the rows");
    }
}
