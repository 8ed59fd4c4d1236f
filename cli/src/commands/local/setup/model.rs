//! Setup of the model: name, key, and a test question.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bootstrap::settings;
use clap::Args;
use domain::cause::format_error_chain;
use planner::TrialResult;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{
    super::folder::{ConfiguredModel, ModelSection, find_environment_provider},
    is_web_address, print_result, prompt,
    store::SetupStore,
};
use crate::{
    account_settings::{ModelChoice, PROVIDER_KEYS, find_default_model},
    derived_settings::set_variable,
};

const BEDROCK: &str = "bedrock";
// Dialect of settings that name none.
const USUAL_DIALECT: &str = "anthropic";
// Start of the variables with settings of the model.
const MODEL_VARIABLES: &str = "JOURNEYMAN__MODEL__";

/// Set the model and its key, and send it one question; a working configuration stays, and another dialect replaces it
#[derive(Debug, Default, Args)]
pub(super) struct Arguments {
    /// anthropic, openai (any server that speaks its Chat Completions), openai-responses or bedrock
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// The model, by its provider's name for it
    #[arg(long, value_name = "MODEL")]
    name: Option<String>,
    /// Another endpoint that speaks the dialect
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// AWS region, for bedrock
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
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

/// Model from the arguments, the settings, the environment and the user.
struct ModelAnswers {
    chosen: ModelChoice,
    /// True when the user typed a part of it.
    is_typed: bool,
}

pub(super) async fn set_up_model(asked: Arguments, store: &SetupStore) -> anyhow::Result<()> {
    let ModelSection { model: known } = settings::load_process_settings(store.existing())?;
    let replaced = find_replaced_dialect(asked.dialect.as_deref(), &known);
    if let Some(dialect) = &replaced {
        check_variables(&settings::read_environment()?, dialect)?;
    }
    // Nothing of the other provider is an answer: its key must not reach this one.
    let known = match replaced {
        Some(_) => ConfiguredModel::default(),
        None => ConfiguredModel {
            dialect: find_key_dialect(&known),
            ..known
        },
    };
    let mut previous = None;
    let (chosen, TriedModel { result: tried, roles }) = loop {
        let ModelAnswers { chosen, is_typed } = ask_model(&asked, &known, previous.as_ref()).await?;
        match try_model(store, &chosen, replaced.is_some()).await {
            Ok(tried) => break (chosen, tried),
            // An invalid settings file is not repaired by another answer.
            Err(problem) if !is_typed || !prompt::can_ask() || problem.is::<settings::Error>() => {
                return Err(problem);
            }
            Err(problem) => print_result(&format!("         {}", format_error_chain(problem.as_ref()))),
        }
        previous = Some(chosen);
    };
    let before = ModelChoice {
        dialect: known.dialect,
        name: known.name,
        base_url: known.base_url,
        region: known.region,
        api_key: None,
    };
    store.set(&match replaced {
        Some(_) => chosen.replacing_settings(),
        None => chosen.settings(&before),
    })?;
    print_result(&match tried.cost_micros {
        Some(micros) => format!(
            "model    {} answers; its price is known: this question cost ${}.{:06}",
            tried.model,
            micros / 1_000_000,
            micros % 1_000_000
        ),
        None => format!(
            "model    {} answers; its price is not known, so dollars are not counted: set [model.prices.{:?}]",
            tried.model,
            chosen.name.unwrap_or_default()
        ),
    });
    for role in &roles {
        print_result(&format!(
            "model    [model.roles.{role}] still names a model of the other provider, if you have not changed it"
        ));
    }
    Ok(())
}

/// Dialect of the settings. A key without one is for the usual dialect, whatever other keys the environment has.
fn find_key_dialect(known: &ConfiguredModel) -> Option<String> {
    let has_key = known.api_key.is_some() || known.auth_token.is_some();
    let usual = has_key.then(|| USUAL_DIALECT.to_owned());
    known.dialect.clone().or(usual)
}

/// Dialect of the settings that another one replaces; `None` when the dialect stays, or the settings have no model yet.
fn find_replaced_dialect(asked: Option<&str>, known: &ConfiguredModel) -> Option<String> {
    let of_name = known.name.as_ref().map(|_| USUAL_DIALECT.to_owned());
    let dialect = find_key_dialect(known).or(of_name)?;
    let asked = asked?.trim();
    (dialect != asked).then_some(dialect)
}

/// Refuses variables with settings of the replaced provider: the file cannot change them, so they would apply to the new one.
fn check_variables(environment: &[(String, String)], replaced: &str) -> anyhow::Result<()> {
    let is_of_provider = |name: &&str| {
        let key = name
            .strip_prefix(MODEL_VARIABLES)
            .and_then(|rest| rest.split("__").next());
        key.is_some_and(|key| PROVIDER_KEYS.contains(&key.to_ascii_lowercase().as_str()))
    };
    let names = environment.iter().map(|(name, _)| name.as_str());
    let found: Vec<&str> = names.filter(is_of_provider).collect();
    anyhow::ensure!(
        found.is_empty(),
        "the environment has settings of the {replaced} model, which take precedence over the file: unset {} first",
        found.join(", ")
    );
    Ok(())
}

/// Asks for the missing parts of the model. The answers of the `previous` round are proposed, except for the key.
async fn ask_model(
    asked: &Arguments,
    known: &ConfiguredModel,
    previous: Option<&ModelChoice>,
) -> anyhow::Result<ModelAnswers> {
    let own = find_environment_provider(asked.dialect.as_deref().or(known.dialect.as_deref()));
    let dialect = asked.dialect.clone().or_else(|| known.dialect.clone());
    let dialect = dialect.or_else(|| own.as_ref().map(|own| own.dialect.to_owned()));
    let mut is_typed = dialect.is_none();
    let question = format!("Provider of the model ({})", planner::list_dialects().join(", "));
    let proposal = previous.and_then(|previous| previous.dialect.clone());
    let proposal = proposal.unwrap_or_else(|| USUAL_DIALECT.to_owned());
    let dialect =
        prompt::ask_checked_text(dialect, "--dialect", &question, Some(proposal), check_dialect).await?;
    // Answers about another provider are no proposals.
    let previous = previous.filter(|previous| previous.dialect.as_ref() == Some(&dialect));

    let name = asked.name.clone().or_else(|| known.name.clone());
    let name = name.or_else(|| own.as_ref().map(|own| own.model.to_owned()));
    is_typed |= name.is_none();
    let question = "The model, as its provider names it";
    let proposal = previous.and_then(|previous| previous.name.clone());
    let proposal = proposal.or_else(|| find_default_model(&dialect).map(str::to_owned));
    let name = prompt::ask_text_with_default(name, "--name", question, proposal).await?;

    let base_url = asked.base_url.clone().or_else(|| known.base_url.clone());
    let base_url = base_url.or_else(|| own.as_ref().and_then(|own| own.base_url.clone()));
    // Settings that name a model, and a provider of the environment, are complete without an address.
    let is_complete = known.name.is_some() || own.is_some();
    let base_url = match (base_url, planner::find_default_address(&dialect)) {
        (None, Some(usual)) if !is_complete && prompt::can_ask() => {
            is_typed = true;
            let proposal = previous.and_then(|previous| previous.base_url.clone());
            ask_address(usual, proposal).await?
        }
        (base_url, _) => base_url,
    };
    let region = asked.region.clone().or_else(|| known.region.clone());
    let region = match region {
        None if dialect == BEDROCK => {
            is_typed = true;
            let proposal = previous.and_then(|previous| previous.region.clone());
            let proposal = proposal.or_else(|| std::env::var_os("AWS_REGION")?.into_string().ok());
            let region = prompt::ask_text_with_default(
                None,
                "--region",
                "AWS region of the model, e.g. eu-central-1",
                proposal,
            );
            Some(region.await?)
        }
        region => region,
    };
    let given = own.map(|own| own.key);
    let is_known = known.api_key.is_some() || known.auth_token.is_some();
    is_typed |= asked.api_key_file.is_none() && !is_known && given.is_none() && dialect != BEDROCK;
    let place = (dialect.as_str(), base_url.is_some());
    let api_key = resolve_new_key(asked.api_key_file.as_deref(), is_known, given, place).await?;
    let chosen = ModelChoice {
        dialect: Some(dialect),
        name: Some(name),
        base_url,
        region,
        api_key,
    };
    Ok(ModelAnswers { chosen, is_typed })
}

fn check_dialect(answer: &str) -> Result<(), String> {
    let known = planner::list_dialects();
    if known.contains(&answer) {
        Ok(())
    } else if answer == BEDROCK {
        Err(planner::NO_BEDROCK.to_owned())
    } else {
        Err(format!("{answer:?} is not one of {}", known.join(", ")))
    }
}

/// Address from the user; `None` for the usual one of the dialect.
async fn ask_address(usual: &'static str, proposal: Option<String>) -> anyhow::Result<Option<String>> {
    let question = "Address of the provider, or of another server with its API";
    let proposal = proposal.unwrap_or_else(|| usual.to_owned());
    let answer =
        prompt::ask_checked_text(None, "--base-url", question, Some(proposal), check_address).await?;
    let is_usual = answer.trim_end_matches('/') == usual;
    Ok((!is_usual).then_some(answer))
}

fn check_address(answer: &str) -> Result<(), String> {
    if !is_web_address(answer) {
        return Err(format!(
            "{answer:?} is not an address such as https://models.acme.example"
        ));
    }
    if domain::is_readable_on_the_way(answer) {
        Err("http:// sends the key unencrypted to another machine: use https://".to_owned())
    } else {
        Ok(())
    }
}

/// Model that answered.
struct TriedModel {
    result: TrialResult,
    /// Roles whose models may be ones of the replaced provider.
    roles: Vec<&'static str>,
}

/// Roles that name a model and no provider, so that the provider of `[model]` gets the name.
fn list_named_roles(model: &planner::ModelSettings) -> Vec<&'static str> {
    let roles = [("fast", &model.roles.fast), ("reviewer", &model.roles.reviewer)];
    let named = roles
        .into_iter()
        .filter(|(_, role)| role.name.is_some() && role.provider.is_none());
    named.map(|(name, _)| name).collect()
}

