//! Spans on their way to a collector: a bounded batch that nobody waits for, sent by a thread of its own.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::anyhow;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfig, BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanExporter, SpanLinks,
    SpanProcessor,
};
use redrive_broker::{Attempted, Sent, Span, Tracing};
use redrive_core::time::Timestamp;
use tonic::transport::Endpoint;

use super::names::{self, Named};

/// How long a collector may take to be reached.
const CONNECT: Duration = Duration::from_secs(5);
/// How long it may take to take a batch.
const SEND: Duration = Duration::from_secs(10);
/// Spans that wait to be sent. One call may bring a thousand: the usual 2,048 would be two of them.
const SPANS_MAX: usize = 16_384;

/// Tells a collector what the broker tells.
#[derive(Debug)]
pub(crate) struct Exporter(Arc<Batch>);

impl Exporter {
    /// Starts it, within the runtime that its connection lives in. Whether a collector is there is seen when there is
    /// something to send.
    pub(crate) fn start(endpoint: &str) -> anyhow::Result<Self> {
        let wrong = |error: &dyn Error| anyhow!("otlp_endpoint: `{endpoint}`: {error}");
        let channel = Endpoint::from_shared(endpoint.to_owned()).map_err(|error| wrong(&error))?;
        let channel = channel.connect_timeout(CONNECT).timeout(SEND).connect_lazy();
        let exporter = OtlpExporter::builder().with_tonic().with_channel(channel).build();
        let mut exporter = exporter.map_err(|error| wrong(&error))?;
        exporter.set_resource(&resource());
        let exporter = Patient { exporter, lost: AtomicU64::new(0) };
        let scope =
            InstrumentationScope::builder(names::SERVICE).with_version(env!("CARGO_PKG_VERSION")).build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch_config()).build();
        Ok(Self(Arc::new(Batch { processor, scope })))
    }

    pub(crate) fn tracing(&self) -> Arc<dyn Tracing> {
        Arc::<Batch>::clone(&self.0)
    }

    /// Sends what is left, as far as there is time for it.
    pub(crate) async fn flush(self, time: Duration) {
        let flushed = tokio::task::spawn_blocking(move || self.0.processor.shutdown_with_timeout(time)).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::warn!("the last traces could not be sent in time");
        }
    }
}

/// `OTEL_BSP_*` are heard.
fn batch_config() -> BatchConfig {
    let usual = BatchConfigBuilder::default();
    match std::env::var_os("OTEL_BSP_MAX_QUEUE_SIZE") {
        Some(_) => usual.build(),
        None => usual.with_max_queue_size(SPANS_MAX).build(),
    }
}

/// Who the spans are from. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` are heard.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_attribute(version);
    match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(name) if !name.is_empty() => resource.build(),
        _ => resource.with_service_name(names::SERVICE).build(),
    }
}

/// Spans that wait to be sent. When there are too many, the newest are lost.
#[derive(Debug)]
struct Batch {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

impl Batch {
    fn add(&self, span: Span, named: Named) {
        let context = span.context;
        let trace = TraceId::from(context.trace_id().get());
        let id = SpanId::from(context.span_id().get());
        self.processor.on_end(SpanData {
            span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::default()),
            parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from(parent.get())),
            parent_span_is_remote: span.parent.is_some(),
            span_kind: named.kind,
            name: named.name,
            start_time: time(span.start),
            end_time: time(span.end),
            attributes: named.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: named.status,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(at.as_millis())
}

impl Tracing for Batch {
    fn sent(&self, sent: Sent<'_>) {
        self.add(sent.span, names::sent(&sent));
    }

    fn attempted(&self, attempted: Attempted<'_>) {
        self.add(attempted.span, names::attempted(&attempted));
    }
}

/// Bears with a collector that is not there: one log line when it is missed, one when it is back.
#[derive(Debug)]
struct Patient {
    exporter: OtlpExporter,
    /// Spans that could not be sent since the last that could.
    lost: AtomicU64,
}

impl SpanExporter for Patient {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        match self.exporter.export(batch).await {
            Ok(()) => {
                let lost = self.lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    tracing::info!(lost, "traces are sent again");
                }
            }
            Err(error) => {
                if self.lost.fetch_add(count, Ordering::Relaxed) == 0 {
                    tracing::warn!(%error, "traces cannot be sent; they are lost until they can");
                }
            }
        }
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
