//! API keys through their lives, and what they open.

use std::time::Duration;

use redrive_wire::v1;
use redrive_wire::v1::consume_request::Request;
use redrive_wire::v1::redrive_client::RedriveClient;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

use crate::leases::next_event;
use crate::server::{Answer, Server};

async fn ask(server: &Server, token: &str, method: Method, path: &str, body: Value) -> Answer {
    let request = server.request_as(Some(token), method, path).json(&body);
    Answer::of(request.send().await.unwrap()).await
}

async fn whoami(server: &Server, token: &str) -> Answer {
    ask(server, token, Method::GET, "/v1/whoami", json!({})).await
}

#[tokio::test]
async fn a_key_is_shown_once_and_outlives_the_server() {
    let mut server = Server::keyed(&[]);
    let (id, token) =
        server.key(&[("produce", "orders.*"), ("read", "*")], json!({"consumers_max": 3})).await;
    let seen = server.get(&format!("/v1/keys/{id}")).await;
    assert_eq!((&seen.body["id"], &seen.body["state"]), (&json!(id), &json!("active")));
    assert_eq!(seen.body["grants"][0], json!({"scope": "produce", "queues": "orders.*"}));
    assert_eq!(seen.body["consumers_max"], 3);
    let all = server.get("/v1/keys").await;
    for text in [&seen.text, &all.text] {
        assert!(
            !text.contains(&token[21..]) && !text.contains("token") && !text.contains("sha256"),
            "{text}"
        );
    }
    let (second, _) = server.key(&[("read", "*")], json!({})).await;
    let page = server.get("/v1/keys?limit=1").await.body;
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/v1/keys?cursor={cursor}")).await.body;
    let mut ids = vec![page["keys"][0]["id"].clone(), rest["keys"][0]["id"].clone()];
    ids.sort_by_key(Value::to_string);
    let mut both = vec![json!(id), json!(second)];
    both.sort_by_key(Value::to_string);
    assert_eq!((ids, rest.get("next_cursor")), (both, None));
    server.kill_and_restart(&[]);
    assert_eq!(whoami(&server, &token).await.body["key"]["id"], id, "it was durable before it was shown");
    assert_eq!(server.post(&format!("/v1/keys/{id}/revoke"), json!({})).await.body["state"], "revoked");
    server.kill_and_restart(&[]);
    whoami(&server, &token).await.refused(401, "KEY_REVOKED");
    // Without the key of the environment the keys of the store still stand before it.
    server.token = None;
    server.kill_and_restart(&[]);
    server.get("/v1/queues").await.refused(401, "KEY_MISSING");
}

#[tokio::test]
async fn a_server_without_keys_lets_anyone_in_and_makes_none() {
    let server = Server::start();
    assert_eq!(server.get("/v1/whoami").await.body, json!({"keys_needed": false}));
    let create = json!({"name": "first", "grants": [{"scope": "admin", "queues": "*"}]});
    server.post("/v1/keys", create).await.refused(409, "KEYS_NOT_IN_USE");
    server.get("/v1/keys").await.refused(409, "KEYS_NOT_IN_USE");
}

#[tokio::test]
async fn a_rotated_key_has_two_secrets_for_as_long_as_it_was_said() {
    let server = Server::keyed(&["--test-clock"]);
    let (id, first) = server.key(&[("read", "*")], json!({})).await;
    let rotate = async |overlap: u64| {
        let answer = server.post(&format!("/v1/keys/{id}/rotate"), json!({"overlap_ms": overlap})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.headers["cache-control"], "no-store");
        answer.body["token"].as_str().unwrap().to_owned()
    };
    let second = rotate(60_000).await;
    assert_eq!((whoami(&server, &first).await.status, whoami(&server, &second).await.status), (200, 200));
    server.advance(60_000).await;
    whoami(&server, &first).await.refused(401, "KEY_EXPIRED");
    assert_eq!(whoami(&server, &second).await.status, 200);
    let third = rotate(60_000).await;
    let fourth = rotate(60_000).await;
    whoami(&server, &second).await.refused(401, "KEY_INVALID");
    assert_eq!((whoami(&server, &third).await.status, whoami(&server, &fourth).await.status), (200, 200));
    let fifth = rotate(0).await;
    whoami(&server, &fourth).await.refused(401, "KEY_EXPIRED");
    assert_eq!(whoami(&server, &fifth).await.status, 200);
    let too_long = server.post(&format!("/v1/keys/{id}/rotate"), json!({"overlap_ms": 604_800_001})).await;
    too_long.refused(400, "INVALID_ARGUMENT");
    server.post(&format!("/v1/keys/{id}/revoke"), json!({})).await;
    server.post(&format!("/v1/keys/{id}/rotate"), json!({})).await.refused(409, "KEY_ENDED");
}

