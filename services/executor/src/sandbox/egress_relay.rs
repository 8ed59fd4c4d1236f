//! Egress of setup commands: a port on their loopback interface. This process relays each connection to the
//! egress proxy, in a session that it opens with a grant. Commands never see the grant.

use std::{io, net::Ipv4Addr, sync::Arc, time::Duration};

use bootstrap::tls;
use domain::cause::format_error_chain;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    client::conn::http1,
    header,
};
use hyper_util::rt::TokioIo;
use secrecy::SecretString;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::peer_address::PeerAddress;

/// Usual port of the relay. Repositories may contain it in settings of their tools.
const PORT: u16 = 3128;
/// Protocol of a session after the HTTP upgrade.
const PROTOCOL: &str = "journeyman-egress";
/// Time limit for the proxy to open a session or to list refusals.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// Limit of simultaneous connections of one command. The proxy has the same limit for a run.
const MAX_CONNECTIONS: usize = 64;
/// Limit of the proxy's messages, in bytes.
const MAX_WORDS: usize = 16 * 1024;

/// Address of the egress proxy, with the grant for it.
#[derive(Debug)]
pub(crate) struct EgressRelay {
    /// TLS ends in this process, so commands use plain HTTP to their loopback.
    proxy: PeerAddress,
    grant: SecretString,
}

/// Egress port of a command, with its listener if the command shares this process's loopback.
#[derive(Debug)]
pub(crate) struct RelayListener {
    pub(crate) port: u16,
    pub(crate) listener: Option<std::net::TcpListener>,
}

impl RelayListener {
    /// Port for commands with a network namespace; the launcher listens.
    pub(crate) const fn inside() -> Self {
        Self {
            port: PORT,
            listener: None,
        }
    }

    /// Port for commands that share this process's loopback: the usual one if it is free, otherwise any.
    pub(crate) fn here() -> io::Result<Self> {
        let bind = |port| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        // Setup of another workspace may hold the usual port.
        let listener = bind(PORT).or_else(|_| bind(0))?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener: Some(listener),
        })
    }

    /// Variables that configure programs for the relay.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (String, String)> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        // Programs differ in the spelling that they read: curl reads `http_proxy` in lower case only
        // (curl(1)).
        let lower = proxies.map(str::to_lowercase);
        // The proxy would connect to its own loopback, not to that of the commands.
        let excluded =
            ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "localhost,127.0.0.1,::1".to_owned()));
        let mirrors = ("JOURNEYMAN_MIRRORS".to_owned(), format!("{url}/mirror"));
        let proxies = proxies.map(str::to_owned).into_iter().chain(lower);
        proxies
            .map(move |name| (name, url.clone()))
            .chain(excluded)
            .chain([mirrors])
    }
}

impl EgressRelay {
    /// Creates the egress through the proxy at a URL such as `http://egress:3128`, or `https://egress:3128`
    /// if this executor has the proxy's authority. `None` for an empty URL.
    ///
    /// # Errors
    /// Returns a text for the planner when the URL has another form.
    pub(crate) fn new(
        url: &str,
        grant: &str,
        client: Option<&tls::TlsClient>,
    ) -> Result<Option<Self>, String> {
        if url.is_empty() {
            return Ok(None);
        }
        let uri: Uri = url.parse().map_err(|_| "egress_url is not a URL".to_owned())?;
        if uri.path() != "/" || uri.query().is_some() {
            return Err("egress_url must be such as http://egress:3128".to_owned());
        }
        Ok(Some(Self {
            proxy: PeerAddress::of_url("egress_url", &uri, client)?,
            grant: grant.to_owned().into(),
        }))
    }

