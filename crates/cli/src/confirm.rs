//! What cannot be undone is shown first, and asked about.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use serde_json::json;

use crate::output::{Format, Output, printable};
use crate::remote::Failure;

/// The flags of a command that cannot be undone.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Consent {
    /// Does it without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Says what it would do, and changes nothing.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
}

impl Consent {
    /// Whether to go on with something that changes so many things. `what` is what would be done, such as `discard 3 dead
    /// messages of orders`. A dry run is printed as data and goes no further; without a terminal nobody can be asked.
    pub(crate) async fn given(self, output: &Output, what: &str, count: u64) -> Result<bool, Failure> {
        if self.dry_run {
            let said = match output.format {
                Format::Json | Format::Ndjson => json!({"matched": count}).to_string(),
                Format::Yaml => format!("matched: {count}"),
                Format::Id => count.to_string(),
                Format::Table => format!("would {}", printable(what)),
            };
            return output.line(&said).map(|()| false);
        }
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() || !output.talks_to_person {
            return Err(Failure::Usage(format!(
                "this would {what}: say --yes to do it, or --dry-run to look"
            )));
        }
        let agreed = ask(format!("redrive: this will {}. Go on? [y/N] ", printable(what))).await?;
        if agreed { Ok(true) } else { Err(Failure::Declined) }
    }
}

/// Asks, and reads a line on a thread of its own: whoever is asked may press Ctrl-C.
async fn ask(question: String) -> Result<bool, Failure> {
    let asked = tokio::task::spawn_blocking(move || {
        // Stderr is free again before anybody answers: on Ctrl-C there is something to say.
        std::io::stderr().write_all(question.as_bytes())?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok(is_yes(&line))
    });
    let failed = |error| Failure::Io("asking".to_owned(), error);
    asked.await.map_err(|error| failed(std::io::Error::other(error)))?.map_err(failed)
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(is_yes("y\n") && is_yes("YES\r\n") && is_yes(" yes "));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("no") && !is_yes("yesterday"));
    }
}
