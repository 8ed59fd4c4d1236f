//! The model: one question, one reply, whoever provides it.

mod addressee;
mod anthropic;
mod aws;
mod bedrock;
mod dialect;
mod ending;
mod failure;
mod halves;
mod link;
mod openai;
mod prices;
mod quotation;
mod retry;
mod roles;
mod stream;
mod tool_name;
mod trial;

#[cfg(test)]
pub(crate) mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::{Amount, ModelFault, ModelRole, Reply};

use crate::config::ModelSettings;
use crate::telemetry;
use crate::transcript::Transcript;
pub(crate) use failure::{ModelError, is_transient};
use link::{Link, Provider};
use retry::Patience;
use roles::{MAIN, Place, ROLES, role_name};
pub(crate) use roles::{check, conversation_limits};
pub use trial::{Tried, try_model};

/// A client could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// A key or token holds characters that no HTTP header may hold.
    #[error("model: a credential or header holds characters that an HTTP header cannot carry")]
    Credential,
    /// A header of the settings has no legal name.
    #[error("model.headers: {0:?} is no name of an HTTP header")]
    Header(String),
    /// There is no such dialect.
    #[error("model.dialect: {0:?} is not known")]
    Dialect(String),
    /// A role names a provider that is not there.
    #[error(transparent)]
    Settings(#[from] bootstrap::settings::Error),
    /// The HTTP client could not be set up.
    #[error("the client for the model could not be set up: {0}")]
    Http(#[from] reqwest::Error),
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// What for.
    pub(crate) role: ModelRole,
    /// A model in place of the role's own: its name, `provider`, or `provider:model`. The role's models stay behind it.
    pub(crate) model: Option<String>,
}

impl From<ModelRole> for Choice {
    fn from(role: ModelRole) -> Self {
        Self { role, model: None }
    }
}

/// Every model of the settings.
pub(crate) struct Models {
    settings: ModelSettings,
    providers: BTreeMap<String, Arc<Provider>>,
    chains: BTreeMap<ModelRole, Vec<Place>>,
}

impl Models {
    /// Clients for the configured models; nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError`] when settings cannot be used or TLS cannot be set up.
    pub(crate) fn new(settings: &ModelSettings) -> Result<Self, ClientError> {
        let mut providers = BTreeMap::from([(MAIN.to_owned(), Arc::new(Provider::new(settings)?))]);
        for (name, provider) in &settings.providers {
            providers.insert(name.clone(), Arc::new(Provider::new(provider)?));
        }
        let chain = |role| Ok((role, roles::chain(settings, role)?));
        let chains: Result<_, ClientError> = ROLES.into_iter().map(chain).collect();
        Ok(Self {
            settings: settings.clone(),
            providers,
            chains: chains?,
        })
    }

    /// Asks the models of a choice in order, each with retries; dropping the future cancels the call.
    ///
    /// # Errors
    /// [`ModelError`] when none of them answers, or when the question itself is what fails.
    pub(crate) async fn chat(
        &self,
        choice: &Choice,
        run: &str,
        transcript: &Transcript,
    ) -> Result<Reply, ModelError> {
        let links = self.links(choice);
        let mut failed: Vec<(Link, ModelError)> = Vec::new();
        for (place, link) in links.iter().enumerate() {
            let patience = if place + 1 == links.len() {
                Patience::LONG
            } else {
                Patience::SHORT
            };
            let settings = &link.place.settings;
            let call = telemetry::ChatCall::start(&telemetry::Asked {
                role: role_name(choice.role),
                provider: &link.place.provider,
                dialect: link.dialect(),
                model: &settings.name,
                max_output_tokens: settings.max_output_tokens,
                run,
                goes_on: dialect::goes_on(transcript),
            });
            let outcome = link
                .chat(transcript, patience)
                .await
                .map_err(|failure| failure.told(&link.addressee()));
            call.end(outcome.as_ref().map_err(|error| failure::name(error.kind)));
            match outcome {
                Ok(reply) => return Ok(reply),
                Err(error) if failure::is_of_the_provider(error.kind) => {
                    tracing::warn!(
                        provider = link.place.provider,
                        model = settings.name,
                        problem = error.words,
                        "a model does not answer"
                    );
                    failed.push((link.clone(), error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(told(&failed))
    }

    /// What a call may take at most that reads about so many tokens: the longest reply, at the price of the dearest model
    /// that may be asked. A model without a price counts its tokens alone.
    pub(crate) fn most(&self, choice: &Choice, input: u64) -> Amount {
        let each = self.links(choice).into_iter().map(|link| {
            let output = u64::from(link.place.settings.max_output_tokens);
            let cost = link.price.map(|price| price.most_micros(input, output));
            (cost.unwrap_or_default(), input.saturating_add(output))
        });
        each.fold(Amount::default(), |most, (cost, tokens)| Amount {
            cost_micros: most.cost_micros.max(cost),
            tokens: most.tokens.max(tokens),
        })
    }

    /// The longest that a call takes, with every retry at every model.
    pub(crate) fn longest(&self, choice: &Choice) -> Duration {
        let links = self.links(choice);
        let last = links.len().saturating_sub(1);
        let each = links.iter().enumerate().map(|(place, link)| {
            let patience = if place == last {
                Patience::LONG
            } else {
                Patience::SHORT
            };
            patience.longest(Duration::from_millis(link.place.settings.total_timeout_ms))
        });
        each.sum()
    }

    /// Tokens of a conversation from which on it is made shorter: what the smallest model of the chain bears.
    pub(crate) fn conversation_limit(&self, choice: &Choice) -> u64 {
        let names = self.places(choice).into_iter().map(|place| place.settings.name);
        let limits = names.map(|name| prices::conversation_limit(&self.settings, &name));
        limits.min().unwrap_or_default()
    }

    /// The chain of a choice; providers that failed a moment ago come last.
    fn links(&self, choice: &Choice) -> Vec<Link> {
        let link = |place: Place| {
            Some(Link {
                provider: self.providers.get(&place.provider)?.clone(),
                price: prices::price(&self.settings.prices, &place.settings.name),
                place,
            })
        };
        let mut links: Vec<Link> = self.places(choice).into_iter().filter_map(link).collect();
        links.sort_by_key(|link| link.provider.is_resting());
        links
    }

    fn places(&self, choice: &Choice) -> Vec<Place> {
        let own = self.chains.get(&choice.role);
        let own = own.map(Vec::as_slice).unwrap_or_default();
        match &choice.model {
            Some(model) => roles::overridden(&self.settings, own, model),
            None => own.to_vec(),
        }
    }
}

/// One error for all that failed: worth another try when one of them is.
fn told(failed: &[(Link, ModelError)]) -> ModelError {
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
    let kind = kinds().find(|kind| is_transient(*kind)).or(kinds().next());
    ModelError {
        words,
        kind: kind.unwrap_or(ModelFault::NotOffered),
        limit: failed.iter().filter_map(|(_, error)| error.limit).max(),
    }
}
