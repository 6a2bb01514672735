//! What instances tell each other, on a way that loses answers.

use redrive_store::{Heard, Signal, Store, StoreError};
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Redis, RedisCluster, RedisSettings};

use crate::cluster::home_of;
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

/// The address names some of the nodes, and may be older than the cluster is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_knows_other_nodes_listens_though_those_it_was_told_of_are_gone() {
    let settings = RedisSettings::default().set("cluster-require-full-coverage", "no");
    let mut cluster = RedisCluster::start(&settings).expect("it forms");
    let gone = (home_of(&cluster) + 1) % 3;
    let named = format!("redis+cluster://127.0.0.1:{}", cluster.node(gone).port());
    let listening = World::beside(options(&named)).await;
    let telling = World::beside(options(&cluster.url())).await;
    cluster.kill(gone).expect("it is killed");

    let mut ear = listening.store.listen().expect("there may be other instances");
    let listens = tokio::time::timeout(PATIENCE, ear.hear()).await.expect("there are other nodes");
    assert_eq!(listens, Heard::Lost);
    let signal = Signal::Ready(queue_name("told"));
    telling.store.tell(vec![signal.clone()]).await.unwrap();
    let heard = tokio::time::timeout(PATIENCE, ear.hear()).await.expect("it is heard");
    assert_eq!(heard, Heard::Signal(signal));
}
