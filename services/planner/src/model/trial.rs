//! Trial of a model: one short request before a ticket depends on it.

use bootstrap::settings::TextList;
use domain::{ModelRole, cause::format_error_chain};

use super::{ModelClients, retry::RetryPatience, roles};
use crate::{
    config::ModelSettings,
    transcript::{ModelTranscript, TranscriptMessage},
};

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

/// Sends a short request to the model of these settings, without its fallbacks.
///
/// # Errors
/// An invalid setting, or the provider's failure, worded for users.
pub async fn try_configured_model(settings: &ModelSettings) -> Result<TrialResult, String> {
    let alone = ModelSettings {
        fallbacks: TextList::default(),
        ..settings.clone()
    };
    roles::check_models(&alone).map_err(|error| error.to_string())?;
    let models = ModelClients::new(&alone).map_err(|error| format_error_chain(&error))?;
    let links = models.links(&ModelRole::Default.into());
    let Some(link) = links.first() else {
        return Err("the settings name no model".to_owned());
    };
    let question = ModelTranscript {
        system: vec!["You are asked whether you can be reached.".to_owned()],
        tools: Vec::new(),
        messages: vec![TranscriptMessage::User("Reply with the one word: ok".to_owned())],
        output: None,
    };
    let reply = link.chat(&question, RetryPatience::SHORT).await;
    let addressee = link.addressee();
    let reply = reply.map_err(|failure| failure.told(&addressee).to_string())?;
    Ok(TrialResult {
        model: reply.model,
        cost_micros: reply.cost_micros,
        host: addressee.host,
        credential: addressee.credential,
    })
}
