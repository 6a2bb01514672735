//! lease: ready → leased, and the wait for something to become ready.
//!
//! A poll that finds nothing waits to be woken; it never looks again by itself. What wakes it: an enqueue, whatever
//! makes a message ready again, a resume, a change of a breaker, here or at another instance, and the queue's timer, which
//! knows when the next delayed message is due and when the next pause ends.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redrive_core::lease::ConsumerName;
use redrive_core::message::{Message, MessageId};
use redrive_core::policy::{Allowance, Breaker, ProbeTicket};
use redrive_core::queue::QueueName;
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    Batch, ClassFilter, LaneChoice, LeaseRequest, LeaseTarget, Leased, Limit, Pick, QueueError, ReleaseItem,
};
use tokio::sync::oneshot;

use crate::broker::Broker;
use crate::clock::pause;
use crate::error::BrokerError;
use crate::events::{Happening, Trigger};
use crate::queues::Live;
use crate::waiters::{Interest, Waiter};

/// A consumer asks for work.
#[derive(Debug, Clone)]
pub struct LeaseCall {
    /// From which queue.
    pub queue: QueueName,
    /// How many messages at most.
    pub limit: Limit,
    /// Who asks.
    pub consumer: ConsumerName,
    /// For how long; `None` leaves it to message and queue.
    pub time: Option<Millis>,
    /// From which lane.
    pub lane: LaneChoice,
    /// Of which types and sources.
    pub filter: ClassFilter,
    /// How long to wait where nothing is ready.
    pub wait: Millis,
}

impl LeaseCall {
    /// A call for up to `limit` messages, with nothing special about it.
    pub fn new(queue: QueueName, limit: Limit, consumer: ConsumerName) -> Self {
        Self {
            queue,
            limit,
            consumer,
            time: None,
            lane: LaneChoice::Queue,
            filter: ClassFilter::default(),
            wait: Millis::ZERO,
        }
    }

    pub(crate) fn interest(&self) -> Interest {
        Interest { lane: self.lane, filter: self.filter.clone() }
    }
}

/// A message that was handed out, and the receipt to settle it with.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The message, with its lease.
    pub message: Message,
    /// The receipt.
    pub receipt: String,
}

/// How many polls wait.
#[derive(Debug, Default)]
pub(crate) struct Polls(AtomicUsize);

/// A poll that is counted until it is dropped.
struct Counted<'a>(&'a Broker);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.polls.0.fetch_sub(1, Ordering::Relaxed);
        self.0.metrics.polls(-1);
    }
}

/// What one look into a queue found.
enum Look {
    Found(Vec<Message>, bool),
    /// Nothing that this call may have. A breaker that changes by itself says when.
    Nothing(Option<Timestamp>),
    /// Nothing yet, but there may be something: look again.
    Again,
}

impl Broker {
    /// ready → leased. Waits where nothing is ready, as long as the call says.
    pub async fn lease(&self, call: LeaseCall) -> Result<Vec<Delivery>, BrokerError> {
        let wait = call.wait.min(self.config.poll_wait_max);
        let live = self.live(&call.queue).await?;
        live.numbers.asked(self.now());
        let messages = if wait == Millis::ZERO {
            self.look_once(&live, &call).await?
        } else {
            let mut patience = pin!(pause(wait));
            let _counted = self.count_poll()?;
            let waiter = live.waiters.join(call.interest());
            tokio::select! {
                biased;
                found = self.look_until(&live, &call, &waiter) => found?,
                () = &mut patience => Vec::new(),
                () = self.stopped() => Vec::new(),
            }
        };
        live.numbers.asked(self.now());
        Ok(self.deliveries(messages))
    }

