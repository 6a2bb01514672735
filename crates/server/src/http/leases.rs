//! Taking work and settling it.

use axum::extract::State;
use axum::http::StatusCode;
use redrive_broker::{
    Broker, BrokerError, Bury, Extend, LeaseCall, LeasesWanted, Nack, Release, Settlement, Target,
};
use redrive_core::access::{Deed, On};
use redrive_core::invalid::Invalid;
use redrive_core::message::{ErrorText, Lane, MessageId};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Judged, LaneChoice, Limit, Released};
use redrive_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Caller, InQueue, Json, OfMessage, Options, PreferredWait, Query};
use super::messages::{ListQuery, page};
use super::problem::{Refusal, Refusals};
use super::{Api, page_cursor, page_limit};
use crate::convert;

fn lane(text: Option<&str>) -> Result<LaneChoice, Refusal> {
    match text {
        None => Ok(LaneChoice::Queue),
        Some("fresh") => Ok(LaneChoice::Only(Lane::Fresh)),
        Some("retry") => Ok(LaneChoice::Only(Lane::Retry)),
        Some(_) => Err(Refusal::field("/lane", "must be fresh or retry")),
    }
}

/// Leases messages. Where none is ready, it waits for as long as it is told, and is answered when one is.
#[utoipa::path(post, path = "/v1/queues/{queue}/lease", tag = "leases", operation_id = "lease",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"),
        ("Prefer" = Option<String>, Header, description = "`wait=20` waits for up to 20 seconds")),
    request_body = Option<wire::LeaseRequest>,
    responses((status = 200, description = "What was handed out", body = wire::LeaseResponse), Refusals))]
pub(crate) async fn lease(
    State(api): State<Api>,
    caller: Caller,
    InQueue(queue): InQueue,
    PreferredWait(preferred): PreferredWait,
    Options(request): Options<wire::LeaseRequest>,
) -> Result<axum::Json<wire::LeaseResponse>, Refusal> {
    let wait = request.wait_ms.map(Millis::new).or(preferred);
    let call = LeaseCall {
        limit: Limit::new(request.limit.unwrap_or(1) as usize)?,
        consumer: request.consumer.unwrap_or_default().parse()?,
        time: convert::millis(request.lease_ms),
        lane: lane(request.lane.as_deref())?,
        filter: convert::filter::classes(&request.types, &request.sources)?,
        wait: wait.unwrap_or_default(),
        queue,
    };
    let deliveries = caller.lease(call).await?;
    let now = api.gate.now();
    let messages =
        deliveries.into_iter().map(|delivery| convert::message::delivered(delivery, now)).collect();
    Ok(axum::Json(wire::LeaseResponse { messages }))
}

/// Lists what is with consumers.
#[utoipa::path(get, path = "/v1/queues/{queue}/leases", tag = "leases", operation_id = "list_leases",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ListQuery),
    responses((status = 200, description = "Some leases", body = wire::Leases), Refusals))]
pub(crate) async fn list(
    caller: Caller,
    InQueue(queue): InQueue,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<wire::Leases>, Refusal> {
    let page = page(&caller, query, queue, &["leased"]).await?;
    Ok(axum::Json(wire::Leases { leases: page.messages, next_cursor: page.next_cursor }))
}

/// Which leases.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllLeasesQuery {
    /// Of this queue.
    #[param(value_type = Option<wire::schema::QueueName>)]
    queue: Option<String>,
    /// Of this consumer.
    #[param(value_type = Option<wire::schema::ConsumerName>)]
    consumer: Option<String>,
    /// How many items at most, 1 to 1,000.
    #[param(value_type = Option<wire::schema::Limit>)]
    limit: Option<u32>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// Lists what is with consumers, of all queues that the caller may inspect.
#[utoipa::path(get, path = "/v1/leases", tag = "leases", operation_id = "list_all_leases", params(AllLeasesQuery),
    responses((status = 200, description = "Some leases", body = wire::LeasePage), Refusals))]
pub(crate) async fn list_all(
    caller: Caller,
    Query(query): Query<AllLeasesQuery>,
) -> Result<axum::Json<wire::LeasePage>, Refusal> {
    let consumer = query.consumer.map(|name| name.parse()).transpose()?;
    let queue = query.queue.map(QueueName::new).transpose()?;
    let wanted = LeasesWanted { consumer, after: None, limit: page_limit(query.limit)? };
    let page = caller.leases(queue, wanted, page_cursor(query.cursor)?).await?;
    let leases = page.leases.iter().filter_map(|one| convert::overview::lease(one, page.at)).collect();
    let next_cursor = page.next.map(|next| next.to_string());
    Ok(axum::Json(wire::LeasePage { at: convert::time(page.at), leases, next_cursor }))
}

