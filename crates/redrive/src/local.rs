//! A worker's line to a broker in the same process.
//!
//! One task for each line: it leases as much as there is credit for, and settles. A message counts against the credit from
//! when it is handed out until it is settled, or its lease has run out, as on a server's stream.

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::BoxFuture;
use hashbrown::HashMap;
use redrive_broker::{
    Broker, BrokerError, Bury, Delivery, Extend, LeaseCall, Nack, Release, Settlement, Target,
};
use redrive_client::{Ask, Heard, LeaseError, Line, Refusal, Say, Settle, Settled, Transport, Verdict};
use redrive_core::message::{Checkpoint, ErrorText};
use redrive_core::policy::{Asked, Verdict as Judgement};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{CreateQueue, Judged, Limit, QueueError};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::convert;

/// What may wait on a line, each way.
const WAITING_MAX: usize = 16;

/// The way to a broker in this process.
#[derive(Debug)]
pub(crate) struct Local {
    broker: Broker,
}

impl Local {
    pub(crate) fn new(broker: Broker) -> Self {
        Self { broker }
    }

    async fn call(&self, ask: &Ask) -> Result<LeaseCall, BrokerError> {
        if self.broker.is_stopping() {
            return Err(BrokerError::Stopping);
        }
        let call = convert::ask(ask)?;
        ensure_queue(&self.broker, &call.queue).await?;
        Ok(call)
    }
}

/// Makes a queue that is not there, where queues come into being by being used.
pub(crate) async fn ensure_queue(broker: &Broker, name: &QueueName) -> Result<(), BrokerError> {
    match broker.get_queue(name).await {
        Err(BrokerError::Queue(QueueError::NotFound(_))) if broker.config().auto_create => {
            let request = CreateQueue { name: name.clone(), config: QueueConfig::default() };
            match broker.create_queue(request).await {
                // Somebody else was quicker.
                Err(BrokerError::Queue(QueueError::AlreadyExists(_))) => Ok(()),
                created => created.map(drop),
            }
        }
        found => found.map(drop),
    }
}

#[async_trait]
impl Transport for Local {
    async fn consume(&self, ask: &Ask) -> Result<Line, LeaseError> {
        let call = self.call(ask).await.map_err(|error| convert::refused(&error))?;
        let (say, says) = mpsc::channel(WAITING_MAX);
        let (tell, heard) = mpsc::channel(WAITING_MAX);
        let server = Server {
            broker: self.broker.clone(),
            call,
            credit: ask.credit as usize,
            unsettled: HashMap::new(),
            tell,
        };
        tokio::spawn(server.run(says));
        Ok(Line { say, heard: ReceiverStream::new(heard).boxed() })
    }
}

type Leasing = BoxFuture<'static, Result<Vec<Delivery>, BrokerError>>;

/// The broker's end of a line.
struct Server {
    broker: Broker,
    call: LeaseCall,
    credit: usize,
    /// What is with the worker: the deadline of each lease, by receipt.
    unsettled: HashMap<String, u64>,
    tell: mpsc::Sender<Result<Heard, LeaseError>>,
}

impl Server {
    async fn run(mut self, mut says: mpsc::Receiver<Say>) {
        let mut leasing: Option<Leasing> = None;
        let broker = self.broker.clone();
        loop {
            let free = self.free();
            leasing = match free {
                Ok(limit) => Some(leasing.unwrap_or_else(|| self.lease(limit))),
                // A lease that is dropped is finished all the same, and what it was handed is given back.
                Err(_) => None,
            };
            let heard = tokio::select! {
                biased;
                say = says.recv() => match say {
                    None => return,
                    Some(Say::Credit(credit)) => {
                        self.credit = credit as usize;
                        // It may have asked for more than there is room for now.
                        leasing = None;
                        continue;
                    }
                    Some(Say::Settle(settles)) => self.settle(settles).await,
                },
                () = broker.stopped() => return,
                leased = wait(leasing.as_mut()) => {
                    leasing = None;
                    leased.map(|deliveries| self.hand_out(deliveries))
                }
                () = room(&broker, free) => continue,
            };
            let failed = heard.is_err();
            let heard = heard.map_err(|error| convert::refused(&error));
            if self.tell.send(heard).await.is_err() || failed {
                return;
            }
        }
    }

    /// How many more messages may be handed out, or when the first of those that are out runs out.
    fn free(&mut self) -> Result<Limit, Option<Timestamp>> {
        let now = self.broker.now().as_millis();
        self.unsettled.retain(|_, deadline| *deadline > now);
        let free = self.credit.saturating_sub(self.unsettled.len()).min(Limit::MAX.get());
        Limit::new(free).map_err(|_| self.unsettled.values().min().map(|end| Timestamp::from_millis(*end)))
    }

    fn lease(&self, limit: Limit) -> Leasing {
        let (broker, wait) = (self.broker.clone(), self.broker.config().poll_wait_max);
        let call = LeaseCall { limit, wait, ..self.call.clone() };
        Box::pin(async move { broker.lease(call).await })
    }

    fn hand_out(&mut self, deliveries: Vec<Delivery>) -> Heard {
        let messages: Vec<_> = deliveries.into_iter().map(convert::message).collect();
        self.unsettled.extend(messages.iter().map(|message| (message.receipt.clone(), message.deadline_ms)));
        Heard { messages, settled: Vec::new() }
    }

