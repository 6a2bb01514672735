//! Networks, and those of them that nobody may be sent to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses whose first bits are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    first: IpAddr,
    bits: u8,
}

impl Network {
    /// `None` where there are more bits than an address has, or where the address has bits beyond them: `10.0.0.1/8` is a
    /// mistake that would allow more than its writer thinks.
    pub(super) fn new(first: IpAddr, bits: u8) -> Option<Self> {
        let width = width(first);
        let beyond = width.checked_sub(bits)?;
        let rest = number(first).checked_shl(128 - u32::from(beyond)).unwrap_or(0);
        (rest == 0).then_some(Self { first, bits })
    }

    /// The network of that one address.
    pub(super) fn of_one(addr: IpAddr) -> Self {
        Self { first: addr, bits: width(addr) }
    }

    pub(super) fn is_of_one(&self) -> bool {
        self.bits == width(self.first)
    }

    /// An address of the other family is never in it, even where one can be written as the other.
    pub(super) fn contains(&self, addr: IpAddr) -> bool {
        let different = number(self.first) ^ number(addr);
        let beyond = width(self.first) - self.bits;
        self.first.is_ipv4() == addr.is_ipv4() && different.checked_shr(u32::from(beyond)).unwrap_or(0) == 0
    }
}

const fn width(addr: IpAddr) -> u8 {
    if addr.is_ipv4() { 32 } else { 128 }
}

fn number(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(addr) => addr.to_bits().into(),
        IpAddr::V6(addr) => addr.to_bits(),
    }
}

/// A network that nobody may be sent to, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    network: Network,
    /// The reason in a word or two.
    pub(super) name: &'static str,
    /// The reason as the rule that a URL breaks.
    pub(super) rule: &'static str,
}

/// Lines such as `10.0.0.0 / 8 "private"`, so that the table reads like those of the registries.
macro_rules! blocks {
    ($($kind:ident [$($part:literal),+] / $bits:literal $name:literal;)+) => {
        [$(Block {
            network: Network { first: IpAddr::$kind(address!($kind $($part),+)), bits: $bits },
            name: $name,
            rule: concat!("leads to an address that is not allowed: ", $name),
        }),+]
    };
}

macro_rules! address {
    (V4 $($part:literal),+) => { Ipv4Addr::new($($part),+) };
    (V6 $($part:literal),+) => { Ipv6Addr::new($($part),+) };
}

/// By the registries of special-purpose addresses (RFC 6890 and what came after it), and by the clouds. The first line
/// that fits gives the reason.
static BLOCKS: [Block; 35] = blocks! {
    V4 [0, 0, 0, 0] / 8 "this network";
    V4 [10, 0, 0, 0] / 8 "private";
    V4 [100, 64, 0, 0] / 10 "shared by a carrier";
    V4 [127, 0, 0, 0] / 8 "loopback";
    V4 [169, 254, 0, 0] / 16 "link-local";
    V4 [168, 63, 129, 16] / 32 "a cloud's own services";
    V4 [172, 16, 0, 0] / 12 "private";
    V4 [192, 0, 0, 0] / 24 "for protocols";
    V4 [192, 0, 2, 0] / 24 "for documentation";
    V4 [192, 88, 99, 0] / 24 "6to4";
    V4 [192, 168, 0, 0] / 16 "private";
    V4 [198, 18, 0, 0] / 15 "for benchmarks";
    V4 [198, 51, 100, 0] / 24 "for documentation";
    V4 [203, 0, 113, 0] / 24 "for documentation";
    V4 [224, 0, 0, 0] / 4 "multicast";
    V4 [255, 255, 255, 255] / 32 "broadcast";
    V4 [240, 0, 0, 0] / 4 "reserved";
    V6 [0, 0, 0, 0, 0, 0, 0, 0] / 128 "unspecified";
    V6 [0, 0, 0, 0, 0, 0, 0, 1] / 128 "loopback";
    V6 [0, 0, 0, 0, 0, 0xffff, 0, 0] / 96 "IPv4 written as IPv6";
    V6 [0, 0, 0, 0, 0, 0, 0, 0] / 96 "IPv4 written as IPv6";
    V6 [0x64, 0xff9b, 0, 0, 0, 0, 0, 0] / 96 "NAT64";
    V6 [0x64, 0xff9b, 1, 0, 0, 0, 0, 0] / 48 "NAT64";
    V6 [0x2001, 0, 0, 0, 0, 0, 0, 0] / 32 "Teredo";
    V6 [0x2001, 0, 0, 0, 0, 0, 0, 0] / 23 "for protocols";
    V6 [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0] / 32 "for documentation";
    V6 [0x2002, 0, 0, 0, 0, 0, 0, 0] / 16 "6to4";
    V6 [0x3fff, 0, 0, 0, 0, 0, 0, 0] / 20 "for documentation";
    V6 [0xfc00, 0, 0, 0, 0, 0, 0, 0] / 7 "private";
    V6 [0xfe80, 0, 0, 0, 0, 0, 0, 0] / 10 "link-local";
    V6 [0xfec0, 0, 0, 0, 0, 0, 0, 0] / 10 "site-local";
    V6 [0xff00, 0, 0, 0, 0, 0, 0, 0] / 8 "multicast";
    // What is left outside of 2000::/3 is nobody's.
    V6 [0, 0, 0, 0, 0, 0, 0, 0] / 3 "reserved";
    V6 [0x4000, 0, 0, 0, 0, 0, 0, 0] / 2 "reserved";
    V6 [0x8000, 0, 0, 0, 0, 0, 0, 0] / 1 "reserved";
};

