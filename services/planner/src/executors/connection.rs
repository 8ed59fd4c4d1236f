//! Connections to executors, with the planner's certificate where `[tls]` is configured; their caller, and
//! the errors of their calls.

use std::{collections::BTreeSet, io, time::Duration};

use axum::http::Uri;
use bootstrap::{
    settings::Error,
    tls::{Settings, TlsClient, TlsProtocol},
};
use domain::{ErrorCause, RepositoryName, RunFence, RunId, cause::format_error_chain};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};
use tower::service_fn;

pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(3);
// Interval and timeout of HTTP/2 pings: a lost node closes no connection, so a call fails after twice this
// time.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const RESOLVE_LIMIT: Duration = Duration::from_secs(3);

/// Caller of an executor: a run with its repository and its fence.
#[derive(Clone, Debug)]
pub(crate) struct RunCaller {
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) fence: RunFence,
}

/// Error of a call to an open workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The workspace or its executor is gone.
    #[error("the workspace is gone")]
    WorkspaceLost,
    /// A newer planner has the ticket.
    #[error("a newer fence was seen")]
    Stale,
    /// The executor is unreachable or failed. A retry may succeed.
    #[error("the executor is in trouble: {words}")]
    Trouble {
        /// Status, or problem of the response.
        words: String,
        /// Cause, if the connection broke.
        source: Option<ErrorCause>,
    },
    /// The request is malformed, e.g. because of arguments from the model.
    #[error("the executor cannot understand the request: {0}")]
    Invalid(String),
    /// The executor does not accept calls of this kind or from this planner.
    #[error("the executor refused the request: {0}")]
    Refused(String),
    /// The call exceeded its deadline.
    #[error("the call took too long")]
    TimedOut,
    /// The changes of the workspace cannot be stored as they are. A retry does not help.
    #[error("{0}")]
    Unkeepable(String),
    /// The object store did not accept a snapshot.
    #[error("the object store did not take the snapshot")]
    Store(#[source] queue::Error),
}

impl CallError {
    pub(super) fn trouble(words: &str) -> Self {
        Self::Trouble {
            words: words.to_owned(),
            source: None,
        }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let words = format!("{:?}: {}", status.code(), status.message());
        match status.code() {
            Code::NotFound => Self::WorkspaceLost,
            Code::FailedPrecondition => Self::Stale,
            Code::DeadlineExceeded => Self::TimedOut,
            Code::InvalidArgument => Self::Invalid(status.message().to_owned()),
            Code::OutOfRange => Self::Unkeepable(status.message().to_owned()),
            Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented | Code::AlreadyExists => {
                Self::Refused(words)
            }
            Code::Unavailable
            | Code::ResourceExhausted
            | Code::Cancelled
            | Code::Unknown
            | Code::Aborted
            | Code::Internal
            | Code::DataLoss
            | Code::Ok => Self::Trouble {
                words,
                // A `Status` does not give away its source, so the causes are kept as text.
                source: std::error::Error::source(&status).map(|cause| format_error_chain(cause).into()),
            },
        }
    }
}

/// Connector for executors; holds the TLS client if there are certificates.
#[derive(Clone, Debug)]
pub(crate) struct ExecutorConnector(Option<TlsClient>);

impl ExecutorConnector {
    /// Creates a connector. With certificates it uses TLS for every connection, whatever scheme an address
    /// has.
    ///
    /// # Errors
    /// The certificate files are not usable.
    pub(crate) fn new(settings: Option<&Settings>) -> Result<Self, Error> {
        let client = settings.map(|settings| TlsClient::to_service(settings, TlsProtocol::Http2, "executor"));
        Ok(Self(client.transpose()?))
    }

    /// Creates a channel that connects and reconnects by itself.
    pub(super) fn channel(&self, address: &str) -> Result<Channel, CallError> {
        // The connector does TLS itself, so the scheme must not ask tonic for it.
        let plain = address.replacen("https://", "http://", 1);
        let endpoint = Endpoint::from_shared(plain)
            .map_err(|_| CallError::Refused(format!("{address} is not an address")))?
            .connect_timeout(CONNECT_LIMIT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            // Detects a dead executor before a call needs it.
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        Ok(match &self.0 {
            None => endpoint.connect_lazy(),
            Some(client) => {
                let client = client.clone();
                endpoint
                    .connect_with_connector_lazy(service_fn(move |uri| connect_with_tls(client.clone(), uri)))
            }
        })
    }

    /// Resolves an address, or every address behind a `dns://` name; `None` if the name does not resolve.
    pub(super) async fn resolve(&self, address: &str) -> Option<BTreeSet<String>> {
        let Some(name) = address.strip_prefix("dns://") else {
            return Some([address.to_owned()].into());
        };
        let scheme = self.0.as_ref().map_or("http", |_| "https");
        match tokio::time::timeout(RESOLVE_LIMIT, tokio::net::lookup_host(name)).await {
            Ok(Ok(found)) => Some(found.map(|found| format!("{scheme}://{found}")).collect()),
            Ok(Err(_)) | Err(_) => {
                tracing::debug!(name, "the pool's name does not resolve");
                None
            }
        }
    }
}

async fn connect_with_tls(client: TlsClient, uri: Uri) -> io::Result<TokioIo<impl AsyncRead + AsyncWrite>> {
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(443);
    let stream = TcpStream::connect(format!("{host}:{port}")).await?;
    stream.set_nodelay(true)?;
    client.connect(host, stream).await.map(TokioIo::new)
}
