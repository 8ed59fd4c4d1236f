//! Inspects a change and pushes its branch.

use std::{path::Path, pin::pin, sync::Arc};

use async_trait::async_trait;
use domain::{
    ApprovalRule, BranchPush as Push, BranchRecord, CommitAuthor, CommitId, DecisionVerdict as Answer,
    MetadataPattern, OutboundAction, OutboundRefusal, PatternSubject, PolicyViolation, RepositoryRules,
    RunId, SignedCommit, TriggerReason, cause::format_error_chain, find_unmet_pattern,
};
use queue::TableRevision;

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    inspect::{DiffDisplay, InspectionTask, InspectionVerdict, RenderedDiff},
    message,
    mirror::{RemotePush, WantedHead, explain_stale_push},
    policy,
    push_rules::PushRules,
    receipt::{PushedBranch, PushedDiff, PushedHead},
    signing::{SignedPush, SigningWay},
};

// Signed commits in the record of a branch. A run makes far fewer.
const MAX_SIGNED: usize = 256;

/// Imports, checks and pushes a branch.
#[derive(Debug)]
pub(crate) struct PushBranch(pub(crate) Push);

#[async_trait]
impl OutboundEffect for PushBranch {
    type Output = PushedBranch;

    fn name(&self) -> &'static str {
        "push_branch"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Repository(&self.0.repository)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let head = find_pushed_head(outside, asked, &self.0).await?;
        Ok(head.map(|head| PushedBranch { head, diff: None }))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        check_then_push(outside, asked, &self.0).await
    }
}

/// Done if the remote branch is at the head, or at the signed commit of our record that stands for it.
async fn find_pushed_head(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    push: &Push,
) -> Result<Option<PushedHead>, EffectError> {
    let there = outside
        .mirrors
        .remote_head(&push.repository, &push.branch)
        .await?;
    let Some(there) = there else { return Ok(None) };
    if there == push.head {
        return Ok(Some(PushedHead(there)));
    }
    let known = outside.branches.get(&push.repository, &push.branch).await?;
    let is_signed = known.is_some_and(|(record, _)| {
        record.ticket == asked.report.ticket && record.signed_head(&push.head) == Some(&there)
    });
    if !is_signed {
        return Ok(None);
    }
    confirm_signature(outside, push, &there).await?;
    Ok(Some(PushedHead(there)))
}

/// Accepts a signed commit that GitHub verifies.
async fn confirm_signature(
    outside: &OutboundClients,
    push: &Push,
    head: &CommitId,
) -> Result<(), EffectError> {
    let commits = outside.github.commits();
    match commits.verification(&push.repository, head).await? {
        Some(judged) if !judged.verified => {
            tracing::error!(repository = %push.repository, %head, reason = judged.reason, "GitHub does not verify our signature");
            Err(EffectError::Refused(OutboundRefusal::UnverifiedSignature {
                commit: head.clone(),
                reason: judged.reason,
            }))
        }
        // GitHub may not show a new commit for a moment.
        Some(_) | None => Ok(()),
    }
}

