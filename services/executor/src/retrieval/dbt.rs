//! Finds dbt models that a text names, by the manifests at the base commit.

use std::collections::{BTreeMap, HashSet};

use domain::cause::chain;
use proto::executor::{DbtProject, SeedChunk};
use serde::Deserialize;

use crate::workspace::Workspace;

const MAX_PROJECTS: usize = 20;
const MAX_MODELS: usize = 5;
const USUAL_MANIFEST: &str = "target/manifest.json";

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    nodes: BTreeMap<String, Node>,
}

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    resource_type: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    original_file_path: String,
}

/// Returns the files of the models whose whole name is in the text.
pub(super) fn named(workspace: &Workspace, projects: &[DbtProject], text: &str) -> Vec<SeedChunk> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: HashSet<&str> = text.split(|letter| !is_part(letter)).collect();
    let projects = projects.iter().take(MAX_PROJECTS);
    let models = projects.flat_map(|project| of_project(workspace, project, &words));
    models.take(MAX_MODELS).collect()
}

fn of_project(workspace: &Workspace, project: &DbtProject, words: &HashSet<&str>) -> Vec<SeedChunk> {
    let path = match project.manifest_path.as_str() {
        "" => USUAL_MANIFEST,
        path => path,
    };
    let manifest = within(&project.path, path);
    let Some(known) = read(workspace, &manifest) else {
        return Vec::new();
    };
    let models = known.nodes.into_values();
    models
        .filter(|node| node.resource_type == "model" && words.contains(node.name.as_str()))
        .map(|node| SeedChunk {
            path: within(&project.path, &node.original_file_path),
            score: 1.0,
            reason: format!("the dbt model {}, by {manifest}", node.name),
            symbol: node.name,
            ..SeedChunk::default()
        })
        .collect()
}

fn read(workspace: &Workspace, path: &str) -> Option<Manifest> {
    match workspace.at_base(path) {
        Ok(bytes) => serde_json::from_slice(&bytes?)
            .inspect_err(
                |error| tracing::info!(path, error = %chain(error), "a dbt manifest could not be read"),
            )
            .ok(),
        Err(problem) => {
            tracing::warn!(path, error = %chain(&problem), "a dbt manifest could not be looked up");
            None
        }
    }
}

fn within(folder: &str, path: &str) -> String {
    match folder.trim_matches('/') {
        "" | "." => path.to_owned(),
        folder => format!("{folder}/{path}"),
    }
}
