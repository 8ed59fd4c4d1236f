//! Chains of models by role.

use std::{collections::BTreeMap, sync::Arc};

use bootstrap::settings::Error;
use domain::ModelRole;

use super::{dialect, prices};
use crate::config::{ModelSettings, RoleSettings};

/// Name of the provider that `[model]` itself describes.
pub(super) const MAIN: &str = "default";

/// All roles, for the chains that are built at start.
pub(super) const ROLES: [ModelRole; 3] = [ModelRole::Default, ModelRole::Fast, ModelRole::Reviewer];

/// Returns the name of a role in settings and telemetry.
pub(super) const fn role_name(role: ModelRole) -> &'static str {
    match role {
        ModelRole::Default => "default",
        ModelRole::Fast => "fast",
        ModelRole::Reviewer => "reviewer",
    }
}

fn find_role_settings(model: &ModelSettings, role: ModelRole) -> RoleSettings {
    match role {
        ModelRole::Default => RoleSettings::default(),
        ModelRole::Fast => model.roles.fast.clone(),
        ModelRole::Reviewer => model.roles.reviewer.clone(),
    }
}

/// Entry of a chain: a provider and the settings of its calls.
#[derive(Clone, Debug)]
pub(super) struct ChainEntry {
    pub(super) provider: String,
    /// Shared, because each call copies its chain.
    pub(super) settings: Arc<ModelSettings>,
}

impl ChainEntry {
    /// Returns true if both entries call the same model of the same provider.
    fn is_same_model(&self, other: &Self) -> bool {
        self.provider == other.provider && self.settings.name == other.settings.name
    }
}

/// Builds the chain of a role.
///
/// # Errors
/// An unknown provider, by the key that names it.
pub(super) fn build_chain(model: &ModelSettings, role: ModelRole) -> Result<Vec<ChainEntry>, Error> {
    let wanted = find_role_settings(model, role);
    let key = |field: &str| format!("model.roles.{}.{field}", role_name(role));
    let provider = wanted.provider.as_deref().unwrap_or(MAIN);
    let mut first = build_chain_entry(model, provider, None)
        .ok_or_else(|| missing_provider(&key("provider"), provider))?;
    let settings = Arc::make_mut(&mut first.settings);
    if let Some(name) = wanted.name {
        settings.name = name;
    }
    settings.max_output_tokens = wanted.max_output_tokens.unwrap_or(settings.max_output_tokens);
    settings.thinking = wanted.thinking.or(settings.thinking);
    if wanted.effort.is_some() {
        settings.effort = wanted.effort;
    }
    let (fallbacks, listed_at) = match &wanted.fallbacks {
        Some(fallbacks) => (fallbacks, key("fallbacks")),
        None => (&model.fallbacks, "model.fallbacks".to_owned()),
    };
    let mut chain = vec![first];
    for entry in fallbacks.iter() {
        let fallback = resolve_entry(model, entry).ok_or_else(|| missing_provider(&listed_at, entry))?;
        // A fallback that equals an earlier entry would only repeat its failure.
        if !chain.iter().any(|known| known.is_same_model(&fallback)) {
            chain.push(fallback);
        }
    }
    Ok(chain)
}

/// Returns the tokens from which on a conversation is shortened, by role: the limit of the chain's smallest
/// model.
///
/// # Errors
/// As [`build_chain`].
pub(crate) fn conversation_limits(model: &ModelSettings) -> Result<BTreeMap<ModelRole, u64>, Error> {
    let limit = |role| {
        let chain = build_chain(model, role)?;
        Ok((role, find_chain_limit(model, &chain)))
    };
    ROLES.into_iter().map(limit).collect()
}

/// Returns the limit of a chain's smallest model: a fallback may have to take the conversation over.
pub(super) fn find_chain_limit(model: &ModelSettings, chain: &[ChainEntry]) -> u64 {
    let limits = chain
        .iter()
        .map(|entry| prices::conversation_limit(model, &entry.settings.name));
    limits.min().unwrap_or_default()
}

/// Returns the chain with another model in front: `provider:model`, a provider, or a model of the role's
/// provider.
pub(super) fn override_chain(model: &ModelSettings, chain: &[ChainEntry], wanted: &str) -> Vec<ChainEntry> {
    let first = resolve_entry(model, wanted).or_else(|| {
        let mut first = chain.first()?.clone();
        Arc::make_mut(&mut first.settings).name = wanted.to_owned();
        Some(first)
    });
    let is_first = |entry: &&ChainEntry| first.as_ref().is_some_and(|first| first.is_same_model(entry));
    let rest: Vec<ChainEntry> = chain.iter().filter(|entry| !is_first(entry)).cloned().collect();
    first.into_iter().chain(rest).collect()
}

/// Resolves `provider` or `provider:model`.
fn resolve_entry(model: &ModelSettings, entry: &str) -> Option<ChainEntry> {
    match entry.split_once(':') {
        Some((provider, name)) => build_chain_entry(model, provider, Some(name)),
        None => build_chain_entry(model, entry, None),
    }
}

