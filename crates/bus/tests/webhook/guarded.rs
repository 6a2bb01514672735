//! Names that lead where nobody may be sent to.

use std::env;
use std::process::Command;
use std::sync::Arc;

use redrive_bus::webhook::{Verdict, WebhookConfig, WebhookUrl, Webhooks};

use crate::receiver::Receiver;
use crate::sender::{Names, config, deliver, error, guard, sender};

const CLOSE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const KEEP: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Two receivers at the same port of two addresses, of which one is allowed, and a sender that looks names up like that.
async fn two(answer: &str, names: Names) -> (Receiver, Receiver, Webhooks, Arc<Names>) {
    let (trap, _) = Receiver::saying(KEEP).await;
    let (allowed, mut seen) = Receiver::saying_at(&format!("127.0.0.2:{}", trap.port()), answer).await;
    tokio::spawn(async move { while seen.recv().await.is_some() {} });
    let names = Arc::new(names);
    let guard = guard(&[format!("127.0.0.2:{}", trap.port())]);
    let lookup = Arc::clone(&names) as _;
    let webhooks = Webhooks::new(WebhookConfig { guard, lookup, ..WebhookConfig::default() }).unwrap();
    (trap, allowed, webhooks, names)
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_the_second_time_is_refused_then() {
    let names = Names::default().with("rebind.example", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let (trap, allowed, webhooks, names) = two(CLOSE, names).await;
    let url = format!("http://rebind.example:{}/", trap.port());

    assert_eq!(deliver(&webhooks, &url).await.verdict, Verdict::Delivered);
    assert_eq!((names.asked(), allowed.connections().await), (1, 1), "what was judged was dialled");
    for asked in 2..5 {
        let answer = deliver(&webhooks, &url).await;
        assert_eq!(error(&answer), "the address 127.0.0.1 is not allowed: loopback");
        assert_eq!(names.asked(), asked);
    }
    assert_eq!((trap.connections().await, allowed.connections().await), (0, 1));
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_each_connection() {
    let names = Names::default().with("steady.example", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let (trap, allowed, webhooks, names) = two(KEEP, names).await;
    for _ in 0..3 {
        let answer = deliver(&webhooks, &format!("http://steady.example:{}/", trap.port())).await;
        assert_eq!(answer.verdict, Verdict::Delivered, "the connection is still the one that was checked");
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((names.asked(), allowed.connections().await, trap.connections().await), (1, 1, 0));
}

#[tokio::test]
async fn one_bad_address_among_good_ones_refuses_the_name() {
    let names = Names::default()
        .with("first.example", &[&["127.0.0.1", "127.0.0.2"]])
        .with("last.example", &[&["127.0.0.2", "127.0.0.2", "127.0.0.1"]])
        .with("mapped.example", &[&["127.0.0.2", "::ffff:127.0.0.2"]]);
    let (trap, allowed, webhooks, _) = two(KEEP, names).await;
    for (name, addr) in [("first", "127.0.0.1"), ("last", "127.0.0.1"), ("mapped", "::ffff:127.0.0.2")] {
        let answer = deliver(&webhooks, &format!("http://{name}.example:{}/", trap.port())).await;
        assert_eq!(error(&answer), format!("the address {addr} is not allowed: loopback"));
    }
    assert_eq!((trap.connections().await, allowed.connections().await), (0, 0));
}

#[tokio::test]
async fn a_name_that_nobody_knows_says_so() {
    let webhooks = Webhooks::new(config(guard::<&str>(&[]))).unwrap();
    let answer = deliver(&webhooks, "https://nobody.example/").await;
    assert_eq!(error(&answer), "the host could not be looked up: no such name");
}

#[tokio::test]
async fn what_one_port_may_another_may_not() {
    let (receiver, mut seen) = Receiver::saying(KEEP).await;
    let other = Receiver::trap().await;
    let names = Arc::new(Names::default().with("local.example", &[&["127.0.0.1"]]));
    let rules = [format!("127.0.0.1:{}", receiver.port()), format!("127.0.0.9:{}", other.port())];
    let config = WebhookConfig { lookup: names, ..config(guard(&rules)) };
    let webhooks = Webhooks::new(config).unwrap();
    for _ in 0..3 {
        let at = |port| format!("http://local.example:{port}/");
        let (one, two) = (at(receiver.port()), at(other.port()));
        let (one, two) = tokio::join!(deliver(&webhooks, &one), deliver(&webhooks, &two));
        assert_eq!(one.verdict, Verdict::Delivered);
        assert_eq!(error(&two), "the address 127.0.0.1 is not allowed: loopback");
        seen.recv().await.unwrap();
    }
    assert_eq!(other.connections().await, 0);
}

#[tokio::test]
async fn a_url_that_was_allowed_once_is_judged_again() {
    let trap = Receiver::trap().await;
    let url = WebhookUrl::parse(&trap.url(), sender().guard()).unwrap();
    let strict = Webhooks::new(config(guard::<&str>(&[]))).unwrap();
    let call = redrive_bus::webhook::Call {
        url: &url,
        secrets: &[],
        id: "msg_1",
        at: crate::sender::AT,
        content_type: "text/plain",
        headers: &[],
        body: bytes::Bytes::new(),
        timeout: redrive_core::time::Millis::from_secs(30),
    };
    let answer = strict.deliver(call).await;
    assert_eq!(error(&answer), "the address 127.0.0.1 is not allowed: loopback");
    assert_eq!(trap.connections().await, 0);
}

#[tokio::test]
async fn this_server_is_not_called_unless_a_rule_names_it() {
    let own = Receiver::trap().await;
    let (network, exact) = (guard(&["127.0.0.0/8:*"]), guard(&[own.addr.to_string()]));
    let refused = WebhookUrl::parse(&own.url(), &network.refusing(vec![own.addr])).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "url: leads to an address that is not allowed: this server listens there"
    );
    assert!(WebhookUrl::parse(&own.url(), &exact.refusing(vec![own.addr])).is_ok());
}

/// Runs itself again with a proxy in its environment, at a port where nobody listens.
#[tokio::test]
async fn a_proxy_of_the_environment_is_not_used() {
    let proxy = "http://127.0.0.1:1";
    if env::var("http_proxy").as_deref() == Ok(proxy) {
        let (receiver, _seen) = Receiver::saying(KEEP).await;
        assert_eq!(deliver(&sender(), &receiver.url()).await.verdict, Verdict::Delivered);
        return;
    }
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "guarded::a_proxy_of_the_environment_is_not_used"]);
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        again.env(name, proxy);
    }
    let output = again.env_remove("no_proxy").env_remove("NO_PROXY").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
