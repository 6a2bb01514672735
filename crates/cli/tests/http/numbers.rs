//! Numbers for people: the time, all queues together, who consumes, what is leased, what died, and when what is retried.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server};

/// One attempt of each message in reach fails.
async fn fail(server: &Server, queue: &str, consumer: &str, error: &str) {
    for message in server.lease(queue, json!({"limit": 100, "consumer": consumer})).await {
        let nack = json!({"receipt": message["receipt"], "error": error});
        assert_eq!(server.post("/v1/leases/nack", nack).await.status, 200);
    }
}

async fn succeed(server: &Server, queue: &str, consumer: &str, limit: u64) {
    for message in server.lease(queue, json!({"limit": limit, "consumer": consumer})).await {
        assert_eq!(server.post("/v1/leases/ack", json!({"receipt": message["receipt"]})).await.status, 204);
    }
}

async fn as_key(server: &Server, token: &str, path: &str) -> Answer {
    Answer::of(server.request_as(Some(token), Method::GET, path).send().await.unwrap()).await
}

/// A server with that in its file.
fn configured(text: &str) -> Server {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    // It is read when the server starts.
    Server::with(&["--config", file.path().to_str().unwrap()])
}

/// Waits until the server has taken another sample of a queue, and answers the last.
async fn sampled(server: &Server, queue: &str) -> Value {
    let path = format!("/v1/queues/{queue}/history");
    let samples = async || server.get(&path).await.body["samples"].as_array().unwrap().clone();
    let seen = samples().await.len();
    server.advance(10_000).await;
    loop {
        let now = samples().await;
        if now.len() > seen {
            return now.last().unwrap().clone();
        }
        tokio::task::yield_now().await;
    }
}

fn kinds(overview: &Value) -> Vec<(&str, &str)> {
    let of = |one: &'_ Value| -> (&'static str, &'static str) {
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned().leak();
        (text("kind"), text("severity"))
    };
    overview["attention"].as_array().unwrap().iter().map(of).collect()
}

#[tokio::test]
async fn anybody_may_ask_what_time_it_is_by_the_clock_that_ends_leases() {
    let server = Server::keyed(&["--test-clock"]);
    let ask = async || {
        let answer = server.request_as(None, Method::GET, "/v1/time").send().await.unwrap();
        Answer::of(answer).await.body
    };
    let before = ask().await;
    let time: redrive_wire::Time = before["now"].as_str().unwrap().parse().unwrap();
    assert_eq!(before["now_ms"].as_u64(), Some(time.0));
    server.advance(12_345).await;
    assert_eq!(ask().await["now_ms"].as_u64(), Some(time.0 + 12_345));
    server.get("/v1/time?now=1").await;
}

