//! Points in time as people write them: RFC 3339, or a span from now.

use std::str::FromStr;

use redrive_wire::Time;

use crate::span::Span;

/// A time, or a span before or after now. Whose now it is, and in which direction, the command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    At(Time),
    Span(Span),
}

impl When {
    /// The time, where the span lies before `now`.
    pub(crate) fn ago(self, now: Time) -> Time {
        match self {
            Self::At(time) => time,
            Self::Span(span) => Time(now.0.saturating_sub(span.millis())),
        }
    }

    /// The time, where the span lies after `now`.
    pub(crate) fn ahead(self, now: Time) -> Time {
        match self {
            Self::At(time) => time,
            Self::Span(span) => Time(now.0.saturating_add(span.millis())),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse(), text.parse::<Span>()) {
            (Ok(time), _) => Ok(Self::At(time)),
            (Err(_), Ok(span)) => Ok(Self::Span(span)),
            // Who wrote a date meant a time.
            (Err(wrong), Err(_)) if text.contains('-') || text.contains(':') => Err(wrong.to_owned()),
            (Err(_), Err(wrong)) => Err(format!("{wrong}; or a time such as 2030-01-31T12:00:00Z")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_a_span_is_meant() {
        let now = Time(1_000_000);
        let of = |text: &str| text.parse::<When>().unwrap();
        assert_eq!(of("1970-01-01T00:00:01Z").ago(now), Time(1_000));
        assert_eq!(of("1970-01-01T00:00:01Z").ahead(now), Time(1_000));
        assert_eq!((of("10s").ago(now), of("10s").ahead(now)), (Time(990_000), Time(1_010_000)));
        assert_eq!(of("1h").ago(now), Time(0), "nothing is older than 1970");
        let wrong = |text: &str| text.parse::<When>().unwrap_err();
        assert!(wrong("2030-01-31").starts_with("must be a time as RFC 3339 writes it"));
        assert!(wrong("30").starts_with("has no unit: write 30s"));
        assert!(wrong("soon").contains("or a time such as"));
    }
}
