//! Arguments of the demo, and the settings that follow from them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use e2e::{ProviderDialect, VendorAddresses};
use journeyman::account_settings::find_default_model;
use testkit::fixture;

/// Plays one ticket to a merged pull request.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Source of model replies: the script, or a real model (key in `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`)
    #[arg(long, value_enum, default_value = "scripted")]
    pub(crate) model: DemoModel,
    /// Name of the model
    #[arg(long)]
    pub(crate) model_name: Option<String>,
    /// Base URL of a compatible model server
    #[arg(long)]
    pub(crate) model_base_url: Option<String>,
    /// Play on the files of this folder instead of the built-in project
    #[arg(long, value_name = "DIR")]
    pub(crate) repository: Option<PathBuf>,
    /// Keep everything running at the end, until Ctrl-C
    #[arg(long)]
    pub(crate) stay: bool,
    #[command(subcommand)]
    pub(crate) role: Option<DemoRole>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoModel {
    Scripted,
    Anthropic,
    Openai,
}

#[derive(clap::Subcommand)]
pub(crate) enum DemoRole {
    /// Run the stand-ins (started by the demo itself)
    #[command(hide = true)]
    StandIns { repository: Option<PathBuf> },
}

impl Arguments {
    /// Returns the settings for the stand-ins and writes the repository's rules below `folder`.
    pub(crate) fn environment(
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
        let dialect = if self.model == DemoModel::Openai {
            ProviderDialect::OpenAi
        } else {
            ProviderDialect::Anthropic
        };
        let mut environment = outside.environment(dialect, &rules);
        if self.model != DemoModel::Scripted {
            // The settings of the scripted model give way to those of the real one.
            environment.retain(|(name, _)| !name.starts_with("JOURNEYMAN__MODEL__"));
            environment.extend(self.real_model(dialect)?);
        }
        Ok(environment)
    }

    fn real_model(&self, dialect: ProviderDialect) -> anyhow::Result<[(String, String); 4]> {
        let (variable, base) = match dialect {
            ProviderDialect::Anthropic => ("ANTHROPIC_API_KEY", "https://api.anthropic.com"),
            ProviderDialect::OpenAi => ("OPENAI_API_KEY", "https://api.openai.com/v1"),
        };
        let key = std::env::var_os(variable).and_then(|key| key.into_string().ok());
        let key = key.with_context(|| format!("{variable} must hold the model's key"))?;
        let usual = find_default_model(dialect.as_str()).unwrap_or_default();
        let name = self.model_name.clone().unwrap_or_else(|| usual.to_owned());
        let base = self.model_base_url.clone().unwrap_or_else(|| base.to_owned());
        let settings = [
            ("DIALECT", dialect.as_str().to_owned()),
            ("NAME", name),
            ("BASE_URL", base),
            ("API_KEY", key),
        ];
        Ok(settings.map(|(key, value)| (format!("JOURNEYMAN__MODEL__{key}"), value)))
    }
}
