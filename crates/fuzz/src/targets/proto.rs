//! The messages of the gRPC API.

use std::fmt::Debug;

use prost::Message;
use redrive_wire::v1;

use crate::trial::note;

/// A message that a client may send; the first byte says which. What is decoded is encoded and decoded as the same.
pub fn proto(input: &[u8]) {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 16 {
        0 => same::<v1::EnqueueRequest>(input),
        1 => same::<v1::LeaseRequest>(input),
        2 => same::<v1::AckRequest>(input),
        3 => same::<v1::NackRequest>(input),
        4 => same::<v1::ExtendRequest>(input),
        5 => same::<v1::ReleaseRequest>(input),
        6 => same::<v1::BuryRequest>(input),
        7 => same::<v1::ConsumeRequest>(input),
        8 => same::<v1::CreateQueueRequest>(input),
        9 => same::<v1::GetQueueRequest>(input),
        10 => same::<v1::ListQueuesRequest>(input),
        11 => same::<v1::UpdateQueueRequest>(input),
        12 => same::<v1::DeleteQueueRequest>(input),
        13 => same::<v1::PauseQueueRequest>(input),
        14 => same::<v1::ResumeQueueRequest>(input),
        _ => same::<v1::WatchEventsRequest>(input),
    }
}

fn same<M: Message + Default + PartialEq + Debug>(input: &[u8]) {
    let message = match M::decode(input) {
        Ok(message) => message,
        Err(error) => return note(error),
    };
    let encoded = message.encode_to_vec();
    assert_eq!(encoded.len(), message.encoded_len());
    let again = M::decode(&encoded[..]).expect("what was encoded can be decoded");
    // A number that is none is not even equal to itself.
    assert!(again == message || format!("{message:?}").contains("NaN"), "{message:?} became {again:?}");
}
