//! All calls that write text to GitHub and Jira. Each takes text that the credential scan has cleared.

use std::time::Duration;

use domain::{PullRequestRef, RepositoryName, TicketKey};
use github::CheckRunText;

use super::{
    CommentThread, EffectContext, OutboundClients,
    thread::{MARKER_END, MARKER_START, append_marker, github_id},
};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    message::{self, PullRequestDraft, RoundsText},
    rounds::ShownOn,
    scan,
};

impl OutboundClients {
    /// Writes a comment with a marker, and returns its id. The audience applies to requests of a service desk.
    pub(super) async fn write_comment(
        &self,
        thread: &CommentThread,
        text: &ClearedText,
        marker: &str,
        audience: jira::CommentAudience,
    ) -> Result<String, EffectError> {
        Ok(match thread {
            CommentThread::Jira(issue) => comment_on_issue(&self.jira, issue, text, marker, audience)
                .await?
                .to_string(),
            CommentThread::Review(repository, number, comment) => {
                let body = append_marker(text, marker);
                let github = &self.github;
                github
                    .reviews()
                    .reply(repository, *number, *comment, &body)
                    .await?
                    .to_string()
            }
            CommentThread::Nowhere(ticket) => return Err(tracker_missing(ticket)),
            CommentThread::Discussion(repository, number, beside) => {
                let (github, body) = (&self.github, append_marker(text, marker));
                github
                    .discussions()
                    .comment_on_discussion(repository, *number, beside.as_deref(), &body)
                    .await?
            }
            CommentThread::GitHub(repository, number) => {
                let body = append_marker(text, marker);
                self.github
                    .comments()
                    .comment(repository, *number, &body)
                    .await?
                    .to_string()
            }
        })
    }

