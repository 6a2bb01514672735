//! The real binary, started for one test on a free port with a directory of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// With `http://` or `https://` before the address, and behind it the path below which everything is.
    origin: String,
    pub(crate) client: Client,
    pub(crate) dir: tempfile::TempDir,
    /// What requests show, where the server wants a key.
    pub(crate) token: Option<String>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With a clock that only the test moves.
    pub(crate) fn with_clock() -> Self {
        Self::with(&["--test-clock"])
    }

    pub(crate) fn with(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (child, origin) = launch(dir.path(), flags, None);
        let client = Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
        Self { child, origin, client, dir, token: None }
    }

    /// A server that wants a key; requests show the one that may do everything.
    pub(crate) fn keyed(flags: &[&str]) -> Self {
        let token = generate_key();
        let dir = tempfile::tempdir().unwrap();
        let (child, origin) = launch(dir.path(), flags, Some(&token));
        let client = Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
        Self { child, origin, client, dir, token: Some(token) }
    }

    /// The same server for somebody who shows something else, or nothing.
    pub(crate) fn request_as(&self, token: Option<&str>, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, self.url(path));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Makes a key with these grants, and answers its id and its token.
    pub(crate) async fn key(&self, grants: &[(&str, &str)], more: Value) -> (String, String) {
        let grants: Vec<Value> =
            grants.iter().map(|(scope, queues)| json!({"scope": scope, "queues": queues})).collect();
        let mut request = json!({"name": "a test", "grants": grants});
        request.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let answer = self.post("/v1/keys", request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&answer.body["key"]["id"]), text(&answer.body["token"]))
    }

    /// Kills the process as the machine would, and starts another on what it left.
    pub(crate) fn kill_and_restart(&mut self, flags: &[&str]) {
        self.kill();
        (self.child, self.origin) = launch(self.dir.path(), flags, self.token.as_deref());
        self.client = Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
    }

    /// Kills the process as the machine would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the process to end, and waits for its end.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the server has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    /// Waits until the server has written this so many times.
    pub(crate) async fn logged(&self, words: &str, times: usize) {
        while self.log().matches(words).count() < times {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let (signal, pid) = (format!("-{name}"), self.pid().to_string());
        assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
    }

    pub(crate) fn address(&self) -> &str {
        self.origin.split('/').nth(2).unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_as(self.token.as_deref(), method, path)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::PUT, path).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    /// Moves the clock of a server that was started with one.
    pub(crate) async fn advance(&self, ms: u64) {
        assert_eq!(self.post("/test/clock", json!(ms)).await.status, 200);
    }

    pub(crate) async fn create(&self, name: &str, config: Value) {
        let answer = self.post("/v1/queues", json!({"name": name, "config": config})).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    pub(crate) async fn enqueue(&self, queue: &str, message: Value) -> String {
        let answer = self.post(&format!("/v1/queues/{queue}/messages"), message).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn lease(&self, queue: &str, request: Value) -> Vec<Value> {
        let answer = self.post(&format!("/v1/queues/{queue}/lease"), request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["messages"].as_array().unwrap().clone()
    }

    pub(crate) async fn stats(&self, queue: &str) -> Value {
        self.get(&format!("/v1/queues/{queue}/stats")).await.body
    }

    /// How many messages are in a state.
    pub(crate) async fn count(&self, queue: &str, state: &str) -> u64 {
        self.stats(queue).await["states"][state].as_u64().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A key as the program itself makes one.
pub(crate) fn generate_key() -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_redrive")).args(["key", "generate"]).output().unwrap();
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn launch(dir: &Path, flags: &[&str], key: Option<&str>) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .envs(key.map(|key| ("REDRIVE_BOOTSTRAP_KEY", key)))
        .env("RUST_BACKTRACE", "1")
        .env("REDRIVE_LOG_FORMAT", "json")
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(dir.join("data"))
        .args(flags)
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.next().and_then(Result::ok);
    let ready = ready.unwrap_or_else(|| {
        panic!("it did not start: {}", std::fs::read_to_string(dir.join("log")).unwrap_or_default())
    });
    // What else it prints must not fill the pipe.
    thread::spawn(move || lines.for_each(drop));
    let origin = ready.rsplit(' ').next().unwrap().to_owned();
    (child, origin)
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let kind =
            headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status, kind, headers, body, text }
    }

    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// A refusal as it must look: problem+json, with this code.
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code()), (status, code), "{self:?}");
        assert_eq!(self.kind, "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], status);
        assert!(self.body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{self:?}");
    }
}
