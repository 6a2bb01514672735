//! A caller: who it is, and what it may do.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use redrive_core::access::{Deed, On, Right, Use};
use redrive_core::receipt::Claim;

use super::audit::{About, Act, who};
use super::keys::{Consuming, Session};
use super::{ApiKey, Gate, Unauthenticated};
use crate::broker::Broker;
use crate::error::BrokerError;

/// Whoever makes a request.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(super) gate: Gate,
    /// `None` where anyone is let in.
    pub(super) session: Option<Arc<Session>>,
    from: Option<IpAddr>,
}

/// Why something was not done, by a layer that the gate stands before.
pub trait Fault: From<BrokerError> {
    /// The stable word for it.
    fn code(&self) -> &'static str;
}

impl Fault for BrokerError {
    fn code(&self) -> &'static str {
        Self::code(self)
    }
}

/// What ends when a caller is not let in any more.
pub type Cut = Pin<Box<dyn Future<Output = BrokerError> + Send>>;

impl Caller {
    pub(super) fn new(gate: Gate, session: Option<Session>, from: Option<IpAddr>) -> Self {
        Self { gate, session: session.map(Arc::new), from }
    }

    /// The key that the caller showed.
    pub fn key(&self) -> Option<ApiKey> {
        self.session.as_ref().map(|session| (*session.key).clone())
    }

