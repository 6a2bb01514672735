//! How each kind of value is read from a variable, and written in a file.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::ValueEnum;

use crate::logs::LogFormat;
use crate::store::StoreText;

/// A kind of value.
pub(super) trait Value: Sized {
    /// Reads the value of the variable `name`.
    fn read(name: &str, text: String) -> anyhow::Result<Self>;

    /// As it stands in a file, without secrets.
    fn written(&self) -> String;

    /// The same in a unit that is so many times smaller.
    fn times(self, _: u64) -> Self {
        self
    }
}

impl Value for String {
    fn read(_: &str, text: String) -> anyhow::Result<Self> {
        Ok(text)
    }

    fn written(&self) -> String {
        quoted(&without_user(self))
    }
}

impl Value for PathBuf {
    fn read(_: &str, text: String) -> anyhow::Result<Self> {
        Ok(text.into())
    }

    fn written(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

impl Value for StoreText {
    fn read(_: &str, text: String) -> anyhow::Result<Self> {
        Ok(text.parse()?)
    }

    fn written(&self) -> String {
        quoted(&self.shown())
    }
}

impl Value for u32 {
    fn read(name: &str, text: String) -> anyhow::Result<Self> {
        text.parse().map_err(|_| anyhow!("{name}: `{text}` is no whole number, or too large"))
    }

    fn written(&self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    fn read(name: &str, text: String) -> anyhow::Result<Self> {
        text.parse().map_err(|_| anyhow!("{name}: `{text}` is no whole number, or too large"))
    }

    fn written(&self) -> String {
        self.to_string()
    }

    fn times(self, factor: u64) -> Self {
        self.saturating_mul(factor)
    }
}

impl Value for f64 {
    fn read(name: &str, text: String) -> anyhow::Result<Self> {
        text.parse().map_err(|_| anyhow!("{name}: `{text}` is no number"))
    }

    fn written(&self) -> String {
        // With a point, so that it is read as such.
        format!("{self:?}")
    }
}

impl Value for bool {
    fn read(name: &str, text: String) -> anyhow::Result<Self> {
        text.parse().map_err(|_| anyhow!("{name}: `{text}` must be true or false"))
    }

    fn written(&self) -> String {
        self.to_string()
    }
}

impl Value for LogFormat {
    fn read(name: &str, text: String) -> anyhow::Result<Self> {
        Self::from_str(&text, false).map_err(|_| {
            let words: Vec<String> = Self::value_variants().iter().map(Value::written).collect();
            anyhow!("{name}: `{text}` must be one of {}", words.join(", ").replace('"', ""))
        })
    }

    fn written(&self) -> String {
        quoted(self.to_possible_value().as_ref().map_or("", clap::builder::PossibleValue::get_name))
    }
}

/// A list is separated by commas where it stands in a variable.
impl Value for Vec<String> {
    fn read(_: &str, text: String) -> anyhow::Result<Self> {
        Ok(text.split(',').map(|item| item.trim().to_owned()).collect())
    }

    fn written(&self) -> String {
        let items: Vec<String> = self.iter().map(|item| quoted(item)).collect();
        format!("[{}]", items.join(", "))
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// An address without the user and the password that may stand in it.
fn without_user(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}://…{}", &text[..scheme], &text[at..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_and_no_password_stands_in_an_address() {
        assert_eq!("http://a:b@here:1".to_owned().written(), "\"http://…@here:1\"");
        assert_eq!("http://here:1".to_owned().written(), "\"http://here:1\"");
        assert_eq!("me@here".to_owned().written(), "\"me@here\"");
        assert_eq!(0.5.written(), "0.5");
        assert_eq!(1.0.written(), "1.0");
        assert_eq!(vec!["a".to_owned(), "b\"".to_owned()].written(), "[\"a\", 'b\"']");
    }
}
