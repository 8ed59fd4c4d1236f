//! Models: one request, one reply, from any provider.

mod anthropic;
#[cfg(feature = "bedrock")]
mod aws;
#[cfg(feature = "bedrock")]
mod bedrock;
mod dialect;
mod end_reason;
#[cfg(feature = "bedrock")]
mod event_frames;
mod failure;
mod link;
mod openai;
mod original_calls;
mod prices;
mod quotation;
mod responses;
mod retry;
mod retry_hint;
mod roles;
mod split_characters;
mod stream;
mod target;
mod tool_name;

#[cfg(test)]
pub(crate) mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bootstrap::settings::TextList;
use domain::{ModelFault, ModelReply, ModelRole, SpendAmount, cause::format_error_chain};

use crate::config::{ModelPrice, ModelSettings};
use crate::telemetry;
use crate::transcript::{ModelTranscript, TranscriptMessage};
pub(crate) use dialect::{find_secret, secret_header};
pub(crate) use failure::{ModelError, is_transient};
use link::{ModelLink, ProviderClient};
use retry::RetryPatience;
use roles::{ChainEntry, MAIN, ROLES, role_name};
pub(crate) use roles::{check_models, conversation_limits};
use target::ModelTarget;

/// Error when a client is created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// A key or token contains characters that no HTTP header allows.
    #[error("model: a credential or header holds characters that an HTTP header cannot carry")]
    Credential,
    /// A header of the settings has an invalid name.
    #[error("model.headers: {0:?} is not a valid name of an HTTP header")]
    Header(String),
    /// The dialect is unknown.
    #[error("model.dialect: {0:?} is not known")]
    Dialect(String),
    /// A role names a provider that does not exist.
    #[error(transparent)]
    Settings(#[from] bootstrap::settings::Error),
    /// The HTTP client setup failed.
    #[error("the client for the model could not be set up: {0}")]
    Http(#[from] reqwest::Error),
}

/// Choice of a model for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelSelection {
    /// Role of the model.
    pub(crate) role: ModelRole,
    /// Model instead of the role's own: its name, `provider`, or `provider:model`. The role's models follow
    /// as fallbacks.
    pub(crate) model: Option<String>,
}

impl From<ModelRole> for ModelSelection {
    fn from(role: ModelRole) -> Self {
        Self { role, model: None }
    }
}

/// All models of the settings.
pub(crate) struct ModelClients {
    settings: ModelSettings,
    providers: BTreeMap<String, Arc<ProviderClient>>,
    chains: BTreeMap<ModelRole, Vec<ChainEntry>>,
}

impl ModelClients {
    /// Creates clients for the configured models without sending a request.
    ///
    /// # Errors
    /// [`ClientError`] when settings are not usable or TLS setup fails.
    pub(crate) fn new(settings: &ModelSettings) -> Result<Self, ClientError> {
        let mut providers = BTreeMap::from([(MAIN.to_owned(), Arc::new(ProviderClient::new(settings)?))]);
        for (name, provider) in &settings.providers {
            providers.insert(name.clone(), Arc::new(ProviderClient::new(provider)?));
        }
        let chain = |role| Ok((role, roles::build_chain(settings, role)?));
        let chains: Result<_, ClientError> = ROLES.into_iter().map(chain).collect();
        Ok(Self {
            settings: settings.clone(),
            providers,
            chains: chains?,
        })
    }

