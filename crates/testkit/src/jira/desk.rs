//! Changes of tickets, with the webhooks that report them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::access::ProjectRoleMembers;
use super::site::StandInSite;
use super::state::{
    ChangelogEntry, DONE, EPIC_LINK, JiraAccount, PRIORITIES, RemoteLink, TicketLink, TicketRecord,
    WorkflowStatus, jira_now, resolution_id, status_id,
};
use super::{JiraOptions, JiraTransition, adf};
use crate::http::RequestLog;
use crate::webhook::SentWebhooks;

/// State behind the HTTP interface.
pub(super) struct JiraState {
    pub(super) log: Arc<RequestLog>,
    pub(super) webhooks: Arc<SentWebhooks>,
    pub(super) site: StandInSite,
    pub(super) statuses: Vec<WorkflowStatus>,
    transitions: Vec<(String, String)>,
    named: Vec<JiraTransition>,
    pub(super) issues: Mutex<IssueTable>,
    relations: Mutex<Vec<TicketLink>>,
    pub(super) groups: Mutex<BTreeMap<String, Vec<String>>>,
    /// Groups of every user without explicit groups.
    pub(super) common_groups: Vec<String>,
    /// Names of the custom fields, in the order of their ids.
    pub(super) fields: Mutex<Vec<String>>,
    /// Members of the role `Developers`, in every project.
    pub(super) developers: Mutex<ProjectRoleMembers>,
    /// Missing permissions: e-mail address of the account and key of the permission.
    pub(super) withheld: Mutex<Vec<(String, String)>>,
    /// Additional permissions, in the same form.
    pub(super) granted: Mutex<Vec<(String, String)>>,
    /// Webhooks that an administrator registered.
    pub(super) hooks: Mutex<Vec<super::hooks::RegisteredHook>>,
}

#[derive(Default)]
pub(super) struct IssueTable {
    by_key: BTreeMap<String, TicketRecord>,
    next_id: u64,
    next_number: BTreeMap<String, u64>,
    /// Ids of moved issues by the keys that they had before.
    former: BTreeMap<String, u64>,
}

impl IssueTable {
    pub(super) fn iter(&self) -> impl Iterator<Item = &TicketRecord> {
        self.by_key.values()
    }

    pub(super) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        10_000 + self.next_id
    }

    pub(super) fn named(&mut self, key_or_id: &str) -> Option<&mut TicketRecord> {
        if self.by_key.contains_key(key_or_id) {
            return self.by_key.get_mut(key_or_id);
        }
        // A key of an existing issue comes before the former key of a moved one.
        let id = match key_or_id.parse() {
            Ok(id) => id,
            Err(_) => *self.former.get(key_or_id)?,
        };
        self.by_key.values_mut().find(|issue| issue.id == id)
    }

    /// Key of an issue in a project that it moves to: its former key there, or the next one.
    fn key_in(&mut self, project: &str, id: u64) -> String {
        let prefix = format!("{project}-");
        let mut former = self.former.iter();
        if let Some((key, _)) = former.find(|(key, moved)| **moved == id && key.starts_with(&prefix)) {
            return key.clone();
        }
        let number = self.next_number.entry(project.to_owned()).or_default();
        *number += 1;
        format!("{project}-{number}")
    }
}

/// Reason of a refused transition.
pub(super) enum MoveError {
    NoIssue,
    NoStatus,
    Illegal,
}

impl JiraState {
    pub(super) fn new(options: JiraOptions, log: Arc<RequestLog>, site: StandInSite) -> anyhow::Result<Self> {
        anyhow::ensure!(!options.statuses.is_empty(), "a workflow needs a status");
        let statuses = options
            .statuses
            .into_iter()
            .map(|(name, category)| WorkflowStatus { name, category });
        Ok(Self {
            log,
            webhooks: Arc::new(SentWebhooks::start(site.style())?),
            site,
            statuses: statuses.collect(),
            transitions: options.transitions,
            named: options.named,
            relations: Mutex::default(),
            issues: Mutex::new(IssueTable {
                next_number: options.projects.into_iter().map(|project| (project, 0)).collect(),
                ..IssueTable::default()
            }),
            groups: Mutex::default(),
            common_groups: options.groups,
            // Sites have this field from the start.
            fields: Mutex::new(vec![EPIC_LINK.to_owned()]),
            developers: Mutex::default(),
            withheld: Mutex::default(),
            granted: Mutex::default(),
            hooks: Mutex::default(),
        })
    }

