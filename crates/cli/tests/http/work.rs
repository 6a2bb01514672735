//! `redrive work` with the real binary: outcomes by exit code, and everything that ends a worker in the middle.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::server::Server;

const QUEUE: &str = "jobs";

/// A worker process. Its commands are shell scripts that find the test's directory in `$DIR`.
struct Work {
    child: Child,
    errors: Arc<Mutex<String>>,
}

impl Work {
    fn start(url: &str, dir: &Path, flags: &[&str], script: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_redrive"))
            .args(["work", QUEUE, "--url", url])
            .args(flags)
            .args(["--", "sh", "-c", script])
            .env("DIR", dir)
            .stdin(Stdio::null())
            .stdout(std::fs::File::options().create(true).append(true).open(dir.join("stdout")).unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = Arc::<Mutex<String>>::default();
        let (kept, lines) = (Arc::clone(&errors), BufReader::new(child.stderr.take().unwrap()).lines());
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self { child, errors }
    }

    fn signal(&self, name: &str) {
        let (signal, pid) = (format!("-{name}"), self.child.id().to_string());
        assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A server with a queue whose retries come a minute later.
async fn server(flags: &[&str]) -> Server {
    let server = Server::with(flags);
    server.create(QUEUE, json!({"retry": {"base_delay_ms": 60_000}})).await;
    server
}

fn file(dir: &Path, name: &str) -> PathBuf {
    dir.join(name)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Waits until a file has so many lines.
async fn lines(path: &Path, count: usize) -> Vec<String> {
    loop {
        let lines: Vec<String> = read(path).lines().map(str::to_owned).collect();
        if lines.len() >= count {
            return lines;
        }
        tokio::task::yield_now().await;
    }
}

/// Waits until a process is gone.
async fn gone(pid: &str) {
    // One that has ended and was not waited for is gone, too.
    let runs = || {
        let stat = read(&PathBuf::from(format!("/proc/{pid}/stat")));
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    while runs() {
        tokio::task::yield_now().await;
    }
}

async fn message(server: &Server, id: &str) -> Value {
    server.get(&format!("/v1/queues/{QUEUE}/messages/{id}")).await.body
}

/// Waits until a message is in a state; `gone` where it is not there.
async fn until(server: &Server, id: &str, state: &str) -> Value {
    loop {
        let answer = server.get(&format!("/v1/queues/{QUEUE}/messages/{id}")).await;
        let is = if answer.status == 404 { "gone" } else { answer.body["state"].as_str().unwrap() };
        if is == state {
            return answer.body;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_exit_code_says_what_becomes_of_a_message() {
    let server = server(&[]).await;
    let mut ids = Vec::new();
    for code in ["0", "75", "100", "1"] {
        ids.push(server.enqueue(QUEUE, json!({"body": code, "type": "t", "fairness_key": "k"})).await);
    }
    let script = r#"code=$(cat); echo "$code $REDRIVE_QUEUE $REDRIVE_MESSAGE_ID $REDRIVE_ATTEMPT $REDRIVE_TYPE $REDRIVE_FAIRNESS_KEY $REDRIVE_FENCING_TOKEN"; echo "said $code" >&2; exit $code"#;
    let mut work = Work::start(&server.url(""), server.dir.path(), &["--concurrency", "4"], script);
    until(&server, &ids[0], "gone").await;
    let later = until(&server, &ids[1], "delayed").await;
    assert_eq!((&later["last_error"], &later["attempts"]), (&json!("said 75"), &json!(1)));
    let buried = until(&server, &ids[2], "dead").await;
    assert_eq!((&buried["last_error"], &buried["dead_reason"]), (&json!("said 100"), &json!("buried")));
    let failed = until(&server, &ids[3], "delayed").await;
    assert_eq!(failed["last_error"], "said 1");
    work.signal("TERM");
    assert_eq!(work.wait().code(), Some(0));
    let said = read(&file(server.dir.path(), "stdout"));
    let first = said.lines().find(|line| line.starts_with("0 ")).unwrap();
    assert!(first.starts_with(&format!("0 jobs {} 1 t k ", ids[0])), "{first}");
    assert!(first.rsplit(' ').next().unwrap().parse::<u64>().unwrap() > 0, "{first}");
    assert!(work.errors().contains(&format!("{}: said 1\n", ids[3])), "{}", work.errors());
}

#[tokio::test]
async fn sigterm_lets_a_command_finish_and_takes_nothing_more() {
    let server = server(&[]).await;
    let dir = server.dir.path();
    let first = server.enqueue(QUEUE, json!({"body": "first"})).await;
    let script = r#"echo begun >> "$DIR/begun"; mkfifo "$DIR/go"; read go < "$DIR/go""#;
    let mut work = Work::start(&server.url(""), dir, &[], script);
    lines(&file(dir, "begun"), 1).await;
    work.signal("TERM");
    let second = server.enqueue(QUEUE, json!({"body": "second"})).await;
    // The command reads it when it is there.
    while !file(dir, "go").exists() {
        tokio::task::yield_now().await;
    }
    std::fs::write(file(dir, "go"), "go\n").unwrap();
    assert_eq!(work.wait().code(), Some(0));
    until(&server, &first, "gone").await;
    let left = message(&server, &second).await;
    assert_eq!((&left["state"], &left["deliveries"]), (&json!("ready"), &json!(0)));
}

#[tokio::test]
async fn a_command_that_hangs_after_sigterm_is_killed_with_its_children_and_released() {
    let server = server(&[]).await;
    let dir = server.dir.path();
    let id = server.enqueue(QUEUE, json!({"body": "x"})).await;
    let script = r#"sleep 1000 & echo "$! $$" > "$DIR/pids"; wait"#;
    let mut work = Work::start(&server.url(""), dir, &["--grace", "1ms"], script);
    let pids = lines(&file(dir, "pids"), 1).await.remove(0);
    work.signal("TERM");
    assert_eq!(work.wait().code(), Some(0));
    for pid in pids.split(' ') {
        gone(pid).await;
    }
    let back = message(&server, &id).await;
    assert_eq!(
        (&back["state"], &back["attempts"], &back["deliveries"]),
        (&json!("ready"), &json!(0), &json!(1))
    );
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_and_releases() {
    let server = server(&[]).await;
    let dir = server.dir.path();
    let id = server.enqueue(QUEUE, json!({"body": "x"})).await;
    // It does not heed SIGTERM.
    let script = r#"trap '' TERM; echo $$ > "$DIR/pids"; while :; do sleep 1000; done"#;
    let mut work = Work::start(&server.url(""), dir, &["--grace", "1h"], script);
    let pid = lines(&file(dir, "pids"), 1).await.remove(0);
    work.signal("TERM");
    // Two that are pending are one: the second comes when the first was heard, and until then again.
    let ended = loop {
        if let Some(ended) = work.child.try_wait().unwrap() {
            break ended;
        }
        work.signal("INT");
        tokio::task::yield_now().await;
    };
    assert_eq!(ended.code(), Some(130), "{}", work.errors());
    gone(&pid).await;
    assert_eq!(message(&server, &id).await["state"], "ready");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_with_its_children_and_fails() {
    let server = server(&[]).await;
    let dir = server.dir.path();
    let id = server.enqueue(QUEUE, json!({"body": "x"})).await;
    let script = r#"echo trying >&2; sleep 1000 & echo "$! $$" > "$DIR/pids"; wait"#;
    let work = Work::start(&server.url(""), dir, &["--timeout", "300ms"], script);
    let failed = until(&server, &id, "delayed").await;
    assert_eq!(failed["last_error"], "the command took longer than 300ms\ntrying");
    for pid in lines(&file(dir, "pids"), 1).await.remove(0).split(' ') {
        gone(pid).await;
    }
    drop(work);
}

#[cfg(feature = "test-clock")]
#[tokio::test]
async fn what_a_killed_worker_held_runs_again_only_when_its_lease_has_run_out() {
    let server = server(&["--test-clock"]).await;
    let dir = server.dir.path();
    let id = server.enqueue(QUEUE, json!({"body": "x"})).await;
    // Nothing of the test's is left open in what outlives its worker.
    let script = r#"echo "$$ $REDRIVE_ATTEMPT $REDRIVE_FENCING_TOKEN" >> "$DIR/runs"; [ $REDRIVE_ATTEMPT -gt 1 ] || exec sleep 1000 3>&-"#;
    let mut first = Work::start(&server.url(""), dir, &["--consumer", "first"], script);
    let run = lines(&file(dir, "runs"), 1).await.remove(0);
    let orphan = Orphan(run.split(' ').next().unwrap().to_owned());
    first.signal("KILL");
    first.wait();
    // The server has heard of its end, and nothing is handed to it any more.
    while open_connections(&server).await > 1 {
        tokio::task::yield_now().await;
    }
    let second = Work::start(&server.url(""), dir, &["--consumer", "second"], script);
    while !has_consumer(&server).await {
        tokio::task::yield_now().await;
    }
    // The second is there and asks; the lease of the first goes on.
    server.advance(29_000).await;
    let held = message(&server, &id).await;
    assert_eq!((&held["state"], &held["lease"]["consumer"]), (&json!("leased"), &json!("first")));
    assert_eq!(lines(&file(dir, "runs"), 1).await.len(), 1, "nobody else got it");
    server.advance(1_000).await;
    until(&server, &id, "gone").await;
    let runs = lines(&file(dir, "runs"), 2).await;
    assert_eq!(runs.len(), 2);
    let token = |run: &str| run.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    assert!(token(&runs[1]) > token(&runs[0]), "{runs:?}");
    drop((orphan, second));
}

/// A command whose worker was killed: nobody's child, which the test ends.
#[cfg(feature = "test-clock")]
struct Orphan(String);

#[cfg(feature = "test-clock")]
impl Drop for Orphan {
    fn drop(&mut self) {
        drop(Command::new("kill").args(["-KILL", &self.0]).status());
    }
}

#[cfg(feature = "test-clock")]
async fn open_connections(server: &Server) -> u32 {
    let metrics = server.get("/metrics").await.text;
    let line = metrics.lines().find_map(|line| line.strip_prefix("redrive_connections "));
    line.unwrap().parse().unwrap()
}

/// Whether somebody waits for messages.
#[cfg(feature = "test-clock")]
async fn has_consumer(server: &Server) -> bool {
    let metrics = server.get("/metrics").await.text;
    metrics.lines().any(|line| line.starts_with("redrive_waiting_polls") && line.ends_with(" 1"))
}

/// Passes connections on to whichever server there is.
fn relay(target: &Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let target = Arc::clone(target);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(target.lock().unwrap().as_str()) else { continue };
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                thread::spawn(move || {
                    drop(std::io::copy(&mut from, &mut to));
                    drop(to.shutdown(std::net::Shutdown::Both));
                });
            }
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_command_goes_on_over_the_end_of_its_server() {
    let mut server = server(&[]).await;
    let dir = server.dir.path().to_owned();
    let target = Arc::new(Mutex::new(server.address().to_owned()));
    let id = server.enqueue(QUEUE, json!({"body": "x"})).await;
    let script = r#"echo run >> "$DIR/runs"; mkfifo "$DIR/go"; read go < "$DIR/go""#;
    let mut work = Work::start(&relay(&target), &dir, &[], script);
    lines(&file(&dir, "runs"), 1).await;
    server.kill_and_restart(&[]);
    server.address().clone_into(&mut target.lock().unwrap());
    while !file(&dir, "go").exists() {
        tokio::task::yield_now().await;
    }
    std::fs::write(file(&dir, "go"), "go\n").unwrap();
    until(&server, &id, "gone").await;
    assert_eq!(read(&file(&dir, "runs")), "run\n", "it ran once");
    work.signal("TERM");
    assert_eq!(work.wait().code(), Some(0));
}

#[tokio::test]
async fn a_worker_that_cannot_work_says_why() {
    let server = server(&[]).await;
    let id = server.enqueue(QUEUE, json!({"body": "x"})).await;
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_redrive")).arg("work").args(arguments).output().unwrap()
    };
    let url = server.url("");
    let missing = run(&["nothing-here", "--url", &url, "--", "true"]);
    assert_eq!(missing.status.code(), Some(3), "{missing:?}");
    let no_such = run(&[QUEUE, "--url", &url, "--", "/no/such/program"]);
    assert_eq!(no_such.status.code(), Some(1));
    assert!(String::from_utf8(no_such.stderr).unwrap().contains("running /no/such/program: No such file"));
    let back = message(&server, &id).await;
    assert_eq!(
        (&back["state"], &back["attempts"]),
        (&json!("ready"), &json!(0)),
        "nobody is to blame for that"
    );
    let short = run(&[QUEUE, "--url", &url, "--lease", "1ms", "--", "true"]);
    assert_eq!(short.status.code(), Some(2));
    assert_eq!(run(&[QUEUE, "--url", &url]).status.code(), Some(2), "a command is needed");
}

#[tokio::test]
async fn the_example_runs() {
    let server = server(&[]).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../redrive/examples/exec_worker.sh");
    let bin = Path::new(env!("CARGO_BIN_EXE_redrive")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh").arg(script).env("PATH", path).env("REDRIVE_URL", server.url("")).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("a thumbnail of cat.png, attempt 1"), "{said}");
}

#[tokio::test]
async fn a_worker_works_over_tls_and_shows_its_key() {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (file(dir.path(), "cert.pem"), file(dir.path(), "key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let mut server = Server::keyed(&["--tls-cert", cert, "--tls-key", key]);
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    server.client = reqwest::Client::builder().tls_certs_only([trusted]).build().unwrap();
    server.create(QUEUE, json!({})).await;
    let id = server.enqueue(QUEUE, json!({"body": "x"})).await;
    let url = server.url("");
    let (_, may_not) = server.key(&[("produce", "*")], json!({})).await;
    for (token, code) in [("rdk_none", 5), (may_not.as_str(), 5)] {
        let mut refused = Work::start(&url, dir.path(), &["--ca", cert, "--token", token], "true");
        assert_eq!(refused.wait().code(), Some(code), "{}", refused.errors());
    }
    let token = server.token.clone().unwrap();
    let mut work = Work::start(&url, dir.path(), &["--ca", cert, "--token", &token], "cat");
    until(&server, &id, "gone").await;
    work.signal("TERM");
    assert_eq!(work.wait().code(), Some(0));
}
