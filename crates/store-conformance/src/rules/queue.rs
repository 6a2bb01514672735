//! Queues: create, update, delete, pause, list.

use redrive_core::queue::{Pause, QueueConfig, QueueName};
use redrive_core::time::Millis;
use redrive_store::{CreateQueue, DeleteQueue, PauseQueue, QueueError, UpdateQueue};

use crate::world::{World, at_most, key, patient};

fn named(name: &str) -> QueueName {
    QueueName::new(name).expect("a good name")
}

async fn create(w: &World, name: &str, config: QueueConfig) -> Result<(), QueueError> {
    w.store().create_queue(w.at(), CreateQueue { name: named(name), config }).await.map(|_| ())
}

async fn a_queue_is_kept_as_it_was_set(w: &mut World) {
    let config = QueueConfig {
        lease_timeout: Some(Millis::new(7_000)),
        dead_letter_to: Some(Some(named("graveyard"))),
        weights: Some(
            redrive_core::queue::Weights::new([(
                key("a"),
                redrive_core::policy::Weight::new(3).expect("good"),
            )])
            .expect("few"),
        ),
        ..patient()
    };
    create(w, "q", config.clone()).await.expect("created");
    w.restart().await;
    let kept = w.store().get_queue(&named("q")).await.expect("answers").expect("there");
    assert_eq!((kept.config.clone(), kept.created_at), (config, w.now()));
    let stats = w.stats(&named("q")).await;
    assert_eq!(stats.settings.lease_timeout, Millis::new(7_000), "what was set");
    assert_eq!(stats.settings.max_lease, Millis::from_secs(43_200), "the default");
    assert_eq!(w.store().get_queue(&named("other")).await.expect("answers"), None);
}

async fn a_name_is_taken_once(w: &mut World) {
    w.queue("q").await;
    let error = create(w, "q", QueueConfig::default()).await.expect_err("taken");
    assert!(matches!(error, QueueError::AlreadyExists(_)), "{error}");
    assert_eq!(w.stats(&named("q")).await.queue.config, patient(), "the first is as it was");
}

async fn an_update_names_the_version_it_saw(w: &mut World) {
    let q = w.queue("q").await;
    let seen = w.stats(&q).await.queue.version;
    let update = |ms, expected| {
        let config = QueueConfig { lease_timeout: Some(Millis::new(ms)), ..patient() };
        w.store().update_queue(w.at(), UpdateQueue { name: q.clone(), config, expected })
    };
    let updated = update(1, Some(seen)).await.expect("current");
    assert!(updated.version > seen);
    let error = update(2, Some(seen)).await.expect_err("stale");
    let expected = QueueError::VersionMismatch { expected: seen, actual: updated.version };
    assert_eq!(error.to_string(), expected.to_string());
    assert_eq!(w.stats(&q).await.settings.lease_timeout, Millis::new(1));
    update(3, None).await.expect("whatever is there");
    let nowhere = UpdateQueue { name: named("nowhere"), config: patient(), expected: None };
    assert!(matches!(w.store().update_queue(w.at(), nowhere).await, Err(QueueError::NotFound(_))));
}

async fn settings_that_break_a_rule_are_refused_by_name(w: &mut World) {
    let q = w.queue("q").await;
    let bad = QueueConfig { lease_timeout: Some(Millis::ZERO), ..QueueConfig::default() };
    let error = create(w, "bad", bad.clone()).await.expect_err("zero");
    assert!(error.to_string().starts_with("lease_timeout: "), "{error}");
    let update = UpdateQueue { name: q.clone(), config: bad, expected: None };
    assert!(matches!(w.store().update_queue(w.at(), update).await, Err(QueueError::Invalid(_))));
    assert_eq!(w.stats(&q).await.queue.config, patient());
}

