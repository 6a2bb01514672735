//! The stream on which messages are pushed and settled.
//!
//! Two tasks for each stream: one reads what the client says and settles, the other leases as much as there is credit
//! for and pushes it. A message counts against the credit from its push until it is settled here, or its lease has run
//! out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use redrive_broker::{Broker, Caller, LeaseCall};
use redrive_core::access::Use;
use redrive_core::time::Timestamp;
use redrive_store::Limit;
use redrive_wire::v1;
use redrive_wire::v1::consume_request::Request;
use tokio::sync::{Notify, mpsc};
use tonic::{Status, Streaming};

use super::{convert, status};

/// How long a client may take to say what it wants.
const START_TIME_MAX: Duration = Duration::from_mins(1);
/// Answers that wait for a client that reads slowly; then nothing more is leased for it.
const ANSWERS_MAX: usize = 16;

type Answer = Result<v1::ConsumeResponse, Status>;

/// What both tasks of a stream know.
#[derive(Debug)]
struct Window {
    /// How many messages may be unsettled at a time.
    credit: AtomicUsize,
    /// What is with the client: the deadline of each lease, by receipt.
    unsettled: Mutex<HashMap<String, u64>>,
    /// There may be more room.
    changed: Notify,
}

impl Window {
    fn unsettled(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many more messages may be pushed, or when the first of those that are out runs out.
    fn free(&self, now: Timestamp) -> Result<Limit, Option<Timestamp>> {
        let mut unsettled = self.unsettled();
        unsettled.retain(|_, deadline| *deadline > now.as_millis());
        let free = self.credit.load(Ordering::SeqCst).saturating_sub(unsettled.len());
        Limit::new(free.min(Limit::MAX.get()))
            .map_err(|_| unsettled.values().min().map(|deadline| Timestamp::from_millis(*deadline)))
    }
}

/// The task that reads and settles.
struct Settler {
    caller: Caller,
    window: Arc<Window>,
    answers: mpsc::Sender<Answer>,
}

/// Starts a stream: the first message says what is asked for.
pub(crate) async fn start(
    caller: Caller,
    mut requests: Streaming<v1::ConsumeRequest>,
) -> Result<mpsc::Receiver<Answer>, Status> {
    let first = first(&caller, &mut requests).await?;
    let Some(Request::Start(start)) = first else {
        return Err(Status::invalid_argument("the first message of the stream must be a start"));
    };
    let call = convert::consume(&start).map_err(|wrong| status::invalid(&wrong))?;
    let broker = caller.may(Use::Lease, &call.queue).map_err(status::error)?.clone();
    let consuming = caller.consume().map_err(status::error)?;
    // A queue that is not there is told at once.
    broker.get_queue(&call.queue).await.map_err(status::error)?;
    let (answers, receiver) = mpsc::channel(ANSWERS_MAX);
    let window = Arc::new(Window {
        credit: AtomicUsize::new(start.credit as usize),
        unsettled: Mutex::default(),
        changed: Notify::new(),
    });
    let pusher = caller.clone();
    let settler = Settler { caller: caller.clone(), window: Arc::clone(&window), answers: answers.clone() };
    let pushing = tokio::spawn(async move {
        tokio::select! {
            () = push(&pusher, &broker, call, &window, &answers) => {}
            () = answers.closed() => {}
            () = broker.stopped() => {}
        }
    });
    tokio::spawn(async move {
        match caller.cut() {
            None => settler.run(requests).await,
            Some(cut) => {
                let answers = settler.answers.clone();
                tokio::select! {
                    () = settler.run(requests) => {}
                    // Whoever is not let in any more is told why, if it still reads.
                    ended = cut => drop(answers.try_send(Err(status::error(ended)))),
                }
            }
        }
        drop(consuming);
        // What the client holds it settles elsewhere; nothing more is pushed to it.
        pushing.abort();
    });
    Ok(receiver)
}

/// What the client says first. It has no more time for it than it is let in.
async fn first(
    caller: &Caller,
    requests: &mut Streaming<v1::ConsumeRequest>,
) -> Result<Option<Request>, Status> {
    let said = tokio::time::timeout(START_TIME_MAX, requests.message());
    let said = match caller.cut() {
        None => said.await,
        Some(cut) => {
            tokio::select! {
                said = said => said,
                ended = cut => return Err(status::error(ended)),
            }
        }
    };
    let said = said.map_err(|_| Status::deadline_exceeded("the stream was not started in time"))?;
    Ok(said?.and_then(|request| request.request))
}

/// Pushes messages as they become ready, as many as there is room for.
async fn push(
    caller: &Caller,
    broker: &Broker,
    call: LeaseCall,
    window: &Window,
    answers: &mpsc::Sender<Answer>,
) {
    let wait = broker.config().poll_wait_max;
    loop {
        let changed = window.changed.notified();
        let limit = match window.free(broker.now()) {
            Ok(limit) => limit,
            Err(None) => {
                changed.await;
                continue;
            }
            Err(Some(deadline)) => {
                tokio::select! {
                    () = changed => {}
                    () = broker.until(deadline) => {}
                }
                continue;
            }
        };
        // Nothing is leased for a client that does not read.
        let Ok(room) = answers.reserve().await else { return };
        if let Err(ended) = caller.is_let_in() {
            return room.send(Err(status::error(ended)));
        }
        let deliveries = match broker.lease(LeaseCall { limit, wait, ..call.clone() }).await {
            Ok(deliveries) => deliveries,
            Err(error) => return room.send(Err(status::error(error))),
        };
        if deliveries.is_empty() {
            continue;
        }
        let messages: Vec<v1::Message> = deliveries.into_iter().map(convert::message).collect();
        window.unsettled().extend(messages.iter().map(|one| (one.receipt.clone(), one.deadline_ms)));
        room.send(Ok(v1::ConsumeResponse { messages, settled: Vec::new() }));
    }
}

impl Settler {
    async fn run(self, mut requests: Streaming<v1::ConsumeRequest>) {
        loop {
            let request = tokio::select! {
                request = requests.message() => request,
                () = self.answers.closed() => return,
                () = self.caller.stopped() => return,
            };
            // A client that has said all it has to say is done, and so is one that is gone.
            let Ok(Some(request)) = request else { return };
            if self.heed(request.request).await {
                return;
            }
        }
    }

