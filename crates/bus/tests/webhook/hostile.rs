//! URLs that want to reach this machine: whatever they say, nobody comes.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_bus::webhook::{Call, Lookup, Verdict, WebhookConfig, WebhookUrl, Webhooks};
use redrive_core::time::Millis;
use tokio::net::TcpListener;

use crate::receiver::Receiver;
use crate::sender::{AT, error, guard};

/// One to a line; `{port}` is the trap's, and what no line can hold has a name in braces as well.
const URLS: &str = include_str!("hostile_urls.txt");
const URLS_MIN: usize = 300;

/// Every name is this machine.
#[derive(Debug)]
struct Here(IpAddr);

#[async_trait]
impl Lookup for Here {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![self.0])
    }
}

/// What leads to this machine when it is dialled.
const HERE: [&str; 8] = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:0.0.0.0",
    "::127.0.0.1",
];

fn urls(port: u16) -> Vec<String> {
    let lines = URLS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let named = [("{tab}", "\t"), ("{lf}", "\n"), ("{cr}", "\r"), ("{nul}", "\0"), ("{space}", " ")];
    let read = |line: &str| {
        let line = line.replace("{port}", &port.to_string());
        named.iter().fold(line, |line, (name, character)| line.replace(name, character))
    };
    lines.map(read).collect()
}

/// Traps at that port of every address of this machine, or none where the port is taken or not ours to take.
async fn traps(port: u16) -> Vec<Receiver> {
    let mut traps = Vec::new();
    for everywhere in [format!("[::]:{port}"), format!("0.0.0.0:{port}")] {
        if let Ok(listener) = TcpListener::bind(&everywhere).await {
            traps.push(Receiver::start_on(listener, |_| async {}));
        }
    }
    traps
}

/// A port that some rule allows, for an address that no URL of the list has: only the address stands in the way.
fn webhooks(port: u16, here: &str) -> Webhooks {
    let guard = guard(&[format!("192.0.2.77:{port}")]);
    let lookup = Arc::new(Here(here.parse().unwrap()));
    Webhooks::new(WebhookConfig { guard, lookup, ..WebhookConfig::default() }).unwrap()
}

async fn deliver(webhooks: &Webhooks, url: &WebhookUrl) -> redrive_bus::webhook::Answer {
    let call = Call {
        url,
        secrets: &[],
        id: "msg_1",
        at: AT,
        content_type: "text/plain",
        headers: &[],
        body: bytes::Bytes::new(),
        timeout: Millis::from_secs(30),
    };
    webhooks.deliver(call).await
}

#[tokio::test]
async fn no_hostile_url_reaches_this_machine() {
    let mut all = Vec::new();
    for port in [0, 80, 443] {
        all.extend(traps(port).await);
    }
    let port = all[0].port();
    let urls = urls(port);
    assert!(urls.iter().collect::<HashSet<_>>().len() >= URLS_MIN, "{} URLs", urls.len());
    let senders = HERE.map(|here| webhooks(port, here));
    let mut at_delivery = 0;
    for text in &urls {
        let Ok(url) = WebhookUrl::parse(text, senders[0].guard()) else {
            continue;
        };
        at_delivery += 1;
        // What is an address must be refused by now: it would be called for real.
        assert!(url.host().parse::<IpAddr>().is_err(), "{text} leads to {}", url.host());
        for webhooks in &senders {
            let answer = deliver(webhooks, &url).await;
            let error = error(&answer);
            // Not that nobody was there: that nobody was called.
            assert!(
                error.starts_with("the address ") && error.contains("is not allowed: "),
                "{text}: {error}"
            );
        }
    }
    assert!(at_delivery > 20 && at_delivery < urls.len() / 2, "{at_delivery} of {}", urls.len());
    for trap in &all {
        assert_eq!(trap.connections().await, 0, "{}", trap.addr);
    }
}

#[tokio::test]
async fn the_trap_is_seen_where_a_rule_allows_it() {
    let (receiver, _seen) = Receiver::saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let guard = guard(&[receiver.addr.to_string()]);
    let lookup = Arc::new(Here("127.0.0.1".parse().unwrap()));
    let webhooks = Webhooks::new(WebhookConfig { guard, lookup, ..WebhookConfig::default() }).unwrap();
    for host in ["127.0.0.1", "0x7f.1", "2130706433", "①②⑦.0.0.1", "anything.example"] {
        let url = format!("http://{host}:{}/", receiver.port());
        let url = WebhookUrl::parse(&url, webhooks.guard()).unwrap();
        assert_eq!(deliver(&webhooks, &url).await.verdict, Verdict::Delivered, "{host}");
    }
    assert!(receiver.connections().await > 0);
}
