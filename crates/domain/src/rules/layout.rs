//! Sections of the rules about what is where in the repository.

use serde::{Deserialize, Serialize};

/// dbt projects, told to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DbtRules {
    /// The repository uses dbt.
    pub enabled: bool,
    /// Its projects.
    pub projects: Vec<DbtProject>,
}

impl DbtRules {
    /// The commands that compile every project.
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

/// One dbt project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DbtProject {
    /// Folder in the repository.
    pub path: String,
    /// Its manifest, relative to the folder.
    pub manifest_path: String,
}

/// A part of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleRules {
    /// How people and the model call it.
    pub name: String,
    /// Folders and patterns relative to the root, such as `services/*/api` or `**/*.proto`.
    pub paths: Vec<String>,
    /// What is in it, told to the model.
    pub description: String,
    /// The kinds of ticket that may change it, as the tracker names them; empty: all.
    pub kinds: Vec<String>,
}
