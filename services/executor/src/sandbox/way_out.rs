//! The way out of setup commands: a port on their loopback, behind which this process passes every connection on to the
//! egress proxy, in a session that it opens with a grant. The commands never see the grant.

use std::{io, net::Ipv4Addr, sync::Arc, time::Duration};

use bootstrap::{tls, trace};
use domain::cause::chain;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    client::conn::http1,
    header,
};
use hyper_util::rt::TokioIo;
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

/// Where commands find the proxy; repositories may name it in their tools' settings.
const PORT: u16 = 3128;
/// What a session speaks after the upgrade.
const PROTOCOL: &str = "journeyman-egress";
/// How long the proxy may take to open a session or to list what it refused.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// Connections of one command at a time; the proxy takes no more of a run.
const MAX_CONNECTIONS: usize = 64;
/// For the planner.
const WRONG_URL: &str = "egress_url must be such as http://egress:3128";
/// Of the proxy's own words, in bytes.
const MAX_WORDS: usize = 16 * 1024;

/// The egress proxy, and the grant for it.
#[derive(Debug)]
pub(crate) struct WayOut {
    host: String,
    port: u16,
    /// Present when the proxy has a certificate. TLS ends here: commands speak plainly to their own loopback.
    tls: Option<tls::Client>,
    grant: SecretString,
}

/// Where commands get out: a port, and its listener where they share this process's loopback.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) port: u16,
    pub(crate) listener: Option<std::net::TcpListener>,
}

impl Door {
    /// For commands that have a loopback of their own; the launcher listens.
    pub(crate) const fn inside() -> Self {
        Self {
            port: PORT,
            listener: None,
        }
    }

    /// For commands that share this process's loopback: at the usual port where that is free.
    pub(crate) fn here() -> io::Result<Self> {
        let bind = |port| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = bind(PORT).or_else(|_| bind(0))?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener: Some(listener),
        })
    }

    /// What tells programs of it.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (String, String)> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        let lower = proxies.map(str::to_lowercase);
        let not =
            ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "localhost,127.0.0.1,::1".to_owned()));
        let mirrors = ("JOURNEYMAN_MIRRORS".to_owned(), format!("{url}/mirror"));
        let proxies = proxies.map(str::to_owned).into_iter().chain(lower);
        proxies
            .map(move |name| (name, url.clone()))
            .chain(not)
            .chain([mirrors])
    }
}

impl WayOut {
    /// Through the proxy at a URL, such as `http://egress:3128`, or `https://egress:3128` where this executor knows the
    /// proxy's authority; absent when the URL is empty.
    ///
    /// # Errors
    /// A text for the planner when this is no such URL.
    pub(crate) fn new(url: &str, grant: &str, client: Option<&tls::Client>) -> Result<Option<Self>, String> {
        if url.is_empty() {
            return Ok(None);
        }
        let uri: Uri = url.parse().map_err(|_| "egress_url is not a URL".to_owned())?;
        let (tls, usual_port) = match (uri.scheme_str(), client) {
            (Some("http"), _) => (None, 80),
            (Some("https"), Some(client)) => (Some(client.clone()), 443),
            (Some("https"), None) => {
                return Err("egress_url is an https URL, and this executor has no section [tls]".to_owned());
            }
            _ => return Err(WRONG_URL.to_owned()),
        };
        let is_base = uri.path() == "/" && uri.query().is_none();
        let authority = uri.authority().filter(|_| is_base).ok_or(WRONG_URL)?;
        Ok(Some(Self {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(usual_port),
            tls,
            grant: grant.to_owned().into(),
        }))
    }

