//! Logs: for people on a terminal, as JSON for programs.

use std::io::{self, IsTerminal as _, Stderr, Write};

use tracing_subscriber::EnvFilter;

use crate::config::Wrong;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// The filter of log lines that a text means.
pub(crate) fn filter(text: &str) -> anyhow::Result<EnvFilter> {
    let wrong = |error| Wrong::value("log_level", format!("`{text}` is no filter of log lines: {error}"));
    EnvFilter::try_new(text).map_err(wrong)
}

/// Starts writing logs to the standard error.
pub(crate) fn start(format: LogFormat, text: &str) -> anyhow::Result<()> {
    let filter = filter(text)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(|| Plain(io::stderr()));
    let started = match format {
        LogFormat::Human => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logs: {error}"))
}

/// Writes what a terminal takes for text. The formats escape the control characters of ASCII; those above, which some
/// terminals obey as well, and the one at its end are escaped here, in a way that is right in JSON, too.
struct Plain<W = Stderr>(W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_all(line)?;
        Ok(line.len())
    }

    fn write_all(&mut self, mut line: &[u8]) -> io::Result<()> {
        while let Some((at, len, code)) = control(line) {
            self.0.write_all(&line[..at])?;
            write!(self.0, "\\u{code:04x}")?;
            line = &line[at + len..];
        }
        self.0.write_all(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The first control character beyond those that the formats escape: where it is, how long, and which.
fn control(line: &[u8]) -> Option<(usize, usize, u8)> {
    line.iter().enumerate().find_map(|(at, byte)| match (byte, line.get(at + 1)) {
        (0x7f, _) => Some((at, 1, 0x7f)),
        // Two bytes of UTF-8 from U+0080 to U+009F.
        (0xc2, Some(next @ 0x80..=0x9f)) => Some((at, 2, *next)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_might_obey_is_written_as_text_and_the_rest_as_it_is() {
        let written = |line: &str| {
            let mut plain = Plain(Vec::new());
            plain.write_all(line.as_bytes()).unwrap();
            String::from_utf8(plain.0).unwrap()
        };
        assert_eq!(written("é ü ñ \u{a0} 文字 🦀\n"), "é ü ñ \u{a0} 文字 🦀\n");
        assert_eq!(written("\u{9b}31m\u{7f}\u{80}x\u{9f}\n"), "\\u009b31m\\u007f\\u0080x\\u009f\n");
        let line = "{\"error\":\"a\u{9b}b\"}";
        let json: serde_json::Value = serde_json::from_str(&written(line)).unwrap();
        assert_eq!(json["error"], "a\u{9b}b", "JSON says the same");
    }
}
