//! Append-only logs with retention.

use bytes::Bytes;
use redrive_store::{Append, LogName, LogRange};

use crate::world::{World, at_most};

use LogRange::{After, Before};

fn named(name: &str) -> LogName {
    LogName::new(name).expect("a good name")
}

async fn append(w: &World, log: &str, values: &[&'static str]) -> Vec<u64> {
    let values = values.iter().map(|value| Bytes::from_static(value.as_bytes())).collect();
    let records = Append::new(values).expect("few and small");
    w.store().log_append(w.at(), &named(log), records).await.expect("answers")
}

async fn read(w: &World, log: &str, range: LogRange, limit: usize) -> Vec<(u64, String)> {
    let records = w.store().log_read(&named(log), range, at_most(limit)).await.expect("answers");
    records.iter().map(|r| (r.sequence, String::from_utf8_lossy(&r.value).into_owned())).collect()
}

async fn records_are_read_in_order_from_anywhere(w: &mut World) {
    let mut numbers = append(w, "audit", &["a", "b"]).await;
    append(w, "other", &["x"]).await;
    numbers.extend(append(w, "audit", &["c"]).await);
    assert!(numbers.is_sorted() && numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    w.restart().await;
    let expected: Vec<_> = numbers.iter().copied().zip(["a", "b", "c"].map(str::to_owned)).collect();
    assert_eq!(read(w, "audit", After(0), 10).await, expected);
    assert_eq!(read(w, "audit", After(numbers[0]), 1).await, expected[1..2]);
    assert_eq!(read(w, "audit", After(numbers[2]), 10).await, []);
    assert_eq!(read(w, "nothing", After(0), 10).await, []);
}

async fn records_are_read_back_from_anywhere(w: &mut World) {
    let numbers = append(w, "audit", &["a", "b", "c"]).await;
    append(w, "other", &["x"]).await;
    w.restart().await;
    let expected: Vec<_> = numbers.iter().copied().zip(["a", "b", "c"].map(str::to_owned)).rev().collect();
    assert_eq!(read(w, "audit", Before(u64::MAX), 10).await, expected);
    assert_eq!(read(w, "audit", Before(u64::MAX), 2).await, expected[..2]);
    assert_eq!(read(w, "audit", Before(numbers[2]), 1).await, expected[1..2]);
    assert_eq!(read(w, "audit", Before(numbers[0]), 10).await, []);
    assert_eq!(read(w, "nothing", Before(u64::MAX), 10).await, []);
}

async fn old_records_are_forgotten_and_their_numbers_with_them(w: &mut World) {
    append(w, "audit", &["old", "older"]).await;
    w.advance(1_000);
    let horizon = w.now();
    let kept = append(w, "audit", &["new"]).await;
    assert_eq!(w.store().log_trim(&named("audit"), horizon).await.expect("answers"), 2);
    assert_eq!(read(w, "audit", After(0), 10).await, [(kept[0], "new".to_owned())]);
    w.advance(1);
    let later = w.now();
    assert_eq!(w.store().log_trim(&named("audit"), later).await.expect("answers"), 1);
    w.restart().await;
    assert!(append(w, "audit", &["next"]).await[0] > kept[0], "a number is never used twice");
    assert_eq!(w.store().log_trim(&named("nothing"), later).await.expect("answers"), 0);
}

rules!("log";
    records_are_read_in_order_from_anywhere,
    records_are_read_back_from_anywhere,
    old_records_are_forgotten_and_their_numbers_with_them,
);
