//! Performs the steps of a plan.

use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use domain::{CommitId, PullRequestRef, TicketKey};
use pullrequest::{
    CallProblem, ExistingPullRequest, PlannedWrite, ProblemKind, ProtocolAnswer, ValidatedRequest, WritePlan,
};

use super::{
    PullRequestOpener, RequestPreconditions, build_problem,
    call_effects::{
        CalledLink, CommentCalledLink, LinkCalledPullRequest, MarkCalledReady, MoveCalledIssue,
        OpenCalledPullRequest, PushFolderBranch,
    },
    jira_problem,
    preconditions::not_created,
    tries::{GaveUp, retry_call},
};
use crate::{
    effect_cycle::{AttemptSearch, EffectSteps, perform_effect},
    effect_row::MemoryEffectRow,
    mirror::RemotePush,
};

impl PullRequestOpener {
    /// Performs the plan. Without a pull request, no later step runs. Failures at Jira are reported and undo nothing.
    pub(super) async fn write(
        &self,
        request: &ValidatedRequest,
        preconditions: &RequestPreconditions,
        plan: &WritePlan,
    ) -> ProtocolAnswer {
        let open = match self.pull_request(preconditions, plan).await {
            Ok(open) => open,
            Err(problem) => return ProtocolAnswer::failed(vec![problem]),
        };
        let mut answer = ProtocolAnswer::opened(open.number, &open.url, &preconditions.seen.issue);
        answer.marked_ready = request.mark_ready && !open.draft;
        answer.jira_status.transitioned = plan.is_in_review;
        for step in &plan.steps {
            self.follow(preconditions, &open, step, &mut answer).await;
        }
        for problem in &plan.problems {
            answer.without_jira(problem.clone());
        }
        answer
    }

    /// Performs the steps up to the pull request.
    async fn pull_request(
        &self,
        preconditions: &RequestPreconditions,
        plan: &WritePlan,
    ) -> Result<ExistingPullRequest, CallProblem> {
        let mut open = plan.open.clone();
        for step in &plan.steps {
            match step {
                PlannedWrite::PushBranch { commit, expected, .. } => {
                    self.push(preconditions, commit, expected.as_ref()).await?;
                }
                PlannedWrite::OpenPullRequest { draft, .. } => {
                    open = Some(self.open(preconditions, *draft).await?)
                }
                PlannedWrite::MarkReady | PlannedWrite::LinkIssue { .. } | PlannedWrite::MoveIssue { .. } => {
                }
            }
        }
        open.ok_or_else(|| CallProblem::new(ProblemKind::UnknownError, "The plan opens no pull request"))
    }

    /// Performs one of the steps after the pull request.
    async fn follow(
        &self,
        preconditions: &RequestPreconditions,
        open: &ExistingPullRequest,
        step: &PlannedWrite,
        answer: &mut ProtocolAnswer,
    ) {
        match step {
            // These steps are done: the steps after them need the number of the pull request.
            PlannedWrite::PushBranch { .. } | PlannedWrite::OpenPullRequest { .. } => {}
            PlannedWrite::MarkReady => match self.mark_ready(preconditions, open).await {
                Ok(()) => answer.marked_ready = true,
                Err(problem) => answer.errors.push(problem),
            },
            PlannedWrite::LinkIssue { jira_key } => match self.link(preconditions, open, jira_key).await {
                Ok(()) => answer.jira_status.linked = true,
                Err(problem) => answer.without_jira(problem),
            },
            PlannedWrite::MoveIssue {
                jira_key,
                leads_to,
                fields,
                id,
                ..
            } => match self
                .move_issue(preconditions, jira_key, id, leads_to, fields)
                .await
            {
                Ok(status) => {
                    answer.jira_status.transitioned = true;
                    answer.jira_status.current_state = Some(status);
                }
                Err(problem) => answer.without_jira(problem),
            },
        }
    }

    /// Pushes the branch of the folder. Never replaces commits of others.
    async fn push(
        &self,
        preconditions: &RequestPreconditions,
        commit: &CommitId,
        expected: Option<&CommitId>,
    ) -> Result<(), CallProblem> {
        let branch = &preconditions.draft.branch;
        let Some(view) = &preconditions.view else {
            return Err(
                CallProblem::new(ProblemKind::UnknownError, "There is no folder to push from")
                    .about_branch(branch),
            );
        };
        let effect = PushFolderBranch {
            github: &self.github,
            view,
            push: RemotePush {
                repository: &preconditions.draft.repository,
                branch,
                head: commit,
                expected,
            },
        };
        let pushed = perform_with_retries(&effect, ProblemKind::GitPushFailed).await;
        pushed.map_err(|gave_up| {
            let message = format!("Failed to push branch '{branch}'");
            build_problem(ProblemKind::GitPushFailed, message, &gave_up).about_branch(branch)
        })
    }

    async fn open(
        &self,
        preconditions: &RequestPreconditions,
        is_draft: bool,
    ) -> Result<ExistingPullRequest, CallProblem> {
        let effect = OpenCalledPullRequest {
            github: &self.github,
            preconditions,
            is_draft,
        };
        let opened = perform_with_retries(&effect, ProblemKind::PrCreationFailed).await;
        opened.map_err(|gave_up| not_created(&preconditions.draft, &gave_up))
    }

