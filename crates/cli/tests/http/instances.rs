//! Several processes on one store, while some of them are killed and stopped.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redrive_core::dice::Dice;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::ledger::{Fate, Ledger};
use crate::server::Server;
use crate::shared::{Kept, SharedStore, eventually, on_every_store};

const MESSAGES: usize = 20_000;
const CONSUMERS_PER_INSTANCE: usize = 16;
const ATTEMPTS_MAX: u64 = 3;
/// So many messages a consumer puts aside, most of them until their leases have run out.
const LATE_MAX: usize = 8;

/// What consumers share.
struct Work {
    origins: [String; 2],
    client: Client,
    ledger: Ledger,
    over: AtomicBool,
}

/// A consumer at one of the instances. It goes to the other one when that does not answer.
struct Consumer {
    number: usize,
    home: usize,
    work: Arc<Work>,
    dice: Dice,
    /// What it put aside, and will try to ack much later.
    late: Vec<Value>,
}

impl Consumer {
    async fn run(mut self) {
        while !self.work.over.load(Ordering::SeqCst) {
            self.work_off().await;
        }
        let late = std::mem::take(&mut self.late);
        self.settle("ack", (Fate::Acked, Fate::PerhapsAcked), late).await;
    }

    async fn work_off(&mut self) {
        let request = json!({"limit": 25, "consumer": format!("c{}", self.number), "wait_ms": 1_000});
        // A lease whose answer was lost runs out.
        let Some(answer) = self.post("/v1/queues/jobs/lease", &request).await else { return };
        let late = if self.late.len() > LATE_MAX { std::mem::take(&mut self.late) } else { Vec::new() };
        let (mut acks, mut nacks) = (late, Vec::new());
        for message in answer["messages"].as_array().unwrap() {
            self.work.ledger.leased(message);
            match self.dice.between(0, 99) {
                0..78 => acks.push(message.clone()),
                78..92 => nacks.push(message.clone()),
                92..96 => self.late.push(message.clone()),
                _ => {}
            }
        }
        self.settle("ack", (Fate::Acked, Fate::PerhapsAcked), acks).await;
        self.settle("nack", (Fate::Nacked, Fate::PerhapsNacked), nacks).await;
    }

    /// Settles and, where the answer was lost, asks again elsewhere.
    async fn settle(&mut self, verb: &str, (applied, perhaps): (Fate, Fate), messages: Vec<Value>) {
        if messages.is_empty() {
            return;
        }
        let items: Vec<Value> =
            messages.iter().map(|message| json!({"receipt": message["receipt"]})).collect();
        let (path, request) = (format!("/v1/leases/{verb}/batch"), json!({"items": items}));
        let mut asked_before = false;
        let answer = loop {
            match self.post(&path, &request).await {
                Some(answer) => break answer,
                None => asked_before = true,
            }
        };
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.len(), messages.len());
        for (message, result) in messages.iter().zip(results) {
            // After a nack somebody else may have had it, and acked it.
            let gone: &[&str] = if verb == "ack" { &["NOT_FOUND"] } else { &["LEASE_LOST", "NOT_FOUND"] };
            let fate = match result["code"].as_str() {
                None if result["ok"] == true => applied,
                Some(code) if asked_before && gone.contains(&code) => perhaps,
                Some("NOT_FOUND" | "LEASE_LOST") => Fate::Refused,
                _ => panic!("{verb}: {result}"),
            };
            self.work.ledger.settled(message, fate);
        }
    }

    /// What was answered; nothing where the instance is gone.
    async fn post(&mut self, path: &str, body: &Value) -> Option<Value> {
        let url = format!("{}{path}", self.work.origins[self.home]);
        let answered =
            async { self.work.client.post(url).json(body).send().await?.error_for_status()?.json().await };
        match answered.await {
            Ok(answer) => Some(answer),
            Err(error) => {
                assert!(self.home == 0 && error.status().is_none(), "only the killed one may fail: {error}");
                self.home = 1;
                None
            }
        }
    }
}

