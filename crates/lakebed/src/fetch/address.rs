//! Which addresses may be connected to. A crawler follows links of strangers; none of them may reach
//! into this machine or the network it stands in.
//!
//! FET-1: no connection is opened to an address outside the public internet, unless the source allows the
//! host or the network; the address that is checked is the one that is connected to.
//!
//! Odd spellings of an address (`0x7f.1`, `2130706433`, `017700000001`) are plain ones after
//! [`CanonicalUrl`](crate::spec::CanonicalUrl), and an address literal is checked like a resolved one.
//! Behind a proxy the proxy resolves the name, so only the name and literals can be checked here: whoever
//! uses a proxy relies on it for the rest.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What a source may reach beyond the public internet. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressPolicy {
    /// Hosts whose addresses are all allowed: names in small letters, or address literals as they stand
    /// in a URL. Not their subdomains.
    pub allowed_hosts: Vec<String>,
    /// Networks that are allowed whatever the name.
    pub allowed_networks: Vec<Network>,
}

impl AddressPolicy {
    /// Whether `address`, which `host` resolved to, may be connected to; else what kind it is.
    ///
    /// # Errors
    /// The kind of address, such as `a private network`.
    pub fn check(&self, host: &str, address: IpAddr) -> std::result::Result<(), &'static str> {
        let Some(kind) = special_kind(address) else {
            return Ok(());
        };
        let allowed = self.allows_host(host)
            || (self.allowed_networks.iter()).any(|network| network.contains(address));
        if allowed { Ok(()) } else { Err(kind) }
    }

    /// What can be said of a host before it is resolved: literals, and names that mean this machine or
    /// the local network everywhere.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub fn check_name(&self, host: &str) -> std::result::Result<(), &'static str> {
        if let Some(address) = literal(host) {
            return self.check(host, address);
        }
        let local = ["localhost", "local", "internal", "home.arpa"]
            .iter()
            .any(|suffix| host == *suffix || host.ends_with(&format!(".{suffix}")));
        if local && !self.allows_host(host) {
            return Err("a name of the local network");
        }
        Ok(())
    }

    fn allows_host(&self, host: &str) -> bool {
        self.allowed_hosts.iter().any(|allowed| allowed == host)
    }
}

/// The address that the host part of a canonical URL spells; `None` for a name.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    let bare = (host.strip_prefix('[').and_then(|h| h.strip_suffix(']'))).unwrap_or(host);
    bare.parse().ok()
}

/// A block of addresses, written `10.0.0.0/8` or `fd00::/8`; a single address is a block, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether the address lies in it. An IPv4 network holds the IPv6 forms of its addresses, too.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => same_prefix(
                u128::from(base.to_bits()) << 96,
                u128::from(address.to_bits()) << 96,
                self.bits,
            ),
            (IpAddr::V4(_), IpAddr::V6(address)) => {
                embedded(address).is_some_and(|inner| self.contains(IpAddr::V4(inner)))
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                same_prefix(base.to_bits(), address.to_bits(), self.bits)
            }
            (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

fn same_prefix(a: u128, b: u128, bits: u8) -> bool {
    let rest = 128_u32.saturating_sub(u32::from(bits));
    (a ^ b).checked_shr(rest).unwrap_or(0) == 0
}

impl FromStr for Network {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!("`{text}` is not a network"))
                .hint("write an address, or a block such as `10.0.0.0/8` or `fd00::/8`")
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let base: IpAddr = address.parse().map_err(|_| bad())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits: u8 = match bits {
            Some(bits) => bits.parse().map_err(|_| bad())?,
            None => most,
        };
        if bits > most {
            return Err(bad());
        }
        Ok(Self { base, bits })
    }
}