    pub(super) fn issue(&self, key_or_id: &str) -> Option<TicketRecord> {
        self.issues.lock().named(key_or_id).cloned()
    }

    pub(super) fn create(
        &self,
        project: &str,
        summary: &str,
        description: Value,
        kind: &str,
        labels: &[&str],
    ) -> String {
        let key = {
            let mut issues = self.issues.lock();
            let number = issues.next_number.entry(project.to_owned()).or_default();
            *number += 1;
            format!("{project}-{number}")
        };
        self.create_under(&key, summary, description, kind, labels)
    }

    /// Creates a ticket with a given key.
    pub(super) fn create_under(
        &self,
        key: &str,
        summary: &str,
        description: Value,
        kind: &str,
        labels: &[&str],
    ) -> String {
        let now = jira_now();
        let project = key.rsplit_once('-').map_or(key, |(project, _)| project);
        let mut issues = self.issues.lock();
        let key = key.to_owned();
        let issue = TicketRecord {
            id: issues.fresh_id(),
            key: key.clone(),
            project: project.to_owned(),
            summary: summary.to_owned(),
            description,
            kind: kind.to_owned(),
            // `Medium`, the default of Jira.
            priority: PRIORITIES[2],
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            components: Vec::new(),
            custom: Vec::new(),
            assignee: None,
            resolution: None,
            status: 0,
            created: now.clone(),
            updated: now.clone(),
            status_changed: now,
            comments: Vec::new(),
            histories: Vec::new(),
            links: Vec::new(),
            attachments: Vec::new(),
        };
        let creator = JiraAccount::person("Rita Reporter");
        let payload = self.event("jira:issue_created", "issue_created", &issue, &creator);
        issues.by_key.insert(key.clone(), issue);
        self.webhooks.send("jira:issue_created", payload);
        key
    }

    /// Returns the indices of the statuses that a ticket in `from` may move to.
    pub(super) fn targets(&self, from: usize) -> Vec<usize> {
        let name = &self.statuses[from].name;
        let all = 0..self.statuses.len();
        all.filter(|&to| {
            let pair = (name.clone(), self.statuses[to].name.clone());
            to != from && (self.transitions.is_empty() || self.transitions.contains(&pair))
        })
        .collect()
    }

    /// Returns the transitions of a ticket in `from`: id, index of the target status, and the transition.
    pub(super) fn offered(&self, from: usize) -> Vec<(String, usize, JiraTransition)> {
        let targets = self.targets(from);
        let index = |name: &str| self.statuses.iter().position(|status| status.name == name);
        if self.named.is_empty() {
            // Transition ids are small numbers that differ from status ids, so that a client that mixes them
            // up fails.
            let plain = targets.into_iter().map(|to| {
                let name = self.statuses[to].name.clone();
                let transition = JiraTransition {
                    to: name.clone(),
                    name,
                    asks_for: Vec::new(),
                };
                ((11 + 10 * to).to_string(), to, transition)
            });
            return plain.collect();
        }
        let numbered = self.named.iter().zip(1_usize..);
        numbered
            .filter_map(|(transition, number)| {
                let to = index(&transition.to).filter(|to| targets.contains(to))?;
                Some(((10 * number + 1).to_string(), to, transition.clone()))
            })
            .collect()
    }

