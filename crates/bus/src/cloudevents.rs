//! CloudEvents 1.0: events as others write and read them.
//!
//! *Structured*: one JSON object, with the data in it; a batch is an array of them. *Binary*: the data is the body, and every
//! attribute a header that begins with `ce-`.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use bytes::Bytes;
use data_encoding::BASE64;
use redrive_core::invalid::{Invalid, Problem};
use redrive_core::limits::{BATCH_ITEMS_MAX, DEDUP_KEY_BYTES_MAX, JSON_DEPTH_MAX};
use redrive_core::message::{Body, ContentType, DedupKey, Headers};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::event::{ATTRIBUTE_PREFIX, Event, EventType, NewEvent};
use crate::subscription::Format;

/// The media type of one event.
pub const MEDIA_TYPE: &str = "application/cloudevents+json";
/// The media type of several.
pub const BATCH_MEDIA_TYPE: &str = "application/cloudevents-batch+json";
const JSON: &str = "application/json";
/// The version that is spoken.
const SPEC_VERSION: &str = "1.0";
/// Attributes that are something else than text about the event.
const DATA: [&str; 2] = ["data", "data_base64"];
/// Longest name of an attribute, in bytes. The specification says that names should not be longer than 20.
const ATTRIBUTE_BYTES_MAX: usize = 64;

/// One event, as its JSON is.
type Object<'a> = std::collections::BTreeMap<String, &'a RawValue>;

/// Reads one event from its JSON.
pub fn structured(text: &[u8], body_bytes_max: usize) -> Result<NewEvent, Invalid> {
    event(&object(text)?, body_bytes_max)
}

/// Reads several events from their JSON.
pub fn batch(text: &[u8], body_bytes_max: usize) -> Result<Vec<NewEvent>, Invalid> {
    let all: Vec<&RawValue> = serde_json::from_slice(text)
        .map_err(|_| Invalid::unusable("events", "must be a JSON array of CloudEvents"))?;
    Invalid::check_length("events", all.len(), BATCH_ITEMS_MAX, "items")?;
    all.into_iter().map(|one| structured(one.get().as_bytes(), body_bytes_max)).collect()
}

/// Reads one event whose attributes are headers, given without their prefix.
pub fn binary<'a>(
    attributes: impl IntoIterator<Item = (&'a str, &'a str)>,
    content_type: Option<&str>,
    body: Bytes,
    body_bytes_max: usize,
) -> Result<NewEvent, Invalid> {
    let mut read = Attributes::default();
    for (name, value) in attributes {
        read.add(name, percent_decoded(value)?)?;
    }
    let content_type = content_type.map(ContentType::new).transpose()?.unwrap_or_default();
    read.event(Body::within(body, body_bytes_max)?, content_type)
}

fn object(text: &[u8]) -> Result<Object<'_>, Invalid> {
    if depth(text) > JSON_DEPTH_MAX {
        return Err(Invalid::new(
            "event",
            Problem::TooLong { actual: depth(text), max: JSON_DEPTH_MAX, unit: "levels" },
        ));
    }
    serde_json::from_slice(text)
        .map_err(|_| Invalid::unusable("event", "must be a CloudEvent as a JSON object"))
}

/// How deep JSON is nested, at most.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn event(object: &Object<'_>, body_bytes_max: usize) -> Result<NewEvent, Invalid> {
    let mut read = Attributes::default();
    for (name, value) in object.iter().filter(|(name, _)| !DATA.contains(&name.as_str())) {
        if let Some(text) = attribute_text(value.get())? {
            read.add(name, text)?;
        }
    }
    let given = read.take("datacontenttype");
    let json = given.as_deref().is_none_or(is_json);
    let data = match (object.get("data"), object.get("data_base64")) {
        (Some(_), Some(_)) => return Err(Invalid::unusable("data", "must not be there beside data_base64")),
        (None, None) => Bytes::new(),
        (Some(data), None) if json => Bytes::copy_from_slice(data.get().as_bytes()),
        (Some(data), None) => match serde_json::from_str::<String>(data.get()) {
            Ok(text) => text.into(),
            Err(_) => Bytes::copy_from_slice(data.get().as_bytes()),
        },
        (None, Some(data)) => {
            let wrong = || Invalid::unusable("data_base64", "must be base64 in a JSON string");
            let text: String = serde_json::from_str(data.get()).map_err(|_| wrong())?;
            BASE64.decode(text.as_bytes()).map_err(|_| wrong())?.into()
        }
    };
    let content_type = ContentType::new(given.as_deref().unwrap_or(JSON))?;
    read.event(Body::within(data, body_bytes_max)?, content_type)
}

/// The text of an attribute: a string, a number or a boolean. An attribute that is null is not there.
fn attribute_text(json: &str) -> Result<Option<String>, Invalid> {
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map(Some).map_err(|_| unreadable()),
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') | None => Err(unreadable()),
        Some(_) => Ok(Some(json.to_owned())),
    }
}

const fn unreadable() -> Invalid {
    Invalid::unusable("event", "attributes must be strings, numbers or booleans")
}

/// Whether data of that type is written into JSON as it is.
fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(JSON) || kind.to_ascii_lowercase().ends_with("+json")
}

/// What was read of an event beside its data.
#[derive(Default)]
struct Attributes(std::collections::BTreeMap<String, String>);

