//! What a check found.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Ok,
    /// It works, and somebody should look at it.
    Warn,
    /// It does not work.
    Fail,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) name: &'static str,
    pub(super) sentence: String,
}

impl Finding {
    pub(super) fn ok(name: &'static str, sentence: impl Into<String>) -> Self {
        Self { level: Level::Ok, name, sentence: sentence.into() }
    }

    pub(super) fn warn(name: &'static str, sentence: impl Into<String>) -> Self {
        Self { level: Level::Warn, name, sentence: sentence.into() }
    }

    pub(super) fn fail(name: &'static str, sentence: impl Into<String>) -> Self {
        Self { level: Level::Fail, name, sentence: sentence.into() }
    }

    /// A warning where something holds, and otherwise no more than a note.
    pub(super) fn warn_if(holds: bool, name: &'static str, sentence: impl Into<String>) -> Self {
        if holds { Self::warn(name, sentence) } else { Self::ok(name, sentence) }
    }
}

/// A line for each.
pub(super) fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or_default();
    let line = |finding: &Finding| {
        let level = match finding.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        };
        // What a file or a server says may have lines of its own.
        let sentence = finding.sentence.replace('\n', "; ");
        format!("{level:<4}  {:<width$}  {}\n", finding.name, crate::output::printable(&sentence))
    };
    findings.iter().map(line).collect::<Vec<String>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line() {
        let findings = [Finding::ok("clock", "runs"), Finding::fail("configuration", "a\nb\u{1b}")];
        assert_eq!(text(&findings), "ok    clock          runs\nfail  configuration  a; b\\u{1b}\n");
        assert_eq!(Finding::warn_if(true, "a", "b").level, Level::Warn);
        assert!(Level::Ok < Level::Warn && Level::Warn < Level::Fail);
    }
}
