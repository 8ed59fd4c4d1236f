//! How Jira writes its objects down. Each kind has one constructor, for answers and webhooks alike, so that whatever
//! tells of it has the properties that Jira's description shows; `tests/required` lists these.

use serde_json::{Map, Value, json};

use super::JiraTransition;
use super::adf;
use super::state::{Account, Comment, History, Issue, PRIORITIES, RemoteLink, Status, status_id};

/// The stand-in's only kind of ticket has the id of this, whatever its name.
const ISSUE_TYPE: &str = "10001";
/// What the issue of a comment's webhook is told with.
const FIELDS_OF_COMMENTED: [&str; 6] = [
    "summary",
    "issuetype",
    "project",
    "assignee",
    "priority",
    "status",
];

fn rest(url: &str) -> String {
    format!("{url}/rest/api/3")
}

/// The same picture in the four sizes that everything with pictures has.
fn avatars(url: &str) -> Value {
    let picture = |size: &str| (size.to_owned(), format!("{url}/avatar.png?size={size}").into());
    let sizes = ["16x16", "24x24", "32x32", "48x48"];
    Value::Object(sizes.into_iter().map(picture).collect())
}

impl Account {
    pub(super) fn json(&self, url: &str) -> Value {
        json!({
            "self": format!("{}/user?accountId={}", rest(url), self.id), "accountId": self.id,
            "accountType": "atlassian", "avatarUrls": avatars(url), "displayName": self.name,
            "emailAddress": self.email, "active": true, "timeZone": "Etc/UTC",
        })
    }

    /// As its owner sees it.
    pub(super) fn own_json(&self, url: &str) -> Value {
        let mut own = self.json(url);
        own["locale"] = json!("en_US");
        own["groups"] = json!({"size": 0, "items": []});
        own["applicationRoles"] = json!({"size": 1, "items": []});
        own["expand"] = json!("groups,applicationRoles");
        own
    }
}

impl Comment {
    pub(super) fn json(&self, url: &str) -> Value {
        json!({
            "self": format!("{}/issue/{}/comment/{}", rest(url), self.issue, self.id), "id": self.id.to_string(),
            "author": self.author.json(url), "updateAuthor": self.editor.json(url), "body": self.body, "created": self.created,
            "updated": self.updated, "jsdPublic": true, "properties": self.properties,
        })
    }

    /// As webhooks carry it: the body as text.
    pub(super) fn webhook_json(&self, url: &str) -> Value {
        let mut value = self.json(url);
        value["body"] = Value::String(adf::plain(&self.body));
        value
    }
}

impl History {
    pub(super) fn json(&self, url: &str) -> Value {
        json!({
            "id": self.id.to_string(), "author": self.author.json(url), "created": self.created, "items": self.items,
        })
    }
}

impl RemoteLink {
    pub(super) fn json(&self, issue: &str, url: &str) -> Value {
        let mut object = json!({"icon": {}, "status": {"icon": {}}});
        if let (Some(all), Value::Object(given)) = (object.as_object_mut(), self.object.clone()) {
            all.extend(given);
        }
        let mut link = self.reference_json(issue, url);
        link["globalId"] = json!(self.global_id);
        link["application"] = self.application.clone().unwrap_or_else(|| json!({}));
        link["object"] = object;
        if let Some(relationship) = &self.relationship {
            link["relationship"] = json!(relationship);
        }
        link
    }

    /// As whoever made or changed it is told of it.
    pub(super) fn reference_json(&self, issue: &str, url: &str) -> Value {
        json!({"id": self.id, "self": format!("{}/issue/{issue}/remotelink/{}", rest(url), self.id)})
    }
}

impl Status {
    pub(super) fn json(&self, index: usize, url: &str) -> Value {
        let (id, name, color) = match self.category.as_str() {
            "done" => (3, "Done", "green"),
            "indeterminate" => (4, "In Progress", "yellow"),
            _ => (2, "To Do", "blue-gray"),
        };
        let own = rest(url);
        json!({
            "self": format!("{own}/status/{}", status_id(index)), "id": status_id(index), "name": self.name,
            "description": "", "iconUrl": format!("{url}/images/icons/status.png"),
            "statusCategory": {
                "self": format!("{own}/statuscategory/{id}"), "id": id, "key": self.category, "colorName": color,
                "name": name,
            },
        })
    }
}

pub(super) fn issue_type(name: &str, url: &str) -> Value {
    json!({
        "self": format!("{}/issuetype/{ISSUE_TYPE}", rest(url)), "id": ISSUE_TYPE, "name": name, "subtask": false,
        "description": "", "iconUrl": format!("{url}/images/icons/type.png"), "hierarchyLevel": 0,
    })
}

