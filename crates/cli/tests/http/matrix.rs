//! Every endpoint and every RPC, for every scope over every kind of pattern, and for everything that is no key.
//!
//! The tables say what each route needs. A route that the server describes and that is not here fails the test, and so
//! does one that is here and not there.

mod needs;

use std::collections::BTreeSet;

use prost::Message as _;
use redrive_wire::v1;
use redrive_wire::v1::consume_request::Request as Said;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use self::needs::{ENDPOINTS, KEY_ENDPOINTS, Needs, RPCS};
use crate::server::Server;

/// The queue that all of it is about.
const QUEUE: &str = "m.jobs";

const SCOPES: [&str; 5] = ["read", "produce", "consume", "manage", "admin"];
/// Patterns, and whether each chooses the queue. Some would, if they were regular expressions or prefixes.
const PATTERNS: [(&str, bool); 10] = [
    ("*", true),
    ("m.*", true),
    ("m.jobs", true),
    ("*jobs", true),
    ("other.*", false),
    ("m.job", false),
    ("m.jobs.*", false),
    ("M.JOBS", false),
    ("m..jobs", false),
    ("*.m.jobs", false),
];

/// Whether a key with one grant may call a route.
fn may(needs: Needs, scope: &str, (pattern, chooses): (&str, bool)) -> bool {
    let holds = |wanted: &str| scope == wanted || scope == "admin" || (scope == "manage" && wanted == "read");
    // The subscription has the name of the queue, and so its own queue is `bus.sub.m.jobs`.
    let of_subscription = matches!(pattern, "*" | "*jobs" | "*.m.jobs");
    match needs {
        Needs::Nothing | Needs::Key => true,
        Needs::AnyScope => chooses,
        Needs::On(wanted) => holds(wanted) && chooses,
        Needs::Every(wanted) => holds(wanted) && pattern == "*",
        Needs::Some(wanted) => holds(wanted),
        Needs::ManageAndProduce => scope == "admin" && chooses,
        Needs::AnyScopeOfSubscription => of_subscription,
        Needs::OnSubscription(wanted) => holds(wanted) && of_subscription,
        Needs::Subscribe => holds("manage") && of_subscription && chooses,
    }
}

/// One request to one route, the same for everybody.
#[derive(Debug, Clone)]
enum Call {
    Http { method: Method, path: String, body: Option<Value> },
    Grpc { rpc: &'static str, message: Vec<u8> },
}

/// What an RPC of the bus says.
fn of_the_bus(rpc: &str) -> Vec<u8> {
    let (id, pattern, topic) = (QUEUE.to_owned(), QUEUE.to_owned(), QUEUE.to_owned());
    let settings =
        Some(v1::SubscriptionSettings { pattern: QUEUE.to_owned(), ..v1::SubscriptionSettings::default() });
    match rpc {
        "Publish" => v1::PublishRequest { topic, events: vec![v1::NewEvent::default()] }.encode_to_vec(),
        "SetTopic" => v1::SetTopicRequest { pattern, ..v1::SetTopicRequest::default() }.encode_to_vec(),
        "GetTopic" => v1::GetTopicRequest { pattern }.encode_to_vec(),
        "DeleteTopic" => v1::DeleteTopicRequest { pattern, force: false }.encode_to_vec(),
        "CreateSubscription" => {
            let target = Some(v1::NewTarget { kind: "handler".to_owned(), ..v1::NewTarget::default() });
            v1::CreateSubscriptionRequest { id, settings, target, replay_from_ms: None }.encode_to_vec()
        }
        "UpdateSubscription" => {
            v1::UpdateSubscriptionRequest { id, settings, ..v1::UpdateSubscriptionRequest::default() }
                .encode_to_vec()
        }
        "GetBreaker" | "TripBreaker" | "ResetBreaker" => {
            let of = Some(v1::get_breaker_request::Of::Subscription(id));
            v1::GetBreakerRequest { of }.encode_to_vec()
        }
        "ListTopics" | "ListSubscriptions" | "ListQueues" | "WatchEvents" => Vec::new(),
        // The others say which, in the same place.
        _ => v1::GetSubscriptionRequest { id }.encode_to_vec(),
    }
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    denied: bool,
    code: String,
}

/// A server with the things that the calls are about.
struct World {
    server: Server,
    grpc: Client,
    receipt: String,
    operation: String,
    key: String,
}

impl World {
    async fn new() -> Self {
        let server = Server::keyed(&["--test-clock", "--log-level", "error"]);
        server.create(QUEUE, json!({})).await;
        server.enqueue(QUEUE, json!({"body": "stays"})).await;
        let leased = server.lease(QUEUE, json!({})).await;
        let receipt = leased[0]["receipt"].as_str().unwrap().to_owned();
        assert_eq!(server.post("/v1/leases/ack", json!({"receipt": receipt})).await.status, 204);
        server.enqueue(QUEUE, json!({"body": "stays"})).await;
        let purge = json!({"filter": {"ids": ["01987654-3210-7abc-8def-0123456789ab"]}});
        let begun = server.post(&format!("/v1/queues/{QUEUE}/messages/discard"), purge).await;
        let operation = begun.body["id"].as_str().unwrap().to_owned();
        let (key, _) = server.key(&[("produce", QUEUE)], json!({})).await;
        let grpc = Client::builder().http2_prior_knowledge().build().unwrap();
        Self { server, grpc, receipt, operation, key }
    }

