//! Jira's webhook payloads.

use domain::{Instance, Source, TicketKey, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{Unreadable, read};
use crate::said::{Order, Remark, comment_key};

/// What Jira said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An issue came into a status, by a move or by its creation.
    Entered(Entered),
    /// An issue's text changed.
    Edited(Entered),
    /// Somebody commented.
    Commented {
        remark: Remark,
        order: Order,
        /// The author's account id.
        account: String,
    },
    /// Nothing that a job follows from; what it was.
    Other(String),
}

impl Event {
    /// The same event of the issue of that key on an instance.
    pub(crate) fn on(mut self, instance: Option<&Instance>) -> Self {
        let ticket = match &mut self {
            Self::Entered(entered) | Self::Edited(entered) => &mut entered.ticket,
            Self::Commented { order, .. } => &mut order.ticket,
            Self::Other(_) => return self,
        };
        *ticket = ticket.clone().on(instance);
        self
    }
}

/// An issue came into a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) ticket: TicketKey,
    pub(crate) status: String,
    /// Changelog id of the move; absent for an issue created in the status.
    pub(crate) changelog: Option<String>,
    pub(crate) at: Timestamp,
    /// Who did it; without an id when Jira does not say.
    pub(crate) actor: jira::Account,
    pub(crate) source: Source,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    webhook_event: String,
    timestamp: Option<i64>,
    user: Option<User>,
    issue: Option<Issue>,
    changelog: Option<Changelog>,
    comment: Option<Comment>,
}

#[derive(Deserialize)]
struct Comment {
    id: Id,
    author: Option<User>,
    #[serde(default)]
    body: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    account_id: Option<String>,
    name: Option<String>,
    display_name: Option<String>,
}

#[derive(Deserialize)]
struct Issue {
    key: String,
    #[serde(default)]
    fields: Fields,
}