/// Performs the push: all checks come before the record, and the record comes before the push.
async fn check_then_push(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    push: &Push,
) -> Result<PushedBranch, EffectError> {
    let rules = usable_rules(asked, push)?;
    if rules.agent.approval == ApprovalRule::BeforePush && !is_approved(outside, asked, &push.head).await? {
        return Err(EffectError::Refused(OutboundRefusal::NotApproved {
            head: push.head.clone(),
        }));
    }
    // The hold keeps the mirror on disk: the imported objects must exist until the push.
    let mirror = outside.mirrors.hold(&push.repository);
    let targets = [rules.target_branch(), rules.repo.default_branch.as_str()];
    let checking = async {
        is_ours_or_new(outside, asked, push).await?;
        refuse_merged_branch(outside, asked, push).await?;
        is_where_expected(outside, push).await
    };
    // The check and this work do not need each other, and each waits for GitHub or a process.
    let preparing = async {
        let (target, branch) = (rules.target_branch(), push.branch.as_str());
        let branch_rules = PushRules::read(&outside.github, &push.repository, target, branch).await?;
        let patterns = branch_rules.patterns();
        let inspecting = Box::pin(inspect_change(
            outside,
            asked,
            push,
            DiffDisplay::ForRecord,
            patterns,
        ));
        let choosing = outside
            .signer
            .choose_way(&outside.github, &push.repository, &branch_rules);
        let (inspected, way) = tokio::join!(inspecting, choosing);
        Ok::<_, EffectError>((inspected?, way))
    };
    let ((rendered, strayed), way) = Box::pin(run_during_check(checking, preparing)).await??;
    if !strayed.is_empty() && !is_approved(outside, asked, &push.head).await? {
        return Err(EffectError::Refused(OutboundRefusal::OutOfScope {
            files: strayed,
        }));
    }
    // Pages show the difference later, so the push does not wait for its storage.
    let storing = keep_diff(outside, push, rendered);
    let pushing = sign_then_push(outside, asked, push, (&mirror, targets.as_slice(), way));
    let (diff, signed) = tokio::join!(Box::pin(storing), Box::pin(pushing));
    finish_push(outside, push, signed?, diff).await
}

/// Signs the commits, records the push and moves the remote branch. `targets` are the branches whose commits are not
/// ours.
async fn sign_then_push(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    push: &Push,
    (mirror, targets, way): (&Arc<Path>, &[&str], Result<SigningWay, EffectError>),
) -> Result<SignedPush, EffectError> {
    let own = outside.own_branch(&asked.report.ticket, &push.repository, &push.branch);
    let known = own.await?.map(|(record, _)| record);
    let way = way?;
    let signing = outside
        .signer
        .sign_push((&outside.github, &way), mirror, push, targets, known.as_ref());
    let signed = Box::pin(signing).await?;
    let recorded = record_push(outside, asked, push, &signed).await?;
    if let Err(trouble) = Box::pin(move_remote(outside, push, &signed)).await {
        let there = outside.mirrors.remote_head(&push.repository, &push.branch).await;
        let trouble = match (there, trouble) {
            // An earlier try whose response was lost may have arrived. Then the lease is stale, and the branch is as
            // wanted.
            (Ok(Some(head)), _) if head == signed.head => return Ok(signed),
            (there, EffectError::Refused(OutboundRefusal::BranchMoved { branch, .. })) => {
                explain_stale_push(branch, push.expected.as_ref(), there)
            }
            (_, trouble) => trouble,
        };
        // After any other failure the push may have arrived or is retried, so the record stays.
        if matches!(trouble, EffectError::Refused(_)) {
            take_back(outside, push, recorded).await?;
        }
        return Err(trouble);
    }
    tracing::info!(repository = %push.repository, branch = %push.branch, head = %signed.head, "branch pushed");
    Ok(signed)
}

/// Runs work at the same time as a check. The failure of the check precedes every result of the work, and ends the
/// work early.
async fn run_during_check<T>(
    check: impl Future<Output = Result<(), EffectError>>,
    work: impl Future<Output = T>,
) -> Result<T, EffectError> {
    let (mut checking, mut working) = (pin!(check), pin!(work));
    tokio::select! {
        biased;
        checked = &mut checking => {
            checked?;
            Ok(working.await)
        }
        worked = &mut working => {
            checking.await?;
            Ok(worked)
        }
    }
}

/// Moves the remote branch to the commits of the push.
async fn move_remote(outside: &OutboundClients, push: &Push, signed: &SignedPush) -> Result<(), EffectError> {
    if signed.is_at_github {
        let moved = RemotePush {
            repository: &push.repository,
            branch: &push.branch,
            head: &signed.head,
            expected: push.expected.as_ref(),
        };
        return outside.mirrors.move_branch(&moved).await;
    }
    let push = Push {
        head: signed.head.clone(),
        ..push.clone()
    };
    outside.mirrors.push(&push).await.map(drop)
}