    /// Requests a reply from the models of a choice in order, each with retries. Dropping the future
    /// cancels the call.
    ///
    /// # Errors
    /// [`ModelError`] when none of them replies, or when the request itself fails.
    pub(crate) async fn chat(
        &self,
        choice: &ModelSelection,
        run: &str,
        transcript: &ModelTranscript,
    ) -> Result<ModelReply, ModelError> {
        let links = self.links(choice);
        let mut failed: Vec<(ModelLink, ModelError)> = Vec::new();
        for (link, patience) in &links {
            let settings = &link.place.settings;
            let call = telemetry::ChatCall::start(&telemetry::ChatLabels {
                role: role_name(choice.role),
                provider: &link.place.provider,
                dialect: link.dialect(),
                model: &settings.name,
                max_output_tokens: settings.max_output_tokens,
                run,
                goes_on: dialect::is_continued(transcript),
            });
            let outcome = link
                .chat(transcript, *patience)
                .await
                .map_err(|failure| failure.describe(&link.addressee()));
            call.end(outcome.as_ref().map_err(|error| failure::fault_name(error.kind)));
            match outcome {
                Ok(reply) => return Ok(reply),
                Err(error) if failure::is_provider_fault(error.kind) => {
                    tracing::warn!(
                        provider = link.place.provider,
                        model = settings.name,
                        problem = error.words,
                        "a model does not answer"
                    );
                    failed.push((link.clone(), error));
                }
                // The request itself is at fault, so the next provider would refuse it as well.
                Err(error) => return Err(error),
            }
        }
        Err(combine_failures(&failed))
    }

    /// Returns the upper bound of a call with this many input tokens: the longest reply, at the price of
    /// the most expensive model of the chain. A model without a price counts only tokens.
    pub(crate) fn most(&self, choice: &ModelSelection, input: u64) -> SpendAmount {
        let each = self.links(choice).into_iter().map(|(link, _)| {
            let output = u64::from(link.place.settings.max_output_tokens);
            let cost = link.price.map(|price| price.most_micros(input, output));
            (cost.unwrap_or_default(), input.saturating_add(output))
        });
        each.fold(SpendAmount::default(), |most, (cost, tokens)| SpendAmount {
            cost_micros: most.cost_micros.max(cost),
            tokens: most.tokens.max(tokens),
        })
    }

    /// Returns the longest duration of a call, with every retry of every model.
    pub(crate) fn longest(&self, choice: &ModelSelection) -> Duration {
        let links = self.links(choice).into_iter();
        let each = links.map(|(link, patience)| {
            patience.longest(Duration::from_millis(link.place.settings.total_timeout_ms))
        });
        each.sum()
    }

    /// Returns the tokens from which on a conversation is shortened: the limit of the chain's smallest
    /// model.
    pub(crate) fn conversation_limit(&self, choice: &ModelSelection) -> u64 {
        roles::find_chain_limit(&self.settings, &self.places(choice))
    }

    /// Returns the chain of a choice with the patience for each model; providers that failed recently come
    /// last.
    fn links(&self, choice: &ModelSelection) -> Vec<(ModelLink, RetryPatience)> {
        let link = |place: ChainEntry| {
            Some(ModelLink {
                provider: self.providers.get(&place.provider)?.clone(),
                price: prices::find_price(&self.settings.prices, &place.settings.name),
                place,
            })
        };
        let mut links: Vec<ModelLink> = self.places(choice).into_iter().filter_map(link).collect();
        // A stable sort: the order of the chain stays within each group.
        links.sort_by_key(|link| link.provider.is_resting());
        let last = links.len().saturating_sub(1);
        // Only the last provider is worth a long wait; before it, the next one may reply at once.
        let patience = |place| {
            if place == last {
                RetryPatience::LONG
            } else {
                RetryPatience::SHORT
            }
        };
        let links = links.into_iter().enumerate();
        links.map(|(place, link)| (link, patience(place))).collect()
    }

    fn places(&self, choice: &ModelSelection) -> Vec<ChainEntry> {
        let own = self.chains.get(&choice.role);
        let own = own.map(Vec::as_slice).unwrap_or_default();
        match &choice.model {
            Some(model) => roles::override_chain(&self.settings, own, model),
            None => own.to_vec(),
        }
    }
}

