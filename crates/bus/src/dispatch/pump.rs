//! A pump takes deliveries out of a queue, as many as may be under way, and runs each as a task of its own.
//!
//! There is one for each subscription that is served here, one for each sequential topic, and one for the relay. None waits
//! for another, so a slow target delays nobody but itself.

use std::pin::Pin;
use std::sync::PoisonError;

use hashbrown::HashMap;
use redrive_broker::{BrokerError, Delivery, LeaseCall, Release, Target as Lease, pause};
use redrive_core::lease::ConsumerName;
use redrive_core::queue::QueueName;
use redrive_core::subscription::{SubscriptionId, relay_queue};
use redrive_core::time::Millis;
use redrive_store::{Limit, QueueError};
use tokio::sync::watch;
use tokio::task::{Id, JoinHandle, JoinSet};

use crate::bus::Bus;
use crate::relay::{ERRANDS_MAX, errand_call};
use crate::subscription::{State, Target};

/// The name under which the bus takes messages.
const CONSUMER: &str = "redrive-bus";
/// How long a pump waits after the store failed it.
const TRY_AGAIN: Millis = Millis::from_secs(1);

/// What a pump is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pump {
    /// The deliveries of a subscription.
    Subscription(SubscriptionId),
    /// The events of a pattern, by its number.
    Sequence(u64),
    /// Errands.
    Relay,
}

#[derive(Debug)]
struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// The pumps that run.
#[derive(Debug, Default)]
pub(crate) struct Pumps {
    running: HashMap<Pump, Running>,
    /// Those that are not needed any more and still wind up.
    ending: Vec<JoinHandle<()>>,
    /// Whether the bus ends, and starts none.
    ended: bool,
}

impl Pumps {
    /// Tells a pump to end. What is answered is closed when it has.
    fn end(&mut self, pump: &Pump) -> Option<watch::Sender<bool>> {
        let Running { stop, task } = self.running.remove(pump)?;
        stop.send_replace(true);
        self.ending.retain(|ending| !ending.is_finished());
        self.ending.push(task);
        Some(stop)
    }
}

type Leasing = Pin<Box<dyn Future<Output = Result<Vec<Delivery>, BrokerError>> + Send>>;

impl Bus {
    /// Starts a pump that is needed and does not run, and stops one that runs and is not.
    pub(crate) fn sync_pump(&self, pump: Pump) {
        let needed = self.needs(&pump);
        let mut pumps = self.pumps.lock().unwrap_or_else(PoisonError::into_inner);
        if pumps.ended {
            return;
        }
        let runs = pumps.running.get(&pump).is_some_and(|running| !running.task.is_finished());
        if needed && !runs {
            if let Pump::Subscription(id) = &pump {
                // It may have been switched off for its failures: those of before are forgiven.
                self.health.forget(id);
            }
            let (stop, stopped) = watch::channel(false);
            let (bus, kind) = (self.clone(), pump.clone());
            let task = tokio::spawn(async move { bus.run_pump(kind, stopped).await });
            pumps.running.insert(pump, Running { stop, task });
        } else if !needed {
            pumps.end(&pump);
        }
    }

    /// Ends a pump, and waits until nothing of it is under way.
    pub(crate) async fn end_pump(&self, pump: &Pump) {
        let ending = self.pumps.lock().unwrap_or_else(PoisonError::into_inner).end(pump);
        if let Some(stop) = ending {
            stop.closed().await;
        }
    }

    /// The same for all.
    pub(crate) fn sync_pumps(&self) {
        let mut pumps: Vec<Pump> = {
            let view = self.view();
            let subscriptions = view.after(None).filter(|one| one.owns_queue());
            let subscriptions = subscriptions.map(|one| Pump::Subscription(one.id.clone()));
            subscriptions.chain(view.topics().map(|one| Pump::Sequence(one.number))).collect()
        };
        {
            let running = self.pumps.lock().unwrap_or_else(PoisonError::into_inner);
            pumps.extend(running.running.keys().filter(|pump| **pump != Pump::Relay).cloned());
        }
        for pump in pumps {
            self.sync_pump(pump);
        }
    }

    fn needs(&self, pump: &Pump) -> bool {
        match pump {
            Pump::Relay => true,
            Pump::Sequence(number) => self.view().topics().any(|one| one.number == *number && one.sequenced),
            Pump::Subscription(id) => {
                let Some(subscription) = self.view().subscription(id) else { return false };
                let here = match subscription.target {
                    Target::Webhook(_) => self.webhooks.is_some(),
                    Target::Handler => self.handler(id).is_some(),
                    Target::Queue(_) => false,
                };
                here && subscription.state == State::Active
            }
        }
    }

    /// Ends all pumps: what is under way has a while, and is then given back.
    pub(crate) async fn stop_pumps(&self) {
        for task in self.end_pumps() {
            drop(task.await);
        }
        self.forget_handlers();
    }

    /// The same without waiting: what is under way is cut off, and its lease runs out.
    pub(crate) fn drop_pumps(&self) {
        self.end_pumps().iter().for_each(JoinHandle::abort);
        self.forget_handlers();
    }

    fn end_pumps(&self) -> Vec<JoinHandle<()>> {
        let mut pumps = self.pumps.lock().unwrap_or_else(PoisonError::into_inner);
        pumps.ended = true;
        let running: Vec<Pump> = pumps.running.keys().cloned().collect();
        for pump in running {
            pumps.end(&pump);
        }
        std::mem::take(&mut pumps.ending)
    }

    /// Lets go of all functions, and so of what they hold: that may be what holds this bus.
    fn forget_handlers(&self) {
        let handlers = std::mem::take(&mut *self.handlers.write().unwrap_or_else(PoisonError::into_inner));
        // Whatever their ends lead to, the lock is free again.
        drop(handlers);
    }

