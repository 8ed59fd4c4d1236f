//! Effects of a pull request call. They use the writing accounts alone: a call has no ticket, records or stores.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use domain::{OutboundRefusal, PullRequestRef, RepositoryName, TicketKey, cause::format_error_chain};
use git::{FolderView, GitProxy};
use github::GitHubWriter;
use jira::{CommentAudience, JiraWriter};
use pullrequest::ExistingPullRequest;

use super::preconditions::{RequestPreconditions, as_open, find_open};
use crate::{
    cleared_text::ClearedText,
    effect_cycle::EffectSteps,
    effect_error::EffectError,
    effects::{comment_on_issue, end_draft, link_pull_request, open_pull_request},
    message,
    mirror::{RemotePush, explain_stale_push, push_commit},
};

/// Pushes a branch from a view of the folder, so that neither its settings nor its hooks apply.
pub(super) struct PushFolderBranch<'a> {
    pub(super) github: &'a GitHubWriter,
    pub(super) view: &'a FolderView,
    pub(super) push: RemotePush<'a>,
}

#[async_trait]
impl EffectSteps for PushFolderBranch<'_> {
    type Receipt = ();

    fn name(&self) -> &'static str {
        "push_branch"
    }

    /// Done if the remote branch is at the commit.
    async fn find_result(&self) -> Result<Option<()>, EffectError> {
        let there = self.github.branch_head(self.push.repository, self.push.branch);
        let is_done = there.await?.as_ref() == Some(self.push.head);
        Ok(is_done.then_some(()))
    }

    async fn create(&self) -> Result<(), EffectError> {
        let proxy = GitProxy::new(webproxy::find_installed_proxy(), &std::env::temp_dir());
        let transport = self.view.transport().with_proxy(proxy.map_err(git::Error::from)?);
        match push_commit(self.github, &transport, &self.push).await {
            Ok(_) => Ok(()),
            // curl sends a request again when its connection ended without an answer. The second request finds the
            // branch moved by the first one.
            Err(EffectError::Refused(OutboundRefusal::BranchMoved { branch, .. })) => {
                match self.github.branch_head(self.push.repository, &branch).await {
                    Ok(Some(head)) if head == *self.push.head => Ok(()),
                    there => {
                        let there = there.map_err(EffectError::from);
                        Err(explain_stale_push(branch, self.push.expected, there))
                    }
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Opens a pull request, or adopts one that our account opened since the plan.
pub(super) struct OpenCalledPullRequest<'a> {
    pub(super) github: &'a GitHubWriter,
    pub(super) preconditions: &'a RequestPreconditions,
    pub(super) is_draft: bool,
}

#[async_trait]
impl EffectSteps for OpenCalledPullRequest<'_> {
    type Receipt = ExistingPullRequest;

    fn name(&self) -> &'static str {
        "open_pull_request"
    }

    /// Done if a pull request of ours is open for the branch, e.g. that of a try whose response was lost.
    async fn find_result(&self) -> Result<Option<ExistingPullRequest>, EffectError> {
        match find_open(self.github, &self.preconditions.draft).await? {
            Some(open) if !open.by_us => Err(EffectError::Refused(OutboundRefusal::ForeignPullRequest {
                number: open.number,
                author: String::new(),
            })),
            found => Ok(found),
        }
    }

    async fn create(&self) -> Result<ExistingPullRequest, EffectError> {
        let RequestPreconditions {
            draft, title, body, ..
        } = self.preconditions;
        match open_pull_request(self.github, draft, title, body, self.is_draft).await {
            Ok(opened) => Ok(as_open(opened)),
            // The pull request exists, although GitHub's list may not show it yet.
            Err(error @ github::Error::Conflict { .. }) => {
                let there = self.find_result().await?;
                there.ok_or_else(|| EffectError::Unknown(format_error_chain(&error)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Marks a draft as ready for review, whatever its checks say: the caller decided.
pub(super) struct MarkCalledReady<'a> {
    pub(super) github: &'a GitHubWriter,
    pub(super) repository: &'a RepositoryName,
    pub(super) number: u64,
}

#[async_trait]
impl EffectSteps for MarkCalledReady<'_> {
    type Receipt = ();

    fn name(&self) -> &'static str {
        "mark_ready"
    }

    async fn find_result(&self) -> Result<Option<()>, EffectError> {
        let now = self
            .github
            .pull_requests()
            .pull_request(self.repository, self.number)
            .await?;
        Ok((!now.draft).then_some(()))
    }

    async fn create(&self) -> Result<(), EffectError> {
        // GitHub marks a pull request as ready by its GraphQL id only, which the plan does not have.
        let now = self
            .github
            .pull_requests()
            .pull_request(self.repository, self.number)
            .await?;
        Ok(end_draft(self.github, self.repository, &now).await?)
    }
}

/// Pull request to name on a Jira issue.
#[derive(Clone, Copy)]
pub(super) struct CalledLink<'a> {
    pub(super) jira: &'a JiraWriter,
    pub(super) issue: &'a TicketKey,
    pub(super) made: &'a PullRequestRef,
}

/// Links the pull request on the issue. A repetition replaces the link.
pub(super) struct LinkCalledPullRequest<'a>(pub(super) CalledLink<'a>);

#[async_trait]
impl EffectSteps for LinkCalledPullRequest<'_> {
    type Receipt = ();

    fn name(&self) -> &'static str {
        "link_pull_request"
    }

    async fn create(&self) -> Result<(), EffectError> {
        let CalledLink { jira, issue, made } = self.0;
        let title = ClearedText::without_credentials(&message::remote_link_title(made));
        Ok(link_pull_request(jira, issue, made, &title).await?)
    }
}

