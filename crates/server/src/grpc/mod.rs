//! gRPC `redrive.v1`: each handler decodes, calls the broker once, and encodes.

mod consume;
mod convert;
mod status;
mod subscriptions;
mod topics;

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::http;
use futures::future::{Either, Ready, ready};
use futures::{Stream, StreamExt, stream};
use redrive_broker::{Broker, Caller, Gate, NewMessage, Told, Unauthenticated};
use redrive_bus::{Bus, BusGate};
use redrive_core::access::{Deed, On, Use};
use redrive_core::invalid::Invalid;
use redrive_core::limits::BODY_BYTES_DEFAULT_MAX;
use redrive_core::message::State;
use redrive_core::queue::{Pause, QueueName};
use redrive_core::time::Timestamp;
use redrive_store::{CreateQueue, DeleteQueue, EnqueueOutcome, Limit, PauseQueue, RetryAdvice, UpdateQueue};
use redrive_wire::v1;
use redrive_wire::v1::redrive_server::{Redrive, RedriveServer};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use subscriptions::{Of, Switch};

use crate::convert::trace_parent;

/// The largest message of a client: a batch, and what is around it.
const MESSAGE_BYTES_MAX: usize = redrive_core::limits::BATCH_BYTES_MAX + 1024 * 1024;

/// The largest message of whoever needs no key, to health and reflection.
const STRANGER_BYTES_MAX: usize = 4 * 1024;

/// The service behind a gate.
#[derive(Debug, Clone)]
struct Service {
    gate: Gate,
    bus: BusGate,
}

/// Adds gRPC to an HTTP API, on the same port: the service, its health, and reflection.
pub async fn add_to(app: Router, gate: Gate, bus: Bus) -> Router {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<RedriveServer<Service>>().await;
    let ending = gate.clone();
    tokio::spawn(async move {
        ending.stopped().await;
        reporter.set_not_serving::<RedriveServer<Service>>().await;
    });
    let service = RedriveServer::new(Service { gate: gate.clone(), bus: BusGate::new(bus) })
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let app = app
        .route_service("/redrive.v1.Redrive/{*rpc}", Guarded { gate, service })
        .route_service("/grpc.health.v1.Health/{*rpc}", health.max_decoding_message_size(STRANGER_BYTES_MAX));
    add_reflection(app).expect("the protos are as they were compiled")
}

/// Adds reflection, in both of its versions: many clients, grpcio's own among them, still ask for the older one.
fn add_reflection(app: Router) -> Result<Router, tonic_reflection::server::Error> {
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Ok(app
        .route_service(
            "/grpc.reflection.v1.ServerReflection/{*rpc}",
            described().build_v1()?.max_decoding_message_size(STRANGER_BYTES_MAX),
        )
        .route_service(
            "/grpc.reflection.v1alpha.ServerReflection/{*rpc}",
            described().build_v1alpha()?.max_decoding_message_size(STRANGER_BYTES_MAX),
        ))
}

/// A service that is asked by nobody who was not let in. The caller is looked at before the message, which is read into
/// memory as a whole.
#[derive(Debug, Clone)]
struct Guarded<S> {
    gate: Gate,
    service: S,
}

impl<S> tower::Service<http::Request<Body>> for Guarded<S>
where
    S: tower::Service<http::Request<Body>, Response = http::Response<tonic::body::Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<S::Response, S::Error>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        match crate::caller(&self.gate, request.headers(), request.extensions()) {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                Either::Right(self.service.call(request))
            }
            Err(refused) => Either::Left(ready(Ok(status::error(refused).into_http()))),
        }
    }
}

/// Who makes a request, as it was found out before the message was read.
fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let known = request.extensions().get::<Caller>().cloned();
    known.ok_or_else(|| status::error(Unauthenticated::Missing.into()))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn wrong(invalid: Invalid) -> Status {
    status::invalid(&invalid)
}

fn items<T, U>(items: Vec<T>, one: impl Fn(T) -> Result<U, Invalid>) -> Result<Vec<U>, Status> {
    items.into_iter().map(one).collect::<Result<_, _>>().map_err(wrong)
}

fn may_settle<'a>(caller: &Caller, receipts: impl IntoIterator<Item = &'a str>) -> Result<&Broker, Status> {
    caller.may_settle(receipts).map_err(status::error)
}

/// How many items a page has: 100 where nothing is said.
fn page_limit(limit: u32) -> Result<Limit, Status> {
    Limit::new(if limit == 0 { 100 } else { limit as usize }).map_err(wrong)
}

type Settled = Result<Response<v1::SettleResponse>, Status>;

fn settled(results: Vec<v1::SettleResult>) -> Response<v1::SettleResponse> {
    Response::new(v1::SettleResponse { results })
}