    /// The endpoints as the server describes them: name, method, path.
    async fn described(&self) -> Vec<(String, Method, String)> {
        let document = self.server.get("/openapi.json").await.body;
        let mut all = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                all.push((operation["operationId"].as_str().unwrap().to_owned(), method, path.clone()));
            }
        }
        all
    }

    fn http(&self, name: &str, method: Method, path: &str) -> Call {
        let id = match path {
            path if path.starts_with("/v1/operations/") => &self.operation,
            path if path.starts_with("/v1/keys/") => &self.key,
            path if path.starts_with("/v1/subscriptions/") => QUEUE,
            _ => "01987654-3210-7abc-8def-0123456789ab",
        };
        let path = path.replace("{queue}", QUEUE).replace("{id}", id);
        let path = path.replace("{topic}", QUEUE).replace("{pattern}", QUEUE);
        let path = path.replace("{replay}", "01987654-3210-7abc-8def-0123456789ab");
        let receipt = json!({"receipt": self.receipt});
        let body = match name {
            "create_queue" => Some(json!({"name": QUEUE})),
            "update_queue" => Some(json!({"config": {}})),
            "set_weights" | "set_topic" => Some(json!({})),
            "purge_queue" | "discard_messages" | "redrive" | "redrive_subscription" | "discard_dead" => {
                Some(json!({"dry_run": true}))
            }
            "publish" => Some(json!({"events": [{"body": "x"}]})),
            "create_subscription" => {
                Some(json!({"id": QUEUE, "pattern": QUEUE, "target": {"kind": "handler"}}))
            }
            "update_subscription" => Some(json!({"pattern": QUEUE})),
            "resend" => Some(json!({"event": "01987654-3210-7abc-8def-0123456789ab"})),
            "replay_subscription" => Some(json!({"from": "2020-01-01T00:00:00.000Z"})),
            "move_message" => Some(json!({"queue": QUEUE})),
            "move_messages" => Some(json!({"queue": QUEUE, "dry_run": true})),
            "enqueue" => Some(json!({"body": "x"})),
            "enqueue_batch" => Some(json!({"messages": [{"body": "x"}]})),
            "reschedule_message" => Some(json!({"delay_ms": 1})),
            "ack" | "nack" | "extend" | "release" | "bury" => Some(receipt),
            name if name.ends_with("_batch") => Some(json!({"items": [receipt]})),
            "create_key" => Some(json!({"name": "given", "grants": [{"scope": "produce", "queues": QUEUE}]})),
            "rotate_key" => Some(json!({"overlap_ms": 0})),
            _ => None,
        };
        Call::Http { method, path, body }
    }

    fn rpc(&self, rpc: &'static str) -> Call {
        let (queue, name, receipt) = (QUEUE.to_owned(), QUEUE.to_owned(), self.receipt.clone());
        let message = match rpc {
            "Enqueue" => {
                v1::EnqueueRequest { queue, messages: vec![v1::NewMessage::default()], all_or_nothing: false }
                    .encode_to_vec()
            }
            "Lease" => v1::LeaseRequest { queue, ..v1::LeaseRequest::default() }.encode_to_vec(),
            "Ack" => v1::AckRequest { items: vec![v1::Ack { receipt }] }.encode_to_vec(),
            "Nack" => {
                v1::NackRequest { items: vec![v1::Nack { receipt, ..v1::Nack::default() }] }.encode_to_vec()
            }
            "Extend" => v1::ExtendRequest { items: vec![v1::Extend { receipt, ..v1::Extend::default() }] }
                .encode_to_vec(),
            "Release" => {
                v1::ReleaseRequest { items: vec![v1::Release { receipt, ..v1::Release::default() }] }
                    .encode_to_vec()
            }
            "Bury" => {
                v1::BuryRequest { items: vec![v1::Bury { receipt, ..v1::Bury::default() }] }.encode_to_vec()
            }
            "Consume" => {
                let start = v1::ConsumeStart { queue, ..v1::ConsumeStart::default() };
                v1::ConsumeRequest { request: Some(Said::Start(start)) }.encode_to_vec()
            }
            "CreateQueue" => v1::CreateQueueRequest { name, config: None }.encode_to_vec(),
            "GetQueue" => v1::GetQueueRequest { name }.encode_to_vec(),
            "UpdateQueue" => {
                v1::UpdateQueueRequest { name, ..v1::UpdateQueueRequest::default() }.encode_to_vec()
            }
            "DeleteQueue" => v1::DeleteQueueRequest { name, force: false }.encode_to_vec(),
            "PauseQueue" => {
                v1::PauseQueueRequest { name, ..v1::PauseQueueRequest::default() }.encode_to_vec()
            }
            "ResumeQueue" => {
                v1::ResumeQueueRequest { name, ..v1::ResumeQueueRequest::default() }.encode_to_vec()
            }
            "QueueStats" => v1::QueueStatsRequest { name }.encode_to_vec(),
            _ => of_the_bus(rpc),
        };
        Call::Grpc { rpc, message }
    }

    /// Every route with what it needs and a call of it.
    async fn routes(&self) -> Vec<(String, Needs, Call)> {
        let described = self.described().await;
        let table: Vec<(&str, Needs)> = ENDPOINTS.into_iter().chain(KEY_ENDPOINTS).collect();
        let mut routes = Vec::new();
        for (name, method, path) in described {
            let needs = table.iter().find(|(known, _)| *known == name).map(|(_, needs)| *needs).unwrap();
            let call = self.http(&name, method, &path);
            routes.push((name, needs, call));
        }
        routes.extend(RPCS.into_iter().map(|(rpc, needs)| (rpc.to_owned(), needs, self.rpc(rpc))));
        // What ends the key that it is about comes last.
        routes.sort_by_key(|(name, ..)| name == "revoke_key");
        routes
    }

    async fn call(&self, token: Option<&str>, call: &Call) -> Outcome {
        match call {
            Call::Http { method, path, body } => {
                let mut request = self.server.request_as(token, method.clone(), path);
                if let Some(body) = body {
                    request = request.json(body);
                }
                let response = request.send().await.unwrap();
                let status = response.status().as_u16();
                // What streams does not end; whether it began is all that is asked.
                let kind = response.headers().get("content-type");
                let streams = kind.is_some_and(|kind| kind == "text/event-stream");
                let body: Value =
                    if streams { Value::Null } else { response.json().await.unwrap_or_default() };
                let code = body["code"].as_str().unwrap_or_default().to_owned();
                // A key or an operation that one may not see is not there.
                let hidden = matches!(&*code, "KEY_NOT_FOUND" | "OPERATION_NOT_FOUND");
                let denied = matches!(status, 401 | 403) || hidden;
                assert!(status < 500, "{call:?}: {status} {body}");
                Outcome { denied, code }
            }
            Call::Grpc { rpc, message } => {
                let mut frame = vec![0];
                frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
                frame.extend(message);
                let url = self.server.url(&format!("/redrive.v1.Redrive/{rpc}"));
                let mut request =
                    self.grpc.post(url).header("content-type", "application/grpc").header("te", "trailers");
                if let Some(token) = token {
                    request = request.bearer_auth(token);
                }
                let response = request.body(frame).send().await.unwrap();
                let header =
                    |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
                let status: Option<String> = header("grpc-status");
                // What is refused has nothing but a head, which says so.
                let denied = matches!(status.as_deref(), Some("16" | "7"));
                Outcome { denied, code: header("grpc-message").unwrap_or_default() }
            }
        }
    }
}