    /// Passes on what comes in at a listener, until the answer is dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        listener: std::net::TcpListener,
    ) -> io::Result<AbortOnDropHandle<()>> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let way_out = Arc::clone(self);
        let accepting = async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                        Ok((connection, _)) => {
                            let way_out = Arc::clone(&way_out);
                            let passing = async move { way_out.pass_on(connection).await };
                            connections.spawn(passing.in_current_span());
                        }
                        Err(error) => return tracing::warn!(
                            error = %chain(&error),
                            "setup commands get out no more"
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
                // Each side's end is passed on; that one broke off is nobody's business here.
                let _ = tokio::io::copy_bidirectional(&mut connection, &mut session).await;
            }
            Err(problem) => {
                tracing::warn!(problem, "no session at the egress proxy");
                // The command may have gone.
                let _ = tokio::time::timeout(ANSWER_TIME, turn_away(connection, &problem)).await;
            }
        }
    }

    /// What the proxy refused to this run, a line each; empty when it cannot be asked.
    pub(crate) async fn refusals(&self) -> String {
        let asked = async {
            let answer = self.ask("/refusals", false).await?;
            let is_list = answer.status() == StatusCode::OK;
            words(answer)
                .await
                .map(|text| if is_list { text } else { String::new() })
        };
        match tokio::time::timeout(ANSWER_TIME, asked).await {
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
        Err(format!("{status}: {}", words(answer).await?.trim()))
    }

    async fn ask(&self, path: &str, upgrade: bool) -> Result<Response<Incoming>, String> {
        let words = |error: io::Error| error.to_string();
        let stream = TcpStream::connect(self.address()).await.map_err(words)?;
        stream.set_nodelay(true).map_err(words)?;
        match &self.tls {
            None => self.request(stream, path, upgrade).await,
            Some(tls) => {
                let stream = tls.connect(&self.host, stream).await.map_err(words)?;
                self.request(stream, path, upgrade).await
            }
        }
    }

    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    async fn request(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        path: &str,
        upgrade: bool,
    ) -> Result<Response<Incoming>, String> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // It ends when the session does.
        drop(tokio::spawn(connection.with_upgrades()));
        let bearer = format!("Bearer {}", self.grant.expose_secret());
        let mut request = Request::get(path)
            .header(header::HOST, self.address())
            .header(header::AUTHORIZATION, bearer);
        if upgrade {
            request = request
                .header(header::CONNECTION, "upgrade")
                .header(header::UPGRADE, PROTOCOL);
        }
        if let Some(caller) = trace::traceparent() {
            request = request.header("traceparent", caller);
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

/// Answers one request. What else comes is read: closing would take the answer away from a client that still writes.
async fn turn_away(mut connection: TcpStream, problem: &str) -> io::Result<()> {
    let text = format!("egress: the proxy gives no session: {problem}\n");
    let head = "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\nconnection: close";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
    connection.write_all(answer.as_bytes()).await?;
    connection.shutdown().await?;
    tokio::io::copy(&mut connection, &mut tokio::io::sink())
        .await
        .map(drop)
}

async fn words(answer: Response<Incoming>) -> Result<String, String> {
    let body = Limited::new(answer.into_body(), MAX_WORDS).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_address_is_a_way_out() {
        let url = |url: &str| WayOut::new(url, "", None).map(|way| way.map(|way| way.address()));
        assert_eq!(url(""), Ok(None));
        assert_eq!(url("http://egress:3128"), Ok(Some("egress:3128".to_owned())));
        assert_eq!(url("http://egress/"), Ok(Some("egress:80".to_owned())));
        for wrong in ["egress", "https://egress", "http://egress/path", "http://"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn programs_are_told_of_the_door_in_both_spellings() {
        let told: Vec<_> = Door::inside().environment().collect();
        for name in ["HTTP_PROXY", "https_proxy", "all_proxy"] {
            assert!(
                told.contains(&(name.to_owned(), "http://127.0.0.1:3128".to_owned())),
                "{name}"
            );
        }
        assert!(
            told.iter()
                .any(|(name, url)| name == "JOURNEYMAN_MIRRORS" && url.ends_with(":3128/mirror"))
        );
    }
}
