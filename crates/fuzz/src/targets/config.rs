//! The configuration of the server.

use super::text;
use crate::trial::note;

/// A file of configuration.
pub fn file(input: &[u8]) {
    configured(text(input), Some(""));
}

/// The variables of an environment, one on each line.
pub fn environment(input: &[u8]) {
    configured(Some(""), text(input));
}

fn configured(file: Option<&str>, environment: Option<&str>) {
    if let (Some(file), Some(environment)) = (file, environment)
        && let Err(problem) = redrive_cli::configured(file, environment)
    {
        note(problem);
    }
}
