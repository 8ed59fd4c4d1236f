//! Model settings without a settings file: the provider whose key is in the environment.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;
use bootstrap::settings;
use git::FolderRepository;
use serde::Deserialize;
use tempfile::NamedTempFile;

use super::InFolder;
use crate::account_settings::find_default_model;

// Sections of a settings file that apply to work on a folder. The other sections concern servers that this work must not reach.
const SECTIONS: [&str; 5] = ["model", "planner", "executor", "egress", "telemetry"];

// Providers with the variables that their own tools read: key, address, dialect.
const PROVIDERS: &[(&str, &str, &str)] = &[
    ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "anthropic"),
    ("OPENAI_API_KEY", "OPENAI_BASE_URL", "openai"),
    ("OPENAI_API_KEY", "OPENAI_BASE_URL", "openai-responses"),
];

/// Provider whose key is in the environment.
pub(in super::super) struct EnvironmentProvider {
    pub(in super::super) dialect: &'static str,
    pub(in super::super) model: &'static str,
    pub(in super::super) base_url: Option<String>,
    pub(in super::super) key: secrecy::SecretString,
}

/// First provider with a key in the environment, among those that speak the dialect.
pub(in super::super) fn find_environment_provider(dialect: Option<&str>) -> Option<EnvironmentProvider> {
    let value = |wanted: &str| {
        let found = std::env::var_os(wanted)?.into_string().ok()?;
        Some(found).filter(|value| !value.is_empty())
    };
    let mut known = PROVIDERS.iter();
    known.find_map(|(key, url, speaks)| {
        let is_wanted = dialect.is_none_or(|wanted| wanted == *speaks);
        let key = value(key).filter(|_| is_wanted)?;
        Some(EnvironmentProvider {
            dialect: speaks,
            model: find_default_model(speaks)?,
            base_url: value(url),
            key: key.into(),
        })
    })
}

/// Settings of the services, as far as the user gave them.
pub(in super::super) struct FolderRunSettings {
    pub(in super::super) environment: Vec<(String, String)>,
    file: Option<NamedTempFile>,
    /// Settings file of the user, of which `file` is a copy.
    original: Option<PathBuf>,
}

impl FolderRunSettings {
    /// Adds settings for interactive work: a run does not wait for a model that is unavailable, and commits have the author that
    /// the folder's git names.
    pub(in super::super) fn add_interactive(&mut self, folder: &FolderRepository) {
        let author = folder.commit_author().map(|author| author.to_string());
        for (key, value) in [
            ("PLANNER__WAIT_FOR_MODEL", Some("false".to_owned())),
            ("RULES__COMMIT_AUTHOR", author),
        ] {
            let name = format!("JOURNEYMAN__{key}");
            let is_set = self.environment.iter().any(|(known, _)| *known == name);
            if let (Some(value), false) = (value, is_set) {
                self.environment.push((name, value));
            }
        }
    }

    /// Ends the run when its models have cost this many dollars, whatever the rules are.
    pub(in super::super) fn limit_cost(&mut self, usd: f64) {
        crate::derived_settings::set_variable(
            &mut self.environment,
            "PLANNER__BUDGET_CEILING__COST_USD",
            usd.to_string(),
        );
    }

    /// Settings of these variables, without a file.
    #[cfg(test)]
    pub(super) fn from_variables(environment: Vec<(String, String)>) -> Self {
        Self {
            environment,
            file: None,
            original: None,
        }
    }

    /// Settings file reduced to the sections for this work.
    pub(in super::super) fn file(&self) -> Option<PathBuf> {
        self.file.as_ref().map(|file| file.path().to_owned())
    }

    /// Paths that commands of the run must not read: those of `executor.hidden`, the user's settings file, and the files
    /// with secrets that it names.
    ///
    /// # Errors
    /// An invalid setting, or a path with a comma, which a list of paths could not represent.
    pub(in super::super) fn hidden_paths(&self) -> Result<Vec<String>, settings::Error> {
        let ExecutorSection { executor } =
            settings::load_settings(self.file().as_deref(), self.environment.clone())?;
        let mut hidden = executor.hidden.0;
        let Some(original) = &self.original else {
            return Ok(hidden);
        };
        // The services read the copy, so they do not know the file of the user.
        let named = settings::secret_files(original)?;
        for path in [original.clone()].into_iter().chain(named) {
            let path = path.display().to_string();
            if path.contains(',') {
                let problem = "cannot be hidden from commands: choose a path without a comma";
                return Err(settings::Error::new(path, problem));
            }
            hidden.push(path);
        }
        Ok(hidden)
    }

