//! Projects over GraphQL. Only the project token reaches them, like a classic token with the scope `project`
//! on GitHub.

use std::collections::BTreeMap;

use anyhow::Context as _;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::FakeGitHub;
use super::auth::GitHubCaller;
use super::graphql::render_graphql_error;
use super::hub::{GitHubRecords, GitHubState};
use crate::http::render_json_answer;

/// Project of an organization or user.
#[derive(Debug, Clone)]
pub(super) struct StandInProject {
    owner: String,
    number: u64,
    title: String,
    fields: Vec<BoardField>,
    /// Node ids of issues, with the values of their fields by name.
    items: Vec<(String, BTreeMap<String, String>)>,
}

#[derive(Debug, Clone)]
struct BoardField {
    name: String,
    kind: &'static str,
    options: Vec<String>,
}

impl StandInProject {
    fn node_id(&self) -> String {
        format!("PVT_{}_{}", self.owner, self.number)
    }

    fn item_id(&self, index: usize) -> String {
        format!("PVTI_{}_{}_{index}", self.owner, self.number)
    }

    fn field_id(&self, index: usize) -> String {
        format!("PVTF_{}_{}_{index}", self.owner, self.number)
    }

    /// Returns every field that our query selects. Only a single-select field has options.
    fn json(&self) -> Value {
        let fields = self.fields.iter().enumerate().map(|(index, field)| {
            let mut node = json!({"__typename": "ProjectV2Field", "id": self.field_id(index), "name": field.name, "dataType": field.kind});
            if field.kind == "SINGLE_SELECT" {
                let options = field.options.iter();
                let options = options.map(|name| json!({"id": option_id(name), "name": name}));
                node["options"] = options.collect();
                node["__typename"] = json!("ProjectV2SingleSelectField");
            }
            node
        });
        json!({"id": self.node_id(), "title": self.title, "fields": {"nodes": fields.collect::<Vec<_>>()}})
    }
}

fn option_id(name: &str) -> String {
    // Equal names have equal ids in every run, so that tests can compute them.
    let digits = name
        .bytes()
        .fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 100_000_000);
    format!("{digits:08x}")
}

type ProjectAnswer = Result<Value, (&'static str, String)>;

/// Answers queries and mutations of projects; returns nothing for other queries.
pub(super) fn answer_project_query(
    hub: &GitHubState,
    caller: &GitHubCaller,
    query: &str,
    variables: &Value,
) -> Option<Response> {
    let (name, ask): (_, fn(&mut GitHubRecords, &Value) -> ProjectAnswer) =
        if query.contains("addProjectV2ItemById") {
            ("addProjectV2ItemById", add_project_issue)
        } else if query.contains("updateProjectV2ItemFieldValue") {
            ("updateProjectV2ItemFieldValue", set_project_field)
        } else if query.contains("projectV2(number") {
            ("repositoryOwner", answer_project_owner)
        } else {
            return None;
        };
    if !caller.token.is_for_projects() {
        hub.log.violation(format!("{} asked for {name}", caller.login()));
        return Some(render_graphql_error(
            "INSUFFICIENT_SCOPES",
            "Your token has not been granted the required scopes to execute this query.",
        ));
    }
    Some(match ask(&mut hub.world(), variables) {
        Ok(said) => render_json_answer(StatusCode::OK, json!({"data": {name: said}})),
        Err((kind, why)) => render_graphql_error(kind, &why),
    })
}

fn read_text_variable<'a>(variables: &'a Value, name: &str) -> &'a str {
    variables[name].as_str().unwrap_or_default()
}

/// Answers with a project. An unknown owner is null without an error; an unknown project of a known owner is
/// an error.
fn answer_project_owner(world: &mut GitHubRecords, variables: &Value) -> ProjectAnswer {
    let (owner, number) = (
        read_text_variable(variables, "owner"),
        variables["number"].as_u64(),
    );
    let is_theirs = |project: &&StandInProject| project.owner.eq_ignore_ascii_case(owner);
    if !world.projects.iter().any(|project| is_theirs(&project)) {
        return Ok(Value::Null);
    }
    let mut theirs = world.projects.iter().filter(is_theirs);
    let found = theirs.find(|project| Some(project.number) == number);
    let found = found.ok_or_else(|| {
        let number = number.unwrap_or_default();
        let why = format!("Could not resolve to a ProjectV2 with the number {number}.");
        ("NOT_FOUND", why)
    })?;
    Ok(json!({"__typename": "Organization", "projectV2": found.json()}))
}

