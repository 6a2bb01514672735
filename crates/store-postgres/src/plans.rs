//! What the statements read and sort at a million messages of a hundred thousand keys: as much as they are asked for, not
//! as much as there is.

use redrive_core::queue::{QueueConfig, QueueName};
use redrive_store::{CreateQueue, Now, Store};
use serde_json::Value;

use crate::session::Session;
use crate::sql::Statement;
use crate::{Durability, Options, PostgresStore};

const MESSAGES: u64 = 1_000_000;
const KEYS: u64 = 100_000;
/// How many messages a call is for.
const CALL: u64 = 100;
/// What a call may read and sort: some rows for each message, and some for what it looks at besides.
const READ: u64 = 20 * CALL;

/// A million messages: two thirds are ready, a tenth of those as retries; the rest is delayed, leased, dead or done. One
/// key has a long line in which a rare type stands last. A hundred leases ran out behind a hundred thousand long ones.
const FILL: &str = "
    INSERT INTO redrive.class (queue_id, id, type, source) OVERRIDING SYSTEM VALUE
    VALUES ({queue}, 0, '', ''), ({queue}, 1, 'usual', ''), ({queue}, 2, 'rare', '');
    INSERT INTO redrive.message (queue_id, class_id, id, no, created_at, visible_at, place, state, rank, retry, attempts,
        deliveries, size, fairness_key, lease_id, leased_at, deadline, consumer, ended_at, fingerprint, dead_reason, expires_at)
    SELECT {queue}, CASE WHEN i > 999900 THEN 2 ELSE i / 10 % 2 END,
        lpad(to_hex(i), 32, '0')::uuid, i, i, CASE WHEN state = 0 THEN 4000000000000 + i ELSE i END, i, state, 4,
        state IN (0, 1) AND i % 10 = 0, CASE WHEN state IN (0, 1) AND i % 10 > 0 THEN 0 ELSE 1 END, 1, 16,
        CASE WHEN i > 899900 THEN 'long' ELSE 'k' || i % 99999 END,
        CASE WHEN state = 2 THEN i END, CASE WHEN state = 2 THEN i END,
        CASE WHEN state = 2 THEN CASE WHEN i <= 220000 THEN 4000000000000 + i ELSE i END END,
        CASE WHEN state = 2 THEN 'somebody' END, CASE WHEN state > 2 THEN i END,
        CASE WHEN state = 3 THEN i % 1000 END, CASE WHEN state = 3 THEN 1 END,
        CASE WHEN state < 2 AND i % 100 = 1 THEN 4000000000000 + i END
    FROM (SELECT i, CASE WHEN i <= 120000 THEN 0 WHEN i <= 220100 THEN 2 WHEN i <= 270000 THEN 3 WHEN i <= 320000 THEN 4
        ELSE 1 END AS state FROM generate_series(1, 1000000) AS i) AS all_of_them;
    INSERT INTO redrive.content SELECT i, '', 'text/plain', NULL FROM generate_series(1, 1000000) AS i;
    INSERT INTO redrive.tally (queue_id, waiting, leased, dead, done, enqueue)
    VALUES ({queue}, 799900, 100100, 49900, 50000, 1000000);
    SELECT setval('redrive.place', 1000000);
    ANALYZE redrive.message; ANALYZE redrive.content; ANALYZE redrive.class; ANALYZE redrive.tally;";

/// What carrying out a statement took.
#[derive(Debug, Default)]
struct Cost {
    /// Rows of tables that grow with the backlog, those that were passed over included.
    read: u64,
    /// Rows that went into the largest sort.
    sorted: u64,
    /// Rows that came out.
    answered: u64,
    /// Tables that were read from end to end.
    whole: Vec<String>,
    indexes: Vec<String>,
}

impl Cost {
    fn of(plan: &Value) -> Self {
        let mut cost = Self { answered: rows(plan), ..Self::default() };
        cost.add(plan);
        cost
    }

    fn add(&mut self, node: &Value) {
        let text = |name: &str| node[name].as_str().unwrap_or_default();
        let inner = node["Plans"].as_array().map(Vec::as_slice).unwrap_or_default();
        let grows = ["message", "content", "history", "failure", "hold"].contains(&text("Relation Name"));
        if grows && text("Node Type") != "ModifyTable" {
            let removed = ["Rows Removed by Filter", "Rows Removed by Index Recheck"];
            let removed: f64 = removed.iter().filter_map(|name| node[*name].as_f64()).sum();
            self.read += rows(node) + times(node, removed);
            if text("Node Type").ends_with("Seq Scan") {
                self.whole.push(text("Relation Name").to_owned());
            }
        }
        if let Some(index) = node["Index Name"].as_str() {
            self.indexes.push(index.to_owned());
        }
        if text("Node Type").ends_with("Sort") {
            self.sorted = self.sorted.max(inner.iter().map(rows).max().unwrap_or_default());
        }
        for node in inner {
            self.add(node);
        }
    }
}

