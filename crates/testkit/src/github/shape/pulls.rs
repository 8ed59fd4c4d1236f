//! JSON of pull requests, labels and reviews.

use serde_json::{Value, json};

use super::{extend_object, number_of, render_user};
use crate::github::state::{LineCommentRecord, PullRecord, PullReview, RepositoryRecord};
use crate::github::{history, hunks};

/// Renders a label. Its id follows from its name.
pub(in crate::github) fn label_json(repo: &RepositoryRecord, label: &str, url: &str) -> Value {
    let id = number_of(label);
    let own = format!("{}/labels/{}", repo.own_url(url), label.replace(' ', "%20"));
    json!({
        "id": id, "node_id": format!("LA_{id}"), "url": own, "name": label, "color": "ededed", "default": false, "description": null,
    })
}

/// URLs that a pull request's JSON contains.
struct PullRequestLinks {
    own: String,
    issue: String,
    page: String,
    statuses: String,
}

impl PullRequestLinks {
    fn named(&self) -> [(&'static str, String); 8] {
        let Self { own, issue, page, .. } = self;
        [
            ("self", own.clone()),
            ("html", page.clone()),
            ("issue", issue.clone()),
            ("comments", format!("{issue}/comments")),
            ("review_comments", format!("{own}/comments")),
            ("review_comment", format!("{own}/comments{{/number}}")),
            ("commits", format!("{own}/commits")),
            ("statuses", self.statuses.clone()),
        ]
    }

    /// Renders the URLs as properties and as `_links`.
    fn json(&self) -> Value {
        let page = &self.page;
        let mut body =
            json!({"diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"), "_links": {}});
        for (name, link) in self.named() {
            let property = match name {
                "self" => "url".to_owned(),
                name => format!("{name}_url"),
            };
            body[property] = json!(link);
            body["_links"][name] = json!({"href": link});
        }
        body
    }
}

impl RepositoryRecord {
    fn links(&self, pull: &PullRecord, url: &str) -> PullRequestLinks {
        let own = self.own_url(url);
        PullRequestLinks {
            own: format!("{own}/pulls/{}", pull.number),
            issue: format!("{own}/issues/{}", pull.number),
            page: self.pull_url(pull.number, url),
            statuses: format!("{own}/statuses/{}", pull.head_sha),
        }
    }

    /// Renders a pull request for lists and reviews.
    pub(in crate::github) fn simple_pull_json(&self, pull: &PullRecord, url: &str) -> Value {
        let repository = self.json(url);
        let side = |branch: &str, sha: &str| {
            json!({
                "label": format!("{}:{branch}", self.owner()), "ref": branch, "sha": sha,
                "user": render_user(self.owner()), "repo": repository,
            })
        };
        let auto_merge = pull.auto_merge.as_ref().map(|(by, method)| {
            json!({
                "enabled_by": render_user(by), "merge_method": method, "commit_title": pull.title,
                "commit_message": "",
            })
        });
        let reviewers: Vec<Value> = pull.reviewers.iter().map(|login| render_user(login)).collect();
        let body = json!({
            "id": pull.id, "node_id": pull.node_id(), "number": pull.number, "title": pull.title, "body": pull.body,
            "state": if pull.open { "open" } else { "closed" }, "locked": self.locks.contains_key(&pull.number), "draft": pull.draft,
            "milestone": null, "assignee": null, "auto_merge": auto_merge, "active_lock_reason": self.lock_reason(pull.number),
            "user": render_user(&pull.author), "head": side(&pull.head, &pull.head_sha),
            "base": side(&pull.base, &pull.base_sha), "labels": self.labels_json(&pull.labels, url),
            "requested_reviewers": reviewers, "requested_teams": [], "assignees": [], "created_at": pull.created,
            "updated_at": pull.updated, "closed_at": pull.closed,
            "merged_at": pull.merged_at(), "merge_commit_sha": pull.merge_sha,
            "author_association": "CONTRIBUTOR",
        });
        extend_object(body, self.links(pull, url).json())
    }

