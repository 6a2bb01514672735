//! The gate where several instances stand before one store.

use std::sync::Arc;
use std::time::Duration;

use redrive_broker::{
    Access, Broker, BrokerConfig, BrokerError, Caller, Gate, NewKey, Quotas, Shown, Watcher,
};
use redrive_core::access::{Deed, Grant, Grants, KeyName, On, QueuePattern, Scope, Token, Use};
use redrive_core::limits::API_KEYS_MAX;
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use redrive_store::{Limit, Store};

use crate::world::World;

const BOOTSTRAP: &str = "rdk_00c0ffee00c0ffee_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn call(gate: &Gate, token: &str) -> Result<Caller, redrive_broker::BrokerError> {
    gate.caller(Shown::Header(format!("Bearer {token}").as_bytes()), None)
}

/// A gate of another instance.
async fn gate(world: &World) -> (Gate, redrive_broker::Background) {
    gate_of(world, BrokerConfig::default()).await
}

async fn gate_of(world: &World, config: BrokerConfig) -> (Gate, redrive_broker::Background) {
    let store: Arc<dyn Store> = Arc::<redrive_store_memory::MemoryStore>::clone(&world.store);
    let clock = Arc::<redrive_broker::ManualClock>::clone(&world.clock);
    let (broker, background) = Broker::start(store, clock, config).await.unwrap();
    let bootstrap: Token = BOOTSTRAP.parse().unwrap();
    (Gate::new(broker, Access::Keys { bootstrap: Some(bootstrap) }).await.unwrap(), background)
}

