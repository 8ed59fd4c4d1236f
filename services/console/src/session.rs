//! The person who is logged in. The browser has a random id; the token stays here, in memory, and is gone with the process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::Client;
use tokio::time::Instant;

use crate::standing::PersonStanding;

/// The cookie's name where browsers reach the console plainly.
const COOKIE: &str = "journeyman";
/// Its name over TLS: browsers take it from this host alone, over TLS alone, so no neighbor under the same domain sets it.
const TLS_COOKIE: &str = "__Host-journeyman";
/// How long a session lasts.
pub(crate) const LASTS: Duration = Duration::from_secs(8 * 60 * 60);
/// How many are kept at a time; the oldest makes place.
const MOST: usize = 1_000;

/// Everybody who is logged in.
pub(crate) type Sessions = Kept<Login>;

/// The person who is logged in.
#[derive(Clone)]
pub(crate) enum Login {
    /// With a token of the API, which knows its own role.
    Token(Client),
    /// At the provider, which is asked again.
    Provider(Arc<PersonStanding>),
}

/// Things that browsers have random ids of, for some time. Cheap to clone.
pub(crate) struct Kept<T> {
    lasts: Duration,
    open: Arc<Mutex<HashMap<String, One<T>>>>,
}

struct One<T> {
    thing: T,
    ends: Instant,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self {
            lasts: self.lasts,
            open: Arc::clone(&self.open),
        }
    }
}

impl<T> Kept<T> {
    pub(crate) fn new(lasts: Duration) -> Self {
        Self {
            lasts,
            open: Arc::default(),
        }
    }

    /// Keeps one; gives its id.
    pub(crate) fn begin(&self, thing: T) -> String {
        let id = [(); 2]
            .map(|()| uuid::Uuid::new_v4().simple().to_string())
            .concat();
        let now = Instant::now();
        self.with(|open| {
            open.retain(|_, one| one.ends > now);
            if open.len() >= MOST {
                let oldest = open.iter().min_by_key(|(_, one)| one.ends);
                if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                    open.remove(&oldest);
                }
            }
            let ends = now + self.lasts;
            open.insert(id.clone(), One { thing, ends });
        });
        id
    }

    /// One that has not ended.
    pub(crate) fn get(&self, id: &str) -> Option<T>
    where
        T: Clone,
    {
        let now = Instant::now();
        self.with(|open| {
            let one = open.get(id).filter(|one| one.ends > now);
            one.map(|one| one.thing.clone())
        })
    }

    /// Ends one; gives it if it had not ended before.
    pub(crate) fn end(&self, id: &str) -> Option<T> {
        let now = Instant::now();
        let ended = self.with(|open| open.remove(id));
        ended.filter(|one| one.ends > now).map(|one| one.thing)
    }

    fn with<A>(&self, act: impl FnOnce(&mut HashMap<String, One<T>>) -> A) -> A {
        act(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The name of a session's cookie.
pub(crate) const fn cookie_name(over_tls: bool) -> &'static str {
    if over_tls { TLS_COOKIE } else { COOKIE }
}

/// The cookie of a session. No script reads it, and no page of others sends it.
pub(crate) fn cookie(id: &str, over_tls: bool) -> String {
    with_attributes(id, LASTS, over_tls)
}

/// The cookie that takes the other away.
pub(crate) fn gone(over_tls: bool) -> String {
    with_attributes("", Duration::ZERO, over_tls)
}

fn with_attributes(id: &str, lasts: Duration, over_tls: bool) -> String {
    let secure = if over_tls { "; Secure" } else { "" };
    format!(
        "{}={id}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
        cookie_name(over_tls),
        lasts.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_after_its_time_and_with_a_logout() {
        let sessions = Kept::new(LASTS);
        let (first, second) = (sessions.begin("ada"), sessions.begin("bob"));
        assert_ne!(first, second);
        assert_eq!(sessions.get(&first), Some("ada"));
        assert_eq!(sessions.get("guessed"), None);
        assert_eq!(sessions.end(&first), Some("ada"));
        assert_eq!((sessions.get(&first), sessions.get(&second)), (None, Some("bob")));
        tokio::time::advance(LASTS).await;
        assert_eq!((sessions.get(&second), sessions.end(&second)), (None, None));
    }

    #[test]
    fn cookie_over_tls_belongs_to_host_alone() {
        assert!(
            cookie("id", false).starts_with("journeyman=id; Path=/;")
                && !cookie("id", false).contains("Secure")
        );
        for text in [cookie("id", true), gone(true)] {
            assert!(
                text.starts_with("__Host-journeyman=") && text.contains("; Path=/;"),
                "{text}"
            );
            assert!(text.ends_with("; Secure") && !text.contains("Domain"), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_session_makes_place_for_the_newest() {
        let sessions = Kept::new(LASTS);
        let first = sessions.begin(0);
        tokio::time::advance(Duration::from_secs(1)).await;
        let others: Vec<_> = (0..MOST).map(|number| sessions.begin(number)).collect();
        assert!(sessions.get(&first).is_none());
        assert!(others.iter().all(|id| sessions.get(id).is_some()));
    }
}
