//! What is printed, and how.

use serde_json::{Value, json};

use crate::run::{command, piped, redrive, run};
use crate::server::Server;

#[tokio::test]
async fn one_thing_and_many_have_every_format() {
    let server = Server::start();
    server.create("b", json!({})).await;
    server.create("a", json!({})).await;
    let of = |line: &str| redrive(&server, line).ok();
    let (a, b) = (server.get("/v1/queues/a").await.text, server.get("/v1/queues/b").await.text);
    assert_eq!(of("queue list -o ndjson"), format!("{a}\n{b}\n"), "the server's own, fields in its order");
    assert_eq!(of("queue show a -o ndjson"), format!("{a}\n"));
    let value: Value = serde_json::from_str(&a).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&of("queue show a -o json")).unwrap(), value);
    assert_eq!(of("queue show a --json"), of("queue show a -o json"));
    assert!(of("queue show a --json").starts_with("{\n  \"name\": \"a\",\n  \"created_at\": \""));
    assert!(of("queue list --json").starts_with("[\n  {\n    \"name\": \"a\",\n"));
    let yaml = of("queue show a -o yaml");
    assert!(
        yaml.starts_with("name: a\ncreated_at: \"")
            && yaml.contains("\nsettings:\n  lease_timeout_ms: 30000\n"),
        "{yaml}"
    );
    assert!(of("queue list -o yaml").starts_with("- name: a\n  created_at: \""));
    assert_eq!(of("queue list -o id"), "a\nb\n");
    redrive(&server, "queue list -o xml").failed(2, "[possible values: table, json, ndjson, yaml, id]");
    redrive(&server, "queue list -o yaml --json").failed(2, "cannot be used with");
}

#[tokio::test]
async fn colours_are_for_those_who_want_them() {
    let server = Server::start();
    server.create("a", json!({})).await;
    let coloured = |flags: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["queue", "list"], flags].concat();
        run(command(&server, &arguments).envs(variables.iter().copied())).ok().contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]), "not into a pipe");
    assert!(coloured(&["--color", "always"], &[]) && coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(coloured(&["--color", "always"], &[("NO_COLOR", "1")]), "a flag is over the environment");
    assert!(!coloured(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["--color", "always", "--json"], &[]), "programs read no colours");
}

#[tokio::test]
async fn who_reads_no_further_is_not_bothered() {
    let server = Server::start();
    let body = "x".repeat(100_000);
    for _ in 0..20 {
        server.enqueue("orders", json!({"body": body})).await;
    }
    let mut reader = piped(&mut command(&server, &["message", "list", "orders", "-o", "ndjson"]));
    drop(reader.stdout.take());
    let ended = reader.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), b"" as &[u8]));
}

#[test]
fn a_refusal_is_a_line_or_the_servers_own_problem() {
    let server = Server::start();
    let ran = redrive(&server, "queue show nope");
    assert_eq!((ran.code, &*ran.out, &*ran.err), (3, "", "redrive: there is no queue nope\n"));
    for flags in ["--json", "-o ndjson"] {
        let ran = redrive(&server, &format!("queue show nope {flags}"));
        let problem: Value = serde_json::from_str(&ran.err).unwrap();
        assert_eq!(
            (ran.code, &problem["code"], &problem["status"]),
            (3, &json!("QUEUE_NOT_FOUND"), &json!(404))
        );
    }
}

#[test]
fn what_may_work_later_is_told() {
    let server = Server::start();
    redrive(&server, "queue create full --max-waiting 1").ok();
    redrive(&server, "enqueue full one").ok();
    let ran = redrive(&server, "enqueue full two");
    assert_eq!((ran.code, &*ran.out), (1, ""));
    assert!(ran.err.ends_with("\nredrive: this may work later (retry after 1s)\n"), "{ran:?}");
}