fn project(key: &str, url: &str) -> Value {
    json!({
        "self": format!("{}/project/10000", rest(url)), "id": "10000", "key": key, "name": key,
        "projectTypeKey": "software", "simplified": false, "avatarUrls": avatars(url),
    })
}

fn priority(name: &str, url: &str) -> Value {
    let id = PRIORITIES
        .iter()
        .position(|known| *known == name)
        .unwrap_or_default()
        + 1;
    json!({
        "self": format!("{}/priority/{id}", rest(url)), "id": id.to_string(), "name": name,
        "iconUrl": format!("{url}/images/icons/{}.png", name.to_lowercase()),
    })
}

pub(super) fn group(name: &str, url: &str) -> Value {
    let id = format!("id-{name}");
    json!({"name": name, "groupId": id, "self": format!("{}/group?groupId={id}", rest(url))})
}

pub(super) fn permission(key: &str, is_held: bool) -> Value {
    json!({"id": "1", "key": key, "name": key, "type": "PROJECT", "description": "", "havePermission": is_held})
}

impl JiraTransition {
    pub(super) fn json(&self, id: &str, target: &Value) -> Value {
        json!({
            "id": id, "name": self.name, "to": target, "hasScreen": !self.asks_for.is_empty(), "isGlobal": false,
            "isInitial": false, "isAvailable": true, "isConditional": false, "looped": false,
        })
    }
}

/// An issue as others that are linked with it show it.
pub(super) fn related(issue: &Issue, statuses: &[Status], url: &str) -> Value {
    json!({
        "id": issue.id.to_string(), "key": issue.key, "self": issue.link(url),
        "fields": {
            "summary": issue.summary, "status": statuses[issue.status].json(issue.status, url),
            "priority": priority(issue.priority, url), "issuetype": issue_type(&issue.kind, url),
        },
    })
}

impl Issue {
    /// All fields, as the REST interface gives them.
    fn fields(&self, statuses: &[Status], url: &str) -> Value {
        let comments: Vec<Value> = self.comments.iter().map(|comment| comment.json(url)).collect();
        let rita = Account::person("Rita Reporter").json(url);
        let component = |name: &String| {
            // The real service numbers them; nothing of ours reads the number.
            json!({"self": format!("{url}/rest/api/3/component/10000"), "id": "10000", "name": name})
        };
        let components: Vec<Value> = self.components.iter().map(component).collect();
        json!({
            "summary": self.summary, "description": self.description, "labels": self.labels, "components": components,
            "issuetype": issue_type(&self.kind, url), "priority": priority(self.priority, url), "project": project(&self.project, url),
            "status": statuses[self.status].json(self.status, url), "statuscategorychangedate": self.status_changed,
            "created": self.created, "updated": self.updated,
            "assignee": self.assignee.as_ref().map(|account| account.json(url)), "creator": rita, "reporter": rita,
            "issuelinks": [], "attachment": [],
            "comment": {
                "self": format!("{}/comment", self.link(url)), "comments": comments, "total": comments.len(),
                "maxResults": comments.len(), "startAt": 0,
            },
        })
    }

    /// With those fields that are wanted; without any when `wanted` is empty.
    pub(super) fn json(&self, statuses: &[Status], wanted: impl Fn(&str) -> bool, url: &str) -> Value {
        let mut body = json!({"expand": "changelog", "id": self.id.to_string(), "key": self.key, "self": self.link(url)});
        if let Value::Object(fields) = self.fields(statuses, url) {
            let fields: Map<String, Value> = fields.into_iter().filter(|(name, _)| wanted(name)).collect();
            body["fields"] = Value::Object(fields);
        }
        body
    }

    /// As its own webhooks carry it: texts as text, no comments.
    pub(super) fn webhook_json(&self, statuses: &[Status], url: &str) -> Value {
        let mut body = self.json(statuses, |name| name != "comment", url);
        let text = adf::plain(&self.description).replace('\n', "\n\n");
        body["fields"]["description"] = Value::String(text);
        body
    }

    /// As webhooks of its comments carry it.
    pub(super) fn commented_json(&self, statuses: &[Status], url: &str) -> Value {
        self.json(statuses, |name| FIELDS_OF_COMMENTED.contains(&name), url)
    }

    fn link(&self, url: &str) -> String {
        format!("{}/issue/{}", rest(url), self.id)
    }
}
