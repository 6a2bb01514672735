//! JSON as the server wrote it, laid out anew: the order of its fields and the digits of its numbers stay.

use std::fmt::Write as _;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A value, with its fields in their order and its scalars as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    Scalar(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    pub(crate) fn of(json: &RawValue) -> Self {
        // What a parser has taken once, it takes again.
        serde_json::from_str(json.get()).unwrap_or_else(|_| Self::Scalar(json.get().to_owned()))
    }

    /// On one line.
    pub(crate) fn compact(&self) -> String {
        match self {
            Self::Scalar(text) => text.clone(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::compact))),
            Self::Map(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), value.compact()));
                format!("{{{}}}", joined(fields))
            }
        }
    }

    /// Over several lines.
    pub(crate) fn pretty(&self) -> String {
        let mut text = String::new();
        self.write_pretty(&mut text, "\n");
        text
    }

    fn write_pretty(&self, text: &mut String, line: &str) {
        let inner = format!("{line}  ");
        let mut between = "";
        match self {
            Self::Scalar(scalar) => text.push_str(scalar),
            Self::List(items) if items.is_empty() => text.push_str("[]"),
            Self::Map(fields) if fields.is_empty() => text.push_str("{}"),
            Self::List(items) => {
                text.push('[');
                for item in items {
                    text.extend([between, &inner]);
                    item.write_pretty(text, &inner);
                    between = ",";
                }
                text.extend([line, "]"]);
            }
            Self::Map(fields) => {
                text.push('{');
                for (name, value) in fields {
                    text.extend([between, &inner, &quoted(name), ": "]);
                    value.write_pretty(text, &inner);
                    between = ",";
                }
                text.extend([line, "}"]);
            }
        }
    }

    /// As a document of YAML.
    pub(crate) fn yaml(&self) -> String {
        let mut text = String::new();
        self.write_yaml(&mut text, 0);
        text
    }

    /// As one item of a list in YAML.
    pub(crate) fn yaml_item(&self) -> String {
        Self::List(vec![self.clone()]).yaml()
    }

    /// Writes lines that begin `depth` deep; the first one where the cursor is.
    fn write_yaml(&self, text: &mut String, depth: usize) {
        match self {
            Self::List(items) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    indent(text, depth, at);
                    text.push_str("- ");
                    item.write_yaml(text, depth + 2);
                }
            }
            Self::Map(fields) if !fields.is_empty() => {
                for (at, (name, value)) in fields.iter().enumerate() {
                    indent(text, depth, at);
                    text.extend([&plain(name), ":"]);
                    if value.is_nested() {
                        text.push('\n');
                        indent(text, depth + 2, 1);
                        value.write_yaml(text, depth + 2);
                    } else {
                        text.push(' ');
                        value.write_yaml(text, depth);
                    }
                }
            }
            // The rest of JSON is YAML as it stands, but for strings that may go without their quotes.
            other => {
                let scalar = other.compact();
                let line = serde_json::from_str::<String>(&scalar).map_or(scalar, |string| plain(&string));
                text.extend([&line, "\n"]);
            }
        }
    }

    fn is_nested(&self) -> bool {
        match self {
            Self::Scalar(_) => false,
            Self::List(items) => !items.is_empty(),
            Self::Map(fields) => !fields.is_empty(),
        }
    }
}

/// The first line of something goes where the cursor is already.
fn indent(text: &mut String, depth: usize, at: usize) {
    if at > 0 {
        // Writing to a string cannot fail.
        let _written = write!(text, "{:depth$}", "");
    }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A string of YAML: without quotes where nobody can take it for anything else, otherwise as JSON writes it.
fn plain(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let simple = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    let word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    if begins && simple && !word { text.to_owned() } else { quoted(text) }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'[') => serde_json::from_str(text).map(Self::List),
            Some(b'{') => serde_json::from_str(text).map(|Fields(fields)| Self::Map(fields)),
            _ => Ok(Self::Scalar(text.to_owned())),
        }
        .map_err(D::Error::custom)
    }
}

/// The fields of an object in their order.
struct Fields(Vec<(String, Tree)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        from.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn tree(text: &str) -> Tree {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn fields_keep_their_order_and_numbers_their_digits() {
        let text = r#"{"b": 1.10, "a": [12345678901234567890123, {}], "c": {"x": "a\nb"}, "d": []}"#;
        assert_eq!(tree(text).compact(), text.replace(": ", ":").replace(", ", ","));
        let pretty = "{\n  \"b\": 1.10,\n  \"a\": [\n    12345678901234567890123,\n    {}\n  ],\n  \"c\": {\n    \"x\": \"a\\nb\"\n  },\n  \"d\": []\n}";
        assert_eq!(tree(text).pretty(), pretty);
    }

    #[test]
    fn yaml_is_quoted_where_it_could_be_mistaken() {
        let text = r#"{"name":"orders","on":"no","n":[1,{"a":"x y","b":null},[true]],"empty":{},"at":"2024-01-01T00:00:00.000Z"}"#;
        let yaml = "name: orders\n\"on\": \"no\"\n\"n\":\n  - 1\n  - a: \"x y\"\n    b: null\n  - - true\nempty: {}\nat: \"2024-01-01T00:00:00.000Z\"\n";
        assert_eq!(tree(text).yaml(), yaml);
        assert_eq!(tree(r#"{"a":1,"b":[]}"#).yaml_item(), "- a: 1\n  b: []\n");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("\\PC{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_laid_out_anew_means_the_same(value in values()) {
            let tree = tree(&value.to_string());
            prop_assert_eq!(&serde_json::from_str::<Value>(&tree.pretty()).unwrap(), &value);
            prop_assert_eq!(&serde_json::from_str::<Value>(&tree.compact()).unwrap(), &value);
        }
    }
}
