//! Address of a peer that this process calls over HTTP: the git gate or the egress proxy.

use std::{fmt, io};

use bootstrap::{tls::TlsClient, trace};
use hyper::{Request, Uri, header, http::request::Builder};
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// Host and port of a peer.
#[derive(Debug)]
pub(crate) struct PeerAddress {
    host: String,
    port: u16,
    /// TLS client if the peer has a certificate.
    tls: Option<TlsClient>,
}

/// Connection to a peer, plain or over TLS.
pub(crate) trait PeerStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> PeerStream for S {}

impl PeerAddress {
    /// Reads the address from a URL.
    ///
    /// # Errors
    /// Returns a text for the operator when the URL has another form, or needs certificates that are not set. `name` is
    /// that of the URL.
    pub(crate) fn of_url(name: &str, url: &Uri, tls: Option<&TlsClient>) -> Result<Self, String> {
        let (tls, usual_port) = match (url.scheme_str(), tls) {
            (Some("http"), _) => (None, 80),
            (Some("https"), Some(tls)) => (Some(tls.clone()), 443),
            (Some("https"), None) => {
                return Err(format!(
                    "{name} is an https URL, and this executor has no section [tls]"
                ));
            }
            _ => return Err(format!("{name} is not an http or https URL")),
        };
        let authority = url.authority().ok_or_else(|| format!("{name} names no host"))?;
        Ok(Self {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(usual_port),
            tls,
        })
    }

    pub(crate) async fn connect(&self) -> io::Result<Box<dyn PeerStream>> {
        let stream = TcpStream::connect(self.to_string()).await?;
        // Nagle's algorithm would delay small writes, such as TLS handshakes.
        stream.set_nodelay(true)?;
        let stream: Box<dyn PeerStream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(&self.host, stream).await?),
        };
        Ok(stream)
    }

    /// Begins a request with the grant, in the trace of the caller.
    pub(crate) fn request(&self, path: &str, grant: &SecretString) -> Builder {
        let bearer = format!("Bearer {}", grant.expose_secret());
        let request = Request::get(path)
            .header(header::HOST, self.to_string())
            .header(header::AUTHORIZATION, bearer);
        match trace::format_traceparent() {
            Some(caller) => request.header("traceparent", caller),
            None => request,
        }
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
