//! `redrive config show`: what a server would be started with, and who said so.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::config::KEYS;
use crate::key;
use crate::output::{Cell, Column, Output, table};
use crate::remote::Failure;
use crate::serve::ServeArguments;

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Says where each value comes from: the default, a line of the file, a variable, or a flag.
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    serve: ServeArguments,
}

/// One value, as it stands in a file, and who said it.
struct Said {
    name: &'static str,
    value: Option<String>,
    origin: String,
}

pub(super) fn run(arguments: ShowArguments, output: &Output) -> Result<(), Failure> {
    let wrong = |error: anyhow::Error| Failure::Failed(format!("{error:#}"));
    let sources = arguments.serve.sources().map_err(wrong)?;
    let layer = sources.config().map(|config| config.settled(sources.layer())).map_err(wrong)?;
    let mut said: Vec<Said> = KEYS
        .iter()
        .zip(layer.written_values())
        .map(|(key, value)| Said { name: key.name, value, origin: sources.origin(key).to_string() })
        .collect();
    if sources.has_bootstrap_variable() {
        let value = Some("\"…\"".to_owned());
        said.push(Said { name: "bootstrap_key", value, origin: key::BOOTSTRAP.to_owned() });
    }
    output.document(&document(&said, arguments.origin), || {
        let row = |said: &Said| {
            let mut row = vec![Cell::text(said.name), Cell::maybe(said.value.as_deref(), Cell::text)];
            row.extend(arguments.origin.then(|| Cell::text(&said.origin)));
            row
        };
        let heads = [Column::Text("KEY"), Column::Text("VALUE"), Column::Text("ORIGIN")];
        let heads = if arguments.origin { &heads[..] } else { &heads[..2] };
        table(heads, said.iter().map(row).collect(), output.coloured)
    })
}

/// The same for programs: each value, or each value with its origin.
fn document(said: &[Said], origin: bool) -> Value {
    let value = |said: &Said| said.value.as_deref().map_or(Value::Null, from_toml);
    let item = |said: &Said| {
        if origin { json!({"value": value(said), "origin": said.origin}) } else { value(said) }
    };
    Value::Object(said.iter().map(|said| (said.name.to_owned(), item(said))).collect::<Map<_, _>>())
}

fn from_toml(text: &str) -> Value {
    let parsed: Result<toml::Table, _> = toml::from_str(&format!("value = {text}"));
    let value = parsed.ok().and_then(|mut table| table.remove("value"));
    value.and_then(|value| serde_json::to_value(value).ok()).unwrap_or(Value::Null)
}