#[tokio::test]
async fn a_key_gives_what_it_holds_and_no_more() {
    let server = Server::keyed(&["--test-clock"]);
    let now = server.post("/test/clock", json!(0)).await.body.as_u64().unwrap();
    let at = |ms: u64| json!(redrive_wire::Time(now + ms));
    let more = json!({"expires_at": at(100_000), "queues_max": 5, "consumers_max": 2});
    let (id, admin) = server.key(&[("admin", "a.*"), ("produce", "b")], more).await;
    let give = async |grants: Value, more: Value| {
        let mut request = json!({"name": "given", "grants": grants});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask(&server, &admin, Method::POST, "/v1/keys", request).await
    };
    let grant = |scope: &str, queues: &str| json!([{"scope": scope, "queues": queues}]);
    let given = give(grant("consume", "a.x*"), json!({"queues_max": 9})).await;
    assert_eq!(given.status, 201, "{given:?}");
    let view = &given.body["key"];
    assert_eq!(
        (&view["created_by"], &view["expires_at"]),
        (&json!(id), &at(100_000)),
        "it ends with its giver"
    );
    assert_eq!((&view["queues_max"], &view["consumers_max"]), (&json!(5), &json!(2)), "and has no more");
    assert_eq!(give(grant("produce", "b"), json!({})).await.status, 201);
    for (scope, queues) in
        [("read", "*"), ("admin", "a*"), ("consume", "b"), ("produce", "b*"), ("read", "aa.x")]
    {
        give(grant(scope, queues), json!({})).await.refused(403, "NOT_HELD");
    }
    give(grant("read", "a.1"), json!({"expires_at": at(100_001)})).await.refused(403, "NOT_HELD");
    give(grant("read", "a.1"), json!({"expires_at": at(0)})).await.refused(400, "INVALID_ARGUMENT");
    give(json!([]), json!({})).await.refused(400, "INVALID_ARGUMENT");
    give(grant("root", "a.1"), json!({})).await.refused(400, "INVALID_ARGUMENT");
    give(grant("read", "a.(1|2)"), json!({})).await.refused(400, "INVALID_ARGUMENT");
    // Nor does it get at the secret of a key that holds more than itself.
    let (endless, _) = server.key(&[("admin", "a.*")], json!({"queues_max": 5, "consumers_max": 2})).await;
    let rotate = format!("/v1/keys/{endless}/rotate");
    ask(&server, &admin, Method::POST, &rotate, json!({})).await.refused(403, "NOT_HELD");
    let (free, _) = server.key(&[("admin", "a.*")], json!({"expires_at": at(90_000)})).await;
    let rotate = format!("/v1/keys/{free}/rotate");
    ask(&server, &admin, Method::POST, &rotate, json!({})).await.refused(403, "NOT_HELD");
    for id in [endless, free] {
        assert_eq!(
            ask(&server, &admin, Method::POST, &format!("/v1/keys/{id}/revoke"), json!({})).await.status,
            200
        );
    }
    // A secret that was replaced gives nothing that would outlive it.
    let renewed =
        ask(&server, &admin, Method::POST, &format!("/v1/keys/{id}/rotate"), json!({"overlap_ms": 60_000}))
            .await;
    let renewed = renewed.body["token"].as_str().unwrap().to_owned();
    ask(&server, &admin, Method::POST, &format!("/v1/keys/{id}/rotate"), json!({}))
        .await
        .refused(403, "NOT_HELD");
    give(grant("read", "a.1"), json!({})).await.refused(403, "NOT_HELD");
    let admin = renewed;
    // It rules what lies within what it administrates, and does not see the rest.
    let (outside, _) = server.key(&[("read", "a.1"), ("read", "c")], json!({})).await;
    for verb in ["rotate", "revoke"] {
        let path = format!("/v1/keys/{outside}/{verb}");
        ask(&server, &admin, Method::POST, &path, json!({})).await.refused(404, "KEY_NOT_FOUND");
    }
    let seen = ask(&server, &admin, Method::GET, "/v1/keys", json!({})).await.body;
    let seen_keys = seen["keys"].as_array().unwrap();
    let alive = seen_keys.iter().filter(|key| key["state"] == "active" && key["id"] != json!(id)).count();
    assert_eq!(alive, 1, "what was given over b is not its to rule: {seen}");
    // The one from the environment is changed where it stands.
    let own = server.get("/v1/whoami").await.body["key"]["id"].as_str().unwrap().to_owned();
    server.post(&format!("/v1/keys/{own}/revoke"), json!({})).await.refused(409, "KEY_OF_ENVIRONMENT");
    ask(&server, &admin, Method::POST, &format!("/v1/keys/{own}/revoke"), json!({}))
        .await
        .refused(404, "KEY_NOT_FOUND");
}