    /// The one function that authorises: hands out the broker to who may do that, and notes who may not.
    pub fn may<'a>(&self, right: impl Right, on: impl Into<On<'a>>) -> Result<&Broker, BrokerError> {
        // A body may take its time, and the key may end meanwhile.
        self.is_let_in()?;
        let on = on.into();
        if self.sees(right, on) {
            return Ok(&self.gate.0.broker);
        }
        let error = BrokerError::Forbidden { what: right.name(), on: on.name().map(str::to_owned) };
        self.note_refused(right, About::of(on), &error);
        Err(error)
    }

    /// Whether the caller may do that, for lists that leave out what it may not see.
    pub fn sees<'a>(&self, right: impl Right, on: impl Into<On<'a>>) -> bool {
        self.session.as_ref().is_none_or(|session| session.key.grants.allow(right, on.into()))
    }

    /// Does what an operator does, if the caller may, and writes it down with what came of it.
    pub async fn act<'a, T, E: Fault>(
        &self,
        deed: Deed,
        on: impl Into<On<'a>>,
        work: impl AsyncFnOnce(Broker) -> Result<T, E>,
    ) -> Result<T, E> {
        let on = on.into();
        let broker = self.may(deed, on)?.clone();
        let about = match on {
            On::Every => Some(About::Queue("*".to_owned())),
            on => About::of(on),
        };
        // Whoever goes away before the end may have been served all the same.
        let mut left = Left { caller: self, deed, about: about.clone(), over: false };
        let done = work(broker).await;
        self.note_done(deed, about, &done).await;
        left.over = true;
        done
    }

    /// The broker, for who may settle each of these. The receipts are looked at and not believed: one that says something
    /// else than what it was made with is refused where it is opened.
    pub fn may_settle<'a>(
        &self,
        receipts: impl IntoIterator<Item = &'a str>,
    ) -> Result<&Broker, BrokerError> {
        if self.session.is_some() {
            let mut last = None;
            for queue in receipts.into_iter().filter_map(Claim::queue_said) {
                if last.as_ref() != Some(&queue) {
                    self.may(Use::Settle, &queue)?;
                    last = Some(queue);
                }
            }
        }
        self.may(Use::Settle, On::Some)
    }

    /// Counts a poll or a stream of this caller.
    pub fn consume(&self) -> Result<Option<Consuming>, BrokerError> {
        let Some(session) = &self.session else { return Ok(None) };
        let max = session.key.quotas.consumers;
        match session.live.count_consumer(max) {
            Some(consuming) => Ok(Some(consuming)),
            None => Err(BrokerError::QuotaReached { what: "consumers", max: max.unwrap_or(u32::MAX) }),
        }
    }

    /// Whether the caller is still let in, for work that goes on step by step.
    pub fn is_let_in(&self) -> Result<(), BrokerError> {
        let Some(session) = &self.session else {
            // Where anyone was let in, a key may be needed by now.
            return if self.gate.needs_keys() { Err(Unauthenticated::Missing.into()) } else { Ok(()) };
        };
        session.live.current().until(&session.secret, self.gate.now())?;
        Ok(())
    }

    /// Ends when the caller is not let in any more: the key was revoked, or it or its secret has come to its end. `None`
    /// where that cannot happen. A request that waits, or a stream, goes on for no longer.
    pub fn cut(&self) -> Option<Cut> {
        let session = self.session.clone()?;
        let broker = self.gate.0.broker.clone();
        Some(Box::pin(async move {
            let mut changes = session.live.watch();
            loop {
                let key = changes.borrow_and_update().0.clone();
                let until = match key.until(&session.secret, broker.now()) {
                    Ok(until) => until,
                    Err(ended) => return ended.into(),
                };
                let expires = async {
                    match until {
                        Some(until) => broker.until(until).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    news = changes.changed() => if news.is_err() {
                        return Unauthenticated::Revoked.into();
                    },
                    () = expires => {}
                }
            }
        }))
    }

    /// Ends when nothing more is to be told to this caller: it is not let in any more, or the broker ends.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let (cut, gate) = (self.cut(), self.gate.clone());
        async move {
            match cut {
                None => gate.stopped().await,
                Some(cut) => {
                    tokio::select! {
                        ended = cut => tracing::debug!(%ended, "a stream was cut"),
                        () = gate.stopped() => {}
                    }
                }
            }
        }
    }

    /// Returns when the broker ends.
    pub async fn stopped(&self) {
        self.gate.stopped().await;
    }

    /// Carries on with `work` for as long as the caller is let in.
    pub async fn while_let_in<T>(
        &self,
        work: impl Future<Output = Result<T, BrokerError>> + Send,
    ) -> Result<T, BrokerError> {
        let Some(cut) = self.cut() else { return work.await };
        tokio::select! {
            done = work => done,
            ended = cut => Err(ended),
        }
    }

    pub(super) fn note_refused(&self, right: impl Right, on: Option<About>, error: &BrokerError) {
        let key = self.session.as_deref();
        self.gate.note_refused(key, self.from, right.name(), on, error.code());
    }

    /// Writes down what was done. What cannot be written down is told loudly, and stays done: an operator must be able to
    /// empty a queue on a full disk.
    pub(super) async fn note_done<T, E: Fault>(&self, deed: Deed, on: Option<About>, done: &Result<T, E>) {
        let result = done.as_ref().err().map_or("ok", Fault::code);
        let act = act_of(self.session.as_deref(), self.from, deed.name(), on, result);
        let (from, on) = (self.from.map(tracing::field::display), act.on.as_ref().map(About::name));
        tracing::info!(key = act.who.key, what = act.what, on, from, result, "an operator's act");
        let broker = &self.gate.0.broker;
        if let Err(error) = self.gate.0.audit.done(&*broker.store, broker.at(), act).await {
            tracing::error!(%error, what = deed.name(), "an act could not be written down");
        }
    }
}

fn act_of(key: Option<&Session>, from: Option<IpAddr>, what: &str, on: Option<About>, result: &str) -> Act {
    let key = key.map(|session| (session.live.id, session.key.name.as_str()));
    Act { who: who(key), from, what: what.to_owned(), on, result: result.to_owned() }
}

/// A deed whose caller may go away before it is written down.
struct Left<'a> {
    caller: &'a Caller,
    deed: Deed,
    about: Option<About>,
    over: bool,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if !self.over {
            let Caller { gate, session, from } = self.caller;
            let act = act_of(session.as_deref(), *from, self.deed.name(), self.about.take(), "INTERRUPTED");
            gate.0.audit.refused(act);
        }
    }
}

impl Gate {
    pub(super) fn note_refused(
        &self,
        key: Option<&Session>,
        from: Option<IpAddr>,
        what: &str,
        on: Option<About>,
        code: &'static str,
    ) {
        self.0.broker.metrics.refused(code);
        self.0.audit.refused(act_of(key, from, what, on, code));
    }
}
