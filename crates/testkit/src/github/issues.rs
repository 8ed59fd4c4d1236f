//! Actions on issues, by users and by our App.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::FakeGitHub;
use super::hub::{GitHubRecords, GitHubState};
use super::shape::{issue_type_json, label_json, render_actor, render_user};
use super::state::{IssueEventKind, IssueEventRecord, IssueRecord, PullRecord, RepositoryRecord};
use crate::http::iso_now;

/// Keywords before `#7` that close the issue when the pull request is merged.
const CLOSING: [&str; 9] = [
    "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved",
];

/// Default issue types of GitHub organizations.
const ISSUE_TYPES: [&str; 3] = ["Bug", "Feature", "Task"];

impl RepositoryRecord {
    pub(super) fn issue(&mut self, number: u64) -> anyhow::Result<&mut IssueRecord> {
        let name = &self.name;
        self.issues
            .get_mut(&number)
            .with_context(|| format!("there is no issue {name}#{number}"))
    }
}

impl IssueRecord {
    fn happened(&mut self, id: u64, by: &str, what: IssueEventKind) {
        self.updated = iso_now();
        self.events.push(IssueEventRecord {
            id,
            by: by.to_owned(),
            at: self.updated.clone(),
            what,
        });
    }
}

impl GitHubState {
    pub(super) fn open_issue(
        &self,
        name: &str,
        author: &str,
        title: &str,
        body: &str,
    ) -> anyhow::Result<u64> {
        let mut world = self.world();
        let id = world.fresh_id();
        let repo = world.repo(name)?;
        let (number, now) = (repo.next_number(), iso_now());
        let issue = IssueRecord {
            id,
            number,
            title: title.to_owned(),
            body: body.to_owned(),
            author: author.to_owned(),
            labels: Vec::new(),
            assignees: Vec::new(),
            closed_as: None,
            created: now.clone(),
            updated: now,
            closed: None,
            issue_type: None,
            edits: Vec::new(),
            events: Vec::new(),
            parent: None,
            made: Instant::now(),
        };
        repo.issues.insert(number, issue.clone());
        self.send_issue_event(repo, &issue, "opened", json!({}), author);
        Ok(number)
    }