/// How many rows a node gave, all its loops together.
fn rows(node: &Value) -> u64 {
    times(node, node["Actual Rows"].as_f64().unwrap_or_default())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rows are counted, and few enough"
)]
fn times(node: &Value, rows: f64) -> u64 {
    (rows * node["Actual Loops"].as_f64().unwrap_or_default()).round() as u64
}

/// Carries out a statement as the store would, says what it took, and undoes it.
async fn cost(session: &Session, statement: &Statement, arguments: &str) -> Cost {
    let client = session.client().expect("it is there");
    let types: Vec<&str> = statement.types.iter().map(tokio_postgres::types::Type::name).collect();
    let types = if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
    let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
    let prepare = format!("BEGIN; PREPARE asked {types} AS {}", statement.text);
    client.batch_execute(&prepare).await.expect("it is a statement");
    let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE asked {arguments}");
    let answer = client.simple_query(&explain).await.expect("it is carried out");
    client.batch_execute("ROLLBACK; DEALLOCATE asked").await.expect("it is undone");
    let row = answer.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plan: Value = serde_json::from_str(row.expect("a plan")).expect("it is JSON");
    let cost = Cost::of(&plan[0]["Plan"]);
    assert_eq!(cost.whole, [""; 0], "{}", statement.text);
    cost
}

/// The arguments of a claim: from which key on, of which types, and the mark of both lanes.
fn claim(stamp: i64, key: &str, kinds: &str, mark: &str) -> String {
    format!(
        "{{queue}}, 1000001, 0, {stamp}, false, {CALL}, {}, true, true, '{key}', true, 0, 2000000, '{key}', true, 0, \
         2000000, '{{me}}', NULL, 30000, 3600000, 5, NULL, NULL, 0, 16000000, {kinds}, NULL, 9, 9, true, \
         {mark}, {mark}, -1",
        CALL / 5
    )
}

/// A store in a schema of its own, which is gone afterwards.
pub(crate) fn with_store(name: &str, connections: usize, test: impl AsyncFnOnce(&PostgresStore)) {
    let url = redrive_test_servers::shared_postgres_url();
    let schema = format!("{name}_{}", std::process::id());
    let options =
        Options { durability: Durability::Any, schema: schema.clone(), connections, ..Options::new(url) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = PostgresStore::open(options, [1; 32]).await.expect("it opens");
        test(&store).await;
        let session = store.link().session().await.expect("it is there");
        let drop = format!("DROP SCHEMA {schema} CASCADE");
        session.client().expect("it is there").batch_execute(&drop).await.expect("it is dropped");
    });
}

#[test]
fn what_a_statement_reads_grows_with_what_it_is_asked_for() {
    with_store("plans", 4, plans);
}

