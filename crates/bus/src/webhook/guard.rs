//! Who may be called.
//!
//! Whoever registers a webhook makes this server send a request, from where it stands: behind the firewall, beside the
//! database, on a machine of a cloud whose metadata has its credentials. So only public addresses are dialled, at the two
//! ports of the web. What an operator wants beyond that is written down as a rule, which allows what it names and nothing
//! else.

use std::net::{IpAddr, SocketAddr};

use redrive_core::invalid::{Invalid, Problem};
use thiserror::Error;

use super::cidr::{Network, block_of};

/// The ports that need no rule.
const PORTS: [u16; 2] = [80, 443];

/// Which addresses may be dialled. The default is everything public, at ports 80 and 443.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allowed: Vec<AllowRule>,
    own: Vec<SocketAddr>,
}

/// That may not be dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// The address is not public.
    #[error("the address {addr} is not allowed: {name}")]
    Address {
        /// Which.
        addr: IpAddr,
        /// What it is instead, such as "private".
        name: &'static str,
        /// The rule that a URL with this address breaks.
        rule: &'static str,
    },
    /// The port is not one of the web.
    #[error("port {0} is not allowed: {OTHER_PORT}")]
    Port(u16),
    /// This server itself listens there.
    #[error("the address {0} is not allowed: this server listens there")]
    Own(SocketAddr),
}

const OTHER_PORT: &str = "only 80 and 443 are, unless a rule of the server allows another";

impl Refused {
    /// The rule that a URL breaks by it.
    pub(super) const fn invalid(self) -> Invalid {
        let rule = match self {
            Self::Address { rule, .. } => rule,
            Self::Port(_) => {
                "has a port that is not allowed: only 80 and 443 are, unless a rule of the server allows another"
            }
            Self::Own(_) => "leads to an address that is not allowed: this server listens there",
        };
        Invalid::unusable("url", rule)
    }
}

impl Guard {
    /// Everything public, and what these rules allow.
    pub const fn allowing(rules: Vec<AllowRule>) -> Self {
        Self { allowed: rules, own: Vec::new() }
    }

    /// The same without the addresses at which this server itself listens. Only a rule that names the very address and
    /// port allows one of them: a network was not meant to contain them.
    ///
    /// One that listens at every address is refused at all that are not public, because each of those may be its own.
    #[must_use]
    pub fn refusing(mut self, listeners: Vec<SocketAddr>) -> Self {
        self.own.extend(listeners);
        self
    }

    /// Whether `addr` may be dialled at `port`, for a request to `host`: the name, or the address itself.
    pub fn check(&self, host: &str, addr: IpAddr, port: u16) -> Result<(), Refused> {
        let block = block_of(addr);
        let own = self.own.iter().any(|listener| is_at(*listener, addr, port, block.is_some()));
        if own && !self.allowed.iter().any(|rule| rule.names(addr, port)) {
            return Err(Refused::Own(SocketAddr::new(addr, port)));
        }
        if self.allowed.iter().any(|rule| rule.allows(host, Some(addr), port)) {
            return Ok(());
        }
        match block {
            Some(block) => Err(Refused::Address { addr, name: block.name, rule: block.rule }),
            None if !PORTS.contains(&port) => Err(Refused::Port(port)),
            None => Ok(()),
        }
    }

    /// Whether some address of `host` may be dialled at `port`. Which one it is, is not known before it is looked up.
    pub(super) fn check_port(&self, host: &str, port: u16) -> Result<(), Refused> {
        let allowed = PORTS.contains(&port) || self.allowed.iter().any(|rule| rule.allows(host, None, port));
        if allowed { Ok(()) } else { Err(Refused::Port(port)) }
    }
}

/// Whether a listener is, or may be, what answers there.
fn is_at(listener: SocketAddr, addr: IpAddr, port: u16, is_blocked: bool) -> bool {
    let (own, addr) = (listener.ip().to_canonical(), addr.to_canonical());
    listener.port() == port && (own == addr || (own.is_unspecified() && is_blocked))
}

/// What may be called beyond the public: `10.0.0.0/8`, `10.0.0.7:8080`, `[::1]:9000`, `intranet.example.com:8443`.
///
/// A rule without a port is for 80 and 443, `:*` is for any port. A name is allowed wherever it leads, so it must be one
/// whose owner is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowRule {
    target: Target,
    ports: Ports,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Network(Network),
    /// In small letters, without the dot at its end.
    Host(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    OfTheWeb,
    One(u16),
    Any,
}