    fn count_poll(&self) -> Result<Counted<'_>, BrokerError> {
        let max = self.config.polls_max;
        let before = self.polls.0.fetch_add(1, Ordering::Relaxed);
        self.metrics.polls(1);
        let counted = Counted(self);
        if before >= max { Err(BrokerError::TooManyPolls { max }) } else { Ok(counted) }
    }

    pub(crate) fn deliveries(&self, mut messages: Vec<Message>) -> Vec<Delivery> {
        self.begin_attempts(&mut messages);
        let sealed = messages.into_iter().filter_map(|message| {
            let receipt = self.receipts.seal(&Claim::on(&message)?);
            Some(Delivery { message, receipt })
        });
        sealed.collect()
    }

    async fn look_once(&self, live: &Arc<Live>, call: &LeaseCall) -> Result<Vec<Message>, BrokerError> {
        loop {
            match self.look(live, call).await? {
                Look::Found(messages, _) => return Ok(messages),
                Look::Nothing(_) => return Ok(Vec::new()),
                Look::Again => tokio::task::yield_now().await,
            }
        }
    }

    pub(crate) async fn look_until(
        &self,
        live: &Arc<Live>,
        call: &LeaseCall,
        waiter: &Waiter,
    ) -> Result<Vec<Message>, BrokerError> {
        loop {
            let mut woken = pin!(waiter.woken());
            // From here on nothing is missed, also not while the store looks.
            woken.as_mut().enable();
            let looked = self.now();
            let until = match self.look(live, call).await? {
                Look::Found(messages, more) => {
                    if more {
                        waiter.pass_on();
                    }
                    return Ok(messages);
                }
                Look::Again => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Look::Nothing(until) => until,
            };
            self.keep_time(live, looked);
            match until {
                Some(until) => tokio::select! {
                    () = woken => {}
                    () = self.clock.until(until) => {}
                },
                None => woken.await,
            }
            // The queue may have been deleted meanwhile.
            if self.queues.known(&live.name).is_none_or(|known| !Arc::ptr_eq(&known, live)) {
                return Err(redrive_store::QueueNotFound(live.name.clone()).into());
            }
        }
    }

    /// Looks into the queue once, as far as its breaker allows.
    async fn look(&self, live: &Arc<Live>, call: &LeaseCall) -> Result<Look, BrokerError> {
        if self.is_stopping() {
            return Ok(Look::Nothing(None));
        }
        let request = |limit| LeaseRequest {
            queue: call.queue.clone(),
            limit,
            consumer: call.consumer.clone(),
            time: call.time,
            lane: call.lane,
            filter: call.filter.clone(),
            pick: Pick::Fair,
            seed: self.chance.seed(),
        };
        match self.allowance(live).await? {
            Allowance::Unlimited => Ok(self.found(live, self.lease_owned(request(call.limit)).await?)),
            Allowance::UpTo(free) => {
                let free = Limit::new(free.max(1) as usize).unwrap_or(Limit::MAX);
                let limit = call.limit.min(free);
                Ok(self.found(live, self.lease_owned(request(limit)).await?))
            }
            Allowance::Nothing { until } => Ok(Look::Nothing(until)),
            // What is rare is kept apart: a poll that waits is as large as the most that it may ever do.
            Allowance::Probe => Box::pin(self.probe(live, request(Limit::ONE))).await,
        }
    }

    fn found(&self, live: &Live, leased: Leased) -> Look {
        let Leased { at, messages, more, swept } = leased;
        self.tell_expired(swept.expired, Trigger::Scheduler);
        self.tell_lapsed(swept.lapsed);
        if messages.is_empty() {
            return if more { Look::Again } else { Look::Nothing(None) };
        }
        let count = messages.len() as u64;
        self.metrics.leased(&live.name, count);
        self.metrics.waited(&live.name, messages.iter().filter_map(|message| live.numbers.waited(message)));
        if let Some(lease) = messages.first().and_then(Message::lease) {
            self.note_leased(live, &lease.consumer, count, at);
        }
        self.events.tell(Happening::Lease, &live.name, count, Trigger::Consumer, at);
        let first = messages.iter().filter_map(|message| message.lease()).map(|lease| lease.deadline).min();
        self.sweep_by(first);
        Look::Found(messages, more)
    }

    /// One message to see whether an outage is over.
    async fn probe(&self, live: &Arc<Live>, request: LeaseRequest) -> Result<Look, BrokerError> {
        let reserve = |breaker: &mut Breaker, now| {
            let ticket = breaker.reserve_probe(now);
            (ticket.map(|ticket| (ticket, breaker.last_probe())), None)
        };
        let Some((ticket, avoid)) = self.act_on_breaker(live, reserve).await?.flatten() else {
            // Whoever has it is heard of when it is free.
            return Ok(Look::Nothing(self.probe_until(live)));
        };
        let slot = Slot { broker: self, live, ticket: Some(ticket) };
        let leased = self.lease_owned(LeaseRequest { pick: Pick::Probe { avoid }, ..request }).await?;
        let probe =
            leased.messages.first().and_then(|message| Some((message.id(), message.lease()?.deadline)));
        if let Some((message, deadline)) = probe
            && !slot.fill(message, deadline).await
        {
            self.give_back(leased.messages).await;
            return Ok(Look::Again);
        }
        Ok(self.found(live, leased))
    }

    /// When the probe's slot is free at the latest.
    pub(crate) fn probe_until(&self, live: &Live) -> Option<Timestamp> {
        let rules = live.rules();
        match rules.breaker.as_ref().map(|breaker| breaker.allowance(self.now(), 0)) {
            Some(Allowance::Nothing { until }) => until,
            _ => None,
        }
    }

    /// How many messages the breaker of a queue lets out now.
    async fn allowance(&self, live: &Arc<Live>) -> Result<Allowance, BrokerError> {
        let now = self.now();
        let (allowance, closed_at, changed) = {
            let mut rules = live.rules();
            let Some(breaker) = rules.breaker.as_mut() else {
                return Ok(Allowance::Unlimited);
            };
            let changed = breaker.poll(now);
            (breaker.allowance(now, 0), breaker.closed_at(), changed)
        };
        self.tell_breaker(live, changed);
        let Allowance::UpTo(limit) = allowance else {
            return Ok(allowance);
        };
        // The target has just come back: what is with consumers since then is counted, as long as that matters.
        let in_flight = Box::pin(self.leased_since(&live.name, closed_at, limit)).await?;
        Ok(live
            .rules()
            .breaker
            .as_ref()
            .map_or(Allowance::Unlimited, |breaker| breaker.allowance(now, in_flight)))
    }

    /// A lease whose caller may go away: what nobody is there for any more is given back unharmed.
    fn lease_owned(&self, request: LeaseRequest) -> impl Future<Output = Result<Leased, QueueError>> + use<> {
        let (answer, answered) = oneshot::channel();
        let broker = self.clone();
        tokio::spawn(async move {
            let leased = broker.store.lease(broker.at(), request).await;
            if let Err(Ok(leased)) = answer.send(leased) {
                broker.tell_expired(leased.swept.expired, Trigger::Scheduler);
                broker.tell_lapsed(leased.swept.lapsed);
                broker.give_back(leased.messages).await;
            }
        });
        let lost = || redrive_store::StoreError::OutcomeUnknown("the call was dropped".into());
        async move { answered.await.unwrap_or_else(|_| Err(lost().into())) }
    }

    /// Gives messages back that nobody got.
    pub(crate) async fn give_back(&self, messages: Vec<Message>) {
        let items: Vec<ReleaseItem> = messages
            .iter()
            .filter_map(Claim::on)
            .map(|claim| ReleaseItem { target: LeaseTarget::Claim(claim), delay: None })
            .collect();
        let Ok(batch) = Batch::each(items) else { return };
        if batch.items().is_empty() {
            return;
        }
        if let Err(error) = self.release_batch(batch).await {
            // Their leases run out, and they are ready again then.
            tracing::warn!(%error, "messages that nobody got could not be given back");
        }
    }

    /// Keeps the time for those who wait for messages of a queue, unless somebody does.
    fn keep_time(&self, live: &Arc<Live>, looked: Timestamp) {
        let mut timed = live.timed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if std::mem::replace(&mut *timed, true) {
            return;
        }
        let (broker, live) = (self.clone(), Arc::clone(live));
        tokio::spawn(async move { broker.time_queue(&live, looked).await });
    }

    async fn time_queue(&self, live: &Live, looked: Timestamp) {
        // What became due since the look is not among what the store names: that is all still to come.
        let mut due = Some(looked.plus(Millis::new(1)));
        loop {
            let changed = live.due_changed.notified();
            let said = live.take_due();
            let (asked, next) = match self.store.next_due(self.at(), Some(&live.name)).await {
                Ok(next) => {
                    let look = self.look_anyway(next.at);
                    (next.at, next.ready.into_iter().chain(next.resume).chain(said).chain(look).min())
                }
                Err(error) => {
                    tracing::warn!(queue = %live.name, %error, "what is due next is not known");
                    (self.now(), Some(self.now().plus(self.config.overdue_check_interval)))
                }
            };
            // Only now: those who are woken see all that became due before the store was asked.
            if due.is_some_and(|due| due <= asked) {
                live.wake();
            }
            due = next;
            let next = async {
                match due {
                    Some(due) => self.clock.until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                () = changed => {}
                () = self.stopped() => return,
            }
            let mut timed = live.timed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if live.waiters.is_empty() {
                *timed = false;
                return;
            }
        }
    }

    /// When to look though nobody said that there is anything: an instance that ended could not tell what it had done.
    fn look_anyway(&self, now: Timestamp) -> Option<Timestamp> {
        self.peers.as_ref().map(|_| now.plus(self.config.overdue_check_interval))
    }

    /// How many messages are with consumers since a moment, at most `enough`.
    async fn leased_since(
        &self,
        queue: &QueueName,
        since: Timestamp,
        enough: u32,
    ) -> Result<u32, BrokerError> {
        use redrive_core::message::State;
        use redrive_store::{Filter, ListRequest};
        let mut request = ListRequest::new(queue.clone(), Filter::state(State::Leased));
        let mut count = 0u32;
        loop {
            let page = self.store.list(self.at(), request.clone()).await?;
            let leases = page.messages.iter().filter_map(Message::lease);
            let recent = leases.filter(|lease| lease.leased_at >= since).count();
            count = count.saturating_add(u32::try_from(recent).unwrap_or(u32::MAX));
            match page.next {
                Some(next) if count < enough => request.after = Some(next),
                _ => return Ok(count),
            }
        }
    }
}

/// A reserved probe slot, which is freed unless a message was leased into it.
struct Slot<'a> {
    broker: &'a Broker,
    live: &'a Arc<Live>,
    ticket: Option<ProbeTicket>,
}

impl Slot<'_> {
    /// Puts the message into the slot; says whether the slot was still this one's.
    async fn fill(mut self, message: MessageId, deadline: Timestamp) -> bool {
        let Some(ticket) = self.ticket.take() else { return false };
        let fill = |breaker: &mut Breaker, _| (breaker.probe_leased(ticket, message, deadline), None);
        match self.broker.act_on_breaker(self.live, fill).await {
            Ok(filled) => filled.unwrap_or(false),
            Err(error) => {
                // The reservation ends by itself.
                tracing::warn!(queue = %self.live.name, %error, "a probe was given back");
                false
            }
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.broker.move_breaker(self.live, self.broker.now(), move |breaker| {
                breaker.drop_probe(ticket);
                None
            });
        }
    }
}
