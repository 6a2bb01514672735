//! CloudEvents 1.0: events as others write and read them.
//!
//! *Structured*: one JSON object, with the data in it; a batch is an array of them. *Binary*: the data is the body, and every
//! attribute a header that begins with `ce-`.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use bytes::Bytes;
use data_encoding::{BASE64, HEXUPPER};
use redrive_core::invalid::{Invalid, Problem};
use redrive_core::limits::{BATCH_ITEMS_MAX, DEDUP_KEY_BYTES_MAX, JSON_DEPTH_MAX};
use redrive_core::message::{Body, ContentType, DedupKey, Headers};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::event::{ATTRIBUTE_PREFIX, Event, EventType, NewEvent};
use crate::subscription::Format;
use crate::webhook;

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
                for byte in other.encode_utf8(&mut utf8).as_bytes() {
                    text.push('%');
                    text.push_str(&HEXUPPER.encode(&[*byte]));
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
    // What HTTP keeps for itself, and what it cannot carry, is left out.
    let own = event.own_headers().filter(|(name, value)| webhook::check_header(name, value).is_ok());
    let mut headers: Vec<(String, String)> =
        own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redrive_core::message::MessageId;
    use redrive_core::time::Timestamp;

    use super::*;

    const MAX: usize = 1024 * 1024;

    fn read(text: &str) -> Result<NewEvent, Invalid> {
        structured(text.as_bytes(), MAX)
    }

    /// The event that a target would get of it.
    fn got(new: &NewEvent) -> Event {
        Event {
            id: MessageId::new(Timestamp::from_millis(7), 7),
            topic: "orders.created".to_owned(),
            kind: new.kind.clone().unwrap_or_default(),
            published_at: Timestamp::from_millis(1_700_000_000_123),
            body: new.body.clone(),
            content_type: new.content_type.clone(),
            headers: new.headers.clone(),
        }
    }

    #[test]
    fn the_example_of_the_specification_is_read() {
        let event = read(
            r#"{"specversion":"1.0","type":"com.example.someevent","source":"/mycontext","subject":null,
                "id":"C234-1234-1234","time":"2018-04-05T17:31:00Z","comexampleextension1":"value",
                "comexampleothervalue":5,"datacontenttype":"application/json","data":{"appinfoA":"abc","n":1.50}}"#,
        )
        .unwrap();
        assert_eq!(event.kind.as_ref().unwrap().as_str(), "com.example.someevent");
        assert_eq!(event.body.bytes().as_ref(), br#"{"appinfoA":"abc","n":1.50}"#, "byte for byte");
        assert_eq!(event.content_type.as_str(), "application/json");
        assert_eq!(event.headers.get("ce-source"), Some("/mycontext"));
        assert_eq!(event.headers.get("ce-comexampleothervalue"), Some("5"));
        assert_eq!(event.headers.get("ce-subject"), None, "null is not there");
        assert_eq!(event.dedup_key.as_ref().unwrap().as_str(), "/mycontext C234-1234-1234");
    }

    #[test]
    fn data_is_text_json_or_base64() {
        let with =
            |rest: &str| read(&format!(r#"{{"specversion":"1.0","type":"t","source":"s","id":"1",{rest}}}"#));
        let body = |rest: &str| with(rest).unwrap().body.bytes().to_vec();
        assert_eq!(body(r#""data":"text""#), br#""text""#, "without a type it is JSON");
        assert_eq!(body(r#""datacontenttype":"text/plain","data":"text""#), b"text");
        assert_eq!(body(r#""datacontenttype":"text/xml","data":"<a/>""#), b"<a/>");
        assert_eq!(body(r#""datacontenttype":"application/vnd.x+json; charset=utf-8","data":[1]"#), b"[1]");
        assert_eq!(body(r#""data_base64":"AAEC""#), [0, 1, 2]);
        assert_eq!(body(r#""subject":"x""#), b"");
        assert_eq!(with(r#""data":1,"data_base64":"AA==""#).unwrap_err().field, "data");
        assert_eq!(with(r#""data_base64":"?""#).unwrap_err().field, "data_base64");
    }

    #[test]
    fn what_is_no_event_is_refused_by_its_field() {
        let deep = format!(r#"{{"specversion":"1.0","data":{}1{}}}"#, "[".repeat(64), "]".repeat(64));
        for (text, field) in [
            ("", "event"),
            ("[]", "event"),
            ("{}", "specversion"),
            (r#"{"specversion":"0.3","type":"t","source":"s","id":"1"}"#, "specversion"),
            (r#"{"specversion":"1.0","source":"s","id":"1"}"#, "type"),
            (r#"{"specversion":"1.0","type":"t","source":"","id":"1"}"#, "source"),
            (r#"{"specversion":"1.0","type":"t","source":"s"}"#, "id"),
            (r#"{"specversion":"1.0","type":"t","source":"s","id":"1","Big":"x"}"#, "attribute"),
            (r#"{"specversion":"1.0","type":"t","source":"s","id":"1","a_b":"x"}"#, "attribute"),
            (r#"{"specversion":"1.0","type":"t","source":"s","id":"1","x":{}}"#, "event"),
            (deep.as_str(), "event"),
        ] {
            assert_eq!(read(text).unwrap_err().field, field, "{text}");
        }
        let long = format!(r#"{{"specversion":"1.0","type":"{}","source":"s","id":"1"}}"#, "t".repeat(129));
        assert_eq!(read(&long).unwrap_err().to_string(), "type: is 129 bytes long, the limit is 128");
        assert_eq!(
            structured(br#"{"specversion":"1.0","type":"t","source":"s","id":"1","data":"12345"}"#, 3)
                .unwrap_err()
                .field,
            "body"
        );
    }

    #[test]
    fn a_batch_is_an_array_of_events() {
        let one = r#"{"specversion":"1.0","type":"t","source":"s","id":"1"}"#;
        assert_eq!(batch(format!("[{one},{one}]").as_bytes(), MAX).unwrap().len(), 2);
        assert_eq!(batch(b"[]", MAX).unwrap().len(), 0);
        assert_eq!(batch(one.as_bytes(), MAX).unwrap_err().field, "events");
        let many = vec![one; BATCH_ITEMS_MAX + 1].join(",");
        assert_eq!(batch(format!("[{many}]").as_bytes(), MAX).unwrap_err().field, "events");
    }

    #[test]
    fn attributes_may_be_headers() {
        let attributes =
            [("specversion", "1.0"), ("type", "t"), ("source", "/a%20b"), ("id", "Euro%20%E2%82%AC")];
        let event = binary(attributes, Some("text/plain"), Bytes::from_static(b"data"), MAX).unwrap();
        assert_eq!(event.headers.get("ce-id"), Some("Euro €"));
        assert_eq!(event.headers.get("ce-source"), Some("/a b"));
        assert_eq!((event.body.bytes().as_ref(), event.content_type.as_str()), (&b"data"[..], "text/plain"));
        let wrong = [("specversion", "1.0"), ("type", "t"), ("source", "%4"), ("id", "1")];
        assert_eq!(binary(wrong, None, Bytes::new(), MAX).unwrap_err().field, "attribute");
    }

    #[test]
    fn an_event_without_attributes_gets_those_that_must_be_there() {
        let plain = NewEvent { kind: Some(EventType::new("t").unwrap()), ..NewEvent::default() };
        let text = structured_text(&got(&plain));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["specversion"], "1.0");
        assert_eq!(json["source"], "/topics/orders.created");
        assert_eq!(json["id"], got(&plain).id.to_string());
        assert_eq!(json["time"], "2023-11-14T22:13:20.123Z");
        assert_eq!(json["type"], "t");
        assert!(json.get("data").is_none() && json.get("data_base64").is_none());
    }

    #[test]
    fn what_http_keeps_for_itself_does_not_go_along() {
        let headers = [("host", "evil"), ("region", "eu"), ("webhook-id", "x"), ("redrive-topic", "t")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let event = NewEvent { headers: Headers::new(headers).unwrap(), ..NewEvent::default() };
        let (_, sent, _) = written(&got(&event), Format::Structured);
        assert_eq!(sent, [("region".to_owned(), "eu".to_owned())]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_readers(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
            drop(structured(&bytes, MAX));
            drop(batch(text.as_bytes(), MAX));
            drop(binary([(text.as_str(), text.as_str())], Some(&text), Bytes::from(bytes), MAX));
        }

        #[test]
        fn what_is_written_is_read_as_the_same_event(
            id in "\\PC{1,30}", source in "\\PC{1,30}", subject in "\\PC{0,30}",
            data in prop::collection::vec(any::<u8>(), 0..60), kind in "[a-z.]{1,20}",
            content in prop::sample::select(vec!["application/json", "text/plain", "image/png", "application/x+json"]),
        ) {
            let attributes = [("source", source), ("id", id), ("subject", subject)];
            let headers = attributes.map(|(name, value)| (format!("ce-{name}"), value));
            let event = NewEvent {
                body: Body::new(data).unwrap(),
                content_type: ContentType::new(content).unwrap(),
                headers: Headers::new(headers).unwrap(),
                kind: Some(EventType::new(kind).unwrap()),
                ..NewEvent::default()
            };
            let sent = got(&event);
            let (_, headers, body) = written(&sent, Format::Binary);
            let ce = headers.iter().filter_map(|(name, value)| Some((name.strip_prefix("ce-")?, value.as_str())));
            let binary = binary(ce, Some(content), body, MAX).unwrap();
            for back in [structured(structured_text(&sent).as_bytes(), MAX).unwrap(), binary] {
                prop_assert_eq!(&back.body, &event.body);
                prop_assert_eq!(&back.kind, &event.kind);
                prop_assert_eq!(back.content_type.as_str(), content);
                for name in ["ce-id", "ce-source", "ce-subject"] {
                    prop_assert_eq!(back.headers.get(name), event.headers.get(name), "{}", name);
                }
            }
        }
    }
}
