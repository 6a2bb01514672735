//! Secrets that are planted everywhere and must be found nowhere.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server, generate_key};

/// What is planted, and must not be told to anybody who did not ask for it.
struct Canaries {
    secrets: Vec<String>,
    bodies: Vec<&'static str>,
}

const BODY: &str = "canary-body-5f1e";
const HEADER: &str = "canary-header-77ab";
const CHECKPOINT: &str = "canary-checkpoint-c01d";

impl Canaries {
    /// The secret part of tokens: the id may be seen.
    fn secret(token: &str) -> String {
        token[21..].to_owned()
    }

    fn check(&self, place: &str, text: &str) {
        for secret in &self.secrets {
            assert!(!text.contains(secret), "a secret in {place}: {text}");
        }
    }

    fn check_all(&self, place: &str, text: &str) {
        self.check(place, text);
        for body in &self.bodies {
            assert!(!text.contains(body), "{body} in {place}: {text}");
        }
    }
}

/// Uses the server in every way that touches what is planted.
async fn use_it(server: &Server, token: &str) {
    let checkpoint = data_encoding(CHECKPOINT.as_bytes());
    server.create("jobs", json!({"retry": {"base_delay_ms": 0}})).await;
    let message = json!({"body": BODY, "headers": {"x-token": HEADER}});
    server.enqueue("jobs", message).await;
    let leased = server.lease("jobs", json!({})).await;
    let receipt = &leased[0]["receipt"];
    server.post("/v1/leases/extend", json!({"receipt": receipt, "checkpoint_base64": checkpoint})).await;
    server.post("/v1/leases/nack", json!({"receipt": receipt, "error": "it failed"})).await;
    // Wrong in every way, with the secrets in them.
    for (path, body) in [
        ("/v1/queues/jobs/messages", json!({"body": BODY, "headers": {"x": [HEADER]}})),
        ("/v1/queues/jobs/messages", json!({"body_base64": BODY})),
        ("/v1/leases/ack", json!({"receipt": BODY})),
        ("/v1/queues/missing/messages", json!({"body": BODY})),
        ("/v1/queues/jobs/lease", json!({"consumer": 5})),
    ] {
        let request = server.request_as(Some(token), Method::POST, path).json(&body);
        assert!(request.send().await.unwrap().status().as_u16() < 500);
    }
    let torn = format!("{{\"body\": \"{BODY}\", \"headers\": {{\"{HEADER}\"");
    let request = server.request_as(Some(token), Method::POST, "/v1/queues/jobs/messages").body(torn);
    assert_eq!(request.header("content-type", "application/json").send().await.unwrap().status(), 400);
}

