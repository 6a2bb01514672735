//! How many connections there are, from where, and which are too many.
//!
//! A connection is counted before anything is kept for it, and no longer once its [`Open`] is dropped, so that no way of
//! ending can leave a count behind.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// In all.
    pub max: u32,
    /// From one address. Where nothing is said, 1,024, but not for this machine itself: all its programs and every proxy
    /// on it have the same one.
    pub per_address_max: Option<u32>,
}

impl ConnectionLimits {
    /// Those from one address, where nothing else is said.
    const PER_ADDRESS_DEFAULT: u32 = 1_024;

    fn per_address(self, address: IpAddr) -> u32 {
        match self.per_address_max {
            Some(max) => max,
            None if address.is_loopback() => u32::MAX,
            None => Self::PER_ADDRESS_DEFAULT,
        }
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { max: 20_000, per_address_max: None }
    }
}

/// What the port counts.
#[derive(Debug, Default)]
pub struct PortMetrics {
    opened: AtomicU64,
    closed: AtomicU64,
    over_all: AtomicU64,
    over_address: AtomicU64,
}

impl PortMetrics {
    fn open(&self) -> u64 {
        // In this order: one that closes meanwhile must not make fewer than none.
        let closed = self.closed.load(Ordering::Acquire);
        self.opened.load(Ordering::Acquire).saturating_sub(closed)
    }

    /// Puts the numbers at the end of what is told in the text format of `OpenMetrics`.
    pub(crate) fn add_to(&self, text: &mut String) {
        const END: &str = "# EOF\n";
        if text.ends_with(END) {
            text.truncate(text.len() - END.len());
        }
        let (all, address) =
            (self.over_all.load(Ordering::Relaxed), self.over_address.load(Ordering::Relaxed));
        let written = write!(
            text,
            "# HELP redrive_connections Connections that are open.\n\
             # TYPE redrive_connections gauge\n\
             redrive_connections {}\n\
             # HELP redrive_connections_accepted Connections that were accepted and served.\n\
             # TYPE redrive_connections_accepted counter\n\
             redrive_connections_accepted_total {}\n\
             # HELP redrive_connections_refused Connections that were closed at once, by the limit that was reached.\n\
             # TYPE redrive_connections_refused counter\n\
             redrive_connections_refused_total{{limit=\"all\"}} {all}\n\
             redrive_connections_refused_total{{limit=\"address\"}} {address}\n\
             {END}",
            self.open(),
            self.opened.load(Ordering::Relaxed),
        );
        written.expect("a string takes all that is written to it");
    }
}

/// The connections of a port.
#[derive(Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    metrics: Arc<PortMetrics>,
    /// Those that have connections, and how many.
    by_address: Mutex<HashMap<IpAddr, u32>>,
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, metrics: Arc::default(), by_address: Mutex::default() }
    }

    pub(super) fn metrics(&self) -> Arc<PortMetrics> {
        Arc::clone(&self.metrics)
    }

    /// One more from there, unless that is one too many. Called by one task only, so that nothing comes between the look
    /// and the count.
    pub(super) fn open(self: &Arc<Self>, from: IpAddr) -> Option<Open> {
        if self.metrics.open() >= u64::from(self.limits.max) {
            self.metrics.over_all.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let address = counted_as(from);
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.get(&address).copied().unwrap_or(0);
        if count >= self.limits.per_address(address) {
            self.metrics.over_address.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        by_address.insert(address, count + 1);
        drop(by_address);
        self.metrics.opened.fetch_add(1, Ordering::Release);
        Some(Open { connections: Arc::clone(self), address })
    }
}

/// The address by which connections are counted. Who has one IPv6 address has all of its /64.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// A connection that counts for as long as this is kept.
#[derive(Debug)]
pub(super) struct Open {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut by_address = self.connections.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
        drop(by_address);
        self.connections.metrics.closed.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(max: u32, per_address_max: Option<u32>) -> Arc<Connections> {
        Arc::new(Connections::new(ConnectionLimits { max, per_address_max }))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn no_more_in_all_and_from_one_address_than_allowed_until_one_ends() {
        let connections = connections(3, Some(2));
        let first = connections.open(ip("192.0.2.1")).unwrap();
        let _second = connections.open(ip("::ffff:192.0.2.1")).unwrap();
        assert!(connections.open(ip("192.0.2.1")).is_none(), "that is the same address, said otherwise");
        let _third = connections.open(ip("192.0.2.2")).unwrap();
        assert!(connections.open(ip("192.0.2.3")).is_none(), "three in all");
        drop(first);
        assert!(connections.open(ip("192.0.2.1")).is_some());
        let mut text = "# EOF\n".to_owned();
        connections.metrics().add_to(&mut text);
        for line in [
            "redrive_connections 2\n",
            "redrive_connections_accepted_total 4\n",
            "redrive_connections_refused_total{limit=\"all\"} 1\n",
            "redrive_connections_refused_total{limit=\"address\"} 1\n# EOF\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(text.matches("# EOF").count(), 1, "the end comes once: {text}");
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let connections = connections(10, Some(1));
        let _one = connections.open(ip("2001:db8::1")).unwrap();
        assert!(connections.open(ip("2001:db8::ffff:0:0:1")).is_none());
        assert!(connections.open(ip("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn this_machine_is_held_to_a_limit_only_where_somebody_set_one() {
        let of = |max, address| {
            let connections = connections(5_000, max);
            let open: Vec<Open> = (0..2_000).map_while(|_| connections.open(ip(address))).collect();
            open.len()
        };
        assert_eq!((of(None, "127.0.0.1"), of(None, "::1"), of(None, "192.0.2.1")), (2_000, 2_000, 1_024));
        assert_eq!(of(Some(7), "127.0.0.1"), 7);
    }

    #[test]
    fn nothing_is_kept_of_who_has_gone_or_was_refused() {
        let connections = connections(2, Some(1));
        let one = connections.open(ip("192.0.2.1"));
        assert!(connections.open(ip("192.0.2.1")).is_none());
        drop(one);
        assert!(connections.by_address.lock().unwrap().is_empty());
    }
}
