//! The scripts: one for each verb, each made of the parts that it needs and known to the server by its hash.

use redis::Script;

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident: $writes:literal = [$($part:literal),+];)+) => {
        /// Every script.
        #[derive(Debug)]
        pub(crate) struct Scripts {
            $($(#[$doc])* pub(crate) $name: Verb,)+
        }

        impl Scripts {
            pub(crate) fn new() -> Self {
                Self { $($name: Verb::new(
                    stringify!($name),
                    concat!($(include_str!(concat!("../scripts/", $part, ".lua")), "\n"),+),
                    $writes,
                ),)+ }
            }

            #[cfg(test)]
            fn all(&self) -> Vec<&Verb> {
                vec![$(&self.$name),+]
            }
        }
    };
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
    enqueue: true = ["base", "lines", "keep", "enqueue"];
    lease: true = ["base", "lines", "keep", "lease"];
    ack: true = ["base", "keep", "settle", "ack"];
    extend: true = ["base", "keep", "settle", "extend"];
    release: true = ["base", "lines", "keep", "settle", "release"];
    /// nack and bury.
    nack: true = ["base", "lines", "keep", "death", "ended", "settle", "nack"];
    expire: true = ["base", "lines", "keep", "death", "ended", "expire"];
    lapse: true = ["base", "lines", "keep", "death", "lapse"];
    retain: true = ["base", "lines", "keep", "retain"];
    reschedule: true = ["base", "lines", "bulk", "reschedule"];
    redrive: true = ["base", "lines", "keep", "death", "bulk", "redrive"];
    move_to: true = ["base", "lines", "keep", "death", "bulk", "move"];
    depart: true = ["base", "lines", "keep", "depart"];
    arrive: true = ["base", "lines", "keep", "death", "arrive"];
    departed: true = ["base", "lines", "keep", "departed"];
    discard: true = ["base", "lines", "keep", "bulk", "discard"];
    page: false = ["base", "keep", "page"];
    read: false = ["base", "keep", "read"];
    find: false = ["base", "keep", "find"];
    stats: false = ["base", "stats"];
    due: false = ["base", "due"];
    groups: false = ["base", "groups"];
    queue_create: true = ["base", "queue_create"];
    queue_update: true = ["base", "lines", "queue_update"];
    queue_pause: true = ["base", "queue_pause"];
    queue_delete: true = ["base", "queue_delete"];
    queue_clear: true = ["queue_clear"];
    directory_add: true = ["directory_add"];
    directory_remove: true = ["directory_remove"];
    registry_write: true = ["registry_write"];
    log_append: true = ["base", "log_append"];
    log_trim: true = ["log_trim"];
    lock_release: true = ["lock_release"];
    meet: true = ["meet"];
    fence: true = ["fence"];
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
