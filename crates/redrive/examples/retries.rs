//! Work that fails: retried with a growing delay, dead after the third attempt, and brought back.
//!
//!     cargo run -p redrive --example retries

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive::{Context, Failure, Jitter, QueueSettings, Redrive, Which, Worker};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let redrive = Redrive::in_memory().await?;
    // 20 ms after the first failure, 40 ms after the second; a queue of yours waits longer.
    let settings =
        QueueSettings::default().max_attempts(3).base_delay(Duration::from_millis(20)).jitter(Jitter::None);
    redrive.create_queue("payments", settings).await?;

    // The bank is closed until somebody opens it. Any error is a retry; `Failure` says what else can be.
    let open = Arc::new(AtomicBool::new(false));
    let (tried, mut is_tried) = mpsc::channel(8);
    let bank = Arc::clone(&open);
    let worker = Worker::builder("payments").handler(move |amount: String, context: Context| {
        let (bank, tried) = (Arc::clone(&bank), tried.clone());
        async move {
            tried.send(context.attempt()).await?;
            if amount.starts_with('-') {
                return Err(Failure::bury("nobody pays less than nothing"));
            }
            if bank.load(Ordering::SeqCst) { Ok(()) } else { Err(Failure::retry("the bank is closed")) }
        }
    })?;
    let running = redrive.run(worker);

    redrive.enqueue("payments", &12).await?;
    for _ in 0..3 {
        println!("attempt {}", is_tried.recv().await.unwrap_or_default());
    }
    // The third failure was the last; the worker tells of it a moment after the handler has returned.
    while redrive.stats("payments").await?.dead == 0 {
        tokio::task::yield_now().await;
    }
    for letter in redrive.dead_letters("payments", 10).await? {
        println!("dead after {} attempts: {} ({})", letter.attempts, letter.error, letter.reason);
    }

    // The bank opens, and what is dead because of it comes back, with its attempts to count again.
    open.store(true, Ordering::SeqCst);
    let redriven = redrive.redrive("payments", Which::Error("the bank is closed".to_owned())).await?;
    println!("brought back: {redriven}, attempt {}", is_tried.recv().await.unwrap_or_default());
    running.shutdown().await?;
    let stats = redrive.stats("payments").await?;
    println!("dead: {}, waiting: {}", stats.dead, stats.ready + stats.delayed);
    redrive.close().await?;
    Ok(())
}
