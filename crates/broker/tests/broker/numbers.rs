//! Numbers for people: what is told of all queues together, of whom, and to whom.

use redrive_broker::{
    Access, AttentionKind, BrokerConfig, Bury, Caller, ConsumerSeen, Delivery, Gate, LeaseCall, LeaseCursor,
    LeasesWanted, NewKey, Overview, Quotas, Release, Rows, RowsWanted, Sample, Severity, Shown, StatsOrder,
    Target,
};
use redrive_core::access::{Deed, Grant, Grants, KeyName, QueuePattern, Scope, Token};
use redrive_core::lease::ConsumerName;
use redrive_core::message::{ErrorText, State};
use redrive_core::policy::BreakerConfig;
use redrive_core::queue::{Pause, QueueConfig, QueueName};
use redrive_core::time::Millis;
use redrive_store::{CreateQueue, DeleteQueue, Limit, PauseQueue};

use crate::world::{World, retry};

const BOOTSTRAP: &str = "rdk_00c0ffee00c0ffee_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const MINUTE: Millis = Millis::from_secs(60);

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn consumer(text: &str) -> ConsumerName {
    ConsumerName::new(text).unwrap()
}

/// Anybody.
pub(crate) async fn anyone(world: &World) -> Caller {
    let gate = Gate::new(world.broker.clone(), Access::Anyone).await.unwrap();
    gate.caller(Shown::Nothing, None).unwrap()
}

/// Somebody with one scope over some queues.
async fn keyed(world: &World, scope: Scope, queues: &str) -> Caller {
    let bootstrap: Token = BOOTSTRAP.parse().unwrap();
    let gate = Gate::new(world.broker.clone(), Access::Keys { bootstrap: Some(bootstrap) }).await.unwrap();
    let show = |token: &str| gate.caller(Shown::Header(format!("Bearer {token}").as_bytes()), None).unwrap();
    let grants = Grants::new(vec![Grant { scope, queues: QueuePattern::new(queues).unwrap() }]).unwrap();
    let key = NewKey {
        name: KeyName::new("somebody").unwrap(),
        grants,
        quotas: Quotas::default(),
        expires_at: None,
    };
    let (_, token) = show(BOOTSTRAP).create_key(key).await.unwrap();
    show(&token.expose())
}

impl World {
    async fn create(&self, queue: &str, config: QueueConfig) {
        self.broker.create_queue(CreateQueue { name: name(queue), config }).await.unwrap();
    }

    async fn put_into(&self, queue: &str, count: usize) {
        for _ in 0..count {
            self.put_one(|message| message.queue = name(queue)).await;
        }
    }

    async fn lease_as(&self, queue: &str, who: &str, limit: usize) -> Vec<Delivery> {
        let call = LeaseCall::new(name(queue), Limit::new(limit).unwrap(), consumer(who));
        self.broker.lease(call).await.unwrap()
    }

    /// Waits until another sample was taken of a queue.
    async fn sampled(&self) -> Sample {
        let seen = self.broker.history(&self.queue).await.unwrap().len();
        loop {
            self.clock.advance(Millis::from_secs(10));
            for _ in 0..100 {
                tokio::task::yield_now().await;
                let samples = self.broker.history(&self.queue).await.unwrap();
                if samples.len() > seen {
                    return *samples.last().unwrap();
                }
            }
        }
    }
}

fn kinds(overview: &Overview) -> Vec<(AttentionKind, Option<&str>)> {
    let told = |one: &redrive_broker::Attention| one.kind;
    overview.attention.iter().map(|one| (told(one), one.queue.as_ref().map(QueueName::as_str))).collect()
}

#[tokio::test]
async fn the_overview_adds_up_what_the_caller_may_see() {
    let world = World::new().await;
    world.create("jobs.mail", QueueConfig::default()).await;
    world.put(3).await;
    world.put_into("jobs.mail", 2).await;
    world.lease(1).await;
    let all = anyone(&world).await.overview(Vec::new()).await.unwrap();
    let counts = |overview: &Overview| {
        let of = |state| overview.states.of(state);
        (overview.queues, of(State::Ready), of(State::Leased))
    };
    assert_eq!((counts(&all), all.complete), ((2, 4, 1), true));
    assert_eq!((all.at, all.started_at), (world.broker.now(), world.broker.now()));
    for scope in [Scope::Read, Scope::Produce] {
        let some = keyed(&world, scope, "jobs.*").await.overview(Vec::new()).await.unwrap();
        assert_eq!((counts(&some), some.complete), ((1, 2, 0), true), "{scope:?}");
    }
}

