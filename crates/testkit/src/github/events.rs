//! What webhooks say.

use serde_json::{Value, json};

use super::READER_INSTALLATION_ID;
use super::hub::Hub;
use super::state::{Comment, Pull, Repo, user};

impl Hub {
    pub(super) fn tell_comment(&self, repo: &Repo, comment: &Comment, action: &str, by: &str) {
        let Some(pull) = repo.pulls.get(&comment.number) else {
            return;
        };
        let page = repo.pull_url(pull.number, &self.url);
        let payload = json!({
            "action": action, "comment": repo.comment_json(comment, &self.url),
            "issue": {
                "id": pull.id, "number": pull.number, "title": pull.title, "body": pull.body,
                "state": if pull.open { "open" } else { "closed" }, "user": user(&pull.author), "labels": [],
                "html_url": page, "pull_request": {"html_url": page, "url": format!("{}/repos/{}/pulls/{}", self.url, repo.name, pull.number)},
            },
        });
        self.tell(repo, "issue_comment", payload, by);
    }

    pub(super) fn tell_pull(&self, repo: &Repo, pull: &Pull, action: &str, by: &str) {
        let pull_request = repo.pull_json(pull, &self.url);
        let payload = json!({"action": action, "number": pull.number, "pull_request": pull_request});
        self.tell(repo, "pull_request", payload, by);
    }

    pub(super) fn tell(&self, repo: &Repo, event: &str, mut payload: Value, by: &str) {
        payload["repository"] = repo.json(&self.url);
        payload["sender"] = user(by);
        payload["installation"] = json!({"id": READER_INSTALLATION_ID});
        self.webhooks.send(event, payload);
    }
}
