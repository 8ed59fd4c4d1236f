//! JSON of Jira's objects. Each kind has one constructor for answers and webhooks alike, so every use has the
//! properties that Jira's description shows; `tests/required` lists them.

use serde_json::{Map, Value, json};

use super::JiraTransition;
use super::adf;
use super::site::StandInSite;
use super::state::{
    ChangelogEntry, JiraAccount, PRIORITIES, RemoteLink, TicketCommentRecord, TicketRecord, WorkflowStatus,
    resolution_id, status_id,
};

/// Id of every issue type; the stand-in distinguishes types by name alone.
const ISSUE_TYPE: &str = "10001";
/// Fields of the issue inside a comment's webhook.
const FIELDS_OF_COMMENTED: [&str; 6] = [
    "summary",
    "issuetype",
    "project",
    "assignee",
    "priority",
    "status",
];

fn build_rest_base(site: &StandInSite) -> String {
    format!("{site}{}", site.rest())
}

/// Renders an avatar in the four sizes of Jira.
fn render_avatars(site: &StandInSite) -> Value {
    let picture = |size: &str| (size.to_owned(), format!("{site}/avatar.png?size={size}").into());
    let sizes = ["16x16", "24x24", "32x32", "48x48"];
    Value::Object(sizes.into_iter().map(picture).collect())
}

impl JiraAccount {
    pub(super) fn json(&self, site: &StandInSite) -> Value {
        if !site.is_cloud() {
            let name = self.user_name();
            return json!({
                "self": format!("{}/user?username={name}", build_rest_base(site)), "name": name, "key": self.key(),
                "avatarUrls": render_avatars(site), "displayName": self.name, "emailAddress": self.email, "active": true,
                "timeZone": "Etc/UTC",
            });
        }
        json!({
            "self": format!("{}/user?accountId={}", build_rest_base(site), self.id), "accountId": self.id,
            "accountType": "atlassian", "avatarUrls": render_avatars(site), "displayName": self.name,
            "emailAddress": self.email, "active": true, "timeZone": "Etc/UTC",
        })
    }

    /// Renders the account for its owner.
    pub(super) fn own_json(&self, site: &StandInSite) -> Value {
        let mut own = self.json(site);
        own["locale"] = json!("en_US");
        own["groups"] = json!({"size": 0, "items": []});
        own["applicationRoles"] = json!({"size": 1, "items": []});
        own["expand"] = json!("groups,applicationRoles");
        own
    }
}

impl TicketCommentRecord {
    /// True if customers of a service desk cannot see the comment.
    pub(super) fn is_internal(&self) -> bool {
        let mut marks = self
            .properties
            .iter()
            .filter(|property| property["key"] == "sd.public.comment");
        marks.any(|property| property["value"]["internal"] == true)
    }

    pub(super) fn json(&self, site: &StandInSite) -> Value {
        let mut json = json!({
            "self": format!("{}/issue/{}/comment/{}", build_rest_base(site), self.issue, self.id), "id": self.id.to_string(),
            "author": self.author.json(site), "updateAuthor": self.editor.json(site), "body": self.body, "created": self.created,
            "updated": self.updated,
        });
        if site.is_cloud() {
            json["jsdPublic"] = json!(!self.is_internal());
            json["properties"] = json!(self.properties);
        }
        if let Some(visibility) = &self.visibility {
            json["visibility"] = visibility.clone();
        }
        json
    }

    /// Renders the comment with its properties. A Data Center returns them only if `expand` requests them.
    pub(super) fn json_with_properties(&self, site: &StandInSite) -> Value {
        let mut json = self.json(site);
        json["properties"] = json!(self.properties);
        json
    }

    /// Renders the comment for webhooks, with its body as plain text.
    pub(super) fn webhook_json(&self, site: &StandInSite) -> Value {
        let mut value = self.json(site);
        value["body"] = Value::String(adf::render_plain_text(&self.body));
        value
    }
}