impl Service {
    fn queue(&self, queue: &redrive_core::queue::Queue) -> Response<v1::Queue> {
        Response::new(convert::queue(queue, self.gate.now()))
    }

    async fn pause(
        &self,
        caller: &Caller,
        name: String,
        key: Option<String>,
        pause: Option<Pause>,
    ) -> Result<Response<v1::Queue>, Status> {
        let name = QueueName::new(name).map_err(wrong)?;
        let key = key.map(|key| key.parse()).transpose().map_err(wrong)?;
        let deed = if pause.is_some() { Deed::PauseQueue } else { Deed::ResumeQueue };
        let request = PauseQueue { name: name.clone(), key, pause };
        let queue = caller.act(deed, &name, async |broker| broker.pause_queue(request).await).await;
        let queue = queue.map_err(status::error)?;
        Ok(self.queue(&queue))
    }
}

fn enqueued(outcome: Result<EnqueueOutcome, redrive_broker::BrokerError>) -> v1::EnqueueResult {
    let refused = |code: &str, detail: String, advice: RetryAdvice| v1::EnqueueResult {
        code: code.to_owned(),
        detail,
        retryable: advice == RetryAdvice::Retry,
        ..v1::EnqueueResult::default()
    };
    match outcome {
        Ok(EnqueueOutcome::Enqueued { id, visible_at }) => v1::EnqueueResult {
            id: id.to_string(),
            visible_at_ms: visible_at.as_millis(),
            ..v1::EnqueueResult::default()
        },
        Ok(EnqueueOutcome::Duplicate { id }) => {
            v1::EnqueueResult { id: id.to_string(), duplicate: true, ..v1::EnqueueResult::default() }
        }
        Ok(EnqueueOutcome::Refused(refusal)) => {
            refused(refusal.code(), refusal.to_string(), refusal.advice())
        }
        Ok(EnqueueOutcome::Aborted) => {
            let detail = "another message of the batch was refused";
            refused("ABORTED", detail.to_owned(), RetryAdvice::GiveUp)
        }
        Err(error) => refused(error.code(), error.to_string(), error.advice()),
    }
}

#[tonic::async_trait]
impl Redrive for Service {
    async fn enqueue(
        &self,
        request: Request<v1::EnqueueRequest>,
    ) -> Result<Response<v1::EnqueueResponse>, Status> {
        let caller = caller(&request)?;
        let trace = trace_parent(request.metadata().as_ref());
        let request = request.into_inner();
        let queue = QueueName::new(request.queue).map_err(wrong)?;
        let read = |message| {
            let message = convert::new_message(queue.clone(), message, BODY_BYTES_DEFAULT_MAX)?;
            Ok(NewMessage { request: trace, ..message })
        };
        let messages = items(request.messages, read)?;
        let outcomes = caller.enqueue(messages, request.all_or_nothing).await.map_err(status::error)?;
        let results = outcomes.into_iter().map(enqueued).collect();
        Ok(Response::new(v1::EnqueueResponse { results }))
    }

    async fn lease(&self, request: Request<v1::LeaseRequest>) -> Result<Response<v1::LeaseResponse>, Status> {
        let caller = caller(&request)?;
        let call = convert::lease(request.get_ref()).map_err(wrong)?;
        let deliveries = caller.lease(call).await.map_err(status::error)?;
        let messages = deliveries.into_iter().map(convert::message).collect();
        Ok(Response::new(v1::LeaseResponse { messages }))
    }

    async fn ack(&self, request: Request<v1::AckRequest>) -> Settled {
        let caller = caller(&request)?;
        let receipts: Vec<String> = request.into_inner().items.into_iter().map(|ack| ack.receipt).collect();
        let broker = may_settle(&caller, receipts.iter().map(String::as_str))?;
        let answers = broker.ack(receipts).await.map_err(status::error)?;
        Ok(settled(convert::settled(answers, convert::say_acked)))
    }

    async fn nack(&self, request: Request<v1::NackRequest>) -> Settled {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let broker = may_settle(&caller, request.items.iter().map(|item| &*item.receipt))?;
        let nacks = items(request.items, convert::nack)?;
        let answers = broker.nack(nacks).await.map_err(status::error)?;
        Ok(settled(convert::settled(answers, convert::say_judged)))
    }