#[tokio::test]
async fn quotas_hold() {
    let server = Server::keyed(&["--auto-create", "true"]);
    let quotas = json!({"queues_max": 2, "keys_max": 1, "consumers_max": 1});
    let (_, token) = server.key(&[("admin", "a.*")], quotas).await;
    let create =
        async |name: &str| ask(&server, &token, Method::POST, "/v1/queues", json!({"name": name})).await;
    assert_eq!(create("a.1").await.status, 201);
    server.create("a.2", json!({})).await;
    server.create("b", json!({})).await;
    create("a.3").await.refused(429, "QUOTA_REACHED");
    // What comes into being by a message would not be counted.
    ask(&server, &token, Method::POST, "/v1/queues/a.3/messages", json!({"body": "x"}))
        .await
        .refused(404, "QUEUE_NOT_FOUND");
    assert_eq!(server.post("/v1/queues/a.3/messages", json!({"body": "x"})).await.status, 201);
    let give = json!({"name": "given", "grants": [{"scope": "read", "queues": "a.1"}]});
    let first = ask(&server, &token, Method::POST, "/v1/keys", give.clone()).await;
    assert_eq!(first.status, 201);
    ask(&server, &token, Method::POST, "/v1/keys", give.clone()).await.refused(429, "QUOTA_REACHED");
    let id = first.body["key"]["id"].as_str().unwrap();
    ask(&server, &token, Method::POST, &format!("/v1/keys/{id}/revoke"), json!({})).await;
    assert_eq!(
        ask(&server, &token, Method::POST, "/v1/keys", give).await.status,
        201,
        "one that ended does not count"
    );
    // Nor do those that it makes make more for it.
    let heir = json!({"name": "heir", "grants": [{"scope": "admin", "queues": "a.*"}], "keys_max": 9});
    let (_, giver) = server.key(&[("admin", "a.*")], json!({"keys_max": 2})).await;
    let heir = ask(&server, &giver, Method::POST, "/v1/keys", heir).await;
    let heir = heir.body["token"].as_str().unwrap();
    let more = json!({"name": "more", "grants": [{"scope": "read", "queues": "a.1"}]});
    assert_eq!(ask(&server, heir, Method::POST, "/v1/keys", more.clone()).await.status, 201);
    ask(&server, heir, Method::POST, "/v1/keys", more).await.refused(429, "QUOTA_REACHED");
    let poll = json!({"wait_ms": 50_000});
    let waits = tokio::spawn(
        server.request_as(Some(&token), Method::POST, "/v1/queues/a.1/lease").json(&poll).send(),
    );
    until_polls(&server, 1).await;
    ask(&server, &token, Method::POST, "/v1/queues/a.1/lease", poll).await.refused(429, "QUOTA_REACHED");
    server.enqueue("a.1", json!({"body": "x"})).await;
    assert_eq!(waits.await.unwrap().unwrap().status(), 200);
    assert_eq!(ask(&server, &token, Method::POST, "/v1/queues/a.1/lease", json!({})).await.status, 200);
}

/// Waits until so many polls wait.
async fn until_polls(server: &Server, polls: usize) {
    let wanted = format!("redrive_waiting_polls {polls}\n");
    while !server.get("/metrics").await.text.contains(&wanted) {
        tokio::task::yield_now().await;
    }
}

/// A client that shows a token.
async fn grpc(server: &Server) -> RedriveClient<Channel> {
    RedriveClient::connect(format!("http://{}", server.address())).await.unwrap()
}