#[tokio::test]
async fn the_samples_of_all_queues_are_added_up_round_by_round() {
    let world = World::new().await;
    world.create("a", QueueConfig::default()).await;
    world.sampled().await;
    world.put(3).await;
    world.put_into("a", 2).await;
    let last = world.sampled().await;
    let all = anyone(&world).await.overview(Vec::new()).await.unwrap();
    let sum = all.samples.last().unwrap();
    assert_eq!((sum.at, sum.enqueued, sum.states.of(State::Ready)), (last.at, 5, 5));
    assert!(all.samples.is_sorted_by_key(|sample| sample.at));
    let some = keyed(&world, Scope::Read, "a").await.overview(Vec::new()).await.unwrap();
    assert_eq!(some.samples.last().map(|sum| sum.enqueued), Some(2));
    world.clock.advance(Millis::from_secs(15 * 60));
    let later = anyone(&world).await.overview(Vec::new()).await.unwrap();
    assert!(later.samples.iter().all(|sample| sample.enqueued == 0), "that was more than 15 minutes ago");
}

#[tokio::test]
async fn where_there_are_more_queues_than_are_sampled_the_overview_says_so() {
    let settings = BrokerConfig { metric_labels_max: 2, ..BrokerConfig::default() };
    let world = World::set(World::store(), QueueConfig::default(), settings).await;
    for queue in ["a", "b", "z"] {
        world.create(queue, QueueConfig::default()).await;
    }
    let all = anyone(&world).await.overview(Vec::new()).await.unwrap();
    assert_eq!((all.queues, all.complete), (2, false));
    let first = keyed(&world, Scope::Read, "a").await.overview(Vec::new()).await.unwrap();
    assert_eq!((first.queues, first.complete), (1, true), "it sees no more than that");
    let last = keyed(&world, Scope::Read, "z").await.overview(Vec::new()).await.unwrap();
    assert_eq!((last.queues, last.complete), (0, false));
}

#[tokio::test]
async fn what_somebody_should_look_at_follows_from_what_happens() {
    let world = World::with(retry(Millis::ZERO, 1)).await;
    let breaker = QueueConfig { breaker: Some(Some(BreakerConfig::default())), ..QueueConfig::default() };
    world.create("broken", breaker).await;
    world.create("held", QueueConfig::default()).await;
    let everyone = anyone(&world).await;
    assert_eq!(kinds(&everyone.overview(Vec::new()).await.unwrap()), []);
    world.put(2).await;
    let dies = world.lease(1).await.remove(0);
    world.nack(&dies).await;
    world.broker.set_breaker(&name("broken"), true).await.unwrap();
    let pause = PauseQueue { name: name("held"), key: None, pause: Some(Pause::UntilResumed) };
    world.broker.pause_queue(pause).await.unwrap();
    let now = everyone.overview(Vec::new()).await.unwrap();
    assert_eq!(
        kinds(&now),
        [
            (AttentionKind::BreakerOpen, Some("broken")),
            (AttentionKind::DeadRising, Some("orders")),
            (AttentionKind::Paused, Some("held"))
        ],
        "also before anything was sampled"
    );
    assert!(now.attention[0].until.is_some_and(|until| until > now.at));
    assert_eq!((now.attention[1].count, now.attention[2].severity), (Some(1), Severity::Notice));
    world.clock.advance(Millis::from_secs(61));
    let later = everyone.overview(Vec::new()).await.unwrap();
    let nobody = later.attention.iter().find(|one| one.kind == AttentionKind::NoConsumers).unwrap();
    assert_eq!((nobody.count, nobody.age), (Some(1), Some(Millis::from_secs(61))));
    let poll = {
        let pauses = PauseQueue { name: world.queue.clone(), key: None, pause: Some(Pause::UntilResumed) };
        world.broker.pause_queue(pauses).await.unwrap();
        world.poll(world.call(1)).await
    };
    let resume = PauseQueue { name: world.queue.clone(), key: None, pause: None };
    world.broker.pause_queue(resume).await.unwrap();
    crate::world::done(poll).await;
    let again = everyone.overview(Vec::new()).await.unwrap();
    assert!(!kinds(&again).iter().any(|(kind, _)| *kind == AttentionKind::NoConsumers), "somebody came");
    let narrow = keyed(&world, Scope::Read, "held").await.overview(Vec::new()).await.unwrap();
    assert_eq!(kinds(&narrow), [(AttentionKind::Paused, Some("held"))]);
}

