//! The sender under test, and the names that it can look up.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use redrive_bus::webhook::{
    AllowRule, Answer, Call, Guard, Lookup, SigningSecret, Verdict, WebhookConfig, WebhookUrl, Webhooks,
};
use redrive_core::time::{Millis, Timestamp};

/// When every request of these tests is sent: 2026-11-17 12:00:00 UTC.
pub(crate) const AT: Timestamp = Timestamp::from_millis(1_794_916_800_000);

/// Names with their answers, one after the other; the last is given for ever.
#[derive(Debug, Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Names {
    pub(crate) fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let read = |answer: &&[&str]| answer.iter().map(|addr| addr.parse().unwrap()).collect();
        self.answers.lock().unwrap().insert(name.to_owned(), answers.iter().map(read).collect());
        self
    }

    /// How often somebody looked something up.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answers = answers.get_mut(host).ok_or_else(|| io::Error::other("no such name"))?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }
}

pub(crate) fn guard<Rule: AsRef<str>>(rules: &[Rule]) -> Guard {
    Guard::allowing(rules.iter().map(|rule| AllowRule::parse(rule.as_ref()).unwrap()).collect())
}

pub(crate) fn config(guard: Guard) -> WebhookConfig {
    WebhookConfig { guard, lookup: Arc::new(Names::default()), ..WebhookConfig::default() }
}

/// A sender that may call this machine.
pub(crate) fn sender() -> Webhooks {
    Webhooks::new(config(guard(&["127.0.0.0/8:*"]))).unwrap()
}

pub(crate) fn secret(byte: u8) -> SigningSecret {
    // `AAAA…`, `BBBB…`: base64 of 24 bytes.
    SigningSecret::parse(&char::from(byte).to_string().repeat(32)).unwrap()
}

/// Sends a small body there, in at most so many milliseconds.
pub(crate) async fn deliver_within(webhooks: &Webhooks, url: &str, ms: u64) -> Answer {
    deliver_body(webhooks, url, Bytes::from_static(b"{\"a\":1}"), Millis::new(ms)).await
}

pub(crate) async fn deliver_body(webhooks: &Webhooks, url: &str, body: Bytes, timeout: Millis) -> Answer {
    let url = WebhookUrl::parse(url, webhooks.guard()).unwrap();
    let call = Call {
        url: &url,
        secrets: &[secret(b'A')],
        id: "msg_1",
        at: AT,
        content_type: "application/json",
        headers: &[],
        body,
        timeout,
    };
    webhooks.deliver(call).await
}

/// Long enough that it is only reached by what never ends.
pub(crate) async fn deliver(webhooks: &Webhooks, url: &str) -> Answer {
    deliver_within(webhooks, url, 30_000).await
}

/// The error of an answer that is a failure.
pub(crate) fn error(answer: &Answer) -> &str {
    match &answer.verdict {
        Verdict::Failed { error, .. } => error,
        other => panic!("{other:?}"),
    }
}