impl ChangelogEntry {
    pub(super) fn json(&self, site: &StandInSite) -> Value {
        json!({
            "id": self.id.to_string(), "author": self.author.json(site), "created": self.created, "items": self.items,
        })
    }
}

impl RemoteLink {
    pub(super) fn json(&self, issue: &str, site: &StandInSite) -> Value {
        // Jira returns `icon` and `status` even if the request omits them.
        let mut object = json!({"icon": {}, "status": {"icon": {}}});
        if let (Some(all), Value::Object(given)) = (object.as_object_mut(), self.object.clone()) {
            all.extend(given);
        }
        let mut link = self.reference_json(issue, site);
        link["globalId"] = json!(self.global_id);
        link["application"] = self.application.clone().unwrap_or_else(|| json!({}));
        link["object"] = object;
        if let Some(relationship) = &self.relationship {
            link["relationship"] = json!(relationship);
        }
        link
    }

    /// Renders the answer to the creation or update of the link.
    pub(super) fn reference_json(&self, issue: &str, site: &StandInSite) -> Value {
        json!({"id": self.id, "self": format!("{}/issue/{issue}/remotelink/{}", build_rest_base(site), self.id)})
    }
}

impl WorkflowStatus {
    pub(super) fn json(&self, index: usize, site: &StandInSite) -> Value {
        let (id, name, color) = match self.category.as_str() {
            "done" => (3, "Done", "green"),
            "indeterminate" => (4, "In Progress", "yellow"),
            _ => (2, "To Do", "blue-gray"),
        };
        let own = build_rest_base(site);
        json!({
            "self": format!("{own}/status/{}", status_id(index)), "id": status_id(index), "name": self.name,
            "description": "", "iconUrl": format!("{site}/images/icons/status.png"),
            "statusCategory": {
                "self": format!("{own}/statuscategory/{id}"), "id": id, "key": self.category, "colorName": color,
                "name": name,
            },
        })
    }
}

pub(super) fn issue_type(name: &str, site: &StandInSite) -> Value {
    let mut kind = json!({
        "self": format!("{}/issuetype/{ISSUE_TYPE}", build_rest_base(site)), "id": ISSUE_TYPE, "name": name, "subtask": false,
        "description": "", "iconUrl": format!("{site}/images/icons/type.png"),
    });
    if site.is_cloud() {
        kind["hierarchyLevel"] = json!(0);
    }
    kind
}

pub(super) fn render_project(key: &str, site: &StandInSite) -> Value {
    json!({
        "self": format!("{}/project/10000", build_rest_base(site)), "id": "10000", "key": key, "name": key,
        "projectTypeKey": site.project_type(key), "simplified": false, "avatarUrls": render_avatars(site),
    })
}

fn render_priority(name: &str, site: &StandInSite) -> Value {
    let id = PRIORITIES
        .iter()
        .position(|known| *known == name)
        .unwrap_or_default()
        + 1;
    json!({
        "self": format!("{}/priority/{id}", build_rest_base(site)), "id": id.to_string(), "name": name,
        "iconUrl": format!("{site}/images/icons/{}.png", name.to_lowercase()),
    })
}

fn render_resolution(name: &str, site: &StandInSite) -> Value {
    let id = resolution_id(name);
    let own = format!("{}/resolution/{}", build_rest_base(site), id.unwrap_or_default());
    json!({"self": own, "id": id, "name": name, "description": ""})
}

pub(super) fn render_group(name: &str, site: &StandInSite) -> Value {
    if !site.is_cloud() {
        return json!({"name": name, "self": format!("{}/group?groupname={name}", build_rest_base(site))});
    }
    let id = format!("id-{name}");
    json!({"name": name, "groupId": id, "self": format!("{}/group?groupId={id}", build_rest_base(site))})
}

pub(super) fn render_permission(key: &str, is_held: bool) -> Value {
    json!({"id": "1", "key": key, "name": key, "type": "PROJECT", "description": "", "havePermission": is_held})
}