#[tokio::test]
async fn a_lease_that_ran_out_is_told_until_it_is_a_quarter_of_an_hour_old() {
    let world = World::new().await;
    world.put(1).await;
    world.lease(1).await;
    world.clock.advance(Millis::from_secs(31));
    world.until_states((1, 0, 0, 0)).await;
    let everyone = anyone(&world).await;
    let told = everyone.overview(Vec::new()).await.unwrap();
    assert_eq!(kinds(&told), [(AttentionKind::LeasesExpiring, Some("orders"))]);
    assert_eq!(told.attention[0].count, Some(1));
    world.sampled().await;
    assert!(kinds(&everyone.overview(Vec::new()).await.unwrap()).contains(&kinds(&told)[0]));
    for _ in 0..92 {
        world.sampled().await;
    }
    assert!(!kinds(&everyone.overview(Vec::new()).await.unwrap()).contains(&kinds(&told)[0]));
}

fn of<'a>(seen: &'a [ConsumerSeen], who: &str) -> &'a ConsumerSeen {
    seen.iter().find(|one| one.consumer == consumer(who)).unwrap()
}

#[tokio::test]
async fn what_each_consumer_does_is_counted_and_what_it_holds_follows_from_its_leases() {
    let world = World::with(retry(Millis::ZERO, 9)).await;
    world.put(10).await;
    let first_seen = world.broker.now();
    let [acked, nacked, buried, released, _held] =
        world.lease_as("orders", "anna", 5).await.try_into().unwrap();
    world.lease_as("orders", "bert", 1).await;
    world.clock.advance(Millis::from_secs(1));
    world.ack(&acked).await;
    world.nack(&nacked).await;
    let bury = Bury { receipt: buried.receipt, error: ErrorText::new("never") };
    world.broker.bury(vec![bury]).await.unwrap();
    let release = Release { target: Target::Receipt(released.receipt), delay: None };
    world.broker.release(vec![release]).await.unwrap();
    let everyone = anyone(&world).await;
    let seen = everyone.consumers().await.unwrap();
    assert!(seen.complete && seen.consumers.len() == 2);
    let anna = of(&seen.consumers, "anna");
    assert_eq!((anna.leased, anna.acked, anna.failed, anna.released, anna.expired), (5, 1, 2, 1, 0));
    assert_eq!((anna.held, anna.overdue, anna.oldest_lease), (1, 0, Some(first_seen)));
    assert_eq!((anna.first_seen, anna.last_seen, anna.here), (first_seen, world.broker.now(), true));
    assert_eq!(format!("{:.2} {:.2}", anna.acked_per_s, anna.failed_per_s), "1.00 2.00");
    assert_eq!(anna.queues.iter().map(QueueName::as_str).collect::<Vec<_>>(), ["orders"]);
    assert_eq!(of(&seen.consumers, "bert").held, 1);
    world.clock.advance(Millis::from_secs(30));
    world.until_states((8, 0, 0, 1)).await;
    let seen = everyone.consumers().await.unwrap();
    let bert = of(&seen.consumers, "bert");
    assert_eq!((bert.held, bert.expired, bert.last_seen), (0, 1, first_seen), "it is not there any more");
}

#[tokio::test]
async fn who_may_see_a_queue_sees_what_is_done_there_and_nothing_else() {
    let world = World::new().await;
    world.create("jobs", QueueConfig::default()).await;
    world.put(2).await;
    world.put_into("jobs", 3).await;
    for delivery in world.lease_as("jobs", "anna", 3).await {
        world.ack(&delivery).await;
    }
    world.lease_as("orders", "anna", 1).await;
    world.lease_as("orders", "bert", 1).await;
    let seen = keyed(&world, Scope::Produce, "jobs").await.consumers().await.unwrap();
    let [anna] = seen.consumers.as_slice() else { panic!("{seen:?}") };
    assert_eq!((anna.consumer.as_str(), anna.acked, anna.held), ("anna", 3, 0));
    assert_eq!(anna.queues.iter().map(QueueName::as_str).collect::<Vec<_>>(), ["jobs"]);
    let seen = anyone(&world).await.consumers().await.unwrap();
    let anna = of(&seen.consumers, "anna");
    assert_eq!((anna.acked, anna.held, anna.queues.len()), (3, 1, 2));
}

