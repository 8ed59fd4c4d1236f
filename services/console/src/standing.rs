//! Standing of a person who logged in at the provider: asked again each hour where the provider gave a refresh token; without
//! one the session ends after an hour, and the provider decides at the next login.

use std::time::Duration;

use api::Client;
use openidconnect::RefreshToken;
use tokio::{sync::Mutex, time::Instant};

use crate::oidc::{Provider, ProviderIdentity, Refused};

/// Age up to which the provider's answer counts.
pub(crate) const COUNTS: Duration = Duration::from_secs(60 * 60);
/// The same while the provider cannot be reached.
const COUNTS_AT_MOST: Duration = Duration::from_secs(2 * 60 * 60);
/// From a try that reached no provider to the next.
const PAUSE: Duration = Duration::from_secs(60);

/// One login's standing.
pub(crate) struct PersonStanding {
    identity: ProviderIdentity,
    known: Mutex<KnownRole>,
}

struct KnownRole {
    client: Client,
    /// Absent: the provider gave none, and the login counts for an hour.
    refresh: Option<RefreshToken>,
    confirmed: Instant,
    tried: Option<Instant>,
}

impl PersonStanding {
    pub(crate) fn new(client: Client, identity: ProviderIdentity, refresh: Option<RefreshToken>) -> Self {
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

    /// The client of the person, with the role that they have now; absent when they have none any more, or when nobody could
    /// say for too long.
    pub(crate) async fn client(&self, provider: &Provider, api: &str) -> Option<Client> {
        let mut known = self.known.lock().await;
        let age = known.confirmed.elapsed();
        if age < COUNTS {
            return Some(known.client.clone());
        }
        let refresh = known.refresh.clone()?;
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
                known.client = provider.client_for(api, person, &self.identity).ok()?;
                known.refresh = Some(next.unwrap_or(refresh));
                known.confirmed = Instant::now();
                known.tried = None;
                Some(known.client.clone())
            }
            Err(Refused::Provider(why)) => {
                tracing::warn!(why, "the provider cannot be asked again for somebody's role");
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
