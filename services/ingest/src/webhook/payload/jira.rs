//! Payload of Jira's webhooks: one shape for all events.

use domain::{InstanceName, TicketKey, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::UnreadablePayload;

/// Event of a delivery that names a ticket to read. Jira has no such event.
pub(crate) const TICKET_READ_EVENT: &str = "journeyman:look";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JiraHookPayload {
    /// Empty in the body of a web request of Automation that is signed like a webhook.
    #[serde(default)]
    pub(crate) webhook_event: String,
    /// Key of the issue, in a body that is the data of an issue.
    pub(crate) key: Option<String>,
    /// Type of a `jira:issue_updated` event, such as `issue_commented`.
    #[serde(rename = "issue_event_type_name", default)]
    pub(crate) issue_event: Option<String>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) user: Option<JiraHookUser>,
    pub(crate) issue: Option<JiraHookIssue>,
    pub(crate) changelog: Option<JiraHookChangelog>,
    pub(crate) comment: Option<JiraHookComment>,
}

/// Body that names an issue: its data, which have the key at the top, or an object around them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IssueNameBody {
    webhook_event: Option<Value>,
    key: Option<String>,
    issue: Option<NamedIssue>,
}

#[derive(Deserialize)]
struct NamedIssue {
    key: String,
}

impl IssueNameBody {
    /// Payload with the key alone; `None` for an event, whose parts count, and for a body without a key.
    pub(crate) fn into_payload(self) -> Option<JiraHookPayload> {
        if self.webhook_event.is_some() {
            return None;
        }
        let key = self.issue.map(|issue| issue.key).or(self.key)?;
        Some(JiraHookPayload {
            webhook_event: String::new(),
            key: Some(key),
            issue_event: None,
            timestamp: None,
            user: None,
            issue: None,
            changelog: None,
            comment: None,
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct JiraHookComment {
    pub(crate) id: TextOrNumber,
    /// Address in the REST interface. Another type of value costs only events without an issue.
    #[serde(rename = "self", default)]
    pub(crate) address: Value,
    pub(crate) author: Option<JiraHookUser>,
    #[serde(default)]
    pub(crate) body: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JiraHookUser {
    pub(crate) account_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) display_name: Option<String>,
    /// `atlassian`, `app` or `customer`.
    #[serde(default)]
    pub(crate) account_type: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct JiraHookIssue {
    /// Numeric id, which stays when the key changes.
    pub(crate) id: Option<TextOrNumber>,
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) fields: JiraHookFields,
}

#[derive(Default, Deserialize)]
pub(crate) struct JiraHookFields {
    pub(crate) status: Option<NamedStatus>,
}

#[derive(Deserialize)]
pub(crate) struct NamedStatus {
    pub(crate) name: String,
}

#[derive(Deserialize)]
pub(crate) struct JiraHookChangelog {
    pub(crate) id: TextOrNumber,
    #[serde(default)]
    pub(crate) items: Vec<ChangelogItem>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum TextOrNumber {
    Text(String),
    Number(u64),
}

#[derive(Deserialize)]
pub(crate) struct ChangelogItem {
    pub(crate) field: String,
    #[serde(rename = "fromString")]
    pub(crate) from: Option<String>,
    #[serde(rename = "toString")]
    pub(crate) to: Option<String>,
}

/// Issue as an event names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenIssue {
    pub(crate) id: u64,
    pub(crate) key: TicketKey,
    /// Key that the event's changelog says it had before.
    pub(crate) moved_from: Option<TicketKey>,
    pub(crate) at: Timestamp,
}

impl JiraHookPayload {
    /// Issue and time of the event.
    ///
    /// # Errors
    /// [`UnreadablePayload`] when one of them is missing or invalid.
    pub(crate) fn ticket_and_time(
        &self,
        instance: Option<&InstanceName>,
    ) -> Result<(TicketKey, Timestamp), UnreadablePayload> {
        let broken = |problem: &str| UnreadablePayload {
            // The name comes from the payload and goes into the log, so its length is limited.
            event: self.webhook_event.chars().take(60).collect(),
            problem: problem.to_owned(),
        };
        let issue = self
            .issue
            .as_ref()
            .ok_or_else(|| broken("the issue is missing"))?;
        let at = self.timestamp.ok_or_else(|| broken("the timestamp is missing"))?;
        let ticket = TicketKey::jira_on(instance.cloned(), &issue.key);
        let ticket = ticket.map_err(|invalid| broken(&invalid.to_string()))?;
        Ok((ticket, Timestamp::from_unix_ms(at)))
    }

    /// Ticket that the delivery asks to read; `None` for an event of Jira.
    ///
    /// # Errors
    /// [`UnreadablePayload`] when the body is neither an event nor names an issue.
    pub(crate) fn requested_ticket(
        &self,
        instance: Option<&InstanceName>,
    ) -> Result<Option<TicketKey>, UnreadablePayload> {
        if !self.webhook_event.is_empty() && self.webhook_event != TICKET_READ_EVENT {
            return Ok(None);
        }
        let broken = |problem: String| UnreadablePayload {
            event: "jira".to_owned(),
            problem,
        };
        let key = self.issue.as_ref().map(|issue| &issue.key).or(self.key.as_ref());
        let key = key.ok_or_else(|| {
            broken("it has neither webhookEvent nor the key of an issue (docs/data-center.md, docs/start/jira-automation.md)".to_owned())
        })?;
        let ticket = TicketKey::jira_on(instance.cloned(), key);
        ticket.map(Some).map_err(|invalid| broken(invalid.to_string()))
    }

    /// Reason why nothing follows from an event that lacks a part.
    pub(crate) fn missing_part(&self) -> Option<&'static str> {
        let is_comment = self.webhook_event == "comment_created" && self.issue.is_none();
        is_comment.then_some(
            "comment_created has no issue, and its comment is of none that a site with rules shows",
        )
    }

    /// Issue of the event with its id; `None` without an id, and for events that name no issue.
    pub(crate) fn seen_issue(&self, instance: Option<&InstanceName>) -> Option<SeenIssue> {
        let issue = self.issue.as_ref()?;
        let parse_key = |text: &str| TicketKey::jira_on(instance.cloned(), text).ok();
        let key = parse_key(&issue.key)?;
        let mut items = self.changelog.iter().flat_map(|changelog| &changelog.items);
        let is_move = |item: &&ChangelogItem| item.field == "Key" && item.to.as_deref() == Some(&*issue.key);
        Some(SeenIssue {
            id: issue.id.as_ref()?.text().parse().ok()?,
            moved_from: items
                .find(is_move)
                .and_then(|item| parse_key(item.from.as_deref()?)),
            key,
            at: Timestamp::from_unix_ms(self.timestamp?),
        })
    }

    /// Current status of the issue.
    pub(crate) fn status(&self) -> Option<String> {
        Some(self.issue.as_ref()?.fields.status.as_ref()?.name.clone())
    }

    /// True when the event changed the assignee of the issue.
    pub(crate) fn is_assignment(&self) -> bool {
        let mut items = self.changelog.iter().flat_map(|changelog| &changelog.items);
        self.webhook_event == "jira:issue_updated" && items.any(|item| item.field == "assignee")
    }

    /// New comment of an event without the comment's issue, as a Data Center sends it.
    pub(crate) fn lone_comment(&self) -> Option<&JiraHookComment> {
        let is_lone = self.issue.is_none() && self.timestamp.is_some();
        self.new_comment().filter(|_| is_lone)
    }

    /// Adds the issue that the event is about.
    pub(crate) fn add_issue(&mut self, id: u64, key: &TicketKey) {
        self.issue = Some(JiraHookIssue {
            id: Some(TextOrNumber::Number(id)),
            key: key.short(),
            fields: JiraHookFields::default(),
        });
    }

    /// New comment of the event. The comment event of a Data Center does not contain the issue; its issue event contains
    /// both.
    pub(crate) fn new_comment(&self) -> Option<&JiraHookComment> {
        let is_new = match self.webhook_event.as_str() {
            "comment_created" => true,
            "jira:issue_updated" => self.issue_event.as_deref() == Some("issue_commented"),
            _ => false,
        };
        self.comment.as_ref().filter(|_| is_new)
    }

    /// Account that caused the event.
    pub(crate) fn actor(&self) -> domain::TrackerAccount {
        self.user.as_ref().map_or_else(build_unknown_account, Into::into)
    }
}

impl JiraHookChangelog {
    pub(crate) fn id(&self) -> String {
        self.id.text()
    }

    /// New status of the issue, with the id of the change.
    pub(crate) fn status(&self) -> Option<(String, String)> {
        // Of several status changes in one entry, the last one counts.
        let moved = self.items.iter().rev().find(|item| item.field == "status")?;
        Some((self.id(), moved.to.clone()?))
    }

    /// True for a change of the issue's text.
    pub(crate) fn is_edit(&self) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item.field.as_str(), "summary" | "description"))
    }
}

