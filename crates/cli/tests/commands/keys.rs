//! `redrive key`.

use serde_json::{Value, json};

use crate::run::{command, masked, redrive, run};
use crate::server::Server;

#[tokio::test]
async fn a_key_is_made_used_rotated_and_revoked() {
    let server = Server::keyed(&[]);
    let made = run(&mut command(
        &server,
        &[
            "key",
            "create",
            "the shop",
            "--grant",
            "produce:orders.*",
            "--grant",
            "read:*",
            "--expires",
            "1h",
            "--json",
        ],
    ));
    assert!(made.err.contains("the token cannot be shown again"), "{made:?}");
    let made = made.json();
    let (id, token) = (made["key"]["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    assert!(made["key"]["expires_at"].is_string());
    let grants = json!([{"scope": "produce", "queues": "orders.*"}, {"scope": "read", "queues": "*"}]);
    assert_eq!(made["key"]["grants"], grants);
    let list = masked(&redrive(&server, "key list").ok());
    let expected = format!(
        "ID                NAME      STATE   CREATED                   EXPIRES                   GRANTS\n\
         {id}  the shop  active  0000-00-00T00:00:00.000Z  0000-00-00T00:00:00.000Z  produce:orders.* read:*\n"
    );
    assert_eq!(list, expected);
    let as_shop = |token: &str, line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        run(command(&server, &arguments).env("REDRIVE_TOKEN", token))
    };
    redrive(&server, "queue create orders.eu").ok();
    as_shop(token, "enqueue orders.eu hello").ok();
    as_shop(token, "lease orders.eu").failed(5, "redrive: ");
    as_shop("nonsense", "queue list").failed(5, "redrive: ");
    as_shop("", "queue list").failed(5, "redrive: ");
    let rotated = redrive(&server, &format!("key rotate {id} --overlap 1h")).ok();
    let second = rotated.lines().last().unwrap().strip_prefix("token ").unwrap().trim();
    assert!(rotated.contains("\nold secret until  "), "{rotated}");
    as_shop(token, "queue list").ok();
    as_shop(second, "queue list").ok();
    redrive(&server, &format!("key revoke {id}"))
        .failed(2, &format!("this would revoke key {id} (the shop): say --yes"));
    assert_eq!(
        redrive(&server, &format!("key revoke {id} --dry-run")).ok(),
        format!("would revoke key {id} (the shop)\n")
    );
    as_shop(second, "queue list").ok();
    assert_eq!(
        redrive(&server, &format!("key revoke {id} --yes")).ok(),
        format!("key {id} (the shop) is revoked\n")
    );
    as_shop(second, "queue list").failed(5, "redrive: ");
    redrive(&server, &format!("key rotate {id}")).failed(4, "redrive: ");
    redrive(&server, "key rotate 00c0ffee00c0ffee").failed(3, "redrive: ");
    assert_eq!(redrive(&server, "key list -o id").ok(), format!("{id}\n"));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let server = Server::keyed(&[]);
    for (line, said) in [
        ("key create shop", "--grant <SCOPE:PATTERN>"),
        ("key create shop --grant write:orders", "scope "),
        ("key create shop --grant read", "must be SCOPE:PATTERN"),
        ("key create shop --grant read:a/b", "pattern "),
        ("key create shop --grant read:* --expires 1", "has no unit"),
        ("key revoke me", "invalid value 'me'"),
        ("key rotate 00c0ffee00c0ffee --overlap 8d", "overlap"),
    ] {
        redrive(&server, line).failed(2, said);
    }
    let open = Server::start();
    redrive(&open, "key list").failed(4, "this server was started without API keys");
    let token = redrive(&open, "key generate").ok();
    assert!(token.len() > 40 && token.ends_with('\n'), "no server is asked");
    let card = redrive(&server, "key create shop --grant read:*").ok();
    let names: Vec<&str> = card.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["id", "name", "grants", "token"]);
    let problem: Value = serde_json::from_str(&redrive(&open, "key list --json").err).unwrap();
    assert_eq!((&problem["status"], &problem["advice"]), (&json!(409), &json!("give_up")));
}
