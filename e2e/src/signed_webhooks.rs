//! GitHub webhooks with a valid signature.

use reqwest::{Client, StatusCode};
use ring::hmac;

use crate::WEBHOOK_SECRET;

/// Returns the signature header's value for a body, with the secret of the stand-ins.
pub fn sign_webhook(body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, WEBHOOK_SECRET.as_bytes());
    let tag = hmac::sign(&key, body);
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// Sender of webhooks to one ingest address.
#[derive(Clone, Debug)]
pub struct SignedWebhookSender {
    client: Client,
    url: String,
}

impl SignedWebhookSender {
    /// Creates a sender to the URL of ingest's GitHub webhooks.
    pub fn new(client: Client, url: impl Into<String>) -> Self {
        let url = url.into();
        Self { client, url }
    }

    /// URL of ingest's GitHub webhooks.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Creates a sender with the same URL and another client.
    #[must_use]
    pub fn with_client(&self, client: Client) -> Self {
        Self::new(client, self.url.clone())
    }

    /// Sends a webhook and returns the status of the answer.
    ///
    /// # Errors
    /// When ingest does not answer.
    pub async fn send(&self, event: &str, id: &str, body: String) -> reqwest::Result<StatusCode> {
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("x-github-event", event)
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", sign_webhook(body.as_bytes()));
        Ok(request.body(body).send().await?.status())
    }
}
