//! What an instance keeps in memory, and another changes.

use redrive_broker::{Access, Caller, Extend, Gate, NewKey, Quotas, Shown, Target};
use redrive_core::access::{Grants, KeyId, KeyName, Secret, Token, Use};
use redrive_core::queue::{Pause, QueueConfig};
use redrive_core::time::Millis;
use redrive_store::{Now, PauseQueue, Store, UpdateQueue};

use super::{Resident, Town, eventually};

#[tokio::test(start_paused = true)]
async fn a_pause_at_one_instance_holds_at_another() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let request = PauseQueue { name: a.queue.clone(), key: None, pause: Some(Pause::UntilResumed) };
    a.broker.pause_queue(request).await.unwrap();
    b.put(1).await;
    assert!(b.lease(1).await.is_empty());
}

/// For how long an extension is that does not say. None is shorter than the lease itself.
async fn extension(b: &Resident) -> Millis {
    let held = b.lease(1).await.remove(0);
    let extend = Extend { target: Target::Receipt(held.receipt.clone()), time: None, checkpoint: None };
    let deadline = b.broker.extend(vec![extend]).await.unwrap().remove(0).applied().unwrap();
    b.broker
        .release(vec![redrive_broker::Release { target: Target::Receipt(held.receipt), delay: None }])
        .await
        .unwrap();
    deadline.since(b.broker.now())
}

fn lease_timeout(seconds: u64) -> QueueConfig {
    QueueConfig { lease_timeout: Some(Millis::from_secs(seconds)), ..QueueConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_one_instance_changes_is_known_at_another() {
    let (_town, a, b) = Town::two(lease_timeout(9)).await;
    b.put(1).await;
    assert_eq!(extension(&b).await, Millis::from_secs(9));
    let update = UpdateQueue { name: a.queue.clone(), config: lease_timeout(7), expected: None };
    a.broker.update_queue(update).await.unwrap();
    eventually(async || extension(&b).await == Millis::from_secs(7)).await;
}

#[tokio::test(start_paused = true)]
async fn a_setting_is_known_a_little_later_where_nobody_said_that_it_changed() {
    let (town, a, b) = Town::two(lease_timeout(9)).await;
    b.put(1).await;
    let update = UpdateQueue { name: a.queue.clone(), config: lease_timeout(7), expected: None };
    town.store.update_queue(Now::At(a.broker.now()), update).await.unwrap();
    assert_eq!(extension(&b).await, Millis::from_secs(9), "nobody said anything");
    town.advance(Millis::from_secs(15)).await;
    eventually(async || extension(&b).await == Millis::from_secs(7)).await;
}

fn bootstrap() -> Token {
    Token { id: KeyId::new([1; 8]), secret: Secret::new([1; 32]) }
}

fn header(token: &Token) -> String {
    format!("Bearer {}", token.expose())
}

fn worker() -> NewKey {
    NewKey {
        name: KeyName::new("worker").unwrap(),
        grants: Grants::everything(),
        quotas: Quotas::default(),
        expires_at: None,
    }
}

/// A gate that is opened by the key of the environment, and who shows that.
async fn guarded(resident: &Resident) -> (Gate, Caller) {
    let access = Access::Keys { bootstrap: Some(bootstrap()) };
    let gate = Gate::new(resident.broker.clone(), access).await.unwrap();
    let operator = gate.caller(Shown::Header(header(&bootstrap()).as_bytes()), None).unwrap();
    (gate, operator)
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_revoked_at_one_instance_is_refused_at_another_at_once() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let ((_, operator), (gate, _)) = (guarded(&a).await, guarded(&b).await);
    let (key, token) = operator.create_key(worker()).await.unwrap();
    let shown = header(&token);
    eventually(async || gate.caller(Shown::Header(shown.as_bytes()), None).is_ok()).await;
    let cut = gate.caller(Shown::Header(shown.as_bytes()), None).unwrap().cut().unwrap();
    operator.revoke_key(key.id).await.unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(4), cut).await;
    assert_eq!(ended.expect("what waits is cut").code(), "KEY_REVOKED");
    let refused = gate.caller(Shown::Header(shown.as_bytes()), None).unwrap_err();
    assert_eq!(refused.code(), "KEY_REVOKED");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_lets_anyone_in_stops_when_another_makes_the_first_key() {
    let (_town, a, b) = Town::two(QueueConfig::default()).await;
    let gate = Gate::new(b.broker.clone(), Access::Anyone).await.unwrap();
    let anyone = gate.caller(Shown::Nothing, None).unwrap();
    anyone.may(Use::Lease, &b.queue).unwrap();
    let (_, operator) = guarded(&a).await;
    let (_, token) = operator.create_key(worker()).await.unwrap();
    eventually(async || gate.needs_keys()).await;
    assert_eq!(gate.caller(Shown::Nothing, None).unwrap_err().code(), "KEY_MISSING");
    assert_eq!(anyone.may(Use::Lease, &b.queue).unwrap_err().code(), "KEY_MISSING", "who was in is out");
    assert!(gate.caller(Shown::Header(header(&token).as_bytes()), None).is_ok());
}