impl Attributes {
    fn add(&mut self, name: &str, value: String) -> Result<(), Invalid> {
        let allowed = "a-z 0-9";
        Invalid::check_length("attribute", name.len(), ATTRIBUTE_BYTES_MAX, "bytes")?;
        if let Some(at) = name.bytes().position(|byte| !byte.is_ascii_lowercase() && !byte.is_ascii_digit()) {
            return Err(Invalid::new("attribute", Problem::BadCharacter { at, allowed }));
        }
        if self.0.insert(name.to_owned(), value).is_some() {
            return Err(Invalid::unusable("attribute", "must not be there twice"));
        }
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    fn required(&self, name: &'static str) -> Result<&str, Invalid> {
        match self.0.get(name).map(String::as_str) {
            Some("") | None => Err(Invalid::new(name, Problem::Empty)),
            Some(value) => Ok(value),
        }
    }

    fn event(mut self, body: Body, content_type: ContentType) -> Result<NewEvent, Invalid> {
        match self.take("specversion").as_deref() {
            Some(SPEC_VERSION) => {}
            _ => return Err(Invalid::unusable("specversion", "must be 1.0")),
        }
        let kind = EventType::new(self.required("type")?)?;
        let dedup_key = Some(dedup_key(self.required("source")?, self.required("id")?)?);
        let named = |(name, value): (String, String)| (format!("{ATTRIBUTE_PREFIX}{name}"), value);
        let headers = Headers::new(self.0.into_iter().map(named))?;
        Ok(NewEvent { body, content_type, headers, kind: Some(kind), dedup_key, ..NewEvent::default() })
    }
}

/// Source and id together name an event: a second one of the same name is the same event.
fn dedup_key(source: &str, id: &str) -> Result<DedupKey, Invalid> {
    let both = format!("{source} {id}");
    if both.len() <= DEDUP_KEY_BYTES_MAX {
        return DedupKey::new(both);
    }
    DedupKey::new(data_encoding::HEXLOWER.encode(&Sha256::digest(both.as_bytes())))
}

/// A header's value, in which characters that headers cannot carry are written as their bytes.
fn percent_decoded(value: &str) -> Result<String, Invalid> {
    let wrong = || Invalid::unusable("attribute", "has a percent sign that stands for no byte");
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next()).ok_or_else(wrong)?, digit(rest.next()).ok_or_else(wrong)?);
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// A header's value for any text.
fn percent_encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '!'..='~' if c != '"' && c != '%' => text.push(c),
            other => {
                let mut utf8 = [0; 4];
                for byte in other.encode_utf8(&mut utf8).bytes() {
                    text.push_str(&format!("%{byte:02X}"));
                }
            }
        }
    }
    text
}

/// Every attribute of an event: what its publisher set, and what must be there.
fn attributes(event: &Event) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = vec![("specversion".to_owned(), SPEC_VERSION.to_owned())];
    let required = [
        ("id", event.id.to_string()),
        ("source", format!("/topics/{}", event.topic)),
        ("time", crate::time::rfc3339(event.published_at)),
        ("type", event.kind.as_str().to_owned()),
    ];
    for (name, default) in required {
        let value = event.attribute(name).map_or(default, str::to_owned);
        all.push((name.to_owned(), value));
    }
    let rest = event.attributes().filter(|(name, _)| all.iter().all(|(known, _)| known != name));
    let rest: Vec<(String, String)> = rest.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    all.extend(rest);
    all
}

/// An event as it is sent: its content type, its headers, and its body. The headers of the publisher go along.
pub(crate) fn written(event: &Event, format: Format) -> (String, Vec<(String, String)>, Bytes) {
    let own = event.own_headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut headers: Vec<(String, String)> = own.collect();
    match format {
        Format::Structured => {
            (format!("{MEDIA_TYPE}; charset=utf-8"), headers, Bytes::from(structured_text(event)))
        }
        Format::Binary => {
            let named = |(name, value): (String, String)| {
                (format!("{ATTRIBUTE_PREFIX}{name}"), percent_encoded(&value))
            };
            headers.extend(attributes(event).into_iter().map(named));
            (event.content_type.as_str().to_owned(), headers, event.body.bytes().clone())
        }
    }
}

/// The JSON of an event. Data that is JSON stands in it byte for byte; text as a string; anything else as base64.
pub fn structured_text(event: &Event) -> String {
    let mut object = serde_json::Map::new();
    for (name, value) in attributes(event) {
        object.insert(name, value.into());
    }
    object.insert("datacontenttype".to_owned(), event.content_type.as_str().into());
    let mut text = serde_json::to_string(&object).expect("texts are JSON");
    let body = event.body.bytes();
    let data = std::str::from_utf8(body).ok();
    let field = match data {
        _ if body.is_empty() => None,
        Some(data) if is_json(event.content_type.as_str()) && is_value(data) => {
            Some(format!("\"data\":{data}"))
        }
        Some(data) if !is_json(event.content_type.as_str()) => {
            serde_json::to_string(data).ok().map(|data| format!("\"data\":{data}"))
        }
        _ => Some(format!("\"data_base64\":\"{}\"", BASE64.encode(body))),
    };
    if let Some(field) = field {
        text.pop();
        text.push(',');
        text.push_str(&field);
        text.push('}');
    }
    text
}

fn is_value(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}
