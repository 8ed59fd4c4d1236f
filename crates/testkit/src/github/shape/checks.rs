//! JSON of check runs and check suites.

use serde_json::{Value, json};

use super::commits::simple_commit;
use super::{extend_object, render_app};
use crate::github::history;
use crate::github::state::{CheckRunRecord, RepositoryRecord};

/// Login of the App that runs the checks.
pub(in crate::github) const CI_LOGIN: &str = "github-actions[bot]";

impl RepositoryRecord {
    /// Renders a check run for REST. Webhooks carry more of its suite.
    pub(in crate::github) fn check_json(&self, check: &CheckRunRecord, url: &str) -> Value {
        let own = format!("{}/check-runs/{}", self.own_url(url), check.id);
        let page = format!(
            "{url}/{}/actions/runs/{}/job/{}",
            self.name, check.suite, check.id
        );
        let at_github = match check.elsewhere {
            Some(_) => format!("{url}/{}/runs/{}", self.name, check.id),
            None => page.clone(),
        };
        let page = check.elsewhere.as_ref().unwrap_or(&page);
        let end = |value: &str| {
            if self.is_under_way(check.suite, check.conclusion) {
                Value::Null
            } else {
                value.into()
            }
        };
        let conclusion = end(check.conclusion.as_str());
        let status = if conclusion.is_null() {
            "in_progress"
        } else {
            "completed"
        };
        json!({
            "id": check.id, "node_id": format!("CR_{}", check.id), "name": check.name, "head_sha": check.sha,
            "external_id": check.external_id, "url": own, "html_url": at_github, "details_url": page, "status": status,
            "conclusion": conclusion, "started_at": check.completed, "completed_at": end(&check.completed),
            "output": {
                "title": check.title, "summary": check.output, "text": check.output, "annotations_count": 0,
                "annotations_url": format!("{own}/annotations"),
            },
            "check_suite": {"id": check.suite}, "pull_requests": self.minimal_pulls(&check.sha, url),
            "app": render_app(check.app),
        })
    }

    /// Renders a check run for webhooks.
    pub(in crate::github) fn check_event_json(&self, check: &CheckRunRecord, url: &str) -> Value {
        let suite = self.suite_json(
            check.suite,
            &check.sha,
            check.conclusion.as_str(),
            &check.completed,
            url,
        );
        extend_object(self.check_json(check, url), json!({"check_suite": suite}))
    }

    fn suite_json(&self, suite: u64, sha: &str, conclusion: &str, at: &str, url: &str) -> Value {
        json!({
            "id": suite, "node_id": format!("CS_{suite}"), "head_branch": self.branch_of(sha), "head_sha": sha,
            "status": "completed", "conclusion": conclusion, "before": null, "after": sha,
            "url": format!("{}/check-suites/{suite}", self.own_url(url)),
            "pull_requests": self.minimal_pulls(sha, url), "app": render_app(CI_LOGIN), "created_at": at, "updated_at": at,
        })
    }

    /// Renders a check suite for the webhook that reports its completion.
    pub(in crate::github) fn suite_event_json(&self, suite: u64, sha: &str, at: &str, url: &str) -> Value {
        let runs = || self.checks.iter().filter(|check| check.suite == suite);
        let red = runs().find(|check| check.conclusion.as_str() != "success");
        let conclusion = red.map_or("success", |check| check.conclusion.as_str());
        let head = history::read_commit(&self.path, sha).ok();
        let more = json!({
            "latest_check_runs_count": runs().count(), "head_commit": head.as_ref().map(simple_commit),
            "check_runs_url": format!("{}/check-suites/{suite}/check-runs", self.own_url(url)),
            "rerequestable": true, "runs_rerequestable": true,
        });
        extend_object(self.suite_json(suite, sha, conclusion, at, url), more)
    }

    pub(in crate::github) fn branch_of(&self, sha: &str) -> Option<&str> {
        let pull = self.pulls.values().find(|pull| pull.head_sha == sha);
        pull.map(|pull| pull.head.as_str())
            .or_else(|| self.queue_branch_of(sha))
    }

    pub(in crate::github) fn minimal_pulls(&self, sha: &str, url: &str) -> Vec<Value> {
        let pulls = self.pulls.values();
        pulls
            .filter(|pull| pull.open && pull.head_sha == sha)
            .map(|pull| self.minimal_pull_json(pull, url))
            .collect()
    }
}
