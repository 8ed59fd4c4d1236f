//! Projects: what fields one has, and what they say of an issue. GitHub offers them over GraphQL alone, and an App sees those of
//! an organisation only where the whole organisation gives it that right; so they have a token of their own.

use domain::RepositoryName;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Error, Writer, call::Call, client::Client, permissions::Access};

/// The first 50 fields; GitHub allows no more.
const PROJECT: &str = "query($owner: String!, $number: Int!) { repositoryOwner(login: $owner) { __typename ... on ProjectV2Owner { \
    projectV2(number: $number) { id title fields(first: 50) { nodes { __typename \
    ... on ProjectV2Field { id name dataType } ... on ProjectV2IterationField { id name dataType } \
    ... on ProjectV2SingleSelectField { id name dataType options { id name } } } } } } } }";
const ADD: &str = "mutation($project: ID!, $content: ID!) { addProjectV2ItemById(input: {projectId: $project, \
    contentId: $content}) { item { id } } }";
const SET: &str = "mutation($project: ID!, $item: ID!, $field: ID!, $value: ProjectV2FieldValue!) { \
    updateProjectV2ItemFieldValue(input: {projectId: $project, itemId: $item, fieldId: $field, value: $value}) \
    { projectV2Item { id } } }";

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    id: String,
    /// As people read it.
    pub title: String,
    /// Its fields.
    pub fields: Vec<ProjectField>,
}

/// A field of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectField {
    id: String,
    /// As people read it.
    pub name: String,
    kind: FieldKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldKind {
    /// One of these: their names and ids.
    Options(Vec<(String, String)>),
    Number,
    Text,
    /// Dates, iterations and what GitHub derives by itself.
    Other,
}

/// A value that a field can have.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectValue(Value);

/// An issue in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectItem {
    project: String,
    item: String,
}

impl Project {
    /// The field of this name. Case does not matter.
    pub fn field(&self, name: &str) -> Option<&ProjectField> {
        let is_it = |field: &&ProjectField| field.name.to_lowercase() == name.to_lowercase();
        self.fields.iter().find(is_it)
    }
}

impl ProjectField {
    /// The value that a text means for it: the name of an option, a number, or any text; nothing for what it cannot have.
    pub fn value(&self, text: &str) -> Option<ProjectValue> {
        let value = match &self.kind {
            FieldKind::Options(options) => {
                let is_it = |(name, _): &&(String, String)| name.to_lowercase() == text.to_lowercase();
                let (_, id) = options.iter().find(is_it)?;
                json!({ "singleSelectOptionId": id })
            }
            FieldKind::Number => {
                let number: f64 = text.trim().parse().ok()?;
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

/// Without an id it is a kind of field that the query does not know.
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

impl Writer {
    /// Whether the settings have a token for the projects of the server that has a repository.
    pub fn sees_projects(&self, repository: &RepositoryName) -> bool {
        self.clients.of(repository).is_ok_and(Client::has_project_token)
    }

    /// A project, by its owner and number, on the server that has a repository.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such project or the token may not see it, [`Error::Unauthorized`] without a
    /// token.
    pub async fn project(
        &self,
        repository: &RepositoryName,
        owner: &str,
        number: u64,
    ) -> Result<Project, Error> {
        let client = self.clients.of(repository)?;
        let body = json!({ "query": PROJECT, "variables": { "owner": owner, "number": number } });
        let data = client.projects(Call::Query("/graphql", &body)).await?;
        let data: WireOwners = serde_json::from_value(data).map_err(|error| Error::Malformed {
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
            .filter(|field| !field.id.is_empty());
        Ok(Project {
            id: found.id,
            title: found.title,
            fields: known.map(ProjectField::from).collect(),
        })
    }

    /// Puts an issue into a project; one that is there stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such issue or the token may not see it, [`Error::Forbidden`] when it may not
    /// change the project.
    pub async fn put_into_project(
        &self,
        repository: &RepositoryName,
        number: u64,
        project: &Project,
    ) -> Result<ProjectItem, Error> {
        #[derive(Deserialize)]
        struct Node {
            node_id: String,
        }
        let client = self.clients.of(repository)?;
        let path = format!("/issues/{number}");
        let issue: Node = client.get(repository, Access::Write, &path).await?;
        let variables = json!({ "project": project.id, "content": issue.node_id });
        let body = json!({ "query": ADD, "variables": variables });
        let data = client.projects(Call::Post("/graphql", &body)).await?;
        let item = data["addProjectV2ItemById"]["item"]["id"].as_str();
        let item = item.ok_or_else(|| Error::Malformed {
            detail: "an item of a project without an id".to_owned(),
        })?;
        Ok(ProjectItem {
            project: project.id.clone(),
            item: item.to_owned(),
        })
    }

    /// Sets a field of an issue in a project.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when the token may not change the project, [`Error::Rejected`] when GitHub refuses the value.
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
        client.projects(Call::Post("/graphql", &body)).await.map(drop)
    }
}
