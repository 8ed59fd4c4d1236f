//! JSON of issues, in lists and with their history.

use domain::Timestamp;
use serde::Deserialize;

use super::{parse_instant, parse_lock, people::WireUser};
use crate::{
    GitHubCommentId, GitHubIssue, GitHubUser, IssueAttributes, IssueComment, IssueEdit, IssueTimelineEvent,
    IssueWish, ListedIssue, PolledIssue,
};

/// Entry of a list of issues; GitHub lists pull requests among them.
#[derive(Deserialize)]
pub(crate) struct WireIssueStub {
    number: u64,
    #[serde(default)]
    title: String,
    #[serde(default)]
    state: String,
    updated_at: Option<String>,
    #[serde(default)]
    assignees: Vec<WireUser>,
    #[serde(default)]
    labels: Vec<WireLabel>,
    pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
pub(crate) struct WireLabel {
    pub(crate) name: String,
}

impl WireIssueStub {
    /// Converts to an entry for users; `None` for a pull request.
    pub(crate) fn into_listed(self) -> Option<ListedIssue> {
        let is_open = self.state != "closed";
        let stub = self.into_stub()?;
        Some(ListedIssue {
            title: stub.title.clone(),
            is_open,
            stub,
        })
    }

    /// True for a change at or after `since`, and for one at an unknown time.
    pub(crate) fn is_changed_since(&self, since: Timestamp) -> bool {
        parse_instant(self.updated_at.as_deref()).is_none_or(|at| at >= since)
    }

    /// Converts to an entry of a poll; `None` for a pull request.
    pub(crate) fn into_stub(self) -> Option<PolledIssue> {
        if self.pull_request.is_some() {
            return None;
        }
        Some(PolledIssue {
            number: self.number,
            title: self.title,
            updated_at: parse_instant(self.updated_at.as_deref())?,
            assigned: IssueAttributes {
                assignees: self.assignees.into_iter().map(|user| user.login).collect(),
                labels: self.labels.into_iter().map(|label| label.name).collect(),
            },
        })
    }
}

/// Answer to the query of an issue.
#[derive(Deserialize)]
pub(crate) struct WireIssueData {
    pub(crate) repository: Option<WireIssueRepository>,
}

#[derive(Deserialize)]
pub(crate) struct WireIssueRepository {
    pub(crate) issue: Option<WireGitHubIssue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireGitHubIssue {
    title: String,
    body: String,
    url: String,
    state: String,
    #[serde(default)]
    locked: bool,
    active_lock_reason: Option<String>,
    created_at: String,
    author: Option<WireActor>,
    labels: Option<GraphqlNodes<WireLabel>>,
    assignees: GraphqlNodes<WireUser>,
    user_content_edits: Option<GraphqlNodes<WireEdit>>,
    comments: GraphqlNodes<WireIssueComment>,
    timeline_items: GraphqlNodes<WireEvent>,
}

#[derive(Deserialize)]
pub(super) struct GraphqlNodes<T> {
    #[serde(default = "Vec::new")]
    // GraphQL returns null for a node that our account cannot see.
    nodes: Vec<Option<T>>,
}

impl<T> GraphqlNodes<T> {
    pub(super) fn known(self) -> impl Iterator<Item = T> {
        self.nodes.into_iter().flatten()
    }
}

/// Account in GraphQL. Deleted accounts are absent where the schema has an account.
#[derive(Deserialize)]
pub(super) struct WireActor {
    #[serde(rename = "__typename", default)]
    kind: String,
    #[serde(default)]
    login: String,
    #[serde(rename = "databaseId")]
    id: Option<u64>,
}

impl WireActor {
    pub(super) fn user(self) -> GitHubUser {
        GitHubUser {
            id: self.id,
            is_bot: self.kind == "Bot",
            login: self.login(),
        }
    }

    /// Login in REST's spelling: GraphQL omits the suffix `[bot]` of an App.
    fn login(self) -> String {
        match self.kind.as_str() {
            "Bot" => format!("{}[bot]", self.login),
            _ => self.login,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEdit {
    edited_at: String,
    editor: Option<WireActor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireIssueComment {
    database_id: Option<u64>,
    body: String,
    author: Option<WireActor>,
    created_at: String,
    last_edited_at: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent {
    #[serde(rename = "__typename")]
    kind: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    created_at: String,
    actor: Option<WireActor>,
    assignee: Option<WireActor>,
    label: Option<WireLabel>,
}

impl From<WireGitHubIssue> for GitHubIssue {
    fn from(wire: WireGitHubIssue) -> Self {
        let mut edits: Vec<IssueEdit> = Vec::new();
        let body_edits = wire.user_content_edits.into_iter().flat_map(GraphqlNodes::known);
        edits.extend(body_edits.filter_map(|edit| {
            Some(IssueEdit {
                at: parse_instant(Some(&edit.edited_at))?,
                by: edit.editor.map(WireActor::user),
            })
        }));
        let mut events = Vec::new();
        for event in wire.timeline_items.known() {
            let Some(at) = parse_instant(Some(&event.created_at)) else {
                continue;
            };
            let by = event.actor.map(WireActor::user);
            let wish = match (event.kind.as_str(), event.assignee, event.label) {
                // A rename of the title is an edit; GitHub's list of edits covers the body only.
                ("RenamedTitleEvent", ..) => {
                    edits.push(IssueEdit { at, by });
                    continue;
                }
                ("AssignedEvent", Some(assignee), _) => IssueWish::Assigned(assignee.login()),
                ("LabeledEvent", _, Some(label)) => IssueWish::Labeled(label.name),
                _ => continue,
            };
            let id = event.id;
            events.push(IssueTimelineEvent { id, at, by, wish });
        }
        edits.sort_by_key(|edit| edit.at);
        Self {
            title: wire.title,
            body: wire.body,
            url: wire.url,
            is_open: wire.state == "OPEN",
            lock: parse_lock(wire.locked, wire.active_lock_reason),
            created_at: parse_instant(Some(&wire.created_at)),
            author: wire.author.map(WireActor::user),
            assigned: IssueAttributes {
                assignees: wire.assignees.known().map(|user| user.login).collect(),
                labels: wire
                    .labels
                    .into_iter()
                    .flat_map(GraphqlNodes::known)
                    .map(|label| label.name)
                    .collect(),
            },
            edits,
            events,
            comments: wire
                .comments
                .known()
                .filter_map(WireIssueComment::into_comment)
                .collect(),
        }
    }
}

impl WireIssueComment {
    fn into_comment(self) -> Option<IssueComment> {
        let created_at = parse_instant(Some(&self.created_at))?;
        Some(IssueComment {
            id: GitHubCommentId(self.database_id?),
            author: self.author.map(WireActor::user),
            body: self.body,
            created_at,
            updated_at: parse_instant(self.last_edited_at.as_deref()).unwrap_or(created_at),
        })
    }
}