    async fn run_pump(&self, pump: Pump, mut stop: watch::Receiver<bool>) {
        let mut work = Work::default();
        let mut leasing: Option<Leasing> = None;
        while let Some((max, call)) = self.call(&pump) {
            let free = max.saturating_sub(work.tasks.len());
            if leasing.is_none() && free > 0 && !*stop.borrow() {
                // A lease that waits is kept: one that is dropped gives back what it was handed.
                let (broker, limit) = (self.broker.clone(), Limit::new(free).unwrap_or(Limit::MAX));
                let call = LeaseCall { limit, ..call };
                leasing = Some(Box::pin(async move { broker.lease_when_ready(&call).await }));
            }
            tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Some(ended) = work.tasks.join_next_with_id(), if !work.tasks.is_empty() => work.forget(&ended),
                leased = wait(leasing.as_mut()) => {
                    leasing = None;
                    match leased {
                        Ok(deliveries) if deliveries.is_empty() => break,
                        Ok(deliveries) => self.set_off(&pump, deliveries, &mut work),
                        Err(error) => {
                            if !self.is_mended(&pump, error).await {
                                break;
                            }
                        }
                    }
                }
            }
        }
        drop(leasing);
        self.wind_up(work).await;
    }

    /// How many may be under way, and what is asked for; nothing where there is nothing to do any more.
    fn call(&self, pump: &Pump) -> Option<(usize, LeaseCall)> {
        let consumer = ConsumerName::new(CONSUMER).unwrap_or_default();
        match pump {
            Pump::Relay => Some((ERRANDS_MAX, errand_call(consumer))),
            Pump::Subscription(id) => {
                let subscription = self.view().subscription(id)?;
                let call = LeaseCall::new(subscription.queue(), Limit::ONE, consumer);
                let call = LeaseCall { time: Some(subscription.lease_time()), ..call };
                Some((subscription.max_in_flight() as usize, call))
            }
            Pump::Sequence(number) => {
                let view = self.view();
                let settings = view.topics().find(|settings| settings.number == *number)?;
                let call = LeaseCall::new(settings.sequence_queue(), Limit::ONE, consumer);
                Some((self.config.sequences_in_flight.max(1) as usize, call))
            }
        }
    }

    fn set_off(&self, pump: &Pump, deliveries: Vec<Delivery>, work: &mut Work) {
        for delivery in deliveries {
            let (bus, receipt) = (self.clone(), delivery.receipt.clone());
            let task = match pump {
                Pump::Relay => work.tasks.spawn(async move { bus.run_errand(delivery).await }),
                Pump::Sequence(_) => work.tasks.spawn(async move { bus.run_sequence(delivery).await }),
                Pump::Subscription(id) => {
                    let id = id.clone();
                    work.tasks.spawn(async move { bus.deliver(id, delivery).await })
                }
            };
            work.receipts.insert(task.id(), receipt);
        }
    }

    /// Does something about a failure of the store; says whether it is worth going on.
    async fn is_mended(&self, pump: &Pump, error: BrokerError) -> bool {
        if let BrokerError::Queue(QueueError::NotFound(missing)) = &error {
            return match self.mend_queue(&missing.0).await {
                Ok(needed) => needed,
                Err(error) => {
                    tracing::warn!(%error, ?pump, "a queue of the bus is missing");
                    pause(TRY_AGAIN).await;
                    true
                }
            };
        }
        tracing::warn!(%error, ?pump, "deliveries wait for the store");
        pause(TRY_AGAIN).await;
        true
    }

    /// Lets what is under way end, for a while, and gives the rest back.
    async fn wind_up(&self, mut work: Work) {
        let all = async {
            while let Some(ended) = work.tasks.join_next_with_id().await {
                work.forget(&ended);
            }
        };
        tokio::select! {
            () = all => {}
            () = pause(self.config.grace) => {}
        }
        work.tasks.shutdown().await;
        let release = |receipt: String| Release { target: Lease::Receipt(receipt), delay: None };
        let releases: Vec<Release> = work.receipts.drain().map(|(_, receipt)| release(receipt)).collect();
        if !releases.is_empty()
            && let Err(error) = self.broker.release(releases).await
        {
            tracing::warn!(%error, "deliveries that were cut off come back when their leases run out");
        }
    }

    /// Starts the relay where it has a queue.
    pub(crate) async fn sync_relay(&self) {
        match self.broker.store().get_queue(&relay_queue()).await {
            Ok(Some(_)) => self.sync_pump(Pump::Relay),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "whether the relay has work is known later"),
        }
    }

    /// Whether that queue is one that a pump here takes from, for tests and people.
    pub fn is_pumped(&self, queue: &QueueName) -> bool {
        let pumps = self.pumps.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |pump: &Pump| match pump {
            Pump::Relay => relay_queue(),
            Pump::Sequence(number) => redrive_core::subscription::sequence_queue(*number),
            Pump::Subscription(id) => id.queue(),
        };
        pumps.running.iter().any(|(pump, running)| of(pump) == *queue && !running.task.is_finished())
    }
}

/// What is under way, and with which receipts.
#[derive(Default)]
struct Work {
    tasks: JoinSet<()>,
    receipts: HashMap<Id, String>,
}

impl Work {
    fn forget(&mut self, ended: &Result<(Id, ()), tokio::task::JoinError>) {
        let id = match ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.receipts.remove(&id);
    }
}

/// Returns when the pump is told to stop, or nobody is left to tell it.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

async fn wait(leasing: Option<&mut Leasing>) -> Result<Vec<Delivery>, BrokerError> {
    match leasing {
        Some(leasing) => leasing.await,
        None => std::future::pending().await,
    }
}
