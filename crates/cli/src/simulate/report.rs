//! What a simulation found, for people and for programs.

use serde::Serialize;

use super::chart;
use super::schedule::{Band, Schedule};
use super::tally::{COLUMNS, Tally};
use super::world::{Look, Setting};
use crate::span::Span;

/// Whether and when the largest backlog was worked off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Drains {
    /// Nothing ever waited.
    Nothing,
    /// It was.
    Drained,
    /// Not before the simulation ended, though there are enough workers.
    Later,
    /// More work comes in than the workers can do.
    Never,
}

/// One part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    from_ms: u64,
    fresh: u64,
    retries: u64,
    backlog: u64,
}

/// What a simulation found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    length_ms: u64,
    seed: u64,
    pub(super) arrived: u64,
    pub(super) handed_out: u64,
    pub(super) retries: u64,
    /// Retries for each fresh message that was handed out.
    pub(super) retry_load: f64,
    /// How much of the workers' time is asked for while there is no outage; `null` where no number of them is enough.
    pub(super) utilisation: Option<f64>,
    /// Hand-outs while both lanes had work.
    pub(super) contested: u64,
    /// The share of fresh messages in those.
    pub(super) fresh_share: Option<f64>,
    pub(super) fresh_wait_p50_ms: u64,
    pub(super) fresh_wait_p99_ms: u64,
    pub(super) done: u64,
    pub(super) dead: u64,
    pub(super) ready: u64,
    pub(super) delayed: u64,
    pub(super) running: u64,
    pub(super) backlog_max: u64,
    backlog_max_at_ms: u64,
    pub(super) drains: Drains,
    drained_at_ms: Option<u64>,
    outage_ms: Option<(u64, u64)>,
    chart: Vec<Part>,
}