/// Returns the pushed branch, once GitHub verifies its signatures.
async fn finish_push(
    outside: &OutboundClients,
    push: &Push,
    signed: SignedPush,
    diff: Option<PushedDiff>,
) -> Result<PushedBranch, EffectError> {
    if !signed.signed.is_empty() {
        confirm_signature(outside, push, &signed.head).await?;
    }
    let head = PushedHead(signed.head);
    Ok(PushedBranch { head, diff })
}

/// Stores the difference for pages. The push does not depend on it.
async fn keep_diff(
    outside: &OutboundClients,
    push: &Push,
    rendered: Option<RenderedDiff>,
) -> Option<PushedDiff> {
    match outside.objects.put(rendered?.text.into()).await {
        Ok(object) => Some(PushedDiff(object)),
        Err(error) => {
            let problem = format_error_chain(&error);
            tracing::warn!(repository = %push.repository, head = %push.head, problem, "difference of a push is not stored");
            None
        }
    }
}

/// Returns the repository's rules if they cover this ticket. A planner names both, so they are compared here.
fn usable_rules<'a>(asked: &EffectContext<'a>, push: &Push) -> Result<&'a RepositoryRules, EffectError> {
    let no_rules = || {
        EffectError::Refused(OutboundRefusal::NoRules {
            repository: push.repository.clone(),
        })
    };
    let rules = asked.rules.ok_or_else(no_rules)?;
    if rules.cover(&asked.report.ticket) || rules.cover(asked.present) {
        Ok(rules)
    } else {
        Err(EffectError::Refused(OutboundRefusal::ForeignProject {
            ticket: asked.report.ticket.clone(),
            repository: push.repository.clone(),
        }))
    }
}

/// Returns true if a person approved this commit in this run.
///
/// Only decisions that ingest recorded count. A decision about a plan does not count, even if the planner gave the
/// plan the commit's id.
async fn is_approved(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    head: &CommitId,
) -> Result<bool, EffectError> {
    let Some(run) = asked.report.run.as_ref() else {
        return Ok(false);
    };
    let ticket = &asked.report.ticket;
    let triggers = outside.triggers.read_each_after(ticket, 0).await?;
    let mut known = triggers.iter().filter_map(|(_, trigger)| trigger.as_ref().ok());
    if !known.any(|trigger| approves_commit(&trigger.reason, run, head)) {
        return Ok(false);
    }
    let reports = outside.reports.read_each_after(ticket, 0).await?;
    let mut known = reports.iter().filter_map(|(_, report)| report.as_ref().ok());
    Ok(!known.any(|report| proposes_plan(&report.request, head)))
}

/// Returns true if the report proposes a plan with this id.
fn proposes_plan(request: &OutboundAction, id: &CommitId) -> bool {
    matches!(request, OutboundAction::PlanProposed(proposed) if proposed.id == *id)
}

fn approves_commit(reason: &TriggerReason, run: &RunId, head: &CommitId) -> bool {
    matches!(reason, TriggerReason::Decided(decision)
        if decision.verdict == Answer::Approve && decision.run == *run && decision.head == *head)
}

/// Accepts a branch that does not exist on the remote, or that our record assigns to this ticket.
async fn is_ours_or_new(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    push: &Push,
) -> Result<(), EffectError> {
    if outside
        .own_branch(&asked.report.ticket, &push.repository, &push.branch)
        .await?
        .is_some()
    {
        return Ok(());
    }
    let there = outside
        .mirrors
        .remote_head(&push.repository, &push.branch)
        .await?;
    if push.expected.is_none() && there.is_none() {
        Ok(())
    } else {
        Err(EffectError::Refused(OutboundRefusal::ForeignBranch {
            branch: push.branch.clone(),
        }))
    }
}