    /// Changes an issue and sends the `issues` webhook.
    fn change_issue(
        &self,
        name: &str,
        number: u64,
        by: &str,
        change: impl FnOnce(&mut IssueRecord, u64) -> anyhow::Result<(&'static str, Value)>,
    ) -> anyhow::Result<IssueRecord> {
        let mut world = self.world();
        let id = world.fresh_id();
        let repo = world.repo(name)?;
        let issue = repo.issue(number)?;
        let (action, more) = change(issue, id)?;
        let issue = issue.clone();
        self.send_issue_event(repo, &issue, action, more, by);
        Ok(issue)
    }

    pub(super) fn assign(&self, name: &str, number: u64, login: &str, by: &str) -> anyhow::Result<()> {
        // GitHub silently drops logins that it cannot assign; Apps are among them.
        ensure!(!login.ends_with("[bot]"), "an App cannot be assigned");
        let change = |issue: &mut IssueRecord, id| {
            ensure!(
                !issue.assignees.iter().any(|known| known == login),
                "assigned already"
            );
            issue.assignees.push(login.to_owned());
            issue.happened(id, by, IssueEventKind::Assigned(login.to_owned()));
            Ok(("assigned", json!({"assignee": render_user(login)})))
        };
        self.change_issue(name, number, by, change).map(drop)
    }

    pub(super) fn unassign(&self, name: &str, number: u64, login: &str, by: &str) -> anyhow::Result<()> {
        let change = |issue: &mut IssueRecord, _| {
            let before = issue.assignees.len();
            issue.assignees.retain(|known| !known.eq_ignore_ascii_case(login));
            ensure!(issue.assignees.len() < before, "{login} is not assigned");
            issue.updated = iso_now();
            Ok(("unassigned", json!({"assignee": render_user(login)})))
        };
        self.change_issue(name, number, by, change).map(drop)
    }

    /// Adds a label to an issue. A label that the issue already has causes no webhook.
    pub(super) fn label_issue(&self, name: &str, number: u64, label: &str, by: &str) -> anyhow::Result<()> {
        let labeled = label_json(self.world().repo(name)?, label, &self.url);
        if self
            .world()
            .repo(name)?
            .issue(number)?
            .labels
            .iter()
            .any(|known| known == label)
        {
            return Ok(());
        }
        let change = |issue: &mut IssueRecord, id| {
            issue.labels.push(label.to_owned());
            issue.happened(id, by, IssueEventKind::Labeled(label.to_owned()));
            Ok(("labeled", json!({"label": labeled})))
        };
        self.change_issue(name, number, by, change).map(drop)
    }

    pub(super) fn unlabel_issue(&self, name: &str, number: u64, label: &str, by: &str) -> anyhow::Result<()> {
        let unlabeled = label_json(self.world().repo(name)?, label, &self.url);
        let change = |issue: &mut IssueRecord, _| {
            let before = issue.labels.len();
            issue.labels.retain(|known| !known.eq_ignore_ascii_case(label));
            ensure!(issue.labels.len() < before, "there is no label {label}");
            issue.updated = iso_now();
            Ok(("unlabeled", json!({"label": unlabeled})))
        };
        self.change_issue(name, number, by, change).map(drop)
    }

    pub(super) fn edit_issue(
        &self,
        name: &str,
        number: u64,
        by: &str,
        (title, body): (Option<&str>, Option<&str>),
    ) -> anyhow::Result<IssueRecord> {
        let change = |issue: &mut IssueRecord, id| {
            let mut changes = serde_json::Map::new();
            if let Some(title) = title {
                let before = std::mem::replace(&mut issue.title, title.to_owned());
                changes.insert("title".to_owned(), json!({"from": before}));
                issue.happened(id, by, IssueEventKind::Renamed);
            }
            if let Some(body) = body {
                let before = std::mem::replace(&mut issue.body, body.to_owned());
                changes.insert("body".to_owned(), json!({"from": before}));
                issue.edits.push((iso_now(), by.to_owned()));
            }
            issue.updated = iso_now();
            Ok(("edited", json!({"changes": changes})))
        };
        self.change_issue(name, number, by, change)
    }

    /// Sets an issue's type.
    pub(super) fn set_issue_type(
        &self,
        name: &str,
        number: u64,
        by: &str,
        issue_type: &str,
    ) -> anyhow::Result<IssueRecord> {
        ensure!(
            ISSUE_TYPES.contains(&issue_type),
            "the organisation has no such type"
        );
        let change = |issue: &mut IssueRecord, _| {
            issue.issue_type = Some(issue_type.to_owned());
            issue.updated = iso_now();
            Ok(("typed", json!({"type": issue_type_json(issue_type)})))
        };
        self.change_issue(name, number, by, change)
    }

    /// Closes an issue as `completed` or `not_planned`, or reopens it. A closed issue stays closed since its
    /// first end, and a state that an issue has already causes no webhook.
    pub(super) fn set_issue_state(
        &self,
        name: &str,
        number: u64,
        by: &str,
        closed_as: Option<&str>,
    ) -> anyhow::Result<IssueRecord> {
        {
            let mut world = self.world();
            let issue = world.repo(name)?.issue(number)?;
            if issue.is_open() == closed_as.is_none() {
                issue.closed_as = closed_as.map(str::to_owned);
                return Ok(issue.clone());
            }
        }
        let change = |issue: &mut IssueRecord, _| {
            let now = iso_now();
            issue.closed_as = closed_as.map(str::to_owned);
            issue.closed = closed_as.map(|_| now.clone());
            issue.updated = now;
            Ok((if closed_as.is_some() { "closed" } else { "reopened" }, json!({})))
        };
        self.change_issue(name, number, by, change)
    }

    /// Closes the issues that a merged pull request names with a closing keyword.
    pub(super) fn close_fixed(&self, repo: &mut RepositoryRecord, pull: &PullRecord, by: &str) {
        // A keyword and its reference are adjacent words. Punctuation may follow the number.
        let words: Vec<&str> = pull.body.split_whitespace().collect();
        let fixed = words.windows(2).filter_map(|pair| {
            let is_closing = CLOSING.iter().any(|known| known.eq_ignore_ascii_case(pair[0]));
            let number = pair[1]
                .trim_end_matches(['.', ','])
                .strip_prefix('#')?
                .parse()
                .ok()?;
            is_closing.then_some(number)
        });
        for number in fixed.collect::<Vec<u64>>() {
            let Ok(issue) = repo.issue(number) else { continue };
            if !issue.is_open() {
                continue;
            }
            issue.closed = Some(iso_now());
            issue.closed_as = Some("completed".to_owned());
            issue.updated = iso_now();
            let issue = issue.clone();
            self.send_issue_event(repo, &issue, "closed", json!({}), by);
        }
    }
}

/// Returns every field of an issue that our GraphQL query selects.
pub(super) fn render_issue_graphql(
    world: &mut GitHubRecords,
    name: &str,
    number: u64,
    url: &str,
) -> Option<Value> {
    let repo = world.repo(name).ok()?;
    let issue = repo.issues.get(&number)?;
    let nodes = |nodes: Vec<Value>| json!({"nodes": nodes});
    let comments = repo.comments.iter().filter(|comment| comment.number == number);
    let comments = comments.map(|comment| {
        let edited = (comment.updated != comment.created).then_some(&comment.updated);
        json!({"databaseId": comment.id, "body": comment.body, "author": render_actor(&comment.author),
            "createdAt": comment.created, "lastEditedAt": edited})
    });
    // GitHub returns edits newest first.
    let edits = issue
        .edits
        .iter()
        .rev()
        .map(|(at, by)| json!({"editedAt": at, "editor": render_actor(by)}));
    Some(json!({
        "title": issue.title, "body": issue.body, "url": repo.issue_url(number, url),
        "state": if issue.is_open() { "OPEN" } else { "CLOSED" }, "createdAt": issue.created,
        "author": render_actor(&issue.author), "locked": repo.locks.contains_key(&number),
        "activeLockReason": repo.graphql_lock_reason(number),
        "labels": nodes(issue.labels.iter().map(|label| json!({"name": label})).collect()),
        "assignees": nodes(issue.assignees.iter().map(|login| json!({"login": login})).collect()),
        "userContentEdits": nodes(edits.collect()),
        "comments": nodes(comments.collect()),
        "timelineItems": nodes(issue.events.iter().map(event_json).collect()),
    }))
}

fn event_json(event: &IssueEventRecord) -> Value {
    let (kind, more) = match &event.what {
        IssueEventKind::Assigned(login) => ("AssignedEvent", json!({"assignee": render_actor(login)})),
        IssueEventKind::Labeled(label) => ("LabeledEvent", json!({"label": {"name": label}})),
        IssueEventKind::Renamed => ("RenamedTitleEvent", json!({})),
    };
    let event = json!({
        "__typename": kind, "id": format!("EV_{}", event.id), "createdAt": event.at, "actor": render_actor(&event.by),
    });
    super::shape::extend_object(event, more)
}

impl FakeGitHub {
    /// Opens an issue as a user and returns its number. Sends `issues` opened.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn open_issue_as(&self, repository: &str, by: &str, title: &str, body: &str) -> anyhow::Result<u64> {
        self.hub.open_issue(repository, by, title, body)
    }

