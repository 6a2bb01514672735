//! What stands in for the exporter in a build without it.

use std::sync::Arc;
use std::time::Duration;

use redrive_broker::Tracing;

/// There is none.
#[derive(Debug)]
pub(crate) enum Exporter {}

impl Exporter {
    pub(crate) fn start(endpoint: &str) -> anyhow::Result<Self> {
        anyhow::bail!(
            "otlp_endpoint: `{endpoint}` is set, but this build has no traces: the feature `otel` is off"
        )
    }

    pub(crate) fn tracing(&self) -> Arc<dyn Tracing> {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "the exporter waits here")]
    pub(crate) async fn flush(self, _time: Duration) {
        match self {}
    }
}
