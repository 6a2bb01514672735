//! A handler that does nothing, run by `Worker`, beside a bare `Consume` stream with the same credit.
//!
//! Both arms have the same producer, which keeps the queue from running dry, and take turns on one server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use redrive_client::{Client, Running, Worker};
use redrive_wire::v1;
use redrive_wire::v1::consume_request::Request;
use redrive_wire::v1::redrive_client::RedriveClient;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::Context;
use super::caller;
use super::measure::Stopwatch;
use super::process::Process;
use super::report::{Limit, Report};

const GROUP: &str = "worker";
/// How many messages are worked on at a time, in both arms.
const CREDIT: u32 = 64;
/// How many messages the producer is ahead at most.
const AHEAD: u64 = 512;
/// The share of the bare stream's rate that the worker must reach.
const RATE_MIN: f64 = 0.7;
/// How long one arm runs before it is the other's turn.
const SLICE: Duration = Duration::from_millis(500);
/// How long something may take before a bench gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// How many messages are done.
#[derive(Debug, Default)]
struct Done {
    messages: AtomicU64,
    more: Notify,
}

impl Done {
    fn add(&self, messages: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.more.notify_one();
    }

    /// Waits until so many are.
    async fn reach(&self, messages: u64) -> anyhow::Result<()> {
        while self.messages.load(Ordering::Relaxed) < messages {
            let more = tokio::time::timeout(PATIENCE, self.more.notified()).await;
            more.context("nothing is done")?;
        }
        Ok(())
    }
}

/// One arm: a queue, whoever empties it, and what it took.
struct Arm {
    name: &'static str,
    queue: String,
    done: Arc<Done>,
    enqueued: u64,
    cycles: u64,
    wall: Duration,
    cpu: Duration,
}

impl Arm {
    async fn new(api: &mut RedriveClient<Channel>, name: &'static str) -> anyhow::Result<Self> {
        let queue = format!("redrive-bench-{name}");
        api.create_queue(v1::CreateQueueRequest { name: queue.clone(), config: None }).await?;
        let (wall, cpu) = (Duration::ZERO, Duration::ZERO);
        Ok(Self { name, queue, done: Arc::default(), enqueued: 0, cycles: 0, wall, cpu })
    }

    /// Life cycles for a slice: all that was enqueued is done when it ends.
    async fn slice(
        &mut self,
        api: &mut RedriveClient<Channel>,
        process: &Process,
        body: &bytes::Bytes,
    ) -> anyhow::Result<()> {
        let (before, cpu, watch) = (self.enqueued, process.cpu()?, Stopwatch::start());
        while watch.elapsed() < SLICE {
            self.done.reach(self.enqueued.saturating_sub(AHEAD)).await?;
            let message = || v1::NewMessage { body: body.clone(), ..v1::NewMessage::default() };
            let messages = (0..CREDIT).map(|_| message()).collect();
            let request = v1::EnqueueRequest { queue: self.queue.clone(), messages, all_or_nothing: false };
            let answer = api.enqueue(request).await?.into_inner();
            if let Some(refused) = answer.results.iter().find(|result| !result.code.is_empty()) {
                bail!("not enqueued: {}: {}", refused.code, refused.detail);
            }
            self.enqueued += u64::from(CREDIT);
        }
        self.done.reach(self.enqueued).await?;
        self.cycles += self.enqueued - before;
        self.wall += watch.elapsed();
        self.cpu += process.cpu()?.saturating_sub(cpu);
        Ok(())
    }

    /// What happens only once is not measured.
    fn forget(&mut self) {
        (self.cycles, self.wall, self.cpu) = (0, Duration::ZERO, Duration::ZERO);
    }

    fn rate(&self) -> f64 {
        self.cycles as f64 / self.wall.as_secs_f64()
    }

    fn server_cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.cycles as f64
    }
}

/// A consumer that does nothing but ack what it gets, as fast as the stream goes.
async fn consume(url: &str, queue: &str, done: Arc<Done>) -> anyhow::Result<()> {
    let (requests, receiver) = mpsc::channel(4);
    let start = v1::ConsumeStart {
        queue: queue.to_owned(),
        credit: CREDIT,
        consumer: "redrive-bench".to_owned(),
        ..v1::ConsumeStart::default()
    };
    requests.send(v1::ConsumeRequest { request: Some(Request::Start(start)) }).await?;
    let mut answers = caller::connect(url).await?.consume(ReceiverStream::new(receiver)).await?.into_inner();
    tokio::spawn(async move {
        while let Ok(Some(answer)) = answers.message().await {
            done.add(answer.settled.iter().filter(|settled| settled.code.is_empty()).count() as u64);
            let acks: Vec<_> =
                answer.messages.into_iter().map(|message| v1::Ack { receipt: message.receipt }).collect();
            if acks.is_empty() {
                continue;
            }
            let settle = v1::ConsumeSettle { acks, ..v1::ConsumeSettle::default() };
            let request = v1::ConsumeRequest { request: Some(Request::Settle(settle)) };
            if requests.send(request).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// A worker whose handler does nothing.
fn work(url: &str, queue: &str, done: Arc<Done>) -> anyhow::Result<Running> {
    let worker = Worker::builder(queue).concurrency(CREDIT).consumer("redrive-bench");
    let worker = worker.handler(move |_: bytes::Bytes, _| {
        done.add(1);
        std::future::ready(())
    })?;
    Ok(Client::builder(url).build()?.run(worker))
}

pub(crate) async fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let slices = u64::try_from(context.arm.as_millis() / SLICE.as_millis()).unwrap_or(1).max(1);
    context.begin("worker", u64::from(context.rounds) * slices);
    let body = bytes::Bytes::from(vec![b'a'; context.body_bytes]);
    let mut ratios = Vec::new();
    for round in 1..=context.rounds {
        let dir = tempfile::tempdir_in(context.dir.path())?;
        let process = Process::serve(dir.path(), None)?;
        let mut api = caller::connect(&process.url()).await?;
        let mut stream = Arm::new(&mut api, "stream").await?;
        let mut worker = Arm::new(&mut api, "worker").await?;
        consume(&process.url(), &stream.queue, Arc::clone(&stream.done)).await?;
        let running = work(&process.url(), &worker.queue, Arc::clone(&worker.done))?;
        for slice in 0..=slices {
            for arm in [&mut stream, &mut worker] {
                arm.slice(&mut api, &process, &body).await?;
                if slice == 0 {
                    arm.forget();
                }
            }
            context.step();
        }
        running.shutdown().await?;
        let ratio = worker.rate() / stream.rate();
        for arm in [&stream, &worker] {
            let figures = [("cycles/s", arm.rate()), ("server cpu us", arm.server_cpu_us())];
            report.row(GROUP, arm.name, round, &figures);
        }
        ratios.push(ratio);
    }
    report.judge("worker_rate", &ratios, Limit::AtLeast(RATE_MIN));
    Ok(())
}
