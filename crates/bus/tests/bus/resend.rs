//! One event once more to one subscription, by whichever way there is.

use redrive_broker::LeaseCall;
use redrive_bus::{BusError, Dispatch, Resent, TopicConfig};
use redrive_core::lease::ConsumerName;
use redrive_core::message::{MessageId, Note, State};
use redrive_core::policy::RetryOverride;
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::Limit;

use crate::dispatch::id;
use crate::world::{World, boom, exact, fine};

async fn resend(world: &World, subscription: &str, event: MessageId) -> Result<Resent, BusError> {
    world.bus.resend(&id(subscription), event, Note::new("ops").unwrap()).await
}

async fn retain(world: &World, pattern: &str) {
    let (pattern, retain) = (pattern.parse().unwrap(), Some(Millis::from_days(1)));
    let config = TopicConfig { pattern, dispatch: Dispatch::Independent, retain };
    world.bus.set_topic(config, None).await.unwrap();
}

fn bodies(world: &World, subscription: &str) -> Vec<String> {
    world.log.of(subscription).into_iter().map(|seen| seen.body).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_dead_for_it_is_redriven_and_nothing_else() {
    let world = World::new().await;
    world.handler("mail", exact("a"), boom).await;
    let one = world.publish("a", "one").await.id;
    world.publish("a", "two").await;
    world.drained(&["bus.sub.mail"]).await;
    world.attach("mail", fine).await;
    let seen = world.log.len();
    assert_eq!(resend(&world, "mail", one).await.unwrap(), Resent::Redriven);
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!((world.log.len(), bodies(&world, "mail").last().unwrap().as_str()), (seen + 1, "one"));
    assert_eq!(world.count("bus.sub.mail", State::Dead).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_it_is_tried_now() {
    let world = World::new().await;
    let mut settings = exact("a");
    let day = Some(Millis::from_days(1));
    settings.retry = RetryOverride { base_delay: day, max_delay: Some(day), ..settings.retry };
    world.handler("mail", settings, |seen| if seen.attempt == 1 { boom(seen) } else { fine(seen) }).await;
    let event = world.publish("a", "one").await.id;
    let waits = async |world: &World| world.count("bus.sub.mail", State::Delayed).await == 1;
    world.until("it failed", waits).await;
    assert_eq!(resend(&world, "mail", event).await.unwrap(), Resent::RetriedNow);
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(bodies(&world, "mail"), ["one", "one"]);
    assert!(world.elapsed() < Millis::from_secs(3_600).get(), "and not tomorrow");
}

#[tokio::test(start_paused = true)]
async fn what_is_over_comes_again_where_its_topic_kept_it_and_to_nobody_else() {
    let world = World::new().await;
    retain(&world, "orders.**").await;
    world.handler("mail", exact("orders.*"), fine).await;
    world.handler("audit", exact("**"), fine).await;
    world.handler("other", exact("payments"), fine).await;
    let mut events = Vec::new();
    for n in 0..600 {
        world.pass_to(n * 50).await;
        events.push(world.publish("orders.created", &n.to_string()).await.id);
    }
    let unkept = world.publish("payments", "x").await.id;
    let queues = ["bus.sub.mail", "bus.sub.audit", "bus.sub.other"];
    world.drained(&queues).await;
    let before = world.log.len();
    for n in [0, 299, 599] {
        assert_eq!(resend(&world, "mail", events[n]).await.unwrap(), Resent::Enqueued, "{n}");
    }
    world.drained(&queues).await;
    assert_eq!(world.log.len(), before + 3);
    let mut again = bodies(&world, "mail").split_off(600);
    again.sort_unstable();
    assert_eq!(again, ["0", "299", "599"]);

    let never = MessageId::new(Timestamp::from_millis(world.elapsed()), 1);
    for (subscription, event) in
        [("mail", unkept), ("other", unkept), ("other", events[0]), ("mail", never), ("mail", MessageId::MIN)]
    {
        let refused = resend(&world, subscription, event).await.unwrap_err();
        assert_eq!(refused.code(), "EVENT_NOT_FOUND", "{subscription}");
        assert!(
            refused.to_string().contains(subscription) && refused.to_string().contains(&event.to_string())
        );
    }
    assert_eq!(resend(&world, "none", events[0]).await.unwrap_err().code(), "SUBSCRIPTION_NOT_FOUND");
    assert_eq!(world.log.len(), before + 3, "a refusal brings nothing");
}

#[tokio::test(start_paused = true)]
async fn where_handlers_run_one_after_another_it_goes_on_there() {
    let world = World::new().await;
    world.sequential("a").await;
    world.handler("first", exact("a"), fine).await;
    world.handler("second", exact("a"), boom).await;
    let event = world.publish("a", "x").await.id;
    let queue = world.bus.topics().await.unwrap()[0].sequence_queue();
    world.drained(&[queue.as_str()]).await;
    assert_eq!(resend(&world, "first", event).await.unwrap_err().code(), "EVENT_NOT_FOUND", "it had it");
    world.attach("second", fine).await;
    let (first, second) = (world.log.of("first").len(), world.log.of("second").len());
    assert_eq!(resend(&world, "second", event).await.unwrap(), Resent::Redriven);
    world.drained(&[queue.as_str()]).await;
    assert_eq!((world.log.of("first").len(), world.log.of("second").len()), (first, second + 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_left_alone() {
    let world = World::new().await;
    world.queue_subscription("mail", "a", "plain").await;
    let event = world.publish("a", "x").await.id;
    assert_eq!(resend(&world, "mail", event).await.unwrap(), Resent::RetriedNow, "it is ready already");
    let plain = QueueName::new("plain").unwrap();
    let call = LeaseCall::new(plain, Limit::ONE, ConsumerName::new("worker").unwrap());
    assert_eq!(world.broker.lease(call).await.unwrap().len(), 1);
    assert_eq!(resend(&world, "mail", event).await.unwrap_err().code(), "WRONG_STATE");
}
