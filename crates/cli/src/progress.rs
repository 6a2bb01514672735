//! How far something is: a bar on a terminal, lines elsewhere, nothing where nobody wants to know.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// How often the bar is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// How far something is.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of `total` things; of an unknown number where there is none.
    pub(crate) fn new(output: &Output, what: &'static str, total: Option<u64>) -> Self {
        if !output.talks_to_person || output.quiet {
            return Self { bar: ProgressBar::hidden() };
        }
        let template = if total.is_some() {
            "redrive: {msg} [{bar:30}] {human_pos}/{human_len} {per_sec} {eta}"
        } else {
            "redrive: {msg} {human_pos} {per_sec} {elapsed}"
        };
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_message(what);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(TICK);
        Self { bar }
    }

    /// Of a file of so many bytes.
    pub(crate) fn bytes(output: &Output, total: u64) -> Self {
        let progress = Self::new(output, "0 lines", Some(total));
        let template = "redrive: [{bar:30}] {bytes}/{total_bytes} {eta} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            progress.bar.set_style(style.progress_chars("=> "));
        }
        progress
    }

    /// So many bytes and so many lines are done; one of them is what the bar is about.
    pub(crate) fn reached(&self, bytes: u64, lines: u64) {
        if self.bar.length().is_some() {
            self.bar.set_position(bytes);
            self.bar.set_message(format!("{lines} lines"));
        } else {
            self.bar.set_position(lines);
        }
    }

    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    pub(crate) fn at(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Prints something without tearing the bar.
    pub(crate) fn suspended<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
