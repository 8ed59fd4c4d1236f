//! Brings the head branch of a pull request up to date with its base.

use async_trait::async_trait;
use domain::{
    BaseCondition, BranchRecord, CommitAuthor, CommitId, OutboundRefusal, OutdatedBase, RepositoryRules,
    UpdateWay, cause::format_error_chain,
};
use git::{BareRepository, CommitInfo};
use github::{BranchUpdate, PullRequest, PullRequestState};
use queue::TableRevision;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    mirror::{WantedHead, run_blocking},
};

/// Record of a branch at the revision that was read.
type ReadRecord = (BranchRecord, TableRevision);

/// Brings a pull request of ours up to date with its base, unless its head moved.
#[derive(Debug)]
pub(crate) struct UpdateBase(pub(crate) OutdatedBase);

#[async_trait]
impl OutboundEffect for UpdateBase {
    type Output = ();

    fn name(&self) -> &'static str {
        "update_base"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.0.pull_request)
    }

    /// Done if the pull request is closed or has another head: that of an earlier attempt, or of a person.
    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let known = outside
            .own_pull_request(&asked.report.ticket, &self.0.pull_request)
            .await?;
        let now = outside.read_pull_request(&self.0.pull_request).await?;
        if now.state == PullRequestState::Open && now.head == self.0.head {
            return Ok(None);
        }
        record_moved_head(outside, &self.0, known, &now).await?;
        Ok(Some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let ours = &self.0.pull_request;
        let known = outside.own_pull_request(&asked.report.ticket, ours).await?;
        let now = outside.read_pull_request(ours).await?;
        if now.state == PullRequestState::Closed || now.head != self.0.head {
            return record_moved_head(outside, &self.0, known, &now).await;
        }
        let way = choose_way(outside, &self.0, asked.rules).await?;
        let pull_requests = outside.github.pull_requests();
        let updated = pull_requests.update_branch(&ours.repository, &now.node_id, &self.0.head, way);
        match failpoint::around("reporter.pull_request.update_base", updated).await {
            Ok(head) => {
                tracing::info!(repository = %ours.repository, number = ours.number, %head, "base updated");
                keep_head(outside, known, head).await
            }
            Err(refused @ github::Error::Rejected { .. }) => {
                explain_refusal(outside, &self.0, known, refused).await
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Records the head of an open pull request as ours if it is that of an earlier attempt, whose answer was lost. Any other
/// head is a push of a person.
async fn record_moved_head(
    outside: &OutboundClients,
    outdated: &OutdatedBase,
    known: ReadRecord,
    now: &PullRequest,
) -> Result<(), EffectError> {
    let is_settled = now.state == PullRequestState::Closed || known.0.head == now.head;
    if is_settled || now.head == outdated.head || !is_updated_head(outside, outdated, &now.head).await? {
        return Ok(());
    }
    tracing::info!(repository = %outdated.pull_request.repository, number = now.number, head = %now.head, "base updated earlier");
    keep_head(outside, known, now.head.clone()).await
}

/// Returns true for the head that GitHub makes from the expected one when it updates a branch.
async fn is_updated_head(
    outside: &OutboundClients,
    outdated: &OutdatedBase,
    head: &CommitId,
) -> Result<bool, EffectError> {
    let repository = &outdated.pull_request.repository;
    let origin = outside.github.commits().origin(repository, head).await?;
    let Some(origin) = origin else {
        return Ok(false);
    };
    match origin.parents.as_slice() {
        [first, _] => Ok(*first == outdated.head && origin.is_made_by_server),
        [_] => is_rebased_head(outside, outdated, head).await,
        _ => Ok(false),
    }
}

/// Returns true for the last commit of GitHub's rebase: copies of the commits up to the expected head on a commit of the
/// base branch, which GitHub or our account committed.
async fn is_rebased_head(
    outside: &OutboundClients,
    outdated: &OutdatedBase,
    head: &CommitId,
) -> Result<bool, EffectError> {
    let repository = &outdated.pull_request.repository;
    let heads = [WantedHead::commit(head), WantedHead::commit(&outdated.head)];
    let mirror = outside.mirrors.with_heads(repository, &heads).await?;
    let (old, new, base) = (outdated.head.clone(), head.clone(), outdated.base_branch.clone());
    let rebased = run_blocking(move || {
        let git = BareRepository::open(&mirror)?;
        // Another replica may have pushed the expected head, and GitHub does not list it any more.
        let is_present = git.contains(&old) && git.contains(&new);
        let Some(tip) = git.branch_head(&base)?.filter(|_| is_present) else {
            return Ok::<_, git::Error>(None);
        };
        git.write_to_memory()?;
        git.find_rebased_commits(&old, &new, &tip)
    });
    let Some(rebased) = rebased.await? else {
        return Ok(false);
    };
    let us = outside.github.login(repository.instance()).await?;
    Ok(rebased.iter().all(|commit| is_committed_by(commit, &us)))
}

/// Returns true if GitHub committed for `login`. The committer is GitHub itself, or the account by its
/// login or noreply address.
fn is_committed_by(commit: &CommitInfo, login: &str) -> bool {
    let Some((name, address)) = commit
        .committer
        .strip_suffix('>')
        .and_then(|who| who.rsplit_once('<'))
    else {
        return false;
    };
    let name = name.trim_end();
    let (user, host) = address.split_once('@').unwrap_or_default();
    let is_server = name.starts_with("GitHub") && user == "noreply";
    let is_address = host.starts_with("users.noreply.")
        && user
            .rsplit('+')
            .next()
            .is_some_and(|user| user.eq_ignore_ascii_case(login));
    is_server || is_address || name.eq_ignore_ascii_case(login)
}

/// Chooses the way of the update. Where the head branch accepts no merge commit, only a rebase is left.
async fn choose_way(
    outside: &OutboundClients,
    outdated: &OutdatedBase,
    rules: Option<&RepositoryRules>,
) -> Result<BranchUpdate, EffectError> {
    let ours = &outdated.pull_request;
    let own_rules = outside
        .github
        .branch_requirements(&ours.repository, &ours.branch)
        .await?;
    let is_linear = own_rules.includes(BaseCondition::LinearHistory);
    let wants_rebase = match outdated.way {
        UpdateWay::Merge => is_linear,
        UpdateWay::Rebase => true,
    };
    if wants_rebase
        && !own_rules.includes(BaseCondition::SignedCommits)
        && can_rebase(outside, outdated, rules).await?
    {
        return Ok(BranchUpdate::Rebase);
    }
    if is_linear {
        Err(EffectError::Refused(OutboundRefusal::LinearHistory {
            repository: ours.repository.clone(),
            branch: ours.branch.clone(),
        }))
    } else {
        Ok(BranchUpdate::Merge)
    }
}

/// Returns true if a rebase loses nothing. It replaces commits by unsigned ones of GitHub, so it needs a branch with
/// commits of ours alone, and a base that requires no signatures.
async fn can_rebase(
    outside: &OutboundClients,
    outdated: &OutdatedBase,
    rules: Option<&RepositoryRules>,
) -> Result<bool, EffectError> {
    let ours = &outdated.pull_request;
    let base_rules = outside
        .github
        .branch_requirements(&ours.repository, &outdated.base_branch)
        .await?;
    if base_rules.includes(BaseCondition::SignedCommits) {
        return Ok(false);
    }
    let authors = outside
        .github
        .pull_requests()
        .commit_authors(&ours.repository, ours.number)
        .await?;
    let mut known = vec![CommitAuthor::journeyman(), CommitAuthor::of_earlier_releases()];
    known.extend(rules.map(|rules| rules.commits.author()));
    let is_ours = |address: &String| known.iter().any(|author| author.address() == address);
    Ok(!authors.is_empty() && authors.iter().all(is_ours))
}

/// Records the new head as ours, so that ingest does not take it for a push of a person.
async fn keep_head(
    outside: &OutboundClients,
    (record, revision): ReadRecord,
    head: CommitId,
) -> Result<(), EffectError> {
    let updated = BranchRecord { head, ..record };
    outside.branches.put(&updated, Some(revision)).await?;
    Ok(())
}

/// A refusal after a push, a close or an update by a person needs nothing more, and one after our own earlier attempt its
/// record. A queued branch waits.
async fn explain_refusal(
    outside: &OutboundClients,
    outdated: &OutdatedBase,
    known: ReadRecord,
    refused: github::Error,
) -> Result<(), EffectError> {
    let now = outside.read_pull_request(&outdated.pull_request).await?;
    if now.state == PullRequestState::Closed || now.head != outdated.head {
        return record_moved_head(outside, outdated, known, &now).await;
    }
    if refused.is_about_current_branch() {
        return Ok(());
    }
    if refused.is_about_merge_queue() {
        return Err(EffectError::Queued(format_error_chain(&refused)));
    }
    Err(refused.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committer_is_server_or_account() {
        let commit = |committer: &str| CommitInfo {
            id: "a".repeat(40).parse().unwrap(),
            message: String::new(),
            author: String::new(),
            committer: committer.to_owned(),
            other_headers: Vec::new(),
            parents: Vec::new(),
        };
        for (committer, is_ours) in [
            ("GitHub <noreply@github.com>", true),
            ("GitHub Enterprise <noreply@github.acme.example>", true),
            ("agent[bot] <7+agent[bot]@users.noreply.github.com>", true),
            ("Agent of ACME <7+Agent[bot]@users.noreply.github.com>", true),
            ("agent[bot] <agent@acme.example>", true),
            ("GitHub <rita@acme.example>", false),
            ("Rita <7+rita@users.noreply.github.com>", false),
            ("Rita <agent[bot]@acme.example>", false),
            ("", false),
        ] {
            assert_eq!(
                is_committed_by(&commit(committer), "agent[bot]"),
                is_ours,
                "{committer}"
            );
        }
    }
}
