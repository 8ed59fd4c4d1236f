//! Issues: what they ask for, and the end of them.

use domain::{Reactable, Reaction, RepositoryName};
use serde_json::{Value, json};

use crate::{
    ETag, Error, Issue, ListedIssue, PolledIssues, Reader, Writer,
    client::{Method, encode},
    permissions::Access,
    wire::{WireIssueData, WireIssueStub},
};

const PAGE: usize = 100;

/// One call for what REST tells in four, and who edited the text, which REST does not tell. Lists are the latest 100, which
/// GitHub gives oldest first; edits come newest first.
const ISSUE: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { issue(number: $number) { \
    title body url state createdAt author { __typename login ... on User { databaseId } ... on Bot { databaseId } } \
    labels(first: 100) { nodes { name } } assignees(first: 20) { nodes { login } } \
    userContentEdits(first: 100) { nodes { editedAt editor { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } \
    comments(last: 100) { nodes { databaseId body createdAt lastEditedAt author { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } \
    timelineItems(last: 100, itemTypes: [ASSIGNED_EVENT, LABELED_EVENT, RENAMED_TITLE_EVENT]) { nodes { __typename \
    ... on AssignedEvent { id createdAt actor { __typename login ... on User { databaseId } ... on Bot { databaseId } } assignee { __typename ... on Actor { login } } } \
    ... on LabeledEvent { id createdAt actor { __typename login ... on User { databaseId } ... on Bot { databaseId } } label { name } } \
    ... on RenamedTitleEvent { id createdAt actor { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } } } } }";

impl Reader {
    /// An issue with what happened to it; of comments, edits and events the latest 100 each.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no issue with that number: it may be a pull request, or was deleted or
    /// transferred.
    pub async fn issue(&self, repository: &RepositoryName, number: u64) -> Result<Issue, Error> {
        let client = self.clients.of(repository)?;
        let data = client
            .query(repository, Access::Look, ISSUE, json!({ "number": number }))
            .await?;
        let data: WireIssueData = serde_json::from_value(data).map_err(|error| Error::Malformed {
            // What serde quotes is the issue's text.
            detail: format!("the query of an issue, {:?} error", error.classify()),
        })?;
        let issue = data.repository.and_then(|repository| repository.issue);
        issue.map(Issue::from).ok_or_else(|| Error::NotFound {
            what: format!("issue {number}"),
        })
    }

    /// The open issues, latest change first; the 100 latest at most. With the tag of the poll before, an answer without
    /// news costs nothing.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn open_issues(
        &self,
        repository: &RepositoryName,
        known: Option<&ETag>,
    ) -> Result<PolledIssues, Error> {
        let path = format!("/issues?state=open&sort=updated&direction=desc&per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found: Option<(Vec<WireIssueStub>, _)> =
            client.get_unless(repository, Access::Look, &path, known).await?;
        Ok(match found {
            None => PolledIssues::Unchanged,
            Some((found, etag)) => PolledIssues::Changed {
                issues: found.into_iter().filter_map(WireIssueStub::into_stub).collect(),
                etag,
            },
        })
    }
}

/// Which issues to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueState {
    /// Those that wait.
    Open,
    /// Those that are over.
    Closed,
}

impl Reader {
    /// The issues of a repository, the latest change first; what pull requests leave of the first 100.
    ///
    /// # Errors
    /// [`Error::NotFound`] when our account sees no such repository.
    pub async fn list_issues(
        &self,
        repository: &RepositoryName,
        state: IssueState,
    ) -> Result<Vec<ListedIssue>, Error> {
        let state = match state {
            IssueState::Open => "open",
            IssueState::Closed => "closed",
        };
        let path = format!("/issues?state={state}&sort=updated&direction=desc&per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found: Vec<WireIssueStub> = client.get(repository, Access::Look, &path).await?;
        Ok(found.into_iter().filter_map(WireIssueStub::into_listed).collect())
    }
}

impl Writer {
    /// Whether an issue is open.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn is_issue_open(&self, repository: &RepositoryName, number: u64) -> Result<bool, Error> {
        #[derive(serde::Deserialize)]
        struct State {
            state: String,
        }
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: State = client.get(repository, Access::Write, &path).await?;
        Ok(found.state == "open")
    }

    /// Closes an issue as completed; one that is closed already stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn close_issue(&self, repository: &RepositoryName, number: u64) -> Result<(), Error> {
        let body = json!({ "state": "closed", "state_reason": "completed" });
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let _: Value = client.write(repository, Method::Patch, &path, &body).await?;
        Ok(())
    }

    /// Reacts to what somebody wrote; a second time changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it is not there.
    pub async fn react(&self, to: &Reactable, reaction: Reaction) -> Result<(), Error> {
        let repository = to.repository();
        let client = self.clients.of(repository)?;
        let path = match to {
            Reactable::Discussion { number, comment, .. } => {
                let comment = comment.as_deref();
                return self
                    .react_in_discussion(repository, *number, comment, reaction)
                    .await;
            }
            Reactable::Issue { number, .. } => format!("/issues/{number}/reactions"),
            Reactable::Comment { id, .. } => format!("/issues/comments/{id}/reactions"),
            Reactable::LineComment { id, .. } => format!("/pulls/comments/{id}/reactions"),
        };
        let body = json!({ "content": reaction.as_str() });
        let _: Value = client.write(repository, Method::Post, &path, &body).await?;
        Ok(())
    }

    /// The logins of those who have an issue.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that number.
    pub async fn assignees(&self, repository: &RepositoryName, number: u64) -> Result<Vec<String>, Error> {
        #[derive(serde::Deserialize)]
        struct Login {
            login: String,
        }
        #[derive(serde::Deserialize)]
        struct Assigned {
            #[serde(default)]
            assignees: Vec<Login>,
        }
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let found: Assigned = client.get(repository, Access::Write, &path).await?;
        Ok(found.assignees.into_iter().map(|one| one.login).collect())
    }

    /// Gives an issue to an account, and says whether it has it now: GitHub leaves out without a word whom it cannot
    /// assign, Apps among them.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no issue with that number.
    pub async fn assign(&self, repository: &RepositoryName, number: u64, login: &str) -> Result<bool, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/assignees");
        let body = json!({ "assignees": [login] });
        let _: Value = client.write(repository, Method::Post, &path, &body).await?;
        let now = self.assignees(repository, number).await?;
        Ok(now.iter().any(|one| one.eq_ignore_ascii_case(login)))
    }

    /// Takes an issue from an account; one that does not have it is no error.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no issue with that number.
    pub async fn unassign(&self, repository: &RepositoryName, number: u64, login: &str) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/assignees");
        let body = json!({ "assignees": [login] });
        client.delete_with(repository, &path, &body).await
    }

    /// Takes a label from an issue or pull request; one that is not there is no error.
    ///
    /// # Errors
    /// [`Error`] when GitHub refuses.
    pub async fn remove_label(
        &self,
        repository: &RepositoryName,
        number: u64,
        label: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}/labels/{}", encode(label));
        Error::none_if_missing(client.delete(repository, &path).await).map(drop)
    }
}
