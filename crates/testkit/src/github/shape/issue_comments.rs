//! JSON of issues and their comments.

use serde_json::{Value, json};

use super::people::app_of;
use super::{extend_object, number_of, render_user};
use crate::github::state::{CommentRecord, IssueRecord, PullRecord, RepositoryRecord};

pub(super) fn render_reactions(own: &str) -> Value {
    json!({
        "url": format!("{own}/reactions"), "total_count": 0, "+1": 0, "-1": 0, "laugh": 0, "confused": 0, "heart": 0,
        "hooray": 0, "eyes": 0, "rocket": 0,
    })
}

/// Renders an issue type.
pub(in crate::github) fn issue_type_json(name: &str) -> Value {
    let id = number_of(name);
    json!({
        "id": id, "node_id": format!("IT_{id}"), "name": name, "description": null, "color": "gray", "is_enabled": true,
        "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z",
    })
}

impl RepositoryRecord {
    /// Renders a comment on an issue or pull request.
    pub(in crate::github) fn comment_json(&self, comment: &CommentRecord, url: &str) -> Value {
        let repository = self.own_url(url);
        let own = format!("{repository}/issues/comments/{}", comment.id);
        let page = self.page_url(comment.number, url);
        json!({
            "id": comment.id, "node_id": format!("IC_{}", comment.id), "body": comment.body,
            "html_url": format!("{page}#issuecomment-{}", comment.id),
            "issue_url": format!("{repository}/issues/{}", comment.number), "user": render_user(&comment.author),
            "created_at": comment.created, "updated_at": comment.updated, "author_association": "CONTRIBUTOR",
            "performed_via_github_app": app_of(&comment.author), "reactions": render_reactions(&own), "url": own,
        })
    }

    /// Renders a pull request in the form of an issue.
    pub(in crate::github) fn pull_as_issue_json(&self, pull: &PullRecord, url: &str) -> Value {
        let thread = IssueThread {
            id: pull.id,
            node_id: pull.node_id(),
            number: pull.number,
            author: &pull.author,
            labels: &pull.labels,
            assignees: &[],
        };
        let page = self.pull_url(pull.number, url);
        let more = json!({
            "title": pull.title, "body": pull.body, "state": if pull.open { "open" } else { "closed" },
            "state_reason": null, "created_at": pull.created, "updated_at": pull.updated, "closed_at": pull.closed,
            "html_url": page, "draft": pull.draft,
            "pull_request": {
                "html_url": page, "url": format!("{}/pulls/{}", self.own_url(url), pull.number),
                "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"), "merged_at": pull.merged_at(),
            },
        });
        extend_object(self.thread_json(&thread, url), more)
    }

    /// Renders an issue for REST and webhooks.
    pub(in crate::github) fn issue_json(&self, issue: &IssueRecord, url: &str) -> Value {
        let thread = IssueThread {
            id: issue.id,
            node_id: issue.node_id(),
            number: issue.number,
            author: &issue.author,
            labels: &issue.labels,
            assignees: &issue.assignees,
        };
        let more = json!({
            "title": issue.title, "body": issue.body, "state": if issue.is_open() { "open" } else { "closed" },
            "state_reason": issue.closed_as, "created_at": issue.created, "updated_at": issue.updated,
            "closed_at": issue.closed, "html_url": self.issue_url(issue.number, url),
            "type": issue.issue_type.as_deref().map(issue_type_json),
        });
        extend_object(self.thread_json(&thread, url), more)
    }

    fn thread_json(&self, thread: &IssueThread<'_>, url: &str) -> Value {
        let repository = self.own_url(url);
        let own = format!("{repository}/issues/{}", thread.number);
        let assignees: Vec<Value> = thread.assignees.iter().map(|login| render_user(login)).collect();
        json!({
            "id": thread.id, "node_id": thread.node_id, "number": thread.number,
            "locked": self.locks.contains_key(&thread.number),
            "active_lock_reason": self.lock_reason(thread.number), "user": render_user(thread.author), "labels": self.labels_json(thread.labels, url),
            "assignee": assignees.first(), "assignees": assignees, "milestone": null, "comments": self.count_comments(thread.number),
            "author_association": "CONTRIBUTOR", "performed_via_github_app": app_of(thread.author),
            "repository_url": repository, "labels_url": format!("{own}/labels{{/name}}"),
            "comments_url": format!("{own}/comments"), "events_url": format!("{own}/events"),
            "reactions": render_reactions(&own), "url": own,
        })
    }
}

/// Properties that issues and pull requests share.
struct IssueThread<'a> {
    id: u64,
    node_id: String,
    number: u64,
    author: &'a str,
    labels: &'a [String],
    assignees: &'a [String],
}