#[tokio::test]
async fn the_overview_ranks_what_somebody_should_look_at() {
    let server = Server::with_clock();
    let fresh = server.get("/v1/overview").await.body;
    assert_eq!((&fresh["queues"], &fresh["attention"]), (&json!(0), &json!([])));
    assert_eq!(fresh["server"]["store"], "embedded");
    assert_eq!(
        (&fresh["server"]["survives"], &fresh["server"]["shared"]),
        (&json!("power_loss"), &json!(false))
    );
    server.create("orders", json!({"retry": {"max_attempts": 1}, "breaker": {}})).await;
    server.create("mail", json!({})).await;
    for queue in ["orders", "orders", "mail"] {
        server.enqueue(queue, json!({"body": "x"})).await;
    }
    fail(&server, "orders", "anna", "no").await;
    assert_eq!(server.post("/v1/queues/orders/breaker/trip", json!({})).await.status, 204);
    let now = server.get("/v1/overview").await.body;
    assert_eq!(kinds(&now), [("breaker_open", "critical"), ("dead_rising", "warning")]);
    assert_eq!((&now["attention"][0]["queue"], &now["attention"][1]["count"]), (&json!("orders"), &json!(2)));
    assert!(now["attention"][0]["until"].as_str().unwrap() > now["at"].as_str().unwrap());
    assert_eq!((&now["states"]["ready"], &now["states"]["dead"]), (&json!(1), &json!(2)));
    assert_eq!((&now["queues"], &now["complete"]), (&json!(2), &json!(true)));
    sampled(&server, "orders").await;
    let sums = server.get("/v1/overview").await.body;
    assert_eq!(sums["interval_ms"], 10_000);
    let samples = sums["samples"].as_array().unwrap();
    let total = |field: &str| samples.iter().map(|sample| sample[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((total("enqueued"), total("failed"), total("died")), (3, 2, 2));
    // Nobody comes for the mail.
    server.advance(61_000).await;
    let later = server.get("/v1/overview").await.body;
    assert!(kinds(&later).contains(&("no_consumers", "critical")), "{later}");
    server.post("/v1/queues/mail/pause", json!({})).await;
    let paused = server.get("/v1/overview").await.body;
    assert!(kinds(&paused).contains(&("paused", "warning")), "{paused}");
    assert!(!kinds(&paused).contains(&("no_consumers", "critical")), "the pause explains it");
}

#[tokio::test]
async fn who_may_see_little_gets_sums_of_that() {
    let server = Server::keyed(&["--test-clock"]);
    for queue in ["a.one", "b.two"] {
        server.create(queue, json!({"retry": {"max_attempts": 1}})).await;
        server.enqueue(queue, json!({"body": "x"})).await;
        fail(&server, queue, "anna", "no").await;
        server.enqueue(queue, json!({"body": "x"})).await;
        server.lease(queue, json!({"consumer": "anna"})).await;
    }
    let (_, reader) = server.key(&[("read", "a.*")], json!({})).await;
    let (_, producer) = server.key(&[("produce", "a.*")], json!({})).await;
    for token in [&reader, &producer] {
        let overview = as_key(&server, token, "/v1/overview").await.body;
        assert_eq!((&overview["queues"], &overview["states"]["dead"]), (&json!(1), &json!(1)));
        assert_eq!(overview["attention"].as_array().unwrap().len(), 1, "{overview}");
        let rows = as_key(&server, token, "/v1/stats?sort=dead&desc=true").await.body;
        assert_eq!((&rows["total"], &rows["rows"][0]["queue"]), (&json!(1), &json!("a.one")));
        let consumers = as_key(&server, token, "/v1/consumers").await.body;
        assert_eq!(
            (&consumers["consumers"][0]["held"], &consumers["consumers"][0]["leased"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(consumers["consumers"][0]["queues"], json!(["a.one"]));
    }
    let leases = as_key(&server, &reader, "/v1/leases").await.body;
    assert_eq!(
        (leases["leases"].as_array().unwrap().len(), &leases["leases"][0]["queue"]),
        (1, &json!("a.one"))
    );
    let groups = as_key(&server, &reader, "/v1/dead/groups").await.body;
    assert_eq!(
        (groups["groups"].as_array().unwrap().len(), &groups["groups"][0]["queue"]),
        (1, &json!("a.one"))
    );
    for path in ["/v1/leases", "/v1/dead/groups"] {
        let answer = as_key(&server, &producer, path).await;
        let empty = answer.body["leases"].as_array().or(answer.body["groups"].as_array()).unwrap().is_empty();
        assert!(answer.status == 200 && empty, "it may not look into messages: {answer:?}");
    }
    as_key(&server, &producer, "/v1/leases?queue=a.one").await.refused(403, "FORBIDDEN");
    as_key(&server, &reader, "/v1/leases?queue=b.two").await.refused(403, "FORBIDDEN");
}

#[tokio::test]
async fn rows_are_sorted_filtered_and_paged() {
    let server = Server::with_clock();
    for (queue, count) in [("orders.eu", 3), ("orders.us", 5), ("mail", 1)] {
        server.create(queue, json!({})).await;
        for _ in 0..count {
            server.enqueue(queue, json!({"body": "x"})).await;
        }
    }
    server.post("/v1/queues/mail/pause", json!({"key": "tenant"})).await;
    sampled(&server, "mail").await;
    let names = |page: &Value| -> Vec<String> {
        let rows = page["rows"].as_array().unwrap().iter();
        rows.map(|row| row["queue"].as_str().unwrap().to_owned()).collect()
    };
    let by_name = server.get("/v1/stats").await.body;
    assert_eq!(names(&by_name), ["mail", "orders.eu", "orders.us"]);
    assert_eq!(
        (&by_name["rows"][0]["pauses_of_keys"], &by_name["rows"][0]["paused"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(by_name["rows"][1]["depth"].as_array().unwrap().last(), Some(&json!(3)));
    let first = server.get("/v1/stats?sort=ready&desc=true&limit=2").await.body;
    assert_eq!(names(&first), ["orders.us", "orders.eu"]);
    assert_eq!((&first["total"], &first["ranked_of"]), (&json!(3), &json!(3)));
    let cursor = first["next_cursor"].as_str().unwrap();
    let last = server.get(&format!("/v1/stats?sort=ready&desc=true&limit=2&cursor={cursor}")).await.body;
    assert_eq!((names(&last), &last["next_cursor"]), (vec!["mail".to_owned()], &json!(null)));
    assert_eq!(names(&server.get("/v1/stats?name=ORDERS").await.body), ["orders.eu", "orders.us"]);
    assert_eq!(names(&server.get("/v1/stats?name=%C3%B6").await.body), [] as [&str; 0]);
    let long = "x".repeat(81);
    for (query, field) in [
        ("sort=size", "sort"),
        ("sort=", "sort"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=1:", "cursor"),
        ("desc=maybe", "query"),
        ("colour=red", "query"),
        (&format!("name={long}"), "name"),
    ] {
        let answer = server.get(&format!("/v1/stats?{query}")).await;
        answer.refused(400, "INVALID_ARGUMENT");
        assert_eq!(answer.body["errors"][0]["pointer"], *field, "{query}: {answer:?}");
    }
}

#[tokio::test]
async fn history_and_rows_say_how_long_messages_wait_and_run() {
    let server = Server::with_clock();
    server.create("jobs", json!({})).await;
    sampled(&server, "jobs").await;
    for _ in 0..4 {
        server.enqueue("jobs", json!({"body": "x"})).await;
    }
    server.advance(3_000).await;
    let leased = server.lease("jobs", json!({"limit": 3})).await;
    server.advance(100).await;
    for message in &leased {
        server.post("/v1/leases/ack", json!({"receipt": message["receipt"]})).await;
    }
    server.lease("jobs", json!({"lease_ms": 1})).await;
    server.advance(50).await;
    while server.count("jobs", "leased").await > 0 {
        tokio::task::yield_now().await;
    }
    let sample = sampled(&server, "jobs").await;
    let near = |value: &Value, truth: u64| {
        let told = value.as_u64().unwrap();
        assert!(told >= truth && (told - truth) * 8 <= truth, "{told} for {truth}");
    };
    near(&sample["wait_p50_ms"], 3_000);
    near(&sample["run_p99_ms"], 100);
    assert_eq!((&sample["expired"], &sample["failed"], &sample["acked"]), (&json!(1), &json!(1), &json!(3)));
    let row = server.get("/v1/stats").await.body["rows"][0].clone();
    near(&row["wait_p50_ms"], 3_000);
    near(&row["run_p50_ms"], 100);
    assert!(row["acked_per_s"].as_f64().unwrap() > 0.0 && row["failed_share"] == 0.25, "{row}");
    let metrics = server.get("/metrics").await.text;
    assert!(metrics.contains("redrive_wait_seconds_count{queue=\"jobs\"} 4"), "{metrics}");
    let quiet = sampled(&server, "jobs").await;
    assert_eq!(quiet.get("wait_p50_ms"), None);
}

#[tokio::test]
async fn all_leases_are_listed_with_what_is_in_force() {
    let server = Server::with_clock();
    server.create("a", json!({"retry": {"max_attempts": null}})).await;
    server.create("b", json!({})).await;
    for (queue, message) in [
        ("a", json!({"body": "x", "type": "mail"})),
        ("b", json!({"body": "x", "max_attempts": 7})),
        ("b", json!({"body": "x", "fairness_key": "t"})),
    ] {
        server.enqueue(queue, message).await;
    }
    server.lease("a", json!({"consumer": "anna", "lease_ms": 60_000})).await;
    server.lease("b", json!({"consumer": "bert", "limit": 2})).await;
    server.advance(1_000).await;
    let all = server.get("/v1/leases").await.body;
    let rows = all["leases"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&rows[0]["queue"], &rows[0]["type"], &rows[0]["attempts"]),
        (&json!("a"), &json!("mail"), &json!(1))
    );
    assert_eq!(rows[0].get("max_attempts"), None, "no cap");
    assert_eq!((&rows[1]["max_attempts"], &rows[2]["max_attempts"]), (&json!(7), &json!(3)));
    assert_eq!((&rows[0]["lease"]["age_ms"], &rows[0]["lease"]["overdue"]), (&json!(1_000), &json!(false)));
    let of_bert = server.get("/v1/leases?consumer=bert&limit=1").await.body;
    let cursor = of_bert["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/v1/leases?consumer=bert&limit=1&cursor={cursor}")).await.body;
    assert_eq!(rest["leases"][0]["lease"]["consumer"], "bert");
    assert_eq!(rest.get("next_cursor"), None, "{rest}");
    assert_eq!(server.get("/v1/leases?queue=b").await.body["leases"].as_array().unwrap().len(), 2);
    server.get("/v1/leases?queue=nowhere").await.refused(404, "QUEUE_NOT_FOUND");
    for query in ["cursor=b", "cursor=b:1", "limit=1001", "queue=%20", "consumer=%00", "state=leased"] {
        server.get(&format!("/v1/leases?{query}")).await.refused(400, "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn consumers_are_told_with_what_they_did_and_what_they_hold() {
    let server = Server::with_clock();
    server.create("jobs", json!({"retry": {"base_delay_ms": 0}})).await;
    for _ in 0..6 {
        server.enqueue("jobs", json!({"body": "x"})).await;
    }
    succeed(&server, "jobs", "anna", 2).await;
    let held = server.lease("jobs", json!({"consumer": "anna", "lease_ms": 5_000})).await.remove(0);
    let given_back = server.lease("jobs", json!({"consumer": "bert"})).await.remove(0);
    server.post("/v1/leases/release", json!({"receipt": given_back["receipt"]})).await;
    server.advance(2_000).await;
    let told = server.get("/v1/consumers").await.body;
    let [anna, bert] = told["consumers"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!((&anna["consumer"], &anna["leased"], &anna["acked"]), (&json!("anna"), &json!(3), &json!(2)));
    assert_eq!(
        (&anna["held"], &anna["oldest_lease_ms"], &anna["here"]),
        (&json!(1), &json!(2_000), &json!(true))
    );
    assert_eq!((&bert["released"], &bert["held"], bert.get("oldest_lease_ms")), (&json!(1), &json!(0), None));
    assert_eq!((anna["acked_per_s"].as_f64(), &told["complete"]), (Some(1.0), &json!(true)));
    // An operator takes what anna has, and whatever else she does to it is refused.
    let id = held["id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/v1/queues/jobs/leases/{id}/release"), json!({})).await.status, 200);
    let told = server.get("/v1/consumers").await.body;
    assert_eq!((&told["consumers"][0]["held"], &told["consumers"][0]["released"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn what_a_consumer_holds_is_known_after_the_server_was_killed() {
    let mut server = Server::start();
    server.create("jobs", json!({})).await;
    server.enqueue("jobs", json!({"body": "x"})).await;
    let held = server.lease("jobs", json!({"consumer": "anna", "lease_ms": 600_000})).await.remove(0);
    server.kill_and_restart(&[]);
    let told = server.get("/v1/consumers").await.body["consumers"][0].clone();
    assert_eq!((&told["consumer"], &told["held"], &told["here"]), (&json!("anna"), &json!(1), &json!(false)));
    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": held["receipt"]})).await.status, 204);
    let told = server.get("/v1/consumers").await.body["consumers"][0].clone();
    assert_eq!(
        (&told["acked"], &told["held"], &told["here"]),
        (&json!(1), &json!(0), &json!(true)),
        "the store knew who"
    );
}

#[tokio::test]
async fn groups_of_failures_say_when_their_messages_died() {
    let server = Server::with_clock();
    for (queue, count) in [("mail", 1), ("orders", 3)] {
        server.create(queue, json!({"retry": {"max_attempts": 1}})).await;
        for _ in 0..count {
            server.enqueue(queue, json!({"body": "x"})).await;
        }
        fail(&server, queue, "anna", &format!("{queue} is down")).await;
        server.advance(60_000).await;
    }
    let all = server.get("/v1/dead/groups").await.body;
    let groups = all["groups"].as_array().unwrap();
    assert_eq!((groups.len(), &all["complete"]), (2, &json!(true)));
    assert_eq!((&groups[0]["queue"], &groups[0]["messages"]), (&json!("orders"), &json!(3)));
    let deaths = |group: &Value| -> Vec<u64> {
        group["deaths"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
    };
    assert_eq!((deaths(&groups[0]).len(), deaths(&groups[0])[28], deaths(&groups[1])[27]), (30, 3, 1));
    let own = server.get("/v1/queues/orders/dead/groups").await.body["groups"][0].clone();
    assert_eq!((deaths(&own), &own["fingerprint"]), (deaths(&groups[0]), &groups[0]["fingerprint"]));
    let one = server.get("/v1/dead/groups?limit=1").await.body;
    assert_eq!((one["groups"].as_array().unwrap().len(), &one["complete"]), (1, &json!(false)));
    server.get("/v1/dead/groups?cursor=x").await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_retry_policy_is_told_before_it_is_set() {
    let server = configured("max_attempts = 4");
    let usual = server.post("/v1/retry_schedule", json!({})).await.body;
    assert_eq!((&usual["max_attempts"], &usual["total_ms"]), (&json!(4), &json!(7_000)));
    assert_eq!(
        usual["attempts"],
        json!([
            {"attempt": 1, "delay_ms": 1_000, "earliest_ms": 900, "latest_ms": 1_100, "after_ms": 1_000},
            {"attempt": 2, "delay_ms": 2_000, "earliest_ms": 1_800, "latest_ms": 2_200, "after_ms": 3_000},
            {"attempt": 3, "delay_ms": 4_000, "earliest_ms": 3_600, "latest_ms": 4_400, "after_ms": 7_000}
        ])
    );
    let endless = json!({"retry": {"max_attempts": null, "multiplier": 1, "jitter": "full"}, "count": 50});
    let endless = server.post("/v1/retry_schedule", endless).await.body;
    assert_eq!((endless["attempts"].as_array().unwrap().len(), endless.get("max_attempts")), (50, None));
    assert_eq!((&endless["attempts"][49]["earliest_ms"], &endless["total_ms"]), (&json!(0), &json!(50_000)));
    let once = server.post("/v1/retry_schedule", json!({"retry": {"max_attempts": 1}})).await.body;
    assert_eq!((&once["attempts"], &once["total_ms"]), (&json!([]), &json!(0)));
    for (body, field) in [
        (json!({"count": 0}), "count"),
        (json!({"count": 51}), "count"),
        (json!({"retry": {"multiplier": 0.5}}), "retry.multiplier"),
        (json!({"retry": {"base_delay_ms": u64::MAX}}), "retry.base_delay"),
        (json!({"retry": {"max_attempts": 0}}), "retry.max_attempts"),
        (json!({"retries": {}}), "retries"),
    ] {
        let answer = server.post("/v1/retry_schedule", body).await;
        answer.refused(400, "INVALID_ARGUMENT");
        assert!(answer.body["errors"][0].to_string().contains(field), "{field}: {answer:?}");
    }
}

#[tokio::test]
async fn a_queue_says_which_settings_come_from_the_configuration() {
    let server = configured("max_attempts = 9\nlease_timeout_ms = 45000");
    server.create("jobs", json!({"lease_timeout_ms": 1_000})).await;
    let queue = server.get("/v1/queues/jobs").await.body;
    assert_eq!(
        (&queue["set"], &queue["configured"]),
        (&json!(["lease_timeout_ms"]), &json!(["retry.max_attempts"]))
    );
    server.create("plain", json!({})).await;
    let queue = server.get("/v1/queues/plain").await.body;
    assert_eq!(queue["configured"], json!(["lease_timeout_ms", "retry.max_attempts"]));
    let usual = Server::start();
    usual.create("jobs", json!({})).await;
    assert_eq!(usual.get("/v1/queues/jobs").await.body["configured"], json!([]));
}

#[tokio::test]
async fn lists_leave_bodies_out_for_who_says_so() {
    let server = Server::start();
    server.create("jobs", json!({"retry": {"max_attempts": 1}})).await;
    server.enqueue("jobs", json!({"body": "text"})).await;
    server.enqueue("jobs", json!({"body_base64": "/w=="})).await;
    let check = async |path: &str, list: &str, count: usize| {
        for (query, shown) in [("", true), ("bodies=true", true), ("bodies=false", false)] {
            let page = server.get(&format!("{path}?{query}")).await.body;
            let messages = page[list].as_array().unwrap();
            assert_eq!(messages.len(), count, "{path}");
            for message in messages {
                let body = message.get("body").or_else(|| message.get("body_base64"));
                assert_eq!(body.is_some(), shown, "{path}?{query}: {message}");
                assert!(message["body_bytes"].as_u64().unwrap() > 0);
            }
        }
    };
    check("/v1/queues/jobs/messages", "messages", 2).await;
    fail(&server, "jobs", "anna", "no").await;
    check("/v1/queues/jobs/dead", "messages", 2).await;
    server.enqueue("jobs", json!({"body": "more"})).await;
    server.lease("jobs", json!({})).await;
    check("/v1/queues/jobs/leases", "leases", 1).await;
    server.get("/v1/queues/jobs/messages?bodies=perhaps").await.refused(400, "INVALID_ARGUMENT");
    server.get("/v1/queues/jobs/messages/export?bodies=false").await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn the_audit_trail_is_read_from_either_end() {
    let server = Server::start();
    for name in ["a", "b", "c"] {
        server.create(name, json!({})).await;
    }
    let read = async |query: &str| -> Vec<String> {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/audit?limit=2{query}{cursor}")).await.body;
            for entry in page["entries"].as_array().unwrap() {
                names.push(entry["on"].as_str().unwrap().to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return names,
            }
        }
    };
    assert_eq!(read("").await, ["a", "b", "c"]);
    assert_eq!(read("&newest_first=true").await, ["c", "b", "a"]);
    assert_eq!(read("&newest_first=true&on=b").await, ["b"]);
    server.get("/v1/audit?newest_first=true&cursor=last").await.refused(400, "INVALID_ARGUMENT");
}
