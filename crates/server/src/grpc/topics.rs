//! Topics, and events that are published on them.

use redrive_bus::{Bus, NewEvent, TopicSettings};
use redrive_core::access::Deed;
use redrive_core::invalid::Invalid;
use redrive_core::limits::BODY_BYTES_DEFAULT_MAX;
use redrive_core::message::{Body, ContentType, Headers};
use redrive_core::topic::{Topic, TopicPattern};
use redrive_wire::v1;
use tonic::{Request, Response, Status};

use super::{Service, caller, items, page_limit, status, wrong};
use crate::convert;

impl Service {
    pub(super) async fn publish_events(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        let caller = caller(&request)?;
        let trace = convert::trace_parent(request.metadata().as_ref());
        let request = request.into_inner();
        let topic = Topic::new(request.topic).map_err(wrong)?;
        let read = |event| Ok(NewEvent { request: trace, ..new_event(event)? });
        let events = items(request.events, read)?;
        let outcomes = self.bus.publish(&caller, &topic, events).await.map_err(status::bus)?;
        let results = outcomes.into_iter().map(convert::topic::published_or_not).collect();
        Ok(Response::new(v1::PublishResponse { results }))
    }

    pub(super) async fn put_topic(
        &self,
        request: Request<v1::SetTopicRequest>,
    ) -> Result<Response<v1::Topic>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let pattern = TopicPattern::new(request.pattern).map_err(wrong)?;
        let dispatch = Some(request.dispatch.as_str()).filter(|dispatch| !dispatch.is_empty());
        let config = convert::topic::config(pattern, dispatch, request.retain_ms).map_err(wrong)?;
        let settings = self.bus.set_topic(&caller, config, request.expected_version).await;
        Ok(Response::new(topic(&settings.map_err(status::bus)?)))
    }

    pub(super) async fn show_topic(
        &self,
        request: Request<v1::GetTopicRequest>,
    ) -> Result<Response<v1::Topic>, Status> {
        let caller = caller(&request)?;
        let pattern = TopicPattern::new(request.into_inner().pattern).map_err(wrong)?;
        let settings = self.bus.topic(&caller, &pattern).await.map_err(status::bus)?;
        Ok(Response::new(topic(&settings)))
    }

    pub(super) async fn show_topics(
        &self,
        request: Request<v1::ListTopicsRequest>,
    ) -> Result<Response<v1::ListTopicsResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let after = (!request.after.is_empty()).then(|| TopicPattern::new(request.after)).transpose();
        let (after, limit) = (after.map_err(wrong)?, page_limit(request.limit)?);
        let (topics, _) = self.bus.topics(&caller, after.as_ref(), limit).await.map_err(status::bus)?;
        Ok(Response::new(v1::ListTopicsResponse { topics: topics.iter().map(topic).collect() }))
    }

    pub(super) async fn forget_topic(
        &self,
        request: Request<v1::DeleteTopicRequest>,
    ) -> Result<Response<v1::DeleteTopicResponse>, Status> {
        let caller = caller(&request)?;
        let v1::DeleteTopicRequest { pattern, force } = request.into_inner();
        let pattern = TopicPattern::new(pattern).map_err(wrong)?;
        let delete = async |bus: Bus| bus.delete_topic(&pattern, force).await;
        let deleted = self.bus.act(&caller, Deed::DeleteTopic, &pattern, delete).await;
        deleted.map_err(status::bus)?;
        Ok(Response::new(v1::DeleteTopicResponse {}))
    }
}

fn new_event(event: v1::NewEvent) -> Result<NewEvent, Invalid> {
    let said = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok(NewEvent {
        body: Body::within(event.body, BODY_BYTES_DEFAULT_MAX)?,
        content_type: said(event.content_type).map(ContentType::new).transpose()?.unwrap_or_default(),
        headers: Headers::new(event.headers)?,
        kind: said(event.r#type).map(|kind| kind.parse()).transpose()?,
        fairness_key: event.fairness_key.parse()?,
        dedup_key: said(event.dedup_key).map(|key| key.parse()).transpose()?,
        request: None,
    })
}

fn topic(settings: &TopicSettings) -> v1::Topic {
    let view = convert::topic::view(settings);
    v1::Topic {
        pattern: view.pattern,
        dispatch: view.dispatch,
        retain_ms: view.retain_ms,
        version: view.version,
        created_at_ms: view.created_at.0,
        sequence_queue: view.sequence_queue.unwrap_or_default(),
    }
}
