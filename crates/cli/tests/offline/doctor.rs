//! `redrive doctor`.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;

use redrive_test_servers::{AppendFsync, Redis, RedisSettings};
use serde_json::Value;

use crate::run::{Ran, Server, program, redrive};

const FREE: [&str; 3] = ["doctor", "--listen", "127.0.0.1:0"];

/// What it found, by name.
fn found(text: &str, name: &str) -> String {
    let line =
        text.lines().find(|line| line.get(6..).is_some_and(|rest| rest.starts_with(&format!("{name} "))));
    let line = line.unwrap_or_else(|| panic!("{name}: {text}"));
    line.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// A server's address at which nobody listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn every_check_is_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = redrive(dir.path(), &FREE).ok();
    for name in ["configuration", "open files", "data", "disk", "fsync", "port", "server", "clock"] {
        found(&text, name);
    }
    assert!(text.lines().all(|line| line.starts_with("ok    ") || line.starts_with("warn  ")), "{text}");
    let syncs = found(&text, "fsync");
    assert!(syncs.contains("p50 ") && syncs.contains("p99 ") && syncs.ends_with("of 64 syncs"), "{syncs}");
    assert!(found(&text, "data").ends_with("redrive-data is not there yet; the server makes it"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it leaves nothing behind");
    let json = redrive(dir.path(), &[&FREE[..], &["--json"]].concat()).json();
    assert_eq!(json["ok"], true);
    assert_eq!(json["checks"].as_array().unwrap().len(), text.lines().count());
}

#[tokio::test]
async fn a_server_that_runs_is_found_at_its_port_and_its_url() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    server.enqueue("orders", 1).await;
    let address = server.url.trim_start_matches("http://");
    let text =
        redrive(dir.path(), &["doctor", "--listen", address, "--data", "data", "--url", &server.url]).ok();
    assert!(found(&text, "port").starts_with("ok port a redrive "), "{text}");
    assert!(found(&text, "data").ends_with("has a store that a running server has open"), "{text}");
    assert!(found(&text, "server").starts_with("ok server a redrive answers at http://127.0.0.1:"), "{text}");
    assert!(found(&text, "version").starts_with("ok version the server has "), "{text}");
    assert_eq!(found(&text, "ready"), "ok ready store embedded, survives power_loss");
    assert!(found(&text, "server clock").ends_with("this machine's wall clock"), "{text}");
}

#[test]
fn what_fails_is_told_and_is_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let ran = redrive(dir.path(), &[&FREE[..], &["--url", &nowhere()]].concat());
    ran.failed(1, "1 of 8 checks failed");
    assert!(found(&ran.out, "server").starts_with("fail server cannot reach http://127.0.0.1:"), "{ran:?}");
    std::fs::write(dir.path().join("redrive.toml"), "lisen = 1\nzzz = 2\n").unwrap();
    let ran = redrive(dir.path(), &FREE);
    ran.failed(1, "1 of 8 checks failed");
    let said = found(&ran.out, "configuration");
    assert!(
        said.starts_with(
            "fail configuration redrive.toml:1:1: unknown key `lisen`: did you mean `listen`?; "
        ),
        "{said}"
    );
    std::fs::remove_file(dir.path().join("redrive.toml")).unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let ran = redrive(dir.path(), &[&FREE[..], &["--data", "file"]].concat());
    assert!(ran.code == 1 && found(&ran.out, "data") == "fail data file is no directory", "{ran:?}");
    let ran = redrive(dir.path(), &[&FREE[..], &["--json", "--data", "file"]].concat());
    let (out, err): (Value, Value) =
        (serde_json::from_str(&ran.out).unwrap(), serde_json::from_str(&ran.err).unwrap());
    assert_eq!((&out["ok"], &err["code"]), (&Value::from(false), &Value::from("FAILED")));
}

#[test]
fn a_stranger_at_the_port_is_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let stranger = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        // It may have gone; that is its own business.
        drop(connection.write_all(b"220 mail\r\n"));
    });
    let ran = redrive(dir.path(), &["doctor", "--listen", &address]);
    assert!(ran.code == 1, "{ran:?}");
    let said = found(&ran.out, "port");
    assert!(said.starts_with(&format!("fail port {address} is in use, and not by a redrive: ")), "{said}");
    stranger.join().unwrap();
}

