//! What instances tell each other, on a way that loses answers.

use redrive_store::{Heard, Signal, Store, StoreError};
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{PATIENCE, World, options, queue_name};

/// Events travel as signals, and one that is heard twice is counted twice.
#[tokio::test]
async fn what_may_have_been_heard_is_not_told_again() {
    let server = Redis::start(RedisSettings::default().appendonly(false)).expect("it starts");
    let listening = World::open(options(&server.url())).await;
    let mut ear = listening.store.listen().expect("there may be other instances");
    assert_eq!(ear.hear().await, Heard::Lost, "it listens");
    let proxy = Proxy::before(&server.url()).expect("it stands before it");
    let telling = World::beside(options(proxy.url())).await;

    let rule = proxy.inject(Rule::new(Trigger::Statement("publish".to_owned()), Fault::CutReply));
    let lost = telling.store.tell(vec![Signal::Ready(queue_name("once"))]).await;
    assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
    assert_eq!(rule.fired(), 1);
    telling.store.tell(vec![Signal::Ready(queue_name("last"))]).await.unwrap();

    let mut heard = Vec::new();
    while heard.last() != Some(&Heard::Signal(Signal::Ready(queue_name("last")))) {
        heard.push(tokio::time::timeout(PATIENCE, ear.hear()).await.expect("what was told last is heard"));
    }
    let once = heard.iter().filter(|one| **one == Heard::Signal(Signal::Ready(queue_name("once"))));
    assert_eq!(once.count(), 1, "{heard:?}");
}
