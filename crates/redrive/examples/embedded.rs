//! A broker inside a program that ends in the middle of its work, and goes on where it was.
//!
//!     cargo run -p redrive --example embedded

use std::time::Duration;

use redrive::{Context, Failure, Job, Redrive, Worker};
use tokio::sync::mpsc;
use tower::util::MapRequestLayer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;

    // The first life of the program: a report of three pages, of which one is written.
    let redrive = Redrive::open(dir.path()).await?;
    redrive.enqueue("reports", "annual").await?;
    let (written, mut is_written) = mpsc::channel(1);
    let worker =
        Worker::builder("reports").grace(Duration::ZERO).handler(move |_: String, context: Context| {
            let written = written.clone();
            async move {
                // What a checkpoint says is kept with the message, whatever becomes of this attempt.
                context.checkpoint("page 1").await?;
                written.send(()).await?;
                // The worker is told to end: the message goes back, and this attempt does not count.
                context.cancelled().await;
                Err::<(), _>(Failure::release())
            }
        })?;
    let running = redrive.run(worker);
    is_written.recv().await;
    println!("the program ends after page 1");
    running.shutdown().await?;
    redrive.close().await?;

    // The second life: the same directory, and a layer that says what is begun.
    let redrive = Redrive::open(dir.path()).await?;
    let (done, mut is_done) = mpsc::channel(1);
    let worker = Worker::builder("reports")
        .layer(MapRequestLayer::new(|job: Job| {
            println!("attempt {} begins", job.context.attempt());
            job
        }))
        .handler(move |_: String, context: Context| {
            let done = done.clone();
            async move { done.send(String::from_utf8_lossy(&context.message().checkpoint).into_owned()).await }
        })?;
    let running = redrive.run(worker);
    println!("it goes on after {}", is_done.recv().await.unwrap_or_default());
    running.shutdown().await?;
    redrive.close().await?;
    Ok(())
}
