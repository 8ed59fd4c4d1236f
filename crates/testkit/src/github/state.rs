//! Repositories and pull requests as the stand-in keeps them, and how GitHub writes them down.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{CommentState, Conclusion, PullRequestState};

#[derive(Debug, Clone)]
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) author: String,
    pub(super) body: String,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) made: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct CheckRun {
    pub(super) id: u64,
    pub(super) suite: u64,
    pub(super) name: String,
    pub(super) sha: String,
    pub(super) conclusion: Conclusion,
    pub(super) output: String,
    pub(super) completed: String,
}

#[derive(Debug, Clone)]
pub(super) struct Review {
    pub(super) id: u64,
    pub(super) author: String,
    pub(super) state: String,
    pub(super) body: String,
    pub(super) sha: String,
    pub(super) submitted: String,
}

#[derive(Debug, Clone)]
pub(super) struct Pull {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) author: String,
    pub(super) head: String,
    pub(super) head_sha: String,
    pub(super) base: String,
    pub(super) base_sha: String,
    pub(super) draft: bool,
    pub(super) open: bool,
    pub(super) merged_by: Option<String>,
    pub(super) merge_sha: Option<String>,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) closed: Option<String>,
    pub(super) labels: Vec<String>,
    pub(super) reviewers: Vec<String>,
    pub(super) reviews: Vec<Review>,
    pub(super) made: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct Repo {
    pub(super) id: u64,
    /// `owner/name`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) default_branch: String,
    pub(super) pulls: BTreeMap<u64, Pull>,
    pub(super) comments: Vec<Comment>,
    pub(super) checks: Vec<CheckRun>,
    pub(super) permissions: BTreeMap<String, String>,
    /// The checks that a branch asks for before a merge, by branch.
    pub(super) required_checks: BTreeMap<String, Vec<String>>,
}

/// An account; whatever ends in `[bot]` is an App's.
pub(super) fn user(login: &str) -> Value {
    let id = login
        .bytes()
        .fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 1_000_000);
    let url = format!("https://api.github.test/users/{login}");
    json!({
        "login": login, "id": id, "node_id": format!("U_{id}"), "avatar_url": "https://github.test/avatar.png",
        "gravatar_id": "", "url": url, "html_url": format!("https://github.test/{login}"),
        "followers_url": url, "following_url": url, "gists_url": url, "starred_url": url, "subscriptions_url": url,
        "organizations_url": url, "repos_url": url, "events_url": url, "received_events_url": url,
        "type": if login.ends_with("[bot]") { "Bot" } else { "User" }, "site_admin": false,
    })
}

impl Repo {
    pub(super) fn owner(&self) -> &str {
        self.name.split_once('/').map_or("", |(owner, _)| owner)
    }

    pub(super) fn json(&self, url: &str) -> Value {
        let name = self.name.split_once('/').map_or("", |(_, name)| name);
        json!({
            "id": self.id, "node_id": format!("R_{}", self.id), "name": name, "full_name": self.name,
            "private": true, "owner": user(self.owner()), "html_url": format!("{url}/{}", self.name),
            "description": null, "fork": false, "url": format!("{url}/repos/{}", self.name),
            "clone_url": format!("{url}/git/{}.git", self.name), "default_branch": self.default_branch,
            "archived": false, "disabled": false, "visibility": "private",
        })
    }

