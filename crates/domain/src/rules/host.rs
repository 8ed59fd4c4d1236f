//! Host patterns for the network access of setup commands.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::identity::{InvalidId, text_serde};

const EXPECTED: &str = "a host such as pypi.example, *.crates.example or packages.acme.example:8443";

/// A host name or all hosts under a domain: `pypi.example`, `*.crates.example`, `packages.acme.example:8443`.
///
/// Without a port, the pattern matches the default port of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    // The name in lower case, without `*.`.
    name: String,
    is_suffix: bool,
    port: Option<u16>,
}

text_serde!(HostPattern);

impl HostPattern {
    /// Returns true when the pattern matches a host and port. `usual_port` applies to a pattern without a
    /// port.
    ///
    /// A pattern with `*.` requires at least one more label: `*.crates.example` does not match
    /// `crates.example`.
    pub fn covers(&self, host: &str, port: u16, usual_port: u16) -> bool {
        // DNS ignores the case of names.
        let host = host.to_ascii_lowercase();
        let is_named = match host.strip_suffix(&self.name) {
            // The dot has to precede the name, otherwise `*.crates.example` would match `evilcrates.example`.
            Some(rest) if self.is_suffix => rest.len() > 1 && rest.ends_with('.'),
            Some(rest) => rest.is_empty(),
            None => false,
        };
        is_named && port == self.port.unwrap_or(usual_port)
    }
}

impl FromStr for HostPattern {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId::new(text, EXPECTED);
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| invalid())?)),
            None => (text, None),
        };
        let name = host.strip_prefix("*.");
        let pattern = Self {
            is_suffix: name.is_some(),
            name: name.unwrap_or(host).to_ascii_lowercase(),
            port: port.filter(|port| *port != 0),
        };
        (is_host_name(&pattern.name) && port != Some(0))
            .then_some(pattern)
            .ok_or_else(invalid)
    }
}

/// Returns true for a host name by RFC 1123: labels of letters, digits and inner hyphens. IP addresses are
/// rejected, because their last label is a number.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    // The lengths are those of DNS (RFC 1035). A last label that begins with a digit belongs to an IPv4
    // address, and a pattern only names hosts.
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253
        && text.split('.').all(is_label)
        && !last.starts_with(|letter: char| letter.is_ascii_digit())
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_suffix { "*." } else { "" })?;
        f.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_pattern_rejects_similar_hosts() {
        let covers = |pattern: &str, host: &str, port| {
            let pattern: HostPattern = pattern.parse().unwrap();
            pattern.covers(host, port, 443)
        };
        assert!(covers("pypi.example", "PyPI.example", 443));
        assert!(covers(
            "Packages.Acme.example:8443",
            "packages.acme.example",
            8443
        ));
        assert!(covers("*.crates.example", "static.crates.example", 443));
        assert!(covers("*.crates.example", "a.b.crates.example", 443));
        for (pattern, host, port) in [
            ("pypi.example", "pypi.example", 80),
            ("pypi.example", "evil-pypi.example", 443),
            ("pypi.example", "pypi.example.evil.example", 443),
            ("pypi.example", "sub.pypi.example", 443),
            ("pypi.example", "pypi.example.", 443),
            ("pypi.example:8443", "pypi.example", 443),
            ("*.crates.example", "crates.example", 443),
            ("*.crates.example", ".crates.example", 443),
            ("*.crates.example", "evilcrates.example", 443),
        ] {
            assert!(!covers(pattern, host, port), "{pattern} {host} {port}");
        }
    }

    #[test]
    fn host_pattern_parses_names_only() {
        for text in [
            "localhost",
            "pypi.example",
            "*.crates.example:8443",
            "1password.example",
        ] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
        }
        let no_patterns = [
            "",
            "*",
            "*.",
            ".org",
            "a..b",
            "-a.b",
            "a_b.c",
            "10.0.0.1",
            "[::1]",
            "::1",
            "a:0",
            "a:x",
            "a:1:2",
            "a:65536",
            "http://a",
            "a/b",
            "a b",
            "*a.b",
            "a.*.b",
            "ä.example",
        ];
        for text in no_patterns {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
        assert!("a".repeat(64).parse::<HostPattern>().is_err());
    }
}
