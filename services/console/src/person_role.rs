//! Role of a person who logged in at the provider.
//!
//! The console requests it again each hour if the provider issued a refresh token. Without one the session ends after an
//! hour, and the provider decides at the next login.

use std::time::Duration;

use api::Client;
use secrecy::SecretString;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    layout::PageVisitor,
    oidc::{LoginRefusal, OidcProvider, ProviderIdentity},
};

/// Largest age of the provider's answer.
pub(crate) const COUNTS: Duration = Duration::from_secs(60 * 60);
// Largest age of the provider's answer while the provider is unreachable.
const COUNTS_AT_MOST: Duration = Duration::from_secs(2 * 60 * 60);
// Pause after an attempt that did not reach the provider.
const PAUSE: Duration = Duration::from_secs(60);

/// Identity and current role of one login.
pub(crate) struct PersonStanding {
    identity: ProviderIdentity,
    known: Mutex<KnownRole>,
}

struct KnownRole {
    client: Client,
    /// Absent: the provider issued none, and the login is valid for an hour.
    refresh: Option<SecretString>,
    confirmed: Instant,
    tried: Option<Instant>,
}

impl PersonStanding {
    pub(crate) fn new(client: Client, identity: ProviderIdentity, refresh: Option<SecretString>) -> Self {
        let known = KnownRole {
            client,
            refresh,
            confirmed: Instant::now(),
            tried: None,
        };
        Self {
            identity,
            known: Mutex::new(known),
        }
    }

    /// Returns the name and the last known role of the person for the header of pages.
    pub(crate) async fn visitor(&self) -> Option<PageVisitor> {
        let known = self.known.lock().await;
        let person = known.client.person()?;
        Some(PageVisitor {
            name: person.name.clone(),
            role: person.role,
        })
    }

    /// Returns the client of the person with their current role.
    ///
    /// `None` if they have no role any more, or if the provider was unreachable for too long.
    pub(crate) async fn client(&self, provider: &OidcProvider, api: &str) -> Option<Client> {
        // The lock is held during the request. Providers may rotate refresh tokens, so two requests with one token
        // could end the login.
        let mut known = self.known.lock().await;
        let age = known.confirmed.elapsed();
        if age < COUNTS {
            return Some(known.client.clone());
        }
        let Some(refresh) = known.refresh.clone() else {
            tracing::info!(identity = %self.identity, "a session ends: the provider issued no refresh token");
            return None;
        };
        // An unreachable provider must not end all sessions at once.
        let counts_still = (age < COUNTS_AT_MOST).then(|| known.client.clone());
        if known.tried.is_some_and(|tried| tried.elapsed() < PAUSE) {
            return counts_still;
        }
        match provider.ask_again(&self.identity, &refresh).await {
            Ok((person, next)) => {
                tracing::info!(
                    person = person.name,
                    role = person.role.as_str(),
                    "role asked again"
                );
                // Without rotation, the provider keeps the old token valid.
                known.refresh = Some(next.unwrap_or(refresh));
                known.confirmed = Instant::now();
                known.tried = None;
                match provider.client_for(api, person, &self.identity) {
                    Ok(client) => known.client = client,
                    Err(refused) => {
                        tracing::error!(?refused, "a session ends: the client of the API cannot be built");
                        return None;
                    }
                }
                Some(known.client.clone())
            }
            Err(LoginRefusal::Provider(why)) => {
                tracing::warn!(why, "the provider cannot be asked again for the role of a person");
                known.tried = Some(Instant::now());
                counts_still
            }
            Err(refused) => {
                tracing::warn!(?refused, "a session ends: the provider no longer vouches for it");
                None
            }
        }
    }
}