    async fn extend(&self, request: Request<v1::ExtendRequest>) -> Settled {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let broker = may_settle(&caller, request.items.iter().map(|item| &*item.receipt))?;
        let extends = items(request.items, convert::extend)?;
        let answers = broker.extend(extends).await.map_err(status::error)?;
        Ok(settled(convert::settled(answers, convert::say_extended)))
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Settled {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let broker = may_settle(&caller, request.items.iter().map(|item| &*item.receipt))?;
        let releases = items(request.items, convert::release)?;
        let answers = broker.release(releases).await.map_err(status::error)?;
        Ok(settled(convert::settled(answers, convert::say_released)))
    }

    async fn bury(&self, request: Request<v1::BuryRequest>) -> Settled {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let broker = may_settle(&caller, request.items.iter().map(|item| &*item.receipt))?;
        let buries = request.items.into_iter().map(convert::bury).collect();
        let answers = broker.bury(buries).await.map_err(status::error)?;
        Ok(settled(convert::settled(answers, convert::say_judged)))
    }

    type ConsumeStream = ReceiverStream<Result<v1::ConsumeResponse, Status>>;

    async fn consume(
        &self,
        request: Request<Streaming<v1::ConsumeRequest>>,
    ) -> Result<Response<Self::ConsumeStream>, Status> {
        let caller = caller(&request)?;
        let answers = consume::start(caller, request.into_inner()).await?;
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn create_queue(
        &self,
        request: Request<v1::CreateQueueRequest>,
    ) -> Result<Response<v1::Queue>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let name = QueueName::new(request.name).map_err(wrong)?;
        let config = convert::config(request.config).map_err(wrong)?;
        let queue = caller.create_queue(CreateQueue { name, config }).await.map_err(status::error)?;
        Ok(self.queue(&queue))
    }

    async fn get_queue(&self, request: Request<v1::GetQueueRequest>) -> Result<Response<v1::Queue>, Status> {
        let caller = caller(&request)?;
        let name = QueueName::new(request.into_inner().name).map_err(wrong)?;
        let broker = caller.may(Use::Look, &name).map_err(status::error)?;
        let queue = broker.get_queue(&name).await.map_err(status::error)?;
        Ok(self.queue(&queue))
    }

    async fn list_queues(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Result<Response<v1::ListQueuesResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let after =
            (!request.after.is_empty()).then(|| QueueName::new(request.after)).transpose().map_err(wrong)?;
        let limit = page_limit(request.limit)?;
        let (queues, _) = caller.list_queues(after, limit).await.map_err(status::error)?;
        let queues = queues.iter().map(|queue| convert::queue(queue, self.gate.now())).collect();
        Ok(Response::new(v1::ListQueuesResponse { queues }))
    }

    async fn update_queue(
        &self,
        request: Request<v1::UpdateQueueRequest>,
    ) -> Result<Response<v1::Queue>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let name = QueueName::new(request.name).map_err(wrong)?;
        let config = convert::config(request.config).map_err(wrong)?;
        let update = UpdateQueue { name, config, expected: request.expected_version };
        let queue = caller.update_queue(update).await.map_err(status::error)?;
        Ok(self.queue(&queue))
    }