    /// Moves a ticket. As in Jira's own workflows, a done status comes with a resolution, and another status
    /// removes it.
    pub(super) fn transition(
        &self,
        key: &str,
        to: usize,
        resolution: Option<&'static str>,
        by: &JiraAccount,
    ) -> Result<String, MoveError> {
        let mut issues = self.issues.lock();
        let id = issues.fresh_id();
        let issue = issues.named(key).ok_or(MoveError::NoIssue)?;
        let target = self.statuses.get(to).ok_or(MoveError::NoStatus)?;
        if !self.targets(issue.status).contains(&to) {
            return Err(MoveError::Illegal);
        }
        let item = json!({
            "field": "status", "fieldtype": "jira", "fieldId": "status",
            "from": status_id(issue.status), "fromString": self.statuses[issue.status].name,
            "to": status_id(to), "toString": target.name,
        });
        let mut items = vec![item];
        let is_done = target.category == "done";
        let resolution = is_done.then(|| resolution.or(issue.resolution).unwrap_or(DONE));
        if resolution != issue.resolution {
            let id = |name: Option<&str>| name.and_then(resolution_id);
            items.push(json!({
                "field": "resolution", "fieldtype": "jira", "fieldId": "resolution",
                "from": id(issue.resolution), "fromString": issue.resolution, "to": id(resolution),
                "toString": resolution,
            }));
        }
        (issue.status, issue.resolution) = (to, resolution);
        issue.status_changed = jira_now();
        self.record(issue, id, by, items);
        Ok(id.to_string())
    }

    pub(super) fn delete(&self, key: &str, by: &JiraAccount) -> Option<()> {
        let issue = self.issues.lock().by_key.remove(key)?;
        let payload = self.event("jira:issue_deleted", "issue_deleted", &issue, by);
        self.webhooks.send("jira:issue_deleted", payload);
        Some(())
    }

    pub(super) fn edit_summary(&self, key: &str, summary: &str, by: &JiraAccount) -> Option<String> {
        let mut issues = self.issues.lock();
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let before = std::mem::replace(&mut issue.summary, summary.to_owned());
        let item = json!({
            "field": "summary", "fieldtype": "jira", "fieldId": "summary", "from": null, "fromString": before,
            "to": null, "toString": summary,
        });
        self.record(issue, id, by, vec![item]);
        Some(id.to_string())
    }

    pub(super) fn edit_description(&self, key: &str, description: Value, by: &JiraAccount) -> Option<String> {
        let mut issues = self.issues.lock();
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let before = std::mem::replace(&mut issue.description, description);
        // Jira's changelog has null for an empty text.
        let text = |document: &Value| match adf::render_changelog_text(document) {
            text if text.is_empty() => Value::Null,
            text => Value::String(text),
        };
        let item = json!({
            "field": "description", "fieldtype": "jira", "fieldId": "description", "from": null,
            "fromString": text(&before), "to": null, "toString": text(&issue.description),
        });
        self.record(issue, id, by, vec![item]);
        Some(id.to_string())
    }

    pub(super) fn assign(&self, key: &str, to: Option<JiraAccount>, by: &JiraAccount) -> Option<()> {
        let mut issues = self.issues.lock();
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let name = |account: &Option<JiraAccount>| account.as_ref().map(|account| account.name.clone());
        let item = json!({
            "field": "assignee", "fieldtype": "jira", "fieldId": "assignee",
            "from": issue.assignee.as_ref().map(|account| self.site.history_id(account)), "fromString": name(&issue.assignee),
            "to": to.as_ref().map(|account| self.site.history_id(account)), "toString": name(&to),
        });
        issue.assignee = to;
        self.record(issue, id, by, vec![item]);
        Some(())
    }

    /// Moves a ticket to another project and returns its new key. The id stays, and the old key leads to the ticket.
    pub(super) fn change_project(&self, key: &str, project: &str, by: &JiraAccount) -> Option<String> {
        let mut issues = self.issues.lock();
        let id = issues.fresh_id();
        let present = issues.named(key)?.key.clone();
        let mut issue = issues.by_key.remove(&present)?;
        issue.key = issues.key_in(project, issue.id);
        let from = std::mem::replace(&mut issue.project, project.to_owned());
        issues.former.insert(present.clone(), issue.id);
        issues.former.remove(&issue.key);
        for link in self.relations.lock().iter_mut() {
            for end in [&mut link.from, &mut link.to] {
                if *end == present {
                    end.clone_from(&issue.key);
                }
            }
        }
        let items = vec![
            json!({
                "field": "project", "fieldtype": "jira", "fieldId": "project", "from": "10000", "fromString": from,
                "to": "10001", "toString": project,
            }),
            json!({
                "field": "Key", "fieldtype": "jira", "from": "", "fromString": present, "to": "",
                "toString": issue.key,
            }),
        ];
        self.record(&mut issue, id, by, items);
        let moved = issue.key.clone();
        issues.by_key.insert(moved.clone(), issue);
        Some(moved)
    }

