//! Fairness: one customer with much work does not make another with little wait.
//!
//!     cargo run -p redrive --example fairness

use redrive::{Context, NewMessage, QueueSettings, Redrive, Worker};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let redrive = Redrive::in_memory().await?;
    // Each customer is served one message in its turn; the one who pays for more, three.
    redrive.create_queue("exports", QueueSettings::default().weight("gold", 3)).await?;

    // The large customer comes first, with twenty messages; the others come later, with three each.
    for (customer, messages) in [("large", 20), ("small", 3), ("gold", 3)] {
        for _ in 0..messages {
            let message = NewMessage::new(customer).fairness_key(customer);
            redrive.enqueue_message("exports", message).await?;
        }
    }

    let (served, mut is_served) = mpsc::channel(32);
    let worker = Worker::builder("exports").handler(move |customer: String, _: Context| {
        let served = served.clone();
        async move { served.send(customer).await }
    })?;
    let running = redrive.run(worker);
    let mut order = Vec::new();
    while order.len() < 26 {
        order.extend(is_served.recv().await);
    }
    running.shutdown().await?;

    // Both are through long before the large customer is.
    for customer in ["gold", "small", "large"] {
        let last = order.iter().rposition(|served| served == customer).unwrap_or_default() + 1;
        println!("{customer}: the last of its messages was number {last}");
    }
    redrive.close().await?;
    Ok(())
}