    /// Changes an issue's title or body as a user. Sends `issues` edited.
    ///
    /// # Errors
    /// When the issue does not exist.
    pub fn edit_issue_as(
        &self,
        repository: &str,
        number: u64,
        by: &str,
        title: Option<&str>,
        body: Option<&str>,
    ) -> anyhow::Result<()> {
        self.hub
            .edit_issue(repository, number, by, (title, body))
            .map(drop)
    }

    /// Assigns an issue to an account. Sends `issues` assigned.
    ///
    /// # Errors
    /// When the issue does not exist, the account is already assigned or belongs to an App.
    pub fn assign_issue(&self, repository: &str, number: u64, login: &str, by: &str) -> anyhow::Result<()> {
        self.hub.assign(repository, number, login, by)
    }

    /// Adds a label to an issue as a user. Sends `issues` labeled.
    ///
    /// # Errors
    /// When the issue does not exist.
    pub fn label_issue(&self, repository: &str, number: u64, label: &str, by: &str) -> anyhow::Result<()> {
        self.hub.label_issue(repository, number, label, by)
    }

    /// Sets an issue's type (`Bug`, `Feature` or `Task`) as a user. Sends `issues` typed.
    ///
    /// # Errors
    /// When the issue or type does not exist.
    pub fn set_issue_type(&self, repository: &str, number: u64, by: &str, name: &str) -> anyhow::Result<()> {
        self.hub.set_issue_type(repository, number, by, name).map(drop)
    }

    /// Closes an issue as a user, with the reason `not_planned`. Sends `issues` closed.
    ///
    /// # Errors
    /// When the issue does not exist.
    pub fn close_issue(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<()> {
        let closed = self
            .hub
            .set_issue_state(repository, number, by, Some("not_planned"));
        closed.map(drop)
    }
}