/// The one answer of a call with one item.
fn single<T>(settlements: Vec<Settlement<T>>) -> Result<T, BrokerError> {
    let settlement = settlements.into_iter().next();
    let settlement = settlement.ok_or_else(|| unsettled("NOT_FOUND"))?;
    match settlement.code() {
        Some(code) => Err(unsettled(code)),
        None => settlement.applied().ok_or_else(|| unsettled("NOT_FOUND")),
    }
}

/// Why one settlement was not applied.
fn unsettled(code: &'static str) -> BrokerError {
    let detail = match code {
        "INVALID_RECEIPT" => "receipt: not a receipt of this store",
        "NOT_FOUND" => "the message is not there, or was settled before",
        "LEASE_LOST" => "this lease of the message is not current any more",
        _ => "the settlement was not applied",
    };
    BrokerError::NotApplied { code, detail: detail.to_owned() }
}

fn results<T, O>(
    settlements: Vec<Settlement<T>>,
    outcome: impl Fn(T) -> Option<O>,
) -> axum::Json<wire::SettleResults<O>> {
    let results = settlements.into_iter().map(|settlement| {
        let code = settlement.code().map(str::to_owned);
        wire::SettleResult { ok: code.is_none(), code, outcome: settlement.applied().and_then(&outcome) }
    });
    axum::Json(wire::SettleResults { results: results.collect() })
}

/// The items of a batch, each refused by its place.
fn items<T, U>(batch: wire::Batch<T>, read: impl Fn(T) -> Result<U, Invalid>) -> Result<Vec<U>, Refusal> {
    let items = batch.items.into_iter().enumerate().map(|(at, item)| {
        read(item).map_err(|invalid| {
            Refusal::field(format!("/items/{at}/{}", invalid.field), invalid.problem.to_string())
        })
    });
    items.collect()
}

fn nacked(judged: &Judged) -> wire::Nacked {
    convert::message::nacked(judged)
}

fn released(released: &Released) -> wire::Released {
    convert::message::released(released)
}

fn extended(deadline: Timestamp) -> wire::Extended {
    wire::Extended { deadline: convert::time(deadline) }
}

fn read_nack(request: wire::NackRequest) -> Result<Nack, Invalid> {
    Ok(Nack {
        receipt: request.receipt,
        asked: convert::asked(request.delay_ms, request.exact)?,
        error: ErrorText::new(request.error),
        checkpoint: convert::message::checkpoint(request.checkpoint_base64.as_deref())?,
    })
}

fn read_extend(request: wire::ExtendRequest) -> Result<Extend, Invalid> {
    Ok(Extend {
        target: Target::Receipt(request.receipt),
        time: convert::extension(request.lease_ms)?,
        checkpoint: convert::message::checkpoint(request.checkpoint_base64.as_deref())?,
    })
}

fn read_release(request: wire::ReleaseRequest) -> Result<Release, Invalid> {
    Ok(Release { target: Target::Receipt(request.receipt), delay: convert::delay(request.delay_ms)? })
}

fn read_bury(request: wire::BuryRequest) -> Bury {
    Bury { receipt: request.receipt, error: ErrorText::new(request.error) }
}

/// The work is done.
#[utoipa::path(post, path = "/v1/leases/ack", tag = "leases", operation_id = "ack", request_body = wire::AckRequest,
    responses((status = 204, description = "It is settled"), Refusals))]
pub(crate) async fn ack(
    caller: Caller,
    Json(request): Json<wire::AckRequest>,
) -> Result<StatusCode, Refusal> {
    let broker = caller.may_settle([&*request.receipt])?;
    single(broker.ack(vec![request.receipt]).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The work of several messages is done.
#[utoipa::path(post, path = "/v1/leases/ack/batch", tag = "leases", operation_id = "ack_batch",
    request_body = wire::Batch<wire::AckRequest>,
    responses((status = 200, description = "One result for each", body = wire::SettleResults<wire::Acked>), Refusals))]
pub(crate) async fn ack_batch(
    caller: Caller,
    Json(batch): Json<wire::Batch<wire::AckRequest>>,
) -> Result<axum::Json<wire::SettleResults<wire::Acked>>, Refusal> {
    let receipts: Vec<String> = batch.items.into_iter().map(|item| item.receipt).collect();
    let broker = caller.may_settle(receipts.iter().map(String::as_str))?;
    Ok(results(broker.ack(receipts).await?, |_| None))
}

/// The work failed; the queue's policy says when it is tried again, or that it is dead.
#[utoipa::path(post, path = "/v1/leases/nack", tag = "leases", operation_id = "nack", request_body = wire::NackRequest,
    responses((status = 200, description = "What it led to", body = wire::Nacked), Refusals))]
