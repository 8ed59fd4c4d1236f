//! HTTP connection to the git gate, for one request after the other, and the digest of its references, which replaces a
//! fetch of unchanged ones.

use std::{io, time::Duration};

use bootstrap::tls::TlsClient;
use domain::{CommitId, RepositoryName, cause::format_error_chain};
use git::{LfsDefect, LfsListing, LfsOid, LfsReceipt};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use secrecy::SecretString;
use tokio::time::timeout;

use crate::peer_address::PeerAddress;

// Time limit of a connection. The gate is in the same network.
const CONNECT_TIME: Duration = Duration::from_secs(10);
// Time limit of an answer's head. The gate itself waits up to 20 s for downloads.
const ANSWER_TIME: Duration = Duration::from_secs(60);
// Longest pause between two parts of a content.
const SILENCE: Duration = Duration::from_secs(60);
// Limit of a listing, in bytes. A commit has at most 20,000 pointers.
const MAX_LISTING: usize = 16 * 1024 * 1024;
// Limit of the gate's messages, in bytes.
const MAX_WORDS: usize = 16 * 1024;

/// Address of one repository at the git gate, with the grant for it.
pub(crate) struct GateAddress {
    gate: PeerAddress,
    /// Path of the repository.
    path: String,
    grant: SecretString,
}

/// Failure of a request to the git gate.
#[derive(Debug, thiserror::Error)]
pub(super) enum GateFailure {
    /// The gate is still downloading.
    #[error("the git gate is still downloading")]
    NotReady { percent: Option<u8> },
    /// The gate refuses the request.
    #[error("the git gate refuses: {0}")]
    Refused(String),
    /// The gate cannot serve the request at the moment.
    #[error("the git gate cannot serve: {0}")]
    Unavailable(String),
    /// The gate cannot be reached, or its answer broke off.
    #[error("the git gate cannot be reached: {0}")]
    Unreachable(String),
    /// The content is not the one of its pointer.
    #[error("the content is not accepted: {0}")]
    Defect(#[from] LfsDefect),
}

impl From<hyper::Error> for GateFailure {
    fn from(error: hyper::Error) -> Self {
        Self::Unreachable(error.to_string())
    }
}

impl From<io::Error> for GateFailure {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error.to_string())
    }
}

impl GateAddress {
    /// Describes a repository at a gate such as `http://reporter:7404/git`.
    ///
    /// # Errors
    /// Returns a text for the operator when the URL has another form, or needs certificates that are not set.
    pub(crate) fn new(
        gate_url: &str,
        repository: &RepositoryName,
        grant: SecretString,
        tls: Option<&TlsClient>,
    ) -> Result<Self, String> {
        let uri: Uri = gate_url.parse().map_err(|_| "gate_url is not a URL".to_owned())?;
        Ok(Self {
            gate: PeerAddress::of_url("gate_url", &uri, tls)?,
            path: format!("{}/{repository}.git", uri.path().trim_end_matches('/')),
            grant,
        })
    }
}

/// Connection that is opened at the first request, and again after a failure.
pub(super) struct GateConnection {
    address: GateAddress,
    sender: Option<http1::SendRequest<Empty<Bytes>>>,
}

impl GateConnection {
    pub(super) const fn new(address: GateAddress) -> Self {
        Self {
            address,
            sender: None,
        }
    }

    /// Requests the contents of a commit.
    pub(super) async fn list(&mut self, commit: &CommitId) -> Result<LfsListing, GateFailure> {
        let answer = self
            .get(&format!("{}/lfs/{commit}", self.address.path), &[])
            .await?;
        let body = read_body(answer, MAX_LISTING).await?;
        serde_json::from_slice(&body)
            .map_err(|_| GateFailure::Refused("its list of contents cannot be read".to_owned()))
    }

