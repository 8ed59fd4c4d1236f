//! Signatures of commits: those that the stand-in makes like GitHub, and those of registered SSH keys.

use std::path::Path;

use git2::{Oid, Repository};
use serde_json::{Value, json};
use ssh_key::{PublicKey, SshSig};

use super::FakeGitHub;
use super::history::CommitDetails;
use super::repository::sign_as_github;
use super::rulesets::{BranchRuleset, RulesetCondition, RulesetPattern};
use super::state::RepositoryRecord;

/// Judgment about a signature: GitHub's code, and the signature with the signed content.
pub(super) struct SignatureVerdict {
    /// Code such as `valid`, `unsigned` or `unknown_key`.
    pub(super) reason: &'static str,
    signed: Option<(String, String)>,
}

impl SignatureVerdict {
    pub(super) fn is_verified(&self) -> bool {
        self.reason == "valid"
    }
}

impl RepositoryRecord {
    /// Judges the signature of a commit.
    pub(super) fn judge_signature(&self, sha: &str) -> SignatureVerdict {
        let unsigned = SignatureVerdict {
            reason: "unsigned",
            signed: None,
        };
        let Ok((signature, content)) = read_signature(&self.path, sha) else {
            return unsigned;
        };
        let is_by_github = signature.trim_end() == sign_as_github(content.as_bytes());
        let reason = match SshSig::from_pem(format!("{}\n", signature.trim_end())) {
            _ if is_by_github => "valid",
            Ok(parsed) => {
                let keys = self
                    .signing_keys
                    .iter()
                    .filter_map(|key| PublicKey::from_openssh(key).ok());
                let mut keys = keys.filter(|key| key.key_data() == parsed.public_key());
                match keys.next() {
                    None => "unknown_key",
                    Some(key) if key.verify("git", content.as_bytes(), &parsed).is_ok() => "valid",
                    Some(_) => "invalid",
                }
            }
            Err(_) => "unknown_signature_type",
        };
        SignatureVerdict {
            reason,
            signed: Some((signature, content)),
        }
    }

    /// Returns the rule that forbids to move or create a branch; `None` if the move is allowed.
    pub(super) fn find_broken_rule(&self, branch: &str, is_new: bool, sha: &str) -> Option<String> {
        if self.is_queued(branch) {
            return Some("Branches that are queued for merging cannot be updated.".to_owned());
        }
        let about = self.rulesets.iter().filter(|ruleset| ruleset.is_about(branch));
        for ruleset in about {
            if is_new && ruleset.restricts_creation {
                return Some("Cannot create ref due to creations being restricted.".to_owned());
            }
            if !is_new && ruleset.restricts_updates {
                return Some("Cannot update this protected ref.".to_owned());
            }
            if let Some(reason) = self.find_broken_pattern(ruleset, branch, sha) {
                return Some(reason);
            }
            if ruleset.includes(RulesetCondition::SignedCommits) && self.find_unverified(sha, None).is_some()
            {
                return Some("Commits must have verified signatures.".to_owned());
            }
        }
        None
    }

    /// Returns the reason of the first pattern that the branch or one of its new commits breaks.
    fn find_broken_pattern(&self, ruleset: &BranchRuleset, branch: &str, sha: &str) -> Option<String> {
        let ids = self.list_new_commits(sha, None).into_iter();
        let commits: Vec<CommitDetails> = ids
            .filter_map(|id| super::history::read_commit(&self.path, &id).ok())
            .collect();
        let is_broken = |pattern: &&RulesetPattern| {
            if pattern.is_about_branch() {
                return pattern.is_broken_by(branch, "", ("", ""));
            }
            let mut commits = commits.iter();
            commits.any(|commit| {
                let people = (commit.author.email.as_str(), commit.committer.email.as_str());
                pattern.is_broken_by(branch, &commit.message, people)
            })
        };
        let mut patterns = ruleset.patterns.iter().filter(|_| !ruleset.is_bypassed);
        Some(patterns.find(is_broken)?.reason())
    }

    /// True if a ruleset or classic protection requires signatures on the branch.
    pub(super) fn requires_signatures(&self, branch: &str) -> bool {
        let mut about = self.rulesets.iter().filter(|ruleset| ruleset.is_about(branch));
        self.signed_branches.contains(branch)
            || about.any(|ruleset| ruleset.includes(RulesetCondition::SignedCommits))
    }