pub(crate) async fn nack(
    caller: Caller,
    Json(request): Json<wire::NackRequest>,
) -> Result<axum::Json<wire::Nacked>, Refusal> {
    let broker = caller.may_settle([&*request.receipt])?;
    let judged = single(broker.nack(vec![read_nack(request)?]).await?)?;
    Ok(axum::Json(nacked(&judged)))
}

/// The work of several messages failed.
#[utoipa::path(post, path = "/v1/leases/nack/batch", tag = "leases", operation_id = "nack_batch",
    request_body = wire::Batch<wire::NackRequest>,
    responses((status = 200, description = "One result for each", body = wire::SettleResults<wire::Nacked>), Refusals))]
pub(crate) async fn nack_batch(
    caller: Caller,
    Json(batch): Json<wire::Batch<wire::NackRequest>>,
) -> Result<axum::Json<wire::SettleResults<wire::Nacked>>, Refusal> {
    let broker = caller.may_settle(batch.items.iter().map(|item| &*item.receipt))?;
    let settled = broker.nack(items(batch, read_nack)?).await?;
    Ok(results(settled, |judged| Some(nacked(&judged))))
}

/// The work takes longer.
#[utoipa::path(post, path = "/v1/leases/extend", tag = "leases", operation_id = "extend",
    request_body = wire::ExtendRequest,
    responses((status = 200, description = "The new deadline", body = wire::Extended), Refusals))]
pub(crate) async fn extend(
    caller: Caller,
    Json(request): Json<wire::ExtendRequest>,
) -> Result<axum::Json<wire::Extended>, Refusal> {
    let broker = caller.may_settle([&*request.receipt])?;
    let deadline = single(broker.extend(vec![read_extend(request)?]).await?)?;
    Ok(axum::Json(extended(deadline)))
}

/// The work of several messages takes longer.
#[utoipa::path(post, path = "/v1/leases/extend/batch", tag = "leases", operation_id = "extend_batch",
    request_body = wire::Batch<wire::ExtendRequest>,
    responses((status = 200, description = "One result for each", body = wire::SettleResults<wire::Extended>), Refusals))]
pub(crate) async fn extend_batch(
    caller: Caller,
    Json(batch): Json<wire::Batch<wire::ExtendRequest>>,
) -> Result<axum::Json<wire::SettleResults<wire::Extended>>, Refusal> {
    let broker = caller.may_settle(batch.items.iter().map(|item| &*item.receipt))?;
    let settled = broker.extend(items(batch, read_extend)?).await?;
    Ok(results(settled, |deadline| Some(extended(deadline))))
}

/// The message goes back unharmed: the attempt is refunded.
#[utoipa::path(post, path = "/v1/leases/release", tag = "leases", operation_id = "release",
    request_body = wire::ReleaseRequest,
    responses((status = 200, description = "Where it stands", body = wire::Released), Refusals))]
pub(crate) async fn release(
    caller: Caller,
    Json(request): Json<wire::ReleaseRequest>,
) -> Result<axum::Json<wire::Released>, Refusal> {
    let broker = caller.may_settle([&*request.receipt])?;
    let back = single(broker.release(vec![read_release(request)?]).await?)?;
    Ok(axum::Json(released(&back)))
}

/// Several messages go back unharmed.
#[utoipa::path(post, path = "/v1/leases/release/batch", tag = "leases", operation_id = "release_batch",
    request_body = wire::Batch<wire::ReleaseRequest>,
    responses((status = 200, description = "One result for each", body = wire::SettleResults<wire::Released>), Refusals))]
pub(crate) async fn release_batch(
    caller: Caller,
    Json(batch): Json<wire::Batch<wire::ReleaseRequest>>,
) -> Result<axum::Json<wire::SettleResults<wire::Released>>, Refusal> {
    let broker = caller.may_settle(batch.items.iter().map(|item| &*item.receipt))?;
    let settled = broker.release(items(batch, read_release)?).await?;
    Ok(results(settled, |back| Some(released(&back))))
}

/// The work must never be tried again.
#[utoipa::path(post, path = "/v1/leases/bury", tag = "leases", operation_id = "bury", request_body = wire::BuryRequest,
    responses((status = 200, description = "It is dead", body = wire::Nacked), Refusals))]
pub(crate) async fn bury(
    caller: Caller,
    Json(request): Json<wire::BuryRequest>,
) -> Result<axum::Json<wire::Nacked>, Refusal> {
    let broker = caller.may_settle([&*request.receipt])?;
    let judged = single(broker.bury(vec![read_bury(request)]).await?)?;
    Ok(axum::Json(nacked(&judged)))
}

/// The work of several messages must never be tried again.
#[utoipa::path(post, path = "/v1/leases/bury/batch", tag = "leases", operation_id = "bury_batch",
    request_body = wire::Batch<wire::BuryRequest>,
    responses((status = 200, description = "One result for each", body = wire::SettleResults<wire::Nacked>), Refusals))]
