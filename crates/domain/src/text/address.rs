//! Addresses: percent-encoding of text in URLs, schemes of links for people, and connections without
//! encryption.

use core::net::IpAddr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

// All but the unreserved characters of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Percent-encodes one path segment or query value.
pub fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

// Allowed schemes of links. Others, such as `javascript:`, could run code on a click.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Returns true for an address with one of the usual schemes, in any case, without control characters.
pub fn is_safe_link(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    let is_known =
        scheme.is_some_and(|scheme| SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)));
    is_known && !address.chars().any(char::is_control)
}

/// Returns true for `http://` to another machine: third parties on the network can read credentials on this
/// connection.
pub fn is_readable_on_the_way(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else {
        return false;
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return false;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Text before an `@` is user information, so `http://127.0.0.1@jira.example/` leads to another host.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name.parse::<IpAddr>().map_or_else(
        |_| name.eq_ignore_ascii_case("localhost"),
        |address| address.is_loopback(),
    );
    !is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_key_encodes_as_one_segment() {
        assert_eq!(percent_encode("github:acme/shop#7"), "github%3Aacme%2Fshop%237");
        assert_eq!(percent_encode("a-b_c.d~e ü"), "a-b_c.d~e%20%C3%BC");
    }

    #[test]
    fn plain_http_is_readable_except_loopback() {
        for address in [
            "http://jira.example",
            "HTTP://10.0.0.1:80/x",
            "http://[2001:db8::1]/x",
            "http://127.0.0.1@jira.example/",
            "http://localhost.example",
        ] {
            assert!(is_readable_on_the_way(address), "{address}");
        }
        for address in [
            "https://jira.example",
            "http://127.0.0.1:8080/x",
            "http://localhost",
            "http://[::1]:80",
            "jira.example",
        ] {
            assert!(!is_readable_on_the_way(address), "{address}");
        }
    }

    #[test]
    fn safe_links_are_web_or_mail() {
        for address in ["https://a.example/x", "HTTP://a.example", "mailto:mia@a.example"] {
            assert!(is_safe_link(address), "{address}");
        }
        for address in [
            "javascript:alert(1)",
            " javascript:alert(1)",
            "java\nscript:x",
            "https:\n//a.example",
            "data:text/html,x",
            "file:///etc/passwd",
            "vscode://x",
            "//a.example",
            "page",
            "",
        ] {
            assert!(!is_safe_link(address), "{address}");
        }
    }
}
