//! Every example runs, and says what it promises.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

/// An example as cargo built it beside this test.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap();
    Command::new(built.join("examples").join(name))
}

fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    let (out, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {errors}{out}");
    out
}

#[test]
fn first_queue() {
    let said = said(example("first_queue"));
    assert_eq!(
        said,
        "sent to ada@example.org, edsger@example.org, grace@example.org\nleft in the queue: 0\n"
    );
}

#[test]
fn retries() {
    let said = said(example("retries"));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["attempt 1", "attempt 2", "attempt 3"]);
    assert_eq!(lines[3], "dead after 3 attempts: the bank is closed (max_attempts)");
    assert_eq!(lines[4..], ["brought back: 1, attempt 1", "dead: 0, waiting: 0"]);
}

#[test]
fn fairness() {
    let said = said(example("fairness"));
    let last = |customer: &str| -> u32 {
        let line = said.lines().find(|line| line.starts_with(customer)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(last("gold") <= 6 && last("small") <= 12, "{said}");
    assert_eq!(last("large"), 26);
}

#[test]
fn embedded() {
    let said = said(example("embedded"));
    assert_eq!(said, "the program ends after page 1\nattempt 1 begins\nit goes on after page 1\n");
}

#[test]
fn event_bus() {
    let said = said(example("event_bus"));
    let mut lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.remove(0), "published to 2 subscriptions");
    let (mail, bank): (Vec<&str>, Vec<&str>) = lines.into_iter().partition(|line| line.starts_with("mail"));
    assert_eq!(mail, ["mail: order.created 7"]);
    assert_eq!(bank, ["bank: attempt 1 failed", "bank: attempt 2 failed", "bank: 1250 cents in attempt 3"]);
}

#[test]
fn webhook() {
    let said = said(example("webhook"));
    assert_eq!(said, "received 7\nforged: no signature in `webhook-signature` is right\n");
}

#[test]
fn sql_transaction() {
    // A server of its own: the example uses the schema and the queue that a reader would.
    let server = redrive_test_servers::Postgres::start(redrive_test_servers::Settings::default()).unwrap();
    let mut command = example("sql_transaction");
    command.env("DATABASE_URL", server.url());
    let said = said(command);
    let expected =
        "after a rollback: 0 rows, 0 messages\nafter a commit: 1 rows, 1 messages: {\"purchase\": 8}\n";
    assert_eq!(said, expected);
}
