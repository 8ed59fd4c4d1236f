//! Pure decisions: the kind of a request, and its permission by the rules.

use std::fmt;

use axum::http::{Method, Uri, uri::Authority};
use domain::HostPattern;
use url::Host;

use crate::problem::RefusalReason;

/// Kind of a request inside of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProxyRequest {
    /// `CONNECT host:port`.
    Tunnel(RequestTarget),
    /// `GET http://host/…`.
    Plain(RequestTarget),
    /// `GET /mirror/<name>/<rest>`.
    Mirror {
        /// The mirror's name as the client wrote it.
        name: String,
        /// The path after the name's slash, as the client wrote it.
        rest: String,
    },
}

/// A host and a port, as a request names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    /// The host in lower case.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The port that a pattern without a port means: 443 for tunnels, 80 for plain requests.
    usual_port: u16,
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Classifies a request by its method and target.
///
/// # Errors
/// One line for the client that sent a malformed request.
pub(crate) fn parse_proxy_request(method: &Method, uri: &Uri) -> Result<ProxyRequest, &'static str> {
    match (method, uri.scheme_str(), uri.authority()) {
        (&Method::CONNECT, None, Some(authority)) => {
            parse_target(authority, 443, None).map(ProxyRequest::Tunnel)
        }
        (&Method::CONNECT, ..) => Err("CONNECT takes host:port"),
        // HTTP has port 80 by default. CONNECT needs a port in its target (RFC 9110, section 9.3.6).
        (_, Some("http"), Some(authority)) => parse_target(authority, 80, Some(80)).map(ProxyRequest::Plain),
        (_, Some(_), _) => Err("only http:// is forwarded; for https ask with CONNECT"),
        (_, None, _) => parse_mirror_path(uri.path())
            .ok_or("ask with CONNECT host:port, http://host/… or /mirror/<name>/…"),
    }
}

fn parse_target(
    authority: &Authority,
    usual_port: u16,
    default_port: Option<u16>,
) -> Result<RequestTarget, &'static str> {
    if authority.as_str().contains('@') {
        return Err("a user has no place before the host");
    }
    let has_port = authority.as_str().len() > authority.host().len();
    let port = if has_port {
        authority.port_u16()
    } else {
        default_port
    };
    let port = port
        .filter(|port| *port != 0)
        .ok_or("a port from 1 to 65535 is needed")?;
    Ok(RequestTarget {
        host: authority.host().to_ascii_lowercase(),
        port,
        usual_port,
    })
}

fn parse_mirror_path(path: &str) -> Option<ProxyRequest> {
    let (name, rest) = path.strip_prefix("/mirror/")?.split_once('/')?;
    Some(ProxyRequest::Mirror {
        name: name.to_owned(),
        rest: rest.to_owned(),
    })
}

/// Decides if one of the patterns opens the target.
///
/// # Errors
/// The reason of the refusal: an address in any spelling, or a host that no pattern covers.
pub(crate) fn check_target(target: &RequestTarget, network: &[HostPattern]) -> Result<(), RefusalReason> {
    // The URL parser accepts every spelling of an address (decimal, octal, hexadecimal), as resolvers do. A name that
    // it normalizes to something else is refused: the pattern would be compared with another name than the resolver
    // gets.
    let is_name = match Host::parse(&target.host) {
        Ok(Host::Domain(name)) => name == target.host,
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) => return Err(RefusalReason::Address),
        Err(_) => false,
    };
    let covers = |pattern: &HostPattern| pattern.covers(&target.host, target.port, target.usual_port);
    if is_name && network.iter().any(covers) {
        Ok(())
    } else {
        Err(RefusalReason::NotOpen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_request(method: Method, uri: &str) -> Result<ProxyRequest, &'static str> {
        // On the wire, CONNECT has an authority as its target.
        let uri = if method == Method::CONNECT {
            Uri::from(uri.parse::<Authority>().unwrap())
        } else {
            uri.parse().unwrap()
        };
        parse_proxy_request(&method, &uri)
    }

    fn decide_request(method: Method, uri: &str, network: &[&str]) -> Result<(), RefusalReason> {
        let network: Vec<HostPattern> = network.iter().map(|text| text.parse().unwrap()).collect();
        match parse_request(method, uri).unwrap() {
            ProxyRequest::Tunnel(target) | ProxyRequest::Plain(target) => check_target(&target, &network),
            ProxyRequest::Mirror { .. } => panic!("{uri} is a mirror"),
        }
    }

    #[test]
    fn host_opens_at_its_patterns_port() {
        let network = ["pypi.example", "*.crates.example", "packages.acme.example:8443"];
        for (method, uri) in [
            (Method::CONNECT, "pypi.example:443"),
            (Method::CONNECT, "PyPI.EXAMPLE:443"),
            (Method::CONNECT, "static.crates.example:443"),
            (Method::CONNECT, "packages.acme.example:8443"),
            (Method::GET, "http://pypi.example/simple/"),
            (Method::GET, "http://pypi.example:80/simple/"),
            (Method::HEAD, "http://packages.acme.example:8443/"),
        ] {
            assert_eq!(decide_request(method, uri, &network), Ok(()), "{uri}");
        }
        for (method, uri) in [
            (Method::CONNECT, "pypi.example:80"),
            (Method::CONNECT, "pypi.example:22"),
            (Method::CONNECT, "pypi.example.:443"),
            (Method::CONNECT, "crates.example:443"),
            (Method::CONNECT, "evil.example:443"),
            (Method::CONNECT, "pypi.example.evil.example:443"),
            (Method::CONNECT, "packages.acme.example:443"),
            (Method::GET, "http://pypi.example:443/"),
            (Method::GET, "http://evil.example/"),
        ] {
            assert_eq!(
                decide_request(method, uri, &network),
                Err(RefusalReason::NotOpen),
                "{uri}"
            );
        }
        assert_eq!(
            decide_request(Method::CONNECT, "pypi.example:443", &[]),
            Err(RefusalReason::NotOpen)
        );
    }

    #[test]
    fn an_address_is_refused_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "017700000001",
            "2130706433",
            "93.184.216.34",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[fe80::1]",
        ] {
            let uri = format!("{host}:443");
            let decided = decide_request(Method::CONNECT, &uri, &["pypi.example", "*.example"]);
            assert_eq!(decided, Err(RefusalReason::Address), "{host}");
        }
    }

    #[test]
    fn unknown_request_kind_gets_an_explanation() {
        for (method, uri) in [
            (Method::CONNECT, "pypi.example"),
            (Method::CONNECT, "pypi.example:0"),
            (Method::CONNECT, "pypi.example:65536"),
            (Method::CONNECT, "ada@pypi.example:443"),
            (Method::GET, "https://pypi.example/"),
            (Method::GET, "ftp://pypi.example/"),
            (Method::GET, "http://ada:secret@pypi.example/"),
            (Method::GET, "/"),
            (Method::GET, "/simple/"),
            (Method::GET, "/mirror/npm"),
            (Method::OPTIONS, "*"),
        ] {
            assert!(parse_request(method, uri).is_err(), "{uri}");
        }
        let mirror = parse_request(Method::GET, "/mirror/npm/@acme%2fui?x=1").unwrap();
        let (name, rest) = ("npm".to_owned(), "@acme%2fui".to_owned());
        assert_eq!(mirror, ProxyRequest::Mirror { name, rest });
    }
}