fn data_encoding(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits =
            part.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at > part.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[tokio::test]
async fn no_secret_is_found_in_any_answer_log_line_metric_or_backtrace() {
    let server = Server::keyed(&["--test-clock", "--log-level", "trace", "--webhook-allow", "127.0.0.1:*"]);
    let (id, token) = server.key(&[("admin", "*")], json!({})).await;
    let rotated = server.post(&format!("/v1/keys/{id}/rotate"), json!({"overlap_ms": 60_000})).await;
    let rotated = rotated.body["token"].as_str().unwrap().to_owned();
    let stranger = generate_key();
    let tokens = [server.token.clone().unwrap(), token.clone(), rotated, stranger.clone()];
    let mut secrets: Vec<String> = tokens.iter().map(|token| Canaries::secret(token)).collect();
    let mut events = server.request(Method::GET, "/v1/events").send().await.unwrap();
    secrets.extend(use_webhooks(&server).await);
    let canaries = Canaries { secrets, bodies: vec![BODY, HEADER, CHECKPOINT] };
    use_it(&server, &token).await;
    use_it_wrongly(&server, &stranger).await;
    // Everything that can be read by GET; what shows messages shows their bodies, and nothing else does.
    let document = server.get("/openapi.json").await;
    for (path, methods) in document.body["paths"].as_object().unwrap() {
        if methods.get("get").is_none() || path == "/v1/events" {
            continue;
        }
        if path.starts_with("/v1/subscriptions/") {
            let path = path.replace("{id}", "hook");
            canaries.check(&path, &server.get(&path).await.text);
            continue;
        }
        let message = server.get("/v1/queues/jobs/messages").await.body["messages"][0]["id"].clone();
        let id = if path.starts_with("/v1/keys") { id.clone() } else { message.as_str().unwrap().to_owned() };
        let path = path.replace("{queue}", "jobs").replace("{id}", &id).replace("{pattern}", "hooks");
        let answer = server.get(&path).await;
        assert!(answer.status < 500, "{path}");
        let shows_messages = ["/messages", "/leases", "/dead"].iter().any(|part| path.contains(part));
        if shows_messages {
            canaries.check(&path, &answer.text);
        } else {
            canaries.check_all(&path, &answer.text);
        }
    }
    // Everything that happened was told.
    let mut told = String::new();
    while !told.contains("\"act\":\"rotated\"") {
        told.push_str(&String::from_utf8_lossy(&events.chunk().await.unwrap().unwrap()));
    }
    canaries.check_all("the events", &told);
    // A panic in the middle of a request, with a backtrace.
    assert!(
        server.request(Method::POST, "/test/panic").body(BODY).send().await.is_err(),
        "the connection is cut"
    );
    let log = server.log();
    assert!(log.contains("told to by a test") && log.contains("panicked"), "the panic is in the log");
    canaries.check_all("the log", &log);
    // What is kept on the disk is a hash; bodies are what the disk is for.
    // A webhook cannot be signed with a hash.
    let canaries = Canaries { secrets: canaries.secrets[..tokens.len()].to_vec(), ..canaries };
    for file in files(&server.dir.path().join("data")) {
        let bytes = std::fs::read(&file).unwrap();
        canaries.check(&file.display().to_string(), &String::from_utf8_lossy(&bytes));
    }
}

/// Has a webhook signed with one secret and then with others, and answers all of them.
async fn use_webhooks(server: &Server) -> Vec<String> {
    let given = "whsec_Y2FuYXJ5LXNlY3JldC1vZi1hLXdlYmhvb2stMDAwMQ==";
    let target = json!({"kind": "webhook", "url": "http://127.0.0.1:9/hook", "secret": given});
    server.put("/v1/topics/hooks", json!({})).await;
    let created =
        server.post("/v1/subscriptions", json!({"id": "hook", "pattern": "hooks", "target": target})).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert!(!created.text.contains("whsec_"), "whoever gave it has it");
    server.post("/v1/topics/hooks/events", json!({"events": [{"body": "x"}]})).await;
    // Nobody is there, and the attempt is kept for people to see.
    while server.get("/v1/subscriptions/hook/attempts").await.body["attempts"] == json!([]) {
        tokio::task::yield_now().await;
    }
    let made = server.post("/v1/subscriptions/hook/secret", json!({})).await.body["secret"].clone();
    for wrong in [
        json!({"secret": format!("{given}?")}),
        json!({"secret": [given]}),
        json!({"secret": given, "overlap_ms": 10_000_000_000_u64}),
    ] {
        let refused = server.post("/v1/subscriptions/hook/secret", wrong).await;
        refused.refused(400, "INVALID_ARGUMENT");
        assert!(!refused.text.contains(&given[6..]), "{refused:?}");
    }
    vec![given[6..].to_owned(), made.as_str().unwrap()[6..].to_owned()]
}

async fn use_it_wrongly(server: &Server, stranger: &str) {
    for path in ["/v1/queues", "/v1/keys", "/metrics"] {
        let answer = server.request_as(Some(stranger), Method::GET, path).send().await.unwrap();
        let answer = Answer::of(answer).await;
        answer.refused(401, "KEY_INVALID");
        assert!(!answer.text.contains(&Canaries::secret(stranger)));
    }
    let _: Value = server.get("/v1/audit").await.body;
}

fn files(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}
