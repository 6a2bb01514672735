//! Subscriptions and topics themselves: what is kept, what is refused, and what survives.

use redrive_broker::{Act, Happening, Told};
use redrive_bus::{
    BusError, Dispatch, NewSubscription, NewTarget, State, SubscriptionChange, SubscriptionSettings,
    TopicConfig, WhyDisabled,
};
use redrive_core::message::State as MessageState;
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::time::Millis;
use redrive_store::{CreateQueue, DeleteQueue, Limit};

use crate::dispatch::id;
use crate::world::{World, exact, fine, settings};

fn new(name: &str, pattern: &str) -> NewSubscription {
    NewSubscription {
        id: Some(id(name)),
        settings: settings(pattern),
        target: NewTarget::Handler,
        replay_from: None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_set_survives_the_end_of_the_process() {
    let world = World::new().await;
    world.sequential("seq.**").await;
    for n in 0..100 {
        world.bus.create_subscription(new(&format!("s{n:03}"), "a.*")).await.unwrap();
    }
    world.bus.delete_subscription(&id("s007")).await.unwrap();
    world.bus.pause_subscription(&id("s008")).await.unwrap();
    let change = SubscriptionSettings { timeout: Some(Millis::new(77)), ..settings("b") };
    let change = SubscriptionChange { settings: change, endpoint: None, expected: None };
    world.bus.update_subscription(&id("s009"), change).await.unwrap();
    let world = world.crash().await;
    let all = world.bus.subscriptions(None, Limit::MAX).await.unwrap();
    assert_eq!(all.len(), 99);
    assert!(all.is_sorted_by(|one, other| one.id < other.id && one.order < other.order));
    assert_eq!(world.bus.subscription(&id("s008")).await.unwrap().state, State::Paused);
    let updated = world.bus.subscription(&id("s009")).await.unwrap();
    assert_eq!((updated.settings.pattern.as_str(), updated.timeout()), ("b", Millis::new(77)));
    assert_eq!(world.publish("a.x", "x").await.subscriptions, 98);
    assert_eq!(world.bus.topics().await.unwrap()[0].config.dispatch, Dispatch::Sequential);
    let after = world.bus.subscriptions(Some(&id("s097")), Limit::MAX).await.unwrap();
    assert_eq!(after.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["s098", "s099"]);
}

#[tokio::test(start_paused = true)]
async fn refusals_say_what_is_wrong() {
    let world = World::new().await;
    world.bus.create_subscription(new("a", "a")).await.unwrap();
    let code = |error: BusError| error.code();
    assert_eq!(code(world.bus.create_subscription(new("a", "b")).await.unwrap_err()), "SUBSCRIPTION_EXISTS");
    assert_eq!(code(world.bus.subscription(&id("b")).await.unwrap_err()), "SUBSCRIPTION_NOT_FOUND");
    assert_eq!(code(world.bus.delete_subscription(&id("b")).await.unwrap_err()), "SUBSCRIPTION_NOT_FOUND");
    assert_eq!(code(world.bus.topic(&"x".parse().unwrap()).await.unwrap_err()), "TOPIC_NOT_FOUND");
    let stale = SubscriptionChange { settings: settings("a"), endpoint: None, expected: Some(9_999) };
    let stale = world.bus.update_subscription(&id("a"), stale).await.unwrap_err();
    assert_eq!(code(stale), "VERSION_MISMATCH");
    let missing = NewTarget::Queue(QueueName::new("nowhere").unwrap());
    let missing = NewSubscription { target: missing, ..new("q", "a") };
    assert_eq!(code(world.bus.create_subscription(missing).await.unwrap_err()), "QUEUE_NOT_FOUND");
    let endless = SubscriptionSettings { timeout: Some(Millis::from_days(1)), ..settings("a") };
    let endless = NewSubscription { settings: endless, ..new("t", "a") };
    let endless = world.bus.create_subscription(endless).await.unwrap_err().to_string();
    assert!(endless.starts_with("timeout: must lie between"), "{endless}");
    let webhook = redrive_bus::EndpointSettings {
        url: "https://example.com".into(),
        format: redrive_bus::Format::Binary,
        disable_after: None,
    };
    let webhook = NewSubscription { target: NewTarget::Webhook(webhook, None), ..new("w", "a") };
    assert_eq!(code(world.bus.create_subscription(webhook).await.unwrap_err()), "WRONG_TARGET");
    assert_eq!(world.bus.subscriptions(None, Limit::MAX).await.unwrap().len(), 1, "nothing was half done");
}

/// Queues of the bus come, change and go with what they belong to.
#[tokio::test(start_paused = true)]
async fn nobody_else_touches_the_queues_of_the_bus() {
    let world = World::new().await;
    world.bus.create_subscription(new("a", "a")).await.unwrap();
    let name = QueueName::new("bus.sub.a").unwrap();
    let create = CreateQueue { name: QueueName::new("bus.mine").unwrap(), config: QueueConfig::default() };
    assert_eq!(world.broker.create_queue(create).await.unwrap_err().code(), "QUEUE_OF_BUS");
    let delete = DeleteQueue { name: name.clone(), force: true };
    assert_eq!(world.broker.delete_queue(delete).await.unwrap_err().code(), "QUEUE_OF_BUS");
    world.bus.delete_subscription(&id("a")).await.unwrap();
    assert!(world.broker.get_queue(&name).await.is_err());
}

/// The end of the process between the deletion of a subscription and that of its queue leaves messages behind, which are not
/// those of the next one of that name.
#[tokio::test(start_paused = true)]
async fn one_of_the_same_name_begins_with_nothing() {
    let world = World::new().await;
    let create = CreateQueue { name: QueueName::new("bus.sub.a").unwrap(), config: QueueConfig::default() };
    world.broker.create_own_queue(create).await.unwrap();
    world.bus.create_subscription(new("old", "a")).await.unwrap();
    let spare = redrive_store::EnqueueItem {
        queue: QueueName::new("bus.sub.a").unwrap(),
        draft: draft("left behind"),
    };
    let batch = redrive_store::Batch::one(spare).unwrap();
    world.broker.store().enqueue(redrive_store::Now::At(world.broker.now()), batch).await.unwrap();
    world.pass_to(world.elapsed() + 5).await;
    world.bus.create_subscription(new("a", "a")).await.unwrap();
    assert_eq!(world.left("bus.sub.a").await.len(), 0);
}

fn draft(body: &str) -> redrive_core::lifecycle::Draft {
    use redrive_core::message::*;
    redrive_core::lifecycle::Draft {
        spec: Spec {
            id: MessageId::new(redrive_core::time::Timestamp::from_millis(1), 1),
            body: Body::new(body.to_owned()).unwrap(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: MessageType::default(),
            source: Source::default(),
            fairness_key: FairnessKey::default(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        },
        priority: Priority::default(),
        visible: redrive_core::lifecycle::When::Now,
        expires: None,
    }
}

#[tokio::test(start_paused = true)]
async fn paused_collects_and_disabled_does_not() {
    let world = World::new().await;
    let mut told = world.broker.watch(None);
    world.handler("mail", exact("a"), fine).await;
    world.bus.pause_subscription(&id("mail")).await.unwrap();
    world.publish("a", "1").await;
    world.pass_to(10_000).await;
    assert_eq!((world.log.len(), world.count("bus.sub.mail", MessageState::Ready).await), (0, 1));
    world.bus.resume_subscription(&id("mail")).await.unwrap();
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.len(), 1);
    world.bus.disable_subscription(&id("mail"), WhyDisabled::Operator).await.unwrap();
    assert_eq!(world.publish("a", "2").await.subscriptions, 0);
    world.bus.enable_subscription(&id("mail")).await.unwrap();
    assert_eq!(world.publish("a", "3").await.subscriptions, 1);
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.of("mail").iter().map(|seen| seen.body.as_str()).collect::<Vec<_>>(), ["1", "3"]);
    let mut acts = Vec::new();
    while acts.len() < 5 {
        if let Told::Event(event) = told.next().await
            && let Happening::Subscription(act) = event.what
        {
            assert_eq!(event.queue.as_str(), "bus.sub.mail");
            acts.push(act);
        }
    }
    assert_eq!(acts, [Act::Created, Act::Paused, Act::Resumed, Act::Disabled, Act::Enabled]);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_paused_and_switched_off_works_when_it_is_switched_on() {
    let world = World::new().await;
    world.handler("mail", exact("a"), fine).await;
    world.bus.pause_subscription(&id("mail")).await.unwrap();
    world.publish("a", "x").await;
    world.bus.disable_subscription(&id("mail"), WhyDisabled::Operator).await.unwrap();
    world.bus.enable_subscription(&id("mail")).await.unwrap();
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_topic_with_events_under_way_goes_only_by_force() {
    let world = World::new().await;
    world.sequential("a").await;
    world.handler("mail", exact("a"), fine).await;
    world.bus.stop_handling(&id("mail")).await;
    world.publish("a", "x").await;
    let pattern = "a".parse().unwrap();
    let refused = world.bus.delete_topic(&pattern, false).await.unwrap_err();
    assert!(matches!(refused, BusError::TopicNotEmpty { waiting: 1, .. }), "{refused}");
    world.bus.delete_topic(&pattern, true).await.unwrap();
    assert!(world.bus.topics().await.unwrap().is_empty());
    let config = TopicConfig { pattern, dispatch: Dispatch::Independent, retain: None };
    world.bus.set_topic(config, None).await.unwrap();
}
