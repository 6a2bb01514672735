//! The page in a browser, against the real binary: what is only looked at in the sources is not shown to work.
//!
//! The browser is Debian's; Playwright, which drives it, comes with the packages of the page.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{self, Failure};
use crate::{debian, npm, server};

/// Debian's, where nobody named another.
const CHROMIUM: &str = "/usr/bin/chromium";

pub(crate) fn run(root: &Path, features: &[&str]) -> Result<(), Failure> {
    npm::packages(root)?;
    chromium()?;
    let binary = server::build(root, features)?;
    let mut tests = npm::npm(root, &["run", "--silent", "browser"]);
    tests.env("REDRIVE_BIN", binary);
    command::run(tests)
}

/// Sees to it that Chromium is there: the very program that Playwright starts, see `web/playwright.config.ts`.
fn chromium() -> Result<(), Failure> {
    let named = env::var_os("REDRIVE_CHROMIUM");
    let program = named.clone().unwrap_or_else(|| CHROMIUM.into());
    if answers(&program) {
        return Ok(());
    }
    // One that somebody named is not made by installing another.
    if named.is_some() {
        return Err(Failure::NotInstalled {
            tool: "the program of REDRIVE_CHROMIUM",
            remedy: "name one that runs",
        });
    }
    let missing = Failure::NotInstalled { tool: CHROMIUM, remedy: "apt-get install chromium" };
    match debian::install("chromium") {
        Ok(()) if answers(&program) => Ok(()),
        _ => Err(missing),
    }
}

/// Whether a program says its version, and ends well.
fn answers(program: &OsStr) -> bool {
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_as_none() {
        assert!(answers(OsStr::new("true")));
        assert!(!answers(OsStr::new("false")));
        assert!(!answers(OsStr::new("/nowhere/chromium")));
    }
}
