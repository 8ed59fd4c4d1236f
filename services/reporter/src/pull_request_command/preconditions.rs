//! Reads the current state before writing. Writes nothing.

use std::{path::Path, sync::Arc};

use domain::{CommitId, RepositoryName, SecretPlace, TicketKey};
use git::{FolderRepository, FolderView};
use github::GitHubWriter;
use pullrequest::{
    BranchHeads, BranchLocation, CallProblem, ExistingPullRequest, ObservedIssue, ObservedState, ProblemKind,
    ValidatedRequest,
};

use super::{
    PullRequestOpener, build_problem, jira_problem,
    tries::{GaveUp, retry_call},
    writer_section,
};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    effects,
    message::{self, PullRequestDraft},
    mirror::run_blocking,
    policy::check_branch_name,
};

/// Texts of a pull request, and the state of folder, GitHub and Jira.
pub(super) struct RequestPreconditions {
    /// State of folder, GitHub and Jira.
    pub(super) seen: ObservedState,
    pub(super) draft: PullRequestDraft,
    pub(super) title: ClearedText,
    pub(super) body: ClearedText,
    /// Issue of the request; absent without one.
    pub(super) issue: Option<TicketKey>,
    /// View of the folder's objects from which the branch is pushed; absent without a folder.
    pub(super) view: Option<Arc<FolderView>>,
}

/// State of the working directory.
struct WorkingFolder {
    origin: Option<String>,
    head: Option<CommitId>,
    view: Arc<FolderView>,
}

fn read_folder(place: &Path, branch: &str) -> Result<WorkingFolder, git::Error> {
    let folder = FolderRepository::open(place)?;
    let view = Arc::new(folder.view()?);
    Ok(WorkingFolder {
        origin: folder.origin(),
        head: folder.branch_head(branch)?,
        view,
    })
}

/// Returns true if a push only adds commits. A remote commit that the folder does not contain is not an ancestor.
fn is_forward(view: &FolderView, local: &CommitId, remote: &CommitId) -> Result<bool, git::Error> {
    let view = view.open()?;
    Ok(view.contains(remote) && view.is_descendant(local, remote)?)
}

impl PullRequestOpener {
    /// Reads the state of the folder, GitHub and Jira. `issue` is the issue of the request's key on its Jira, absent
    /// if the key is of no issue.
    ///
    /// # Errors
    /// The reason why no pull request is possible.
    pub(super) async fn read_preconditions(
        &self,
        request: &ValidatedRequest,
        issue: Option<TicketKey>,
    ) -> Result<RequestPreconditions, CallProblem> {
        let title = ClearedText::by_the_model(message::asked_title(&request.title), SecretPlace::Title);
        let title = title.map_err(|trouble| invalid_field("title", &trouble))?;
        let body = ClearedText::by_the_model(message::asked_body(&request.description), SecretPlace::Body);
        let body = body.map_err(|trouble| invalid_field("description", &trouble))?;
        let (repository, local) = match &request.place {
            BranchLocation::Folder(folder) => {
                let (folder, branch) = (folder.clone(), request.branch.clone());
                let local = run_blocking(move || read_folder(&folder, &branch)).await;
                let local = local.map_err(|trouble| invalid_field("working_directory", &trouble))?;
                (self.repository(local.origin.as_deref())?, Some(local))
            }
            BranchLocation::GitHub(repository) => (repository.clone(), None),
        };
        let draft = PullRequestDraft {
            repository,
            branch: request.branch.clone(),
            base_branch: request.base_branch.clone(),
            title: title.as_str().to_owned(),
            body: body.as_str().to_owned(),
            description: None,
        };
        self.check_branch(&draft).await?;
        let seen = ObservedState {
            heads: self.heads(&draft, local.as_ref()).await?,
            open: self.open_one(&draft).await?,
            issue: self.issue(request.jira_key.as_deref(), issue.as_ref()).await,
        };
        Ok(RequestPreconditions {
            seen,
            draft,
            title,
            body,
            issue,
            view: local.map(|local| local.view),
        })
    }

    fn repository(&self, origin: Option<&str>) -> Result<RepositoryName, CallProblem> {
        let on_server = |(instance, url): &(Option<_>, String)| {
            let name: RepositoryName = git::find_remote_repository(origin?, url)?.parse().ok()?;
            Some(name.on(Clone::clone(instance)))
        };
        self.servers.iter().find_map(on_server).ok_or_else(|| {
            let message = "The remote origin of the working directory is not on a GitHub of the settings";
            CallProblem::new(ProblemKind::ValidationError, message).about_field("working_directory")
        })
    }

    /// Refuses protected branches, as in a run.
    async fn check_branch(&self, draft: &PullRequestDraft) -> Result<(), CallProblem> {
        let repository = retry_call(ProblemKind::PrCreationFailed.retries(), || async {
            Ok(self.github.repository(&draft.repository).await?)
        });
        let default = repository
            .await
            .map_err(|gave_up| not_created(draft, &gave_up))?
            .default_branch;
        check_branch_name(&draft.branch, &[&default, &draft.base_branch]).map_err(|violation| {
            CallProblem::new(
                ProblemKind::ValidationError,
                domain::OutboundRefusal::from(violation).words(),
            )
            .about_field("branch")
        })
    }