/// Sends the test question with the new values, before any of them is stored. `is_other`: they replace the values of another
/// provider.
async fn try_model(store: &SetupStore, chosen: &ModelChoice, is_other: bool) -> anyhow::Result<TriedModel> {
    let mut environment = settings::read_environment()?;
    for (setting, value) in [
        ("DIALECT", chosen.dialect.as_deref()),
        ("NAME", chosen.name.as_deref()),
        ("BASE_URL", chosen.base_url.as_deref()),
        ("REGION", chosen.region.as_deref()),
        (
            "API_KEY",
            chosen.api_key.as_ref().map(ExposeSecret::expose_secret),
        ),
    ] {
        if let Some(value) = value {
            set_variable(&mut environment, &format!("MODEL__{setting}"), value.to_owned());
        }
    }
    let complete: CompleteModelSection = if is_other {
        let copy = store.copy_without("model", &PROVIDER_KEYS)?;
        settings::load_settings(Some(copy.path()), environment)?
    } else {
        settings::load_settings(store.existing(), environment)?
    };
    let tried = planner::try_configured_model(&complete.model).await;
    let result = tried.with_context(|| format!("{} does not answer", complete.model.name))?;
    let roles = if is_other {
        list_named_roles(&complete.model)
    } else {
        Vec::new()
    };
    Ok(TriedModel { result, roles })
}