impl AllowRule {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() {
            return Err(Invalid::new("allow", Problem::Empty));
        }
        let unusable = || {
            let why = "must be an address, a network such as 10.0.0.0/8, or the name of a host; \
                then, where it is wanted, a colon and a port or `*`";
            Invalid::unusable("allow", why)
        };
        let (target, port) = split(text).ok_or_else(unusable)?;
        let ports = match port {
            None => Ports::OfTheWeb,
            Some("*") => Ports::Any,
            Some(port) => Ports::One(read_port(port).ok_or_else(unusable)?),
        };
        let target = match target.split_once('/') {
            Some((first, bits)) => Target::Network(read_network(first, bits)?),
            None => read_one(target).ok_or_else(unusable)?,
        };
        Ok(Self { target, ports })
    }

    /// Whether it is about that host at that port; about the address only where that is known.
    fn allows(&self, host: &str, addr: Option<IpAddr>, port: u16) -> bool {
        let right_port = match self.ports {
            Ports::OfTheWeb => PORTS.contains(&port),
            Ports::One(one) => one == port,
            Ports::Any => port != 0,
        };
        right_port
            && match &self.target {
                Target::Network(network) => addr.is_none_or(|addr| network.contains(addr)),
                Target::Host(name) => without_dot(host).eq_ignore_ascii_case(name),
            }
    }

    /// Whether it is about that very address and port.
    fn names(&self, addr: IpAddr, port: u16) -> bool {
        let network = match &self.target {
            Target::Network(network) => network,
            Target::Host(_) => return false,
        };
        network.is_of_one() && network.contains(addr) && self.ports == Ports::One(port)
    }
}

/// Target and port. An address of IPv6 has colons of its own, so it has a port only behind brackets.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, rest) = rest.split_once(']').filter(|(inside, _)| inside.contains(':'))?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((inside, Some(port))),
            None => rest.is_empty().then_some((inside, None)),
        };
    }
    match text.split_once(':') {
        Some((target, port)) if !port.contains(':') => Some((target, Some(port))),
        _ => Some((text, None)),
    }
}

fn read_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

fn read_network(first: &str, bits: &str) -> Result<Network, Invalid> {
    let wrong = "is no network: it must be an address, `/` and a number of bits, with no bit set beyond them";
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
    let (first, bits) = (first.parse().ok(), bits.parse().ok().filter(|_| digits));
    let network = first.zip(bits).and_then(|(first, bits)| Network::new(first, bits));
    network.ok_or_else(|| Invalid::unusable("allow", wrong))
}

/// One address, or the name of a host.
fn read_one(text: &str) -> Option<Target> {
    match text.parse() {
        Ok(addr) => Some(Target::Network(Network::of_one(addr))),
        Err(_) => is_host_name(text).then(|| Target::Host(without_dot(text).to_ascii_lowercase())),
    }
}

/// Whether it is the name of a host in ASCII. One whose last label begins with a digit is not: `127.1` and `0x7f.1` are
/// addresses to whoever dials them.
pub(super) fn is_host_name(text: &str) -> bool {
    let name = without_dot(text);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or(name);
    name.len() <= 253 && name.split('.').all(label) && !last.starts_with(|c: char| c.is_ascii_digit())
}

