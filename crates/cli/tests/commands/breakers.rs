//! `redrive breaker`.

use serde_json::json;

use crate::receiver::Receiver;
use crate::run::{masked, redrive};
use crate::server::Server;

#[tokio::test]
async fn breakers_are_listed_tripped_and_reset() {
    let server = Server::with(&["--webhook-allow", "127.0.0.1:*"]);
    let receiver = Receiver::start();
    redrive(&server, "queue create plain").ok();
    redrive(&server, "queue create orders --breaker on").ok();
    redrive(&server, &format!("subscription create hook --pattern a --webhook {}", receiver.url)).ok();
    let list = "\
QUEUE         SUBSCRIPTION  STATE   MESSAGES  FAILED  OPEN UNTIL
bus.sub.hook  hook          closed         0       0  -
orders        -             closed         0       0  -
";
    assert_eq!(redrive(&server, "breaker list").ok(), list);
    assert_eq!(redrive(&server, "breaker list -o id").ok(), "bus.sub.hook\norders\n");
    assert_eq!(redrive(&server, "breaker trip orders").ok(), "the breaker of queue orders is open\n");
    let shown = masked(&redrive(&server, "breaker show orders").ok());
    let expected = "state       open\nopen until  0000-00-00T00:00:00.000Z\nprobe       -\nmessages    0\nfailed      0\n";
    assert_eq!(shown, expected);
    assert_eq!(redrive(&server, "breaker reset orders").ok(), "the breaker of queue orders is closed\n");
    let tripped = redrive(&server, "breaker trip --subscription hook").ok();
    assert_eq!(tripped, "the breaker of subscription hook is open\n");
    assert_eq!(redrive(&server, "breaker show --subscription hook --json").json()["state"], "open");
    let breakers = redrive(&server, "breaker list --json").json();
    assert_eq!(
        (&breakers[0]["subscription"], &breakers[0]["status"]["state"]),
        (&json!("hook"), &json!("open"))
    );
    assert!(redrive(&server, "subscription show hook").ok().contains("\nbreaker        open\n"));
    redrive(&server, "breaker reset --subscription hook").ok();
    assert_eq!(redrive(&server, "breaker show --subscription hook -o id").ok(), "closed\n");
    redrive(&server, "breaker show plain").failed(4, "plain has no breaker");
    redrive(&server, "breaker trip nope").failed(3, "there is no queue nope");
    redrive(&server, "breaker trip --subscription nope").failed(3, "there is no subscription nope");
    redrive(&server, "breaker trip").failed(2, "required arguments were not provided");
    redrive(&server, "breaker trip orders --subscription hook").failed(2, "cannot be used with");
}
