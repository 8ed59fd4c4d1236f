//! Comments on issues, and the webhooks that tell of them.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::adf;
use super::desk::{Desk, now_ms};
use super::state::{Account, Comment, Issue, jira_now};
use crate::http::lock;

impl Desk {
    pub(super) fn add_comment(
        &self,
        key: &str,
        by: &Account,
        body: Value,
        properties: Vec<Value>,
    ) -> Option<Comment> {
        let mut issues = lock(&self.issues);
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let now = jira_now();
        let comment = Comment {
            id,
            issue: issue.id,
            author: by.clone(),
            editor: by.clone(),
            body,
            created: now.clone(),
            updated: now,
            properties,
            made: Instant::now(),
        };
        issue.updated.clone_from(&comment.created);
        issue.comments.push(comment.clone());
        self.send_comment("comment_created", issue, &comment);
        Some(comment)
    }

    pub(super) fn update_comment(&self, key: &str, id: &str, by: &Account, body: Value) -> Option<Comment> {
        let mut issues = lock(&self.issues);
        let issue = issues.named(key)?;
        let comment = issue
            .comments
            .iter_mut()
            .find(|comment| comment.id.to_string() == id)?;
        comment.body = body;
        comment.editor = by.clone();
        comment.updated = jira_now();
        let comment = comment.clone();
        issue.updated.clone_from(&comment.updated);
        self.send_comment("comment_updated", issue, &comment);
        Some(comment)
    }

    pub(super) fn delete_comment(&self, key: &str, id: &str) -> Option<()> {
        let mut issues = lock(&self.issues);
        let comments = &mut issues.named(key)?.comments;
        let position = comments.iter().position(|comment| comment.id.to_string() == id)?;
        comments.remove(position);
        Some(())
    }

    pub(super) fn comment_as(&self, key: &str, by: &Account, text: &str) -> Option<Comment> {
        self.add_comment(key, by, adf::from_plain(text), Vec::new())
    }

    fn send_comment(&self, event: &str, issue: &Issue, comment: &Comment) {
        let payload = json!({
            "timestamp": now_ms(), "webhookEvent": event, "eventType": "primaryAction",
            "comment": comment.webhook_json(&self.url), "issue": issue.commented_json(&self.statuses, &self.url),
        });
        self.webhooks.send(event, payload);
    }
}