fn shows<T>(token: &str, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let value: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

/// Somebody who waits in every way there is.
struct Waiting {
    poll: tokio::task::JoinHandle<Response>,
    events: Response,
    consume: Streaming<v1::ConsumeResponse>,
    watch: Streaming<v1::Event>,
    lease: tokio::task::JoinHandle<Result<(), tonic::Status>>,
}

impl Waiting {
    async fn new(server: &Server, token: &str) -> Self {
        let poll = server.request_as(Some(token), Method::POST, "/v1/queues/jobs/lease");
        let poll = poll.json(&json!({"wait_ms": 55_000})).send();
        let poll = tokio::spawn(async move { poll.await.unwrap() });
        let events = server.request_as(Some(token), Method::GET, "/v1/events").send().await.unwrap();
        assert_eq!(events.status(), 200);
        let mut client = grpc(server).await;
        let start = v1::ConsumeStart { queue: "jobs".to_owned(), credit: 1, ..v1::ConsumeStart::default() };
        let said = v1::ConsumeRequest { request: Some(Request::Start(start)) };
        let stays =
            futures::StreamExt::chain(futures::stream::once(async { said }), futures::stream::pending());
        let consume = client.consume(shows(token, stays)).await.unwrap().into_inner();
        let watch = client.watch_events(shows(token, v1::WatchEventsRequest::default())).await.unwrap();
        let call =
            v1::LeaseRequest { queue: "jobs".to_owned(), wait_ms: 55_000, ..v1::LeaseRequest::default() };
        let call = shows(token, call);
        let lease = tokio::spawn(async move { client.lease(call).await.map(drop) });
        until_polls(server, 3).await;
        Self { poll, events, consume, watch: watch.into_inner(), lease }
    }

    /// All of it ends, with that reason where one can be told.
    async fn ends(mut self, code: &str) {
        let ended = async {
            Answer::of(self.poll.await.unwrap()).await.refused(401, code);
            while let Ok(Some(_)) = self.events.chunk().await {}
            let told = loop {
                match self.consume.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("it must be told why"),
                    Err(status) => break status,
                }
            };
            assert_eq!(told.code(), Code::Unauthenticated);
            while let Ok(Some(_)) = self.watch.message().await {}
            assert_eq!(self.lease.await.unwrap().unwrap_err().code(), Code::Unauthenticated);
        };
        tokio::time::timeout(Duration::from_mins(1), ended).await.expect("within a minute");
    }
}

#[tokio::test]
async fn whoever_waits_is_cut_when_the_key_ends() {
    let server = Server::keyed(&["--test-clock"]);
    server.create("jobs", json!({})).await;
    let grants = [("consume", "jobs"), ("read", "jobs")];
    let (id, token) = server.key(&grants, json!({})).await;
    let waiting = Waiting::new(&server, &token).await;
    server.post(&format!("/v1/keys/{id}/revoke"), json!({})).await;
    waiting.ends("KEY_REVOKED").await;

    let now = server.post("/test/clock", json!(0)).await.body.as_u64().unwrap();
    let (_, token) = server.key(&grants, json!({"expires_at": redrive_wire::Time(now + 5_000)})).await;
    let waiting = Waiting::new(&server, &token).await;
    server.advance(5_000).await;
    waiting.ends("KEY_EXPIRED").await;

    let (id, token) = server.key(&grants, json!({})).await;
    let waiting = Waiting::new(&server, &token).await;
    server.post(&format!("/v1/keys/{id}/rotate"), json!({"overlap_ms": 1_000})).await;
    server.advance(1_000).await;
    waiting.ends("KEY_EXPIRED").await;
    until_polls(&server, 0).await;
}

