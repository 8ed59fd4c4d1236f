//! Rule for the addresses that a service may dial for others: the public internet by IANA's special-purpose address registries,
//! plus the networks that the operator permits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn ipv4_block(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}

const fn ipv6_block(first: [u16; 3], prefix: u8) -> Ipv6Net {
    let [a, b, c] = first;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

// Blocks that the IANA IPv4 special-purpose registry does not list as globally reachable, multicast and reserved
// space.
const SPECIAL_V4: [Ipv4Net; 15] = [
    ipv4_block(0, 0, 0, 8),
    ipv4_block(10, 0, 0, 8),
    ipv4_block(100, 64, 0, 10),
    ipv4_block(127, 0, 0, 8),
    ipv4_block(169, 254, 0, 16),
    ipv4_block(172, 16, 0, 12),
    ipv4_block(192, 0, 0, 24),
    ipv4_block(192, 0, 2, 24),
    ipv4_block(192, 88, 99, 24),
    ipv4_block(192, 168, 0, 16),
    ipv4_block(198, 18, 0, 15),
    ipv4_block(198, 51, 100, 24),
    ipv4_block(203, 0, 113, 24),
    ipv4_block(224, 0, 0, 4),
    ipv4_block(240, 0, 0, 4),
];

/// Global unicast. Outside of it, only the addresses that NAT64 translates are on the public internet.
const UNICAST: Ipv6Net = ipv6_block([0x2000, 0, 0], 3);

/// Special-purpose blocks inside of global unicast: protocol assignments (Teredo, benchmarking, ORCHID),
/// documentation, 6to4.
const SPECIAL_V6: [Ipv6Net; 4] = [
    ipv6_block([0x2001, 0, 0], 23),
    ipv6_block([0x2001, 0xdb8, 0], 32),
    ipv6_block([0x2002, 0, 0], 16),
    ipv6_block([0x3fff, 0, 0], 20),
];

/// The well-known prefix of NAT64 (RFC 6052). The last four bytes are the IPv4 address that is reached.
const NAT64: Ipv6Net = ipv6_block([0x64, 0xff9b, 0], 96);
const SIX_TO_FOUR: Ipv6Net = ipv6_block([0x2002, 0, 0], 16);

// No setting opens these: this host, link-local with the metadata services of clouds, multicast, broadcast. A
// permitted network such as 169.0.0.0/8 must not open the metadata address by accident.
const NEVER_V4: [Ipv4Net; 4] = [
    ipv4_block(0, 0, 0, 8),
    ipv4_block(169, 254, 0, 16),
    ipv4_block(224, 0, 0, 4),
    Ipv4Net::new_assert(Ipv4Addr::BROADCAST, 32),
];
// fd00:ec2::/32 contains the IPv6 address of the AWS metadata service. It is a unique local address, so a permitted
// network could cover it.
const NEVER_V6: [Ipv6Net; 4] = [
    Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128),
    ipv6_block([0xfe80, 0, 0], 10),
    ipv6_block([0xfd00, 0xec2, 0], 32),
    ipv6_block([0xff00, 0, 0], 8),
];

/// Decision for one address: public, or in a network that the operator permits.
#[derive(Clone, Debug, Default)]
pub struct AddressRule {
    permitted: Vec<IpNet>,
}

impl AddressRule {
    /// Builds the rule from networks in CIDR notation, in addition to all public addresses.
    ///
    /// # Errors
    /// The first text that is not a network.
    pub fn new(private_networks: &[String]) -> Result<Self, String> {
        let read = |text: &String| {
            text.parse::<IpNet>()
                .map_err(|_| format!("{text:?} must be a network such as 10.20.0.0/16"))
        };
        let permitted = private_networks.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { permitted })
    }

    /// True when the address may be dialed.
    pub fn opens(&self, address: IpAddr) -> bool {
        // The closed blocks come first: they win over a permitted network that contains them.
        !is_never(address)
            && (is_public(address) || self.permitted.iter().any(|network| network.contains(&address)))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if NAT64.contains(&address) => is_public_v4(last_four(address)),
        IpAddr::V6(address) => {
            UNICAST.contains(&address) && !SPECIAL_V6.iter().any(|special| special.contains(&address))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|special| special.contains(&address))
}