#[tokio::test]
async fn every_route_is_in_the_tables_and_nothing_else_is() {
    let world = World::new().await;
    let described: BTreeSet<String> = world.described().await.into_iter().map(|(name, ..)| name).collect();
    let table = ENDPOINTS.into_iter().chain(KEY_ENDPOINTS).map(|(name, _)| name.to_owned()).collect();
    assert_eq!(described, table, "what each endpoint needs must be written down");
    let proto = include_str!("../../../wire/proto/redrive/v1/redrive.proto");
    let rpcs: BTreeSet<&str> =
        proto.lines().filter_map(|line| line.trim().strip_prefix("rpc ")?.split('(').next()).collect();
    assert_eq!(rpcs, RPCS.into_iter().map(|(rpc, _)| rpc).collect(), "and what each RPC needs");
}

#[tokio::test]
async fn each_scope_over_each_pattern_opens_what_it_is_for_and_nothing_else() {
    let world = World::new().await;
    let routes = world.routes().await;
    let (mut opened, mut shut) = (0, 0);
    for scope in SCOPES {
        for pattern in PATTERNS {
            // One of its own, because one of the calls revokes it.
            let (key, _) = world.server.key(&[("produce", QUEUE)], json!({})).await;
            let (_, token) = world.server.key(&[(scope, pattern.0)], json!({})).await;
            for (name, needs, call) in &routes {
                let call = match call {
                    Call::Http { method, path, body } => Call::Http {
                        method: method.clone(),
                        path: path.replace(&world.key, &key),
                        body: body.clone(),
                    },
                    rpc @ Call::Grpc { .. } => rpc.clone(),
                };
                let outcome = world.call(Some(&token), &call).await;
                let expected = may(*needs, scope, pattern);
                assert_eq!(!outcome.denied, expected, "{name} with {scope} over {}: {outcome:?}", pattern.0);
                if expected { opened += 1 } else { shut += 1 }
            }
        }
    }
    assert!(opened > 500 && shut > 2_000, "{opened} {shut}");
}

