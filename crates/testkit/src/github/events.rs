//! Payloads of the GitHub webhooks.

use serde_json::{Value, json};

use super::READER_INSTALLATION_ID;
use super::hub::GitHubState;
use super::shape::{extend_object, pushed_commit, render_user};
use super::state::{CommentRecord, IssueRecord, PullRecord, RepositoryRecord};
use super::{history, repository};

impl GitHubState {
    /// Sends `issue_comment` for a created or edited comment; `more` holds fields of this action alone.
    pub(super) fn send_comment_event(
        &self,
        repo: &RepositoryRecord,
        comment: &CommentRecord,
        action: &str,
        more: Value,
        by: &str,
    ) {
        let issue = match (repo.pulls.get(&comment.number), repo.issues.get(&comment.number)) {
            (Some(pull), _) => repo.pull_as_issue_json(pull, &self.url),
            (None, Some(issue)) => repo.issue_json(issue, &self.url),
            (None, None) => return,
        };
        let payload = json!({
            "action": action, "comment": repo.comment_json(comment, &self.url), "issue": issue,
        });
        self.send_event(repo, "issue_comment", extend_object(payload, more), by);
    }

    /// Sends `issues` for a changed issue; `more` holds fields of this action alone.
    pub(super) fn send_issue_event(
        &self,
        repo: &RepositoryRecord,
        issue: &IssueRecord,
        action: &str,
        more: Value,
        by: &str,
    ) {
        let payload = json!({"action": action, "issue": repo.issue_json(issue, &self.url)});
        self.send_event(repo, "issues", extend_object(payload, more), by);
    }

    pub(super) fn send_pull_event(&self, repo: &RepositoryRecord, pull: &PullRecord, action: &str, by: &str) {
        self.send_pull_event_with(repo, pull, action, json!({}), by);
    }

    /// Sends `pull_request`; `more` holds fields of this action alone.
    pub(super) fn send_pull_event_with(
        &self,
        repo: &RepositoryRecord,
        pull: &PullRecord,
        action: &str,
        more: Value,
        by: &str,
    ) {
        let pull_request = repo.pull_json(pull, &self.url);
        let payload = json!({"action": action, "number": pull.number, "pull_request": pull_request});
        self.send_event(repo, "pull_request", extend_object(payload, more), by);
    }

    /// Sends `push` for a created, moved or deleted branch.
    pub(super) fn send_push_event(
        &self,
        repo: &RepositoryRecord,
        branch: &str,
        (old, new): (Option<&String>, Option<&String>),
        by: &str,
    ) {
        // GitHub writes a missing commit as forty zeros.
        let zero = "0".repeat(40);
        let (before, after) = (old.unwrap_or(&zero), new.unwrap_or(&zero));
        let main = repository::list_branches(&repo.path).remove(&repo.default_branch);
        // A new branch has no former head, so its commits are those beyond the default branch.
        let known = old.or(main.as_ref().filter(|main| Some(*main) != new));
        let commits = new.map(|new| history::list_pushed_commits(&repo.path, known, new).unwrap_or_default());
        let commits = commits.unwrap_or_default().into_iter();
        let commits: Vec<Value> = commits
            .map(|commit| pushed_commit(repo, &commit, &self.url))
            .collect();
        let head = new.and_then(|new| history::read_commit(&repo.path, new).ok());
        let payload = json!({
            "ref": format!("refs/heads/{branch}"), "before": before, "after": after, "created": old.is_none(),
            "deleted": new.is_none(), "forced": false, "base_ref": null,
            "compare": format!("{}/{}/compare/{before}...{after}", self.url, repo.name),
            "pusher": {"name": by, "email": null}, "commits": commits,
            "head_commit": head.map(|head| pushed_commit(repo, &head, &self.url)),
        });
        self.send_event(repo, "push", payload, by);
    }

    pub(super) fn send_event(&self, repo: &RepositoryRecord, event: &str, payload: Value, by: &str) {
        let id = READER_INSTALLATION_ID;
        let more = json!({
            "repository": repo.json(&self.url), "sender": render_user(by),
            "installation": {"id": id, "node_id": format!("I_{id}")},
        });
        self.webhooks.send(event, extend_object(payload, more));
    }
}