impl JiraTransition {
    pub(super) fn json(&self, id: &str, target: &Value, site: &StandInSite) -> Value {
        if !site.is_cloud() {
            return json!({"id": id, "name": self.name, "to": target});
        }
        json!({
            "id": id, "name": self.name, "to": target, "hasScreen": !self.asks_for.is_empty(), "isGlobal": false,
            "isInitial": false, "isAvailable": true, "isConditional": false, "looped": false,
        })
    }
}

/// Renders an issue inside another issue's links.
pub(super) fn render_linked_issue(
    issue: &TicketRecord,
    statuses: &[WorkflowStatus],
    site: &StandInSite,
) -> Value {
    json!({
        "id": issue.id.to_string(), "key": issue.key, "self": issue.link(site),
        "fields": {
            "summary": issue.summary, "status": statuses[issue.status].json(issue.status, site),
            "priority": render_priority(issue.priority, site), "issuetype": issue_type(&issue.kind, site),
        },
    })
}

impl TicketRecord {
    /// Renders all fields for REST.
    fn fields(&self, statuses: &[WorkflowStatus], site: &StandInSite) -> Value {
        let comments: Vec<Value> = self.comments.iter().map(|comment| comment.json(site)).collect();
        let attachments: Vec<Value> = self.attachments.iter().map(|one| one.json(site)).collect();
        let rita = JiraAccount::person("Rita Reporter").json(site);
        let component = |name: &String| {
            // Jira gives each component a number, which our code does not read.
            json!({"self": format!("{}/component/10000", build_rest_base(site)), "id": "10000", "name": name})
        };
        let components: Vec<Value> = self.components.iter().map(component).collect();
        json!({
            "summary": self.summary, "description": self.description, "labels": self.labels, "components": components,
            "issuetype": issue_type(&self.kind, site), "priority": render_priority(self.priority, site), "project": render_project(&self.project, site),
            "status": statuses[self.status].json(self.status, site), "statuscategorychangedate": self.status_changed,
            "resolution": self.resolution.map(|name| render_resolution(name, site)),
            "resolutiondate": self.resolution.map(|_| &self.status_changed),
            "created": self.created, "updated": self.updated,
            "assignee": self.assignee.as_ref().map(|account| account.json(site)), "creator": rita, "reporter": rita,
            "issuelinks": [], "attachment": attachments,
            "comment": {
                "self": format!("{}/comment", self.link(site)), "comments": comments, "total": comments.len(),
                "maxResults": comments.len(), "startAt": 0,
            },
        })
    }

    /// Renders the issue with the fields that `wanted` selects.
    pub(super) fn json(
        &self,
        statuses: &[WorkflowStatus],
        wanted: impl Fn(&str) -> bool,
        site: &StandInSite,
    ) -> Value {
        let mut body = json!({"expand": "changelog", "id": self.id.to_string(), "key": self.key, "self": self.link(site)});
        if let Value::Object(fields) = self.fields(statuses, site) {
            let fields: Map<String, Value> = fields.into_iter().filter(|(name, _)| wanted(name)).collect();
            body["fields"] = Value::Object(fields);
        }
        body
    }

    /// Renders the issue for its webhooks: plain texts, no comments.
    pub(super) fn webhook_json(&self, statuses: &[WorkflowStatus], site: &StandInSite) -> Value {
        let mut body = self.json(statuses, |name| name != "comment", site);
        body["fields"]["description"] = Value::String(adf::render_changelog_text(&self.description));
        body
    }

    /// Renders the issue inside the webhooks of its comments.
    pub(super) fn commented_json(&self, statuses: &[WorkflowStatus], site: &StandInSite) -> Value {
        self.json(statuses, |name| FIELDS_OF_COMMENTED.contains(&name), site)
    }

    fn link(&self, site: &StandInSite) -> String {
        format!("{}/issue/{}", build_rest_base(site), self.id)
    }
}