#[tokio::test]
async fn whoever_shows_no_key_that_works_gets_nowhere() {
    let world = World::new().await;
    let server = &world.server;
    let (id, revoked) = server.key(&[("admin", "*")], json!({})).await;
    assert_eq!(server.post(&format!("/v1/keys/{id}/revoke"), json!({})).await.status, 200);
    let (_, right) = server.key(&[("admin", "*")], json!({})).await;
    let mut wrong = right.clone();
    let last = wrong.pop().unwrap();
    wrong.push(if last == 'A' { 'E' } else { 'A' });
    let unknown = crate::server::generate_key();
    let now = server.post("/test/clock", json!(0)).await.body.as_u64().unwrap();
    let end = redrive_wire::Time(now + 1_000);
    let (_, expired) = server.key(&[("admin", "*")], json!({"expires_at": end})).await;
    server.advance(2_000).await;
    for (name, needs, call) in world.routes().await {
        for (token, code) in [
            (None, "KEY_MISSING"),
            (Some(&wrong), "KEY_INVALID"),
            (Some(&unknown), "KEY_INVALID"),
            (Some(&expired), "KEY_EXPIRED"),
            (Some(&revoked), "KEY_REVOKED"),
        ] {
            let outcome = world.call(token.map(String::as_str), &call).await;
            assert_eq!(outcome.denied, needs != Needs::Nothing, "{name}, {code}: {outcome:?}");
            if outcome.denied && matches!(call, Call::Http { .. }) {
                assert_eq!(outcome.code, code, "{name}");
            }
        }
        if name != "revoke_key" {
            let outcome = world.call(Some(&right), &call).await;
            assert!(!outcome.denied, "{name}: {outcome:?}");
        }
    }
}

