//! A worker's line over gRPC: the `Consume` stream.

use async_trait::async_trait;
use futures::StreamExt;
use redrive_wire::v1;
use redrive_wire::v1::consume_request::Request;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::client::Client;
use crate::error::LeaseError;
use crate::limits::millis;
use crate::settle;
use crate::transport::{Ask, Heard, Line, Say, Transport};

/// What may wait to be sent; a worker gathers more meanwhile.
const SAYS_MAX: usize = 4;

#[async_trait]
impl Transport for Client {
    async fn consume(&self, ask: &Ask) -> Result<Line, LeaseError> {
        let (say, says) = mpsc::channel(SAYS_MAX);
        let start = v1::ConsumeStart {
            queue: ask.queue.clone(),
            consumer: ask.consumer.clone(),
            credit: ask.credit,
            lease_ms: Some(millis(ask.lease_time)),
            lane: v1::Lane::from(ask.lane).into(),
            types: ask.types.clone(),
            sources: ask.sources.clone(),
        };
        let start = futures::stream::iter([Request::Start(start)]);
        let requests = start.chain(ReceiverStream::new(says).map(request));
        let requests = requests.map(|request| v1::ConsumeRequest { request: Some(request) });
        let heard = self.api().consume(requests).await?.into_inner();
        let heard = heard.map(|answer| answer.map(hear).map_err(LeaseError::from));
        Ok(Line { say, heard: heard.boxed() })
    }
}

fn request(say: Say) -> Request {
    match say {
        Say::Credit(credit) => Request::Credit(credit),
        Say::Settle(settles) => Request::Settle(settle::batch(settles)),
    }
}

fn hear(answer: v1::ConsumeResponse) -> Heard {
    Heard {
        messages: answer.messages.into_iter().map(Into::into).collect(),
        settled: answer.settled.into_iter().map(Into::into).collect(),
    }
}
