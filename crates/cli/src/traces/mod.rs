//! Traces over OTLP. In a build without the feature `otel` there are none.

#[cfg(feature = "otel")]
mod names;
#[cfg(feature = "otel")]
mod otlp;
#[cfg(not(feature = "otel"))]
mod without;

#[cfg(feature = "otel")]
pub(crate) use otlp::Exporter;
#[cfg(not(feature = "otel"))]
pub(crate) use without::Exporter;