    /// Does what the client says; answers whether the stream is over.
    async fn heed(&self, request: Option<Request>) -> bool {
        let answer = match request {
            Some(Request::Settle(settle)) => self.settle(settle).await,
            Some(Request::Credit(credit)) => match convert::credit(credit) {
                Ok(limit) => {
                    self.window.credit.store(limit.map_or(0, Limit::get), Ordering::SeqCst);
                    self.window.changed.notify_one();
                    return false;
                }
                Err(wrong) => Err(status::invalid(&wrong)),
            },
            Some(Request::Start(_)) => Err(Status::invalid_argument("the stream has started already")),
            None => Err(Status::invalid_argument("a message of the stream must say something")),
        };
        let failed = answer.is_err();
        self.answers.send(answer).await.is_err() || failed
    }

    async fn settle(&self, settle: v1::ConsumeSettle) -> Answer {
        let v1::ConsumeSettle { acks, nacks, extends, releases, buries } = settle;
        let nacked: Vec<String> = nacks.iter().map(|nack| nack.receipt.clone()).collect();
        let extended: Vec<String> = extends.iter().map(|extend| extend.receipt.clone()).collect();
        let given_back: Vec<String> = releases.iter().map(|release| release.receipt.clone()).collect();
        // All of it is read before any of it is done.
        let (nacks, extends) = (read(nacks, convert::nack)?, read(extends, convert::extend)?);
        let releases = read(releases, convert::release)?;
        let all = [&nacked, &extended, &given_back].into_iter().flatten().map(String::as_str);
        let all =
            all.chain(acks.iter().map(|ack| &*ack.receipt)).chain(buries.iter().map(|bury| &*bury.receipt));
        let broker = self.caller.may_settle(all).map_err(status::error)?;
        let mut settled = Vec::new();
        let receipts: Vec<String> = acks.into_iter().map(|ack| ack.receipt).collect();
        if !receipts.is_empty() {
            let answers = broker.ack(receipts.clone()).await.map_err(status::error)?;
            settled.extend(self.note(receipts, convert::settled(answers, convert::say_acked), true));
        }
        if !nacks.is_empty() {
            let answers = broker.nack(nacks).await.map_err(status::error)?;
            settled.extend(self.note(nacked, convert::settled(answers, convert::say_judged), true));
        }
        if !extends.is_empty() {
            let answers = broker.extend(extends).await.map_err(status::error)?;
            settled.extend(self.note(extended, convert::settled(answers, convert::say_extended), false));
        }
        if !releases.is_empty() {
            let answers = broker.release(releases).await.map_err(status::error)?;
            settled.extend(self.note(given_back, convert::settled(answers, convert::say_released), true));
        }
        if !buries.is_empty() {
            let receipts = buries.iter().map(|bury| bury.receipt.clone()).collect();
            let buries = buries.into_iter().map(convert::bury).collect();
            let answers = broker.bury(buries).await.map_err(status::error)?;
            settled.extend(self.note(receipts, convert::settled(answers, convert::say_judged), true));
        }
        Ok(v1::ConsumeResponse { messages: Vec::new(), settled })
    }

    /// Notes what is with the client no more, or for longer, and says which lease each answer is about.
    fn note(
        &self,
        receipts: Vec<String>,
        mut results: Vec<v1::SettleResult>,
        ends: bool,
    ) -> Vec<v1::SettleResult> {
        let mut unsettled = self.window.unsettled();
        for (receipt, result) in receipts.into_iter().zip(&mut results) {
            match result.deadline_ms {
                Some(deadline) => {
                    if let Some(known) = unsettled.get_mut(&receipt) {
                        *known = deadline;
                    }
                }
                // Also where it was not applied: the lease is not this client's any more.
                None if ends || !result.code.is_empty() => drop(unsettled.remove(&receipt)),
                None => {}
            }
            result.receipt = receipt;
        }
        drop(unsettled);
        self.window.changed.notify_one();
        results
    }
}

fn read<T, U>(
    items: Vec<T>,
    one: impl Fn(T) -> Result<U, redrive_core::invalid::Invalid>,
) -> Result<Vec<U>, Status> {
    items.into_iter().map(one).collect::<Result<_, _>>().map_err(|wrong| status::invalid(&wrong))
}