#[tokio::test]
async fn a_key_that_ends_while_a_request_is_sent_opens_nothing() {
    let server = Server::keyed(&[]);
    server.create("jobs", json!({})).await;
    let (id, token) = server.key(&[("admin", "*")], json!({})).await;
    let (more, rest) = tokio::sync::mpsc::channel::<Result<&'static str, std::io::Error>>(4);
    more.send(Ok("{\"name\": \"late\", ")).await.unwrap();
    let body = reqwest::Body::wrap_stream(tokio_stream::wrappers::ReceiverStream::new(rest));
    let request = server.request_as(Some(&token), Method::POST, "/v1/keys").body(body);
    let request = tokio::spawn(request.header("content-type", "application/json").send());
    // The stream has been opened, and says nothing yet.
    let mut client = grpc(&server).await;
    let (say, said) = tokio::sync::mpsc::channel(1);
    let stream = shows(&token, tokio_stream::wrappers::ReceiverStream::new(said));
    let stream = tokio::spawn(async move { client.consume(stream).await.map(drop) });
    server.post(&format!("/v1/keys/{id}/revoke"), json!({})).await;
    more.send(Ok("\"grants\": [{\"scope\": \"admin\", \"queues\": \"*\"}]}")).await.unwrap();
    drop(more);
    Answer::of(request.await.unwrap().unwrap()).await.refused(401, "KEY_REVOKED");
    assert_eq!(stream.await.unwrap().unwrap_err().code(), Code::Unauthenticated);
    drop::<tokio::sync::mpsc::Sender<v1::ConsumeRequest>>(say);
}

#[tokio::test]
async fn nobody_reads_a_message_for_a_stranger() {
    let server = Server::keyed(&[]);
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    // The start of a message of 16 MiB, and then nothing more.
    let endless = futures::StreamExt::chain(
        futures::stream::once(async { Ok::<_, std::io::Error>(vec![0, 1, 0, 0, 0]) }),
        futures::stream::pending(),
    );
    let call =
        client.post(server.url("/redrive.v1.Redrive/Enqueue")).header("content-type", "application/grpc");
    let answer = call.body(reqwest::Body::wrap_stream(endless)).send();
    let answer = tokio::time::timeout(Duration::from_mins(1), answer).await.expect("at once").unwrap();
    assert_eq!(answer.headers()["grpc-status"], "16");
}

#[tokio::test]
async fn a_receipt_opens_nothing_for_who_may_not_consume_its_queue() {
    let server = Server::keyed(&[]);
    for name in ["a.jobs", "b.jobs"] {
        server.create(name, json!({})).await;
        server.enqueue(name, json!({"body": "x"})).await;
    }
    let (_, token) = server.key(&[("consume", "a.*")], json!({})).await;
    let other = server.lease("b.jobs", json!({})).await[0]["receipt"].clone();
    let own = ask(&server, &token, Method::POST, "/v1/queues/a.jobs/lease", json!({})).await;
    let own = own.body["messages"][0]["receipt"].clone();
    for verb in ["ack", "nack", "extend", "release", "bury"] {
        let path = format!("/v1/leases/{verb}");
        ask(&server, &token, Method::POST, &path, json!({"receipt": other})).await.refused(403, "FORBIDDEN");
        let both = json!({"items": [{"receipt": own}, {"receipt": other}]});
        ask(&server, &token, Method::POST, &format!("{path}/batch"), both).await.refused(403, "FORBIDDEN");
        let garbage = ask(&server, &token, Method::POST, &path, json!({"receipt": "AAAA"})).await;
        garbage.refused(400, "INVALID_RECEIPT");
    }
    assert_eq!((server.count("a.jobs", "leased").await, server.count("b.jobs", "leased").await), (1, 1));
    assert_eq!(
        ask(&server, &token, Method::POST, "/v1/leases/ack", json!({"receipt": own})).await.status,
        204
    );
    // Over the stream, too: nothing of a message that holds one of them is done.
    let mut client = grpc(&server).await;
    let start = v1::ConsumeStart { queue: "a.jobs".to_owned(), credit: 1, ..v1::ConsumeStart::default() };
    let ack = v1::Ack { receipt: other.as_str().unwrap().to_owned() };
    let settle = v1::ConsumeSettle { acks: vec![ack], ..v1::ConsumeSettle::default() };
    let said = [Request::Start(start), Request::Settle(settle)];
    let said = futures::stream::iter(said.map(|request| v1::ConsumeRequest { request: Some(request) }));
    let mut answers = client.consume(shows(&token, said)).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(server.count("b.jobs", "leased").await, 1);
}

