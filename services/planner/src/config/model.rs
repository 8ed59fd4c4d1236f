//! `[model]`: providers, models and their prices, and the server that compares a ticket with code by meaning.

use std::collections::BTreeMap;

use bootstrap::settings::{Error, TextList};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};

/// `[model]`, and each `[model.providers.<name>]`, which has the same keys except for the last six.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// API of the provider: `anthropic`, `openai` or `bedrock`.
    #[serde(default = "default_dialect")]
    pub dialect: String,
    /// Address of the provider, with or without `/v1`; absent: the dialect's default provider.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Allows plain `http://` to another machine, although the key and the prompts are readable on the way.
    #[serde(default)]
    pub allow_insecure: bool,
    /// Name of the model, as the provider spells it.
    pub name: String,
    /// API key of the provider.
    #[serde(default)]
    pub api_key: Option<SecretString>,
    /// Source of the key for error messages, such as `ANTHROPIC_API_KEY`; absent: the setting itself.
    #[serde(default)]
    pub key_source: Option<String>,
    /// OAuth token, sent as a bearer token instead of the key.
    #[serde(default)]
    pub auth_token: Option<SecretString>,
    /// Additional headers by name.
    #[serde(default)]
    pub headers: BTreeMap<String, SecretString>,
    /// `api-version` of Azure; with it the deployment is part of the path.
    #[serde(default)]
    pub api_version: Option<String>,
    /// AWS region of Bedrock.
    #[serde(default)]
    pub region: Option<String>,
    /// AWS profile with the credentials; absent: the standard credential chain.
    #[serde(default)]
    pub aws_profile: Option<String>,
    /// AWS access key, instead of the standard credential chain.
    #[serde(default)]
    pub aws_access_key_id: Option<String>,
    /// Secret of the AWS access key.
    #[serde(default)]
    pub aws_secret_access_key: Option<SecretString>,
    /// Session token of a temporary AWS access key.
    #[serde(default)]
    pub aws_session_token: Option<SecretString>,
    /// Maximum of tokens in one reply, thinking included.
    #[serde(default = "default_max_output_tokens")]
    pub max_output_tokens: u32,
    /// Thinking before a reply; absent: the model's default.
    #[serde(default)]
    pub thinking: Option<ThinkingMode>,
    /// Effort for a reply, as the provider spells it: `low`, `medium`, `high` …; absent: its default.
    #[serde(default)]
    pub effort: Option<String>,
    /// Sends images of tickets to the model; absent: as its name says.
    #[serde(default)]
    pub images: Option<bool>,
    /// Caches the part of prompts that tickets share for an hour at the provider; absent: true for
    /// Anthropic.
    #[serde(default)]
    pub long_cache: Option<bool>,
    /// Limit for the connection, in milliseconds.
    #[serde(default = "default_connect_timeout_ms")]
    pub connect_timeout_ms: u64,
    /// Longest pause within a reply, in milliseconds.
    #[serde(default = "default_idle_timeout_ms")]
    pub idle_timeout_ms: u64,
    /// Limit for one whole reply, in milliseconds.
    #[serde(default = "default_total_timeout_ms")]
    pub total_timeout_ms: u64,
    /// Providers for calls that this provider fails, in order: provider names, or `provider:model`.
    #[serde(default)]
    pub fallbacks: TextList,
    /// Additional providers by name.
    #[serde(default)]
    pub providers: BTreeMap<String, ModelSettings>,
    /// Models for special work.
    #[serde(default)]
    pub roles: RoleTable,
    /// Prices by model name; they take precedence over the built-in ones.
    #[serde(default)]
    pub prices: BTreeMap<String, ModelPrice>,
    /// Server that ranks code by meaning; absent: the order of the search applies.
    #[serde(default)]
    pub embeddings: Option<Box<EmbeddingSettings>>,
    /// Context windows in tokens by model name; they take precedence over the built-in ones.
    #[serde(default)]
    pub windows: BTreeMap<String, u64>,
}

/// `[model.roles]`; a missing role uses `[model]` itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleTable {
    /// Model that classifies, triages and summarizes.
    #[serde(default)]
    pub fast: RoleSettings,
    /// Model that reviews a change.
    #[serde(default)]
    pub reviewer: RoleSettings,
}

/// `[model.roles.<role>]`: overrides of the provider's settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSettings {
    /// Name from `[model.providers]`; absent: `[model]` itself.
    #[serde(default)]
    pub provider: Option<String>,
    /// Model name that replaces the provider's.
    #[serde(default)]
    pub name: Option<String>,
    /// Limit of tokens in one reply that replaces the provider's.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// Thinking that replaces the provider's.
    #[serde(default)]
    pub thinking: Option<ThinkingMode>,
    /// Effort that replaces the provider's.
    #[serde(default)]
    pub effort: Option<String>,
    /// Fallbacks that replace the provider's.
    #[serde(default)]
    pub fallbacks: Option<TextList>,
}

/// Price of a model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Price of tokens in the prompt.
    pub input: f64,
    /// Price of tokens in the reply.
    pub output: f64,
    /// Price of tokens read from the cache; absent: as `input`.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Price of tokens cached for five minutes; absent: as `input`.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Price of tokens cached for an hour; absent: as `cache_write`.
    #[serde(default)]
    pub cache_write_1h: Option<f64>,
    /// Number of prompt tokens above which the factors apply to the whole call.
    #[serde(default)]
    pub long_above: Option<u64>,
    /// Factor for the prompt and cache prices of such a call.
    #[serde(default = "default_factor")]
    pub long_input_factor: f64,
    /// Factor for the reply price of such a call.
    #[serde(default = "default_factor")]
    pub long_output_factor: f64,
}

