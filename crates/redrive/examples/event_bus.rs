//! One event, two handlers: one of them fails twice, and the other does not notice.
//!
//!     cargo run -p redrive --example event_bus

use std::time::Duration;

use redrive::{EventContext, Failure, Json, Redrive, RetrySettings};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize)]
struct Order {
    number: u64,
    cents: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let redrive = Redrive::open(dir.path()).await?;
    let bus = redrive.bus();
    let (tell, mut told) = mpsc::channel(8);

    // A subscription is durable. Its name ties this function to it when the program starts again.
    let say = tell.clone();
    bus.subscribe("order.*", move |Json(order): Json<Order>, event: EventContext| {
        let say = say.clone();
        async move { say.send(format!("mail: {} {}", event.topic(), order.number)).await }
    })
    .name("mail")
    .await?;

    // 20 ms after the first failure, 40 ms after the second; what is not said here is as for all: four attempts.
    let retry = RetrySettings { base_delay: Some(Duration::from_millis(20)), ..RetrySettings::default() };
    bus.subscribe("order.*", move |Json(order): Json<Order>, event: EventContext| {
        let tell = tell.clone();
        async move {
            if event.attempt() < 3 {
                tell.send(format!("bank: attempt {} failed", event.attempt())).await?;
                return Err(Failure::retry("the bank is closed"));
            }
            tell.send(format!("bank: {} cents in attempt {}", order.cents, event.attempt())).await?;
            Ok(())
        }
    })
    .name("bank")
    .retry(retry)
    .timeout(Duration::from_secs(10))
    .await?;

    // It is on the disk for both of them when this returns.
    let published = bus.publish("order.created", &Order { number: 7, cents: 1_250 }).await?;
    println!("published to {} subscriptions", published.subscriptions);
    for _ in 0..4 {
        println!("{}", told.recv().await.unwrap_or_default());
    }

    // Handlers finish, and everything is on the disk.
    redrive.close().await?;
    Ok(())
}
