//! Tickets as the stand-in keeps them, and how Jira writes them down.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::adf;

/// Somebody who acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) email: String,
}

impl Account {
    pub(super) fn person(name: &str) -> Self {
        let word: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .collect();
        Self {
            id: format!("557058:{word}"),
            name: name.to_owned(),
            email: format!("{word}@people.test"),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "accountId": self.id, "displayName": self.name, "emailAddress": self.email, "active": true,
            "accountType": "atlassian", "timeZone": "Etc/UTC",
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) author: Account,
    pub(super) body: Value,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) properties: Vec<Value>,
    pub(super) made: Instant,
}

impl Comment {
    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id.to_string(), "author": self.author.json(), "updateAuthor": self.author.json(),
            "body": self.body, "created": self.created, "updated": self.updated, "jsdPublic": true,
            "properties": self.properties,
        })
    }

    /// As webhooks carry it: the body as text.
    pub(super) fn webhook_json(&self) -> Value {
        let mut value = self.json();
        value["body"] = Value::String(adf::plain(&self.body));
        value
    }
}

#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) id: u64,
    pub(super) author: Account,
    pub(super) created: String,
    pub(super) items: Vec<Value>,
}

impl History {
    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id.to_string(), "author": self.author.json(), "created": self.created, "items": self.items,
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct RemoteLink {
    pub(super) id: u64,
    pub(super) global_id: String,
    pub(super) object: Value,
}

#[derive(Debug, Clone)]
pub(super) struct Issue {
    pub(super) id: u64,
    pub(super) key: String,
    pub(super) project: String,
    pub(super) summary: String,
    pub(super) description: Value,
    pub(super) kind: String,
    pub(super) labels: Vec<String>,
    pub(super) assignee: Option<Account>,
    pub(super) status: usize,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) status_changed: String,
    pub(super) comments: Vec<Comment>,
    pub(super) histories: Vec<History>,
    pub(super) links: Vec<RemoteLink>,
}

/// A status of the workflow.
#[derive(Debug, Clone)]
pub(super) struct Status {
    pub(super) name: String,
    pub(super) category: String,
}

impl Status {
    pub(super) fn json(&self, index: usize) -> Value {
        let (id, name) = match self.category.as_str() {
            "done" => (3, "Done"),
            "indeterminate" => (4, "In Progress"),
            _ => (2, "To Do"),
        };
        json!({
            "id": status_id(index), "name": self.name,
            "statusCategory": {"id": id, "key": self.category, "name": name},
        })
    }
}

pub(super) fn status_id(index: usize) -> String {
    (10_000 + index).to_string()
}

impl Issue {
    /// All fields, as the REST interface gives them.
    pub(super) fn fields(&self, statuses: &[Status]) -> Value {
        let comments: Vec<Value> = self.comments.iter().map(Comment::json).collect();
        json!({
            "summary": self.summary, "description": self.description, "labels": self.labels,
            "issuetype": {"id": "10001", "name": self.kind, "subtask": false},
            "priority": {"id": "3", "name": "Medium"},
            "project": {"id": "10000", "key": self.project, "name": self.project},
            "status": statuses[self.status].json(self.status), "statuscategorychangedate": self.status_changed,
            "created": self.created, "updated": self.updated, "assignee": self.assignee.as_ref().map(Account::json),
            "creator": Account::person("Rita Reporter").json(), "reporter": Account::person("Rita Reporter").json(), "issuelinks": [], "attachment": [],
            "comment": {"comments": comments, "total": comments.len(), "maxResults": comments.len(), "startAt": 0},
        })
    }

    /// As webhooks carry it: texts as text, no comments.
    pub(super) fn webhook_json(&self, statuses: &[Status], url: &str) -> Value {
        let mut fields = self.fields(statuses);
        fields["description"] = Value::String(adf::plain(&self.description).replace('\n', "\n\n"));
        if let Some(fields) = fields.as_object_mut() {
            fields.remove("comment");
        }
        json!({"id": self.id.to_string(), "key": self.key, "self": self.link(url), "fields": fields})
    }

    pub(super) fn link(&self, url: &str) -> String {
        format!("{url}/rest/api/3/issue/{}", self.id)
    }
}

/// The time as Jira writes it, such as `2026-01-02T03:04:05.678+0000`.
pub(super) fn jira_now() -> String {
    let format = time::macros::format_description!(
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]+0000"
    );
    time::OffsetDateTime::now_utc().format(format).unwrap_or_default()
}

pub(super) fn jira_time(text: &str) -> Option<time::OffsetDateTime> {
    let format = time::macros::format_description!(
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]+0000"
    );
    time::PrimitiveDateTime::parse(text, format)
        .ok()
        .map(time::PrimitiveDateTime::assume_utc)
}