    /// Returns the first unverified commit of `head` that neither `base` nor, without a base, a branch has.
    pub(super) fn find_unverified(&self, head: &str, base: Option<&str>) -> Option<String> {
        let mut commits = self.list_new_commits(head, base).into_iter();
        commits.find(|sha| !self.judge_signature(sha).is_verified())
    }

    /// Lists the commits of `head` that neither `base` nor, without a base, a branch has.
    fn list_new_commits(&self, head: &str, base: Option<&str>) -> Vec<String> {
        let list = || -> anyhow::Result<Vec<Oid>> {
            let git = Repository::open_bare(&self.path)?;
            let mut walk = git.revwalk()?;
            walk.push(Oid::from_str(head)?)?;
            match base {
                Some(base) => walk.hide(git.revparse_single(base)?.id())?,
                None => walk.hide_glob("refs/heads/*")?,
            }
            Ok(walk.collect::<Result<_, _>>()?)
        };
        let commits = list().unwrap_or_default().into_iter();
        commits.map(|id| id.to_string()).collect()
    }

    /// Renders a commit for the routes of git objects.
    pub(in crate::github) fn git_commit_json(&self, commit: &CommitDetails, url: &str) -> Value {
        let own = self.api_url(url);
        let person = |name: &str, email: &str| json!({"name": name, "email": email, "date": commit.at});
        let parents: Vec<Value> = commit
            .parents
            .iter()
            .map(|parent| {
                json!({"sha": parent, "url": format!("{own}/git/commits/{parent}"),
                    "html_url": format!("{url}/{}/commit/{parent}", self.name)})
            })
            .collect();
        json!({
            "sha": commit.id, "node_id": format!("C_{}", commit.id), "url": format!("{own}/git/commits/{}", commit.id),
            "html_url": format!("{url}/{}/commit/{}", self.name, commit.id), "message": commit.message,
            "author": person(&commit.author.name, &commit.author.email),
            "committer": person(&commit.committer.name, &commit.committer.email),
            "tree": {"sha": commit.tree, "url": format!("{own}/git/trees/{}", commit.tree)}, "parents": parents,
            "verification": self.verification_json(&commit.id),
        })
    }

    /// Renders the judgment about the signature of a commit.
    pub(in crate::github) fn verification_json(&self, sha: &str) -> Value {
        let judged = self.judge_signature(sha);
        let (signature, payload) = judged.signed.clone().unzip();
        json!({
            "verified": judged.is_verified(), "reason": judged.reason, "signature": signature, "payload": payload,
            "verified_at": null,
        })
    }
}

fn read_signature(repository: &Path, sha: &str) -> anyhow::Result<(String, String)> {
    let git = Repository::open_bare(repository)?;
    let (signature, content) = git.extract_signature(&Oid::from_str(sha)?, None)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&signature), text(&content)))
}

impl FakeGitHub {
    /// Registers an SSH key, in OpenSSH's format, whose signatures of commits count as verified.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn add_signing_key(&self, repository: &str, public_key: &str) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        world
            .repo(repository)?
            .signing_keys
            .push(public_key.trim().to_owned());
        Ok(())
    }

    /// Requires signatures on a branch by classic protection.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn require_signatures(&self, repository: &str, branch: &str) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        world.repo(repository)?.signed_branches.insert(branch.to_owned());
        Ok(())
    }

    /// Leaves the commits that Apps create over REST unsigned, like a server without a key for them.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn stop_signing(&self, repository: &str) -> anyhow::Result<()> {
        self.hub.world().repo(repository)?.has_unsigned_api_commits = true;
        Ok(())
    }

    /// Returns the tree and the parents of a commit.
    ///
    /// # Errors
    /// When the repository or the commit does not exist.
    pub fn tree_and_parents(&self, repository: &str, sha: &str) -> anyhow::Result<(String, Vec<String>)> {
        let path = self.hub.world().repo(repository)?.path.clone();
        let commit = super::history::read_commit(&path, sha)?;
        Ok((commit.tree, commit.parents))
    }

    /// Returns the code of GitHub's judgment about the signature of a commit, such as `valid` or `unsigned`.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn signature_of(&self, repository: &str, sha: &str) -> anyhow::Result<&'static str> {
        Ok(self.hub.world().repo(repository)?.judge_signature(sha).reason)
    }
}
