//! Comments on issues, and their webhooks.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::desk::{JiraState, now_ms};
use super::state::{JiraAccount, TicketCommentRecord, TicketRecord, jira_now};

impl JiraState {
    pub(super) fn add_comment(
        &self,
        key: &str,
        by: &JiraAccount,
        body: Value,
        properties: Vec<Value>,
    ) -> Option<TicketCommentRecord> {
        let mut issues = self.issues.lock();
        // The id is drawn before the issue is borrowed.
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let now = jira_now();
        let comment = TicketCommentRecord {
            id,
            issue: issue.id,
            author: by.clone(),
            editor: by.clone(),
            body,
            created: now.clone(),
            updated: now,
            properties,
            visibility: None,
            made: Instant::now(),
        };
        issue.updated.clone_from(&comment.created);
        issue.comments.push(comment.clone());
        self.send_comment("comment_created", issue, &comment);
        Some(comment)
    }

    /// Restricts a comment to a role, or shows it to all users.
    pub(super) fn show_comment_to(&self, key: &str, id: &str, visibility: Option<Value>) -> Option<()> {
        let mut issues = self.issues.lock();
        let mut comments = issues.named(key)?.comments.iter_mut();
        comments.find(|comment| comment.id.to_string() == id)?.visibility = visibility;
        Some(())
    }

    pub(super) fn update_comment(
        &self,
        key: &str,
        id: &str,
        by: &JiraAccount,
        body: Value,
    ) -> Option<TicketCommentRecord> {
        let mut issues = self.issues.lock();
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
        let mut issues = self.issues.lock();
        let comments = &mut issues.named(key)?.comments;
        let position = comments.iter().position(|comment| comment.id.to_string() == id)?;
        comments.remove(position);
        Some(())
    }

    pub(super) fn comment_as(&self, key: &str, by: &JiraAccount, text: &str) -> Option<TicketCommentRecord> {
        self.add_comment(key, by, self.site.text(text), Vec::new())
    }

    fn send_comment(&self, event: &str, issue: &TicketRecord, comment: &TicketCommentRecord) {
        let sent = comment.webhook_json(&self.site);
        if self.site.is_cloud() {
            let payload = json!({
                "timestamp": now_ms(), "webhookEvent": event, "eventType": "primaryAction", "comment": sent,
                "issue": issue.commented_json(&self.statuses, &self.site),
            });
            return self.webhooks.send(event, payload);
        }
        // On a Data Center the comment's event has no issue; the issue's event carries both.
        let kind = match event {
            "comment_created" => "issue_commented",
            _ => "issue_comment_edited",
        };
        let of_the_issue = json!({
            "timestamp": now_ms(), "webhookEvent": "jira:issue_updated", "issue_event_type_name": kind,
            "user": comment.editor.json(&self.site), "issue": issue.webhook_json(&self.statuses, &self.site),
            "comment": sent,
        });
        self.webhooks.send("jira:issue_updated", of_the_issue);
        let alone = json!({"timestamp": now_ms(), "webhookEvent": event, "comment": sent});
        self.webhooks.send(event, alone);
    }
}