async fn dead_letters_never_go_round_in_a_circle(w: &mut World) {
    let to = |name: &str| QueueConfig { dead_letter_to: Some(Some(named(name))), ..patient() };
    let error = create(w, "a", to("a")).await.expect_err("itself");
    assert!(matches!(error, QueueError::DeadLetterCycle(_)), "{error}");
    create(w, "a", to("b")).await.expect("b may come later");
    create(w, "b", to("c")).await.expect("a line");
    let error = create(w, "c", to("a")).await.expect_err("a circle of three");
    assert!(matches!(error, QueueError::DeadLetterCycle(_)), "{error}");
    create(w, "c", patient()).await.expect("the end of the line");
    let update = UpdateQueue { name: named("c"), config: to("b"), expected: None };
    assert!(matches!(w.store().update_queue(w.at(), update).await, Err(QueueError::DeadLetterCycle(_))));
}

async fn only_an_empty_queue_is_deleted_without_force(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let delete = |force| DeleteQueue { name: q.clone(), force };
    let error = w.store().delete_queue(w.at(), delete(false)).await.expect_err("not empty");
    assert!(matches!(error, QueueError::NotEmpty { messages: 1 }), "{error}");
    w.store().delete_queue(w.at(), delete(true)).await.expect("by force");
    assert!(matches!(w.store().delete_queue(w.at(), delete(true)).await, Err(QueueError::NotFound(_))));
    w.restart().await;
    assert_eq!(w.store().get_queue(&q).await.expect("answers"), None, "it is gone for good");
    w.queue("q").await;
    assert_eq!(w.stats(&q).await.states.all(), 0, "and nothing of it comes back");
    assert_eq!(w.stats(&q).await.totals, redrive_core::queue::Totals::default());
}

async fn queues_are_listed_by_name_page_by_page(w: &mut World) {
    for name in ["b", "d", "a", "c", "A"] {
        w.queue(name).await;
    }
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = w.store().list_queues(after.as_ref(), at_most(2)).await.expect("answers");
        assert!(page.len() <= 2 && names.len() < 9, "a page at a time, and to the end");
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        names.extend(page.into_iter().map(|queue| queue.name.to_string()));
    }
    assert_eq!(names, ["A", "a", "b", "c", "d"]);
}

async fn a_key_is_paused_and_resumed(w: &mut World) {
    let q = w.queue("q").await;
    let set = |pause| PauseQueue { name: q.clone(), key: Some(key("a")), pause };
    let queue = w.store().pause_queue(w.at(), set(Some(Pause::UntilResumed))).await.expect("paused");
    assert!(queue.pauses.holds_key(&key("a"), w.now()) && !queue.pauses.holds_queue(w.now()));
    let queue = w.store().pause_queue(w.at(), set(None)).await.expect("resumed");
    assert!(queue.pauses.keys.is_empty());
    let nowhere = PauseQueue { name: named("nowhere"), key: None, pause: None };
    assert!(matches!(w.store().pause_queue(w.at(), nowhere).await, Err(QueueError::NotFound(_))));
}

async fn an_update_is_kept(w: &mut World) {
    let q = w.queue("q").await;
    let config = QueueConfig { lease_timeout: Some(Millis::new(7_000)), ..patient() };
    let request = UpdateQueue { name: q.clone(), config: config.clone(), expected: None };
    let updated = w.store().update_queue(w.at(), request).await.expect("updated");
    assert_eq!(updated.config, config);
    w.restart().await;
    assert_eq!(w.store().get_queue(&q).await.expect("answers"), Some(updated));
}

async fn an_empty_queue_is_deleted_without_force(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.ack(&message).await;
    let delete = DeleteQueue { name: q.clone(), force: false };
    w.store().delete_queue(w.at(), delete).await.expect("nothing is left in it");
    assert_eq!(w.store().get_queue(&q).await.expect("answers"), None);
}

rules!("queue";
    a_queue_is_kept_as_it_was_set,
    a_name_is_taken_once,
    an_update_names_the_version_it_saw,
    settings_that_break_a_rule_are_refused_by_name,
    dead_letters_never_go_round_in_a_circle,
    only_an_empty_queue_is_deleted_without_force,
    queues_are_listed_by_name_page_by_page,
    a_key_is_paused_and_resumed,
    an_update_is_kept,
    an_empty_queue_is_deleted_without_force,
);
