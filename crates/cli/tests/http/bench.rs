//! `redrive bench`: that it measures, not what.

use std::process::{Command, Output};

use serde_json::Value;

use crate::server::Server;

/// A run that is as short as it gets.
fn bench(dir: &std::path::Path, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(["bench", "--rounds", "1", "--seconds", "1", "--dir"]).arg(dir).args(flags);
    command.output().unwrap()
}

fn names(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_bench_measures_servers_of_its_own_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(dir.path(), &["--only", "life-cycle,latency,enqueue", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(names(&report["rounds"], "arm"), ["engine", "server", "server", "parse only", "server"]);
    for round in report["rounds"].as_array().unwrap() {
        let figures = round["figures"].as_object().unwrap();
        assert!(
            figures.values().all(|figure| figure.as_f64().is_some_and(|figure| figure >= 0.0)),
            "{round}"
        );
    }
    let bars = ["consume_rate", "consume_cpu_us", "deliver_p50_ms", "enqueue_cpu_over_parse_us"];
    assert_eq!(names(&report["bars"], "name"), bars);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_bench_loads_a_server_that_is_there_and_judges_nothing() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let url = server.url("");
    let output = bench(dir.path(), &["--url", &url, "--only", "life-cycle", "--callers", "2", "--check"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("== life-cycle") && !text.contains("bar "), "{text}");
    let refused = bench(dir.path(), &["--url", &url, "--only", "idle"]);
    assert_eq!(refused.status.code(), Some(1), "what it costs is not seen from outside");
    let nobody = bench(dir.path(), &["--url", "http://127.0.0.1:1", "--only", "latency"]);
    assert!(String::from_utf8(nobody.stderr).unwrap().contains("connecting to http://127.0.0.1:1"));
}

#[test]
fn a_worker_is_measured_beside_a_bare_stream() {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(dir.path(), &["--only", "worker", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(names(&report["rounds"], "arm"), ["stream", "worker"]);
    assert_eq!(names(&report["bars"], "name"), ["worker_rate"]);
}
