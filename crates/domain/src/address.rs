//! Percent-encoding of text in URLs.

/// Percent-encodes one path segment or query value: all but the unreserved characters of RFC 3986, section 2.3.
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_key_encodes_as_one_segment() {
        assert_eq!(percent_encode("github:acme/shop#7"), "github%3Aacme%2Fshop%237");
        assert_eq!(percent_encode("a-b_c.d~e ü"), "a-b_c.d~e%20%C3%BC");
    }
}