/// Why nobody may be sent to that address; `None` where it is public.
pub(super) fn block_of(addr: IpAddr) -> Option<&'static Block> {
    // The IPv4 address within says more than that it was wrapped.
    let within = match addr {
        IpAddr::V6(addr) => addr.to_ipv4_mapped().map(IpAddr::V4),
        IpAddr::V4(_) => None,
    };
    let block = |addr| BLOCKS.iter().find(|block| block.network.contains(addr));
    within.and_then(block).or_else(|| block(addr))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network(addr: &str, bits: u8) -> Option<Network> {
        Network::new(addr.parse().unwrap(), bits)
    }

    fn bit(addr: IpAddr, index: u8) -> bool {
        match addr {
            IpAddr::V4(addr) => addr.octets()[usize::from(index / 8)] >> (7 - index % 8) & 1 == 1,
            IpAddr::V6(addr) => addr.octets()[usize::from(index / 8)] >> (7 - index % 8) & 1 == 1,
        }
    }

    fn addresses() -> impl Strategy<Value = IpAddr> {
        // Near the edges of the blocks, where mistakes are, and anywhere else.
        let edges = prop::sample::select(BLOCKS.iter().map(|block| block.network).collect::<Vec<_>>());
        let near = (edges, any::<u128>(), any::<i8>()).prop_map(|(network, inside, step)| {
            let host = u32::from(width(network.first) - network.bits);
            let inside = inside & 1_u128.checked_shl(host).unwrap_or(0).wrapping_sub(1);
            let number = match step {
                -4..0 => number(network.first).wrapping_add_signed(step.into()),
                0..4 => {
                    let next = number(network.first).wrapping_add(1_u128.checked_shl(host).unwrap_or(0));
                    next.wrapping_add_signed(i128::from(step) - 2)
                }
                _ => number(network.first) | inside,
            };
            match network.first {
                IpAddr::V4(_) => {
                    IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number & 0xffff_ffff).unwrap()))
                }
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
            }
        });
        prop_oneof![
            4 => near,
            1 => any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
            1 => any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits))),
        ]
    }

    /// The list as the specification of the guard has it, as text.
    const SPECIFIED: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 168.63.129.16/32 \
        172.16.0.0/12 192.0.0.0/24 192.168.0.0/16 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 198.18.0.0/15 \
        224.0.0.0/4 240.0.0.0/4 ::/128 ::1/128 fc00::/7 fe80::/10 fec0::/10 ff00::/8 ::ffff:0:0/96 ::/96 \
        64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32 2001:db8::/32";

    /// What is blocked beyond it: what the registries call special as well.
    const BEYOND: &str = "192.88.99.0/24 2001::/23 3fff::/20";

    /// Bit by bit, over the text.
    fn is_in(list: &str, addr: IpAddr) -> bool {
        list.split_whitespace().any(|written| {
            let (first, bits) = written.split_once('/').unwrap();
            let (first, bits): (IpAddr, u8) = (first.parse().unwrap(), bits.parse().unwrap());
            first.is_ipv4() == addr.is_ipv4() && (0..bits).all(|index| bit(first, index) == bit(addr, index))
        })
    }

    fn is_blocked_by_reference(addr: IpAddr) -> bool {
        let global = addr.is_ipv4() || (!bit(addr, 0) && !bit(addr, 1) && bit(addr, 2));
        !global || is_in(SPECIFIED, addr) || is_in(BEYOND, addr)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        #[test]
        fn the_guard_agrees_with_one_that_looks_at_each_bit(addr in addresses()) {
            prop_assert_eq!(block_of(addr).is_some(), is_blocked_by_reference(addr), "{}", addr);
        }

        #[test]
        fn a_network_contains_what_begins_like_it(first: u128, other: u128, bits in 0..=128_u8) {
            let first = first & u128::MAX.checked_shl(u32::from(128 - bits)).unwrap_or(0);
            // Half of what is asked for begins like it.
            let other = if other & 1 == 0 { first | other.checked_shr(u32::from(bits)).unwrap_or(0) } else { other };
            let (first, other) = (Ipv6Addr::from_bits(first).into(), Ipv6Addr::from_bits(other).into());
            let expected = (0..bits).all(|index| bit(first, index) == bit(other, index));
            prop_assert_eq!(Network::new(first, bits).unwrap().contains(other), expected);
        }
    }

    #[test]
    fn the_reason_is_the_nearest() {
        let cases = [
            ("0.0.0.0", Some("this network")),
            ("10.255.255.255", Some("private")),
            ("11.0.0.0", None),
            ("100.63.255.255", None),
            ("100.127.255.255", Some("shared by a carrier")),
            ("127.0.0.1", Some("loopback")),
            ("169.254.169.254", Some("link-local")),
            ("168.63.129.15", None),
            ("168.63.129.16", Some("a cloud's own services")),
            ("172.15.255.255", None),
            ("172.31.255.255", Some("private")),
            ("172.32.0.0", None),
            ("255.255.255.255", Some("broadcast")),
            ("8.8.8.8", None),
            ("::", Some("unspecified")),
            ("::1", Some("loopback")),
            ("::7f00:1", Some("IPv4 written as IPv6")),
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:8.8.8.8", Some("IPv4 written as IPv6")),
            ("64:ff9b::808:808", Some("NAT64")),
            ("64:ff9b:1:ffff::1", Some("NAT64")),
            ("2001::1", Some("Teredo")),
            ("2001:1::1", Some("for protocols")),
            ("2001:200::1", None),
            ("2001:db8::1", Some("for documentation")),
            ("2002:7f00:1::", Some("6to4")),
            ("fd00:ec2::254", Some("private")),
            ("fe80::1", Some("link-local")),
            ("febf::1", Some("link-local")),
            ("feff::1", Some("site-local")),
            ("ff02::1", Some("multicast")),
            ("4000::1", Some("reserved")),
            ("2606:4700:4700::1111", None),
        ];
        for (addr, expected) in cases {
            assert_eq!(block_of(addr.parse().unwrap()).map(|block| block.name), expected, "{addr}");
        }
    }

    #[test]
    fn a_network_has_no_bits_beyond_its_length() {
        for (addr, bits) in [("10.0.0.0", 8), ("0.0.0.0", 0), ("10.0.0.1", 32), ("::", 0), ("fd00::", 8)] {
            assert!(network(addr, bits).is_some(), "{addr}/{bits}");
        }
        for (addr, bits) in [("10.0.0.1", 8), ("10.0.0.0", 33), ("0.0.0.1", 0), ("::1", 127), ("::", 129)] {
            assert_eq!(network(addr, bits), None, "{addr}/{bits}");
        }
        assert!(Network::of_one("::1".parse().unwrap()).is_of_one());
        assert!(!network("10.0.0.0", 31).unwrap().is_of_one());
    }

    #[test]
    fn a_network_of_one_family_has_no_address_of_the_other() {
        let everything = |addr| network(addr, 0).unwrap();
        assert!(everything("0.0.0.0").contains("255.0.0.1".parse().unwrap()));
        assert!(!everything("0.0.0.0").contains("::1".parse().unwrap()));
        assert!(!everything("::").contains("0.0.0.1".parse().unwrap()));
    }
}