/// Thinking of the model before it replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingMode {
    /// No thinking, where the model supports that.
    Disabled,
    /// Adaptive thinking: the model chooses the amount.
    Adaptive,
    /// Maximum of thinking tokens, for models without adaptive thinking.
    Budget(u32),
}

// Anthropic refuses a smaller `budget_tokens`.
const LEAST_BUDGET: u32 = 1024;

impl<'de> Deserialize<'de> for ThinkingMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ThinkingSetting {
            Tokens(u32),
            Word(String),
        }
        // Settings from the environment arrive as text, so a number may be a string.
        let word = match ThinkingSetting::deserialize(deserializer)? {
            ThinkingSetting::Tokens(tokens) => tokens.to_string(),
            ThinkingSetting::Word(word) => word,
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

// Parts of the names of models that accept images, in lower case.
const WITH_IMAGES: &[&str] = &[
    "claude",
    "gpt-4o",
    "gpt-4.1",
    "gpt-4.5",
    "gpt-4-turbo",
    "gpt-5",
    "o1",
    "o3",
    "o4-mini",
    "gemini",
    "gemma-3",
    "gemma3",
    "grok-4",
    "llama-4",
    "llava",
    "mistral-medium-3",
    "mistral-small-3.1",
    "pixtral",
    "-vl",
    "-vision",
    "nova-lite",
    "nova-pro",
];
// Parts of the names of their relatives that do not.
const WITHOUT_IMAGES: &[&str] = &[
    "claude-2",
    "claude-instant",
    "claude-v2",
    "o1-mini",
    "o1-preview",
    "o3-mini",
    "audio",
    "gemma-3-1b",
];

impl ModelSettings {
    /// Returns true if the model gets images. An unknown model gets none: it might refuse every request.
    pub(crate) fn takes_images(&self) -> bool {
        self.images.unwrap_or_else(|| accepts_images(&self.name))
    }
}

fn accepts_images(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| has_part(&model, part));
    has(WITH_IMAGES) && !has(WITHOUT_IMAGES)
}

/// Returns true if a name has this part, and not within a word: `o3`, not `solo3`.
fn has_part(model: &str, part: &str) -> bool {
    model.match_indices(part).any(|(at, _)| {
        let before = model[..at].chars().next_back();
        part.starts_with('-') || before.is_none_or(|c| !c.is_ascii_alphanumeric())
    })
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

fn default_factor() -> f64 {
    1.0
}

/// `[model.embeddings]`: server with `/v1/embeddings`, as `OpenAI` describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSettings {
    /// Name of the model.
    pub name: String,
    /// Address of the server, with or without `/v1`.
    #[serde(default = "default_base_url")]
    pub base_url: String,
    /// API key, sent as a bearer token; absent or empty: no authorization.
    #[serde(default)]
    pub api_key: Option<SecretString>,
    /// Length of a vector, for models that support a choice; absent: the model's default.
    #[serde(default)]
    pub dimensions: Option<u32>,
    /// Texts in one request, 1 to 2,048.
    #[serde(default = "default_batch")]
    pub batch: usize,
    /// Limit for all requests of one ticket, in milliseconds. After it the order of the search applies.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Allows plain `http://` to another machine, although the key and the code are readable on the way.
    #[serde(default)]
    pub allow_insecure: bool,
}

fn default_base_url() -> String {
    "https://api.openai.com/v1".to_owned()
}

fn default_batch() -> usize {
    64
}

fn default_timeout_ms() -> u64 {
    5_000
}

impl EmbeddingSettings {
    /// Validates the settings of the server.
    ///
    /// # Errors
    /// The first invalid key and its problem.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let problem = |key: &str, problem: &str| Err(Error::new(format!("model.embeddings.{key}"), problem));
        let base = self.base_url.as_str();
        if self.name.is_empty() {
            return problem("name", "must be set");
        }
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return problem("base_url", "must be an http:// or https:// address");
        }
        if domain::is_readable_on_the_way(base) && !self.allow_insecure {
            return problem(
                "base_url",
                "sends code unencrypted to another machine: use https://, or set allow_insecure = true",
            );
        }
        if !(1..=2048).contains(&self.batch) {
            return problem("batch", "must be 1 to 2048");
        }
        if self.dimensions == Some(0) {
            return problem("dimensions", "must be at least 1");
        }
        if self.timeout_ms == 0 {
            return problem("timeout_ms", "must be at least 1");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_default_follows_model_name() {
        for model in [
            "claude-sonnet-4-5",
            "us.anthropic.claude-opus-4-1-20250805-v1:0",
            "gpt-5.1",
            "gpt-4o-mini",
            "openai/o3",
            "gemini-2.5-pro",
            "Qwen2.5-VL-72B-Instruct",
            "llama-3.2-90b-vision-instruct",
        ] {
            assert!(accepts_images(model), "{model}");
        }
        for model in [
            "claude-2.1",
            "anthropic.claude-instant-v1",
            "gpt-4",
            "gpt-3.5-turbo",
            "o3-mini",
            "solo3",
            "deepseek-chat",
            "gpt-4o-audio-preview",
            "qwen3-coder",
            "scripted",
        ] {
            assert!(!accepts_images(model), "{model}");
        }
    }
}
