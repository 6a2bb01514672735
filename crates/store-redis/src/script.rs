//! The scripts: one for each verb, each made of the parts that it needs and known to the server by its hash.

use redis::Script;

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident: $kind:ident = [$($part:literal),+];)+) => {
        /// Every script.
        #[derive(Debug)]
        pub(crate) struct Scripts {
            $($(#[$doc])* pub(crate) $name: Verb,)+
        }

        impl Scripts {
            pub(crate) fn new() -> Self {
                Self { $($name: Verb::new(
                    stringify!($name),
                    concat!(scripts!(@head $kind), $(include_str!(concat!("../scripts/", $part, ".lua")), "\n"),+),
                    scripts!(@writes $kind),
                ),)+ }
            }

            #[cfg(test)]
            fn all(&self) -> Vec<&Verb> {
                vec![$(&self.$name),+]
            }
        }
    };
    // What takes room is refused by a server that has none left, and what gives room is not. A script without a first line of this kind
    // would be refused only up to its first write, which may be one that makes room: the rest of it would be let in behind that.
    (@head adds) => { "#!lua\n" };
    (@head moves) => { "#!lua flags=allow-oom\n" };
    (@head looks) => { "#!lua flags=no-writes\n" };
    // What only sets right what follows from the rest may be done again.
    (@head tidies) => { "#!lua flags=allow-oom\n" };
    (@writes looks) => { false };
    (@writes tidies) => { false };
    (@writes $kind:ident) => { true };
}

/// A script.
#[derive(Debug)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) hash: String,
    /// Whether it changes something.
    pub(crate) writes: bool,
}

impl Verb {
    fn new(name: &'static str, text: &'static str, writes: bool) -> Self {
        Self { name, text, hash: Script::new(text).get_hash().to_owned(), writes }
    }
}

scripts! {
    enqueue: adds = ["base", "lines", "keep", "dedup", "enqueue"];
    lease: moves = ["base", "lines", "heads", "keep", "asked", "ready", "turns", "probe", "lease"];
    ack: moves = ["base", "keep", "settle", "ack"];
    extend: moves = ["base", "keep", "settle", "extend"];
    release: moves = ["base", "lines", "keep", "settle", "release"];
    /// nack and bury.
    nack: moves = ["base", "lines", "keep", "death", "ended", "settle", "nack"];
    expire: moves = ["base", "lines", "keep", "death", "ended", "expire"];
    lapse: moves = ["base", "lines", "keep", "death", "lapse"];
    retain: moves = ["base", "lines", "keep", "dedup", "retain"];
    reschedule: moves = ["base", "lines", "bulk", "reschedule"];
    redrive: moves = ["base", "lines", "keep", "death", "bulk", "redrive"];
    move_to: moves = ["base", "lines", "keep", "death", "bulk", "move"];
    depart: moves = ["base", "lines", "keep", "depart"];
    arrive: adds = ["base", "lines", "keep", "death", "arrive"];
    departed: moves = ["base", "lines", "keep", "departed"];
    discard: moves = ["base", "lines", "keep", "bulk", "discard"];
    page: looks = ["base", "keep", "page"];
    read: looks = ["base", "keep", "read"];
    find: looks = ["base", "keep", "find"];
    tried: looks = ["base", "keep", "tried"];
    stats: tidies = ["base", "heads", "stats"];
    due: looks = ["base", "due"];
    groups: looks = ["base", "groups"];
    queue_create: adds = ["base", "queue_create"];
    queue_update: moves = ["base", "lines", "queue_update"];
    queue_pause: moves = ["base", "queue_pause"];
    queue_delete: moves = ["base", "queue_delete"];
    queue_clear: moves = ["queue_clear"];
    trace_note: moves = ["trace_note"];
    directory_add: adds = ["directory_add"];
    directory_remove: moves = ["directory_remove"];
    /// What is told by hand, the way of an operation that makes room among it.
    registry_write: moves = ["registry_write"];
    log_append: adds = ["base", "log_append"];
    log_trim: moves = ["log_trim"];
    lock_hold: moves = ["lock_hold"];
    lock_release: moves = ["lock_release"];
    meet: moves = ["meet"];
    fence: moves = ["fence"];
    introduce: moves = ["introduce"];
    reserve: moves = ["reserve"];
    version: moves = ["version"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_scripts_are_the_same_and_each_is_known_by_its_hash() {
        let scripts = Scripts::new();
        let mut hashes: Vec<&str> = scripts.all().iter().map(|verb| verb.hash.as_str()).collect();
        assert!(hashes.iter().all(|hash| hash.len() == 40));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), scripts.all().len());
    }
}