/// Key to store; `None` when the settings have one, or the model needs none. `place`: the dialect, and whether the server is
/// another one than the usual.
async fn resolve_new_key(
    file: Option<&Path>,
    is_known: bool,
    own: Option<SecretString>,
    (dialect, is_elsewhere): (&str, bool),
) -> anyhow::Result<Option<SecretString>> {
    let flag = "--api-key-file";
    let question = "API key of the model";
    match (file, own) {
        (Some(_), _) => prompt::ask_secret(file, flag, question).await.map(Some),
        // Bedrock uses the credentials of AWS.
        (None, _) if is_known || dialect == BEDROCK => Ok(None),
        (None, Some(own)) => Ok(Some(own)),
        // A private server may need no key.
        (None, None)
            if matches!(dialect, "openai" | "openai-responses") && is_elsewhere && prompt::can_ask() =>
        {
            prompt::ask_optional_secret(flag, "API key of the model (empty: none)").await
        }
        (None, None) => prompt::ask_secret(None, flag, question).await.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_is_one_that_planner_knows() {
        for dialect in ["anthropic", "openai", "openai-responses", BEDROCK] {
            assert_eq!(check_dialect(dialect), Ok(()));
        }
        assert_eq!(
            check_dialect("claude"),
            Err("\"claude\" is not one of anthropic, openai, openai-responses, bedrock".to_owned())
        );
    }

    #[test]
    fn other_dialect_replaces_known_model() {
        let known = |dialect: Option<&str>, name: Option<&str>, key: Option<&str>| ConfiguredModel {
            dialect: dialect.map(str::to_owned),
            name: name.map(str::to_owned),
            api_key: key.map(|key| key.to_owned().into()),
            ..ConfiguredModel::default()
        };
        for (asked, known, replaced) in [
            (
                Some("openai"),
                known(Some("anthropic"), None, None),
                Some("anthropic"),
            ),
            (Some("openai"), known(None, Some("m"), None), Some("anthropic")),
            (Some("openai"), known(None, None, Some("k")), Some("anthropic")),
            (Some("anthropic"), known(None, Some("m"), Some("k")), None),
            (Some("openai"), known(Some("openai"), Some("m"), Some("k")), None),
            (Some("openai"), known(None, None, None), None),
            (None, known(Some("openai"), Some("m"), Some("k")), None),
        ] {
            assert_eq!(
                find_replaced_dialect(asked, &known).as_deref(),
                replaced,
                "{asked:?}"
            );
        }
        let key_alone = known(None, Some("m"), Some("k"));
        assert_eq!(find_key_dialect(&key_alone).as_deref(), Some("anthropic"));
        assert_eq!(find_key_dialect(&known(None, Some("m"), None)), None);
    }

    #[test]
    fn variables_of_replaced_provider_are_refused() {
        let check = |name: &str| check_variables(&[(name.to_owned(), "x".to_owned())], "anthropic");
        for name in ["API_KEY", "API_KEY__FILE", "HEADERS__X_TEAM", "DIALECT"] {
            let name = format!("{MODEL_VARIABLES}{name}");
            let problem = check(&name).unwrap_err().to_string();
            assert!(problem.ends_with(&format!("unset {name} first")), "{problem}");
        }
        for name in [
            "JOURNEYMAN__MODEL__PRICES__M__INPUT",
            "JOURNEYMAN__NATS__URL",
            "OPENAI_API_KEY",
        ] {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn address_of_model_is_encrypted() {
        assert_eq!(check_address("https://models.acme.example/v1"), Ok(()));
        assert_eq!(check_address("http://127.0.0.1:8080"), Ok(()));
        for (wrong, part) in [
            ("models", "is not an address"),
            ("http://models.acme.example", "sends the key unencrypted"),
        ] {
            let problem = check_address(wrong).unwrap_err();
            assert!(problem.contains(part), "{wrong}: {problem}");
        }
    }
}