#[derive(Default, Deserialize)]
struct Fields {
    status: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Changelog {
    id: Id,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(u64),
}

#[derive(Deserialize)]
struct Item {
    field: String,
    #[serde(rename = "toString")]
    to: Option<String>,
}

/// Reads one delivery.
pub(crate) fn parse(body: &[u8]) -> Result<Event, Unreadable> {
    let payload: Payload = read("jira", body)?;
    let other = || Ok(Event::Other(payload.webhook_event.chars().take(60).collect()));
    if payload.webhook_event == "comment_created" {
        return Ok(commented(payload)?.unwrap_or_else(|| Event::Other("comment_created".to_owned())));
    }
    let mut is_edit = false;
    let (status, changelog) = match payload.webhook_event.as_str() {
        "jira:issue_updated" => match payload.changelog.map(change).unwrap_or_default() {
            Change::Status(id, status) => (status, Some(id)),
            Change::Text(id) => {
                is_edit = true;
                (String::new(), Some(id))
            }
            Change::Other => return other(),
        },
        "jira:issue_created" => match payload
            .issue
            .as_ref()
            .and_then(|issue| issue.fields.status.as_ref())
        {
            Some(status) => (status.name.clone(), None),
            None => return other(),
        },
        _ => return other(),
    };
    let broken = |problem: &str| Unreadable {
        event: payload.webhook_event.clone(),
        problem: problem.to_owned(),
    };
    let issue = payload.issue.ok_or_else(|| broken("the issue is missing"))?;
    let at = payload
        .timestamp
        .ok_or_else(|| broken("the timestamp is missing"))?;
    let entered = Entered {
        ticket: TicketKey::jira(&issue.key).map_err(|invalid| broken(&invalid.to_string()))?,
        status,
        changelog,
        at: Timestamp::from_unix_ms(at),
        actor: payload.user.map_or_else(nobody, actor),
        source: Source::Webhook,
    };
    Ok(if is_edit {
        Event::Edited(entered)
    } else {
        Event::Entered(entered)
    })
}

/// What a changelog tells, with its id.
#[derive(Default)]
enum Change {
    Status(String, String),
    Text(String),
    #[default]
    Other,
}

/// A new comment.
fn commented(payload: Payload) -> Result<Option<Event>, Unreadable> {
    let (Some(comment), Some(issue), Some(at)) = (payload.comment, payload.issue, payload.timestamp) else {
        return Ok(None);
    };
    let text = markdown(comment.body).unwrap_or_default();
    let author = comment.author.or(payload.user).map_or_else(nobody, actor);
    let ticket = TicketKey::jira(&issue.key).map_err(|invalid| Unreadable {
        event: "comment_created".to_owned(),
        problem: invalid.to_string(),
    })?;
    let order = Order {
        ticket,
        key: comment_key(comment.id.into_text()),
        at: Timestamp::from_unix_ms(at),
        actor: author.display_name,
        source: Source::Webhook,
    };
    Ok(Some(Event::Commented {
        remark: Remark::of(&text),
        order,
        account: author.id,
    }))
}

impl Id {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

fn change(changelog: Changelog) -> Change {
    let id = changelog.id.into_text();
    let is_text = |item: &Item| matches!(item.field.as_str(), "summary" | "description");
    let text = changelog.items.iter().any(is_text);
    let moved = changelog
        .items
        .into_iter()
        .rev()
        .find(|item| item.field == "status");
    match moved.and_then(|item| item.to) {
        Some(to) => Change::Status(id, to),
        None if text => Change::Text(id),
        None => Change::Other,
    }
}

fn actor(user: User) -> jira::Account {
    jira::Account {
        id: user.account_id.or(user.name).unwrap_or_default(),
        display_name: user.display_name.unwrap_or_default(),
    }
}

/// Somebody whom Jira does not name.
pub(crate) const fn nobody() -> jira::Account {
    jira::Account {
        id: String::new(),
        display_name: String::new(),
    }
}

/// A text that is either plain or a document.
fn markdown(text: Value) -> Option<String> {
    match text {
        Value::String(text) => Some(text),
        document @ Value::Object(_) => Some(jira::adf::to_markdown(&document)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(payload: &Value) -> Result<Event, Unreadable> {
        parse(payload.to_string().as_bytes())
    }

    fn moved(id: &Value) -> Value {
        json!({"webhookEvent": "jira:issue_updated", "timestamp": 1_700_000_000_000_i64,
            "user": {"accountId": "a1", "displayName": "Ada"},
            "issue": {"id": "1", "key": "ENG-12", "fields": {"summary": "Fix it", "description": "Please"}},
            "changelog": {"id": id, "items": [
                {"field": "assignee", "toString": "Bob"},
                {"field": "status", "fromString": "To Do", "toString": "Ready for Agent"}]}})
    }

    #[test]
    fn a_move_names_ticket_status_changelog_and_actor() {
        for id in [json!("10023"), json!(10023)] {
            let Ok(Event::Entered(entered)) = event(&moved(&id)) else {
                panic!("no move")
            };
            assert_eq!(entered.ticket.to_string(), "jira:ENG-12");
            assert_eq!(entered.status, "Ready for Agent");
            assert_eq!(entered.changelog.as_deref(), Some("10023"));
            assert_eq!(
                entered.actor,
                jira::Account {
                    id: "a1".to_owned(),
                    display_name: "Ada".to_owned()
                }
            );
        }
    }

    #[test]
    fn an_issue_created_in_a_status_enters_it() {
        let created = json!({"webhookEvent": "jira:issue_created", "timestamp": 5,
            "issue": {"key": "ENG-1", "fields": {"status": {"name": "Ready for Agent"}}}});
        let Ok(Event::Entered(entered)) = event(&created) else {
            panic!("not entered")
        };
        assert_eq!(entered.changelog, None);
    }

    #[test]
    fn updates_without_a_status_change_and_other_events_are_of_no_interest() {
        for payload in [
            json!({"webhookEvent": "jira:issue_updated", "issue": {"key": "ENG-1"}}),
            json!({"webhookEvent": "comment_created"}),
            json!({"webhookEvent": "jira:issue_updated", "changelog": {"id": "1", "items": []}}),
        ] {
            assert!(matches!(event(&payload), Ok(Event::Other(_))), "{payload}");
        }
    }

    #[test]
    fn garbage_is_unreadable() {
        let mut bad_key = moved(&json!("1"));
        bad_key["issue"]["key"] = json!("../../etc");
        let mut no_issue = moved(&json!("1"));
        no_issue["issue"] = Value::Null;
        let mut no_time = moved(&json!("1"));
        no_time["timestamp"] = Value::Null;
        for payload in [
            json!({}),
            json!([]),
            json!("x"),
            json!({"webhookEvent": 5}),
            bad_key,
            no_issue,
            no_time,
        ] {
            assert!(event(&payload).is_err(), "{payload}");
        }
    }
}