fn no_node<T>(id: &str) -> Result<T, (&'static str, String)> {
    let why = format!("Could not resolve to a node with the global id of '{id}'");
    Err(("NOT_FOUND", why))
}

fn find_project<'a>(
    world: &'a mut GitHubRecords,
    id: &str,
) -> Result<&'a mut StandInProject, (&'static str, String)> {
    let found = world.projects.iter_mut().find(|project| project.node_id() == id);
    found.map_or_else(|| no_node(id), Ok)
}

/// Adds an issue to a project. An issue that is already there keeps its item id, as on GitHub.
fn add_project_issue(world: &mut GitHubRecords, variables: &Value) -> ProjectAnswer {
    let content = read_text_variable(variables, "content");
    let mut issues = world.repos.values().flat_map(|repo| repo.issues.values());
    if !issues.any(|issue| issue.node_id() == content) {
        return no_node(content);
    }
    let project = find_project(world, read_text_variable(variables, "project"))?;
    let known = project.items.iter().position(|(issue, _)| issue == content);
    let index = known.unwrap_or_else(|| {
        project.items.push((content.to_owned(), BTreeMap::new()));
        project.items.len() - 1
    });
    Ok(json!({"item": {"id": project.item_id(index)}}))
}

fn set_project_field(world: &mut GitHubRecords, variables: &Value) -> ProjectAnswer {
    let project = find_project(world, read_text_variable(variables, "project"))?;
    let (item, field) = (
        read_text_variable(variables, "item"),
        read_text_variable(variables, "field"),
    );
    let item_at = (0..project.items.len()).find(|index| project.item_id(*index) == item);
    let field_at = (0..project.fields.len()).find(|index| project.field_id(*index) == field);
    let Some(item_at) = item_at else {
        return no_node(item);
    };
    let Some(field_at) = field_at else {
        return no_node(field);
    };
    let field = project.fields[field_at].clone();
    let value = &variables["value"];
    let set = match field.kind {
        "SINGLE_SELECT" => {
            let id = value["singleSelectOptionId"].as_str();
            let mut options = field.options.iter();
            // The API takes the option's id, never its name.
            options.find(|name| Some(option_id(name).as_str()) == id).cloned()
        }
        "NUMBER" => value["number"].as_f64().map(|number| number.to_string()),
        "TEXT" => value["text"].as_str().map(str::to_owned),
        _ => None,
    };
    // A value has exactly one member.
    let is_one = value.as_object().is_some_and(|parts| parts.len() == 1);
    let Some(set) = set.filter(|_| is_one) else {
        let why = format!("The value is not valid for the field {}", field.name);
        return Err(("VALIDATION", why));
    };
    project.items[item_at].1.insert(field.name, set);
    Ok(json!({"projectV2Item": {"id": item}}))
}

impl FakeGitHub {
    /// Creates a project with fields: name, type (`SINGLE_SELECT`, `NUMBER`, `TEXT` or `DATE`) and options. A
    /// title field always exists. It replaces a project of the same number.
    pub fn create_project(&self, owner: &str, number: u64, fields: &[(&str, &'static str, &[&str])]) {
        let fields = fields.iter().map(|(name, kind, options)| BoardField {
            name: (*name).to_owned(),
            kind,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        });
        let title = BoardField {
            name: "Title".to_owned(),
            kind: "TITLE",
            options: Vec::new(),
        };
        let mut world = self.hub.world();
        world
            .projects
            .retain(|known| (known.owner.as_str(), known.number) != (owner, number));
        world.projects.push(StandInProject {
            owner: owner.to_owned(),
            number,
            title: format!("Project {number}"),
            fields: std::iter::once(title).chain(fields).collect(),
            items: Vec::new(),
        });
    }

    /// Values of an issue's fields in a project, by name; absent if the project does not contain the issue.
    ///
    /// # Errors
    /// When the project, repository or issue does not exist.
    pub fn project_values(
        &self,
        (owner, project): (&str, u64),
        repository: &str,
        issue: u64,
    ) -> anyhow::Result<Option<BTreeMap<String, String>>> {
        let mut world = self.hub.world();
        let node = world.repo(repository)?.issue(issue)?.node_id();
        let found = world
            .projects
            .iter()
            .find(|known| known.owner == owner && known.number == project);
        let items = &found.context("there is no such project")?.items;
        let item = items.iter().find(|(id, _)| *id == node);
        Ok(item.map(|(_, values)| values.clone()))
    }
}