    async fn mark_ready(
        &self,
        preconditions: &RequestPreconditions,
        open: &ExistingPullRequest,
    ) -> Result<(), CallProblem> {
        let effect = MarkCalledReady {
            github: &self.github,
            repository: &preconditions.draft.repository,
            number: open.number,
        };
        let marked = perform_with_retries(&effect, ProblemKind::MarkReadyFailed).await;
        marked.map_err(|gave_up| {
            let message = format!("Could not mark pull request {} ready for review", open.number);
            build_problem(ProblemKind::MarkReadyFailed, message, &gave_up)
        })
    }

    /// Adds a link to the issue, or a comment if Jira refuses the link.
    async fn link(
        &self,
        preconditions: &RequestPreconditions,
        open: &ExistingPullRequest,
        key: &str,
    ) -> Result<(), CallProblem> {
        let (jira, issue) = self.issue_to_write(preconditions, key)?;
        let made = PullRequestRef {
            repository: preconditions.draft.repository.clone(),
            number: open.number,
            url: open.url.clone(),
            branch: preconditions.draft.branch.clone(),
        };
        let link = LinkCalledPullRequest(CalledLink {
            jira,
            issue,
            made: &made,
        });
        let linked = perform_with_retries(&link, ProblemKind::JiraLinkFailed).await;
        let Err(not_linked) = linked else {
            return Ok(());
        };
        let comment = CommentCalledLink(link.0);
        let commented = perform_with_retries(&comment, ProblemKind::JiraLinkFailed).await;
        commented.map_err(|_| {
            let message = format!("Could not link the pull request on {key}");
            jira_problem(ProblemKind::JiraLinkFailed, issue, message, &not_linked)
        })
    }

    /// Performs a transition and returns the new status.
    async fn move_issue(
        &self,
        preconditions: &RequestPreconditions,
        key: &str,
        transition: &str,
        leads_to: &str,
        fields: &BTreeMap<String, String>,
    ) -> Result<String, CallProblem> {
        let (jira, issue) = self.issue_to_write(preconditions, key)?;
        let effect = MoveCalledIssue {
            jira,
            issue,
            transition,
            leads_to,
            fields,
            is_sent: AtomicBool::new(false),
        };
        let moved = perform_with_retries(&effect, ProblemKind::JiraTransitionFailed).await;
        moved.map_err(|gave_up| {
            let message = format!("Could not transition {key} to Code Review state");
            jira_problem(ProblemKind::JiraTransitionFailed, issue, message, &gave_up)
        })
    }

    /// Returns the issue that the plan was made for, with the client of its Jira.
    fn issue_to_write<'a>(
        &'a self,
        preconditions: &'a RequestPreconditions,
        key: &str,
    ) -> Result<(&'a jira::JiraWriter, &'a TicketKey), CallProblem> {
        let pair = self.jira.as_ref().zip(preconditions.issue.as_ref());
        pair.ok_or_else(|| {
            CallProblem::new(ProblemKind::UnknownError, "The issue was not read").about_issue(key)
        })
    }
}

/// Performs an effect with the retries of its kind of problem. Without a run, its row is in memory.
async fn perform_with_retries<E: EffectSteps>(effect: &E, kind: ProblemKind) -> Result<E::Receipt, GaveUp> {
    let row = MemoryEffectRow::<E::Receipt>::default();
    let tries = retry_call(kind.retries(), || {
        perform_effect(effect, &row, &AttemptSearch::Once)
    });
    tries.await.map(|settled| settled.receipts)
}

#[cfg(test)]
mod tests {
    use pullrequest::{BranchHeads, BranchLocation, CallStatus, ObservedIssue, ObservedState};
    use secrecy::SecretString;

    use super::*;
    use crate::{cleared_text::ClearedText, message::PullRequestDraft};

    #[tokio::test]
    async fn plan_without_pull_request_is_unknown_error() {
        bootstrap::install_tls_provider();
        let account = github::Settings {
            token: Some(SecretString::from("secret")),
            ..github::Settings::default()
        };
        let opener = PullRequestOpener::with(github::GitHubWriter::new(&account).unwrap(), None, &[]);
        let repository: domain::RepositoryName = "acme/shop".parse().unwrap();
        let request = ValidatedRequest {
            branch: "feature/login".to_owned(),
            base_branch: "main".to_owned(),
            title: "Add a login".to_owned(),
            description: "A login form".to_owned(),
            jira_key: None,
            mark_ready: false,
            draft: true,
            transition: None,
            transition_fields: BTreeMap::new(),
            dry_run: false,
            place: BranchLocation::GitHub(repository.clone()),
        };
        let preconditions = RequestPreconditions {
            seen: ObservedState {
                heads: BranchHeads::default(),
                open: None,
                issue: ObservedIssue::NotAsked,
            },
            draft: PullRequestDraft {
                repository,
                branch: request.branch.clone(),
                base_branch: request.base_branch.clone(),
                title: request.title.clone(),
                body: request.description.clone(),
                description: None,
            },
            title: ClearedText::default(),
            body: ClearedText::default(),
            issue: None,
            view: None,
        };
        let push = PlannedWrite::PushBranch {
            branch: request.branch.clone(),
            commit: "a".repeat(40).parse().unwrap(),
            expected: None,
        };
        for steps in [Vec::new(), vec![push]] {
            let plan = WritePlan {
                open: None,
                steps,
                problems: Vec::new(),
                is_in_review: false,
            };
            let answer = opener.write(&request, &preconditions, &plan).await;
            assert_eq!(answer.status, CallStatus::Failed);
            assert_eq!(answer.errors[0].kind, ProblemKind::UnknownError, "{answer:?}");
        }
    }
}