impl TextOrNumber {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

impl JiraHookUser {
    /// True for a customer of a service desk.
    pub(crate) fn is_customer(&self) -> bool {
        self.account_type.as_deref() == Some("customer")
    }
}

impl From<&JiraHookUser> for domain::TrackerAccount {
    fn from(user: &JiraHookUser) -> Self {
        Self {
            // A Data Center identifies accounts by name and sends no account id.
            id: user
                .account_id
                .clone()
                .or_else(|| user.name.clone())
                .unwrap_or_default(),
            display_name: user.display_name.clone().unwrap_or_default(),
            is_bot: user.account_type.as_deref() == Some("app"),
        }
    }
}

/// Account that Jira does not name.
pub(crate) const fn build_unknown_account() -> domain::TrackerAccount {
    domain::TrackerAccount {
        id: String::new(),
        display_name: String::new(),
        is_bot: false,
    }
}

/// Markdown of a text that is either wiki markup (Data Center) or an Atlassian document (Cloud).
pub(crate) fn convert_to_markdown(text: &Value) -> Option<String> {
    match text {
        Value::String(text) => Some(jira::wiki::to_markdown(text)),
        document @ Value::Object(_) => Some(jira::adf::to_markdown(document)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::ServiceOrigin;
    use queue::WebhookDelivery;
    use serde_json::json;

    use super::{super::WebhookPayload, *};

    fn read_seen_issue(payload: Value) -> Option<(u64, String, Option<String>)> {
        let payload: JiraHookPayload = serde_json::from_value(payload).unwrap();
        let seen = payload.seen_issue(None)?;
        Some((seen.id, seen.key.short(), seen.moved_from.map(|key| key.short())))
    }

    fn read_requested_ticket(body: &Value) -> Result<Option<String>, UnreadablePayload> {
        let delivery = WebhookDelivery {
            source: ServiceOrigin::Jira(None),
            id: "d".to_owned(),
            event: String::new(),
            received_at: Timestamp::default(),
            body: body.to_string().into(),
        };
        let requested = WebhookPayload::open(&delivery)?.requested_ticket()?;
        Ok(requested.map(|key| key.short()))
    }

    #[test]
    fn issue_data_of_any_shape_ask_to_read_issue() {
        let pages = json!({"startAt": 0, "maxResults": 0, "total": 0, "histories": null});
        for body in [
            json!({"key": "ENG-1"}),
            json!({"self": "https://x", "id": 10001, "key": "ENG-1", "changelog": pages, "fields": {"status": null}}),
            json!({"issue": {"key": "ENG-1", "id": null, "fields": null}, "timestamp": "2026-11-21", "user": "ada"}),
        ] {
            assert_eq!(
                read_requested_ticket(&body),
                Ok(Some("ENG-1".to_owned())),
                "{body}"
            );
        }
        // Without its own parts an event is unreadable.
        for body in [
            json!({"webhookEvent": "jira:issue_updated", "issue": {"key": "ENG-1"}, "changelog": pages}),
            json!({"issue": {"id": 1}, "changelog": pages}),
        ] {
            assert!(read_requested_ticket(&body).is_err(), "{body}");
        }
    }

    #[test]
    fn event_issue_has_id_and_former_key() {
        let event = |id: Value, items: Value| {
            json!({"webhookEvent": "jira:issue_updated", "timestamp": 5, "issue": {"id": id, "key": "NEW-5"},
                "changelog": {"id": "7", "items": items}})
        };
        let key = |from: Value, to: Value| json!({"field": "Key", "fromString": from, "toString": to});
        let seen = |former: Option<&str>| Some((10_001, "NEW-5".to_owned(), former.map(str::to_owned)));
        for (id, items, expected) in [
            (
                json!("10001"),
                json!([key(json!("OLD-1"), json!("NEW-5"))]),
                seen(Some("OLD-1")),
            ),
            (json!(10001), json!([{"field": "status"}]), seen(None)),
            // Another key, or one that is none, moves nothing.
            (
                json!("10001"),
                json!([key(json!("OLD-1"), json!("NEW-6"))]),
                seen(None),
            ),
            (
                json!("10001"),
                json!([key(json!("old 1"), json!("NEW-5"))]),
                seen(None),
            ),
            (
                json!("10001"),
                json!([key(json!(null), json!("NEW-5"))]),
                seen(None),
            ),
            (json!("1e4"), json!([]), None),
            (json!("-1"), json!([]), None),
        ] {
            assert_eq!(
                read_seen_issue(event(id.clone(), items.clone())),
                expected,
                "{id} {items}"
            );
        }
        assert_eq!(
            read_seen_issue(
                json!({"webhookEvent": "comment_created", "timestamp": 5, "issue": {"key": "NEW-5"}})
            ),
            None,
            "without an id"
        );
    }
}
