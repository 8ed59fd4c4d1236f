//! Brings the head branch of a pull request up to date with its base.

use async_trait::async_trait;
use domain::{
    BaseCondition, BranchRecord, CommitAuthor, CommitId, OutboundRefusal, OutdatedBase, PullRequestRef,
    RepositoryRules, UpdateWay, cause::format_error_chain,
};
use github::{BranchUpdate, PullRequest, PullRequestState};
use queue::TableRevision;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::effect_error::{EffectError, QUEUE_WAIT};

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
        let (record, revision) = find_own_record(outside, asked, &self.0.pull_request).await?;
        let now = read_pull_request(outside, &self.0.pull_request).await?;
        if now.state == PullRequestState::Closed {
            return Ok(Some(()));
        }
        if now.head == self.0.head {
            return Ok(None);
        }
        // The answer to an earlier attempt may be lost, and its head unrecorded.
        if record.head != now.head && is_updated_head(outside, &self.0, &now.head).await? {
            keep_head(outside, record, revision, now.head).await?;
        }
        Ok(Some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let ours = &self.0.pull_request;
        let (record, revision) = find_own_record(outside, asked, ours).await?;
        let now = read_pull_request(outside, ours).await?;
        if now.state == PullRequestState::Closed || now.head != self.0.head {
            return Ok(());
        }
        let way = choose_way(outside, &self.0, asked.rules).await?;
        let pull_requests = outside.github.pull_requests();
        let updated = pull_requests.update_branch(&ours.repository, &now.node_id, &self.0.head, way);
        match failpoint::around("reporter.pull_request.update_base", updated).await {
            Ok(head) => {
                tracing::info!(repository = %ours.repository, number = ours.number, %head, "base updated");
                keep_head(outside, record, revision, head).await
            }
            Err(refused @ github::Error::Rejected { .. }) => {
                explain_refusal(outside, ours, &self.0.head, refused).await
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the record of the branch, which has to name the pull request as one of the ticket.
async fn find_own_record(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    ours: &PullRequestRef,
) -> Result<(BranchRecord, TableRevision), EffectError> {
    let known = outside
        .own_branch(&asked.report.ticket, &ours.repository, &ours.branch)
        .await?;
    let is_it = |record: &BranchRecord| {
        let named = record.pull_request.as_ref();
        named.is_some_and(|named| named.is_same(ours))
    };
    known
        .filter(|(record, _)| is_it(record))
        .ok_or(EffectError::Refused(OutboundRefusal::UnknownPullRequest {
            number: ours.number,
        }))
}

async fn read_pull_request(
    outside: &OutboundClients,
    ours: &PullRequestRef,
) -> Result<PullRequest, EffectError> {
    let pull_requests = outside.github.pull_requests();
    Ok(pull_requests.pull_request(&ours.repository, ours.number).await?)
}

/// Returns true for the merge that GitHub makes on top of the expected head when it updates a branch.
async fn is_updated_head(
    outside: &OutboundClients,
    outdated: &OutdatedBase,
    head: &CommitId,
) -> Result<bool, EffectError> {
    let repository = &outdated.pull_request.repository;
    let origin = outside.github.commits().origin(repository, head).await?;
    Ok(origin.is_some_and(|origin| {
        let is_merge = origin.parents.len() == 2 && origin.parents.first() == Some(&outdated.head);
        is_merge && origin.is_made_by_server
    }))
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
        .branch_rules(&ours.repository, &ours.branch)
        .await?;
    let is_linear = own_rules.includes(BaseCondition::LinearHistory);
    let wants_rebase = match outdated.way {
        UpdateWay::Merge => is_linear,
        UpdateWay::Rebase => true,
    };
    if wants_rebase && !own_rules.requires_signatures() && can_rebase(outside, outdated, rules).await? {
        return Ok(BranchUpdate::Rebase);
    }
    match is_linear {
        true => Err(EffectError::Refused(OutboundRefusal::LinearHistory {
            repository: ours.repository.clone(),
            branch: ours.branch.clone(),
        })),
        false => Ok(BranchUpdate::Merge),
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
        .branch_rules(&ours.repository, &outdated.base_branch)
        .await?;
    if base_rules.requires_signatures() {
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
    record: BranchRecord,
    revision: TableRevision,
    head: CommitId,
) -> Result<(), EffectError> {
    let updated = BranchRecord { head, ..record };
    outside.branches.put(&updated, Some(revision)).await?;
    Ok(())
}

/// A refusal after a push, a close or an update by a person needs nothing more. A queued branch waits.
async fn explain_refusal(
    outside: &OutboundClients,
    ours: &PullRequestRef,
    head: &CommitId,
    refused: github::Error,
) -> Result<(), EffectError> {
    let now = read_pull_request(outside, ours).await?;
    if now.state == PullRequestState::Closed || now.head != *head || refused.is_about_current_branch() {
        return Ok(());
    }
    if refused.is_about_merge_queue() {
        return Err(EffectError::HeldBack {
            detail: format_error_chain(&refused),
            wait: QUEUE_WAIT,
        });
    }
    Err(refused.into())
}