#[tokio::test]
async fn a_consumer_of_another_instance_is_known_by_its_leases() {
    let world = World::new().await;
    world.put(2).await;
    world.lease_as("orders", "anna", 1).await;
    let restarted = World::over(std::sync::Arc::clone(&world.store), QueueConfig::default()).await;
    restarted.clock.advance(MINUTE);
    let seen = anyone(&restarted).await.consumers().await.unwrap();
    let anna = of(&seen.consumers, "anna");
    assert_eq!((anna.here, anna.held, anna.overdue, anna.leased), (false, 1, 1, 0));
    assert_eq!((anna.first_seen, anna.last_seen), (world.broker.now(), world.broker.now()));
}

#[tokio::test]
async fn however_many_names_consumers_give_only_so_many_are_remembered() {
    let world = World::new().await;
    world.create("gone", QueueConfig::default()).await;
    world.put(1).await;
    for n in 0..10_100_u32 {
        let queue = if n % 2 == 0 { "orders" } else { "gone" };
        let call = LeaseCall::new(name(queue), Limit::ONE, consumer(&format!("c{n}")));
        for delivery in world.broker.lease(call).await.unwrap() {
            let release = Release { target: Target::Receipt(delivery.receipt), delay: None };
            world.broker.release(vec![release]).await.unwrap();
        }
        if n % 2 == 1 {
            world.put_into("gone", usize::from(n < 3)).await;
        }
        world.clock.advance(Millis::new(1));
    }
    let seen = anyone(&world).await.consumers().await.unwrap();
    assert_eq!(seen.consumers.len(), 1_000, "as many as are told");
    assert!(!seen.complete);
    assert!(seen.consumers.iter().any(|one| one.consumer == consumer("c10098")), "the last is among them");
    assert!(!seen.consumers.iter().any(|one| one.consumer == consumer("c0")));
    let delete = DeleteQueue { name: name("gone"), force: true };
    world.broker.delete_queue(delete).await.unwrap();
    let seen = anyone(&world).await.consumers().await.unwrap();
    assert!(seen.consumers.iter().all(|one| !one.queues.contains(&name("gone"))));
}

#[tokio::test]
async fn all_leases_are_listed_queue_by_queue_and_page_by_page() {
    let world = World::new().await;
    let mut config = QueueConfig::default();
    config.retry.max_attempts = Some(None);
    world.create("a", config).await;
    for queue in ["b", "c", "d"] {
        world.create(queue, QueueConfig::default()).await;
    }
    for (queue, count) in [("a", 3), ("c", 2), ("d", 1)] {
        world.put_into(queue, count + 1).await;
        world.lease_as(queue, "anna", count).await;
        world.lease_as(queue, "bert", 1).await;
    }
    let everyone = anyone(&world).await;
    let pages = async |caller: &Caller, queue: Option<&str>, who: Option<&str>, limit: usize| {
        let (mut found, mut cursor): (Vec<String>, Option<LeaseCursor>) = (Vec::new(), None);
        loop {
            let wanted =
                LeasesWanted { consumer: who.map(consumer), after: None, limit: Limit::new(limit).unwrap() };
            let page = caller.leases(queue.map(name), wanted, cursor.take()).await.unwrap();
            assert!(page.leases.len() <= limit);
            for lease in &page.leases {
                let cap = lease.max_attempts.map_or(0, std::num::NonZeroU32::get);
                found.push(format!("{} {cap}", lease.message.queue));
            }
            // As it travels.
            cursor = page.next.map(|next| next.to_string().parse().unwrap());
            if cursor.is_none() {
                return found;
            }
        }
    };
    let all = ["a 0", "a 0", "a 0", "a 0", "c 3", "c 3", "c 3", "d 3", "d 3"];
    for limit in 1..=10 {
        assert_eq!(pages(&everyone, None, None, limit).await, all, "{limit}");
        assert_eq!(pages(&everyone, None, Some("bert"), limit).await, ["a 0", "c 3", "d 3"], "{limit}");
        assert_eq!(pages(&everyone, Some("c"), None, limit).await, ["c 3", "c 3", "c 3"], "{limit}");
    }
    let reader = keyed(&world, Scope::Read, "c").await;
    assert_eq!(pages(&reader, None, None, 2).await, ["c 3", "c 3", "c 3"]);
    let consumer = keyed(&world, Scope::Consume, "c").await;
    assert_eq!(pages(&consumer, None, None, 2).await, [] as [&str; 0], "it may not look into messages");
    let refused = consumer.leases(Some(name("c")), LeasesWanted::default(), None).await.unwrap_err();
    assert_eq!(refused.code(), "FORBIDDEN");
}