#[tokio::test]
async fn lists_and_events_leave_out_what_a_key_may_not_see() {
    let server = Server::keyed(&[]);
    for number in 0..9 {
        server.create(&format!("a.{number}"), json!({})).await;
        server.create(&format!("b.{number}"), json!({})).await;
    }
    let (_, token) = server.key(&[("read", "b.*")], json!({})).await;
    let get = async |path: &str| ask(&server, &token, Method::GET, path, json!({})).await.body;
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&format!("/v1/queues?limit=4{cursor}")).await;
        let queues = page["queues"].as_array().unwrap();
        assert!(queues.len() <= 4);
        names.extend(queues.iter().map(|queue| queue["name"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names, (0..9).map(|number| format!("b.{number}")).collect::<Vec<_>>());
    for queue in ["a.1", "b.1"] {
        let begun = server.post(&format!("/v1/queues/{queue}/purge"), json!({})).await;
        assert_eq!(begun.status, 202);
    }
    let operations = get("/v1/operations").await;
    assert_eq!(operations["operations"].as_array().unwrap().len(), 1);
    assert_eq!(operations["operations"][0]["queue"], "b.1");
    assert_eq!(operations["operations"][0]["filter"], json!({}));
    let (_, worker) = server.key(&[("consume", "b.*")], json!({})).await;
    let looked = ask(&server, &worker, Method::GET, "/v1/operations", json!({})).await.body;
    let looked = looked["operations"][0].as_object().unwrap();
    assert_eq!(looked["queue"], "b.1");
    assert!(
        !looked.contains_key("filter") && !looked.contains_key("until"),
        "words of messages are not told"
    );
    let all = server.get("/v1/operations").await.body;
    let other = all["operations"].as_array().unwrap().iter().find(|one| one["queue"] == "a.1").unwrap();
    let path = format!("/v1/operations/{}", other["id"].as_str().unwrap());
    let hidden = ask(&server, &token, Method::GET, &path, json!({})).await;
    hidden.refused(404, "OPERATION_NOT_FOUND");
    assert!(!hidden.text.contains("a.1"), "{hidden:?}");
    let mut events = server.request_as(Some(&token), Method::GET, "/v1/events").send().await.unwrap();
    server.enqueue("a.1", json!({"body": "x"})).await;
    server.enqueue("b.1", json!({"body": "x"})).await;
    assert_eq!(next_event(&mut events, "enqueue").await["payload"]["queue"], "b.1");
    ask(&server, &token, Method::GET, "/v1/events?queue=a.1", json!({})).await.refused(403, "FORBIDDEN");
}

#[tokio::test]
async fn where_messages_go_is_asked_for_as_well() {
    let server = Server::keyed(&["--auto-create", "true"]);
    for name in ["a.1", "a.2", "b.1"] {
        server.create(name, json!({})).await;
    }
    let id = server.enqueue("a.1", json!({"body": "x"})).await;
    let (_, token) = server.key(&[("manage", "a.*"), ("produce", "a.2")], json!({})).await;
    let go = async |target: &str| {
        let path = format!("/v1/queues/a.1/messages/{id}/move");
        ask(&server, &token, Method::POST, &path, json!({"queue": target})).await
    };
    go("b.1").await.refused(403, "FORBIDDEN");
    go("a.1").await.refused(403, "FORBIDDEN");
    let many = json!({"queue": "b.1", "filter": {"ids": [id]}});
    ask(&server, &token, Method::POST, "/v1/queues/a.1/messages/move", many).await.refused(403, "FORBIDDEN");
    for config in [json!({"dead_letter_to": "b.1"}), json!({"dead_letter_to": "a.1"})] {
        ask(&server, &token, Method::PUT, "/v1/queues/a.2", json!({"config": config}))
            .await
            .refused(403, "FORBIDDEN");
        let create = json!({"name": "a.9", "config": config});
        ask(&server, &token, Method::POST, "/v1/queues", create).await.refused(403, "FORBIDDEN");
    }
    let within = json!({"config": {"dead_letter_to": "a.2"}});
    assert_eq!(ask(&server, &token, Method::PUT, "/v1/queues/a.1", within).await.status, 200);
    assert_eq!(server.count("a.1", "ready").await, 1);
    assert_eq!(go("a.2").await.status, 204);
    // Who may only produce does not create by it.
    let (_, producer) = server.key(&[("produce", "*")], json!({})).await;
    let put = async |token: &str| {
        ask(&server, token, Method::POST, "/v1/queues/new/messages", json!({"body": "x"})).await
    };
    put(&producer).await.refused(404, "QUEUE_NOT_FOUND");
    let (_, both) = server.key(&[("produce", "*"), ("manage", "new")], json!({})).await;
    assert_eq!(put(&both).await.status, 201);
}
