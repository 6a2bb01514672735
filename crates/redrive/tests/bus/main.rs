//! The event bus inside a program: `publish` is the way in, `failures` what goes wrong, `sequential` handlers one after another,
//! `names` who handles what, `lives` a program that ends and starts again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod failures;
mod lives;
mod names;
mod publish;
mod sequential;

use std::sync::Arc;

use redrive::{EventBus, EventContext, Failure, Jitter, Json, Redrive, RetrySettings};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Order {
    number: u64,
}

const ONE: Order = Order { number: 1 };

/// Delays to the millisecond.
fn exact() -> RetrySettings {
    RetrySettings { jitter: Some(Jitter::None), ..RetrySettings::default() }
}

/// What a handler saw.
type Seen = (u64, u32);

/// A handler that tells of every call, and then says what `say` does.
async fn handle(
    bus: &EventBus,
    name: &str,
    say: impl Fn(&EventContext) -> Result<(), Failure> + Send + Sync + 'static,
) -> mpsc::Receiver<Seen> {
    let (tell, told) = mpsc::channel(64);
    let say = Arc::new(say);
    bus.subscribe("order.*", move |Json(order): Json<Order>, event: EventContext| {
        let (tell, say) = (tell.clone(), Arc::clone(&say));
        async move {
            tell.send((order.number, event.attempt())).await?;
            say(&event)
        }
    })
    .name(name)
    .retry(exact())
    .await
    .unwrap();
    told
}

/// Waits until something is so: what a handler leads to follows a moment after it.
async fn until(is_so: impl AsyncFn() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

/// Waits until an event of a sequential topic waits for its next attempt, or is dead.
async fn until_settled(redrive: &Redrive, queue: &str) {
    until(async || {
        let stats = redrive.stats(queue).await.unwrap();
        stats.ready + stats.leased == 0
    })
    .await;
}