    async fn delete_queue(
        &self,
        request: Request<v1::DeleteQueueRequest>,
    ) -> Result<Response<v1::DeleteQueueResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let name = QueueName::new(request.name).map_err(wrong)?;
        let delete = DeleteQueue { name: name.clone(), force: request.force };
        let deleted =
            caller.act(Deed::DeleteQueue, &name, async |broker| broker.delete_queue(delete).await).await;
        deleted.map_err(status::error)?;
        Ok(Response::new(v1::DeleteQueueResponse {}))
    }

    async fn pause_queue(
        &self,
        request: Request<v1::PauseQueueRequest>,
    ) -> Result<Response<v1::Queue>, Status> {
        let caller = caller(&request)?;
        let v1::PauseQueueRequest { name, key, until_ms } = request.into_inner();
        let until = until_ms.map(|ms| Pause::Until(Timestamp::from_millis(ms)));
        self.pause(&caller, name, key, Some(until.unwrap_or(Pause::UntilResumed))).await
    }

    async fn resume_queue(
        &self,
        request: Request<v1::ResumeQueueRequest>,
    ) -> Result<Response<v1::Queue>, Status> {
        let caller = caller(&request)?;
        let v1::ResumeQueueRequest { name, key } = request.into_inner();
        self.pause(&caller, name, key, None).await
    }

    async fn queue_stats(
        &self,
        request: Request<v1::QueueStatsRequest>,
    ) -> Result<Response<v1::QueueStatsResponse>, Status> {
        let caller = caller(&request)?;
        let name = QueueName::new(request.into_inner().name).map_err(wrong)?;
        let broker = caller.may(Use::Look, &name).map_err(status::error)?;
        let stats = broker.stats(&name).await.map_err(status::error)?;
        Ok(Response::new(v1::QueueStatsResponse {
            at_ms: stats.at.as_millis(),
            delayed: stats.states.of(State::Delayed),
            ready: stats.states.of(State::Ready),
            leased: stats.states.of(State::Leased),
            dead: stats.states.of(State::Dead),
            done: stats.states.of(State::Done),
            overdue: stats.overdue,
            retries_in_flight: stats.retries_in_flight,
            oldest_ready_age_ms: stats.oldest_ready.map(|since| stats.at.since(since).get()),
        }))
    }

    async fn publish(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        self.publish_events(request).await
    }

    async fn set_topic(&self, request: Request<v1::SetTopicRequest>) -> Result<Response<v1::Topic>, Status> {
        self.put_topic(request).await
    }

    async fn get_topic(&self, request: Request<v1::GetTopicRequest>) -> Result<Response<v1::Topic>, Status> {
        self.show_topic(request).await
    }

    async fn list_topics(
        &self,
        request: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        self.show_topics(request).await
    }

    async fn delete_topic(
        &self,
        request: Request<v1::DeleteTopicRequest>,
    ) -> Result<Response<v1::DeleteTopicResponse>, Status> {
        self.forget_topic(request).await
    }

    async fn create_subscription(
        &self,
        request: Request<v1::CreateSubscriptionRequest>,
    ) -> Result<Response<v1::CreateSubscriptionResponse>, Status> {
        self.subscribe(request).await
    }

    async fn get_subscription(
        &self,
        request: Request<v1::GetSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        self.show_subscription(request).await
    }

    async fn list_subscriptions(
        &self,
        request: Request<v1::ListSubscriptionsRequest>,
    ) -> Result<Response<v1::ListSubscriptionsResponse>, Status> {
        self.show_subscriptions(request).await
    }

    async fn update_subscription(
        &self,
        request: Request<v1::UpdateSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        self.change_subscription(request).await
    }

    async fn delete_subscription(
        &self,
        request: Request<v1::DeleteSubscriptionRequest>,
    ) -> Result<Response<v1::DeleteSubscriptionResponse>, Status> {
        self.unsubscribe(request).await
    }

    async fn pause_subscription(
        &self,
        request: Request<v1::PauseSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        self.switch(caller(&request)?, request.into_inner().id, Switch::Pause).await
    }

    async fn resume_subscription(
        &self,
        request: Request<v1::ResumeSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        self.switch(caller(&request)?, request.into_inner().id, Switch::Resume).await
    }

    async fn disable_subscription(
        &self,
        request: Request<v1::DisableSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        self.switch(caller(&request)?, request.into_inner().id, Switch::Disable).await
    }

    async fn enable_subscription(
        &self,
        request: Request<v1::EnableSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        self.switch(caller(&request)?, request.into_inner().id, Switch::Enable).await
    }

    async fn rotate_secret(
        &self,
        request: Request<v1::RotateSecretRequest>,
    ) -> Result<Response<v1::RotateSecretResponse>, Status> {
        self.replace_secret(request).await
    }

    async fn replay_subscription(
        &self,
        request: Request<v1::ReplaySubscriptionRequest>,
    ) -> Result<Response<v1::ReplaySubscriptionResponse>, Status> {
        self.replay(request).await
    }

    async fn get_breaker(
        &self,
        request: Request<v1::GetBreakerRequest>,
    ) -> Result<Response<v1::Breaker>, Status> {
        let caller = caller(&request)?;
        self.breaker(caller, Of::get_breaker_request(request.into_inner().of)?, None).await
    }

    async fn trip_breaker(
        &self,
        request: Request<v1::TripBreakerRequest>,
    ) -> Result<Response<v1::Breaker>, Status> {
        let caller = caller(&request)?;
        self.breaker(caller, Of::trip_breaker_request(request.into_inner().of)?, Some(true)).await
    }

    async fn reset_breaker(
        &self,
        request: Request<v1::ResetBreakerRequest>,
    ) -> Result<Response<v1::Breaker>, Status> {
        let caller = caller(&request)?;
        self.breaker(caller, Of::reset_breaker_request(request.into_inner().of)?, Some(false)).await
    }

    type WatchEventsStream = Pin<Box<dyn Stream<Item = Result<v1::Event, Status>> + Send>>;

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let queue =
            (!request.queue.is_empty()).then(|| QueueName::new(request.queue)).transpose().map_err(wrong)?;
        let on = queue.as_ref().map_or(On::Some, On::Queue);
        let watch = caller.may(Use::Watch, on).map_err(status::error)?.watch(request.after);
        let ended = Box::pin(caller.ended());
        let events = stream::unfold(watch, |mut watch| async move { Some((watch.next().await, watch)) });
        let events = events.filter_map(move |told| {
            let event = match told {
                Told::Lagged(after) => {
                    Some(v1::Event { offset: after, r#type: "lagged".to_owned(), ..v1::Event::default() })
                }
                Told::Event(event) if queue.as_ref().is_some_and(|queue| *queue != event.queue) => None,
                Told::Event(event) if !caller.sees(Use::Watch, &event.queue) => None,
                Told::Event(event) => Some(convert::event(&event)),
            };
            async move { event.map(Ok) }
        });
        Ok(Response::new(Box::pin(events.take_until(ended))))
    }
}