/// Comments on the issue where Jira refuses the link, because a call has no status comment.
pub(super) struct CommentCalledLink<'a>(pub(super) CalledLink<'a>);

impl CommentCalledLink<'_> {
    fn marker(&self) -> String {
        let PullRequestRef {
            repository, number, ..
        } = self.0.made;
        format!("pull-request:{repository}#{number}")
    }
}

#[async_trait]
impl EffectSteps for CommentCalledLink<'_> {
    type Receipt = ();

    fn name(&self) -> &'static str {
        "comment"
    }

    /// Done if our comment about this pull request exists.
    async fn find_result(&self) -> Result<Option<()>, EffectError> {
        let (marker, comments) = (self.marker(), self.0.jira.list_comments(self.0.issue).await?);
        let mut ours = comments.iter().filter(|comment| comment.by_us);
        Ok(ours.any(|comment| comment.marker == marker).then_some(()))
    }

    async fn create(&self) -> Result<(), EffectError> {
        let CalledLink { jira, issue, made } = self.0;
        let text = ClearedText::without_credentials(&message::link_comment(made));
        let commented = comment_on_issue(jira, issue, &text, &self.marker(), CommentAudience::Internal).await;
        Ok(commented.map(drop)?)
    }
}

/// Moves the issue by one transition. The receipt is its new status.
pub(super) struct MoveCalledIssue<'a> {
    pub(super) jira: &'a JiraWriter,
    pub(super) issue: &'a TicketKey,
    /// Jira's id of the transition.
    pub(super) transition: &'a str,
    /// Status that the transition leads to.
    pub(super) leads_to: &'a str,
    /// Values for the fields of its screen, by the fields' names.
    pub(super) fields: &'a BTreeMap<String, String>,
    /// True after the first try. Before it, a transition may lead to the status that the issue has already.
    pub(super) is_sent: AtomicBool,
}

#[async_trait]
impl EffectSteps for MoveCalledIssue<'_> {
    type Receipt = String;

    fn name(&self) -> &'static str {
        "transition"
    }

    /// Done if a try whose response was lost moved the issue. Its workflow may refuse or repeat the transition.
    async fn find_result(&self) -> Result<Option<String>, EffectError> {
        if !self.is_sent.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let status = self.jira.status(self.issue).await?.name;
        Ok((status == self.leads_to).then_some(status))
    }

    async fn create(&self) -> Result<String, EffectError> {
        let filled = self.fill_screen().await?;
        self.is_sent.store(true, Ordering::Relaxed);
        let moved = self.jira.transition(self.issue, self.transition, &filled).await;
        match moved.map_err(EffectError::from) {
            // The response was lost: the status shows if the transition happened.
            Err(EffectError::Unknown(detail)) => {
                let found = self.find_result().await?;
                found.ok_or(EffectError::Unknown(detail))
            }
            done => done.map(|()| self.leads_to.to_owned()),
        }
    }
}

impl MoveCalledIssue<'_> {
    /// Fills the fields of the transition's screen. Without fields of the caller, the screen is not read.
    async fn fill_screen(&self) -> Result<serde_json::Map<String, serde_json::Value>, EffectError> {
        if self.fields.is_empty() {
            return Ok(serde_json::Map::new());
        }
        let offered = self.jira.transitions(self.issue).await?;
        let meant = offered.iter().find(|one| one.id == self.transition);
        Ok(meant.map(|one| one.fill(self.fields).fields).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use testkit::{FakeJira, JiraOptions, ServiceFault};

    use super::*;
    use crate::{
        effect_cycle::{AttemptSearch, perform_effect},
        effect_row::MemoryEffectRow,
        receipt::EffectOrigin,
    };

    #[tokio::test]
    async fn lost_transition_is_found_by_next_try() {
        bootstrap::install_tls_provider();
        let site = FakeJira::start(JiraOptions::default()).await.unwrap();
        let key = site.create_issue("ENG", "Totals are wrong", "They are.", "Bug", &[]);
        let issue = TicketKey::jira(&key).unwrap();
        let jira = JiraWriter::new(&jira::Settings {
            base_url: site.url(),
            email: testkit::jira::WRITER_EMAIL.to_owned(),
            api_token: SecretString::from(testkit::jira::WRITER_API_TOKEN),
            ..jira::Settings::default()
        })
        .unwrap();
        let offered = jira.transitions(&issue).await.unwrap();
        let effect = MoveCalledIssue {
            jira: &jira,
            issue: &issue,
            transition: &offered[0].id,
            leads_to: &offered[0].to.name,
            fields: &BTreeMap::new(),
            is_sent: AtomicBool::new(false),
        };
        // The transition happens, and neither its response nor the status after it arrives.
        site.fail_next(
            ServiceFault::new("/transitions", 1, 502)
                .on("POST")
                .after_effect(),
        );
        site.fail_next(ServiceFault::new(&key, 1, 429).on("GET"));
        let (row, search) = (MemoryEffectRow::<String>::default(), AttemptSearch::Once);
        let lost = perform_effect(&effect, &row, &search).await.unwrap_err();
        assert!(matches!(lost, EffectError::Later { .. }), "{lost}");
        let settled = perform_effect(&effect, &row, &search).await.unwrap();
        let expected = (EffectOrigin::Found, offered[0].to.name.clone());
        assert_eq!((settled.how, settled.receipts), expected);
        let sent = site.requests();
        let sent = sent.iter().filter(|request| request.method == "POST");
        assert_eq!(sent.count(), 1);
    }
}
