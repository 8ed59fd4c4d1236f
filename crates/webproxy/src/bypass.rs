//! Hosts that are reached without the proxy: domains, addresses, networks, each with an optional port.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, de::Error as _};
use url::Host;

/// List of hosts in the usual grammar of `no_proxy`: `*`, `example.com` (with its subdomains), `.example.com`,
/// `10.1.2.3`, `10.0.0.0/8`, `[::1]`, each also with `:port`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BypassList(Vec<BypassEntry>);

/// Entry of a list that is neither a host nor a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host name, an address or a network, each with an optional port")]
pub struct InvalidEntry(String);

#[derive(Clone, Debug, PartialEq, Eq)]
struct BypassEntry {
    host: BypassHost,
    /// Only port of the entry; absent: every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BypassHost {
    Any,
    /// Domain in lower case, without dots at its ends.
    Domain(String),
    Network(IpNet),
}

impl BypassList {
    /// Parses a list whose entries are separated by commas or white space.
    ///
    /// # Errors
    /// [`InvalidEntry`] for the first entry that is not valid.
    pub fn parse(text: &str) -> Result<Self, InvalidEntry> {
        split_entries(text)
            .map(parse_entry)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Parses a list and skips entries that are not valid: a variable of the environment is written for
    /// other programs, too.
    pub(crate) fn parse_lenient(text: &str) -> Self {
        Self(
            split_entries(text)
                .filter_map(|entry| parse_entry(entry).ok())
                .collect(),
        )
    }

    /// Returns the entries of both lists.
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// True when a host is reached without the proxy at this port.
    pub(crate) fn contains(&self, host: &Host<&str>, port: u16) -> bool {
        let is_at_port = |entry: &&BypassEntry| entry.port.is_none_or(|only| only == port);
        self.0.iter().filter(is_at_port).any(|entry| match &entry.host {
            BypassHost::Any => true,
            BypassHost::Domain(domain) => match host {
                Host::Domain(name) => is_within(name, domain),
                Host::Ipv4(_) | Host::Ipv6(_) => false,
            },
            BypassHost::Network(network) => {
                find_address(host).is_some_and(|address| network.contains(&address))
            }
        })
    }
}

impl<'de> Deserialize<'de> for BypassList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        let text = match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(text) => text,
            OneOrMany::Many(entries) => entries.join(","),
        };
        Self::parse(&text).map_err(D::Error::custom)
    }
}

/// Address of a host that is not a name. IPv4 in the form of IPv6 is IPv4.
pub(crate) fn find_address(host: &Host<&str>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address).to_canonical()),
    }
}

/// True when a name is the domain or one of its subdomains.
pub(crate) fn is_within(name: &str, domain: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.strip_suffix(domain)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

fn split_entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter == ',' || letter.is_whitespace())
        .filter(|entry| !entry.is_empty())
}

fn parse_entry(text: &str) -> Result<BypassEntry, InvalidEntry> {
    let invalid = || InvalidEntry(text.to_owned());
    // An IPv6 address has colons, but no port unless it is in brackets.
    if let Some(network) = parse_network(text) {
        let host = BypassHost::Network(network);
        return Ok(BypassEntry { host, port: None });
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(invalid)?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(invalid()),
            }
        }
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map(str::parse::<u16>).transpose().map_err(|_| invalid())?;
    let host = match parse_network(host) {
        Some(network) => BypassHost::Network(network),
        None if host == "*" => BypassHost::Any,
        None => BypassHost::Domain(parse_domain(host).ok_or_else(invalid)?),
    };
    Ok(BypassEntry { host, port })
}

fn parse_network(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>().ok();
    network.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

fn parse_domain(text: &str) -> Option<String> {
    let name = text.strip_prefix('*').unwrap_or(text);
    let name = name.trim_start_matches('.').trim_end_matches('.');
    match Host::parse(name).ok()? {
        Host::Domain(name) if !name.contains('*') => Some(name),
        Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_listed(list: &str, host: &str, port: u16) -> bool {
        let list = BypassList::parse(list).unwrap();
        let url = url::Url::parse(&format!("http://{host}:{port}/")).unwrap();
        list.contains(&url.host().unwrap(), port)
    }

    #[test]
    fn entries_match_in_usual_grammar() {
        for (list, host, port, expected) in [
            ("", "example.com", 443, false),
            ("*", "example.com", 443, true),
            ("*:8080", "example.com", 443, false),
            ("example.com", "example.com", 443, true),
            ("example.com", "EXAMPLE.com.", 443, true),
            ("example.com", "api.example.com", 443, true),
            ("example.com", "notexample.com", 443, false),
            (".example.com", "api.example.com", 443, true),
            ("*.example.com", "api.example.com", 443, true),
            (".example.com", "example.com", 443, true),
            ("example.com:8443", "example.com", 8443, true),
            ("example.com:8443", "example.com", 443, false),
            ("a.example, b.example\tc.example", "c.example", 80, true),
            ("bücher.example", "xn--bcher-kva.example", 80, true),
            ("10.0.0.0/8", "10.200.3.4", 80, true),
            ("10.0.0.0/8", "11.0.0.1", 80, false),
            ("10.1.2.3:8080", "10.1.2.3", 8080, true),
            ("10.0.0.0/8:8080", "10.1.2.3", 80, false),
            ("10.0.0.0/8", "[::ffff:10.1.2.3]", 80, true),
            ("10.0.0.0/8", "10.example.com", 80, false),
            ("fd00::/8", "[fd12::1]", 80, true),
            ("[fd12::1]:443", "[fd12::1]", 443, true),
            ("[fd12::1]:443", "[fd12::1]", 80, false),
            ("fd12::1", "[fd12::1]", 80, true),
        ] {
            assert_eq!(is_listed(list, host, port), expected, "{list} {host}:{port}");
        }
    }

    #[test]
    fn invalid_entries_are_refused_or_skipped() {
        for entry in [
            "example.com:port",
            "[::1",
            "[::1]x",
            "10.0.0.0/33",
            "a*b.example",
            "http://x",
            ":80",
        ] {
            let text = format!("good.example,{entry}");
            assert_eq!(BypassList::parse(&text), Err(InvalidEntry(entry.to_owned())));
            assert_eq!(
                BypassList::parse_lenient(&text),
                BypassList::parse("good.example").unwrap(),
                "{entry}"
            );
        }
    }

    #[test]
    fn setting_is_list_or_text() {
        let text: BypassList = serde_json::from_str(r#""a.example,10.0.0.0/8""#).unwrap();
        let list: BypassList = serde_json::from_str(r#"["a.example", "10.0.0.0/8"]"#).unwrap();
        assert_eq!(text, list);
        let refused = serde_json::from_str::<BypassList>(r#"["a.example:x"]"#).unwrap_err();
        assert!(refused.to_string().contains("a.example:x"), "{refused}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_any_text_is_parsed_without_panic(text in ".{0,60}", host in "[a-z0-9.-]{1,20}", port in any::<u16>()) {
            let list = BypassList::parse_lenient(&text);
            list.contains(&Host::Domain(host.as_str()), port);
        }
    }
}
