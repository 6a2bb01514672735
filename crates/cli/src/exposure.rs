//! Whether a server may listen where it is told to.
//!
//! On loopback whoever is on the machine is trusted. Elsewhere anybody may be listening on the way, and anybody may call:
//! that needs TLS and API keys, or a word from the operator for each that is missing.

use std::net::SocketAddr;

use crate::config::Wrong;

/// One of the two things that protect a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    There,
    /// The operator does without it.
    Waived,
    Missing,
}

impl Guard {
    pub(crate) fn new(there: bool, waived: bool) -> Self {
        match (there, waived) {
            (true, _) => Self::There,
            (false, true) => Self::Waived,
            (false, false) => Self::Missing,
        }
    }
}

/// Refuses an address that others can reach, unless it is protected or the operator said that it need not be.
pub(crate) fn check(listen: SocketAddr, tls: Guard, keys: Guard) -> anyhow::Result<()> {
    let (no_tls, no_keys) = (tls == Guard::Missing, keys == Guard::Missing);
    if listen.ip().to_canonical().is_loopback() || !(no_tls || no_keys) {
        return Ok(());
    }
    let missing = match (no_tls, no_keys) {
        (true, true) => "TLS and API keys are missing",
        (true, false) => "TLS is missing",
        _ => "API keys are missing",
    };
    Err(Wrong::value(
        "listen",
        format!(
            "{listen} can be reached from other machines, and {missing}: give --tls-cert and --tls-key, set \
             REDRIVE_BOOTSTRAP_KEY to what `redrive key generate` prints, or say --insecure-without-tls and \
             --insecure-without-keys for what something else protects"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(listen: &str, bits: [u8; 4]) -> Option<String> {
        let [tls, keys, without_tls, without_keys] = bits.map(|bit| bit == 1);
        let (tls, keys) = (Guard::new(tls, without_tls), Guard::new(keys, without_keys));
        check(listen.parse().unwrap(), tls, keys).err().map(|error| error.to_string())
    }

    #[test]
    fn what_others_can_reach_needs_tls_and_keys_or_a_word_for_each() {
        for (bits, missing) in [
            ([0, 0, 0, 0], Some("and TLS and API keys are missing")),
            ([0, 0, 0, 1], Some("and TLS is missing")),
            ([0, 0, 1, 0], Some("and API keys are missing")),
            ([0, 0, 1, 1], None),
            ([0, 1, 0, 0], Some("and TLS is missing")),
            ([0, 1, 0, 1], Some("and TLS is missing")),
            ([0, 1, 1, 0], None),
            ([0, 1, 1, 1], None),
            ([1, 0, 0, 0], Some("and API keys are missing")),
            ([1, 0, 0, 1], None),
            ([1, 0, 1, 0], Some("and API keys are missing")),
            ([1, 0, 1, 1], None),
            ([1, 1, 0, 0], None),
            ([1, 1, 0, 1], None),
            ([1, 1, 1, 0], None),
            ([1, 1, 1, 1], None),
        ] {
            for listen in
                ["0.0.0.0:7400", "[::]:7400", "192.0.2.1:0", "[2001:db8::1]:7400", "[::ffff:10.0.0.1]:1"]
            {
                let refused = refused(listen, bits);
                assert_eq!(refused.is_some(), missing.is_some(), "{listen} {bits:?}: {refused:?}");
                if let (Some(said), Some(missing)) = (refused, missing) {
                    assert!(said.contains(missing), "{said}");
                    assert!(
                        said.contains("--insecure-without-tls") && said.contains("--insecure-without-keys")
                    );
                }
            }
            for listen in ["127.0.0.1:7400", "127.8.8.8:0", "[::1]:7400", "[::ffff:127.0.0.1]:1"] {
                assert_eq!(refused(listen, bits), None, "{listen} {bits:?}");
            }
        }
    }
}
