//! Whatever is subscribed, fails and crashes: every event reaches every subscription that wants it at least once, or is dead
//! there; and where each goes by itself, one that fails delays nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use redrive_bus::HandlerFailure;
use redrive_core::topic::{Topic, TopicPattern};
use redrive_store::Limit;

use crate::dispatch::id;
use crate::world::{Seen, World, exact, with_breaker};

/// How a subscription treats events: how often the first attempts at each fail, and whether it gives up on some.
#[derive(Debug, Clone)]
struct Temper {
    pattern: String,
    breaker: bool,
    /// By the number of an event: how many attempts fail.
    fails: Vec<u32>,
    buries: Vec<bool>,
}

#[derive(Debug, Clone)]
enum Step {
    Publish(&'static str),
    Wait(u64),
    Crash,
    Restart,
    Late(Temper),
    Delete(usize),
}

#[derive(Debug, Clone)]
struct Plan {
    sequential: bool,
    tempers: Vec<Temper>,
    steps: Vec<Step>,
}

const EVENTS_MAX: usize = 16;
const TOPICS: [&str; 4] = ["a", "a.b", "a.b.c", "d"];

fn a_temper() -> impl Strategy<Value = Temper> {
    let pattern = prop::sample::select(vec!["*", "a", "a.*", "a.**", "**.c", "d", "*.b"]);
    let fails = prop::collection::vec(prop_oneof![3 => Just(0), 2 => 1u32..4, 1 => Just(99)], EVENTS_MAX);
    let buries = prop::collection::vec(prop::bool::weighted(0.1), EVENTS_MAX);
    (pattern, any::<bool>(), fails, buries).prop_map(|(pattern, breaker, fails, buries)| Temper {
        pattern: pattern.to_owned(),
        breaker,
        fails,
        buries,
    })
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::sample::select(TOPICS.to_vec()).prop_map(Step::Publish),
        4 => (0u64..20_000).prop_map(Step::Wait),
        1 => Just(Step::Crash),
        1 => Just(Step::Restart),
        1 => a_temper().prop_map(Step::Late),
        1 => (0usize..4).prop_map(Step::Delete),
    ]
}

fn a_plan() -> impl Strategy<Value = Plan> {
    let tempers = prop::collection::vec(a_temper(), 1..5);
    (any::<bool>(), tempers, prop::collection::vec(a_step(), 1..25))
        .prop_map(|(sequential, tempers, steps)| Plan { sequential, tempers, steps })
}

/// Which events each subscription said yes to.
type Done = Arc<Mutex<BTreeSet<(String, usize)>>>;
/// How often each was tried.
type Counts = Arc<Mutex<BTreeMap<(String, usize), u32>>>;

fn answer(temper: Temper, done: Done, counts: Counts) -> impl Fn(&Seen) -> Result<(), HandlerFailure> {
    move |seen| {
        let number: usize = seen.body.parse().unwrap();
        let key = (seen.subscription.clone(), number);
        let tried = {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(key.clone()).or_default();
            *count += 1;
            *count
        };
        if temper.buries[number % EVENTS_MAX] {
            return Err(HandlerFailure::Bury { error: "never".to_owned() });
        }
        if tried <= temper.fails[number % EVENTS_MAX] {
            return Err(HandlerFailure::Retry { error: "not now".to_owned(), after: None });
        }
        done.lock().unwrap().insert(key);
        Ok(())
    }
}

struct Run {
    world: World,
    tempers: BTreeMap<String, Temper>,
    /// What each event was published on, and to whom it was promised.
    promised: BTreeMap<usize, BTreeSet<String>>,
    done: Done,
    counts: Counts,
}

impl Run {
    async fn new(plan: &Plan) -> Self {
        let world = World::new().await;
        if plan.sequential {
            world.sequential("**").await;
        }
        let mut run = Self {
            world,
            tempers: BTreeMap::new(),
            promised: BTreeMap::new(),
            done: Arc::default(),
            counts: Arc::default(),
        };
        for temper in &plan.tempers {
            run.subscribe(temper.clone()).await;
        }
        run
    }

