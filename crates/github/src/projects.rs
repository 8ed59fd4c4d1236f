//! GitHub Projects: their fields, and the values of an issue. GitHub offers them over GraphQL alone.
//!
//! An App sees an organization's projects only with a permission on the whole organization, so they have a
//! separate token.

use domain::RepositoryName;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error,
    client::{GitHubClient, GitHubClients},
    connection::GitHubCall,
    permissions::AccessKind,
};

// The first 50 fields, which is the most that GitHub permits in a project.
const PROJECT: &str = "query($owner: String!, $number: Int!) { repositoryOwner(login: $owner) { __typename ... on ProjectV2Owner { \
    projectV2(number: $number) { id title fields(first: 50) { nodes { __typename \
    ... on ProjectV2Field { id name dataType } ... on ProjectV2IterationField { id name dataType } \
    ... on ProjectV2SingleSelectField { id name dataType options { id name } } } } } } } }";
const ADD: &str = "mutation($project: ID!, $content: ID!) { addProjectV2ItemById(input: {projectId: $project, \
    contentId: $content}) { item { id } } }";
const SET: &str = "mutation($project: ID!, $item: ID!, $field: ID!, $value: ProjectV2FieldValue!) { \
    updateProjectV2ItemFieldValue(input: {projectId: $project, itemId: $item, fieldId: $field, value: $value}) \
    { projectV2Item { id } } }";

/// Project with its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubProject {
    id: String,
    /// Title as its page shows it.
    pub title: String,
    /// Fields that the query knows.
    pub fields: Vec<ProjectField>,
}

/// Field of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectField {
    id: String,
    /// Name as the project's page shows it.
    pub name: String,
    kind: FieldKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldKind {
    /// Single-select field: names and ids of its options.
    Options(Vec<(String, String)>),
    Number,
    Text,
    /// Dates, iterations and fields that GitHub derives, none of which is set here.
    Other,
}

/// Value that fits a field.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectValue(Value);

/// Issue as an item of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectItem {
    project: String,
    item: String,
}

impl GitHubProject {
    /// Finds the field of this name, regardless of case.
    pub fn field(&self, name: &str) -> Option<&ProjectField> {
        let is_it = |field: &&ProjectField| field.name.to_lowercase() == name.to_lowercase();
        self.fields.iter().find(is_it)
    }
}

impl ProjectField {
    /// Converts a text to a value of the field: an option's name, a number, or any text. `None` when the
    /// field cannot hold it.
    pub fn value(&self, text: &str) -> Option<ProjectValue> {
        let value = match &self.kind {
            FieldKind::Options(options) => {
                let is_it = |(name, _): &&(String, String)| name.to_lowercase() == text.to_lowercase();
                let (_, id) = options.iter().find(is_it)?;
                json!({ "singleSelectOptionId": id })
            }
            FieldKind::Number => {
                let number: f64 = text.trim().parse().ok()?;
                // JSON has no infinite numbers.
                number.is_finite().then(|| json!({ "number": number }))?
            }
            FieldKind::Text => json!({ "text": text }),
            FieldKind::Other => return None,
        };
        Some(ProjectValue(value))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOwners {
    repository_owner: Option<WireOwner>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOwner {
    #[serde(rename = "projectV2", default)]
    project: Option<WireProject>,
}

#[derive(Deserialize)]
struct WireProject {
    id: String,
    title: String,
    fields: WireNodes,
}

#[derive(Deserialize)]
struct WireNodes {
    nodes: Vec<WireField>,
}

/// Field without an id: of a kind that the query does not select.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireField {
    id: String,
    name: String,
    data_type: String,
    options: Vec<WireOption>,
}

#[derive(Deserialize)]
struct WireOption {
    id: String,
    name: String,
}

impl From<WireField> for ProjectField {
    fn from(wire: WireField) -> Self {
        let options = wire.options.into_iter().map(|option| (option.name, option.id));
        Self {
            id: wire.id,
            name: wire.name,
            kind: match wire.data_type.as_str() {
                "SINGLE_SELECT" => FieldKind::Options(options.collect()),
                "NUMBER" => FieldKind::Number,
                "TEXT" => FieldKind::Text,
                _ => FieldKind::Other,
            },
        }
    }
}

/// Writer of the fields of projects; cheap to clone.
#[derive(Clone, Debug)]
pub struct ProjectWriter {
    pub(crate) clients: GitHubClients,
}

impl ProjectWriter {
    /// True when the settings have a project token for the repository's server.
    pub fn sees_projects(&self, repository: &RepositoryName) -> bool {
        self.clients
            .of(repository)
            .is_ok_and(GitHubClient::has_project_token)
    }

    /// Reads a project by its owner and number, on the repository's server.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the project is missing or invisible to the token, [`Error::Unauthorized`]
    /// without a token.
    pub async fn project(
        &self,
        repository: &RepositoryName,
        owner: &str,
        number: u64,
    ) -> Result<GitHubProject, Error> {
        let client = self.clients.of(repository)?;
        let body = json!({ "query": PROJECT, "variables": { "owner": owner, "number": number } });
        let data = client.projects(GitHubCall::Query("/graphql", &body)).await?;
        let data: WireOwners = serde_json::from_value(data).map_err(|error| Error::Malformed {
            // The serde message would quote the project's texts, so that only the class of the error is
            // kept.
            detail: format!("the query of a project, {:?} error", error.classify()),
        })?;
        let found = data.repository_owner.and_then(|owner| owner.project);
        let found = found.ok_or_else(|| Error::NotFound {
            what: format!("project {number} of {owner}"),
        })?;
        let known = found
            .fields
            .nodes
            .into_iter()
            // Fields of kinds that the query does not select arrive without an id.
            .filter(|field| !field.id.is_empty());
        Ok(GitHubProject {
            id: found.id,
            title: found.title,
            fields: known.map(ProjectField::from).collect(),
        })
    }

    /// Adds an issue to a project; an issue that it contains already stays unchanged.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue is missing or invisible to the token, [`Error::Forbidden`] when the
    /// token has no permission to change the project.
    pub async fn put_into_project(
        &self,
        repository: &RepositoryName,
        number: u64,
        project: &GitHubProject,
    ) -> Result<ProjectItem, Error> {
        #[derive(Deserialize)]
        struct IssueNode {
            node_id: String,
        }
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let issue: IssueNode = client.get(repository, AccessKind::Write, &path).await?;
        let variables = json!({ "project": project.id, "content": issue.node_id });
        let body = json!({ "query": ADD, "variables": variables });
        let data = client.projects(GitHubCall::Post("/graphql", &body)).await?;
        let item = data["addProjectV2ItemById"]["item"]["id"].as_str();
        // The project contains the issue, although the answer does not name the item.
        let item = item.ok_or_else(|| Error::Unknown {
            detail: "an item of a project without an id".to_owned(),
            source: None,
        })?;
        Ok(ProjectItem {
            project: project.id.clone(),
            item: item.to_owned(),
        })
    }

    /// Sets a field of an issue in a project.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when the token has no permission to change the project, [`Error::Rejected`] when
    /// GitHub refuses the value.
    pub async fn set_project_field(
        &self,
        repository: &RepositoryName,
        item: &ProjectItem,
        field: &ProjectField,
        value: &ProjectValue,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let variables = json!({
            "project": item.project, "item": item.item, "field": field.id, "value": value.0,
        });
        let body = json!({ "query": SET, "variables": variables });
        client
            .projects(GitHubCall::Post("/graphql", &body))
            .await
            .map(drop)
    }
}
