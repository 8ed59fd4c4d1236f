//! `[model.embeddings]`: server that compares a ticket with code by meaning.

use bootstrap::settings::Error;
use secrecy::SecretString;
use serde::Deserialize;

/// Server with `/v1/embeddings`, as `OpenAI` describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSettings {
    /// Name of the model.
    pub name: String,
    /// Address of the server, with or without `/v1`.
    #[serde(default = "default_base_url")]
    pub base_url: String,
    /// API key, sent as a bearer token; absent: no authorization.
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
