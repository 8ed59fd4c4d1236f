//! Who is logged in. The browser has a random id; the token stays here, in memory, and is gone with the process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::Client;
use tokio::time::Instant;

/// The cookie's name.
pub(crate) const COOKIE: &str = "journeyman";
/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(8 * 60 * 60);
/// Sessions at a time; the oldest makes place.
const MOST: usize = 1_000;

struct Session {
    client: Client,
    ends: Instant,
}

/// Everybody who is logged in. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<HashMap<String, Session>>>);

impl Sessions {
    /// Begins one; gives its id.
    pub(crate) fn begin(&self, client: Client) -> String {
        let id = [(); 2]
            .map(|()| uuid::Uuid::new_v4().simple().to_string())
            .concat();
        let now = Instant::now();
        self.with(|open| {
            open.retain(|_, session| session.ends > now);
            if open.len() >= MOST {
                let oldest = open.iter().min_by_key(|(_, session)| session.ends);
                if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                    open.remove(&oldest);
                }
            }
            let ends = now + LASTS;
            open.insert(id.clone(), Session { client, ends });
        });
        id
    }

    /// The client of a session that has not ended.
    pub(crate) fn client(&self, id: &str) -> Option<Client> {
        let now = Instant::now();
        self.with(|open| {
            let session = open.get(id).filter(|session| session.ends > now);
            session.map(|session| session.client.clone())
        })
    }

    /// Ends one.
    pub(crate) fn end(&self, id: &str) {
        self.with(|open| open.remove(id));
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Session>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The cookie of a session. No script reads it, and no page of others sends it.
pub(crate) fn cookie(id: &str, over_tls: bool) -> String {
    let secure = if over_tls { "; Secure" } else { "" };
    format!(
        "{COOKIE}={id}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
        LASTS.as_secs()
    )
}

/// The cookie that takes the other away.
pub(crate) fn gone() -> String {
    format!("{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        bootstrap::install_tls_provider();
        Client::new("http://127.0.0.1:1", "secret".to_owned().into()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_after_eight_hours_and_with_a_logout() {
        let sessions = Sessions::default();
        let (first, second) = (sessions.begin(client()), sessions.begin(client()));
        assert_ne!(first, second);
        assert!(sessions.client(&first).is_some() && sessions.client("guessed").is_none());
        sessions.end(&first);
        assert!(sessions.client(&first).is_none() && sessions.client(&second).is_some());
        tokio::time::advance(LASTS).await;
        assert!(sessions.client(&second).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_session_makes_place_for_the_newest() {
        let sessions = Sessions::default();
        let first = sessions.begin(client());
        tokio::time::advance(Duration::from_secs(1)).await;
        let client = client();
        let others: Vec<_> = (0..MOST).map(|_| sessions.begin(client.clone())).collect();
        assert!(sessions.client(&first).is_none());
        assert!(others.iter().all(|id| sessions.client(id).is_some()));
    }
}
