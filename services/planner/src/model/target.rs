//! Model, host and credential of a call, as messages for users name them.

use secrecy::{ExposeSecret as _, SecretString};

use super::{dialect, quotation::HIDDEN, roles::MAIN};
use crate::config::ModelSettings;

// A shorter secret may be part of an ordinary word.
const LEAST_SECRET_CHARS: usize = 6;

/// One model at one address, with the credential of its calls.
#[derive(Clone)]
pub(super) struct ModelTarget {
    pub(super) model: String,
    pub(super) host: String,
    /// Credential by its source, such as `the key in ANTHROPIC_API_KEY`.
    pub(super) credential: String,
    secrets: Vec<SecretString>,
}

impl ModelTarget {
    /// Returns the addressee that the settings of a provider describe.
    pub(super) fn of(provider: &str, settings: &ModelSettings) -> Self {
        let secrets = [
            &settings.api_key,
            &settings.auth_token,
            &settings.aws_secret_access_key,
            &settings.aws_session_token,
        ];
        let secrets = secrets.into_iter().flatten().chain(settings.headers.values());
        let url =
            dialect::find_dialect(&settings.dialect).and_then(|dialect| dialect.url(settings).parse().ok());
        Self {
            model: settings.name.clone(),
            host: url
                .as_ref()
                .and_then(host_and_port)
                .unwrap_or_else(|| "an unknown address".to_owned()),
            credential: describe_credential(provider, settings),
            secrets: secrets.cloned().collect(),
        }
    }

    /// Replaces the credentials of these settings in a text.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let secrets = self.secrets.iter().map(|secret| secret.expose_secret().trim());
        let mut text = text.to_owned();
        for secret in secrets.filter(|secret| secret.len() >= LEAST_SECRET_CHARS) {
            text = text.replace(secret, HIDDEN);
        }
        text
    }
}

/// Returns host and port; the path may contain a gateway's key.
fn host_and_port(url: &reqwest::Url) -> Option<String> {
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

fn describe_credential(provider: &str, settings: &ModelSettings) -> String {
    let section = match provider {
        MAIN => "model".to_owned(),
        name => format!("model.providers.{name}"),
    };
    let key = dialect::find_api_key(settings);
    match (&settings.key_source, key, dialect::find_auth_token(settings)) {
        (Some(source), ..) => format!("the key in {source}"),
        (None, _, Some(_)) => format!("the token in the setting {section}.auth_token"),
        (None, Some(_), None) => format!("the key in the setting {section}.api_key"),
        (None, None, None) if settings.dialect == "bedrock" => match &settings.aws_access_key_id {
            Some(_) => format!("the access key in the setting {section}.aws_access_key_id"),
            None => "the AWS credentials of this machine".to_owned(),
        },
        (None, None, None) => "a request without a key".to_owned(),
    }
}