    /// Requests the digest of the references that a fetch of this branch would receive.
    pub(super) async fn digest_references(
        &mut self,
        branch: &str,
        reported: Option<&CommitId>,
    ) -> Result<String, GateFailure> {
        let mut headers = vec![(git::WANTED_BRANCH, branch)];
        headers.extend(reported.map(|commit| (git::REPORTED_COMMIT, commit.as_str())));
        let answer = self
            .get(&format!("{}/digest", self.address.path), &headers)
            .await?;
        let body = read_body(answer, MAX_WORDS).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Receives a content.
    pub(super) async fn receive(
        &mut self,
        commit: &CommitId,
        oid: &LfsOid,
        mut receipt: LfsReceipt,
    ) -> Result<LfsReceipt, GateFailure> {
        let received = async {
            let answer = self
                .get(&format!("{}/lfs/{commit}/{oid}", self.address.path), &[])
                .await?;
            let mut body = answer.into_body();
            while let Some(frame) = timeout(SILENCE, body.frame())
                .await
                .map_err(|_| build_silence_failure())?
            {
                let Ok(part) = frame?.into_data() else { continue };
                // In small parts, which the page cache takes at once.
                receipt.write(&part)?;
            }
            Ok(())
        };
        match received.await {
            Ok(()) => Ok(receipt),
            Err(failure) => {
                // The rest of the body would be in the way of the next answer.
                self.sender = None;
                Err(failure)
            }
        }
    }

    async fn get(
        &mut self,
        path: &str,
        extra_headers: &[(&str, &str)],
    ) -> Result<Response<Incoming>, GateFailure> {
        let open = match self.sender.take() {
            Some(mut sender) => sender.ready().await.is_ok().then_some(sender),
            None => None,
        };
        let mut sender = match open {
            Some(sender) => sender,
            None => timeout(CONNECT_TIME, self.address.connect())
                .await
                .map_err(|_| build_silence_failure())??,
        };
        let mut request = self.address.gate.request(path, &self.address.grant);
        for (name, value) in extra_headers {
            // As bytes, because a branch name need not be ASCII.
            request = request.header(*name, value.as_bytes());
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|error| GateFailure::Refused(error.to_string()))?;
        let answer = timeout(ANSWER_TIME, sender.send_request(request))
            .await
            .map_err(|_| build_silence_failure())??;
        if answer.status() == StatusCode::OK {
            self.sender = Some(sender);
            return Ok(answer);
        }
        Err(read_refusal(answer).await)
    }
}

/// Returns the digest of the references that a fetch of this branch would receive now. A gate whose branch lacks the
/// reported commit fetches first.
///
/// `None` if the gate does not give one, as before this release or for a grant that it refuses. A fetch shows the
/// reason.
///
/// # Errors
/// [`git::Error::NotReady`] while the first clone of the gate is in progress, and [`git::Error::Unavailable`] if the
/// gate cannot reach the remote. A fetch would have the same failure.
pub(crate) async fn digest_references(
    address: Result<GateAddress, String>,
    branch: &str,
    reported: Option<&CommitId>,
) -> Result<Option<String>, git::Error> {
    let digested = match address.map(GateConnection::new) {
        Ok(mut connection) => connection.digest_references(branch, reported).await,
        Err(problem) => Err(GateFailure::Refused(problem)),
    };
    match digested {
        Ok(digest) => Ok(Some(digest)),
        Err(GateFailure::NotReady { percent }) => Err(git::Error::NotReady { percent }),
        Err(GateFailure::Unavailable(words)) => Err(git::Error::Unavailable(words)),
        Err(failure @ (GateFailure::Refused(_) | GateFailure::Unreachable(_) | GateFailure::Defect(_))) => {
            tracing::debug!(reason = format_error_chain(&failure), "no digest of the git gate");
            Ok(None)
        }
    }
}

impl GateAddress {
    async fn connect(&self) -> Result<http1::SendRequest<Empty<Bytes>>, GateFailure> {
        let stream = self.gate.connect().await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The task ends with the sender.
        drop(tokio::spawn(connection));
        Ok(sender)
    }
}

async fn read_body(answer: Response<Incoming>, most: usize) -> Result<Bytes, GateFailure> {
    let body = timeout(ANSWER_TIME, Limited::new(answer.into_body(), most).collect())
        .await
        .map_err(|_| build_silence_failure())?;
    let body = body.map_err(|error| GateFailure::Unreachable(error.to_string()))?;
    Ok(body.to_bytes())
}

async fn read_refusal(answer: Response<Incoming>) -> GateFailure {
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MAX_WORDS).collect();
    let words = match timeout(ANSWER_TIME, body).await {
        Ok(Ok(body)) => String::from_utf8_lossy(&body.to_bytes()).trim().to_owned(),
        Ok(Err(_)) | Err(_) => String::new(),
    };
    match words.strip_prefix(git::NOT_READY) {
        Some(rest) => GateFailure::NotReady {
            percent: rest
                .trim_start_matches([':', ' '])
                .trim_end_matches([' ', '%'])
                .parse()
                .ok(),
        },
        None if status == StatusCode::SERVICE_UNAVAILABLE => GateFailure::Unavailable(words),
        None => GateFailure::Refused(format!("{status}: {words}")),
    }
}

fn build_silence_failure() -> GateFailure {
    GateFailure::Unreachable("it does not answer".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_url_gives_path_of_repository() {
        let name = "acme/shop".parse().unwrap();
        let address = |url: &str| GateAddress::new(url, &name, String::new().into(), None);
        let found = address("http://reporter:7404/git/").unwrap();
        assert_eq!(
            (found.gate.to_string().as_str(), found.path.as_str()),
            ("reporter:7404", "/git/acme/shop.git")
        );
        assert_eq!(address("http://[::1]/").unwrap().path, "/acme/shop.git");
        for wrong in ["reporter", "https://reporter/git", "ftp://reporter"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