fn build_chain_entry(model: &ModelSettings, provider: &str, name: Option<&str>) -> Option<ChainEntry> {
    let settings = match provider {
        MAIN => model,
        other => model.providers.get(other)?,
    };
    let mut settings = settings.clone();
    settings.name = name.map_or(settings.name, str::to_owned);
    Some(ChainEntry {
        provider: provider.to_owned(),
        settings: Arc::new(settings),
    })
}

fn missing_provider(key: &str, provider: &str) -> Error {
    Error::new(key, format!("there is no [model.providers.{provider}]"))
}

/// Validates `[model]` with its roles and providers.
///
/// # Errors
/// The first invalid setting, by key.
pub(crate) fn check_models(model: &ModelSettings) -> Result<(), Error> {
    check_provider(model, "model")?;
    for (name, provider) in &model.providers {
        let section = format!("model.providers.{name}");
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if name == MAIN || !name.chars().all(is_name) {
            let problem = "a provider's name is lower-case letters, digits, `_` and `-`, and not `default`";
            return Err(Error::new(section, problem));
        }
        check_provider(provider, &section)?;
        let roles = &provider.roles;
        // These keys belong to `[model]` alone; a provider section has the same type.
        let extra = [
            ("fallbacks", !provider.fallbacks.is_empty()),
            ("providers", !provider.providers.is_empty()),
            ("prices", !provider.prices.is_empty()),
            ("windows", !provider.windows.is_empty()),
            ("embeddings", provider.embeddings.is_some()),
            (
                "roles",
                [&roles.fast, &roles.reviewer].iter().any(|role| role.is_set()),
            ),
        ];
        if let Some((key, _)) = extra.iter().find(|(_, is_set)| *is_set) {
            return Err(Error::new(
                format!("{section}.{key}"),
                format!("belongs into model.{key}"),
            ));
        }
    }
    for role in ROLES {
        for entry in build_chain(model, role)? {
            let section = format!("model.roles.{}", role_name(role));
            check_dialect(&entry.settings, &section)?;
        }
    }
    if let Some((name, _)) = model.windows.iter().find(|(_, tokens)| **tokens < LEAST_WINDOW) {
        let problem = format!("a window is a number of tokens, at least {LEAST_WINDOW}");
        return Err(Error::new(format!("model.windows.{name}"), problem));
    }
    if let Some(embeddings) = &model.embeddings {
        embeddings.check()?;
    }
    check_prices(model)
}

// Tokens. The task alone fills a smaller window.
const LEAST_WINDOW: u64 = 1000;

fn check_provider(settings: &ModelSettings, section: &str) -> Result<(), Error> {
    let problem = |key: &str, problem: &str| Err(Error::new(format!("{section}.{key}"), problem));
    if settings.name.is_empty() {
        return problem("name", "must be set");
    }
    if settings.max_output_tokens == 0 {
        return problem("max_output_tokens", "must be at least 1");
    }
    let base = settings.base_url.as_deref().unwrap_or("https://");
    if !base.starts_with("http://") && !base.starts_with("https://") {
        return problem("base_url", "must be an http:// or https:// address");
    }
    if domain::is_readable_on_the_way(base) && !settings.allow_insecure {
        return problem(
            "base_url",
            "sends the key unencrypted to another machine: use https://, or set allow_insecure = true",
        );
    }
    check_dialect(settings, section)
}

/// Validates the settings for their dialect.
fn check_dialect(settings: &ModelSettings, section: &str) -> Result<(), Error> {
    let Some(dialect) = dialect::find_dialect(&settings.dialect) else {
        let problem = describe_unknown_dialect(&settings.dialect);
        return Err(Error::new(format!("{section}.dialect"), problem));
    };
    dialect
        .check(settings)
        .map_err(|(key, problem)| Error::new(format!("{section}.{key}"), problem))
}

/// Describes why this build does not have the dialect.
pub(super) fn describe_unknown_dialect(dialect: &str) -> String {
    match dialect {
        "bedrock" => super::NO_BEDROCK.to_owned(),
        _ => format!("must be one of {}", super::list_dialects().join(", ")),
    }
}

fn check_prices(model: &ModelSettings) -> Result<(), Error> {
    for (name, price) in &model.prices {
        let figures = [
            Some(price.input),
            Some(price.output),
            price.cache_read,
            price.cache_write,
            price.cache_write_1h,
            Some(price.long_input_factor),
            Some(price.long_output_factor),
        ];
        if !figures
            .into_iter()
            .flatten()
            .all(|figure| figure.is_finite() && figure >= 0.0)
        {
            let problem = "a price is a number of dollars for a million tokens, 0 or more";
            return Err(Error::new(format!("model.prices.{name}"), problem));
        }
    }
    Ok(())
}

impl RoleSettings {
    fn is_set(&self) -> bool {
        self.provider.is_some()
            || self.name.is_some()
            || self.max_output_tokens.is_some()
            || self.thinking.is_some()
            || self.effort.is_some()
            || self.fallbacks.is_some()
    }
}