fn reader() -> NewKey {
    let grant = Grant { scope: Scope::Read, queues: QueuePattern::every() };
    NewKey {
        name: KeyName::new("reader").unwrap(),
        grants: Grants::new(vec![grant]).unwrap(),
        quotas: Quotas::default(),
        expires_at: None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_instance_does_to_a_key_the_others_know_within_a_minute() {
    let world = World::with(QueueConfig::default()).await;
    let (here, _one) = gate(&world).await;
    let (there, _other) = gate(&world).await;
    let admin = call(&here, BOOTSTRAP).unwrap();
    let (key, token) = admin.create_key(reader()).await.unwrap();
    let token = token.expose();
    assert!(call(&here, &token).is_ok());
    assert_eq!(call(&there, &token).unwrap_err().code(), "KEY_INVALID", "not yet");
    // Time passes by itself where nobody has anything to do.
    let known = async {
        loop {
            match call(&there, &token) {
                Ok(caller) => return caller,
                Err(_) => redrive_broker::pause(Millis::from_secs(1)).await,
            }
        }
    };
    let waits = tokio::time::timeout(Duration::from_mins(1), known).await.unwrap();
    assert!(waits.may(Use::Watch, On::Some).is_ok() && waits.may(Use::Enqueue, On::Some).is_err());
    let cut = waits.cut().unwrap();
    admin.revoke_key(key.id).await.unwrap();
    assert_eq!(call(&here, &token).unwrap_err().code(), "KEY_REVOKED", "here at once");
    let ended = tokio::time::timeout(Duration::from_mins(1), cut).await.unwrap();
    assert_eq!(ended.code(), "KEY_REVOKED");
    assert_eq!(call(&there, &token).unwrap_err().code(), "KEY_REVOKED");
    assert_eq!(waits.is_let_in().unwrap_err().code(), "KEY_REVOKED");
}

#[tokio::test]
async fn two_instances_that_rotate_at_once_do_not_lose_each_others_secret() {
    let world = World::with(QueueConfig::default()).await;
    let (here, _one) = gate(&world).await;
    let (key, first) = call(&here, BOOTSTRAP).unwrap().create_key(reader()).await.unwrap();
    // It starts with what is there, and does not hear of what happens after.
    let (there, _other) = gate(&world).await;
    let hour = Millis::from_secs(3_600);
    let (_, second) = call(&here, BOOTSTRAP).unwrap().rotate_key(key.id, hour).await.unwrap();
    let (_, third) = call(&there, BOOTSTRAP).unwrap().rotate_key(key.id, hour).await.unwrap();
    let (fresh, _again) = gate(&world).await;
    assert!(call(&fresh, &second.expose()).is_ok() && call(&fresh, &third.expose()).is_ok());
    assert_eq!(call(&fresh, &first.expose()).unwrap_err().code(), "KEY_INVALID");
}

#[tokio::test]
async fn where_there_are_as_many_keys_as_may_be_one_that_ended_makes_room() {
    let world = World::with(QueueConfig::default()).await;
    let (gate, _background) = gate(&world).await;
    let admin = call(&gate, BOOTSTRAP).unwrap();
    let mut made = Vec::new();
    // The one from the environment is one of them.
    for _ in 1..API_KEYS_MAX {
        made.push(admin.create_key(reader()).await.unwrap());
    }
    assert_eq!(admin.create_key(reader()).await.unwrap_err().code(), "TOO_MANY_KEYS");
    let (first, token) = &made[7];
    world.clock.advance(Millis::new(1));
    admin.revoke_key(first.id).await.unwrap();
    let (_, new) = admin.create_key(reader()).await.unwrap();
    assert!(call(&gate, &new.expose()).is_ok());
    assert_eq!(call(&gate, &token.expose()).unwrap_err().code(), "KEY_INVALID", "it made room");
    assert!(
        made.iter()
            .filter(|(key, _)| key.id != first.id)
            .all(|(_, token)| call(&gate, &token.expose()).is_ok())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_rotated_while_it_is_revoked_stays_revoked() {
    let world = World::with(QueueConfig::default()).await;
    let (gate, _background) = gate(&world).await;
    let admin = call(&gate, BOOTSTRAP).unwrap();
    for _ in 0..200 {
        let (key, _) = admin.create_key(reader()).await.unwrap();
        let rotator = admin.clone();
        let rotating =
            tokio::spawn(async move { while rotator.rotate_key(key.id, Millis::ZERO).await.is_ok() {} });
        admin.revoke_key(key.id).await.unwrap();
        rotating.await.unwrap();
        assert!(admin.get_key(key.id).unwrap().revoked_at.is_some());
    }
}

#[tokio::test]
async fn a_deed_whose_caller_goes_away_is_written_down_as_unsure() {
    let world = World::with(QueueConfig::default()).await;
    let (gate, _background) = gate(&world).await;
    let admin = call(&gate, BOOTSTRAP).unwrap();
    let queue = redrive_core::queue::QueueName::new("jobs").unwrap();
    let never = admin
        .act(Deed::PurgeQueue, &queue, async |_| std::future::pending::<Result<(), BrokerError>>().await);
    assert!(futures::FutureExt::now_or_never(never).is_none());
    let (entries, _) =
        admin.audit(false, None, Limit::MAX, |entry| entry.act.what == "purge_queue").await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].act.result.as_str(), entries[0].count), ("INTERRUPTED", 1));
}

#[tokio::test]
async fn readers_without_a_key_are_let_in_where_reading_is_open_and_not_without_end() {
    let world = World::with(QueueConfig::default()).await;
    let (shut, _one) = gate(&world).await;
    assert_eq!(shut.watcher(Shown::Nothing, None).unwrap_err().code(), "KEY_MISSING");
    let (open, _other) =
        gate_of(&world, BrokerConfig { open_reading: true, ..BrokerConfig::default() }).await;
    assert_eq!(open.watcher(Shown::Several, None).unwrap_err().code(), "KEY_INVALID");
    assert_eq!(open.watcher(Shown::Header(b"Bearer x"), None).unwrap_err().code(), "KEY_INVALID");
    assert_eq!(open.caller(Shown::Nothing, None).unwrap_err().code(), "KEY_MISSING", "it opens nothing else");
    let key = format!("Bearer {BOOTSTRAP}");
    assert!(matches!(open.watcher(Shown::Header(key.as_bytes()), None), Ok(Watcher::Caller(_))));
    let Ok(Watcher::Stranger(stranger)) = open.watcher(Shown::Nothing, None) else { panic!("it is open") };
    let mut readers: Vec<_> = (0..1_000).map(|_| stranger.watch(None).unwrap()).collect();
    assert_eq!(stranger.watch(None).unwrap_err().code(), "QUOTA_REACHED");
    readers.pop();
    assert!(stranger.watch(None).is_ok());
}
