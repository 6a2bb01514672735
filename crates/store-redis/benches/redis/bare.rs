//! The bare loop: one stream, one consumer group, and nothing else.
//!
//! A batch is `XADD` for each message, all in one round trip; `XREADGROUP GROUP bench WORKER COUNT n STREAMS bare >`; then `XACK`
//! and `XDEL` with the entries that came, both in one round trip. Nothing is delayed, judged, counted or fair, and nobody
//! notices a worker that died.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands, Pipeline};

use crate::machine::Server;

/// What of the loop's rate the store must reach: a hundred at a time, and one at a time.
pub(crate) const BATCHES_MIN: f64 = 0.3;
pub(crate) const SINGLES_MIN: f64 = 0.6;

/// How both arms are connected.
pub(crate) const CONNECTIONS: &str = "one connection for all callers of an arm";

const STREAM: &str = "bare";
const GROUP: &str = "bench";

/// One worker of the loop. It reads under a name of its own, as each caller of the store does.
pub(crate) struct Bare {
    connection: MultiplexedConnection,
    worker: String,
}

impl Bare {
    /// Makes the stream anew.
    pub(crate) async fn fresh(server: &Server) {
        let mut connection = server.connection().await;
        let () = connection.del(STREAM).await.expect("it is gone");
        let () = connection.xgroup_create_mkstream(STREAM, GROUP, "0").await.expect("it is made");
    }

    pub(crate) async fn connect(server: &Server) -> Self {
        static WORKERS: AtomicUsize = AtomicUsize::new(0);
        let number = WORKERS.fetch_add(1, Ordering::Relaxed);
        Self { connection: server.connection().await, worker: format!("worker-{number}") }
    }

    pub(crate) async fn insert(&self, bodies: &[Bytes]) {
        let mut batch = Pipeline::with_capacity(bodies.len());
        for body in bodies {
            batch.xadd(STREAM, "*", &[("body", &body[..])]).ignore();
        }
        let () = batch.query_async(&mut self.connection.clone()).await.expect("it adds");
    }

    /// One life cycle of as many messages as there are bodies.
    pub(crate) async fn life_cycle(&self, bodies: &[Bytes]) {
        self.insert(bodies).await;
        let mut connection = self.connection.clone();
        let options = StreamReadOptions::default().group(GROUP, &self.worker).count(bodies.len());
        let read: Option<StreamReadReply> =
            connection.xread_options(&[STREAM], &[">"], &options).await.expect("it reads");
        let entries = read.into_iter().flat_map(|read| read.keys).flat_map(|stream| stream.ids);
        let ids: Vec<String> = entries.map(|entry| entry.id).collect();
        assert_eq!(ids.len(), bodies.len(), "what is there is handed out");
        let mut both = Pipeline::with_capacity(2);
        both.xack(STREAM, GROUP, &ids).xdel(STREAM, &ids);
        let gone: (usize, usize) = both.query_async(&mut connection).await.expect("it deletes");
        assert_eq!(gone, (ids.len(), ids.len()), "what was read is ours");
    }
}
