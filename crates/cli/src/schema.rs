//! `redrive schema`: what a database administrator runs where the server may not.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::Args;
use redrive_store_postgres::{Options, schema_sql};

/// Prints the schema.
#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// What it is called.
    #[arg(long, value_name = "NAME", default_value = "redrive")]
    store_schema: String,
}

pub(crate) fn run(arguments: SchemaArguments) -> anyhow::Result<()> {
    let options = Options { schema: arguments.store_schema, ..Options::new("postgres://somewhere") };
    if let Err(wrong) = options.check() {
        anyhow::bail!("store_schema: {wrong}");
    }
    io::stdout().write_all(schema_sql(&options.schema).as_bytes()).context("printing")
}
