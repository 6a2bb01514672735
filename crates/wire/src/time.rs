//! A point in time, as RFC 3339 writes it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A point in time: milliseconds since the Unix epoch, written as RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(ms) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{}", jiff::Timestamp::MAX),
        }
    }
}

impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "must be a time as RFC 3339 writes it, such as 2030-01-31T12:00:00.000Z";
        let time: jiff::Timestamp = text.parse().map_err(|_| WRONG)?;
        u64::try_from(time.as_millisecond()).map(Self).map_err(|_| "must not lie before 1970")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl ToSchema for Time {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc_with_milliseconds_and_read_back() {
        assert_eq!(Time(1_704_067_200_000).to_string(), "2024-01-01T00:00:00.000Z");
        assert_eq!(Time(253_402_300_799_999).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!("2024-01-01T01:00:00+01:00".parse(), Ok(Time(1_704_067_200_000)));
        for text in ["", "yesterday", "2024-01-01", "1969-12-31T23:59:59Z", "2024-13-01T00:00:00Z"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }
}
