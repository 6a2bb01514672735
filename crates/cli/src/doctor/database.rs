//! PostgreSQL, where the queues are kept in it.

use redrive_store_embedded::{Clock as _, MachineClock};
use redrive_store_postgres::{Inspection, Options, SchemaState, inspect};

use super::finding::Finding;
use super::server::skew;

pub(super) async fn check(options: &Options) -> Vec<Finding> {
    let place = options.place().unwrap_or_default();
    match inspect(options).await {
        Err(error) => vec![Finding::fail("database", format!("{place}: {error}"))],
        Ok(found) => findings(options, &place, &found),
    }
}

fn findings(options: &Options, place: &str, found: &Inspection) -> Vec<Finding> {
    let reached = format!("PostgreSQL {} at {place}", found.version);
    let database = if found.standby {
        Finding::fail("database", format!("{reached} is a standby, on which nothing can be written"))
    } else {
        Finding::ok("database", reached)
    };
    let durability = match &found.short {
        Some(short) => Finding::fail("durability", short.clone()),
        None => Finding::ok("durability", format!("what is answered survives: {}", found.survives)),
    };
    let (needed, most) = (options.connections + 1, found.connections_max);
    let connections = Finding::warn_if(
        needed > most as usize,
        "connections",
        format!("an instance takes up to {needed}, and the database {most} from everybody"),
    );
    let clock = skew("database clock", found.now, MachineClock.wall());
    vec![database, durability, schema(&options.schema, &found.schema), connections, clock]
}

fn schema(name: &str, state: &SchemaState) -> Finding {
    match state {
        SchemaState::Missing => {
            Finding::ok("schema", format!("{name} is not there yet; the server makes it"))
        }
        SchemaState::Current(last) => {
            Finding::ok("schema", format!("{name} is at {last}, as this version needs it"))
        }
        SchemaState::Behind(missing) => {
            let missing = missing.join(", ");
            Finding::warn("schema", format!("{name} lacks {missing}; the server brings it up to date"))
        }
        SchemaState::Newer(newer) => Finding::fail(
            "schema",
            format!("{name} has {newer}, which this version does not know: run a newer one"),
        ),
    }
}