    async fn heads(
        &self,
        draft: &PullRequestDraft,
        local: Option<&WorkingFolder>,
    ) -> Result<BranchHeads, CallProblem> {
        let remote = retry_call(ProblemKind::GitPushFailed.retries(), || async {
            Ok(self.github.branch_head(&draft.repository, &draft.branch).await?)
        });
        let remote = remote.await.map_err(|gave_up| not_created(draft, &gave_up))?;
        let head = local.and_then(|local| Some((local.head.clone()?, Arc::clone(&local.view))));
        let forward = match (head.clone(), remote.clone()) {
            (Some((head, view)), Some(remote)) => {
                let checked = run_blocking(move || is_forward(&view, &head, &remote));
                checked
                    .await
                    .map_err(|trouble| invalid_field("working_directory", &trouble))?
            }
            // Without a local or a remote branch, a push cannot remove commits.
            (_, None) | (None, _) => true,
        };
        Ok(BranchHeads {
            local: head.map(|(head, _)| head),
            remote,
            is_forward: forward,
        })
    }

    async fn open_one(&self, draft: &PullRequestDraft) -> Result<Option<ExistingPullRequest>, CallProblem> {
        let found = retry_call(ProblemKind::PrCreationFailed.retries(), || {
            find_open(&self.github, draft)
        });
        found.await.map_err(|gave_up| not_created(draft, &gave_up))
    }

    async fn issue(&self, key: Option<&str>, issue: Option<&TicketKey>) -> ObservedIssue {
        let Some(key) = key else {
            return ObservedIssue::NotAsked;
        };
        let Some(issue) = issue else {
            return ObservedIssue::Unseen(unknown_issue(key));
        };
        // A reporter of named instances alone has clients, and none of the default Jira.
        let configured = self.jira.as_ref().filter(|jira| jira.browse_url(issue).is_some());
        let Some(jira) = configured else {
            let message = format!(
                "Jira integration skipped: the settings have no [{}]",
                writer_section(issue)
            );
            return ObservedIssue::Unseen(
                CallProblem::new(ProblemKind::JiraNotConfigured, message).about_issue(key),
            );
        };
        let seen = retry_call(ProblemKind::JiraLinkFailed.retries(), || async {
            Ok((jira.status(issue).await?, jira.transitions(issue).await?))
        });
        match seen.await {
            Ok((status, offered)) => ObservedIssue::There {
                status: status.name,
                offered: offered.iter().map(effects::convert_transition).collect(),
            },
            // A failure at Jira is reported and does not prevent the pull request.
            Err(gave_up) => ObservedIssue::Unseen(unread_issue(issue, &gave_up)),
        }
    }
}

/// Finds the open pull request of the branch.
pub(super) async fn find_open(
    github: &GitHubWriter,
    draft: &PullRequestDraft,
) -> Result<Option<ExistingPullRequest>, EffectError> {
    let found = effects::find_open_by_branch(github, &draft.repository, &draft.branch);
    let Some(found) = found.await? else {
        return Ok(None);
    };
    let by_us = effects::is_by_our_account(github, &draft.repository, &found).await?;
    Ok(Some(ExistingPullRequest {
        by_us,
        ..as_open(found)
    }))
}

pub(super) fn as_open(found: github::PullRequest) -> ExistingPullRequest {
    ExistingPullRequest {
        number: found.number,
        url: found.url,
        base_branch: found.base_branch,
        draft: found.draft,
        by_us: true,
    }
}

pub(super) fn not_created(draft: &PullRequestDraft, gave_up: &GaveUp) -> CallProblem {
    let message = format!("Failed to create pull request: {}", gave_up.trouble);
    build_problem(ProblemKind::PrCreationFailed, message, gave_up).about_branch(&draft.branch)
}

fn invalid_field(field: &str, trouble: &EffectError) -> CallProblem {
    CallProblem::new(ProblemKind::ValidationError, trouble.to_string()).about_field(field)
}

fn unknown_issue(key: &str) -> CallProblem {
    let message = format!("Jira issue {key} does not exist or you don't have permission to view it");
    CallProblem::new(ProblemKind::JiraIssueNotFound, message).about_issue(key)
}

fn unread_issue(issue: &TicketKey, gave_up: &GaveUp) -> CallProblem {
    let key = issue.short();
    let trouble = &gave_up.trouble;
    // Jira hides issues that the account cannot read, so both failures mean the same to the caller.
    if let EffectError::Missing(_) | EffectError::Denied { .. } = trouble {
        return unknown_issue(&key);
    }
    let message = format!("Could not read {key} at Jira: {trouble}");
    jira_problem(ProblemKind::JiraLinkFailed, issue, message, gave_up)
}
