//! `[model]`: which models are asked, where, and what they cost.

use std::collections::BTreeMap;

use super::EmbeddingSettings;
use bootstrap::settings::TextList;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};

/// `[model]`, and each `[model.providers.<name>]`, which has the same keys except for the last six.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// How the provider is spoken to: `anthropic`, `openai` or `bedrock`.
    #[serde(default = "default_dialect")]
    pub dialect: String,
    /// The provider's address, with or without `/v1`; absent: the dialect's own provider.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Plain `http://` to another machine is allowed, although the key and what is said can be read on the way.
    #[serde(default)]
    pub allow_insecure: bool,
    /// The model, as the provider names it.
    pub name: String,
    /// The provider's key.
    #[serde(default)]
    pub api_key: Option<SecretString>,
    /// Where the key comes from, as messages name it: `ANTHROPIC_API_KEY`; absent: the setting itself.
    #[serde(default)]
    pub key_source: Option<String>,
    /// An OAuth token, sent as a bearer token in place of the key.
    #[serde(default)]
    pub auth_token: Option<SecretString>,
    /// Headers that are sent along, by name.
    #[serde(default)]
    pub headers: BTreeMap<String, SecretString>,
    /// Azure's `api-version`; with it the deployment is part of the path.
    #[serde(default)]
    pub api_version: Option<String>,
    /// The AWS region of Bedrock.
    #[serde(default)]
    pub region: Option<String>,
    /// The AWS profile whose credentials are used; absent: the standard chain.
    #[serde(default)]
    pub aws_profile: Option<String>,
    /// An AWS access key, in place of the standard chain.
    #[serde(default)]
    pub aws_access_key_id: Option<String>,
    /// Its secret.
    #[serde(default)]
    pub aws_secret_access_key: Option<SecretString>,
    /// Its session token, when the key is temporary.
    #[serde(default)]
    pub aws_session_token: Option<SecretString>,
    /// The most tokens in one reply, thinking included.
    #[serde(default = "default_max_output_tokens")]
    pub max_output_tokens: u32,
    /// Whether the model thinks first; absent: as the model itself has it.
    #[serde(default)]
    pub thinking: Option<Thinking>,
    /// How much effort a reply gets, in the provider's words: `low`, `medium`, `high` …; absent: its default.
    #[serde(default)]
    pub effort: Option<String>,
    /// Whether what tickets share is kept in the provider's cache for an hour; absent: where the provider is Anthropic.
    #[serde(default)]
    pub long_cache: Option<bool>,
    /// Limit for the connection, in milliseconds.
    #[serde(default = "default_connect_timeout_ms")]
    pub connect_timeout_ms: u64,
    /// Longest pause in a reply, in milliseconds.
    #[serde(default = "default_idle_timeout_ms")]
    pub idle_timeout_ms: u64,
    /// Limit for one whole reply, in milliseconds.
    #[serde(default = "default_total_timeout_ms")]
    pub total_timeout_ms: u64,
    /// Who is asked when this provider fails, in order: names of providers, or `provider:model`.
    #[serde(default)]
    pub fallbacks: TextList,
    /// Further providers by name.
    #[serde(default)]
    pub providers: BTreeMap<String, ModelSettings>,
    /// Models for special work.
    #[serde(default)]
    pub roles: RoleTable,
    /// Prices of models by name; they come before the known ones.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// Who ranks places of the code by meaning; absent: nobody.
    #[serde(default)]
    pub embeddings: Option<Box<EmbeddingSettings>>,
    /// How many tokens models can read, by name; they come before the known ones.
    #[serde(default)]
    pub windows: BTreeMap<String, u64>,
}

/// `[model.roles]`; a role that is not there is the one of `[model]` itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleTable {
    /// Classifying, triage, summaries.
    #[serde(default)]
    pub fast: RoleSettings,
    /// The second opinion on a change.
    #[serde(default)]
    pub reviewer: RoleSettings,
}

/// `[model.roles.<role>]`: what differs from its provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSettings {
    /// One of `[model.providers]`; absent: `[model]` itself.
    #[serde(default)]
    pub provider: Option<String>,
    /// Another model.
    #[serde(default)]
    pub name: Option<String>,
    /// Another limit for one reply.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// Other thinking.
    #[serde(default)]
    pub thinking: Option<Thinking>,
    /// Other effort.
    #[serde(default)]
    pub effort: Option<String>,
    /// Other fallbacks.
    #[serde(default)]
    pub fallbacks: Option<TextList>,
}

/// What a model costs: dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from the cache; absent: as `input`.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Tokens written to the cache for five minutes; absent: as `input`.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Tokens written to the cache for an hour; absent: as `cache_write`.
    #[serde(default)]
    pub cache_write_1h: Option<f64>,
    /// Prompts with more tokens than this cost more, all of their tokens.
    #[serde(default)]
    pub long_above: Option<u64>,
    /// The factor for what such a prompt reads and caches.
    #[serde(default = "one")]
    pub long_input_factor: f64,
    /// The factor for what is written after such a prompt.
    #[serde(default = "one")]
    pub long_output_factor: f64,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// No thinking, where the model can be without.
    Disabled,
    /// As much as the model finds right.
    Adaptive,
    /// At most so many tokens; for models before adaptive thinking.
    Budget(u32),
}

/// The fewest tokens that a thinking budget may have.
const LEAST_BUDGET: u32 = 1024;

impl<'de> Deserialize<'de> for Thinking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Tokens(u32),
            Word(String),
        }
        let word = match Written::deserialize(deserializer)? {
            Written::Tokens(tokens) => tokens.to_string(),
            Written::Word(word) => word,
        };
        match (word.as_str(), word.parse::<u32>()) {
            ("disabled", _) => Ok(Self::Disabled),
            ("adaptive", _) => Ok(Self::Adaptive),
            (_, Ok(tokens)) if tokens >= LEAST_BUDGET => Ok(Self::Budget(tokens)),
            _ => Err(D::Error::custom(
                "must be \"adaptive\", \"disabled\" or a number of tokens, at least 1024",
            )),
        }
    }
}

fn default_dialect() -> String {
    "anthropic".to_owned()
}

fn default_max_output_tokens() -> u32 {
    16_384
}

fn default_connect_timeout_ms() -> u64 {
    5_000
}

fn default_idle_timeout_ms() -> u64 {
    120_000
}

fn default_total_timeout_ms() -> u64 {
    600_000
}

fn one() -> f64 {
    1.0
}