/// A dot at the end says that the name is whole; it is the same name.
fn without_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(rules: &[&str]) -> Guard {
        Guard::allowing(rules.iter().map(|rule| AllowRule::parse(rule).unwrap()).collect())
    }

    fn check(guard: &Guard, host: &str, addr: &str, port: u16) -> Result<(), String> {
        guard.check(host, addr.parse().unwrap(), port).map_err(|refused| refused.to_string())
    }

    #[test]
    fn everything_public_is_allowed_at_the_ports_of_the_web() {
        let guard = Guard::default();
        for port in PORTS {
            assert_eq!(check(&guard, "example.com", "8.8.8.8", port), Ok(()));
            assert_eq!(check(&guard, "example.com", "2606:4700::1", port), Ok(()));
            let refused = check(&guard, "example.com", "10.0.0.1", port).unwrap_err();
            assert_eq!(refused, "the address 10.0.0.1 is not allowed: private");
        }
        for port in [0, 1, 22, 25, 79, 81, 442, 444, 6379, 8080, 65_535] {
            let refused = check(&guard, "example.com", "8.8.8.8", port).unwrap_err();
            let said = "only 80 and 443 are, unless a rule of the server allows another";
            assert_eq!(refused, format!("port {port} is not allowed: {said}"));
        }
    }

    #[test]
    fn a_rule_allows_what_it_names_and_nothing_else() {
        // The rule, then host, address, port, and whether it is allowed.
        let cases = [
            ("127.0.0.1/32:8080", "127.0.0.1", "127.0.0.1", 8080, true),
            ("127.0.0.1/32:8080", "localhost", "127.0.0.1", 8080, true),
            ("127.0.0.1/32:8080", "127.0.0.1", "127.0.0.1", 80, false),
            ("127.0.0.1/32:8080", "127.0.0.2", "127.0.0.2", 8080, false),
            ("127.0.0.1/32:8080", "example.com", "8.8.8.8", 8080, false),
            ("127.0.0.1:8080", "127.0.0.1", "127.0.0.1", 8080, true),
            ("127.0.0.1:8080", "x", "::ffff:127.0.0.1", 8080, false),
            ("10.0.0.0/8", "10.1.2.3", "10.1.2.3", 443, true),
            ("10.0.0.0/8", "10.1.2.3", "10.1.2.3", 8443, false),
            ("10.0.0.0/8:*", "10.1.2.3", "10.1.2.3", 8443, true),
            ("10.0.0.0/8:*", "10.1.2.3", "10.1.2.3", 0, false),
            ("10.0.0.0/8:*", "11.0.0.0", "11.0.0.0", 8443, false),
            ("8.8.8.8:8443", "8.8.8.8", "8.8.8.8", 8443, true),
            ("intranet.example.com:8443", "intranet.example.com", "10.0.0.7", 8443, true),
            ("intranet.example.com:8443", "INTRANET.example.com.", "10.0.0.7", 8443, true),
            ("Intranet.Example.com.:8443", "intranet.example.com", "fd00::7", 8443, true),
            ("intranet.example.com:8443", "intranet.example.com", "10.0.0.7", 443, false),
            ("intranet.example.com:8443", "x.intranet.example.com", "10.0.0.7", 8443, false),
            ("intranet.example.com:8443", "example.com", "10.0.0.7", 8443, false),
            ("intranet.example.com", "intranet.example.com", "127.0.0.1", 80, true),
            ("[::1]:9000", "::1", "::1", 9000, true),
            ("[::1]:9000", "::1", "::1", 443, false),
            ("::1", "::1", "::1", 443, true),
            ("fd00::/8", "x", "fd12::1", 443, true),
            ("[fd00::/8]:*", "x", "fd12::1", 7400, true),
            ("[fd00::/8]:*", "x", "fc12::1", 7400, false),
        ];
        for (rule, host, addr, port, allowed) in cases {
            let checked = check(&guard(&[rule]), host, addr, port);
            assert_eq!(checked.is_ok(), allowed, "{rule} on {host} = {addr} at {port}: {checked:?}");
        }
    }

    #[test]
    fn a_port_is_allowed_where_some_address_may_be() {
        let guard = guard(&["10.0.0.0/8:8080", "intranet.example.com:8443"]);
        for (host, port, allowed) in [
            ("example.com", 443, true),
            ("example.com", 8080, true),
            ("example.com", 8443, false),
            ("intranet.example.com", 8443, true),
            ("intranet.example.com", 22, false),
        ] {
            assert_eq!(guard.check_port(host, port).is_ok(), allowed, "{host}:{port}");
        }
    }

    #[test]
    fn this_server_is_refused_unless_a_rule_names_it() {
        let own = vec!["127.0.0.1:7400".parse().unwrap(), "8.8.8.8:443".parse().unwrap()];
        let refusing = |rules: &[&str]| guard(rules).refusing(own.clone());
        let refused = check(&refusing(&["127.0.0.0/8:*", "localhost:7400"]), "localhost", "127.0.0.1", 7400);
        assert_eq!(
            refused.unwrap_err(),
            "the address 127.0.0.1:7400 is not allowed: this server listens there"
        );
        let allowed = |rules: &[&str], addr, port| check(&refusing(rules), "x", addr, port).is_ok();
        assert!(!allowed(&["127.0.0.1:*"], "127.0.0.1", 7400));
        assert!(!allowed(&["127.0.0.0/8:7400"], "127.0.0.1", 7400));
        assert!(!allowed(&["[::ffff:127.0.0.1]:*"], "::ffff:127.0.0.1", 7400));
        assert!(allowed(&["127.0.0.1:7400"], "127.0.0.1", 7400));
        assert!(allowed(&["127.0.0.1/32:7400"], "127.0.0.1", 7400));
        assert!(allowed(&["127.0.0.0/8:*"], "127.0.0.1", 7401));
        assert!(!allowed(&[], "8.8.8.8", 443));
        assert!(allowed(&[], "8.8.8.8", 80));
    }

    #[test]
    fn one_that_listens_everywhere_is_refused_at_all_that_is_not_public() {
        for everywhere in ["0.0.0.0:443", "[::]:443"] {
            let guard =
                guard(&["10.0.0.0/8", "::1", "10.0.0.9:443"]).refusing(vec![everywhere.parse().unwrap()]);
            assert!(check(&guard, "x", "10.0.0.1", 443).is_err());
            assert!(check(&guard, "x", "::1", 443).is_err());
            assert!(check(&guard, "x", "10.0.0.1", 80).is_ok());
            assert!(check(&guard, "x", "10.0.0.9", 443).is_ok());
            assert!(check(&guard, "x", "8.8.8.8", 443).is_ok());
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for wrong in [
            "",
            " ",
            ":",
            ":80",
            "*",
            "*:80",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "/8",
            "example.com/8",
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "example.com:+80",
            "example.com:http",
            "http://example.com",
            "user@example.com",
            "exa mple.com",
            "bücher.example",
            "[example.com]:80",
            "[10.0.0.1]",
            "a..b",
            ".",
            "127.1",
            "0x7f.1",
            "2130706433",
            "[::1",
            "[::1]9000",
            "[::1]:",
            "[]:80",
            "::1/129",
            "fe80::1%eth0",
        ] {
            assert_eq!(AllowRule::parse(wrong).map_err(|refused| refused.field), Err("allow"), "{wrong:?}");
        }
    }
}
