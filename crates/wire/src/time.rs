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
        let (days, ms) = (self.0 / DAY_MS, self.0 % DAY_MS);
        let (year, month, day) = date(days);
        let (seconds, ms) = (ms / 1_000, ms % 1_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Year, month and day of a day since 1970. Years are counted from March, so that a leap day is the last of its year;
/// jiff ends two days before the last time that we know.
const fn date(days_since_1970: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days_since_1970 + DAYS_TO_1970;
    let (era, day) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + late, month, day)
}

impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "must be a time as RFC 3339 writes it, such as 2030-01-31T12:00:00.000Z";
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => {
                u64::try_from(time.as_millisecond()).map(Self).map_err(|_| "must not lie before 1970")
            }
            Err(_) => last_days(text).map(Self).ok_or(WRONG),
        }
    }
}

/// A time in UTC on the last two days of the year 9999, which are too late for jiff's timestamps and not for its dates. We
/// print them, so we must read them.
fn last_days(text: &str) -> Option<u64> {
    let time: jiff::civil::DateTime = text.strip_suffix('Z')?.parse().ok()?;
    let since_1970 = time.duration_since(jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0));
    u64::try_from(since_1970.as_millis()).ok().filter(|_| time.year() == 9999 && text.contains('T'))
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
        for text in [
            "1970-01-01T00:00:00.000Z",
            "2000-02-29T23:59:59.999Z",
            "2100-03-01T00:00:00.000Z",
            "2026-11-16T05:44:21.706Z",
            "9999-12-30T22:00:01.000Z",
            "9999-12-31T23:59:59.999Z",
        ] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!("2024-01-01T01:00:00+01:00".parse(), Ok(Time(1_704_067_200_000)));
        for text in
            ["", "yesterday", "2024-01-01", "1969-12-31T23:59:59Z", "2024-13-01T00:00:00Z", "9999-12-31Z"]
        {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }
}
