//! Spans of time as people write them: `250ms`, `1.5s`, `5m`, `1h30m`, `7d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// The units, the largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The longest span that is taken: a hundred years, so that no time plus a span is ever too large.
const DAYS_MAX: u64 = 36_500;

/// A span of time, in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(u64);

/// What is no span.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum InvalidSpan {
    /// There is no number, or something else between.
    #[error("must be a span such as 250ms, 1.5s, 5m, 12h or 7d")]
    Shape,
    /// A bare number may mean anything.
    #[error("has no unit: write {0}s for seconds, or {0}ms, {0}m, {0}h, {0}d")]
    NoUnit(String),
    /// Such as `5y`.
    #[error("`{0}` is no unit: ms, s, m, h and d are")]
    UnknownUnit(String),
    /// Such as `5s1h`, which is more likely a mistake than meant.
    #[error("its units must go from large to small")]
    Order,
    /// Such as `0.5ms`.
    #[error("a millisecond is the shortest span")]
    TooFine,
    /// More than anybody waits.
    #[error("must be {DAYS_MAX}d at most")]
    TooLong,
}

impl Span {
    pub(crate) const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    pub(crate) const fn millis(self) -> u64 {
        self.0
    }

    pub(crate) const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The same for people who look at it: its two largest parts.
    pub(crate) fn rough(self) -> String {
        let mut left = self.0;
        let mut parts = Vec::new();
        for (unit, size) in UNITS {
            if left >= size {
                parts.push((left / size, unit));
            } else if !parts.is_empty() {
                break;
            }
            left %= size;
        }
        // Seconds say enough where there are any.
        parts.retain(|(_, unit)| *unit != "ms" || self.0 < 1_000);
        parts.truncate(2);
        let parts: Vec<String> = parts.iter().map(|(count, unit)| format!("{count}{unit}")).collect();
        if parts.is_empty() { "0s".to_owned() } else { parts.concat() }
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.duration()
    }
}

/// Exactly, so that it is read back as the same.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (whole, ms) = (self.0 / 60_000 * 60_000, self.0 % 60_000);
        let mut left = whole;
        for (unit, size) in UNITS.iter().filter(|(_, size)| *size >= 60_000) {
            if left >= *size {
                write!(f, "{}{unit}", left / size)?;
            }
            left %= size;
        }
        match (ms / 1_000, ms % 1_000) {
            (0, 0) => Ok(()),
            (0, ms) => write!(f, "{ms}ms"),
            (s, 0) => write!(f, "{s}s"),
            (s, ms) => write!(f, "{s}.{}s", format!("{ms:03}").trim_end_matches('0')),
        }
    }
}

impl FromStr for Span {
    type Err = InvalidSpan;

    fn from_str(text: &str) -> Result<Self, InvalidSpan> {
        if text.is_empty() {
            return Err(InvalidSpan::Shape);
        }
        let (mut rest, mut total, mut before) = (text, 0_u64, u64::MAX);
        while !rest.is_empty() {
            let (number, behind) = split(rest, |c| c.is_ascii_digit() || c == '.');
            let (unit, behind) = split(behind, |c| c.is_ascii_alphabetic() || c == 'µ');
            if number.is_empty() || (unit.is_empty() && !behind.is_empty()) {
                return Err(InvalidSpan::Shape);
            }
            if unit.is_empty() {
                return Err(InvalidSpan::NoUnit(number.to_owned()));
            }
            let size = size_of(unit)?;
            if size >= before {
                return Err(InvalidSpan::Order);
            }
            total = total.checked_add(times(number, size)?).ok_or(InvalidSpan::TooLong)?;
            (rest, before) = (behind, size);
        }
        if total > DAYS_MAX * 86_400_000 { Err(InvalidSpan::TooLong) } else { Ok(Self(total)) }
    }
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn size_of(unit: &str) -> Result<u64, InvalidSpan> {
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    found.map(|(_, size)| *size).ok_or_else(|| InvalidSpan::UnknownUnit(unit.to_owned()))
}

/// A decimal number times a unit, exactly.
fn times(number: &str, size: u64) -> Result<u64, InvalidSpan> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(InvalidSpan::Shape);
    }
    let whole: u64 = whole.parse().map_err(|_| InvalidSpan::TooLong)?;
    let fraction = fraction.trim_end_matches('0');
    // A day has fewer than nine digits of milliseconds: what is finer is no whole number of them.
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).unwrap_or(u32::MAX));
    let scale = scale.filter(|_| fraction.len() <= 9).ok_or(InvalidSpan::TooFine)?;
    let part = if fraction.is_empty() { 0 } else { fraction.parse().unwrap_or(0) } * size;
    if !part.is_multiple_of(scale) {
        return Err(InvalidSpan::TooFine);
    }
    whole.checked_mul(size).and_then(|whole| whole.checked_add(part / scale)).ok_or(InvalidSpan::TooLong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, ms) in [
            ("0s", 0),
            ("250ms", 250),
            ("1s", 1_000),
            ("1.5s", 1_500),
            ("0.001s", 1),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("12h", 43_200_000),
            ("7d", 604_800_000),
            ("0.5d", 43_200_000),
            ("1.50s", 1_500),
            ("36500d", 36_500 * 86_400_000),
        ] {
            assert_eq!(text.parse(), Ok(Span(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_told_why() {
        for (text, wrong) in [
            ("", InvalidSpan::Shape),
            ("s", InvalidSpan::Shape),
            ("-5s", InvalidSpan::Shape),
            ("5 s", InvalidSpan::Shape),
            ("1..5s", InvalidSpan::Shape),
            (".5s", InvalidSpan::Shape),
            ("5.s", InvalidSpan::Shape),
            ("30", InvalidSpan::NoUnit("30".to_owned())),
            ("1m30", InvalidSpan::NoUnit("30".to_owned())),
            ("5y", InvalidSpan::UnknownUnit("y".to_owned())),
            ("5µs", InvalidSpan::UnknownUnit("µs".to_owned())),
            ("5S", InvalidSpan::UnknownUnit("S".to_owned())),
            ("5s1h", InvalidSpan::Order),
            ("1s1s", InvalidSpan::Order),
            ("0.5ms", InvalidSpan::TooFine),
            ("0.0001s", InvalidSpan::TooFine),
            ("0.3333333333d", InvalidSpan::TooFine),
            ("36501d", InvalidSpan::TooLong),
            ("99999999999999999999d", InvalidSpan::TooLong),
            ("18446744073709551615h", InvalidSpan::TooLong),
        ] {
            assert_eq!(text.parse::<Span>(), Err(wrong), "{text}");
        }
        let said = "30".parse::<Span>().unwrap_err().to_string();
        assert_eq!(said, "has no unit: write 30s for seconds, or 30ms, 30m, 30h, 30d");
    }

    #[test]
    fn a_rough_span_has_two_parts() {
        for (ms, text) in [
            (0, "0s"),
            (250, "250ms"),
            (12_900, "12s"),
            (192_000, "3m12s"),
            (60_000, "1m"),
            (3_600_001, "1h"),
            (90_061_001, "1d1h"),
        ] {
            assert_eq!(Span(ms).rough(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(ms in 0..=DAYS_MAX * 86_400_000) {
            prop_assert_eq!(Span(ms).to_string().parse(), Ok(Span(ms)));
        }

        #[test]
        fn no_text_is_too_much(text in "[0-9.a-z µ-]{0,24}") {
            if let Ok(span) = text.parse::<Span>() {
                prop_assert!(span.0 <= DAYS_MAX * 86_400_000);
            }
        }
    }
}
