//! Forward proxy of a company, which alone knows the names of the servers outside: `CONNECT`, and HTTP with the
//! whole URL in the request.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

// Longest head of a request, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Request that a proxy received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// Method; `CONNECT` for a tunnel.
    pub method: String,
    /// Host, as the client named it.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query; empty for a tunnel.
    pub path: String,
    /// Status with which the proxy refused it; `None` if it was passed on.
    pub refused: Option<u16>,
}

/// Running proxy. It refuses requests without its credentials (407), names that it does not know (502) and requests
/// that are not those of a client of a proxy (400). It ends with its value.
pub struct ForwardProxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ProxiedRequest>>>,
    _serving: JoinSet<()>,
}

#[derive(Clone)]
struct ProxyRules {
    /// Names that lead to this machine.
    names: Arc<BTreeSet<String>>,
    /// Expected header.
    authorization: Option<Arc<str>>,
    requests: Arc<Mutex<Vec<ProxiedRequest>>>,
}

impl ForwardProxy {
    /// Starts a proxy that resolves these names to this machine. With credentials it requires them.
    ///
    /// # Errors
    /// No free port.
    pub async fn start(names: &[&str], credentials: Option<(&str, &str)>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let authorization = credentials.map(|(user, password)| {
            let pair = STANDARD.encode(format!("{user}:{password}"));
            Arc::from(format!("Basic {pair}"))
        });
        let rules = ProxyRules {
            names: Arc::new(names.iter().map(|name| (*name).to_owned()).collect()),
            authorization,
            requests: Arc::default(),
        };
        let requests = Arc::clone(&rules.requests);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let rules = rules.clone();
                // A connection that breaks off is the client's matter.
                connections.spawn(async move { rules.serve(client).await.unwrap_or_default() });
            }
        });
        Ok(Self {
            address,
            requests,
            _serving: serving,
        })
    }

    /// Address, `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far.
    pub fn requests(&self) -> Vec<ProxiedRequest> {
        self.requests.lock().clone()
    }

    /// Requests to a host that were passed on.
    pub fn passed_to(&self, host: &str) -> Vec<ProxiedRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.host == host && request.refused.is_none());
        requests
    }
}

impl ProxyRules {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let head = read_head(&mut client).await?;
        let mut lines = head.split("\r\n");
        let request_line = lines.next().unwrap_or_default();
        let headers: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let Some(mut request) = parse_request_line(request_line) else {
            return answer_client(&mut client, 400, "").await;
        };
        let known = self.names.contains(&request.host);
        let given = headers
            .iter()
            .find_map(|line| strip_header(line, "proxy-authorization"));
        request.refused = match (&self.authorization, known) {
            (Some(expected), _) if given != Some(&**expected) => Some(407),
            (_, false) => Some(502),
            (_, true) => None,
        };
        self.requests.lock().push(request.clone());
        match request.refused {
            Some(407) => {
                return answer_client(&mut client, 407, "Proxy-Authenticate: Basic realm=\"proxy\"\r\n")
                    .await;
            }
            Some(status) => return answer_client(&mut client, status, "").await,
            None => {}
        }
        let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, request.port)).await?;
        if request.method == "CONNECT" {
            client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?;
        } else {
            // One request for each connection: the next one would need its own rewritten head.
            let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
            for line in headers {
                let is_own = [
                    "proxy-authorization",
                    "proxy-connection",
                    "connection",
                    "keep-alive",
                ]
                .iter()
                .any(|name| strip_header(line, name).is_some());
                if !is_own {
                    head.push_str(line);
                    head.push_str("\r\n");
                }
            }
            head.push_str("Connection: close\r\n\r\n");
            server.write_all(head.as_bytes()).await?;
        }
        tokio::io::copy_bidirectional(&mut client, &mut server)
            .await
            .map(|_| ())
    }
}

/// Value of a header line with this name in lower case.
fn strip_header<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    found.eq_ignore_ascii_case(name).then(|| value.trim())
}

/// Parses `CONNECT host:port HTTP/1.1` or `GET http://host:port/path HTTP/1.1`.
fn parse_request_line(line: &str) -> Option<ProxiedRequest> {
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return None;
    }
    let (authority, path, usual) = match method {
        "CONNECT" => (target, "", None),
        _ => {
            let rest = target.strip_prefix("http://")?;
            let at = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(at);
            (authority, if path.is_empty() { "/" } else { path }, Some(80))
        }
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, usual?),
    };
    Some(ProxiedRequest {
        method: method.to_owned(),
        host: host.to_owned(),
        port,
        path: path.to_owned(),
        refused: None,
    })
}

async fn answer_client(client: &mut TcpStream, status: u16, header: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} Refused by the proxy\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await?;
    client.shutdown().await
}

/// Reads the head of a request, and no byte of its body.
async fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD {
            return Err(io::Error::other("the head is too long"));
        }
        head.push(client.read_u8().await?);
    }
    String::from_utf8(head).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_line_names_host_and_path() {
        let read = |line: &str| {
            parse_request_line(line).map(|found| format!("{}:{}{}", found.host, found.port, found.path))
        };
        for (line, expected) in [
            ("CONNECT github.test:443 HTTP/1.1", Some("github.test:443")),
            (
                "GET http://jira.test/rest?a=b HTTP/1.1",
                Some("jira.test:80/rest?a=b"),
            ),
            ("GET http://jira.test:81 HTTP/1.1", Some("jira.test:81/")),
            ("GET /rest HTTP/1.1", None),
            ("CONNECT github.test HTTP/1.1", None),
            ("GET http://jira.test/ HTTP/2", None),
        ] {
            assert_eq!(read(line).as_deref(), expected, "{line}");
        }
    }
}