#[tokio::test]
async fn a_page_of_leases_looks_into_so_many_queues_and_goes_on_in_the_next() {
    let world = World::new().await;
    for n in 0..1_005 {
        world.create(&format!("q{n:04}"), QueueConfig::default()).await;
    }
    world.put_into("q1004", 1).await;
    world.lease_as("q1004", "anna", 1).await;
    let everyone = anyone(&world).await;
    let first = everyone.leases(None, LeasesWanted::default(), None).await.unwrap();
    assert_eq!(first.leases.len(), 0);
    let second = everyone.leases(None, LeasesWanted::default(), first.next).await.unwrap();
    assert_eq!((second.leases.len(), second.next), (1, None));
}

#[tokio::test]
async fn groups_of_failures_are_told_for_all_queues_with_when_they_died() {
    let world = World::with(retry(Millis::ZERO, 1)).await;
    world.create("jobs", retry(Millis::ZERO, 1)).await;
    world.create("graveyard", QueueConfig::default()).await;
    let moved = QueueConfig { dead_letter_to: Some(Some(name("graveyard"))), ..retry(Millis::ZERO, 1) };
    world.create("moved", moved).await;
    for (queue, count) in [("orders", 1), ("jobs", 3), ("moved", 1)] {
        world.put_into(queue, count).await;
        for delivery in world.lease_as(queue, "anna", count).await {
            world.nack(&delivery).await;
        }
        world.clock.advance(MINUTE);
    }
    let everyone = anyone(&world).await;
    let limit = |limit| Limit::new(limit).unwrap();
    let all = everyone.failure_groups(limit(10)).await.unwrap();
    let told: Vec<_> = all.groups.iter().map(|one| (one.queue.as_str(), one.group.messages)).collect();
    assert_eq!((told, all.complete), (vec![("jobs", 3), ("orders", 1)], true));
    assert_eq!(all.groups[0].deaths[26..], [0, 3, 0, 0], "two minutes ago");
    assert_eq!(all.groups[1].deaths[26..], [1, 0, 0, 0]);
    let one = everyone.failure_groups(limit(1)).await.unwrap();
    assert_eq!((one.groups.len(), one.complete), (1, false));
    let reader = keyed(&world, Scope::Read, "orders").await.failure_groups(limit(1)).await.unwrap();
    assert_eq!((reader.groups.len(), reader.complete), (1, true));
    let producer = keyed(&world, Scope::Produce, "*").await.failure_groups(limit(1)).await.unwrap();
    assert!(producer.groups.is_empty(), "what is in messages is not for it to see");
}

fn wanted(order: StatsOrder, descending: bool, limit: usize) -> RowsWanted {
    let limit = Limit::new(limit).unwrap();
    RowsWanted { name: String::new(), order, descending, limit, after: None }
}

fn names(rows: &Rows) -> Vec<&str> {
    rows.rows.iter().map(|row| row.stats.queue.name.as_str()).collect()
}

