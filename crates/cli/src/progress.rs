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

    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    pub(crate) fn at(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Says a line without tearing the bar.
    pub(crate) fn say(&self, output: &Output, text: &str) {
        self.bar.suspend(|| output.say(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