    pub(super) fn create_project(&self, project: &str) {
        self.issues
            .lock()
            .next_number
            .entry(project.to_owned())
            .or_default();
    }

    /// Changes a ticket's priority or type and sends the webhook.
    pub(super) fn sort(
        &self,
        key: &str,
        field: &str,
        by: &JiraAccount,
        change: impl FnOnce(&mut TicketRecord) -> (String, String),
    ) -> Option<()> {
        let mut issues = self.issues.lock();
        let id = issues.fresh_id();
        let issue = issues.named(key)?;
        let (before, after) = change(issue);
        let item = json!({
            "field": field, "fieldtype": "jira", "fieldId": field, "from": null, "fromString": before, "to": null,
            "toString": after,
        });
        self.record(issue, id, by, vec![item]);
        Some(())
    }

    /// Links two issues. It returns nothing if an issue or the link type is unknown. An existing link stays
    /// unchanged.
    pub(super) fn relate(&self, from: &str, kind: &str, to: &str) -> Option<()> {
        let mut issues = self.issues.lock();
        if !issues.by_key.contains_key(from) || !issues.by_key.contains_key(to) {
            return None;
        }
        let relation = TicketLink::new(issues.fresh_id(), kind, from, to)?;
        // Both locks are held, so that no other link is added between check and insertion.
        let mut relations = self.relations.lock();
        if !relations.iter().any(|known| known.is_like(&relation)) {
            relations.push(relation);
        }
        Some(())
    }

    pub(super) fn relations(&self) -> Vec<TicketLink> {
        self.relations.lock().clone()
    }

    /// Keys of all projects, sorted.
    pub(super) fn list_projects(&self) -> Vec<String> {
        let issues = self.issues.lock();
        let mut keys: Vec<String> = issues.next_number.keys().cloned().collect();
        keys.sort();
        keys
    }

    pub(super) fn has_project(&self, project: &str) -> bool {
        let issues = self.issues.lock();
        issues
            .next_number
            .keys()
            .any(|known| known.eq_ignore_ascii_case(project))
    }

    pub(super) fn record(&self, issue: &mut TicketRecord, id: u64, by: &JiraAccount, items: Vec<Value>) {
        let history = ChangelogEntry {
            id,
            author: by.clone(),
            created: jira_now(),
            items,
        };
        issue.updated.clone_from(&history.created);
        // Jira names the kind after the first changed field.
        let kind = match history.items.first().map(|item| &item["field"]) {
            Some(field) if field == "assignee" => "issue_assigned",
            Some(field) if field == "status" => "issue_generic",
            Some(field) if field == "project" => "issue_moved",
            _ => "issue_updated",
        };
        let mut payload = self.event("jira:issue_updated", kind, issue, by);
        payload["changelog"] = json!({"id": history.id.to_string(), "items": history.items});
        issue.histories.push(history);
        self.webhooks.send("jira:issue_updated", payload);
    }

    /// Creates or updates a remote link by its `globalId`; the flag is true for a new one.
    pub(super) fn put_link(&self, key: &str, mut link: RemoteLink) -> Option<(RemoteLink, bool)> {
        let mut issues = self.issues.lock();
        link.id = issues.fresh_id();
        let links = &mut issues.named(key)?.links;
        let mut known = links.iter_mut();
        // A link without a `globalId` is always new.
        match known.find(|known| !link.global_id.is_empty() && known.global_id == link.global_id) {
            Some(known) => {
                link.id = known.id;
                known.clone_from(&link);
                Some((link, false))
            }
            None => {
                links.push(link.clone());
                Some((link, true))
            }
        }
    }

    fn event(&self, event: &str, kind: &str, issue: &TicketRecord, by: &JiraAccount) -> Value {
        json!({
            "timestamp": now_ms(), "webhookEvent": event, "issue_event_type_name": kind, "user": by.json(&self.site),
            "issue": issue.webhook_json(&self.statuses, &self.site),
        })
    }
}

pub(super) fn now_ms() -> i64 {
    let milliseconds = time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    i64::try_from(milliseconds).unwrap_or_default()
}