/// Names that mean another queue to somebody who reads them carelessly.
fn hostile_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "*",
        "m.*",
        "m.jobs%2f..%2f..%2fother.jobs",
        "m.jobs/../other.jobs",
        "..%2fother.jobs",
        "%2e%2e/other.jobs",
        "other.jobs%00",
        "m.%00other.jobs",
        "m.jobs%0d%0aother.jobs",
        "other%2ejobs",
        "other%252ejobs",
        "OTHER.JOBS",
        "other.jobs%20",
        "%20other.jobs",
        "other.jobs.",
        "other.jobs;m.jobs",
        "other.jobs,m.jobs",
        "other.jobs%3Fm.",
        "other.jobs%23m.",
        "m.|other.jobs",
        "(m.jobs|other.jobs)",
        "^other",
        "other.job?",
        "[o]ther.jobs",
        "oth\u{435}r.jobs",
        "other\u{ff0e}jobs",
        "other\u{2024}jobs",
        "other.jobs\u{200b}",
        "other.jobs%c0%ae",
        "%ff%fe",
        "m.jobs%5c..%5cother.jobs",
        "'other.jobs",
        "other.jobs'--",
        "{other.jobs}",
        "$(other.jobs)",
        "`other.jobs`",
        "%24ne",
        "null",
        "undefined",
        "-",
        ".",
        "..",
    ]
    .map(str::to_owned)
    .into();
    names.push("o".repeat(81));
    names.push(format!("m.{}", "x".repeat(8_000)));
    names
}

#[tokio::test]
async fn hostile_names_never_widen_a_grant() {
    let server = Server::keyed(&[]);
    server.create("other.jobs", json!({})).await;
    server.create("m.jobs", json!({})).await;
    server.enqueue("other.jobs", json!({"body": "mine"})).await;
    let grants = SCOPES.map(|scope| (scope, "m.*"));
    let (_, token) = server.key(&grants, json!({})).await;
    for name in hostile_names() {
        for (method, path) in [
            (Method::GET, format!("/v1/queues/{name}")),
            (Method::GET, format!("/v1/queues/{name}/messages")),
            (Method::POST, format!("/v1/queues/{name}/messages")),
            (Method::POST, format!("/v1/queues/{name}/lease")),
            (Method::POST, format!("/v1/queues/{name}/purge")),
            (Method::DELETE, format!("/v1/queues/{name}?force=true")),
        ] {
            let request = server.request_as(Some(&token), method.clone(), &path).json(&json!({"body": "x"}));
            // Some are no address at all.
            let Ok(response) = request.send().await else { continue };
            let status = response.status().as_u16();
            assert!(matches!(status, 400 | 403 | 404 | 405 | 414 | 431), "{method} {path}: {status}");
        }
        let create = json!({"name": name});
        let answer =
            server.request_as(Some(&token), Method::POST, "/v1/queues").json(&create).send().await.unwrap();
        assert!(matches!(answer.status().as_u16(), 400 | 403), "{name}: {answer:?}");
    }
    assert_eq!(server.count("other.jobs", "ready").await, 1, "nobody was here");
    let queues = server.get("/v1/queues").await.body["queues"].as_array().unwrap().len();
    assert_eq!(queues, 2);
}
