//! Times, and the context of a trace.

use redrive_broker::TraceParent;
use redrive_core::time::Timestamp;
use redrive_wire::Time;

use super::text;
use crate::trial::note;

/// Times as RFC 3339 writes them: as somebody wrote them, and those that we print.
pub fn time(input: &[u8]) {
    if let Some(text) = text(input) {
        match text.parse::<Time>() {
            Ok(time) => {
                assert!(Timestamp::from_millis(time.0).as_millis() == time.0, "it lies beyond the last time");
                assert_eq!(time.to_string().parse(), Ok(time));
            }
            Err(problem) => note(problem),
        }
    }
    if let Some((bytes, _)) = input.split_first_chunk() {
        let time = Time(u64::from_le_bytes(*bytes) % (Timestamp::MAX.as_millis() + 1));
        assert_eq!(time.to_string().parse(), Ok(time), "{time}");
    }
}

/// The context of a trace. What is read is printed as the version that we know, and read as the same.
pub fn traceparent(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match TraceParent::parse(text) {
        Some(parent) => {
            assert_eq!(TraceParent::parse(&parent.to_string()), Some(parent));
            assert!(!text.starts_with("00") || text.get(..53) == parent.to_string().get(..53));
        }
        None => note("none"),
    }
}
