//! Why a request is not answered, in words for the model that caused it.

use std::fmt;

use domain::{HostPattern, RepositoryName};

/// Longest name of a host in a text; what a sandbox sends may be longer.
const MAX_HOST: usize = 120;

/// Why a way stays closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// No pattern of the rules covers it, or the mirror is for other repositories.
    NotOpen,
    /// It is an address, in whatever spelling.
    Address,
    /// Its name leads to an address that is not public and that no setting permits.
    NotPublic,
    /// The TLS hello names another host, or none.
    OtherName,
    /// A tunnel that does not begin with a TLS hello.
    NotTls,
    /// A method, or a body, that could carry something out.
    Upload,
    /// A path that leaves the base of its mirror.
    Outside,
    /// The run has sent all that it may: MiB.
    SentAll(u64),
    /// The run has received all that it may: MiB.
    ReceivedAll(u64),
}

impl Reason {
    /// For metrics and logs.
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

/// What was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `host:port` or `/mirror/<name>/`.
    pub(crate) what: String,
    pub(crate) reason: Reason,
}

impl Refusal {
    /// A refusal of `what`, cut and cleaned of what does not belong in a line of text.
    pub(crate) fn new(what: &str, reason: Reason) -> Self {
        let clean = |letter: char| if letter.is_ascii_graphic() { letter } else { '?' };
        Self {
            what: what.chars().take(MAX_HOST).map(clean).collect(),
            reason,
        }
    }

    /// The refusal without what to do about it.
    pub(crate) fn words(&self, repository: &RepositoryName) -> String {
        let what = &self.what;
        match self.reason {
            Reason::NotOpen => format!("{what} is not open to {repository}"),
            Reason::Address => format!("{what} is an address, and only names are open"),
            Reason::NotPublic => format!("{what} leads to an address that is not public"),
            Reason::OtherName => format!("{what} is not the host that the TLS client named"),
            Reason::NotTls => format!("{what} was not asked in TLS, the only thing that a tunnel carries"),
            Reason::Upload => {
                format!("{what} takes GET, HEAD and OPTIONS without a body, because nothing is uploaded")
            }
            Reason::Outside => format!("{what} is open beneath its base alone"),
            Reason::SentAll(mib) => format!("{what} is cut off: the run has sent the {mib} MiB that it may"),
            Reason::ReceivedAll(mib) => {
                format!("{what} is cut off: the run has received the {mib} MiB that it may")
            }
        }
    }
}

/// What is open to a repository, for the end of a refusal.
pub(crate) struct Open<'a> {
    pub(crate) network: &'a [HostPattern],
    /// Names of mirrors.
    pub(crate) mirrors: Vec<&'a str>,
}

impl fmt::Display for Open<'_> {
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

/// Why a request has another answer than the one it asked for.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The rules or the limits do not open it.
    Refused(Refusal),
    /// It cannot be understood; why.
    Malformed(&'static str),
    /// The other side cannot be reached or does not answer as it should; what and why.
    Unreachable(String),
}

impl Problem {
    /// A refusal.
    pub(crate) fn refused(what: &str, reason: Reason) -> Self {
        Self::Refused(Refusal::new(what, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_whatever_was_asked_for() {
        let refusal = Refusal::new(&format!("a\r\nb{}", "x".repeat(500)), Reason::NotOpen);
        let words = refusal.words(&"acme/shop".parse().unwrap());
        assert!(words.len() < 200 && words.starts_with("a??bxxx"), "{words}");
    }

    #[test]
    fn the_end_of_a_refusal_names_what_is_open() {
        let network: Vec<HostPattern> = ["pypi.example", "*.crates.example"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let open = Open {
            network: &network,
            mirrors: vec!["npm", "pypi"],
        };
        let expected = "open: pypi.example, *.crates.example (executor.network in its rules); mirrors: /mirror/npm/, /mirror/pypi/";
        assert_eq!(open.to_string(), expected);
        let nothing = Open {
            network: &[],
            mirrors: Vec::new(),
        };
        assert_eq!(
            nothing.to_string(),
            "open: no host (executor.network in its rules)"
        );
    }
}