    pub(super) fn pull_json(&self, pull: &Pull, url: &str) -> Value {
        let repository = self.json(url);
        let own = format!("{url}/repos/{}/pulls/{}", self.name, pull.number);
        let issue = format!("{url}/repos/{}/issues/{}", self.name, pull.number);
        let page = self.pull_url(pull.number, url);
        let side = |branch: &str, sha: &str| {
            json!({
                "label": format!("{}:{branch}", self.owner()), "ref": branch, "sha": sha,
                "user": user(self.owner()), "repo": repository,
            })
        };
        let labels: Vec<Value> = pull.labels.iter().map(|label| label_json(label)).collect();
        let reviewers: Vec<Value> = pull.reviewers.iter().map(|login| user(login)).collect();
        json!({
            "id": pull.id, "node_id": pull.node_id(), "number": pull.number, "url": own,
            "html_url": page, "title": pull.title, "body": pull.body,
            "state": if pull.open { "open" } else { "closed" }, "locked": false, "draft": pull.draft,
            "issue_url": issue, "comments_url": format!("{issue}/comments"),
            "commits_url": format!("{own}/commits"), "review_comments_url": format!("{own}/comments"),
            "review_comment_url": format!("{own}/comments{{/number}}"),
            "statuses_url": format!("{url}/repos/{}/statuses/{}", self.name, pull.head_sha),
            "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"),
            "milestone": null, "assignee": null, "auto_merge": null, "active_lock_reason": null,
            "_links": {
                "self": {"href": own}, "html": {"href": page}, "issue": {"href": issue},
                "comments": {"href": format!("{issue}/comments")},
                "review_comments": {"href": format!("{own}/comments")},
                "review_comment": {"href": format!("{own}/comments{{/number}}")},
                "commits": {"href": format!("{own}/commits")},
                "statuses": {"href": format!("{url}/repos/{}/statuses/{}", self.name, pull.head_sha)},
            },
            "user": user(&pull.author), "head": side(&pull.head, &pull.head_sha),
            "base": side(&pull.base, &pull.base_sha), "labels": labels, "requested_reviewers": reviewers,
            "requested_teams": [], "assignees": [], "created_at": pull.created, "updated_at": pull.updated,
            "closed_at": pull.closed, "merged": pull.merged_by.is_some(),
            "merged_at": pull.merged_by.as_ref().and(pull.closed.as_ref()),
            "merged_by": pull.merged_by.as_deref().map(user), "merge_commit_sha": pull.merge_sha,
            "mergeable": pull.open, "mergeable_state": if pull.open { "clean" } else { "unknown" },
            "author_association": "CONTRIBUTOR",
        })
    }

    pub(super) fn pull_url(&self, number: u64, url: &str) -> String {
        format!("{url}/{}/pull/{number}", self.name)
    }

    pub(super) fn comment_json(&self, comment: &Comment, url: &str) -> Value {
        let page = self.pull_url(comment.number, url);
        json!({
            "id": comment.id, "node_id": format!("IC_{}", comment.id), "body": comment.body,
            "url": format!("{url}/repos/{}/issues/comments/{}", self.name, comment.id),
            "html_url": format!("{page}#issuecomment-{}", comment.id),
            "issue_url": format!("{url}/repos/{}/issues/{}", self.name, comment.number),
            "user": user(&comment.author), "created_at": comment.created, "updated_at": comment.updated,
            "author_association": "CONTRIBUTOR",
        })
    }

    pub(super) fn check_json(&self, check: &CheckRun, url: &str) -> Value {
        let own = format!("{url}/repos/{}/check-runs/{}", self.name, check.id);
        json!({
            "id": check.id, "node_id": format!("CR_{}", check.id), "name": check.name, "head_sha": check.sha,
            "external_id": "", "url": own, "html_url": format!("{url}/{}/runs/{}", self.name, check.id),
            "details_url": format!("{url}/{}/runs/{}", self.name, check.id), "status": "completed",
            "conclusion": check.conclusion.as_str(), "started_at": check.completed,
            "completed_at": check.completed,
            "output": {
                "title": check.name, "summary": check.output, "text": check.output, "annotations_count": 0,
                "annotations_url": format!("{own}/annotations"),
            },
            "check_suite": {"id": check.suite, "head_sha": check.sha, "head_branch": self.branch_of(&check.sha)},
            "pull_requests": self.pulls_of(&check.sha), "app": ci_app(),
        })
    }

    pub(super) fn suite_json(&self, suite: u64, sha: &str, conclusion: Conclusion, updated: &str) -> Value {
        json!({
            "id": suite, "node_id": format!("CS_{suite}"), "head_branch": self.branch_of(sha), "head_sha": sha,
            "status": "completed", "conclusion": conclusion.as_str(), "before": null, "after": sha,
            "pull_requests": self.pulls_of(sha), "app": ci_app(), "created_at": updated, "updated_at": updated,
            "latest_check_runs_count": self.checks.iter().filter(|check| check.suite == suite).count(),
        })
    }

    pub(super) fn review_json(&self, pull: &Pull, review: &Review, url: &str) -> Value {
        let page = self.pull_url(pull.number, url);
        json!({
            "id": review.id, "node_id": format!("PRR_{}", review.id), "user": user(&review.author),
            "body": review.body, "state": review.state, "commit_id": review.sha,
            "html_url": format!("{page}#pullrequestreview-{}", review.id), "submitted_at": review.submitted,
            "author_association": "MEMBER",
        })
    }

    fn branch_of(&self, sha: &str) -> Option<&str> {
        let pull = self.pulls.values().find(|pull| pull.head_sha == sha);
        pull.map(|pull| pull.head.as_str())
    }

    fn pulls_of(&self, sha: &str) -> Vec<Value> {
        let pulls = self
            .pulls
            .values()
            .filter(|pull| pull.open && pull.head_sha == sha);
        pulls
            .map(|pull| {
                json!({
                    "id": pull.id, "number": pull.number, "head": {"ref": pull.head, "sha": pull.head_sha},
                    "base": {"ref": pull.base, "sha": pull.base_sha},
                })
            })
            .collect()
    }
}

pub(super) fn label_json(label: &str) -> Value {
    json!({"id": label.len(), "name": label, "color": "ededed", "default": false, "description": null})
}

fn ci_app() -> Value {
    json!({"id": 15368, "slug": "github-actions", "name": "GitHub Actions"})
}

impl Pull {
    pub(super) fn node_id(&self) -> String {
        format!("PR_kwDO{:06}", self.id)
    }

    pub(super) fn state(&self, repo: &Repo, url: &str) -> PullRequestState {
        PullRequestState {
            number: self.number,
            title: self.title.clone(),
            body: self.body.clone(),
            author: self.author.clone(),
            head: self.head.clone(),
            head_sha: self.head_sha.clone(),
            base: self.base.clone(),
            draft: self.draft,
            open: self.open,
            merged: self.merged_by.is_some(),
            url: repo.pull_url(self.number, url),
            labels: self.labels.clone(),
            requested_reviewers: self.reviewers.clone(),
        }
    }
}

impl Comment {
    pub(super) fn state(&self) -> CommentState {
        CommentState {
            id: self.id,
            author: self.author.clone(),
            body: self.body.clone(),
        }
    }
}

impl Conclusion {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
            Self::Cancelled => "cancelled",
        }
    }
}
