//! Sessions of logged-in persons. The browser has a random id; the token stays in the memory of this process.

use std::{collections::HashMap, sync::Arc, time::Duration};

use api::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{layout::PageVisitor, person_role::PersonStanding};

// Name of the session's cookie over plain HTTP.
const COOKIE: &str = "journeyman";
// Name of the session's cookie over TLS. With the prefix `__Host-` browsers accept it from this host over TLS alone,
// so no other host of the domain can set it.
const TLS_COOKIE: &str = "__Host-journeyman";
/// Lifetime of a session.
pub(crate) const LASTS: Duration = Duration::from_secs(8 * 60 * 60);
// Largest number of sessions. A new one replaces the oldest.
const MOST: usize = 1_000;

/// All sessions.
pub(crate) type SessionTable = ExpiringTable<SessionLogin>;

/// Credentials of a logged-in person.
#[derive(Clone)]
pub(crate) enum SessionLogin {
    /// A token of the API, which has a role at the API.
    Token(Box<TokenLogin>),
    /// A login at the provider, whose role is requested again each hour.
    Provider(Arc<PersonStanding>),
}

/// A login with a token of the API.
#[derive(Clone)]
pub(crate) struct TokenLogin {
    pub(crate) client: Client,
    /// Name and role of the token; absent: the API is of an earlier release, which does not name them.
    pub(crate) visitor: Option<PageVisitor>,
}

/// Table of values with a lifetime, by random id. Clones share the table.
pub(crate) struct ExpiringTable<T> {
    lasts: Duration,
    open: Arc<Mutex<HashMap<String, ExpiringValue<T>>>>,
}

struct ExpiringValue<T> {
    thing: T,
    ends: Instant,
}

impl<T> Clone for ExpiringTable<T> {
    fn clone(&self) -> Self {
        Self {
            lasts: self.lasts,
            open: Arc::clone(&self.open),
        }
    }
}

impl<T> ExpiringTable<T> {
    pub(crate) fn new(lasts: Duration) -> Self {
        Self {
            lasts,
            open: Arc::default(),
        }
    }

    /// Adds a value and returns its id.
    pub(crate) fn begin(&self, thing: T) -> String {
        // Two UUIDs of version 4 have 244 random bits.
        let id = [(); 2]
            .map(|()| uuid::Uuid::new_v4().simple().to_string())
            .concat();
        let now = Instant::now();
        self.with(|open| {
            // Expired entries are removed on insertion, so no task is needed.
            open.retain(|_, one| one.ends > now);
            if open.len() >= MOST {
                // All values have the same lifetime, so the first to end is the oldest.
                let oldest = open.iter().min_by_key(|(_, one)| one.ends);
                if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                    open.remove(&oldest);
                }
            }
            let ends = now + self.lasts;
            open.insert(id.clone(), ExpiringValue { thing, ends });
        });
        id
    }

    /// Returns a value that has not expired.
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

    /// Removes a value. Returns it if it had not expired.
    pub(crate) fn end(&self, id: &str) -> Option<T> {
        let now = Instant::now();
        let ended = self.with(|open| open.remove(id));
        ended.filter(|one| one.ends > now).map(|one| one.thing)
    }

    fn with<A>(&self, act: impl FnOnce(&mut HashMap<String, ExpiringValue<T>>) -> A) -> A {
        act(&mut self.open.lock())
    }
}

/// Returns the name of the session's cookie.
pub(crate) const fn cookie_name(over_tls: bool) -> &'static str {
    if over_tls { TLS_COOKIE } else { COOKIE }
}

/// Builds the cookie of a session. No script can read it, and no page of another site sends it.
pub(crate) fn build_session_cookie(id: &str, over_tls: bool) -> String {
    with_attributes(id, LASTS, over_tls)
}

/// Builds the cookie that removes the session's cookie.
pub(crate) fn build_removal_cookie(over_tls: bool) -> String {
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
    async fn session_ends_after_lifetime_or_logout() {
        let sessions = ExpiringTable::new(LASTS);
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
            build_session_cookie("id", false).starts_with("journeyman=id; Path=/;")
                && !build_session_cookie("id", false).contains("Secure")
        );
        for text in [build_session_cookie("id", true), build_removal_cookie(true)] {
            assert!(
                text.starts_with("__Host-journeyman=") && text.contains("; Path=/;"),
                "{text}"
            );
            assert!(text.ends_with("; Secure") && !text.contains("Domain"), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn newest_session_replaces_the_oldest() {
        let sessions = ExpiringTable::new(LASTS);
        let first = sessions.begin(0);
        tokio::time::advance(Duration::from_secs(1)).await;
        let others: Vec<_> = (0..MOST).map(|number| sessions.begin(number)).collect();
        assert!(sessions.get(&first).is_none());
        assert!(others.iter().all(|id| sessions.get(id).is_some()));
    }
}