/// Refuses a push to the branch of a merged pull request: no merge would take its commits. A push that waits for the merge
/// queue usually meets this end.
async fn refuse_merged_branch(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    push: &Push,
) -> Result<(), EffectError> {
    if push.expected.is_none() || push.repository.local_folder().is_some() {
        return Ok(());
    }
    let own = outside.own_branch(&asked.report.ticket, &push.repository, &push.branch);
    let Some(ours) = own.await?.and_then(|(record, _)| record.pull_request) else {
        return Ok(());
    };
    let now = outside.read_pull_request(&ours).await?;
    // The record of a branch that was created again names the earlier pull request until the next one is open.
    if now.merged && push.expected.as_ref() == Some(&now.head) {
        return Err(EffectError::Refused(OutboundRefusal::PullRequestOver {
            number: ours.number,
        }));
    }
    Ok(())
}

/// Reports a concurrent push before the inspection, because the push may have removed the change's base.
async fn is_where_expected(outside: &OutboundClients, push: &Push) -> Result<(), EffectError> {
    if push.expected.is_none() {
        return Ok(());
    }
    let there = outside
        .mirrors
        .remote_head(&push.repository, &push.branch)
        .await?;
    if there == push.expected {
        return Ok(());
    }
    Err(EffectError::Refused(OutboundRefusal::BranchMoved {
        branch: push.branch.clone(),
        head: there,
    }))
}

/// Inspects the change. Returns its text, as far as `show` limits it, and the files out of its scope. `patterns` are those
/// of the server for commits and the name of the branch.
///
/// # Errors
/// The reason why the change must not be pushed.
pub(super) async fn inspect_change(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    push: &Push,
    show: DiffDisplay,
    patterns: Vec<MetadataPattern>,
) -> Result<(Option<RenderedDiff>, Vec<domain::OutOfScopeFile>), EffectError> {
    let rules = usable_rules(asked, push)?;
    let ticket = &asked.report.ticket;
    policy::check_branch(&push.branch, ticket, rules)
        .map_err(|violation| EffectError::Refused(violation.into()))?;
    // A branch that exists keeps its name.
    let unmet = match push.expected {
        None => find_unmet_pattern(&patterns, PatternSubject::BranchName, &push.branch),
        Some(_) => None,
    };
    if let Some(pattern) = unmet {
        let (requires, commit) = (pattern.clone(), String::new());
        return Err(EffectError::Refused(
            PolicyViolation::Pattern { requires, commit }.into(),
        ));
    }
    // The size of the reference is compared before the pack is read.
    if push.pack.size_bytes > outside.limits.max_pack_bytes {
        let (size_bytes, limit_bytes) = (push.pack.size_bytes, outside.limits.max_pack_bytes);
        let violation = PolicyViolation::PackTooLarge {
            size_bytes,
            limit_bytes,
        };
        return Err(EffectError::Refused(violation.into()));
    }
    let mirror = outside
        .mirrors
        .with_heads(&push.repository, &list_heads(push))
        .await?;
    let task = InspectionTask {
        push: push.clone(),
        ticket: ticket.clone(),
        branches: vec![
            rules.repo.default_branch.clone(),
            rules.target_branch().to_owned(),
            push.branch.clone(),
        ],
        // Branches of an earlier setting or release keep their author.
        authors: vec![
            rules.commits.author(),
            CommitAuthor::journeyman(),
            CommitAuthor::of_earlier_releases(),
        ],
        limits: outside.limits.clone(),
        modules: rules.modules.clone(),
        patterns,
        show,
    };
    // The turn comes before the pack is read, since packs of waiting tickets would fill the memory.
    let turn = outside.inspector.turn().await?;
    let pack = outside.objects.get(&push.pack).await?;
    let inspection = outside.inspector.inspect(&turn, &mirror, &task, pack);
    match failpoint::around("reporter.pack.import", inspection).await? {
        InspectionVerdict::Clean { shown, outside } => Ok((shown, outside)),
        InspectionVerdict::Breach { violations } => {
            Err(EffectError::Refused(OutboundRefusal::Policy { violations }))
        }
        InspectionVerdict::BadPack { detail } => {
            Err(EffectError::Refused(OutboundRefusal::BadPack { detail }))
        }
        InspectionVerdict::Trouble { detail } => Err(EffectError::of_inspection(detail)),
    }
}

