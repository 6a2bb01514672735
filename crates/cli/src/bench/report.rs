//! Tables for people, one document for programs, and bars for both.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::measure::median;

/// What one arm did in one round.
#[derive(Debug, Serialize)]
struct Row {
    group: &'static str,
    arm: &'static str,
    round: u32,
    #[serde(serialize_with = "as_map")]
    figures: Vec<(&'static str, f64)>,
}

/// In the order in which they were measured.
fn as_map<S: Serializer>(figures: &[(&'static str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(figures.iter().copied())
}

impl Row {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.figures.iter().map(|(name, _)| *name)
    }
}

/// On which side of its limit a figure has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

/// What was promised, and what was measured.
#[derive(Debug, Serialize)]
struct Bar {
    name: &'static str,
    measured: f64,
    limit: f64,
    ok: bool,
}

/// What the figures depend on.
#[derive(Debug, Serialize)]
struct Machine {
    cpus: usize,
    cpu: String,
    kernel: String,
    filesystem: String,
    version: &'static str,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: Machine,
    rounds: Vec<Row>,
    bars: Vec<Bar>,
}

impl Report {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { machine: Machine::of(dir), rounds: Vec::new(), bars: Vec::new() }
    }

    /// One arm of one round.
    pub(crate) fn row(
        &mut self,
        group: &'static str,
        arm: &'static str,
        round: u32,
        figures: &[(&'static str, f64)],
    ) {
        self.rounds.push(Row { group, arm, round, figures: figures.to_vec() });
    }

    /// The median of the rounds against a limit. A figure that is not a number was not measured, and is short.
    pub(crate) fn judge(&mut self, name: &'static str, rounds: &[f64], limit: Limit) {
        let measured = median(rounds);
        let (limit, ok) = match limit {
            Limit::AtLeast(limit) => (limit, measured >= limit),
            Limit::AtMost(limit) => (limit, measured <= limit),
        };
        self.bars.push(Bar { name, measured, limit, ok });
    }

    pub(crate) fn any_short(&self) -> bool {
        self.bars.iter().any(|bar| !bar.ok)
    }

    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        let text = if json { serde_json::to_string_pretty(self)? + "\n" } else { self.text()? };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let Machine { cpus, cpu, kernel, filesystem, version } = &self.machine;
        writeln!(text, "redrive    {version}\ncpu        {cpus} x {cpu}")?;
        writeln!(text, "kernel     {kernel}\nfilesystem {filesystem}")?;
        for rows in self.rounds.chunk_by(|one, next| one.group == next.group) {
            let Some(first) = rows.first() else { continue };
            writeln!(text, "\n== {}", first.group)?;
            // Arms that have the same figures share their headings.
            for alike in rows.chunk_by(|one, next| one.names().eq(next.names())) {
                table(&mut text, alike)?;
            }
        }
        if !self.bars.is_empty() {
            writeln!(text)?;
        }
        for Bar { name, measured, limit, ok } in &self.bars {
            writeln!(text, "bar {name} {measured:.3} {limit:.3} {}", if *ok { "ok" } else { "short" })?;
        }
        Ok(text)
    }
}

fn table(text: &mut String, rows: &[Row]) -> std::fmt::Result {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut lines = vec![vec!["arm".to_owned(), "round".to_owned()]];
    lines[0].extend(first.names().map(str::to_owned));
    for row in rows {
        let mut line = vec![row.arm.to_owned(), row.round.to_string()];
        line.extend(row.figures.iter().map(|(_, value)| figure(*value)));
        lines.push(line);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, &w)| format!("{cell:>w$}")).collect();
        writeln!(text, "{}", cells.join("  "))?;
    }
    Ok(())
}

/// As many digits as mean something.
fn figure(value: f64) -> String {
    if value.abs() >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

impl Machine {
    fn of(dir: &Path) -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu.lines().find(|line| line.starts_with("model name"));
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: model
                .and_then(|line| line.split_once(':'))
                .map_or("unknown", |(_, name)| name.trim())
                .into(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            filesystem: filesystem(dir),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The type of the file system that is mounted nearest above `dir`.
fn filesystem(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let nearest = mounted.filter(|(at, _)| dir.starts_with(at)).max_by_key(|(at, _)| at.len());
    nearest.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_judged_on_its_side_by_the_median() {
        let mut report = Report::new(Path::new("/"));
        report.judge("rate", &[0.3, 0.5, 0.6], Limit::AtLeast(0.4));
        report.judge("cost", &[14.0, 16.0, 15.0], Limit::AtMost(15.0));
        assert!(!report.any_short());
        report.judge("lost", &[], Limit::AtMost(15.0));
        assert!(report.any_short(), "what was not measured does not hold");
        let text = report.text().unwrap();
        assert!(text.contains("bar rate 0.500 0.400 ok\nbar cost 15.000 15.000 ok\nbar lost NaN"), "{text}");
    }

    #[test]
    fn rows_of_a_group_stand_under_their_headings() {
        let mut report = Report::new(Path::new("/"));
        report.row("g", "one", 1, &[("cycles/s", 12_345.6), ("us", 1.5)]);
        report.row("g", "two", 1, &[("ms", 2.0)]);
        let text = report.text().unwrap();
        let table = "== g\narm  round  cycles/s    us\none      1     12346  1.50\narm  round    ms\ntwo      1  2.00\n";
        assert!(text.contains(table), "{text}");
        assert_eq!(serde_json::to_value(&report).unwrap()["rounds"][0]["figures"]["us"], 1.5);
    }
}
