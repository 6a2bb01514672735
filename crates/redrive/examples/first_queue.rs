//! The first queue: open a directory, put work in, have it done.
//!
//!     cargo run -p redrive --example first_queue

use redrive::{Context, Json, Redrive, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize)]
struct Email {
    to: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Everything is in this directory. What was enqueued survives the end of the program, and of the machine's power.
    let dir = tempfile::tempdir()?;
    let redrive = Redrive::open(dir.path()).await?;

    // A producer. The queue comes into being by its first message.
    for to in ["ada@example.org", "grace@example.org", "edsger@example.org"] {
        redrive.enqueue("emails", &Email { to: to.to_owned() }).await?;
    }

    // A worker: up to four handlers at a time. One that returns has done its work.
    let (sent, mut is_sent) = mpsc::channel(8);
    let worker =
        Worker::builder("emails").concurrency(4).handler(move |Json(email): Json<Email>, _: Context| {
            let sent = sent.clone();
            async move { sent.send(email.to).await }
        })?;
    let running = redrive.run(worker);

    let mut all = Vec::new();
    while all.len() < 3 {
        all.extend(is_sent.recv().await);
    }
    all.sort();
    println!("sent to {}", all.join(", "));

    // The end: handlers finish, what is held goes back, everything is on the disk.
    running.shutdown().await?;
    println!("left in the queue: {}", redrive.stats("emails").await?.ready);
    redrive.close().await?;
    Ok(())
}
