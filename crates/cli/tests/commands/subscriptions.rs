//! `redrive subscription`.

use serde_json::{Value, json};

use crate::receiver::Receiver;
use crate::run::{command, fed, masked, redrive, run};
use crate::server::Server;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A server that may call this machine.
fn server() -> Server {
    Server::with(&["--webhook-allow", "127.0.0.1:*"])
}

/// Waits until the events of a subscription are in these states, so many of each.
async fn settled(server: &Server, id: &str, states: &[(&str, u64)]) {
    for (state, count) in states {
        while server.count(&format!("bus.sub.{id}"), state).await != *count {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_webhook_is_subscribed_shown_and_changed() {
    let (server, receiver) = (server(), Receiver::start());
    let line = format!(
        "subscription create hook --pattern orders.* --webhook {} --filter region=eu,us --max-attempts 3 --base-delay 10ms \
         --jitter none --timeout 5s --max-in-flight 2 --disable-after 1d",
        receiver.url
    );
    let made = redrive(&server, &line);
    assert!(made.err.contains("redrive: the secret cannot be shown again: keep it now"), "{made:?}");
    let secret = made.out.lines().last().unwrap().strip_prefix("secret").unwrap().trim();
    assert!(secret.starts_with("whsec_"), "{made:?}");
    redrive(&server, &line).failed(4, "there is a subscription hook already");
    let shown = redrive(&server, "subscription show hook").ok();
    assert!(!shown.contains("whsec_"), "{shown}");
    let expected = format!(
        "\
id             hook
state          active
pattern        orders.*
filter         region=eu,us
target         {}
format         structured
disable after  1d
secrets        1
queue          bus.sub.hook
created        0000-00-00T00:00:00.000Z
version        1
breaker        closed
ready          0
delayed        0
leased         0
dead           0

SETTING        VALUE                                                         FROM
max-attempts   3                                                             subscription
base-delay     10ms                                                          subscription
multiplier     3                                                             default
",
        receiver.url
    );
    assert!(masked(&shown).starts_with(&expected), "{shown}");
    assert!(shown.contains("\ntimeout        5s ") && shown.contains("\nmax-in-flight  2 "), "{shown}");

    let set = "subscription update hook --pattern orders.** --unset max-attempts --unset filter --filter tier=gold --format binary \
               --breaker off";
    // Versions are counted over all entries of the registry.
    assert!(redrive(&server, set).ok().starts_with("subscription hook has settings of version "));
    let view = redrive(&server, "subscription show hook --json").json();
    assert_eq!((&view["pattern"], &view["filter"]), (&json!("orders.**"), &json!({"tier": ["gold"]})));
    assert_eq!(view["retry"], json!({"base_delay_ms": 10, "jitter": "none"}));
    assert_eq!(
        (&view["target"]["format"], &view["target"]["disable_after_ms"]),
        (&json!("binary"), &json!(86_400_000))
    );
    assert_eq!((&view["breaker"], &view["timeout_ms"]), (&Value::Null, &json!(5_000)));
    redrive(&server, "subscription update hook --disable-after none").ok();
    let view = redrive(&server, "subscription show hook --json").json();
    assert!(view["target"].get("disable_after_ms").is_none(), "{view}");
    redrive(&server, "subscription update hook").failed(2, "name a setting to change");
    redrive(&server, "subscription update hook --timeout 1s --unset timeout")
        .failed(2, "timeout must not be both");
    redrive(&server, "subscription update nope --timeout 1s").failed(3, "there is no subscription nope");
}

#[tokio::test]
async fn subscriptions_are_listed_and_deleted_when_somebody_agrees() {
    let (server, receiver) = (server(), Receiver::start());
    redrive(&server, "queue create mail").ok();
    redrive(&server, "subscription create mail --pattern orders.* --queue mail").ok();
    redrive(&server, &format!("subscription create hook --pattern ** --webhook {}", receiver.url)).ok();
    redrive(&server, "subscription pause hook").ok();
    redrive(&server, "publish orders.created x").ok();
    let list = redrive(&server, "subscription list").ok();
    let mut lines = list.lines();
    assert!(lines.next().unwrap().starts_with("ID    STATE   PATTERN   TARGET "), "{list}");
    assert!(lines.next().unwrap().starts_with("hook  paused  **        http://127.0.0.1:"), "{list}");
    let mail = lines.next().unwrap();
    assert!(
        mail.starts_with("mail  active  orders.*  queue mail ") && mail.ends_with("        -     -"),
        "{list}"
    );
    assert_eq!(redrive(&server, "subscription list -o id").ok(), "hook\nmail\n");
    assert_eq!(
        redrive(&server, "subscription list --json").json(),
        server.get("/v1/subscriptions").await.body["subscriptions"]
    );
    let would = "would delete subscription hook with 1 event in its queue\n";
    assert_eq!(redrive(&server, "subscription delete hook --dry-run").ok(), would);
    redrive(&server, "subscription delete hook")
        .failed(2, "this would delete subscription hook with 1 event in its queue: say --yes");
    assert_eq!(redrive(&server, "subscription delete hook --yes").ok(), "subscription hook deleted\n");
    let would = redrive(&server, "subscription delete mail --dry-run").ok();
    assert_eq!(would, "would delete subscription mail; queue mail stays\n");
    redrive(&server, "subscription delete mail --yes").ok();
    redrive(&server, "subscription delete mail --yes").failed(3, "there is no subscription mail");
    assert_eq!(server.count("mail", "ready").await, 1);
}

#[tokio::test]
async fn pause_and_disable_are_not_the_same() {
    let (server, receiver) = (server(), Receiver::start());
    redrive(&server, &format!("subscription create hook --pattern ** --webhook {}", receiver.url)).ok();
    assert_eq!(redrive(&server, "subscription pause hook").ok(), "subscription hook is paused\n");
    redrive(&server, "publish a one").ok();
    settled(&server, "hook", &[("ready", 1)]).await;
    assert_eq!(redrive(&server, "subscription resume hook").ok(), "subscription hook is active\n");
    assert!(receiver.next().body.contains("\"data\":\"one\""));
    assert_eq!(redrive(&server, "subscription disable hook").ok(), "subscription hook is disabled\n");
    let shown = masked(&redrive(&server, "subscription show hook").ok());
    assert!(shown.contains("\ndisabled       0000-00-00T00:00:00.000Z, operator\n"), "{shown}");
    assert!(redrive(&server, "publish a two").err.contains("no subscription wants it"));
    assert_eq!(redrive(&server, "subscription enable hook --json").json()["state"], "active");
    redrive(&server, "publish a three").ok();
    assert!(
        receiver.next().body.contains("\"data\":\"three\""),
        "what was published meanwhile does not come"
    );
    redrive(&server, "subscription pause nope").failed(3, "there is no subscription nope");
    redrive(&server, "queue create mail").ok();
    redrive(&server, "subscription create mail --pattern ** --queue mail").ok();
    redrive(&server, "subscription pause mail").failed(4, "pause the queue instead");
}

#[tokio::test]
async fn a_secret_is_shown_once_or_never() {
    let (server, receiver) = (server(), Receiver::start());
    let create = format!("subscription create hook --pattern ** --webhook {} --secret-stdin", receiver.url);
    let made = fed(&server, &create, format!("{SECRET}\n").as_bytes());
    assert!(made.err.is_empty() && !made.out.contains("whsec_"), "{made:?}");
    fed(&server, &create.replace("create hook", "create other"), b"\n")
        .failed(2, "there is no secret on stdin");
    fed(&server, &create.replace("create hook", "create other"), b"whsec_short").failed(2, "secret");
    redrive(&server, "publish a one").ok();
    let first = receiver.next();
    assert_eq!(
        first.head.matches(" v1,").count() + first.head.matches("webhook-signature: v1,").count(),
        2,
        "{first:?}"
    );
    let rotated = redrive(&server, "subscription rotate-secret hook --overlap 1h --json");
    assert!(rotated.err.contains("cannot be shown again"), "{rotated:?}");
    let rotated = rotated.json();
    assert!(rotated["secret"].as_str().unwrap().starts_with("whsec_"));
    assert_eq!(rotated["subscription"]["target"]["secrets"], 2);
    assert!(redrive(&server, "subscription show hook").ok().contains("\nold secrets until  "));
    redrive(&server, "publish a two").ok();
    let second = receiver.next();
    let signatures = second.head.lines().find(|line| line.starts_with("webhook-signature:")).unwrap();
    assert_eq!(signatures.matches("v1,").count(), 2, "{signatures}");
    redrive(&server, "subscription rotate-secret hook --overlap 8d").failed(2, "overlap");
    redrive(&server, "queue create mail").ok();
    redrive(&server, "subscription create mail --pattern ** --queue mail").ok();
    redrive(&server, "subscription rotate-secret mail").failed(4, "not with a target of the kind queue");
}

#[tokio::test]
async fn what_died_is_grouped_and_comes_back() {
    let (server, receiver) = (server(), Receiver::start());
    receiver.answer(500);
    let create = format!("subscription create hook --pattern ** --webhook {} --max-attempts 1", receiver.url);
    redrive(&server, &create).ok();
    for n in 0..3 {
        redrive(&server, &format!("publish a {n}")).ok();
    }
    settled(&server, "hook", &[("dead", 3)]).await;
    let attempts = redrive(&server, "subscription attempts hook").ok();
    assert!(
        attempts.starts_with("BEGAN ") && attempts.contains("     500  answered 500: no\n"),
        "{attempts}"
    );
    let attempts = redrive(&server, "subscription attempts hook --json").json();
    assert_eq!((attempts.as_array().unwrap().len(), &attempts[0]["response"]["status"]), (3, &json!(500)));
    let dead = redrive(&server, "subscription dead hook").ok();
    assert!(dead.lines().nth(1).unwrap().contains("  max_attempts         1  "), "{dead}");
    assert!(dead.lines().nth(1).unwrap().ends_with("  bus.sub.hook  answered 500: no"), "{dead}");
    assert_eq!(redrive(&server, "subscription dead hook -o id --limit 2").ok().lines().count(), 2);
    let groups = redrive(&server, "subscription groups hook").ok();
    assert!(groups.lines().nth(1).unwrap().contains("         3  "), "{groups}");

    receiver.answer(200);
    redrive(&server, "subscription redrive hook").failed(2, "say which messages, or --all");
    let would = redrive(&server, "subscription redrive hook --all --dry-run").ok();
    assert_eq!(would, "would redrive 3 dead events of subscription hook\n");
    redrive(&server, "subscription redrive hook --all")
        .failed(2, "this would redrive 3 dead events of subscription hook");
    let done =
        redrive(&server, "subscription redrive hook --all --yes --wait --reason fixed --by ann --json")
            .json();
    assert_eq!((&done["state"], &done["applied"], &done["by"]), (&json!("done"), &json!(3), &json!("ann")));
    settled(&server, "hook", &[("ready", 0), ("delayed", 0), ("leased", 0), ("dead", 0)]).await;
    let none = redrive(&server, "subscription redrive hook --all --yes").ok();
    assert_eq!(none, "there is no dead event of subscription hook\n");
    redrive(&server, "subscription dead nope").failed(3, "there is no subscription nope");
}

#[tokio::test]
async fn the_past_is_brought_to_who_asks_for_it() {
    let server = server();
    redrive(&server, "topic set orders.* --retain 1d").ok();
    for n in 0..3 {
        redrive(&server, &format!("publish orders.created {n}")).ok();
    }
    redrive(&server, "queue create mail").ok();
    let create = "subscription create mail --pattern orders.* --queue mail";
    let made = redrive(&server, &format!("{create} --replay-from 1h"));
    assert!(made.err.contains("redrive: replay ") && made.err.contains(" has begun\n"), "{made:?}");
    let ready = async |queue: &str, count| {
        while server.count(queue, "ready").await != count {
            tokio::task::yield_now().await;
        }
    };
    ready("mail", 3).await;
    redrive(&server, "queue create late").ok();
    redrive(
        &server,
        "subscription create late --pattern orders.* --queue late --replay-from 2020-01-01T00:00:00Z",
    )
    .ok();
    ready("late", 3).await;
    let leased = server.lease("late", json!({"limit": 3})).await;
    let items: Vec<Value> = leased.iter().map(|message| json!({"receipt": message["receipt"]})).collect();
    server.post("/v1/leases/ack/batch", json!({"items": items})).await;
    let begun = masked(&redrive(&server, "subscription replay late --from 1h").ok());
    assert_eq!(begun, "replay 00000000-0000-0000-0000-000000000000 has begun\n");
    ready("late", 3).await;
    while redrive(&server, "subscription replays late --json").json() != json!([]) {}
    assert_eq!(redrive(&server, "subscription replays late").ok(), "ID  FROM  STARTED  REPLAYED\n");
    let event = leased[0]["id"].as_str().unwrap();
    let waits = redrive(&server, &format!("subscription resend late {event}")).ok();
    assert_eq!(waits, format!("event {event} waited, and is tried now\n"));
    let leased = server.lease("late", json!({"limit": 3})).await;
    for message in &leased {
        server.post("/v1/leases/bury", json!({"receipt": message["receipt"]})).await;
    }
    let dead = redrive(&server, &format!("subscription resend late {event}")).ok();
    assert_eq!(dead, format!("event {event} was dead, and is redriven\n"));
    let again = server.lease("late", json!({})).await;
    server.post("/v1/leases/ack", json!({"receipt": again[0]["receipt"]})).await;
    let over = redrive(&server, &format!("subscription resend late {event} --json")).json();
    assert_eq!(over, json!({"event": event, "how": "enqueued"}));
    let id = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    redrive(&server, &format!("subscription resend late {id}"))
        .failed(3, "neither dead nor waiting for late");
    redrive(&server, "subscription resend late x").failed(2, "<EVENT>");
    redrive(&server, &format!("subscription cancel-replay late {id}")).failed(3, "there is no replay");
    redrive(&server, "subscription replay nope --from 1h").failed(3, "there is no subscription nope");
    redrive(&server, "subscription replay late").failed(2, "--from <TIME|SPAN>");
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_switched_off() {
    let (server, receiver) = (server(), Receiver::start());
    receiver.answer(410);
    redrive(&server, &format!("subscription create hook --pattern ** --webhook {}", receiver.url)).ok();
    redrive(&server, "publish a one").ok();
    while redrive(&server, "subscription show hook --json").json()["state"] != "disabled" {}
    let shown = redrive(&server, "subscription show hook --json").json();
    assert_eq!(shown["disabled"]["why"], "gone");
    settled(&server, "hook", &[("ready", 1)]).await;
    receiver.next();
    receiver.answer(200);
    redrive(&server, "subscription enable hook").ok();
    assert!(receiver.next().body.contains("\"data\":\"one\""), "what waited comes");
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let server = server();
    redrive(&server, "queue create mail").ok();
    for (line, said) in [
        ("subscription create --pattern a", "<--queue <QUEUE>|--webhook <URL>>"),
        ("subscription create --queue mail", "--pattern <PATTERN>"),
        ("subscription create --pattern a --queue mail --webhook http://a", "cannot be used with"),
        ("subscription create --pattern a --queue mail --secret-stdin", "cannot be used with"),
        ("subscription create a/b --pattern a --queue mail", "is not allowed"),
        ("subscription create --pattern ord* --queue mail", "stand for whole segments"),
        (
            "subscription create --pattern a --queue mail --timeout 5s",
            "has no meaning where the target is a queue",
        ),
        ("subscription create --pattern a --webhook ftp://example.com", "url"),
        ("subscription create --pattern a --webhook http://10.0.0.1/", "url"),
        ("subscription create --pattern a --queue mail --replay-from soon", "or a time such as"),
        ("subscription show ..", "cannot be named in an address"),
        ("subscription lsit", "a similar subcommand exists: 'list'"),
    ] {
        redrive(&server, line).failed(2, said);
    }
    redrive(&server, "subscription create --pattern a --queue nope").failed(3, "there is no queue nope");
    redrive(&server, "subscription create mail --pattern a --queue mail").ok();
    redrive(&server, "subscription update mail --format binary")
        .failed(4, "is no webhook: its target is a queue");
    let problem = redrive(&server, "subscription show nope --json");
    let json: Value = serde_json::from_str(&problem.err).unwrap();
    assert_eq!((problem.code, &json["code"]), (3, &json!("SUBSCRIPTION_NOT_FOUND")));
    redrive(&server, "queue create bus.mine").failed(4, "redrive: ");
}

#[tokio::test]
async fn who_subscribes_must_be_able_to_read() {
    let server = Server::keyed(&[]);
    redrive(&server, "queue create mail").ok();
    let as_key = |token: &str, id: &str, pattern: &str| {
        let line = ["subscription", "create", id, "--pattern", pattern, "--queue", "mail"];
        run(command(&server, &line).env("REDRIVE_TOKEN", token))
    };
    let grants = [("manage", "bus.sub.shop-*"), ("read", "orders*"), ("produce", "mail")];
    let (_, token) = server.key(&grants, json!({})).await;
    as_key(&token, "shop-1", "orders.**").ok();
    as_key(&token, "other", "orders.**").failed(5, "redrive: ");
    as_key(&token, "shop-2", "payments.*").failed(5, "redrive: ");
    let (_, token) = server.key(&grants[..2], json!({})).await;
    as_key(&token, "shop-3", "orders.**").failed(5, "redrive: ");
    assert_eq!(redrive(&server, "subscription list -o id").ok(), "shop-1\n");
}
