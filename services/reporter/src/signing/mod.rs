//! Signatures of commits: whether a repository requires them, and copies of the verified commits with a signature.
//!
//! Executors cannot sign, so the reporter creates the commits again after all checks: GitHub signs those that an App
//! creates over its API, and a key in the settings signs copies in the mirror.

mod api_commits;
mod key;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use domain::{
    BranchPush, BranchRecord, CommitAuthor, CommitId, OutboundRefusal, RepositoryName, SignedCommit,
};
use git::{BareRepository, CommitSource};
use github::GitHubWriter;

use self::api_commits::{ApiCommits, replace_parents};
pub use self::key::SigningSettings;
pub(crate) use self::key::{SigningKey, UnusableKey};
use crate::{effect_error::EffectError, mirror::run_blocking, push_rules::PushRules};

/// Way in which the commits of a push are signed.
#[derive(Clone, Debug)]
pub(crate) enum SigningWay {
    /// No rule requires signatures: the commits are pushed as they are.
    Unsigned,
    /// The key of the settings signs copies in the mirror, which are pushed.
    Key(Arc<SigningKey>),
    /// GitHub creates and signs the commits.
    Api,
}

/// Commits of a push as they get to the remote.
#[derive(Debug)]
pub(crate) struct SignedPush {
    /// Head for the remote branch.
    pub(crate) head: CommitId,
    /// Commits that were created again, oldest first; empty where no signature is needed.
    pub(crate) signed: Vec<SignedCommit>,
    /// True if the commits are at GitHub alone, so that the branch is moved over the API.
    pub(crate) is_at_github: bool,
}

/// Signer of commits, with the key of the settings.
#[derive(Debug)]
pub(crate) struct CommitSigner {
    key: Option<Arc<SigningKey>>,
    committer: Option<CommitAuthor>,
    always: bool,
}

impl CommitSigner {
    /// Parses the key of the settings.
    ///
    /// # Errors
    /// The key cannot be used.
    pub(crate) fn new(settings: &SigningSettings) -> Result<Self, UnusableKey> {
        Ok(Self {
            key: settings.parse_key()?.map(Arc::new),
            committer: settings.committer.clone(),
            always: settings.always,
        })
    }

    /// Returns the fingerprint of the key, for the log of the start.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        self.key.as_ref().map(|key| key.fingerprint())
    }

    /// Chooses the way for commits that have to satisfy these rules.
    ///
    /// # Errors
    /// [`OutboundRefusal::NoSigningKey`] if a rule requires signatures and no way exists.
    pub(crate) async fn choose_way(
        &self,
        github: &GitHubWriter,
        repository: &RepositoryName,
        rules: &PushRules,
    ) -> Result<SigningWay, EffectError> {
        if repository.local_folder().is_some() {
            return Ok(SigningWay::Unsigned);
        }
        let required = rules.signed_branch();
        if let Some(key) = self.key.as_ref().filter(|_| self.always || required.is_some()) {
            return Ok(SigningWay::Key(Arc::clone(key)));
        }
        let Some(branch) = required else {
            return Ok(SigningWay::Unsigned);
        };
        if github.commits().are_signed_by_github(repository).await? {
            return Ok(SigningWay::Api);
        }
        Err(EffectError::Refused(OutboundRefusal::NoSigningKey {
            repository: repository.clone(),
            branch: branch.to_owned(),
        }))
    }

    /// Returns the committer of commits by `author`; `None` where GitHub creates the commits and names itself.
    pub(crate) fn find_committer(&self, way: &SigningWay, author: &CommitAuthor) -> Option<CommitAuthor> {
        match way {
            SigningWay::Unsigned => Some(author.clone()),
            SigningWay::Key(_) => Some(self.committer.as_ref().unwrap_or(author).clone()),
            SigningWay::Api => None,
        }
    }

    /// Creates the commits of a push again with signatures. `targets` are the branches whose commits are not ours, and
    /// `known` is the record of the branch, with earlier signed commits.
    pub(crate) async fn sign_push(
        &self,
        (github, way): (&GitHubWriter, &SigningWay),
        mirror: &Arc<Path>,
        push: &BranchPush,
        targets: &[&str],
        known: Option<&BranchRecord>,
    ) -> Result<SignedPush, EffectError> {
        let signed = match way {
            SigningWay::Unsigned => Vec::new(),
            SigningWay::Key(key) => {
                let commits = list_own_commits(mirror, push, targets).await?;
                let (mirror, key) = (Arc::clone(mirror), Arc::clone(key));
                let committer = self.committer.clone();
                run_blocking(move || sign_copies(&mirror, &commits, &key, committer.as_ref())).await?
            }
            SigningWay::Api => {
                let commits = list_own_commits(mirror, push, targets).await?;
                let writer = ApiCommits {
                    commits: github.commits(),
                    repository: &push.repository,
                    mirror,
                };
                Box::pin(writer.create_all(commits, known)).await?
            }
        };
        let head = signed.last().map(|commit| &commit.head);
        Ok(SignedPush {
            head: head.unwrap_or(&push.head).clone(),
            is_at_github: matches!(way, SigningWay::Api) && !signed.is_empty(),
            signed,
        })
    }
}

/// Lists the commits of a push that the remote does not have, parents before children.
async fn list_own_commits(
    mirror: &Arc<Path>,
    push: &BranchPush,
    targets: &[&str],
) -> Result<Vec<CommitSource>, EffectError> {
    let (mirror, push) = (Arc::clone(mirror), push.clone());
    let targets: Vec<String> = targets.iter().map(|branch| (*branch).to_owned()).collect();
    run_blocking(move || {
        let repository = BareRepository::open(&mirror)?;
        let mut known = vec![push.base.clone()];
        // A merge of the base continues the remote branch, whose commits may be by GitHub or by people.
        known.extend(push.expected.clone());
        for branch in &targets {
            known.extend(repository.branch_head(branch)?);
        }
        repository.commit_sources_beyond(&push.head, &known)
    })
    .await
}

fn sign_copies(
    mirror: &Path,
    commits: &[CommitSource],
    key: &SigningKey,
    committer: Option<&CommitAuthor>,
) -> Result<Vec<SignedCommit>, git::Error> {
    let repository = BareRepository::open(mirror)?;
    let sign = |content: &[u8]| {
        key.sign(content)
            .map_err(|error| git::Error::Failed(error.into()))
    };
    let mut heads = BTreeMap::new();
    let mut signed = Vec::with_capacity(commits.len());
    for commit in commits {
        let parents = replace_parents(&commit.parents, &heads);
        let head = repository.write_signed_copy(&commit.id, &parents, committer, &sign)?;
        heads.insert(commit.id.clone(), head.clone());
        signed.push(SignedCommit {
            source: commit.id.clone(),
            head,
        });
    }
    Ok(signed)
}