#[tokio::test]
async fn rows_come_in_any_order_page_by_page() {
    let world = World::new().await;
    for (queue, count) in [("Jobs.big", 5), ("jobs.small", 1), ("other", 3)] {
        world.create(queue, QueueConfig::default()).await;
        world.put_into(queue, count).await;
    }
    world.sampled().await;
    // It came when the last sample was taken already.
    world.create("new", QueueConfig::default()).await;
    world.put_into("new", 9).await;
    let everyone = anyone(&world).await;
    let by_name = everyone.rows(wanted(StatsOrder::Name, false, 10)).await.unwrap();
    assert_eq!(names(&by_name), ["Jobs.big", "jobs.small", "new", "orders", "other"]);
    assert_eq!((by_name.total, by_name.ranked, by_name.next), (5, 5, None));
    let by_ready = everyone.rows(wanted(StatsOrder::Ready, true, 10)).await.unwrap();
    assert_eq!(names(&by_ready), ["Jobs.big", "other", "jobs.small", "orders", "new"]);
    assert_eq!((by_ready.total, by_ready.ranked), (5, 4), "one has no sample yet");
    assert_eq!(by_ready.rows[4].stats.states.of(State::Ready), 9, "its row is fresh all the same");
    for (order, descending) in [
        (StatsOrder::Name, true),
        (StatsOrder::Ready, true),
        (StatsOrder::Oldest, false),
        (StatsOrder::Failed, true),
    ] {
        let all = everyone.rows(wanted(order, descending, 10)).await.unwrap();
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = everyone.rows(RowsWanted { after, ..wanted(order, descending, 2) }).await.unwrap();
            paged.extend(names(&page).into_iter().map(str::to_owned));
            after = page.next.map(|next| next.to_string().parse().unwrap());
            if after.is_none() {
                break;
            }
        }
        assert_eq!(paged, names(&all), "{order:?}");
    }
    let part = RowsWanted { name: "JOBS".to_owned(), ..wanted(StatsOrder::Name, false, 1) };
    let found = everyone.rows(part).await.unwrap();
    assert_eq!((names(&found), found.total, found.next.is_some()), (vec!["Jobs.big"], 2, true));
    let some =
        keyed(&world, Scope::Consume, "o*").await.rows(wanted(StatsOrder::Name, false, 9)).await.unwrap();
    assert_eq!((names(&some), some.total), (vec!["orders", "other"], 2));
}

#[tokio::test]
async fn a_row_tells_how_fast_its_queue_is_and_how_long_things_take() {
    let world = World::with(retry(Millis::ZERO, 9)).await;
    world.sampled().await;
    world.put(20).await;
    world.clock.advance(Millis::from_secs(2));
    let deliveries = world.lease(20).await;
    world.clock.advance(Millis::new(500));
    for delivery in deliveries.iter().take(15) {
        world.ack(delivery).await;
    }
    for delivery in deliveries.iter().skip(15) {
        world.nack(delivery).await;
    }
    let sample = world.sampled().await;
    let times = |times: Option<redrive_broker::Times>| times.map(|times| (times.p50.get(), times.p99.get()));
    assert_eq!(times(sample.wait), Some((2_047, 2_047)), "two seconds, to within an eighth");
    assert_eq!(times(sample.run), Some((511, 511)));
    let rows = anyone(&world).await.rows(wanted(StatsOrder::Name, false, 1)).await.unwrap();
    let row = &rows.rows[0];
    assert_eq!((times(row.wait), times(row.run)), (Some((2_047, 2_047)), Some((511, 511))));
    assert_eq!(format!("{:.2?}", row.rates.failed_share), "Some(0.25)");
    assert!(row.rates.acked > 0.0 && row.rates.enqueued > row.rates.acked, "{:?}", row.rates);
    assert_eq!(row.depths.last(), Some(&5));
    let text = world.broker.metrics_text().await.unwrap();
    assert!(text.contains("redrive_wait_seconds_count{queue=\"orders\"} 20"), "{text}");
    let quiet = world.sampled().await;
    assert_eq!((quiet.wait, quiet.run), (None, None), "nothing happened since");
}

#[tokio::test]
async fn the_trail_is_read_from_either_end() {
    let world = World::new().await;
    let everyone = anyone(&world).await;
    for _ in 0..2_050 {
        let done =
            everyone.act(Deed::PauseQueue, &world.queue, async |_| Ok::<_, redrive_broker::BrokerError>(()));
        done.await.unwrap();
    }
    let limit = Limit::new(500).unwrap();
    let read = async |newest_first: bool| {
        let (mut all, mut behind) = (Vec::new(), None);
        loop {
            let (entries, next) = everyone.audit(newest_first, behind, limit, |_| true).await.unwrap();
            all.extend(entries.iter().map(|entry| entry.sequence));
            behind = next;
            if behind.is_none() {
                return all;
            }
        }
    };
    let (oldest, mut newest) = (read(false).await, read(true).await);
    assert_eq!(oldest.len(), 2_050);
    assert!(newest.is_sorted_by(|one, next| one > next));
    newest.reverse();
    assert_eq!(oldest, newest);
    let (none, _) = everyone.audit(true, Some(1), limit, |_| true).await.unwrap();
    assert!(none.is_empty());
}
