//! `redrive config`.

use std::fs;

use crate::run::{Ran, program, redrive};

#[test]
fn the_default_file_is_right_and_says_what_holds_anyway() {
    let dir = tempfile::tempdir().unwrap();
    let text = redrive(dir.path(), &["config", "default"]).ok();
    let before = redrive(dir.path(), &["config", "show"]).ok();
    fs::write(dir.path().join("redrive.toml"), &text).unwrap();
    assert_eq!(redrive(dir.path(), &["config", "check"]).ok(), "redrive.toml: ok\n");
    assert_eq!(redrive(dir.path(), &["config", "show"]).ok(), before);
    assert!(text.contains("\n# REDRIVE_LISTEN, --listen\nlisten = \"127.0.0.1:7400\"\n"), "{text}");
}

#[test]
fn every_wrong_key_is_told_with_its_place_and_what_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("redrive.toml"), "lisen = \"127.0.0.1:1\"\n\n  max_atempts = 3\nzzz = 1\n")
        .unwrap();
    let ran = redrive(dir.path(), &["config", "check"]);
    assert_eq!(
        ran.out,
        "redrive.toml:1:1: unknown key `lisen`: did you mean `listen`?\n\
         redrive.toml:3:3: unknown key `max_atempts`: did you mean `max_attempts`?\n\
         redrive.toml:4:1: unknown key `zzz`\n"
    );
    ran.failed(1, "redrive: no server starts so");
    // The server says the same.
    let served = redrive(dir.path(), &["serve"]);
    served.failed(1, "redrive.toml:1:1: unknown key `lisen`: did you mean `listen`?");
}

#[test]
fn a_wrong_value_is_told_with_who_said_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("other.toml");
    let check = || redrive(dir.path(), &["config", "check", "other.toml"]);
    for (text, said) in [
        ("workers = 1\nlisten = \"here\"", "other.toml:2:1: listen: `here` must be an address and a port"),
        ("max_attempts = \"many\"", "other.toml:1:16: invalid type: string"),
        ("max_attempts = 0", "other.toml:1:1: max_attempts: must be at least 1"),
        ("tls_cert = \"a\"", "other.toml:1:1: tls_cert: needs tls_key beside it"),
        ("durability = \"local\"", "other.toml:1:1: durability: `local` must be sync, none"),
        (
            "listen = \"0.0.0.0:1\"",
            "other.toml:1:1: listen: 0.0.0.0:1 can be reached from other machines, and TLS is missing",
        ),
        ("tls_cert = \"a\"\ntls_key = \"b\"", "other.toml:1:1: tls_cert: "),
        (
            "\n\nlog_level = \"redrive=loud\"",
            "other.toml:3:1: log_level: `redrive=loud` is no filter of log lines",
        ),
        ("listen = ", "other.toml:1:10: "),
        ("[server]\nlisten = \"127.0.0.1:1\"", "other.toml:1:2: unknown key `server`"),
    ] {
        fs::write(&file, text).unwrap();
        let ran = check();
        assert!(ran.code == 1 && ran.out.starts_with(said), "{text}: {ran:?}");
    }
    fs::remove_file(&file).unwrap();
    assert!(check().out.starts_with("reading other.toml: "), "{:?}", check());
    let ran = Ran::of(program(dir.path()).args(["config", "check"]).env("REDRIVE_LISTEN", "here"));
    assert!(ran.code == 1 && ran.out.starts_with("REDRIVE_LISTEN: listen: `here`"), "{ran:?}");
    let ran = Ran::of(program(dir.path()).args(["config", "check", "--json"]).env("MAX_ATTEMPTS", "x"));
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["ok"], false);
    assert!(told["problems"][0].as_str().unwrap().starts_with("MAX_ATTEMPTS: `x` is no whole number"));
    redrive(dir.path(), &["config", "show", "--listen", "here"]).failed(1, "--listen: listen: `here`");
}

#[test]
fn each_value_is_shown_with_its_origin() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("redrive.toml"), "# ours\nlog_level = \"debug\"\nmax_attempts = 9\n").unwrap();
    let mut command = program(dir.path());
    command.args(["config", "show", "--origin", "--listen", "127.0.0.1:9"]);
    command.env("ACK_TIMEOUT_SECONDS", "45").env("REDRIVE_MAX_ATTEMPTS", "4");
    let text = Ran::of(&mut command).ok();
    let line = |key: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("{key}: {text}"))
            .split_whitespace()
            .skip(1)
            .collect::<Vec<&str>>()
            .join(" ")
    };
    assert_eq!(line("listen"), "\"127.0.0.1:9\" --listen");
    assert_eq!(line("log_level"), "\"debug\" redrive.toml:2");
    assert_eq!(line("max_attempts"), "4 REDRIVE_MAX_ATTEMPTS");
    assert_eq!(line("lease_timeout_ms"), "45000 ACK_TIMEOUT_SECONDS");
    assert_eq!(line("polls_max"), "20000 default");
    assert_eq!(line("auto_create"), "true default");
    assert_eq!(line("tls_cert"), "- default");
    let json = Ran::of(command.arg("--json")).json();
    assert_eq!(json["max_attempts"], serde_json::json!({"value": 4, "origin": "REDRIVE_MAX_ATTEMPTS"}));
}

#[test]
fn no_secret_is_shown_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let key = redrive(dir.path(), &["key", "generate"]).ok();
    let text = "store = \"postgres://me:secret@here:1/db?password=secret\"\notlp_endpoint = \"http://me:secret@there:2\"\n";
    fs::write(dir.path().join("redrive.toml"), text).unwrap();
    for arguments in
        [&["config", "show", "--origin"][..], &["config", "show", "--json"], &["config", "check"]]
    {
        let ran = Ran::of(program(dir.path()).args(arguments).env("REDRIVE_BOOTSTRAP_KEY", key.trim()));
        let said = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == 0 && !said.contains("secret") && !said.contains(&key[20..40]), "{said}");
    }
    let shown = redrive(dir.path(), &["config", "show"]).ok();
    assert!(shown.contains("postgres://…@here:1/db") && shown.contains("http://…@there:2"), "{shown}");
    fs::write(dir.path().join("redrive.toml"), "store = \"postgres://me:secret@here:x/db\"").unwrap();
    let ran = redrive(dir.path(), &["config", "check"]);
    assert!(
        ran.out.starts_with("redrive.toml:1:1: store: must be postgres://") && !ran.out.contains("secret"),
        "{ran:?}"
    );
}
