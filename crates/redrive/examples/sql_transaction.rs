//! Enqueue in your own SQL transaction: the row and the message are both there, or neither is.
//!
//! Redrive's tables are in the same PostgreSQL as the application's. A server makes them when it first opens the store
//! (`redrive serve --store postgres://…`), or a database administrator does (`redrive schema`); here the store is opened
//! for that alone.
//!
//!     DATABASE_URL=postgres://… cargo run -p redrive --example sql_transaction

use redrive_core::queue::QueueConfig;
use redrive_store::{CreateQueue, Now, QueueError, Store};
use redrive_store_postgres::{Durability, Options, PostgresStore};
use tokio_postgres::{Client, NoTls};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let store =
        PostgresStore::open(Options { durability: Durability::Any, ..Options::new(&url) }, [7; 32]).await?;
    let orders = CreateQueue { name: "orders".parse()?, config: QueueConfig::default() };
    match store.create_queue(Now::Store, orders).await {
        Ok(_) | Err(QueueError::AlreadyExists(_)) => {}
        Err(error) => return Err(error.into()),
    }

    // The application, which knows SQL and nothing of Redrive but one function.
    let (mut sql, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    sql.batch_execute("CREATE TEMPORARY TABLE purchase (id int PRIMARY KEY, total numeric)").await?;

    // A purchase that fails at the last moment leaves neither a row nor a message.
    let purchase = buy(&mut sql, 7).await?;
    purchase.rollback().await?;
    println!("after a rollback: {} rows, {} messages", rows(&sql).await?, take(&sql).await?.len());

    // One that is committed leaves both.
    let purchase = buy(&mut sql, 8).await?;
    purchase.commit().await?;
    let messages = take(&sql).await?;
    println!(
        "after a commit: {} rows, {} messages: {}",
        rows(&sql).await?,
        messages.len(),
        messages.join(" ")
    );
    Ok(())
}

/// A row and a message, in one transaction.
async fn buy(sql: &mut Client, id: i32) -> Result<tokio_postgres::Transaction<'_>, tokio_postgres::Error> {
    let transaction = sql.transaction().await?;
    transaction.execute("INSERT INTO purchase (id, total) VALUES ($1, 12.50)", &[&id]).await?;
    let enqueue = "SELECT redrive.enqueue('orders', jsonb_build_object('purchase', $1::int))";
    transaction.execute(enqueue, &[&id]).await?;
    Ok(transaction)
}

async fn rows(sql: &Client) -> Result<i64, tokio_postgres::Error> {
    Ok(sql.query_one("SELECT count(*) FROM purchase", &[]).await?.get(0))
}

/// Takes what is there and acks it, as a consumer in SQL does; workers of a server get the same messages.
async fn take(sql: &Client) -> Result<Vec<String>, tokio_postgres::Error> {
    let claim = "SELECT convert_from(body, 'UTF8'), redrive.ack(receipt) FROM redrive.claim('orders')";
    Ok(sql.query(claim, &[]).await?.iter().map(|row| row.get(0)).collect())
}