    async fn subscribe(&mut self, temper: Temper) {
        let name = format!("s{}", self.tempers.len());
        let settings = exact(&temper.pattern);
        let settings = if temper.breaker { with_breaker(settings) } else { settings };
        let answer = answer(temper.clone(), Arc::clone(&self.done), Arc::clone(&self.counts));
        self.world.handler(&name, settings, answer).await;
        self.tempers.insert(name, temper);
    }

    async fn attach(&self) {
        for (name, temper) in &self.tempers {
            let answer = answer(temper.clone(), Arc::clone(&self.done), Arc::clone(&self.counts));
            if self.world.bus.subscription(&id(name)).await.is_ok() {
                self.world.attach(name, answer).await;
            }
        }
    }

    async fn step(mut self, step: &Step) -> Self {
        match step {
            Step::Publish(topic) => {
                let number = self.promised.len();
                let published = self.world.publish(topic, &number.to_string()).await;
                let parsed: Topic = topic.parse().unwrap();
                let mut wanted = BTreeSet::new();
                for (name, temper) in &self.tempers {
                    let pattern: TopicPattern = temper.pattern.parse().unwrap();
                    if pattern.matches(&parsed) && self.world.bus.subscription(&id(name)).await.is_ok() {
                        wanted.insert(name.clone());
                    }
                }
                assert_eq!(published.subscriptions, wanted.len());
                self.promised.insert(number, wanted);
            }
            Step::Wait(ms) => self.world.pass_to(self.world.elapsed() + ms).await,
            Step::Crash => {
                self.world = self.world.crash().await;
                self.attach().await;
            }
            Step::Restart => {
                self.world = self.world.restart().await;
                self.attach().await;
            }
            Step::Late(temper) => self.subscribe(temper.clone()).await,
            Step::Delete(at) => {
                let name = format!("s{at}");
                if self.world.bus.delete_subscription(&id(&name)).await.is_ok() {
                    // Whoever left is promised nothing any more.
                    self.promised.values_mut().for_each(|wanted| wanted.retain(|one| *one != name));
                }
            }
        }
        self
    }

    async fn check(self, plan: &Plan) {
        let mut queues: Vec<String> = Vec::new();
        for subscription in self.world.bus.subscriptions(None, Limit::MAX).await.unwrap() {
            queues.push(subscription.queue().as_str().to_owned());
        }
        queues.extend(
            self.world.bus.topics().await.unwrap().iter().map(|one| one.sequence_queue().to_string()),
        );
        let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
        self.world.drained(&queues).await;
        let mut dead = BTreeSet::new();
        for name in self.tempers.keys() {
            let Ok((letters, _)) = self.world.bus.dead(&id(name), None, Limit::MAX).await else { continue };
            for letter in letters {
                let body = String::from_utf8(letter.message.spec.body.bytes().to_vec()).unwrap();
                dead.insert((name.clone(), body.parse::<usize>().unwrap()));
            }
        }
        let done = self.done.lock().unwrap().clone();
        for (number, wanted) in &self.promised {
            for name in wanted {
                let key = (name.clone(), *number);
                let ended = (done.contains(&key), dead.contains(&key));
                assert!(ended.0 || ended.1, "event {number} was lost for {name}; {plan:#?}");
            }
        }
        self.check_nobody_waited(plan);
    }

    /// Where each goes by itself and no process ended, what never fails is there at once, whatever the others do.
    fn check_nobody_waited(&self, plan: &Plan) {
        let ended = plan.steps.iter().any(|step| matches!(step, Step::Crash | Step::Restart));
        if plan.sequential || ended {
            return;
        }
        for (name, temper) in &self.tempers {
            let smooth =
                temper.fails.iter().all(|fails| *fails == 0) && temper.buries.iter().all(|buries| !buries);
            if smooth {
                let seen = self.world.log.of(name);
                assert!(seen.iter().all(|one| one.attempt == 1), "{name} was disturbed: {seen:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_event_reaches_everybody_at_least_once_or_is_dead_there(plan in a_plan()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut run = Run::new(&plan).await;
            for step in &plan.steps {
                run = run.step(step).await;
            }
            run.check(&plan).await;
        });
    }
}
