//! Traces as a collector gets them: the real binary, and a real receiver of OTLP over gRPC.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use redrive_wire::v1;
use redrive_wire::v1::redrive_client::RedriveClient;
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::server::{Answer, Server};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn traceparent(trace: &str) -> String {
    format!("00-{trace}-{PARENT}-01")
}

/// What a collector was sent: the resource's attributes, and the spans.
type Received = Arc<Mutex<Vec<(BTreeMap<String, String>, Span)>>>;

struct Collector(Received);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for of_resource in request.into_inner().resource_spans {
            let resource = attributes(&of_resource.resource.unwrap().attributes);
            let spans = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.0.lock().unwrap().extend(spans.map(|span| (resource.clone(), span)));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Starts a collector on a free port; answers where it is, and what it gets.
async fn collector() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Received::default();
    let service = TraceServiceServer::new(Collector(Arc::clone(&received)));
    let serving = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(serving.serve_with_incoming(TcpIncoming::from(listener)));
    (url, received)
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| match pair.value.clone().unwrap().value.unwrap() {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    pairs.iter().map(|pair| (pair.key.clone(), text(pair))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// The context of a span, as a header has it.
fn context(span: &Span) -> String {
    format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id))
}

/// Ends a server; whatever it had to tell was told when this returns.
async fn end(mut server: Server) -> Server {
    tokio::task::spawn_blocking(move || {
        assert!(server.terminate().success());
        server
    })
    .await
    .unwrap()
}

/// Sends over HTTP, fails once, and succeeds; answers the headers of both deliveries.
async fn fail_once(server: &Server) -> [String; 2] {
    server.create("orders", json!({"retry": {"base_delay_ms": 0, "jitter": "none"}})).await;
    let enqueue = server.request(Method::POST, "/v1/queues/orders/messages");
    let enqueue = enqueue.header("traceparent", traceparent(TRACE)).json(&json!({"body": "work"}));
    assert_eq!(Answer::of(enqueue.send().await.unwrap()).await.status, 201);
    let first = server.lease("orders", json!({})).await.remove(0);
    let nack = json!({"receipt": first["receipt"], "error": "boom"});
    assert_eq!(server.post("/v1/leases/nack", nack).await.status, 200);
    let second = server.lease("orders", json!({})).await.remove(0);
    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": second["receipt"]})).await.status, 204);
    [first, second].map(|message| message["headers"]["traceparent"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_message_is_one_trace_with_a_span_for_each_attempt() {
    let (url, received) = collector().await;
    let server = Server::with(&["--otlp-endpoint", &url]);
    let delivered = fail_once(&server).await;
    end(server).await;
    let received = std::mem::take(&mut *received.lock().unwrap());
    assert!(received.iter().all(|(resource, _)| resource["service.name"] == "redrive"), "{received:?}");
    let [send, failed, acked] = received.iter().map(|(_, span)| span).collect::<Vec<_>>()[..] else {
        panic!("{received:?}")
    };
    for span in [send, failed, acked] {
        assert_eq!(hex(&span.trace_id), TRACE);
        assert!(0 < span.start_time_unix_nano && span.start_time_unix_nano <= span.end_time_unix_nano);
        let said = attributes(&span.attributes);
        assert_eq!(
            (said["messaging.system"].as_str(), said["messaging.destination.name"].as_str()),
            ("redrive", "orders")
        );
        assert_eq!(said["messaging.message.id"].len(), 36);
    }
    assert_eq!((send.name.as_str(), send.kind()), ("send orders", SpanKind::Producer));
    assert_eq!(hex(&send.parent_span_id), PARENT);
    let outcomes = [("1", "retried", StatusCode::Error, "boom"), ("2", "acked", StatusCode::Unset, "")];
    for ((span, delivered), outcome) in [failed, acked].into_iter().zip(delivered).zip(outcomes) {
        assert_eq!((span.name.as_str(), span.kind()), ("process orders", SpanKind::Consumer));
        assert_eq!(span.parent_span_id, send.span_id);
        assert_eq!(context(span), delivered, "what the consumer does is a part of the attempt");
        let said = attributes(&span.attributes);
        let status = span.status.clone().unwrap_or_default();
        let told = (
            said["redrive.attempt"].as_str(),
            said["redrive.outcome"].as_str(),
            status.code(),
            status.message.as_str(),
        );
        assert_eq!(told, outcome);
    }
    assert_eq!(attributes(&failed.attributes)["error.type"], "nack");
    assert!(!attributes(&acked.attributes).contains_key("error.type"));
}

#[tokio::test]
async fn a_call_over_grpc_carries_its_context_in_its_metadata() {
    let (url, received) = collector().await;
    let server = Server::with(&["--otlp-endpoint", &url]);
    let mut client = RedriveClient::connect(format!("http://{}", server.address())).await.unwrap();
    let message = v1::NewMessage { body: "work".into(), ..v1::NewMessage::default() };
    let mut enqueue = Request::new(v1::EnqueueRequest {
        queue: "mails".to_owned(),
        messages: vec![message.clone(), message],
        all_or_nothing: false,
    });
    enqueue.metadata_mut().insert("traceparent", traceparent(TRACE).parse().unwrap());
    client.enqueue(enqueue).await.unwrap();
    let lease = v1::LeaseRequest { queue: "mails".to_owned(), limit: 2, ..v1::LeaseRequest::default() };
    let held = client.lease(lease).await.unwrap().into_inner().messages;
    let delivered: Vec<String> = held.iter().map(|message| message.headers["traceparent"].clone()).collect();
    let items = held.into_iter().map(|message| v1::Ack { receipt: message.receipt }).collect();
    client.ack(v1::AckRequest { items }).await.unwrap();
    drop(client);
    end(server).await;
    let received = received.lock().unwrap();
    let spans: Vec<&Span> = received.iter().map(|(_, span)| span).collect();
    assert_eq!(spans.len(), 4, "{spans:?}");
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
    for (send, process) in spans[..2].iter().zip(&spans[2..]) {
        assert_eq!((send.name.as_str(), hex(&send.parent_span_id).as_str()), ("send mails", PARENT));
        assert_eq!((process.name.as_str(), &process.parent_span_id), ("process mails", &send.span_id));
    }
    assert_eq!(spans[2..].iter().map(|span| context(span)).collect::<Vec<_>>(), delivered);
}

#[tokio::test]
async fn a_collector_that_is_not_there_costs_a_line_in_the_log() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let server = Server::with(&["--otlp-endpoint", &url]);
    let delivered = fail_once(&server).await;
    assert!(delivered.iter().all(|context| context.contains(TRACE)), "{delivered:?}");
    let server = end(server).await;
    let log = std::fs::read_to_string(server.dir.path().join("log")).unwrap();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("traces") || line.contains("opentelemetry")).collect();
    assert!(lines.len() == 1 && lines[0].contains("traces cannot be sent"), "{log}");
}

#[tokio::test]
async fn a_ratio_leaves_out_what_nobody_asked_for() {
    let (url, received) = collector().await;
    let server = Server::with(&["--otlp-endpoint", &url, "--trace-ratio", "0"]);
    server.enqueue("orders", json!({"body": "work"})).await;
    let alone = server.lease("orders", json!({})).await.remove(0);
    assert!(alone["headers"]["traceparent"].as_str().unwrap().ends_with("-00"), "{alone}");
    server.enqueue("orders", json!({"body": "work", "headers": {"traceparent": traceparent(TRACE)}})).await;
    end(server).await;
    let names: Vec<String> = received.lock().unwrap().iter().map(|(_, span)| span.name.clone()).collect();
    assert_eq!(names, ["send orders"]);
}
