//! Finds dbt models that a text names, by the manifests at the base commit.

use std::collections::{BTreeMap, HashSet};

use domain::cause::format_error_chain;
use proto::executor::{DbtProject, SeedChunk};
use serde::Deserialize;

use crate::workspace::Workspace;

const MAX_PROJECTS: usize = 20;
const MAX_MODELS: usize = 5;
// Default of dbt's `target-path`.
const USUAL_MANIFEST: &str = "target/manifest.json";

#[derive(Deserialize)]
struct DbtManifest {
    #[serde(default)]
    nodes: BTreeMap<String, DbtNode>,
}

#[derive(Deserialize)]
struct DbtNode {
    #[serde(default)]
    resource_type: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    original_file_path: String,
}

/// Returns the files of the models whose whole name is in the text.
pub(super) fn find_named_models(
    workspace: &Workspace,
    projects: &[DbtProject],
    text: &str,
) -> Vec<SeedChunk> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: HashSet<&str> = text.split(|letter| !is_part(letter)).collect();
    let projects = projects.iter().take(MAX_PROJECTS);
    let models = projects.flat_map(|project| find_project_models(workspace, project, &words));
    models.take(MAX_MODELS).collect()
}

fn find_project_models(workspace: &Workspace, project: &DbtProject, words: &HashSet<&str>) -> Vec<SeedChunk> {
    let path = match project.manifest_path.as_str() {
        "" => USUAL_MANIFEST,
        path => path,
    };
    let manifest = join_project_path(&project.path, path);
    let Some(known) = read_manifest(workspace, &manifest) else {
        return Vec::new();
    };
    let models = known.nodes.into_values();
    models
        .filter(|node| node.resource_type == "model" && words.contains(node.name.as_str()))
        .map(|node| SeedChunk {
            path: join_project_path(&project.path, &node.original_file_path),
            score: 1.0,
            reason: format!("the dbt model {}, by {manifest}", node.name),
            symbol: node.name,
            ..SeedChunk::default()
        })
        .collect()
}

fn read_manifest(workspace: &Workspace, path: &str) -> Option<DbtManifest> {
    match workspace.git.read_base(path) {
        Ok(bytes) => serde_json::from_slice(&bytes?)
            .inspect_err(
                |error| tracing::info!(path, error = %format_error_chain(error), "a dbt manifest could not be read"),
            )
            .ok(),
        Err(problem) => {
            tracing::warn!(path, error = %format_error_chain(&problem), "a dbt manifest could not be looked up");
            None
        }
    }
}

fn join_project_path(folder: &str, path: &str) -> String {
    match folder.trim_matches('/') {
        "" | "." => path.to_owned(),
        folder => format!("{folder}/{path}"),
    }
}
