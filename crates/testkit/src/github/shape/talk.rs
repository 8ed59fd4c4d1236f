//! Comments, and the issues that they stand under.

use serde_json::{Value, json};

use super::people::app_of;
use super::user;
use crate::github::state::{Comment, Pull, Repo};

fn reactions(own: &str) -> Value {
    json!({
        "url": format!("{own}/reactions"), "total_count": 0, "+1": 0, "-1": 0, "laugh": 0, "confused": 0, "heart": 0,
        "hooray": 0, "eyes": 0, "rocket": 0,
    })
}

impl Repo {
    /// A comment of an issue or pull request.
    pub(in crate::github) fn comment_json(&self, comment: &Comment, url: &str) -> Value {
        let repository = self.own_url(url);
        let own = format!("{repository}/issues/comments/{}", comment.id);
        let page = self.pull_url(comment.number, url);
        json!({
            "id": comment.id, "node_id": format!("IC_{}", comment.id), "body": comment.body,
            "html_url": format!("{page}#issuecomment-{}", comment.id),
            "issue_url": format!("{repository}/issues/{}", comment.number), "user": user(&comment.author),
            "created_at": comment.created, "updated_at": comment.updated, "author_association": "CONTRIBUTOR",
            "performed_via_github_app": app_of(&comment.author), "reactions": reactions(&own), "url": own,
        })
    }

    /// A pull request as an issue.
    pub(in crate::github) fn issue_json(&self, pull: &Pull, url: &str) -> Value {
        let repository = self.own_url(url);
        let own = format!("{repository}/issues/{}", pull.number);
        let page = self.pull_url(pull.number, url);
        let comments = self.comments.iter();
        json!({
            "id": pull.id, "node_id": pull.node_id(), "number": pull.number, "title": pull.title, "body": pull.body,
            "state": if pull.open { "open" } else { "closed" }, "locked": false, "active_lock_reason": null,
            "user": user(&pull.author), "labels": self.labels_json(pull, url), "assignee": null, "assignees": [],
            "milestone": null, "comments": comments.filter(|comment| comment.number == pull.number).count(),
            "created_at": pull.created, "updated_at": pull.updated, "closed_at": pull.closed,
            "author_association": "CONTRIBUTOR", "performed_via_github_app": app_of(&pull.author),
            "html_url": page, "repository_url": repository, "labels_url": format!("{own}/labels{{/name}}"),
            "comments_url": format!("{own}/comments"), "events_url": format!("{own}/events"),
            "reactions": reactions(&own), "url": own, "draft": pull.draft,
            "pull_request": {
                "html_url": page, "url": format!("{repository}/pulls/{}", pull.number),
                "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"), "merged_at": pull.merged_at(),
            },
        })
    }
}