/// Returns the heads of the remote that the push starts from.
fn list_heads(push: &Push) -> Vec<WantedHead> {
    let own = push.expected.clone().map(|expected| WantedHead {
        branch: Some(push.branch.clone()),
        commit: Some(expected),
    });
    [WantedHead::commit(&push.base)].into_iter().chain(own).collect()
}

/// Record of a push, with the record that it replaced.
struct PushRecord {
    record: BranchRecord,
    revision: TableRevision,
    previous: Option<BranchRecord>,
}

/// Records the branch. ingest finds the ticket of a pushed branch by this record, so it exists before the push.
async fn record_push(
    outside: &OutboundClients,
    asked: &EffectContext<'_>,
    push: &Push,
    signed: &SignedPush,
) -> Result<PushRecord, EffectError> {
    let run = asked
        .report
        .run
        .clone()
        .ok_or_else(|| EffectError::Failed(message::no_run()))?;
    let own = outside.own_branch(&asked.report.ticket, &push.repository, &push.branch);
    let (previous, last) = own.await?.unzip();
    let record = BranchRecord {
        repository: push.repository.clone(),
        branch: push.branch.clone(),
        ticket: asked.report.ticket.clone(),
        run,
        head: signed.head.clone(),
        // The put replaces the whole record, and a further push must not lose the pull request of the
        // branch.
        pull_request: previous.as_ref().and_then(|known| known.pull_request.clone()),
        signed: merge_signed(previous.as_ref(), signed),
    };
    let revision = outside.branches.put(&record, last).await?;
    Ok(PushRecord {
        record,
        revision,
        previous,
    })
}

/// Returns the newest signed commits of the branch, with those of earlier pushes.
fn merge_signed(previous: Option<&BranchRecord>, signed: &SignedPush) -> Vec<SignedCommit> {
    let earlier = previous.into_iter().flat_map(|record| &record.signed);
    let is_replaced = |known: &&SignedCommit| signed.signed.iter().any(|new| new.source == known.source);
    let mut merged: Vec<SignedCommit> = earlier.filter(|known| !is_replaced(known)).cloned().collect();
    merged.extend(signed.signed.iter().cloned());
    merged.split_off(merged.len().saturating_sub(MAX_SIGNED))
}

/// Withdraws the record of a refused push. Otherwise a branch that a person creates later under this name would count
/// as ours.
async fn take_back(outside: &OutboundClients, push: &Push, recorded: PushRecord) -> Result<(), EffectError> {
    let PushRecord {
        record,
        revision,
        previous,
    } = recorded;
    // A previous record of this head is from an earlier try of this push, unless it already names a pull request.
    let is_of_earlier_try = |known: &BranchRecord| known.head == record.head && known.pull_request.is_none();
    match previous.filter(|known| !is_of_earlier_try(known)) {
        Some(previous) => outside.branches.put(&previous, Some(revision)).await.map(drop)?,
        None if push.expected.is_none() => outside.branches.withdraw(&record, revision).await?,
        // The branch existed on the remote before this push, so the name stays ours.
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn refuse() -> EffectError {
        EffectError::Failed("refused".to_owned())
    }

    #[tokio::test]
    async fn failed_check_ends_endless_work() {
        let work = std::future::pending::<()>();
        let ended = run_during_check(async { Err(refuse()) }, work).await;
        assert!(matches!(ended, Err(EffectError::Failed(_))));
    }

    #[tokio::test]
    async fn late_check_precedes_finished_work() {
        for is_refused in [true, false] {
            let is_worked = Cell::new(false);
            let check = async {
                while !is_worked.get() {
                    tokio::task::yield_now().await;
                }
                if is_refused { Err(refuse()) } else { Ok(()) }
            };
            let work = async {
                is_worked.set(true);
                7
            };
            let ended = run_during_check(check, work).await;
            assert_eq!(ended.ok(), (!is_refused).then_some(7));
        }
    }
}
