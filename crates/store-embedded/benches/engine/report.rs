//! Tables for people, and bars for scripts.

use std::fmt::Display;

use crate::measure::median;

/// Rows under headings, printed when it is complete.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: &[&dyn Display]) {
        self.rows.push(cells.iter().map(ToString::to_string).collect());
    }

    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, &w)| format!("{cell:>w$}")).collect();
            println!("{}", cells.join("  "));
        }
    }
}

/// On which side of its limit a figure has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Debug)]
struct Bar {
    name: String,
    measured: f64,
    limit: Limit,
}

impl Bar {
    /// A figure that is not a number was not measured, and is short.
    fn holds(&self) -> bool {
        match self.limit {
            Limit::AtLeast(limit) => self.measured >= limit,
            Limit::AtMost(limit) => self.measured <= limit,
        }
    }
}

/// What was promised, and what was measured.
#[derive(Debug, Default)]
pub(crate) struct Bars(Vec<Bar>);

impl Bars {
    /// The median of the rounds against a limit.
    pub(crate) fn judge(&mut self, name: impl Into<String>, rounds: &[f64], limit: Limit) {
        self.0.push(Bar { name: name.into(), measured: median(rounds), limit });
    }

    pub(crate) fn any_short(&self) -> bool {
        self.0.iter().any(|bar| !bar.holds())
    }

    /// One line each: `bar <name> <measured> <limit> ok|short`.
    pub(crate) fn print(&self) {
        for bar in &self.0 {
            let (Limit::AtLeast(limit) | Limit::AtMost(limit)) = bar.limit;
            let verdict = if bar.holds() { "ok" } else { "short" };
            println!("bar {} {:.3} {limit:.3} {verdict}", bar.name, bar.measured);
        }
    }
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate a second, with its thousands apart.
pub(crate) fn rate(number: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive and small"
    )]
    grouped(number.round() as u64)
}

/// Bytes as megabytes.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
