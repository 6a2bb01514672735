//! The schema, brought up to date in order, by one instance at a time.

use redrive_core::receipt::ReceiptKey;
use redrive_store::{StoreError, json};
use tokio_postgres::Client;

use crate::error::{damaged, unreached};
use crate::options::Options;
use crate::sql::in_schema;

/// Each change of the schema, in order. A file that was released never changes.
pub(crate) const MIGRATIONS: [(&str, &str); 2] = [
    ("0001_queues", include_str!("../sql/migrations/0001_queues.sql")),
    ("0002_functions", include_str!("../sql/migrations/0002_functions.sql")),
];

/// Held while the schema is changed.
const MIGRATION_LOCK: i64 = 0x5265_6472_6976_6500;

/// Everything that a database administrator would run instead, in order.
pub fn schema_sql(schema: &str) -> String {
    let mut text = format!("CREATE SCHEMA IF NOT EXISTS {};\n", quoted(schema));
    text.push_str(&in_schema(
        "CREATE TABLE IF NOT EXISTS redrive.migration (name text COLLATE \"C\" PRIMARY KEY);\n",
        schema,
    ));
    for (name, migration) in MIGRATIONS {
        let done = format!("\n-- {name}\n{migration}INSERT INTO redrive.migration VALUES ('{name}');\n");
        text.push_str(&in_schema(&done, schema));
    }
    text
}

pub(crate) fn quoted(schema: &str) -> String {
    format!("\"{}\"", schema.replace('"', "\"\""))
}

/// Brings the schema up to date.
pub(crate) async fn migrate(client: &mut Client, options: &Options) -> Result<(), StoreError> {
    let failed = unreached;
    let schema = &options.schema;
    let step = client.transaction().await.map_err(failed)?;
    step.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
    // `IF NOT EXISTS` asks for the right to make it, also where it is there.
    let made = "SELECT to_regnamespace($1) IS NOT NULL, to_regclass($1 || '.migration') IS NOT NULL";
    let made = step.query_one(made, &[&quoted(schema)]).await.map_err(failed)?;
    let (has_schema, has_table): (bool, bool) = (made.get(0), made.get(1));
    if !has_schema {
        step.batch_execute(&format!("CREATE SCHEMA {}", quoted(schema))).await.map_err(failed)?;
    }
    if !has_table {
        let table =
            format!("CREATE TABLE {}.migration (name text COLLATE \"C\" PRIMARY KEY)", quoted(schema));
        step.batch_execute(&table).await.map_err(failed)?;
    }
    let list = format!("SELECT name FROM {}.migration ORDER BY name", quoted(schema));
    let done: Vec<String> =
        step.query(&list, &[]).await.map_err(failed)?.iter().map(|row| row.get(0)).collect();
    if let Some(newer) = done.iter().find(|name| !MIGRATIONS.iter().any(|(known, _)| known == name)) {
        return Err(damaged(
            format!("the schema {schema}"),
            format!("it has the change {newer}, which this version does not know: run a newer one"),
        ));
    }
    for (name, migration) in MIGRATIONS {
        if !done.iter().any(|known| known == name) {
            step.batch_execute(&in_schema(migration, schema)).await.map_err(failed)?;
            let noted = format!("INSERT INTO {}.migration VALUES ($1)", quoted(schema));
            step.execute(&noted, &[&name]).await.map_err(failed)?;
        }
    }
    step.commit().await.map_err(failed)
}

/// What all instances share, made by the first of them: the receipt key and the epoch of lease ids. The functions also need
/// to know what a queue has that sets nothing, and what it may hold; there the last instance that opened has the say.
pub(crate) async fn shared(
    client: &mut Client,
    options: &Options,
    fresh_key: [u8; 32],
) -> Result<(ReceiptKey, u16), StoreError> {
    let failed = unreached;
    let table = format!("{}.shared", quoted(&options.schema));
    let put = format!("INSERT INTO {table} (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
    client.execute(&put, &[&"receipt_key", &&fresh_key[..]]).await.map_err(failed)?;
    client.execute(&put, &[&"epoch", &&options.first_epoch.to_be_bytes()[..]]).await.map_err(failed)?;
    let set = format!(
        "INSERT INTO {table} AS s (name, value) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE s.value <> excluded.value"
    );
    let (defaults, limits) = (json::write_settings(&options.defaults), json::write_limits(options.limits));
    for (name, value) in [("defaults", defaults), ("limits", limits)] {
        client.execute(&set, &[&name, &value.to_string().as_bytes()]).await.map_err(failed)?;
    }
    let get = format!("SELECT value FROM {table} WHERE name = $1");
    let key = client.query_one(&get, &[&"receipt_key"]).await.map_err(failed)?;
    let epoch = client.query_one(&get, &[&"epoch"]).await.map_err(failed)?;
    let key: [u8; 32] = key
        .get::<_, &[u8]>(0)
        .try_into()
        .map_err(|_| damaged("shared.receipt_key", "it is not 32 bytes long"))?;
    let epoch: [u8; 2] =
        epoch.get::<_, &[u8]>(0).try_into().map_err(|_| damaged("shared.epoch", "it is not 2 bytes long"))?;
    Ok((ReceiptKey::new(key), u16::from_be_bytes(epoch)))
}