    /// Configured model, by its provider's name for it; empty: the planner's default.
    ///
    /// # Errors
    /// An invalid setting.
    pub(in super::super) fn model(&self) -> Result<String, settings::Error> {
        let ModelSection { model } =
            settings::load_settings(self.file().as_deref(), self.environment.clone())?;
        Ok(model.name.unwrap_or_default())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExecutorSection {
    executor: HiddenSetting,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HiddenSetting {
    hidden: settings::TextList,
}

/// Existing settings of `[model]`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct ModelSection {
    pub(in super::super) model: ConfiguredModel,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct ConfiguredModel {
    pub(in super::super) dialect: Option<String>,
    pub(in super::super) name: Option<String>,
    pub(in super::super) base_url: Option<String>,
    pub(in super::super) region: Option<String>,
    pub(in super::super) api_key: Option<secrecy::SecretString>,
    pub(in super::super) auth_token: Option<secrecy::SecretString>,
}

/// Settings file and environment, completed by the flags and by the first key in the environment.
pub(in super::super) fn load_folder_settings(asked: &InFolder) -> anyhow::Result<FolderRunSettings> {
    let file = asked.settings.as_deref().map(copy_own_sections).transpose()?;
    let all = settings::read_environment()?;
    let mut environment: Vec<_> = all.iter().filter(|(name, _)| is_ours(name)).cloned().collect();
    for (key, flag) in [("NAME", &asked.model), ("BASE_URL", &asked.base_url)] {
        if let Some(value) = flag {
            set_model_variable(&mut environment, key, value);
        }
    }
    let path = file.as_ref().map(NamedTempFile::path);
    let ModelSection { model } = settings::load_settings(path, environment.clone())?;
    complete_model_settings(&mut environment, &model, &all)?;
    Ok(FolderRunSettings {
        environment,
        file,
        original: asked.settings.clone(),
    })
}

/// Keeps configured values, and completes them for the provider whose key exists.
fn complete_model_settings(
    environment: &mut Vec<(String, String)>,
    model: &ConfiguredModel,
    all: &[(String, String)],
) -> Result<(), settings::Error> {
    let value = |wanted: &str| {
        let found = all.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value).filter(|value| !value.is_empty())
    };
    let is_configured = model.api_key.is_some() || model.auth_token.is_some();
    let is_wanted = |dialect: &str| model.dialect.as_deref().is_none_or(|wanted| wanted == dialect);
    let mut known = PROVIDERS.iter().filter(|(.., dialect)| is_wanted(dialect));
    let Some((key, url, dialect)) = known.find(|(key, ..)| value(key).is_some()) else {
        // Bedrock uses the credentials of AWS, and a private server may require none.
        let needs_none = model
            .dialect
            .as_deref()
            .is_some_and(|dialect| dialect != "anthropic");
        return if is_configured || needs_none {
            Ok(())
        } else {
            Err(report_missing_key())
        };
    };
    // The settings contain a credential, so the environment's provider does not apply.
    if is_configured {
        return Ok(());
    }
    set_model_variable(environment, "DIALECT", dialect);
    set_model_variable(environment, "API_KEY", value(key).map_or("", String::as_str));
    set_model_variable(environment, "KEY_SOURCE", key);
    if let (None, Some(name)) = (&model.name, find_default_model(dialect)) {
        set_model_variable(environment, "NAME", name);
    }
    if let (None, Some(url)) = (&model.base_url, value(url)) {
        set_model_variable(environment, "BASE_URL", url);
    }
    Ok(())
}

fn report_missing_key() -> settings::Error {
    settings::Error::new(
        "model.api_key",
        "is missing: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a settings file with [model] by --settings",
    )
}

fn set_model_variable(environment: &mut Vec<(String, String)>, key: &str, value: &str) {
    crate::derived_settings::set_variable(environment, &format!("MODEL__{key}"), value.to_owned());
}

/// True for variables of these sections, and for those that the services read in addition.
fn is_ours(name: &str) -> bool {
    let section = name
        .strip_prefix("JOURNEYMAN__")
        .and_then(|rest| rest.split("__").next());
    match section {
        Some(section) => SECTIONS.contains(&section.to_lowercase().as_str()),
        None => name.starts_with("OTEL_"),
    }
}

/// Copy of a settings file with only these sections, readable by this user alone.
fn copy_own_sections(file: &Path) -> anyhow::Result<NamedTempFile> {
    let wrong = |problem: String| settings::Error::new(file.display().to_string(), problem);
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let mut sections: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    sections.retain(|name, _| SECTIONS.contains(&name));
    // `NamedTempFile` creates its file with mode 0600.
    let mut copy = NamedTempFile::with_suffix(".toml")?;
    copy.write_all(toml::to_string(&sections)?.as_bytes())
        .context("cannot write the settings")?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_file_and_its_secrets_are_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let (file, token) = (folder.path().join("team.toml"), folder.path().join("token"));
        let text = format!(
            "[model]\napi_key = \"k\"\n[executor]\nhidden = [\"/srv/keys\"]\n[github_writer]\ntoken = {{ file = {token:?} }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let asked = InFolder {
            settings: Some(file.clone()),
            ..InFolder::default()
        };
        let hidden = load_folder_settings(&asked).unwrap().hidden_paths().unwrap();
        let named = [file, token].map(|path| path.display().to_string());
        assert_eq!(hidden, [&["/srv/keys".to_owned()][..], &named[..]].concat());
        let comma = FolderRunSettings {
            original: Some(folder.path().join("a,b.toml")),
            ..FolderRunSettings::from_variables(Vec::new())
        };
        std::fs::write(folder.path().join("a,b.toml"), "").unwrap();
        assert!(comma.hidden_paths().is_err());
    }

    fn complete_environment(
        model: ConfiguredModel,
        all: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, settings::Error> {
        let all: Vec<_> = all
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut environment = Vec::new();
        complete_model_settings(&mut environment, &model, &all).map(|()| environment)
    }

    fn find_value<'a>(environment: &'a [(String, String)], key: &str) -> Option<&'a str> {
        let name = format!("JOURNEYMAN__MODEL__{key}");
        let found = environment.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| value.as_str())
    }

    #[test]
    fn environment_key_selects_provider_anthropic_first() {
        let both = [("OPENAI_API_KEY", "o"), ("ANTHROPIC_API_KEY", "a")];
        let found = complete_environment(ConfiguredModel::default(), &both).unwrap();
        assert_eq!(
            (find_value(&found, "DIALECT"), find_value(&found, "API_KEY")),
            (Some("anthropic"), Some("a"))
        );
        assert_eq!(find_value(&found, "KEY_SOURCE"), Some("ANTHROPIC_API_KEY"));
        let other = [
            ("OPENAI_API_KEY", "o"),
            ("ANTHROPIC_API_KEY", ""),
            ("OPENAI_BASE_URL", "http://127.0.0.1:1"),
        ];
        let found = complete_environment(ConfiguredModel::default(), &other).unwrap();
        assert_eq!(
            (find_value(&found, "DIALECT"), find_value(&found, "BASE_URL")),
            (Some("openai"), Some("http://127.0.0.1:1"))
        );
        assert!(find_value(&found, "NAME").is_some());
    }

    #[test]
    fn openai_key_serves_configured_responses_dialect() {
        let model = ConfiguredModel {
            dialect: Some("openai-responses".to_owned()),
            ..ConfiguredModel::default()
        };
        let found = complete_environment(model, &[("OPENAI_API_KEY", "o")]).unwrap();
        assert_eq!(
            (find_value(&found, "DIALECT"), find_value(&found, "API_KEY")),
            (Some("openai-responses"), Some("o"))
        );
        assert_eq!(find_value(&found, "NAME"), find_default_model("openai"));
    }

    #[test]
    fn given_settings_stay() {
        let model = ConfiguredModel {
            dialect: Some("openai".to_owned()),
            name: Some("mine".to_owned()),
            base_url: Some("http://127.0.0.1:1".to_owned()),
            ..ConfiguredModel::default()
        };
        let all = [
            ("ANTHROPIC_API_KEY", "a"),
            ("OPENAI_API_KEY", "o"),
            ("OPENAI_BASE_URL", "http://other"),
        ];
        let found = complete_environment(model, &all).unwrap();
        assert_eq!(find_value(&found, "API_KEY"), Some("o"));
        assert_eq!(
            (find_value(&found, "NAME"), find_value(&found, "BASE_URL")),
            (None, None)
        );
        let configured = ConfiguredModel {
            api_key: Some("k".to_owned().into()),
            ..ConfiguredModel::default()
        };
        assert!(complete_environment(configured, &all).unwrap().is_empty());
    }

    #[test]
    fn missing_model_key_error_names_variables() {
        let error = complete_environment(ConfiguredModel::default(), &[("OPENAI_API_KEY", "")]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("model.api_key: is missing: set ANTHROPIC_API_KEY")
        );
    }

    #[test]
    fn folder_settings_exclude_server_sections() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journeyman.toml");
        let text = "[nats]\nurl = \"nats://team.example\"\n[github_writer]\ntoken = \"t\"\n[model]\nname = \"m\"\n\
                    [model.prices.\"gpt-5.1\"]\ninput = 1\noutput = 2.5\n";
        std::fs::write(&file, text).unwrap();
        let kept = std::fs::read_to_string(copy_own_sections(&file).unwrap().path()).unwrap();
        assert!(
            kept.contains("gpt-5.1") && kept.contains("name = \"m\""),
            "{kept}"
        );
        assert!(!kept.contains("nats") && !kept.contains("github"), "{kept}");
        assert!(is_ours("JOURNEYMAN__MODEL__API_KEY") && is_ours("OTEL_SERVICE_NAME"));
        assert!(!is_ours("JOURNEYMAN__NATS__URL") && !is_ours("JOURNEYMAN__JIRA_READER__API_TOKEN"));
    }
}