    /// Writes the comment of a notification. A thread that a person deleted has no reader.
    pub(super) async fn notify_thread(
        &self,
        thread: &CommentThread,
        text: &ClearedText,
        asked: &EffectContext<'_>,
    ) -> Result<(), EffectError> {
        match self.write_comment(thread, text, asked.id, asked.audience()).await {
            Ok(_) | Err(EffectError::Missing(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Replaces the text of a comment of ours. Its marker stays.
    pub(crate) async fn edit_comment(
        &self,
        thread: &CommentThread,
        comment: &str,
        text: &ClearedText,
        marker: &str,
    ) -> Result<(), EffectError> {
        // Comments at GitHub contain their marker, so an edit has to repeat it. Jira stores it as a property.
        match thread {
            CommentThread::Jira(issue) => {
                let comment = jira::JiraCommentId(comment.to_owned());
                let jira = &self.jira;
                Ok(jira.update_comment(issue, &comment, text.as_str()).await?)
            }
            CommentThread::Review(..) => Err(EffectError::Failed(message::replies_stay())),
            CommentThread::Nowhere(ticket) => Err(tracker_missing(ticket)),
            CommentThread::Discussion(repository, ..) => {
                let (github, body) = (&self.github, append_marker(text, marker));
                Ok(github
                    .discussions()
                    .update_discussion_comment(repository, comment, &body)
                    .await?)
            }
            CommentThread::GitHub(repository, _) => {
                let body = append_marker(text, marker);
                let comment = github_id(comment)?;
                Ok(self
                    .github
                    .comments()
                    .update_comment(repository, comment, &body)
                    .await?)
            }
        }
    }

    /// Shows the rounds of work in our check run, and returns its id.
    pub(super) async fn show_check_run(&self, on: &ShownOn, text: &RoundsText) -> Result<u64, EffectError> {
        let said = CheckRunText {
            title: scan::redact_credentials(&text.title).into_owned(),
            summary: scan::redact_credentials(&text.summary).into_owned(),
            passed: text.passed,
        };
        let (repository, head) = (&on.repository, &on.head);
        let known = match on.check_run {
            Some(known) => Some(known),
            None => self.github.checks().find_check_run(repository, head).await?,
        };
        if let Some(known) = known {
            match self
                .github
                .checks()
                .update_check_run(repository, known, &said)
                .await
            {
                // The check run of the record is gone, so a new one is created.
                Err(github::Error::NotFound { .. }) => {}
                updated => return Ok(updated.map(|()| known)?),
            }
        }
        Ok(self
            .github
            .checks()
            .create_check_run(repository, head, &said)
            .await?)
    }

    /// Adds labels to a ticket.
    pub(super) async fn label(&self, ticket: &TicketKey, labels: &[ClearedText]) -> Result<(), EffectError> {
        let labels: Vec<String> = labels.iter().map(|label| label.as_str().to_owned()).collect();
        match ticket {
            TicketKey::Jira { .. } => self.jira.add_labels(ticket, &labels).await?,
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return Err(tracker_missing(ticket)),
            TicketKey::GitHub { repository, number } => {
                self.github
                    .issues()
                    .add_labels(repository, *number, &labels)
                    .await?;
            }
        }
        Ok(())
    }
}

/// Pauses before the repeated requests to open a pull request. GitHub may not know the pushed commits at once.
const UNSEEN_PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(6),
];

/// Opens a pull request. Repeats the request while GitHub does not know the commits of the branch.
pub(crate) async fn open_pull_request(
    github: &github::GitHubWriter,
    draft: &PullRequestDraft,
    title: &ClearedText,
    body: &ClearedText,
    is_draft: bool,
) -> Result<github::PullRequest, github::Error> {
    for pause in UNSEEN_PAUSES {
        match request_pull_request(github, draft, title, body, is_draft).await {
            Err(error) if error.is_about_unseen_commits() => {
                tracing::info!(repository = %draft.repository, branch = draft.branch, "GitHub does not know the pushed commits yet");
                tokio::time::sleep(pause).await;
            }
            done => return done,
        }
    }
    request_pull_request(github, draft, title, body, is_draft).await
}

async fn request_pull_request(
    github: &github::GitHubWriter,
    draft: &PullRequestDraft,
    title: &ClearedText,
    body: &ClearedText,
    is_draft: bool,
) -> Result<github::PullRequest, github::Error> {
    let (repository, head, base) = (&draft.repository, &draft.branch, &draft.base_branch);
    let (title, body) = (title.as_str(), body.as_str());
    let pull_requests = github.pull_requests();
    if is_draft {
        let note = message::render_progress_note();
        return pull_requests
            .create_draft(repository, head, base, title, body, note)
            .await;
    }
    pull_requests
        .create_pull_request(repository, head, base, title, body, false)
        .await
}

/// Links a pull request on a Jira issue. The global id makes Jira replace the link on a repetition.
pub(crate) async fn link_pull_request(
    jira: &jira::JiraWriter,
    issue: &TicketKey,
    pull_request: &PullRequestRef,
    title: &ClearedText,
) -> Result<(), jira::Error> {
    let global_id = format!("journeyman:{}#{}", pull_request.repository, pull_request.number);
    jira.remote_link(issue, &global_id, &pull_request.url, title.as_str())
        .await
}

/// Comments on a Jira issue, with a marker.
pub(crate) async fn comment_on_issue(
    jira: &jira::JiraWriter,
    issue: &TicketKey,
    text: &ClearedText,
    marker: &str,
    audience: jira::CommentAudience,
) -> Result<jira::JiraCommentId, jira::Error> {
    jira.comment_for(issue, text.as_str(), marker, audience).await
}

/// Opens a GitHub issue, with a marker.
pub(super) async fn open_issue(
    github: &github::GitHubWriter,
    repository: &RepositoryName,
    title: &ClearedText,
    text: &ClearedText,
    marker: &str,
) -> Result<github::OpenedIssue, github::Error> {
    let issue = github::NewIssue {
        title: title.as_str().to_owned(),
        body: append_marker(text, marker),
        labels: Vec::new(),
    };
    github.issues().create_issue(repository, &issue).await
}

/// Finds the issue of our account with this marker.
pub(super) async fn find_issue(
    github: &github::GitHubWriter,
    repository: &RepositoryName,
    marker: &str,
) -> Result<Option<github::OpenedIssue>, github::Error> {
    let ending = format!("{MARKER_START}{marker}{MARKER_END}");
    github.issues().find_our_issue(repository, &ending).await
}

/// Returns the error for tickets of folders, which no tracker has.
fn tracker_missing(ticket: &TicketKey) -> EffectError {
    EffectError::Failed(message::no_tracker(ticket))
}
