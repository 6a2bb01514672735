//! Whether a server could be started so.

use super::fallback;
use super::finding::Finding;
use crate::config::Config;
use crate::serve::ServeArguments;

const NAME: &str = "configuration";

/// The configuration, or the default one where it is wrong.
pub(super) fn check(serve: ServeArguments) -> (Config, Vec<Finding>) {
    let checked = serve.sources().and_then(|sources| {
        let said = match sources.file() {
            Some(file) => format!("{} and the environment are right", file.display()),
            None => "the defaults hold, with what the environment says".to_owned(),
        };
        Ok((sources.startable()?, said))
    });
    match checked {
        Ok((config, said)) => (config, vec![Finding::ok(NAME, said)]),
        Err(error) => (fallback(), vec![Finding::fail(NAME, format!("{error:#}"))]),
    }
}