/// Combines all failures into one error, which is transient if one of them is.
fn combine_failures(failed: &[(ModelLink, ModelError)]) -> ModelError {
    let words = match failed {
        [(_, only)] => only.words.clone(),
        _ => {
            let each = failed
                .iter()
                .map(|(link, error)| format!("{}: {error}", link.place.provider));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    let kinds = || failed.iter().map(|(_, error)| error.kind);
    // One provider that may recover makes a later retry of the whole chain worthwhile.
    let kind = kinds().find(|kind| is_transient(*kind)).or(kinds().next());
    ModelError {
        words,
        kind: kind.unwrap_or(ModelFault::NotOffered),
        limit: failed.iter().filter_map(|(_, error)| error.limit).max(),
    }
}

/// Problem of a setting that names Bedrock in a build without it.
pub const NO_BEDROCK: &str =
    "bedrock is not in this build: build with the cargo feature `bedrock`, which every release has";

/// Names of the dialects of this build, as the setting `model.dialect` spells them.
pub fn list_dialects() -> Vec<&'static str> {
    dialect::DIALECTS.iter().map(|dialect| dialect.name()).collect()
}

/// Address that a dialect uses without `model.base_url`; `None` when it depends on other settings.
pub fn find_default_address(dialect: &str) -> Option<&'static str> {
    dialect::find_dialect(dialect)?.default_address()
}

/// Result of a trial request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialResult {
    /// Model that replied, as the provider names it.
    pub model: String,
    /// Cost of the reply in millionths of a dollar; absent: the model's price is unknown.
    pub cost_micros: Option<u64>,
    /// Host and port of the provider.
    pub host: String,
    /// Source of the credential, never the credential itself.
    pub credential: String,
}

/// Models that these settings name, with their addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelDestination {
    /// Model by the provider's name for it.
    pub model: String,
    /// Host and port of each provider; that of the model first.
    pub hosts: Vec<String>,
    /// Price of the model; absent: unknown.
    pub price: Option<ModelPrice>,
}

/// Returns the addresses that receive the requests of runs with these settings. Sends nothing.
pub fn locate_configured_models(settings: &ModelSettings) -> ModelDestination {
    let main = ModelTarget::of(MAIN, settings);
    let mut hosts = vec![main.host];
    for (name, provider) in &settings.providers {
        let host = ModelTarget::of(name, provider).host;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    ModelDestination {
        model: main.model,
        hosts,
        price: prices::find_price(&settings.prices, &settings.name),
    }
}

/// Failure of a trial request, worded for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct TrialFailure {
    words: String,
    /// True when the provider did not answer or failed itself, so that settings and credentials may be right.
    pub is_unavailable: bool,
}

impl TrialFailure {
    /// Failure of a request that was not sent.
    fn unsent(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            is_unavailable: false,
        }
    }
}

/// Sends a short request to the model of these settings, without its fallbacks.
///
/// # Errors
/// An invalid setting, or the provider's failure.
pub async fn try_configured_model(settings: &ModelSettings) -> Result<TrialResult, TrialFailure> {
    let alone = ModelSettings {
        fallbacks: TextList::default(),
        ..settings.clone()
    };
    roles::check_models(&alone).map_err(|error| TrialFailure::unsent(error.to_string()))?;
    let models =
        ModelClients::new(&alone).map_err(|error| TrialFailure::unsent(format_error_chain(&error)))?;
    let links = models.links(&ModelRole::Default.into());
    let Some((link, _)) = links.first() else {
        return Err(TrialFailure::unsent("the settings name no model"));
    };
    let question = ModelTranscript {
        system: vec!["You are asked whether you can be reached.".to_owned()],
        tools: Vec::new(),
        messages: vec![TranscriptMessage::User("Reply with the one word: ok".to_owned())],
        output: None,
    };
    let reply = link.chat(&question, RetryPatience::SHORT).await;
    let addressee = link.addressee();
    let reply = reply.map_err(|failure| {
        let error = failure.describe(&addressee);
        TrialFailure {
            is_unavailable: is_transient(error.kind),
            words: error.words,
        }
    })?;
    Ok(TrialResult {
        model: reply.model,
        cost_micros: reply.cost_micros,
        host: addressee.host,
        credential: addressee.credential,
    })
}
