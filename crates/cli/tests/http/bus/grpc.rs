//! The bus over gRPC: the same life, shorter.

use redrive_wire::v1;
use redrive_wire::v1::redrive_client::RedriveClient;
use serde_json::json;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::with_webhooks;
use crate::server::Server;

async fn client(server: &Server) -> RedriveClient<Channel> {
    RedriveClient::connect(format!("http://{}", server.address())).await.unwrap()
}

fn reason(status: &Status) -> (Code, String) {
    (status.code(), status.get_details_error_info().map(|info| info.reason).unwrap_or_default())
}

fn settings(pattern: &str) -> v1::SubscriptionSettings {
    v1::SubscriptionSettings { pattern: pattern.to_owned(), ..v1::SubscriptionSettings::default() }
}

fn to_queue(queue: &str) -> v1::NewTarget {
    v1::NewTarget { kind: "queue".to_owned(), queue: queue.to_owned(), ..v1::NewTarget::default() }
}

fn event(body: &'static str) -> v1::NewEvent {
    v1::NewEvent { body: body.into(), ..v1::NewEvent::default() }
}

#[tokio::test]
async fn an_event_goes_from_a_publisher_to_a_queue() {
    let server = Server::start();
    let mut client = client(&server).await;
    server.create("box", json!({})).await;
    let topic = v1::SetTopicRequest {
        pattern: "orders.*".to_owned(),
        retain_ms: Some(60_000),
        ..v1::SetTopicRequest::default()
    };
    let set = client.set_topic(topic.clone()).await.unwrap().into_inner();
    assert_eq!((set.dispatch.as_str(), set.retain_ms), ("independent", Some(60_000)));
    let stale = v1::SetTopicRequest { expected_version: Some(set.version + 1), ..topic };
    let refused = client.set_topic(stale).await.unwrap_err();
    assert_eq!(reason(&refused), (Code::Aborted, "VERSION_MISMATCH".to_owned()));
    let subscription = v1::CreateSubscriptionRequest {
        id: "all".to_owned(),
        settings: Some(settings("orders.*")),
        target: Some(to_queue("box")),
        replay_from_ms: None,
    };
    client.create_subscription(subscription.clone()).await.unwrap();
    let refused = client.create_subscription(subscription).await.unwrap_err();
    assert_eq!(reason(&refused), (Code::AlreadyExists, "SUBSCRIPTION_EXISTS".to_owned()));
    let request = v1::PublishRequest {
        topic: "orders.made".to_owned(),
        events: vec![event("1"), v1::NewEvent { dedup_key: "k".to_owned(), ..event("2") }],
    };
    let first = client.publish(request.clone()).await.unwrap().into_inner().results;
    let again = client.publish(request).await.unwrap().into_inner().results;
    assert!(first.iter().all(|result| result.subscriptions == 1 && !result.duplicate));
    assert_eq!((&again[1].id, again[1].duplicate), (&first[1].id, true));
    assert_eq!(server.count("box", "ready").await, 3, "both APIs see the same");
    let replay = v1::ReplaySubscriptionRequest { id: "all".to_owned(), from_ms: 0 };
    assert!(!client.replay_subscription(replay).await.unwrap().into_inner().replay.is_empty());
    let refused = client
        .publish(v1::PublishRequest { topic: "a..b".to_owned(), events: Vec::new() })
        .await
        .unwrap_err();
    assert_eq!(reason(&refused), (Code::InvalidArgument, "INVALID_ARGUMENT".to_owned()));
    let listed = client.list_topics(v1::ListTopicsRequest::default()).await.unwrap().into_inner().topics;
    assert_eq!(listed.len(), 1);
    let pattern = "orders.*".to_owned();
    client.delete_topic(v1::DeleteTopicRequest { pattern: pattern.clone(), force: false }).await.unwrap();
    let gone = client.get_topic(v1::GetTopicRequest { pattern }).await.unwrap_err();
    assert_eq!(reason(&gone), (Code::NotFound, "TOPIC_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn a_subscription_is_created_switched_changed_and_deleted() {
    let server = with_webhooks();
    let mut client = client(&server).await;
    let id = || "mail".to_owned();
    let endpoint = Some(v1::Endpoint {
        url: "http://127.0.0.1:9/".to_owned(),
        format: "binary".to_owned(),
        disable_after_ms: Some(0),
    });
    let target = v1::NewTarget { kind: "webhook".to_owned(), endpoint, ..v1::NewTarget::default() };
    let request = v1::CreateSubscriptionRequest {
        id: id(),
        settings: Some(settings("orders.*")),
        target: Some(target),
        replay_from_ms: None,
    };
    let created = client.create_subscription(request).await.unwrap().into_inner();
    assert!(created.secret.starts_with("whsec_"));
    let made = created.subscription.unwrap();
    assert_eq!((made.queue.as_str(), made.policy.unwrap().max_attempts), ("bus.sub.mail", Some(12)));
    let rotate = v1::RotateSecretRequest { id: id(), ..v1::RotateSecretRequest::default() };
    let rotated = client.rotate_secret(rotate).await.unwrap().into_inner();
    assert!(rotated.secret.starts_with("whsec_") && rotated.secret != created.secret);
    assert_eq!(rotated.subscription.unwrap().target.unwrap().secrets, 2);
    let paused = client.pause_subscription(v1::PauseSubscriptionRequest { id: id() }).await.unwrap();
    let resumed = client.resume_subscription(v1::ResumeSubscriptionRequest { id: id() }).await.unwrap();
    let disabled = client.disable_subscription(v1::DisableSubscriptionRequest { id: id() }).await.unwrap();
    let enabled = client.enable_subscription(v1::EnableSubscriptionRequest { id: id() }).await.unwrap();
    assert_eq!(disabled.get_ref().disabled_why, "operator");
    let states = [paused, resumed, disabled, enabled].map(|answer| answer.into_inner().state);
    assert_eq!(states, ["paused", "active", "disabled", "active"]);
    let update = v1::UpdateSubscriptionRequest {
        id: id(),
        settings: Some(settings("orders.**")),
        endpoint: None,
        expected_version: None,
    };
    let changed = client.update_subscription(update.clone()).await.unwrap().into_inner();
    assert_eq!(changed.settings.unwrap().pattern, "orders.**");
    let stale = v1::UpdateSubscriptionRequest { expected_version: Some(made.version), ..update };
    let refused = client.update_subscription(stale).await.unwrap_err();
    assert_eq!(reason(&refused), (Code::Aborted, "VERSION_MISMATCH".to_owned()));
    let of = v1::trip_breaker_request::Of::Subscription(id());
    let open = client.trip_breaker(v1::TripBreakerRequest { of: Some(of) }).await.unwrap().into_inner();
    assert_eq!((open.state.as_str(), open.queue.as_str()), ("open", "bus.sub.mail"));
    let of = v1::reset_breaker_request::Of::Queue("bus.sub.mail".to_owned());
    let closed = client.reset_breaker(v1::ResetBreakerRequest { of: Some(of) }).await.unwrap().into_inner();
    assert_eq!(closed.state, "closed");
    client.delete_subscription(v1::DeleteSubscriptionRequest { id: id() }).await.unwrap();
    let gone = client.get_subscription(v1::GetSubscriptionRequest { id: id() }).await.unwrap_err();
    assert_eq!(reason(&gone), (Code::NotFound, "SUBSCRIPTION_NOT_FOUND".to_owned()));
    let listed = client.list_subscriptions(v1::ListSubscriptionsRequest::default()).await.unwrap();
    assert!(listed.into_inner().subscriptions.is_empty());
    let nobody = client.get_breaker(v1::GetBreakerRequest { of: None }).await.unwrap_err();
    assert_eq!(nobody.code(), Code::InvalidArgument);
}
