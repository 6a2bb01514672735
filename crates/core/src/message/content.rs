//! What a message carries: body, content type, headers, checkpoint.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::invalid::{Invalid, Problem};
use crate::limits::{
    BODY_BYTES_DEFAULT_MAX, CHECKPOINT_BYTES_MAX, CONTENT_TYPE_BYTES_MAX, HEADERS_BYTES_MAX,
};
use crate::text::text_type;

text_type! {
    /// The media type of a body, such as `application/json`.
    ContentType, field = "content_type", max = CONTENT_TYPE_BYTES_MAX, empty = false,
    allowed = "printable ASCII", |c| matches!(c, ' '..='~')
}

impl Default for ContentType {
    fn default() -> Self {
        Self::new("application/octet-stream").expect("a printable media type")
    }
}

/// The payload: bytes that pass through untouched.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Body(Bytes);

impl Body {
    /// A body within the default limit.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, Invalid> {
        Self::within(bytes, BODY_BYTES_DEFAULT_MAX)
    }

    /// A body within the limit that the operator set.
    pub fn within(bytes: impl Into<Bytes>, max: usize) -> Result<Self, Invalid> {
        let bytes = bytes.into();
        Invalid::check_length("body", bytes.len(), max, "bytes")?;
        Ok(Self(bytes))
    }

    /// The payload, shared, not copied.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for Body {
    /// Payloads may be secret and large; logs and test failures show the size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// What a consumer wrote down to go on from after a failure. Opaque.
#[derive(Clone, PartialEq, Eq)]
pub struct Checkpoint(Bytes);

impl Checkpoint {
    /// A checkpoint within its limit.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, Invalid> {
        let bytes = bytes.into();
        Invalid::check_length("checkpoint", bytes.len(), CHECKPOINT_BYTES_MAX, "bytes")?;
        Ok(Self(bytes))
    }

    /// The bytes the consumer wrote.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Pairs of strings that travel with a message, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// Checks every name and value and their size in all.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, Invalid> {
        let mut headers = BTreeMap::new();
        let mut size = 0;
        for (name, value) in pairs {
            check_name(&name)?;
            check_value(&value)?;
            size += name.len() + value.len();
            Invalid::check_length("headers", size, HEADERS_BYTES_MAX, "bytes")?;
            if headers.insert(name, value).is_some() {
                return Err(Invalid::unusable("headers", "a name must not occur twice"));
            }
        }
        Ok(Self(headers))
    }

    /// Puts a header in, in the place of one of the same name. Where it is not allowed, or has no room, nothing changes.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), Invalid> {
        check_name(name)?;
        check_value(&value)?;
        let before = self.get(name).map_or(0, |old| name.len() + old.len());
        let size = self.size() - before + name.len() + value.len();
        Invalid::check_length("headers", size, HEADERS_BYTES_MAX, "bytes")?;
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    /// The value of one header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All pairs, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Names and values together, in bytes.
    pub fn size(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::new("headers", Problem::Empty));
    }
    match name.bytes().position(|b| !b.is_ascii_graphic()) {
        Some(at) => {
            let allowed = "a header name is printable ASCII without spaces";
            Err(Invalid::new("headers", Problem::BadCharacter { at, allowed }))
        }
        None => Ok(()),
    }
}

fn check_value(value: &str) -> Result<(), Invalid> {
    match value.char_indices().find(|(_, c)| c.is_control() && *c != '\t') {
        Some((at, _)) => {
            let allowed = "a header value is text without control characters other than tab";
            Err(Invalid::new("headers", Problem::BadCharacter { at, allowed }))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_is_put_in_where_it_is_allowed_and_has_room() {
        let room = HEADERS_BYTES_MAX - "full".len();
        let mut headers = Headers::new([pair("full", &"x".repeat(room - 4))]).unwrap();
        headers.set("ab", "cd".to_owned()).unwrap();
        headers.set("ab", "ef".to_owned()).unwrap();
        let full = headers.clone();
        assert_eq!((headers.get("ab"), headers.size()), (Some("ef"), HEADERS_BYTES_MAX));
        for (name, value) in [("ab", "efg"), ("c", ""), ("a b", ""), ("", ""), ("ab", "\n")] {
            assert!(headers.set(name, value.to_owned()).is_err(), "{name}");
        }
        assert_eq!(headers, full);
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_body_over_the_limit_is_refused_with_both_numbers() {
        let error = Body::new(vec![0; BODY_BYTES_DEFAULT_MAX + 1]).unwrap_err();
        assert_eq!(error.to_string(), "body: is 1048577 bytes long, the limit is 1048576");
        assert!(Body::new(vec![0; BODY_BYTES_DEFAULT_MAX]).is_ok());
    }

    #[test]
    fn a_debug_print_shows_no_payload() {
        assert_eq!(format!("{:?}", Body::new("secret").unwrap()), "6 bytes");
    }

    #[test]
    fn headers_count_names_and_values_together() {
        let half = "x".repeat(HEADERS_BYTES_MAX / 2 - 1);
        assert!(Headers::new([pair("a", &half), pair("b", &half)]).is_ok());
        let error = Headers::new([pair("a", &half), pair("b", &half), pair("c", "")]).unwrap_err();
        assert_eq!(error.field, "headers");
    }

    #[test]
    fn a_header_that_could_split_a_line_is_refused() {
        for (name, value) in [("a\r\nb", "v"), ("a", "v\r\nx: y"), ("", "v"), ("a b", "v"), ("a", "\0")] {
            assert!(Headers::new([pair(name, value)]).is_err(), "{name:?}: {value:?}");
        }
        assert!(Headers::new([pair("a", "1"), pair("a", "2")]).is_err());
    }

    proptest! {
        #[test]
        fn accepted_headers_come_back_as_they_went_in(pairs: std::collections::BTreeMap<String, String>) {
            if let Ok(headers) = Headers::new(pairs.clone()) {
                let back: std::collections::BTreeMap<String, String> =
                    headers.iter().map(|(name, value)| pair(name, value)).collect();
                prop_assert_eq!(back, pairs);
            }
        }
    }
}
