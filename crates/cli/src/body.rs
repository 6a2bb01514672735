//! The body of a message or an event, as somebody types it or has it in a file.

use std::path::{Path, PathBuf};

use clap::Args;
use data_encoding::BASE64;
use redrive_core::limits::BATCH_BYTES_MAX;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;

use crate::remote::Failure;

/// Where a body comes from. These are of the group `what`, to which a command adds its own.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct BodyArguments {
    /// The body, as text.
    #[arg(group = "what")]
    body: Option<String>,
    /// Takes the body from a file; `-` is stdin.
    #[arg(long, value_name = "FILE", group = "what")]
    file: Option<PathBuf>,
    /// The body, as JSON.
    #[arg(long, value_name = "JSON", group = "what", value_parser = json)]
    json_body: Option<String>,
}

/// A body in one of the three ways in which JSON carries it.
#[derive(Debug)]
pub(crate) enum Body {
    Text(String),
    Base64(String),
    Json(Box<RawValue>),
}

fn json(text: &str) -> Result<String, String> {
    serde_json::from_str::<Box<RawValue>>(text)
        .map(|json| json.get().to_owned())
        .map_err(|error| format!("is no JSON: {error}"))
}

impl BodyArguments {
    /// The body; nothing where none was given.
    pub(crate) async fn body(self) -> Result<Option<Body>, Failure> {
        if let Some(path) = self.file {
            return Ok(Some(match String::from_utf8(read(&path).await?) {
                Ok(text) => Body::Text(text),
                Err(bytes) => Body::Base64(BASE64.encode(bytes.as_bytes())),
            }));
        }
        // It was JSON when it was read.
        let json = self.json_body.and_then(|json| RawValue::from_string(json).ok());
        Ok(json.map(Body::Json).or(self.body.map(Body::Text)))
    }
}

/// A whole file, or stdin, if it is not larger than any server takes.
pub(crate) async fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let named = path.display().to_string();
    let failed = |error| Failure::Io(format!("reading {named}"), error);
    let mut bytes = Vec::new();
    let most = BATCH_BYTES_MAX as u64 + 1;
    if path.as_os_str() == "-" {
        tokio::io::stdin().take(most).read_to_end(&mut bytes).await.map_err(failed)?;
    } else {
        let file = tokio::fs::File::open(path).await.map_err(failed)?;
        file.take(most).read_to_end(&mut bytes).await.map_err(failed)?;
    }
    if bytes.len() > BATCH_BYTES_MAX {
        return Err(Failure::Usage(format!("body: {named} is larger than {BATCH_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
