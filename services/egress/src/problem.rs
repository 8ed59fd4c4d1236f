//! Reasons for a failed request, worded for the model that caused it, and the responses that the proxy writes itself.

use std::fmt;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use domain::{HostPattern, RepositoryName};

/// Longest target in a text, in characters. A sandbox may send a longer one.
const MAX_HOST: usize = 120;

/// Reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// No pattern of the rules covers the host, or the mirror is for other repositories.
    NotOpen,
    /// The host is an address, in any spelling.
    Address,
    /// The name resolves to an address that is not public and that no setting permits.
    NotPublic,
    /// The TLS `ClientHello` names another host or none.
    OtherName,
    /// The tunnel does not begin with a TLS `ClientHello`.
    NotTls,
    /// The method or a body could upload.
    Upload,
    /// The path leaves the base of its mirror.
    Outside,
    /// The run's upload quota is exhausted; its size in MiB.
    SentAll(u64),
    /// The run's download quota is exhausted; its size in MiB.
    ReceivedAll(u64),
}

impl RefusalReason {
    /// Returns the label for metrics and logs.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::NotOpen => "not_open",
            Self::Address => "address",
            Self::NotPublic => "not_public",
            Self::OtherName => "other_name",
            Self::NotTls => "not_tls",
            Self::Upload => "upload",
            Self::Outside => "outside",
            Self::SentAll(_) => "sent_all",
            Self::ReceivedAll(_) => "received_all",
        }
    }
}

/// A refused target and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EgressRefusal {
    /// The target: `host:port` or `/mirror/<name>/`.
    pub(crate) what: String,
    pub(crate) reason: RefusalReason,
}

impl EgressRefusal {
    /// Builds a refusal, with the target truncated and reduced to printable ASCII.
    pub(crate) fn new(what: &str, reason: RefusalReason) -> Self {
        // The text becomes a line of `/refusals` and a prompt of the model: a sandbox must not be able to add lines
        // to it.
        let clean = |letter: char| if letter.is_ascii_graphic() { letter } else { '?' };
        Self {
            what: what.chars().take(MAX_HOST).map(clean).collect(),
            reason,
        }
    }

    /// Renders the refusal without advice.
    pub(crate) fn words(&self, repository: &RepositoryName) -> String {
        let what = &self.what;
        match self.reason {
            RefusalReason::NotOpen => format!("{what} is not open to {repository}"),
            RefusalReason::Address => format!("{what} is an address, and only names are open"),
            RefusalReason::NotPublic => format!("{what} leads to an address that is not public"),
            RefusalReason::OtherName => format!("{what} is not the host that the TLS client named"),
            RefusalReason::NotTls => {
                format!("{what} was not asked in TLS, the only thing that a tunnel carries")
            }
            RefusalReason::Upload => {
                format!("{what} takes GET, HEAD and OPTIONS without a body, because nothing is uploaded")
            }
            RefusalReason::Outside => format!("{what} is open beneath its base alone"),
            RefusalReason::SentAll(mib) => {
                format!("{what} is cut off: the run has sent the {mib} MiB that it may")
            }
            RefusalReason::ReceivedAll(mib) => {
                format!("{what} is cut off: the run has received the {mib} MiB that it may")
            }
        }
    }
}

/// Hosts and mirrors that are open to a repository, for the end of a refusal.
pub(crate) struct OpenHosts<'a> {
    pub(crate) network: &'a [HostPattern],
    /// Names of the mirrors.
    pub(crate) mirrors: Vec<&'a str>,
}

impl fmt::Display for OpenHosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("open: ")?;
        if self.network.is_empty() {
            f.write_str("no host")?;
        }
        for (number, pattern) in self.network.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{pattern}")?;
        }
        f.write_str(" (executor.network in its rules)")?;
        for (number, name) in self.mirrors.iter().enumerate() {
            let comma = if number == 0 { "; mirrors: " } else { ", " };
            write!(f, "{comma}/mirror/{name}/")?;
        }
        Ok(())
    }
}

/// Reason why the proxy answers a request itself.
#[derive(Debug)]
pub(crate) enum EgressProblem {
    /// The rules or the limits do not permit the request.
    Refused(EgressRefusal),
    /// The request is malformed; one line for the client.
    Malformed(&'static str),
    /// The other side is unreachable or its response is unusable; target and reason.
    Unreachable(String),
}

impl EgressProblem {
    /// Builds a refusal of the target `what`.
    pub(crate) fn refused(what: &str, reason: RefusalReason) -> Self {
        Self::Refused(EgressRefusal::new(what, reason))
    }
}

/// Builds a response with a status and one line of text, prefixed with `egress: `.
pub(crate) fn text_response(status: StatusCode, words: &str) -> Response<Body> {
    (status, format!("egress: {words}\n")).into_response()
}

/// Builds the response that switches this connection to another protocol (101).
pub(crate) fn upgrade_response(protocol: &'static str) -> Response<Body> {
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static(protocol)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_text_is_always_one_line() {
        let refusal = EgressRefusal::new(&format!("a\r\nb{}", "x".repeat(500)), RefusalReason::NotOpen);
        let words = refusal.words(&"acme/shop".parse().unwrap());
        assert!(words.len() < 200 && words.starts_with("a??bxxx"), "{words}");
    }

    #[test]
    fn refusal_text_ends_with_open_hosts() {
        let network: Vec<HostPattern> = ["pypi.example", "*.crates.example"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let open = OpenHosts {
            network: &network,
            mirrors: vec!["npm", "pypi"],
        };
        let expected = "open: pypi.example, *.crates.example (executor.network in its rules); mirrors: /mirror/npm/, /mirror/pypi/";
        assert_eq!(open.to_string(), expected);
        let nothing = OpenHosts {
            network: &[],
            mirrors: Vec::new(),
        };
        assert_eq!(
            nothing.to_string(),
            "open: no host (executor.network in its rules)"
        );
    }
}