#[test]
fn a_database_is_looked_at_and_not_changed() {
    let url = redrive_test_servers::shared_postgres_url();
    let doctor = |schema: &str, more: &[(&str, &str)]| {
        let mut command = program(Path::new("/"));
        command.args(FREE).args(["--store-schema", schema]).env("REDRIVE_STORE", &url);
        Ran::of(command.envs(more.iter().copied()))
    };
    for _ in 0..2 {
        let ran = doctor("doctor_looks", &[("REDRIVE_DURABILITY", "any")]);
        assert!(found(&ran.out, "database").starts_with("ok database PostgreSQL "), "{ran:?}");
        assert_eq!(found(&ran.out, "schema"), "ok schema doctor_looks is not there yet; the server makes it");
        assert!(
            found(&ran.out, "durability").starts_with("ok durability what is answered survives: "),
            "{ran:?}"
        );
        assert!(found(&ran.out, "database clock").contains("this machine's wall clock"), "{ran:?}");
    }
    let away = nowhere().replace("http://", "postgres://me:secret@");
    let ran = Ran::of(program(Path::new("/")).args(FREE).env("REDRIVE_STORE", format!("{away}/db")));
    assert!(ran.code == 1 && found(&ran.out, "database").starts_with("fail database 127.0.0.1:"), "{ran:?}");
    assert!(!format!("{ran:?}").contains("secret"));
}

#[test]
fn a_redis_is_looked_at_and_not_changed() {
    let settings = RedisSettings::default().appendfsync(AppendFsync::EverySecond).password("hunter2");
    let redis = Redis::start(settings).unwrap();
    let doctor = |url: &str, more: &[(&str, &str)]| {
        let mut command = program(Path::new("/"));
        let ran = Ran::of(command.args(FREE).env("REDRIVE_STORE", url).envs(more.iter().copied()));
        assert!(!format!("{ran:?}").contains("hunter2"));
        ran
    };
    let ran = doctor(&redis.url(), &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(found(&ran.out, "redis").starts_with("ok redis Redis "), "{ran:?}");
    assert_eq!(found(&ran.out, "durability"), "ok durability what is answered survives: process_crash");
    assert_eq!(
        found(&ran.out, "format"),
        "ok format nothing is kept under redrive yet; the server begins it"
    );
    assert!(found(&ran.out, "memory").ends_with("has no limit of its own"), "{ran:?}");
    assert!(found(&ran.out, "redis clock").contains("this machine's wall clock"), "{ran:?}");
    assert_eq!(redis.command(&["DBSIZE"]).unwrap(), "0");

    let short = doctor(&redis.url(), &[("REDRIVE_DURABILITY", "power")]);
    assert!(
        short.code == 1 && found(&short.out, "durability").contains("appendfsync is everysec"),
        "{short:?}"
    );
    redis.command(&["HSET", "redrive:{redrive}:store", "format", "9"]).unwrap();
    let newer = doctor(&redis.url(), &[]);
    assert!(found(&newer.out, "format").starts_with("fail format redrive has format 9"), "{newer:?}");
    redis.command(&["CONFIG", "SET", "maxmemory", "100mb"]).unwrap();
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    let evicts = doctor(&redis.url(), &[]);
    assert!(found(&evicts.out, "durability").contains("maxmemory-policy is allkeys-lru"), "{evicts:?}");
    assert!(found(&evicts.out, "memory").starts_with("warn memory"), "{evicts:?}");

    let replica = redis.replica().unwrap();
    let ran = doctor(&replica.url(), &[]);
    assert!(ran.code == 1 && found(&ran.out, "redis").contains("is a replica"), "{ran:?}");
    let away = nowhere().replace("http://", "redis://me:hunter2@");
    let ran = doctor(&away, &[]);
    assert!(ran.code == 1 && found(&ran.out, "redis").starts_with("fail redis 127.0.0.1:"), "{ran:?}");
}

#[test]
fn a_cluster_is_looked_at_node_by_node() {
    let url = redrive_test_servers::shared_redis_cluster_url();
    let mut command = program(Path::new("/"));
    command.args(FREE).env("REDRIVE_STORE", &url).env("REDRIVE_DURABILITY", "any");
    let ran = Ran::of(&mut command);
    assert_eq!(found(&ran.out, "cluster"), "ok cluster all slots are served");
    assert_eq!(ran.out.matches("redis          Redis ").count(), 3, "{ran:?}");
}
