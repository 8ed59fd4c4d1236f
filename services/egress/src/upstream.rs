//! Proxy of the company behind this one: a host beyond it is reached by CONNECT.

use std::{io, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bootstrap::settings;
use domain::cause::format_error_chain;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use url::Url;
use webproxy::{OutboundProxy, OutboundRoute, ProxyServer};

use crate::{
    problem::{EgressProblem, RefusalReason},
    request_decision::RequestTarget,
    resolve::{CheckedResolver, ResolveError},
};

// Longest head of the proxy's answer, in bytes.
const MAX_HEAD: usize = 16 * 1024;
// Part of the time for a connection in which a name is resolved here. In many networks with a proxy, no name outside
// can be resolved, and some name services answer nothing then.
const RESOLVE_SHARE: u32 = 4;

/// Ways to hosts: through the proxy of `[proxy]`, or directly.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamRoutes(OutboundProxy);

impl UpstreamRoutes {
    /// Reads the section `[proxy]`. The variables of the environment do not count here: a proxy that the operator did
    /// not choose would bypass the checks of addresses.
    ///
    /// # Errors
    /// [`settings::Error`] for the first wrong key.
    pub(crate) fn new(settings: &webproxy::Settings) -> Result<Self, settings::Error> {
        let routes = OutboundProxy::without_environment(settings);
        let routes = routes.map_err(|wrong| settings::Error::new(wrong.key, wrong.problem))?;
        Ok(Self(routes))
    }

    /// Applies the ways and the additional authorities to a client.
    ///
    /// # Errors
    /// The authorities cannot be read.
    pub(crate) fn configure_client(
        &self,
        builder: reqwest::ClientBuilder,
    ) -> reqwest::Result<reqwest::ClientBuilder> {
        self.0.configure_client(builder)
    }

    /// Returns the host of the proxy, which is resolved without a check of its addresses.
    pub(crate) fn own_host(&self) -> Option<String> {
        self.0.server().map(|server| server.authority().0)
    }

    /// Decides the way to a target: the proxy, or `None` for a direct connection. Before a way through the proxy, the
    /// addresses of the target are checked if they can be resolved here.
    ///
    /// # Errors
    /// A refusal if an address is not public, or if the target is the proxy itself.
    pub(crate) async fn find_server(
        &self,
        scheme: &str,
        target: &RequestTarget,
        checked: &CheckedResolver,
        limit: Duration,
    ) -> Result<Option<&ProxyServer>, EgressProblem> {
        let refused = || EgressProblem::refused(&target.to_string(), RefusalReason::NotPublic);
        if self
            .own_host()
            .is_some_and(|own| own.eq_ignore_ascii_case(&target.host))
        {
            return Err(refused());
        }
        let Ok(url) = Url::parse(&format!("{scheme}://{target}")) else {
            return Ok(None);
        };
        let OutboundRoute::Proxy(server) = self.0.route(&url) else {
            return Ok(None);
        };
        match tokio::time::timeout(limit / RESOLVE_SHARE, checked.addresses(&target.host)).await {
            Ok(Err(ResolveError::NotPublic)) => Err(refused()),
            // The rules name the host, and the proxy resolves it.
            Ok(Ok(_) | Err(ResolveError::Unknown(_))) | Err(_) => Ok(Some(server)),
        }
    }
}

/// Opens a connection to a target through the proxy.
///
/// # Errors
/// [`EgressProblem::Unreachable`], when the proxy gives no connection in time.
pub(crate) async fn connect_through(
    server: &ProxyServer,
    target: &RequestTarget,
    limit: Duration,
) -> Result<TcpStream, EgressProblem> {
    let unreachable = |why: &str| EgressProblem::Unreachable(format!("{target} {why}"));
    match tokio::time::timeout(limit, request_tunnel(server, target)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => {
            let proxy = server.address();
            tracing::warn!(host = %target, proxy, error = %format_error_chain(&error), "the network's proxy gives no connection");
            Err(unreachable("cannot be reached through the network's proxy"))
        }
        Err(_) => Err(unreachable("did not answer in time through the network's proxy")),
    }
}

async fn request_tunnel(server: &ProxyServer, target: &RequestTarget) -> io::Result<TcpStream> {
    if server.has_tls() {
        return Err(io::Error::other(
            "setup commands need a proxy.url that begins with http://",
        ));
    }
    let mut stream = TcpStream::connect(server.authority()).await?;
    // Without TCP_NODELAY a tunnel is slower, but works.
    let _ = stream.set_nodelay(true);
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some((user, password)) = server.credentials() {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        request.push_str("Proxy-Authorization: Basic ");
        request.push_str(&pair);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let head = read_head(&mut stream).await?;
    match parse_status(&head) {
        Some(200..=299) => Ok(stream),
        Some(407) => Err(io::Error::other(
            "the proxy refuses proxy.username and proxy.password (407)",
        )),
        Some(status) => Err(io::Error::other(format!("the proxy answered {status}"))),
        None => Err(io::Error::other("the proxy's answer is not HTTP")),
    }
}

/// Reads an answer's head, and no byte behind it: those are the host's.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD {
            return Err(io::Error::other("the head of the proxy's answer is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

fn parse_status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (version, rest) = line.split_once(' ')?;
    let code = rest.split(' ').next()?;
    let is_http = version.starts_with("HTTP/1.");
    code.parse().ok().filter(|_| is_http && code.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_from_first_line() {
        for (head, expected) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Some(200)),
            ("HTTP/1.0 407 \r\nX: HTTP/1.1 200\r\n\r\n", Some(407)),
            ("HTTP/1.1 200\r\n\r\n", Some(200)),
            ("SSH-2.0 200 OK\r\n\r\n", None),
            ("HTTP/1.1 2000 OK\r\n\r\n", None),
            ("\r\n\r\n", None),
        ] {
            assert_eq!(parse_status(head.as_bytes()), expected, "{head}");
        }
    }
}
