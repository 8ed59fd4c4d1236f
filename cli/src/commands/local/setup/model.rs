//! Setup of the model: name, key, and a test question.

use std::path::PathBuf;

use anyhow::Context;
use bootstrap::settings;
use clap::Args;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{
    super::folder::{ConfiguredModel, ModelSection, find_environment_provider},
    print_result, prompt,
    store::SetupStore,
};
use crate::{
    account_settings::{ModelChoice, find_default_model},
    derived_settings::set_variable,
};

/// Set the model and its key, and send it one question; a working configuration stays
#[derive(Debug, Default, Args)]
pub(super) struct Arguments {
    /// anthropic, openai (any server that speaks its Chat Completions) or bedrock
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// The model, by its provider's name for it
    #[arg(long, value_name = "MODEL")]
    name: Option<String>,
    /// Another endpoint that speaks the dialect
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// File with the key [default: the one of the settings, `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`]
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CompleteModelSection {
    model: planner::ModelSettings,
}

/// True when the settings name a model.
pub(super) fn has_model(store: &SetupStore) -> anyhow::Result<bool> {
    let known: ModelSection = settings::load_process_settings(store.existing())?;
    Ok(known.model.name.is_some())
}

pub(super) async fn set_up_model(asked: Arguments, store: &SetupStore) -> anyhow::Result<()> {
    let ModelSection { model: known } = settings::load_process_settings(store.existing())?;
    let own = find_environment_provider(asked.dialect.as_deref().or(known.dialect.as_deref()));
    let dialect = asked.dialect.clone().or(known.dialect.clone());
    let dialect = dialect.or_else(|| own.as_ref().map(|own| own.dialect.to_owned()));
    let question = "Who provides the model: anthropic, openai or bedrock";
    let dialect = prompt::ask_text(dialect, "--dialect", question).await?;
    let name = asked.name.clone().or(known.name.clone());
    let name = name.or_else(|| own.as_ref().map(|own| own.model.to_owned()));
    let question = "The model, as its provider names it";
    let proposal = find_default_model(&dialect).map(str::to_owned);
    let name = prompt::ask_text_with_default(name, "--name", question, proposal).await?;
    let base_url = asked.base_url.clone().or(known.base_url.clone());
    let base_url = base_url.or_else(|| own.as_ref().and_then(|own| own.base_url.clone()));
    let key = resolve_new_key(&asked, &known, own.map(|own| own.key), &dialect).await?;

    let mut environment = settings::read_environment()?;
    // The test question uses the new values before any of them is stored.
    for (setting, value) in [
        ("DIALECT", Some(dialect.clone())),
        ("NAME", Some(name.clone())),
        ("BASE_URL", base_url.clone()),
        ("API_KEY", key.as_ref().map(|key| key.expose_secret().to_owned())),
    ] {
        if let Some(value) = value {
            set_variable(&mut environment, &format!("MODEL__{setting}"), value);
        }
    }
    let complete: CompleteModelSection = settings::load_settings(store.existing(), environment)?;
    let tried = planner::try_configured_model(&complete.model).await;
    let tried = tried
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("{name} does not answer"))?;

    let chosen = ModelChoice {
        dialect: Some(dialect),
        name: Some(name.clone()),
        base_url,
        api_key: key,
    };
    let before = ModelChoice {
        dialect: known.dialect,
        name: known.name,
        base_url: known.base_url,
        api_key: None,
    };
    store.set(&chosen.settings(&before))?;
    print_result(&match tried.cost_micros {
        Some(micros) => format!(
            "model    {} answers; its price is known: this question cost ${}.{:06}",
            tried.model,
            micros / 1_000_000,
            micros % 1_000_000
        ),
        None => format!(
            "model    {} answers; its price is not known, so dollars are not counted: set [model.prices.{name:?}]",
            tried.model
        ),
    });
    Ok(())
}

/// Key to store; `None` when the settings have one, or the model needs none.
async fn resolve_new_key(
    asked: &Arguments,
    known: &ConfiguredModel,
    own: Option<SecretString>,
    dialect: &str,
) -> anyhow::Result<Option<SecretString>> {
    let is_known = known.api_key.is_some() || known.auth_token.is_some();
    let question = "API key of the model";
    let (flag, file) = ("--api-key-file", asked.api_key_file.as_deref());
    // Bedrock uses the credentials of AWS.
    match (file, own) {
        (Some(_), _) => prompt::ask_secret(file, flag, question).await.map(Some),
        (None, _) if is_known || dialect == "bedrock" => Ok(None),
        (None, Some(own)) => Ok(Some(own)),
        (None, None) => prompt::ask_secret(None, flag, question).await.map(Some),
    }
}
