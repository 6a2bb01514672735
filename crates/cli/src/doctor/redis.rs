//! Redis, or the nodes of its cluster, where the queues are kept in it.

use redrive_store_embedded::{Clock as _, MachineClock};
use redrive_store_redis::{ClusterState, Format, Inspection, Options, Server, inspect};

use super::finding::Finding;
use super::server::skew;

/// A server that uses more of its memory than this is nearly full, in percent.
const FULL_PERCENT: u64 = 90;

pub(super) async fn check(options: &Options) -> Vec<Finding> {
    match inspect(options).await {
        Err(error) => {
            let place = options.place().unwrap_or_default();
            vec![Finding::fail("redis", format!("{place}: {error}"))]
        }
        Ok(found) => findings(options, &found),
    }
}

fn findings(options: &Options, found: &Inspection) -> Vec<Finding> {
    let mut findings: Vec<Finding> = found.servers.iter().map(role).collect();
    findings.extend(found.cluster.as_ref().map(cluster));
    findings.push(match &found.short {
        Some(short) => Finding::fail("durability", short.clone()),
        None => Finding::ok("durability", format!("what is answered survives: {}", found.survives)),
    });
    findings.push(format(&options.prefix, &found.format));
    findings.extend(found.servers.iter().map(memory));
    let wall = MachineClock.wall();
    findings.extend(found.servers.iter().map(|server| skew("redis clock", server.now, wall)));
    findings
}

fn role(server: &Server) -> Finding {
    let reached = format!("Redis {} at {}", server.version, server.place);
    if server.replica {
        return Finding::fail("redis", format!("{reached} is a replica, on which nothing can be written"));
    }
    let major = server.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < 7) {
        return Finding::fail("redis", format!("{reached} is too old: 7 is the first that is of use"));
    }
    Finding::ok("redis", reached)
}

fn cluster(state: &ClusterState) -> Finding {
    let missing = state.slots_missing;
    if missing > 0 {
        return Finding::fail("cluster", format!("{missing} slots are on no node"));
    }
    if state.ok {
        return Finding::ok("cluster", "all slots are served");
    }
    Finding::fail("cluster", "it says that it serves nobody: a node is lost")
}

fn format(prefix: &str, format: &Format) -> Finding {
    match format {
        Format::Missing => {
            Finding::ok("format", format!("nothing is kept under {prefix} yet; the server begins it"))
        }
        Format::Current(format) => {
            Finding::ok("format", format!("{prefix} has format {format}, as this version needs it"))
        }
        Format::Other(other) => Finding::fail(
            "format",
            format!(
                "{prefix} has format {other}, which this version does not know: run the one that wrote it"
            ),
        ),
    }
}

fn memory(server: &Server) -> Finding {
    const NAME: &str = "memory";
    let (used, place) = (server.memory >> 20, &server.place);
    match server.memory_max {
        // Too little durability is told elsewhere; what it is about is told here, whatever was asked for.
        Some(_) if server.evicts => Finding::warn(
            NAME,
            format!("{place} throws keys away when it is full: set maxmemory-policy to noeviction"),
        ),
        Some(max) => Finding::warn_if(
            server.memory > max / 100 * FULL_PERCENT,
            NAME,
            format!("{place} uses {used} of {} MiB, and refuses enqueues when it is full", max >> 20),
        ),
        None => Finding::ok(NAME, format!("{place} uses {used} MiB and has no limit of its own")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    fn server() -> Server {
        Server {
            place: "here:1".to_owned(),
            version: "7.0.15".to_owned(),
            replica: false,
            now: MachineClock.wall(),
            memory: 1 << 20,
            memory_max: None,
            evicts: false,
        }
    }

    #[test]
    fn a_replica_and_an_old_server_are_of_no_use() {
        assert_eq!(role(&server()), Finding::ok("redis", "Redis 7.0.15 at here:1"));
        assert_eq!(role(&Server { replica: true, ..server() }).level, Level::Fail);
        assert_eq!(role(&Server { version: "6.2.14".to_owned(), ..server() }).level, Level::Fail);
    }

    #[test]
    fn a_cluster_serves_when_all_slots_are_on_nodes_that_answer() {
        let state = |ok, slots_missing| cluster(&ClusterState { ok, slots_missing }).level;
        assert_eq!([state(true, 0), state(true, 7), state(false, 0)], [Level::Ok, Level::Fail, Level::Fail]);
    }

    #[test]
    fn memory_that_runs_out_is_told() {
        let level = |max, evicts| memory(&Server { memory_max: max, evicts, ..server() }).level;
        assert_eq!(level(None, false), Level::Ok);
        assert_eq!(level(Some(100 << 20), false), Level::Ok);
        assert_eq!(level(Some(1 << 20), false), Level::Warn);
        assert_eq!(level(Some(100 << 20), true), Level::Warn);
    }
}
