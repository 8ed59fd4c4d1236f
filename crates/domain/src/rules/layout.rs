//! Rules for the structure of the repository.

use serde::{Deserialize, Serialize};

/// dbt projects, which the prompt contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DbtRules {
    /// True when the repository uses dbt.
    pub enabled: bool,
    /// The projects of the repository.
    pub projects: Vec<DbtProject>,
}

impl DbtRules {
    /// Returns the commands that compile every project.
    pub fn compile(&self) -> Vec<String> {
        let quoted = |path: &str| format!("'{}'", path.replace('\'', "'\\''"));
        let in_folder = |project: &DbtProject| match project.path.as_str() {
            "" | "." => "dbt compile".to_owned(),
            path => format!("dbt compile --project-dir {}", quoted(path)),
        };
        match self.projects.is_empty() {
            true => vec!["dbt compile".to_owned()],
            false => self.projects.iter().map(in_folder).collect(),
        }
    }
}

/// One dbt project of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DbtProject {
    /// Folder of the project, relative to the root.
    pub path: String,
    /// Path of its manifest, relative to the folder.
    pub manifest_path: String,
}

/// A part of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleRules {
    /// Name of the module for people and the model.
    pub name: String,
    /// Folders and patterns relative to the root, such as `services/*/api` or `**/*.proto`.
    pub paths: Vec<String>,
    /// Description of the contents, which the prompt contains.
    pub description: String,
    /// Kinds of tickets that may change it, by their names in the tracker; empty: all.
    pub kinds: Vec<String>,
}