async fn plans(store: &PostgresStore) {
    let name = QueueName::new("many").expect("a name");
    let create = CreateQueue { name, config: QueueConfig::default() };
    store.create_queue(Now::Store, create).await.expect("it is created");
    let link = store.link();
    let session = link.session().await.expect("it connects");
    let row = session
        .rows_of(&link.in_schema("SELECT id, stamp FROM redrive.queue"), &[])
        .await
        .expect("it is there");
    let (queue, stamp): (i32, i64) = (row[0].get(0), row[0].get(1));
    let here = |text: &str| text.replace("{queue}", &queue.to_string());
    session
        .client()
        .expect("it is there")
        .batch_execute(&link.in_schema(&here(FILL)))
        .await
        .expect("it is filled");
    let sql = &link.sql;
    let ask =
        async |statement: &Statement, arguments: &str| cost(&session, statement, &here(arguments)).await;

    // Of the rare type there are ten retries only, where a share of twenty is kept for them.
    let (none, far) = ("'', -1, -1, -1", "'long', 4, 950000, 950000");
    for (key, kinds, mark, messages) in [
        ("", "NULL", none, CALL),
        ("k500", "NULL", none, CALL),
        ("k500", "NULL", far, CALL),
        ("long", "NULL", none, CALL),
        ("long", "NULL", far, CALL),
        ("m", "NULL", far, CALL),
        ("long", "'{rare}'", none, CALL - 10),
        ("k5", "'{usual}'", none, CALL),
    ] {
        let cost = ask(&sql.claim, &claim(stamp, key, kinds, mark)).await;
        assert_eq!(cost.answered, messages, "{key} {kinds} {mark}: {cost:?}");
        assert!(cost.read <= READ && cost.sorted <= READ, "{key} {kinds} {mark}: {cost:?}");
    }
    let cost = ask(&sql.look_back, "{queue}").await;
    assert!(cost.read <= READ && cost.sorted <= READ, "{cost:?}");

    let cost = ask(&sql.expire_lock, "{queue}, 1000001, 1000").await;
    assert_eq!(cost.answered, 100, "every lease that ran out, whatever is in front of it: {cost:?}");
    assert!(cost.read <= READ && cost.sorted <= READ, "{cost:?}");

    for (statement, arguments) in [
        (&sql.expire_queues, "1000001"),
        (&sql.lapse_lock, "{queue}, 5000000000000, 100"),
        (&sql.promote, "{queue}, 5000000000000, 100"),
        (&sql.next_due, "{queue}, 1000001"),
        (&sql.next_due_any, "1000001"),
        (&sql.get, "'many', '00000000-0000-0000-0000-0000000d0000'"),
    ] {
        let cost = ask(statement, arguments).await;
        assert!(cost.read <= READ && cost.sorted <= READ, "{}: {cost:?}", statement.text);
    }

    for state in ["3", "4"] {
        // By age, by count, and where nothing is beyond either.
        for (age, count, messages) in [("1000001", "NULL", CALL), ("NULL", "1000", CALL), ("5", "100000", 0)]
        {
            let filled = sql.retain.text.replace("{state}", state).replace("$1", "{queue}");
            let filled = filled.replace("$2", age).replace("$3", count).replace("$4", "100");
            let cost = ask(&Statement { text: here(&filled), types: &[] }, "").await;
            let kept = if count == "100000" { KEYS } else { READ };
            assert!(
                cost.answered == messages && cost.read <= kept && cost.sorted <= READ,
                "{state}: {cost:?}"
            );
        }
    }

    // These go through the keys, or through what is counted, and sort no more than that.
    let cost = ask(&sql.probe, "{queue}, 1000001, NULL, NULL, NULL, 5, NULL").await;
    assert!(cost.answered == 1 && cost.read <= 4 * KEYS && cost.sorted <= KEYS, "{cost:?}");
    let cost = ask(&sql.stats, "{queue}, 1000001").await;
    assert!(cost.read <= 5 * KEYS && cost.sorted <= KEYS, "{cost:?}");
    let cost = ask(&sql.groups, "{queue}, 100").await;
    assert!(cost.read <= KEYS && cost.sorted <= 1_000, "{cost:?}");
    let cost = ask(&sql.count, "{queue}, 1000001, true, true, false, 100").await;
    assert!(cost.read <= MESSAGES && cost.sorted <= 2 * KEYS, "{cost:?}");

    for (range, most) in [("", READ), ("AND m.state = 3", READ), ("AND m.state = 4", READ)] {
        for direction in ["ASC", "DESC"] {
            let filled = sql.scan.text.replace("{range}", range).replace("{direction}", direction);
            let filled =
                filled.replace("{window}", "100").replace("{matching}", "true").replace("{limit}", "101");
            let filled =
                filled.replace("{, content}", "").replace("{join content}", "").replace("$1", "{queue}");
            let cost = ask(&Statement { text: here(&filled), types: &[] }, "").await;
            assert!(cost.answered == CALL && cost.read <= most && cost.sorted <= most, "{range}: {cost:?}");
        }
    }
}

/// The server takes each statement with the types that we send it with, as many as it has parameters. A statement that is
/// only used on rare occasions is not to be found out then.
#[test]
fn every_statement_is_one_that_the_server_takes() {
    with_store("statements", 4, async |store| {
        let link = store.link();
        let session = link.session().await.expect("it connects");
        let client = session.client().expect("it is there");
        for (name, statement) in link.sql.all() {
            // Filled in for the occasion.
            if name.starts_with("scan") || name == "retain" {
                continue;
            }
            let prepared = client.prepare_typed(&statement.text, statement.types).await;
            let prepared = prepared.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(prepared.params(), statement.types, "{name}");
        }
    });
}
