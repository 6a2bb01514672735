//! How messages of the gRPC API are read: as prost reads them, once it is known that they are not too many things.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Most fields of one message, each item of a list counted. A list is limited to a thousand items where it is understood,
/// with a refusal that says so; this is for who sends millions, two bytes each, that take some hundred bytes each
/// when they are decoded.
const FIELDS_MAX: usize = 10_000;

/// Reads and writes messages.
#[derive(Debug, Clone)]
pub struct LimitedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for LimitedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Message + Send + 'static, U: Message + Default + Send + 'static> Codec for LimitedCodec<T, U> {
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = LimitedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        LimitedDecoder(ProstCodec::<T, U>::default().decoder())
    }
}

/// Reads messages.
#[derive(Debug)]
pub struct LimitedDecoder<U>(ProstDecoder<U>);

impl<U: Message + Default> Decoder for LimitedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        if has_more_fields(from.chunk(), FIELDS_MAX) {
            return Err(Status::invalid_argument(format!("a message has more than {FIELDS_MAX} fields")));
        }
        self.0.decode(from)
    }
}

/// Whether an encoded message has more fields than that. What is no message has none; whoever decodes it says so.
fn has_more_fields(mut message: &[u8], max: usize) -> bool {
    for _ in 0..=max {
        if message.is_empty() {
            return false;
        }
        let skipped = decode_key(&mut message)
            .and_then(|(tag, kind)| skip_field(kind, tag, &mut message, DecodeContext::default()));
        if skipped.is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{EnqueueRequest, NewMessage};

    #[test]
    fn fields_are_counted_before_they_are_decoded() {
        let request = |messages| {
            let messages = vec![NewMessage::default(); messages];
            EnqueueRequest { queue: "orders".to_owned(), messages, all_or_nothing: true }.encode_to_vec()
        };
        assert!(!has_more_fields(&request(0), 2));
        assert!(!has_more_fields(&request(8), 10));
        assert!(has_more_fields(&request(9), 10));
    }

    #[test]
    fn what_is_no_message_is_left_to_the_decoder() {
        assert!(!has_more_fields(&[0xFF; 40], 3));
        assert!(!has_more_fields(&[0x0A, 0x7F, 0], 0));
    }
}
