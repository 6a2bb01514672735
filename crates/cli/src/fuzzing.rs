//! The library of the program: nothing but what the fuzz targets may call of it, and nothing at all without them.

#![doc(hidden)]
#![cfg_attr(
    feature = "fuzzing",
    expect(dead_code, unused_imports, reason = "most of these modules is the program's")
)]

#[cfg(feature = "fuzzing")]
mod config;
#[cfg(feature = "fuzzing")]
mod events {
    pub(crate) mod sse;
}
#[cfg(feature = "fuzzing")]
mod exposure;
#[cfg(feature = "fuzzing")]
mod key;
#[cfg(feature = "fuzzing")]
mod logs;
#[cfg(feature = "fuzzing")]
mod port;
#[cfg(feature = "fuzzing")]
mod span;
#[cfg(feature = "fuzzing")]
mod store;
#[cfg(feature = "fuzzing")]
mod webhooks;

/// What a file and an environment make together, one over the other; the environment has a variable on each line. Says
/// what was refused.
#[cfg(feature = "fuzzing")]
pub fn configured(file: &str, environment: &str) -> Result<(), String> {
    let said = |error: anyhow::Error| format!("{error:#}");
    let (written, _) = config::Layer::written(file).map_err(|problems| problems.to_string())?;
    let variable = |name: &str| {
        let of = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        environment.lines().find_map(of)
    };
    let set = config::Layer::environment(variable).map_err(said)?;
    let config = config::Config::of(set.over(written)).map_err(said)?;
    let broker = &config.broker;
    assert!(broker.defaults.check().is_ok(), "settings were accepted that no queue may have");
    assert!((1..=1_024).contains(&config.workers) && broker.overdue_check_interval.get() >= 10);
    assert!(config.traces.is_none_or(|target| target.endpoint.starts_with("http://")));
    Ok(())
}

/// Reads a span. What is taken is printed, and read again as the same. Says what was refused.
#[cfg(feature = "fuzzing")]
pub fn spanned(text: &str) -> Result<(), String> {
    let span: span::Span = text.parse().map_err(|wrong: span::InvalidSpan| wrong.to_string())?;
    assert_eq!(span.to_string().parse(), Ok(span), "{span}");
    assert!(!span.rough().is_empty());
    Ok(())
}

/// Reads a stream of events, whole and cut in two. Where it is cut does not matter. Says what was refused.
#[cfg(feature = "fuzzing")]
pub fn streamed(stream: &[u8], cut: usize) -> Result<(), String> {
    use events::sse::SseReader;
    let mut whole = SseReader::default();
    let events = whole.take(stream).map_err(|wrong| format!("{wrong:?}"))?;
    let (before, after) = stream.split_at(cut.min(stream.len()));
    let mut halves = SseReader::default();
    let first = halves.take(before).map_err(|wrong| format!("{wrong:?}"));
    let second = halves.take(after).map_err(|wrong| format!("{wrong:?}"));
    let (first, second) = (first?, second?);
    assert!(first.iter().chain(&second).eq(&events), "a cut at {cut} changed the events");
    assert_eq!(halves.retry_ms, whole.retry_ms);
    let line = |text: &str| !text.contains(['\n', '\r']);
    assert!(events.iter().all(|event| line(&event.id) && line(&event.name) && !event.name.is_empty()));
    Ok(())
}