    /// Relays the connections of a listener until the returned handle is dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        listener: std::net::TcpListener,
    ) -> io::Result<AbortOnDropHandle<()>> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let relay = Arc::clone(self);
        let accepting = async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    // At the limit, further connections wait in the kernel's backlog.
                    accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                        Ok((connection, _)) => {
                            let relay = Arc::clone(&relay);
                            let passing = async move { relay.pass_on(connection).await };
                            connections.spawn(passing.in_current_span());
                        }
                        Err(error) => return tracing::warn!(
                            error = %format_error_chain(&error),
                            "setup commands have no egress any more: the listener failed"
                        ),
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        };
        Ok(AbortOnDropHandle::new(tokio::spawn(accepting.in_current_span())))
    }

    async fn pass_on(&self, mut connection: TcpStream) {
        let opened = tokio::time::timeout(ANSWER_TIME, self.session()).await;
        match opened.unwrap_or_else(|_| Err("it does not answer".to_owned())) {
            Ok(mut session) => {
                // The result is ignored: both ends are passed on, and a broken connection concerns only the
                // command and its peer.
                let _ = tokio::io::copy_bidirectional(&mut connection, &mut session).await;
            }
            Err(problem) => {
                tracing::warn!(problem, "no session at the egress proxy");
                // The result is ignored: the command may have closed the connection.
                let _ = tokio::time::timeout(ANSWER_TIME, refuse_connection(connection, &problem)).await;
            }
        }
    }

    /// Returns the proxy's refusals for this run, one per line; empty when the proxy does not answer.
    pub(crate) async fn refusals(&self) -> String {
        let reading = async {
            let answer = self.ask("/refusals", false).await?;
            let is_list = answer.status() == StatusCode::OK;
            read_body(answer)
                .await
                .map(|text| if is_list { text } else { String::new() })
        };
        match tokio::time::timeout(ANSWER_TIME, reading).await {
            Ok(Ok(text)) => text,
            _ => String::new(),
        }
    }

    async fn session(&self) -> Result<TokioIo<hyper::upgrade::Upgraded>, String> {
        let answer = self.ask("/session", true).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = hyper::upgrade::on(answer).await;
            return upgraded.map(TokioIo::new).map_err(|error| error.to_string());
        }
        let status = answer.status();
        Err(format!("{status}: {}", read_body(answer).await?.trim()))
    }

    async fn ask(&self, path: &str, upgrade: bool) -> Result<Response<Incoming>, String> {
        let stream = self.proxy.connect().await.map_err(|error| error.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // The task ends with the session.
        drop(tokio::spawn(connection.with_upgrades()));
        let mut request = self.proxy.request(path, &self.grant);
        if upgrade {
            request = request
                .header(header::CONNECTION, "upgrade")
                .header(header::UPGRADE, PROTOCOL);
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())
    }
}

/// Answers a request with an error. Further input is read until the client closes, because an early close
/// would discard the answer of a client that still writes.
async fn refuse_connection(mut connection: TcpStream, problem: &str) -> io::Result<()> {
    let text = format!("egress: the proxy gives no session: {problem}\n");
    let head = "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\nconnection: close";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
    connection.write_all(answer.as_bytes()).await?;
    connection.shutdown().await?;
    tokio::io::copy(&mut connection, &mut tokio::io::sink())
        .await
        .map(drop)
}

async fn read_body(answer: Response<Incoming>) -> Result<String, String> {
    let body = Limited::new(answer.into_body(), MAX_WORDS).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn egress_url_must_be_plain_address() {
        let url = |url: &str| EgressRelay::new(url, "", None).map(|way| way.map(|way| way.proxy.to_string()));
        assert_eq!(url(""), Ok(None));
        assert_eq!(url("http://egress:3128"), Ok(Some("egress:3128".to_owned())));
        assert_eq!(url("http://egress/"), Ok(Some("egress:80".to_owned())));
        for wrong in ["egress", "https://egress", "http://egress/path", "http://"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn proxy_variables_have_both_spellings() {
        let variables: Vec<_> = RelayListener::inside().environment().collect();
        for name in ["HTTP_PROXY", "https_proxy", "all_proxy"] {
            assert!(
                variables.contains(&(name.to_owned(), "http://127.0.0.1:3128".to_owned())),
                "{name}"
            );
        }
        assert!(
            variables
                .iter()
                .any(|(name, url)| name == "JOURNEYMAN_MIRRORS" && url.ends_with(":3128/mirror"))
        );
    }
}