fn is_never(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_never_v4(address),
        IpAddr::V6(address) => {
            // A mapped, translated or 6to4 spelling of a closed IPv4 address is closed, too.
            NEVER_V6.iter().any(|never| never.contains(&address))
                || embedded_ipv4(address).is_some_and(is_never_v4)
        }
    }
}

fn is_never_v4(address: Ipv4Addr) -> bool {
    NEVER_V4.iter().any(|never| never.contains(&address))
}

/// Returns the IPv4 address that a mapped, NAT64 or 6to4 address reaches.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if NAT64.contains(&address) {
        return Some(last_four(address));
    }
    if SIX_TO_FOUR.contains(&address) {
        let [_, _, a, b, c, d, ..] = address.octets();
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    address.to_ipv4_mapped()
}

fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn build_address_rule(networks: &[&str]) -> AddressRule {
        let networks: Vec<String> = networks.iter().map(|&text| text.to_owned()).collect();
        AddressRule::new(&networks).unwrap()
    }

    fn parse_address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn special_purpose_addresses_are_not_public() {
        let closed = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:93.184.216.34",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:5db8:d822::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in closed {
            assert!(!build_address_rule(&[]).opens(parse_address(text)), "{text}");
        }
        let open = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.31.196.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001:80b::200e",
            "64:ff9b::5db8:d822",
        ];
        for text in open {
            assert!(build_address_rule(&[]).opens(parse_address(text)), "{text}");
        }
    }

    #[test]
    fn private_networks_can_open_but_never_metadata() {
        let rule = build_address_rule(&["0.0.0.0/0", "::/0"]);
        for text in ["10.0.0.1", "127.0.0.1", "::1", "fd12::1", "::ffff:10.0.0.1"] {
            assert!(rule.opens(parse_address(text)), "{text}");
        }
        let never = [
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::ffff:0.0.0.0",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
        ];
        for text in never {
            assert!(!rule.opens(parse_address(text)), "{text}");
        }
    }

    #[test]
    fn a_permitted_network_ends_at_its_edge() {
        let rule = build_address_rule(&["10.20.0.0/16", "fd12:3456::/32"]);
        assert!(rule.opens(parse_address("10.20.255.255")) && rule.opens(parse_address("fd12:3456::9")));
        for text in ["10.21.0.0", "10.19.255.255", "fd12:3457::1", "::ffff:10.20.0.1"] {
            assert!(!rule.opens(parse_address(text)), "{text}");
        }
        assert!(AddressRule::new(&["10.0.0.0".to_owned()]).is_err());
        assert!(AddressRule::new(&["10.0.0.0/33".to_owned()]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn closed_address_is_closed_in_every_spelling(number: u32) {
            let plain = Ipv4Addr::from(number);
            let [a, b, c, d] = plain.octets();
            let is_closed = plain.is_private() || plain.is_loopback() || plain.is_link_local() || plain.is_multicast()
                || plain.is_broadcast() || plain.is_documentation() || plain.is_unspecified() || a == 0 || a >= 240
                || (a == 100 && (64..128).contains(&b)) || (a == 198 && (18..20).contains(&b));
            let rule = AddressRule::default();
            let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
            let (high, low) = (pair(a, b), pair(c, d));
            prop_assert!(!is_closed || !rule.opens(plain.into()));
            prop_assert!(!rule.opens(plain.to_ipv6_mapped().into()));
            prop_assert!(!rule.opens(plain.to_ipv6_compatible().into()));
            prop_assert!(!rule.opens(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1).into()));
            let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
            prop_assert_eq!(rule.opens(translated.into()), rule.opens(plain.into()));
        }

        #[test]
        fn open_ipv6_address_is_unicast_or_translated(number: u128) {
            let address = Ipv6Addr::from(number);
            let is_global = address.segments()[0] & 0xe000 == 0x2000;
            prop_assert!(is_global || !AddressRule::default().opens(address.into()));
        }

        #[test]
        fn closed_block_stays_closed_for_any_permission(c: u8, d: u8, prefix in 0u8..=32) {
            let metadata = Ipv4Addr::new(169, 254, c, d);
            let rule = AddressRule::new(&[format!("{metadata}/{prefix}"), "::/0".to_owned()]).unwrap();
            prop_assert!(!rule.opens(metadata.into()));
            prop_assert!(!rule.opens(metadata.to_ipv6_mapped().into()));
        }
    }
}
