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
    let server = Server::keyed(&["--test-clock", "--log-level", "trace"]);
    let (id, token) = server.key(&[("admin", "*")], json!({})).await;
    let rotated = server.post(&format!("/v1/keys/{id}/rotate"), json!({"overlap_ms": 60_000})).await;
    let rotated = rotated.body["token"].as_str().unwrap().to_owned();
    let stranger = generate_key();
    let tokens = [server.token.clone().unwrap(), token.clone(), rotated, stranger.clone()];
    let canaries = Canaries {
        secrets: tokens.iter().map(|token| Canaries::secret(token)).collect(),
        bodies: vec![BODY, HEADER, CHECKPOINT],
    };
    use_it(&server, &token).await;
    use_it_wrongly(&server, &stranger).await;
    // Everything that can be read by GET; what shows messages shows their bodies, and nothing else does.
    let document = server.get("/openapi.json").await;
    for (path, methods) in document.body["paths"].as_object().unwrap() {
        if methods.get("get").is_none() || path == "/v1/events" {
            continue;
        }
        let message = server.get("/v1/queues/jobs/messages").await.body["messages"][0]["id"].clone();
        let id = if path.starts_with("/v1/keys") { id.clone() } else { message.as_str().unwrap().to_owned() };
        let path = path.replace("{queue}", "jobs").replace("{id}", &id);
        let answer = server.get(&path).await;
        assert!(answer.status < 500, "{path}");
        let shows_messages = ["/messages", "/leases", "/dead"].iter().any(|part| path.contains(part));
        if shows_messages {
            canaries.check(&path, &answer.text);
        } else {
            canaries.check_all(&path, &answer.text);
        }
    }
    // A panic in the middle of a request, with a backtrace.
    assert!(
        server.request(Method::POST, "/test/panic").body(BODY).send().await.is_err(),
        "the connection is cut"
    );
    let log = server.log();
    assert!(log.contains("told to by a test") && log.contains("panicked"), "the panic is in the log");
    canaries.check_all("the log", &log);
    // What is kept on the disk is a hash; bodies are what the disk is for.
    for file in files(&server.dir.path().join("data")) {
        let bytes = std::fs::read(&file).unwrap();
        canaries.check(&file.display().to_string(), &String::from_utf8_lossy(&bytes));
    }
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