pub(crate) async fn bury_batch(
    caller: Caller,
    Json(batch): Json<wire::Batch<wire::BuryRequest>>,
) -> Result<axum::Json<wire::SettleResults<wire::Nacked>>, Refusal> {
    let broker = caller.may_settle(batch.items.iter().map(|item| &*item.receipt))?;
    let buries = batch.items.into_iter().map(read_bury).collect();
    Ok(results(broker.bury(buries).await?, |judged| Some(nacked(&judged))))
}

/// The lease that an operator means: the one that is named, or whichever is current.
fn operator_target(queue: &QueueName, id: MessageId, lease: Option<String>) -> Result<Target, Invalid> {
    Ok(match lease {
        Some(lease) => Target::Seen(queue.clone(), id, lease.parse()?),
        None => Target::Message(queue.clone(), id),
    })
}

/// An operator gives the consumer of a message more time.
#[utoipa::path(post, path = "/v1/queues/{queue}/leases/{id}/extend", tag = "leases", operation_id = "operator_extend",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ("id" = wire::schema::MessageId, Path, description = "The message")),
    request_body = Option<wire::OperatorExtendRequest>,
    responses((status = 200, description = "The new deadline", body = wire::Extended), Refusals))]
pub(crate) async fn operator_extend(
    caller: Caller,
    OfMessage(queue, id): OfMessage,
    Options(request): Options<wire::OperatorExtendRequest>,
) -> Result<axum::Json<wire::Extended>, Refusal> {
    let time = convert::extension(request.lease_ms)?;
    let target = operator_target(&queue, id, request.lease_id)?;
    let extend = Extend { target, time, checkpoint: None };
    let extend = async |broker: Broker| single(broker.extend(vec![extend]).await?);
    let deadline = caller.act(Deed::ExtendLease, &queue, extend).await?;
    Ok(axum::Json(extended(deadline)))
}

/// An operator takes a message back from its consumer, who is fenced.
#[utoipa::path(post, path = "/v1/queues/{queue}/leases/{id}/release", tag = "leases", operation_id = "operator_release",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ("id" = wire::schema::MessageId, Path, description = "The message")),
    request_body = Option<wire::OperatorReleaseRequest>,
    responses((status = 200, description = "Where it stands", body = wire::Released), Refusals))]
pub(crate) async fn operator_release(
    caller: Caller,
    OfMessage(queue, id): OfMessage,
    Options(request): Options<wire::OperatorReleaseRequest>,
) -> Result<axum::Json<wire::Released>, Refusal> {
    let delay = convert::delay(request.delay_ms)?;
    let release = Release { target: operator_target(&queue, id, request.lease_id)?, delay };
    let release = async |broker: Broker| single(broker.release(vec![release]).await?);
    let back = caller.act(Deed::ReleaseLease, &queue, release).await?;
    Ok(axum::Json(released(&back)))
}

async fn requeue(
    caller: &Caller,
    queue: Option<QueueName>,
    request: wire::RequeueExpiredRequest,
    default: Limit,
) -> Result<axum::Json<wire::Requeued>, Refusal> {
    let limit = match request.limit {
        Some(limit) => Limit::new(limit as usize)?,
        None => default,
    };
    let on = queue.as_ref().map_or(On::Every, On::Queue);
    let error = request.error.map(ErrorText::new);
    let requeue = async |broker: Broker| broker.requeue_expired(queue.clone(), limit, error).await;
    let count = caller.act(Deed::RequeueExpired, on, requeue).await?;
    Ok(axum::Json(wire::Requeued { count }))
}

/// Ends leases of a queue that have run out, now.
#[utoipa::path(post, path = "/v1/queues/{queue}/requeue_expired", tag = "leases", operation_id = "requeue_expired",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = Option<wire::RequeueExpiredRequest>,
    responses((status = 200, description = "How many", body = wire::Requeued), Refusals))]
pub(crate) async fn requeue_expired(
    State(api): State<Api>,
    caller: Caller,
    InQueue(queue): InQueue,
    Options(request): Options<wire::RequeueExpiredRequest>,
) -> Result<axum::Json<wire::Requeued>, Refusal> {
    requeue(&caller, Some(queue), request, api.gate.config().requeue_batch_size).await
}

/// Ends leases of all queues that have run out, now.
#[utoipa::path(post, path = "/v1/requeue_expired", tag = "leases", operation_id = "requeue_expired_everywhere",
    request_body = Option<wire::RequeueExpiredRequest>,
    responses((status = 200, description = "How many", body = wire::Requeued), Refusals))]
pub(crate) async fn requeue_expired_everywhere(
    State(api): State<Api>,
    caller: Caller,
    Options(request): Options<wire::RequeueExpiredRequest>,
) -> Result<axum::Json<wire::Requeued>, Refusal> {
    requeue(&caller, None, request, api.gate.config().requeue_batch_size).await
}
