//! Signatures that a repository requires of commits, and the way in which the reporter makes them.

use std::time::Duration;

use domain::{BaseCondition, RepositoryName, cause::format_error_chain};
use github::GitHubWriter;
use serde::{Deserialize, de::IgnoredAny};

// The answer is one line among others, so it does not wait long.
const LIMIT: Duration = Duration::from_secs(15);

/// The part of `[reporter]` that says whether a key is set. The key itself is not read.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SigningSections {
    signing: KeySection,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeySection {
    private_key: Option<IgnoredAny>,
}

impl SigningSections {
    /// True when the settings name a key.
    pub(super) const fn has_key(&self) -> bool {
        self.signing.private_key.is_some()
    }
}

/// Way to sign commits for a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SigningSupport {
    /// No rule that the account can read requires signatures.
    NotRequired,
    /// The key of the settings signs.
    ByKey,
    /// GitHub signs the commits of the App.
    ByGitHub,
    /// Signatures are required, and nothing can make them.
    Missing,
    /// GitHub did not answer.
    Unknown {
        /// Reason, in words.
        problem: String,
    },
}

impl SigningSupport {
    /// Describes the way, without the name of the branch.
    pub(super) fn describe(&self) -> &str {
        match self {
            Self::Unknown { problem } => problem,
            Self::NotRequired => "signed commits are not required",
            Self::ByKey => "signed commits are required: the key of reporter.signing signs them",
            Self::ByGitHub => "signed commits are required: GitHub signs those of the writer's App",
            Self::Missing => {
                "signed commits are required, and the writer cannot sign: no work begins; set reporter.signing.private_key, or \
                 let an App write"
            }
        }
    }
}

/// Reads the way to sign commits for a branch; without a branch, for the default one.
pub(super) async fn find_signing_support(
    settings: &github::Settings,
    repository: &RepositoryName,
    branch: Option<&str>,
    has_key: bool,
) -> SigningSupport {
    let unknown = |problem| SigningSupport::Unknown { problem };
    let writer = match GitHubWriter::new(settings) {
        Ok(writer) => writer,
        Err(error) => return unknown(format_error_chain(&error)),
    };
    let reading = Box::pin(read_support(&writer, repository, branch, has_key));
    match tokio::time::timeout(LIMIT, reading).await {
        Ok(Ok(support)) => support,
        Ok(Err(error)) => unknown(format_error_chain(&error)),
        Err(_) => unknown(format!("no answer within {} s", LIMIT.as_secs())),
    }
}

async fn read_support(
    writer: &GitHubWriter,
    repository: &RepositoryName,
    branch: Option<&str>,
    has_key: bool,
) -> Result<SigningSupport, github::Error> {
    let branch = match branch {
        Some(branch) => branch.to_owned(),
        None => writer.repository(repository).await?.default_branch,
    };
    let rules = writer.branch_requirements(repository, &branch).await?;
    Ok(match (rules.includes(BaseCondition::SignedCommits), has_key) {
        (false, _) => SigningSupport::NotRequired,
        (true, true) => SigningSupport::ByKey,
        (true, false) => {
            if writer.commits().are_signed_by_github(repository).await? {
                SigningSupport::ByGitHub
            } else {
                SigningSupport::Missing
            }
        }
    })
}
