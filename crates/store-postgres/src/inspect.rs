//! What a database is, looked at without changing anything in it: a store that is opened makes its schema.

use redrive_core::time::Timestamp;
use redrive_store::{StoreError, Survives};
use tokio_postgres::Client;

use crate::durability::Commit;
use crate::error::unreached;
use crate::migrate::{MIGRATIONS, quoted};
use crate::options::Options;
use crate::row::time;
use crate::tls::connector;

/// What a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of the server, as it tells it.
    pub version: String,
    /// Whether it is a standby, on which nothing can be written.
    pub standby: bool,
    /// Most connections that it takes, from everybody.
    pub connections_max: u32,
    /// What time it is there.
    pub now: Timestamp,
    /// What an answer survives.
    pub survives: Survives,
    /// Why that is less than the options ask for.
    pub short: Option<String>,
    /// The schema that the options name.
    pub schema: SchemaState,
}

/// Whether a schema is the one that this version needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// It is not there.
    Missing,
    /// It has everything up to this change.
    Current(&'static str),
    /// It lacks these changes.
    Behind(Vec<&'static str>),
    /// It has a change that this version does not know.
    Newer(String),
}

/// Looks at the database that the options name.
pub async fn inspect(options: &Options) -> Result<Inspection, StoreError> {
    let connected = options.config()?.connect(connector(options)?).await;
    let (client, connection) = connected.map_err(unreached)?;
    let running = tokio::spawn(connection);
    let inspected = look(&client, options).await;
    drop(client);
    // It ends by itself once nobody uses it; how is not of interest.
    drop(running.await);
    inspected.map_err(unreached)
}

async fn look(client: &Client, options: &Options) -> Result<Inspection, tokio_postgres::Error> {
    let row = client.query_one(include_str!("../sql/inspect.sql"), &[&quoted(&options.schema)]).await?;
    let commit = Commit::read(client).await?;
    let has_schema: bool = row.try_get(4)?;
    Ok(Inspection {
        version: row.try_get(0)?,
        standby: row.try_get(1)?,
        connections_max: u32::try_from(row.try_get::<_, i32>(2)?).unwrap_or_default(),
        now: time(row.try_get(3)?),
        survives: commit.survives(),
        short: commit.short(options.durability).map(|short| short.to_string()),
        schema: if has_schema { schema(client, options).await? } else { SchemaState::Missing },
    })
}

async fn schema(client: &Client, options: &Options) -> Result<SchemaState, tokio_postgres::Error> {
    let list = format!("SELECT name FROM {}.migration ORDER BY name", quoted(&options.schema));
    let rows = client.query(&list, &[]).await?;
    let done: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(state(&done))
}

fn state(done: &[String]) -> SchemaState {
    if let Some(newer) = done.iter().find(|name| !MIGRATIONS.iter().any(|(known, _)| known == name)) {
        return SchemaState::Newer(newer.clone());
    }
    let mut names = MIGRATIONS.iter().map(|(name, _)| *name);
    let missing: Vec<&'static str> =
        names.clone().filter(|name| !done.iter().any(|known| known == name)).collect();
    match names.next_back() {
        Some(last) if missing.is_empty() => SchemaState::Current(last),
        _ => SchemaState::Behind(missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_current_behind_or_newer() {
        let of =
            |names: &[&str]| state(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>());
        let all: Vec<&str> = MIGRATIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(of(&all), SchemaState::Current(all[all.len() - 1]));
        assert_eq!(of(&all[1..]), SchemaState::Behind(vec![all[0]]));
        assert_eq!(of(&["9999_later"]), SchemaState::Newer("9999_later".to_owned()));
    }
}