    /// Renders a pull request for its REST route and its webhooks.
    pub(in crate::github) fn pull_json(&self, pull: &PullRecord, url: &str) -> Value {
        let changes = history::count_changes(&self.path, &pull.base_sha, &pull.head_sha).unwrap_or_default();
        let comments = self.comments.iter();
        let (mergeable, merge_state) = self.mergeability(pull);
        let more = json!({
            "merged": pull.merged_by.is_some(), "merged_by": pull.merged_by.as_deref().map(render_user),
            "mergeable": mergeable, "mergeable_state": merge_state,
            "rebaseable": pull.open, "maintainer_can_modify": false,
            "comments": comments.filter(|comment| comment.number == pull.number).count(), "review_comments": 0,
            "commits": changes.commits, "additions": changes.additions, "deletions": changes.deletions,
            "changed_files": changes.files,
        });
        extend_object(self.simple_pull_json(pull, url), more)
    }

    /// Renders a pull request as checks contain it.
    pub(super) fn minimal_pull_json(&self, pull: &PullRecord, url: &str) -> Value {
        let repository = self.reference_json(url);
        let side = |branch: &str, sha: &str| json!({"ref": branch, "sha": sha, "repo": repository});
        json!({
            "id": pull.id, "number": pull.number, "url": self.links(pull, url).own,
            "head": side(&pull.head, &pull.head_sha), "base": side(&pull.base, &pull.base_sha),
        })
    }

    pub(in crate::github) fn labels_json(&self, labels: &[String], url: &str) -> Value {
        labels.iter().map(|label| label_json(self, label, url)).collect()
    }

    /// Renders a review for webhooks. REST writes its state in capitals.
    pub(in crate::github) fn review_json(&self, pull: &PullRecord, review: &PullReview, url: &str) -> Value {
        let links = self.links(pull, url);
        let page = format!("{}#pullrequestreview-{}", links.page, review.id);
        json!({
            "id": review.id, "node_id": format!("PRR_{}", review.id), "user": render_user(&review.author),
            "body": review.body, "state": review.state, "commit_id": review.sha, "html_url": page,
            "pull_request_url": links.own, "submitted_at": review.submitted, "author_association": "MEMBER",
            "_links": {"html": {"href": page}, "pull_request": {"href": links.own}},
        })
    }

    /// Renders the comments of a review on lines.
    pub(in crate::github) fn line_comments_json(
        &self,
        pull: &PullRecord,
        review: &PullReview,
        url: &str,
    ) -> Vec<Value> {
        let links = self.links(pull, url);
        let json = |comment: &LineCommentRecord| {
            let own = format!("{}/pulls/comments/{}", self.own_url(url), comment.id);
            let page = format!("{}#discussion_r{}", links.page, comment.id);
            let hunk = hunks::of_comment(self, pull, &review.sha, &comment.path, comment.line);
            let reply = comment.in_reply_to.map(|to| json!({"in_reply_to_id": to}));
            let json = json!({
                "url": own, "id": comment.id, "node_id": format!("PRRC_{}", comment.id),
                "pull_request_review_id": review.id, "diff_hunk": hunk,
                "path": comment.path, "line": comment.line, "original_line": comment.line, "side": "RIGHT",
                "commit_id": review.sha, "original_commit_id": review.sha, "user": render_user(&review.author),
                "body": comment.body, "created_at": review.submitted, "updated_at": review.submitted, "html_url": page,
                "pull_request_url": links.own, "author_association": "MEMBER",
                "_links": {"self": {"href": own}, "html": {"href": page}, "pull_request": {"href": links.own}},
            });
            let range = comment.start.map(
                |start| json!({"start_line": start, "original_start_line": start, "start_side": "RIGHT"}),
            );
            extend_object(
                extend_object(json, reply.unwrap_or_else(|| json!({}))),
                range.unwrap_or_else(|| json!({})),
            )
        };
        review.lines.iter().map(json).collect()
    }
}
