//! Arguments of the demo, and the settings that follow from them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use testkit::fixture;

use super::vendor_addresses::{ProviderDialect, VendorAddresses};
use crate::account_settings::find_default_model;

/// Play one ticket to a merged pull request against stand-ins of Jira, GitHub and the model; needs no account and no key
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Source of model replies: the script, or a real model (key in `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`)
    #[arg(long, value_enum, default_value = "scripted")]
    pub(super) model: DemoModel,
    /// Name of the model
    #[arg(long)]
    model_name: Option<String>,
    /// Base URL of a compatible model server
    #[arg(long)]
    model_base_url: Option<String>,
    /// Play on the files of this folder instead of the built-in project; its tests run by `python3 -m unittest`
    #[arg(long, value_name = "DIR")]
    pub(super) repository: Option<PathBuf>,
    /// Keep everything running after the verdict, until Ctrl-C
    #[arg(long)]
    pub(super) stay: bool,
}

/// Source of the model's replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DemoModel {
    /// Replies of the script.
    Scripted,
    /// Model of Anthropic, or of a server that speaks its interface.
    Anthropic,
    /// Model of `OpenAI`, or of a server that speaks its Chat Completions.
    Openai,
    /// Model of `OpenAI`, or of a server that speaks its Responses.
    OpenaiResponses,
}

impl DemoArguments {
    /// Returns the settings for the stand-ins and writes the repository's rules below `folder`.
    pub(super) fn environment(
        &self,
        outside: &VendorAddresses,
        folder: &Path,
    ) -> anyhow::Result<Vec<(String, String)>> {
        let rules = folder.join("rules");
        std::fs::create_dir_all(&rules)?;
        let (owner, name) = fixture::REPOSITORY.split_once('/').context("owner/name")?;
        let project = fixture::PROJECT;
        let text = format!(
            "repo: {{owner: {owner}, name: {name}}}\njira: {{project_key: {project}}}\nagent: {{review_status: In Review}}\n"
        );
        std::fs::write(rules.join("shop.yaml"), text)?;
        let dialect = match self.model {
            DemoModel::Openai => ProviderDialect::OpenAi,
            DemoModel::OpenaiResponses => ProviderDialect::Responses,
            DemoModel::Scripted | DemoModel::Anthropic => ProviderDialect::Anthropic,
        };
        let mut environment = outside.environment(dialect, &rules);
        if self.model != DemoModel::Scripted {
            // The settings of the scripted model give way to those of the real one.
            environment.retain(|(name, _)| !name.starts_with("JOURNEYMAN__MODEL__"));
            environment.extend(self.real_model(dialect)?);
        }
        Ok(environment)
    }

    /// Files of the folder that replaces the built-in project; absent without one.
    pub(super) fn project_files(&self) -> anyhow::Result<Option<Vec<(String, String)>>> {
        let Some(folder) = &self.repository else {
            return Ok(None);
        };
        anyhow::ensure!(
            folder.is_dir(),
            "--repository: {} is not a folder",
            folder.display()
        );
        read_folder(folder).map(Some)
    }

    /// Settings of a real model. Without a base URL the planner uses the provider's own.
    fn real_model(&self, dialect: ProviderDialect) -> anyhow::Result<Vec<(String, String)>> {
        let variable = match dialect {
            ProviderDialect::Anthropic => "ANTHROPIC_API_KEY",
            ProviderDialect::OpenAi | ProviderDialect::Responses => "OPENAI_API_KEY",
        };
        let key = std::env::var_os(variable).and_then(|key| key.into_string().ok());
        let key = key.with_context(|| format!("{variable} must hold the model's key"))?;
        let usual = find_default_model(dialect.as_str()).unwrap_or_default();
        let name = self.model_name.clone().unwrap_or_else(|| usual.to_owned());
        let settings = [
            ("DIALECT", Some(dialect.as_str().to_owned())),
            ("NAME", Some(name)),
            ("BASE_URL", self.model_base_url.clone()),
            ("API_KEY", Some(key)),
        ];
        let given = settings
            .into_iter()
            .filter_map(|(key, value)| Some((format!("JOURNEYMAN__MODEL__{key}"), value?)));
        Ok(given.collect())
    }
}

/// Reads all text files of a folder by relative path, without `.git` and symbolic links.
fn read_folder(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            // A link may lead out of the folder, or back into it without an end.
            if kind.is_dir() && !path.ends_with(".git") {
                open.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(folder)?.display().to_string();
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                files.push((name, text));
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_read_without_git_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, text) in [("a.py", "a"), ("pkg/b.py", "b"), (".git/config", "c")] {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink(".", root.join("circle")).unwrap();
        std::os::unix::fs::symlink("a.py", root.join("link.py")).unwrap();
        let mut files = read_folder(root).unwrap();
        files.sort();
        let expected = [("a.py", "a"), ("pkg/b.py", "b")];
        assert_eq!(
            files,
            expected.map(|(path, text)| (path.to_owned(), text.to_owned()))
        );
    }
}