    async fn settle(&mut self, settles: Vec<Settle>) -> Result<Heard, BrokerError> {
        let mut batch = Batch::default();
        settles.into_iter().try_for_each(|settle| batch.add(settle))?;
        let settled = batch.carry_out(&self.broker).await?;
        for one in &settled {
            match (one.refusal, one.deadline_ms) {
                (None, Some(deadline)) => {
                    self.unsettled.entry_ref(one.receipt.as_str()).and_modify(|known| *known = deadline);
                }
                _ => drop(self.unsettled.remove(&one.receipt)),
            }
        }
        Ok(Heard { messages: Vec::new(), settled })
    }
}

/// Returns when a lease has run out, where there is no room before.
async fn room(broker: &Broker, free: Result<Limit, Option<Timestamp>>) {
    match free {
        Err(Some(end)) => broker.until(end).await,
        Ok(_) | Err(None) => std::future::pending().await,
    }
}

async fn wait(leasing: Option<&mut Leasing>) -> Result<Vec<Delivery>, BrokerError> {
    match leasing {
        Some(leasing) => leasing.await,
        None => std::future::pending().await,
    }
}

/// Settlements, each kind by itself.
#[derive(Default)]
struct Batch {
    acks: Vec<String>,
    nacks: Vec<Nack>,
    extends: Vec<(String, Extend)>,
    releases: Vec<(String, Release)>,
    buries: Vec<Bury>,
}

impl Batch {
    fn add(&mut self, settle: Settle) -> Result<(), BrokerError> {
        match settle {
            Settle::Ack { receipt } => self.acks.push(receipt),
            Settle::Nack { receipt, error, delay: asked } => {
                let asked = asked.map(convert::delay).map_or(Asked::Nothing, Asked::AtLeast);
                self.nacks.push(Nack { receipt, asked, error: ErrorText::new(error), checkpoint: None });
            }
            Settle::Extend { receipt, time, checkpoint } => {
                let checkpoint = checkpoint.map(Checkpoint::new).transpose()?;
                let target = Target::Receipt(receipt.clone());
                self.extends
                    .push((receipt, Extend { target, time: Some(convert::millis(time)), checkpoint }));
            }
            Settle::Release { receipt, delay: asked } => {
                let target = Target::Receipt(receipt.clone());
                self.releases.push((receipt, Release { target, delay: asked.map(convert::delay) }));
            }
            Settle::Bury { receipt, reason } => {
                self.buries.push(Bury { receipt, error: ErrorText::new(reason) });
            }
        }
        Ok(())
    }

    async fn carry_out(self, broker: &Broker) -> Result<Vec<Settled>, BrokerError> {
        let Self { acks, nacks, extends, releases, buries } = self;
        let mut all = Vec::new();
        if !acks.is_empty() {
            let settled = broker.ack(acks.clone()).await?;
            all.extend(answers(acks, settled, |_, _| {}));
        }
        if !nacks.is_empty() {
            let receipts = nacks.iter().map(|nack| nack.receipt.clone()).collect();
            all.extend(answers(receipts, broker.nack(nacks).await?, judged));
        }
        if !extends.is_empty() {
            let (receipts, extends): (Vec<String>, Vec<Extend>) = extends.into_iter().unzip();
            let extended = |deadline: Timestamp, settled: &mut Settled| {
                settled.deadline_ms = Some(deadline.as_millis());
            };
            all.extend(answers(receipts, broker.extend(extends).await?, extended));
        }
        if !releases.is_empty() {
            let (receipts, releases): (Vec<String>, Vec<Release>) = releases.into_iter().unzip();
            all.extend(answers(receipts, broker.release(releases).await?, |released, settled| {
                settled.verdict.visible_at_ms = Some(released.visible_at.as_millis());
            }));
        }
        if !buries.is_empty() {
            let receipts = buries.iter().map(|bury| bury.receipt.clone()).collect();
            all.extend(answers(receipts, broker.bury(buries).await?, judged));
        }
        Ok(all)
    }
}

fn answers<T>(
    receipts: Vec<String>,
    settlements: Vec<Settlement<T>>,
    say: impl Fn(T, &mut Settled),
) -> Vec<Settled> {
    let one = |(receipt, settlement): (String, Settlement<T>)| {
        let refusal = match settlement.code() {
            None => None,
            Some("LEASE_LOST") => Some(Refusal::LeaseLost),
            Some("INVALID_RECEIPT") => Some(Refusal::InvalidReceipt),
            Some(_) => Some(Refusal::NotFound),
        };
        let mut settled = Settled { receipt, refusal, ..Settled::default() };
        if let Some(applied) = settlement.applied() {
            say(applied, &mut settled);
        }
        settled
    };
    receipts.into_iter().zip(settlements).map(one).collect()
}

fn judged(judged: Judged, settled: &mut Settled) {
    let moved_to = judged.moved_to.map(|queue| queue.as_str().to_owned()).unwrap_or_default();
    settled.verdict = match judged.verdict {
        Judgement::RetryAt(due, _) => Verdict {
            state: if due.since(judged.at) > Millis::ZERO { "delayed" } else { "ready" }.to_owned(),
            visible_at_ms: Some(due.as_millis()),
            moved_to,
            ..Verdict::default()
        },
        Judgement::Dead(reason) => Verdict {
            state: "dead".to_owned(),
            dead_reason: reason.name().to_owned(),
            moved_to,
            ..Verdict::default()
        },
    };
}