impl Report {
    pub(super) fn of(setting: &Setting, tally: &Tally, end: Look) -> Self {
        let part = |(n, column): (usize, &super::tally::Column)| Part {
            from_ms: setting.length.get() / COLUMNS as u64 * n as u64,
            fresh: column.fresh,
            retries: column.retries,
            backlog: column.backlog,
        };
        let utilisation = utilisation(setting);
        Self {
            length_ms: setting.length.get(),
            seed: setting.seed,
            arrived: tally.arrived,
            handed_out: tally.fresh + tally.retries,
            retries: tally.retries,
            retry_load: ratio(tally.retries, tally.fresh).unwrap_or_default(),
            utilisation: utilisation.is_finite().then_some(utilisation),
            contested: tally.contested,
            fresh_share: ratio(tally.contested_fresh, tally.contested),
            fresh_wait_p50_ms: tally.waits.value_at_quantile(0.5),
            fresh_wait_p99_ms: tally.waits.value_at_quantile(0.99),
            done: tally.done,
            dead: tally.dead,
            ready: end.ready,
            delayed: end.delayed,
            running: end.running,
            backlog_max: tally.peak.0,
            backlog_max_at_ms: tally.peak.1.as_millis(),
            drains: match tally.drained {
                _ if tally.peak.0 == 0 => Drains::Nothing,
                Some(_) => Drains::Drained,
                None if utilisation < 1.0 => Drains::Later,
                None => Drains::Never,
            },
            drained_at_ms: tally.drained.map(redrive_core::time::Timestamp::as_millis),
            outage_ms: setting.outage.map(|(from, until)| (from.as_millis(), until.as_millis())),
            chart: tally.columns.iter().enumerate().map(part).collect(),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let seconds = |n: u64| per(n, self.length_ms);
        let mut rows = Vec::new();
        let mut row = |name: &str, what: String| rows.push(format!("{name:<20}{what}\n"));
        if let Some((from, until)) = self.outage_ms {
            row("outage", format!("from {} to {}: every attempt fails", ms(from), ms(until)));
        }
        row("arrived", format!("{}, {:.1} a second", self.arrived, seconds(self.arrived)));
        let added = self.retry_load * 100.0;
        row("handed out", format!("{}, {:.1} a second", self.handed_out, seconds(self.handed_out)));
        row(
            "retries",
            format!("{}, {:.1} a second: they add {added:.1} %", self.retries, seconds(self.retries)),
        );
        row("utilisation", self.busy());
        row("fresh share", self.share());
        let (p50, p99) = (ms(self.fresh_wait_p50_ms), ms(self.fresh_wait_p99_ms));
        row("wait of fresh work", format!("p50 {p50}, p99 {p99}"));
        row("done", self.done.to_string());
        row(
            "dead",
            format!("{}, {:.2} %", self.dead, ratio(self.dead, self.arrived).unwrap_or_default() * 100.0),
        );
        row(
            "at the end",
            format!("{} ready, {} delayed, {} running", self.ready, self.delayed, self.running),
        );
        row("largest backlog", format!("{}, {} in", self.backlog_max, ms(self.backlog_max_at_ms)));
        row("backlog drains", self.drained());
        format!("{}\n{}", rows.concat(), self.drawn())
    }

    fn busy(&self) -> String {
        match self.utilisation {
            Some(busy) if self.outage_ms.is_some() => format!("{busy:.2} outside of the outage"),
            Some(busy) => format!("{busy:.2}"),
            None => "without end: what always fails is retried for ever".to_owned(),
        }
    }

    fn share(&self) -> String {
        match self.fresh_share {
            Some(share) => {
                format!("{:.1} % of {} hand-outs while both lanes had work", share * 100.0, self.contested)
            }
            None => "both lanes never had work at once".to_owned(),
        }
    }

    fn drained(&self) -> String {
        match self.drains {
            Drains::Nothing => "nothing ever waited for a worker".to_owned(),
            Drains::Drained => {
                let at = self.drained_at_ms.unwrap_or_default();
                format!(
                    "{} in, {} after it was largest",
                    ms(at),
                    ms(at.saturating_sub(self.backlog_max_at_ms))
                )
            }
            Drains::Later => format!("not within {}; a longer --for shows when", ms(self.length_ms)),
            Drains::Never => "never: more work comes in than these workers can do".to_owned(),
        }
    }

    fn drawn(&self) -> String {
        let line = |name: &str, value: fn(&Part) -> u64, unit: &str, scale: &dyn Fn(u64) -> String| {
            let most = self.chart.iter().map(value).max().unwrap_or_default();
            let blocks = chart::line(self.chart.iter().map(value));
            format!("{name:<12}│{blocks}│ at most {}{unit}\n", scale(most))
        };
        let part = (self.length_ms / COLUMNS as u64).max(1);
        let rate = |n: u64| format!("{:.1}", per(n, part));
        let mut text = line("fresh", |part| part.fresh, " a second", &rate);
        text += &line("retries", |part| part.retries, " a second", &rate);
        text += &line("backlog", |part| part.backlog, "", &|n| n.to_string());
        let end = ms(self.length_ms);
        text + &format!("{:<13}0s{end:>width$}\n", "", width = COLUMNS - 2)
    }
}

/// How many workers' time is asked for, of those that are there: a message takes so many attempts on average.
fn utilisation(setting: &Setting) -> f64 {
    let fails = setting.failure_rate;
    let attempts = match setting.terms.policy.max_attempts {
        Some(max) if fails >= 1.0 => f64::from(max.get()),
        Some(max) => (1.0 - fails.powf(f64::from(max.get()))) / (1.0 - fails),
        None if fails >= 1.0 => f64::INFINITY,
        None => 1.0 / (1.0 - fails),
    };
    #[expect(clippy::cast_precision_loss, reason = "a run time is far below 2^53 ms")]
    let run_time = setting.run_time.get() as f64 / 1_000.0;
    setting.arrival_rate * attempts * run_time / f64::from(setting.workers)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn per(n: u64, length_ms: u64) -> f64 {
    ratio(n, length_ms).unwrap_or_default() * 1_000.0
}

fn ms(ms: u64) -> String {
    Span::from_millis(ms).to_string()
}

/// A schedule for people.
pub(super) fn table(schedule: &Schedule) -> String {
    let mut rows = vec![["ATTEMPT".to_owned(), "STARTS".to_owned(), "DELAY AFTER IT".to_owned()]];
    for row in &schedule.attempts {
        let delay = row.delay.map_or_else(|| "dead".to_owned(), band);
        rows.push([row.attempt.to_string(), band(row.starts), delay]);
    }
    let width = |n: usize| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or_default() + 2;
    let (first, second) = (width(0), width(1));
    let line =
        |[attempt, starts, delay]: &[String; 3]| format!("{attempt:<first$}{starts:<second$}{delay}\n");
    format!("{}\n{}", rows.iter().map(line).collect::<Vec<String>>().concat(), summed_up(schedule))
}

fn summed_up(schedule: &Schedule) -> String {
    let listed = schedule.attempts.len();
    let more = match schedule.more {
        Some(0) => String::new(),
        Some(more) => format!("{more} more attempts follow those {listed}.\n"),
        None => format!("The first {listed} attempts: there is no last one.\n"),
    };
    let dead = match (schedule.max_attempts, schedule.dead_after) {
        (Some(max), _) if max.get() == 1 => "Dead after the first failure.\n".to_owned(),
        (Some(max), Some(dead)) => {
            format!("Dead after {max} failures, {} after the first.\n", band(dead))
        }
        _ => "Never dead.\n".to_owned(),
    };
    more + &dead
}

fn band(band: Band) -> String {
    let usual = ms(band.usual);
    if band.low == band.high { usual } else { format!("{usual} ({}–{})", ms(band.low), ms(band.high)) }
}