impl TryFrom<String> for Network {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

/// What an address is that does not belong to the public internet; `None` for one that does.
///
/// After the registries of special-purpose addresses at IANA (RFC 6890 and its successors).
fn special_kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => special_v4(inner),
            None => special_v6(address),
        },
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, NAT64 (RFC 6052), 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return Some(mapped);
    }
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (a, b) {
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => Some(of(g, h)),
        (0x2002, _) => Some(of(b, c)),
        _ => None,
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an unspecified address"),
        [127, ..] => Some("this machine"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private network"),
        [100, 64..=127, ..] => Some("a shared network of a provider"),
        [169, 254, ..] => Some("a link-local address"),
        [192, 0, 0, _] | [192, 88, 99, _] => Some("an address of a protocol"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Some("an address of documentation")
        }
        [198, 18 | 19, ..] => Some("an address of benchmarks"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [a, b, ..] = address.segments();
    match (a, b) {
        _ if address.is_unspecified() => Some("an unspecified address"),
        _ if address.is_loopback() => Some("this machine"),
        (0xfc00..=0xfdff, _) => Some("a private network"),
        (0xfe80..=0xfebf, _) => Some("a link-local address"),
        (0xfec0..=0xfeff, _) => Some("a site-local address"),
        (0xff00..=0xffff, _) => Some("a multicast address"),
        (0x2001, 0xdb8) | (0x3fff, 0..=0xfff) => Some("an address of documentation"),
        (0x2001, 0..=0x1ff) => Some("an address of a protocol"),
        (0x2000..=0x3fff, _) => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(policy: &AddressPolicy, host: &str) -> bool {
        policy.check_name(host).is_err()
    }

    #[test]
    fn what_is_not_public_is_refused() {
        let policy = AddressPolicy::default();
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "192.88.99.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::127.0.0.1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::a00:1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2002:a00:1::1]",
            "[100::1]",
            "[2001::1]",
            "[2001:2::1]",
            "[2001:20::1]",
            "[2001:db8::1]",
            "[3fff:fff::1]",
            "[fc00::1]",
            "[fd12::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[4000::1]",
            "[5f00::1]",
            "localhost",
            "a.localhost",
            "printer.local",
            "metadata.google.internal",
            "router.home.arpa",
        ] {
            assert!(refused(&policy, special), "{special}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "169.253.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "[2606:4700::1]",
            "[2001:200::1]",
            "[2a00::1]",
            "[::ffff:8.8.8.8]",
            "[64:ff9b::808:808]",
            "[2002:808:808::1]",
            "example.com",
            "notlocalhost",
            "local.example.com",
        ] {
            assert!(!refused(&policy, public), "{public}");
        }
    }

    #[test]
    fn a_source_may_allow_a_host_or_a_network() {
        let policy = AddressPolicy {
            allowed_hosts: vec!["intranet.example".to_owned(), "localhost".to_owned()],
            allowed_networks: vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()],
        };
        let address = |t: &str| t.parse::<IpAddr>().unwrap();
        assert_eq!(
            policy.check("intranet.example", address("192.168.1.1")),
            Ok(())
        );
        assert_eq!(
            policy.check("other.example", address("192.168.1.1")),
            Err("a private network")
        );
        assert!(
            policy
                .check("a.intranet.example", address("192.168.1.1"))
                .is_err()
        );
        assert_eq!(policy.check("any", address("10.1.255.255")), Ok(()));
        assert_eq!(policy.check("any", address("::ffff:10.1.0.1")), Ok(()));
        assert!(policy.check("any", address("10.2.0.0")).is_err());
        assert_eq!(policy.check("any", address("fdff::1")), Ok(()));
        assert_eq!(policy.check_name("localhost"), Ok(()));
        assert!(refused(&policy, "a.localhost"));
    }

    #[test]
    fn networks_are_read_strictly() {
        for (text, written) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1/32"),
            ("::/0", "::/0"),
            ("0.0.0.0/0", "0.0.0.0/0"),
        ] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), written);
        }
        for bad in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "10/8",
            "a.com",
            "10.0.0.0/8/8",
        ] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("255.1.2.3".parse().unwrap()));
        assert!(!all.contains("2606::1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn an_address_is_judged_alike_in_every_form(bits in any::<u32>()) {
            let v4 = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = v4.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let expected = special_kind(IpAddr::V4(v4));
            for v6 in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ] {
                prop_assert_eq!(special_kind(IpAddr::V6(v6)), expected);
            }
        }
    }
}