async fn enqueue_all(instances: [&Server; 2]) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for batch in 0..MESSAGES / 1_000 {
        let messages: Vec<Value> = (0..1_000)
            .map(|n| json!({"body": n.to_string(), "fairness_key": format!("k{}", n % 7)}))
            .collect();
        let path = "/v1/queues/jobs/messages/batch";
        let answer = instances[batch % 2].post(path, json!({"messages": messages})).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let results = answer.body["results"].as_array().unwrap();
        ids.extend(results.iter().map(|result| result["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(ids.len(), MESSAGES);
    ids
}

on_every_store!(
    a_killed_instance_loses_nothing_and_doubles_nothing,
    a_sweeper_that_was_stopped_ends_no_lease_that_it_should_not,
);

/// Two instances, 16 consumers at each, 20,000 messages; one instance, which sweeps, is killed midway.
async fn a_killed_instance_loses_nothing_and_doubles_nothing<S: SharedStore>() {
    let store = S::new().await;
    let mut killed = store.instance(&[]);
    let held = eventually("the first one sweeps", async || store.sweeper().await).await;
    let left = store.instance(&[]);
    let retry = json!({"max_attempts": ATTEMPTS_MAX, "base_delay_ms": 20, "max_delay_ms": 200});
    killed.create("jobs", json!({"lease_timeout_ms": 3_000, "retry": retry})).await;
    killed.create("unattended", json!({})).await;
    left.enqueue("unattended", json!({"body": "x"})).await;
    let ids = enqueue_all([&killed, &left]).await;

    let work = Arc::new(Work {
        origins: [killed.url(""), left.url("")],
        client: left.client.clone(),
        ledger: Ledger::new(),
        over: AtomicBool::new(false),
    });
    let consumers: Vec<_> = (0..2 * CONSUMERS_PER_INSTANCE)
        .map(|number| {
            let (work, dice) = (Arc::clone(&work), Dice::seeded(number as u64));
            tokio::spawn(Consumer { number, home: number % 2, work, dice, late: Vec::new() }.run())
        })
        .collect();
    work.ledger.acked(MESSAGES as u64 / 3).await;
    let unattended = killed.lease("unattended", json!({"lease_ms": 100})).await;
    assert_eq!(store.sweeper().await.unwrap().token, held.token, "the one that sweeps is killed");
    killed.kill();

    // Nobody asks for this queue: only a sweeper ends its lease.
    eventually("another one sweeps", async || store.sweeper().await.filter(|lock| lock.token != held.token))
        .await;
    eventually("the lease in the other queue ends", async || {
        (left.count("unattended", "leased").await == 0).then_some(())
    })
    .await;
    left.post("/v1/leases/ack", json!({"receipt": unattended[0]["receipt"]}))
        .await
        .refused(409, "LEASE_LOST");

    let states = eventually("all is acked or dead", async || {
        let states = left.stats("jobs").await["states"].clone();
        ["ready", "delayed", "leased"].iter().all(|state| states[state] == 0).then_some(states)
    })
    .await;
    work.over.store(true, Ordering::SeqCst);
    for consumer in consumers {
        consumer.await.unwrap();
    }
    let dead = left.get("/v1/queues/jobs/messages/export").await.text;
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let dead: BTreeSet<String> = dead.lines().map(id).collect();
    let seen = work.ledger.seen();
    eprintln!("{seen:?}, dead {}", dead.len());
    assert!(
        seen.nacked > 0 && seen.left > 0 && seen.refused > 0,
        "consumers did all that they can do: {seen:?}"
    );
    work.ledger.check(&ids, &dead, ATTEMPTS_MAX);

    assert_eq!(states["dead"], dead.len());
    let whole = left.stats("jobs").await;
    let total = |verb: &str| whole["totals"][verb].as_u64().unwrap_or_default();
    let (all, dead) = (MESSAGES as u64, dead.len() as u64);
    assert_eq!((total("enqueue"), total("ack"), total("died")), (all, all - dead, dead), "{whole}");
    assert!(total("ack") >= seen.acked && total("ack") <= seen.acked + seen.unknown, "{whole}");
    let ends: u64 = ["ack", "nack", "release", "expire"].map(total).iter().sum();
    assert_eq!(total("lease"), ends, "every lease has ended once: {whole}");
    // The dead, and the one in the other queue.
    let messages = i64::try_from(dead).unwrap() + 1;
    assert_eq!(
        store.kept().await,
        Kept { messages, bodies: messages, leases: 0 },
        "a message that is gone leaves nothing behind, and neither does a lease"
    );
}

/// A sweeper that was stopped for longer than its lock lives goes on with the step that it was at.
async fn a_sweeper_that_was_stopped_ends_no_lease_that_it_should_not<S: SharedStore>() {
    const LEASES: u64 = 400;
    let store = S::new().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow.toml");
    // One lease at a step: it is stopped in the midst of them.
    std::fs::write(&path, "requeue_batch_size = 1\n").unwrap();
    let stopped = store.instance(&["--config", path.to_str().unwrap()]);
    let held = eventually("the first one sweeps", async || store.sweeper().await).await;
    let other = store.instance(&[]);
    other.create("jobs", json!({"retry": {"max_attempts": 9, "base_delay_ms": 0, "jitter": "none"}})).await;
    let messages: Vec<Value> = (0..LEASES).map(|n| json!({"body": n.to_string()})).collect();
    let enqueued = other.post("/v1/queues/jobs/messages/batch", json!({"messages": messages})).await;
    assert_eq!(enqueued.status, 200);
    let first = stopped.lease("jobs", json!({"limit": LEASES, "lease_ms": 500})).await;
    assert_eq!(first.len() as u64, LEASES);
    let expired = async || other.stats("jobs").await["totals"]["expire"].as_u64().unwrap_or_default();
    eventually("it sweeps", async || (expired().await > 3).then_some(())).await;
    stopped.signal("STOP");
    assert!(expired().await < LEASES, "it was stopped in the midst of it");

    let taken = eventually("another one sweeps", async || {
        store.sweeper().await.filter(|lock| lock.token != held.token)
    })
    .await;
    eventually("all leases have ended", async || (expired().await == LEASES).then_some(())).await;
    let second = other.lease("jobs", json!({"limit": LEASES, "lease_ms": 600_000})).await;
    assert_eq!(second.len() as u64, LEASES);

    stopped.signal("CONT");
    assert_eq!(stopped.get("/readyz").await.status, 200);
    // Meanwhile the stopped one has gone on for several of its rounds.
    let before = store.sweeper().await.unwrap();
    eventually("the lock is renewed by who has it", async || {
        let lock = store.sweeper().await.unwrap();
        assert_eq!(lock.token, taken.token, "the lock stays with who has it");
        (lock.version != before.version).then_some(())
    })
    .await;
    assert_eq!(expired().await, LEASES, "no lease was ended twice, and none too early");
    let ack = async |server: &Server, leased: &[Value]| {
        let items: Vec<Value> = leased.iter().map(|message| json!({"receipt": message["receipt"]})).collect();
        let answer = server.post("/v1/leases/ack/batch", json!({"items": items})).await;
        let results = answer.body["results"].as_array().unwrap();
        results.iter().filter(|result| result["ok"] == true).count() as u64
    };
    assert_eq!(ack(&stopped, &first).await, 0, "what has ended stays ended");
    assert_eq!(ack(&stopped, &second).await, LEASES, "what is current stays current");
}
