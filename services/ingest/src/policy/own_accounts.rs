//! Own accounts: those of the settings, and the reader accounts that are programs.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use domain::cause::format_error_chain;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::facts::tracker_reader::TrackerReader;

// Pause between two attempts to identify the reader accounts.
const PAUSE: Duration = Duration::from_secs(60);

/// Names, logins and ids of our accounts.
pub(crate) struct OwnAccounts(RwLock<Arc<BTreeSet<String>>>);

impl OwnAccounts {
    /// Accounts of the setting `ingest.own_accounts`.
    pub(crate) fn new(configured: BTreeSet<String>) -> Self {
        Self(RwLock::new(configured.into()))
    }

    /// All accounts known so far.
    pub(crate) fn names(&self) -> Arc<BTreeSet<String>> {
        Arc::clone(&self.0.read())
    }

    /// True when a name, login or id is an account of ours.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.read().contains(name)
    }

    fn add(&self, found: impl IntoIterator<Item = String>) {
        let mut names = BTreeSet::clone(&self.names());
        // An account that a tracker does not identify has an empty id, so an empty name would make every
        // such account ours.
        names.extend(found.into_iter().filter(|name| !name.is_empty()));
        *self.0.write() = names.into();
    }

    /// Identifies the reader accounts once. Returns false when one is not known yet.
    pub(crate) async fn identify(&self, outside: &TrackerReader) -> bool {
        let (found, failures) = outside.programs().await;
        self.add(found);
        for error in &failures {
            tracing::warn!(error = %format_error_chain(error), "failed to identify a reader account");
        }
        failures.is_empty()
    }

    /// Identifies the reader accounts, with retries until each is known, then waits for shutdown.
    pub(crate) async fn learn(&self, outside: &TrackerReader, shutdown: CancellationToken) {
        loop {
            let is_known = self.identify(outside).await;
            let pause = async {
                // The task must not return early: the service treats the end of a task as a
                // failure.
                if is_known {
                    std::future::pending().await
                } else {
                    tokio::time::sleep(PAUSE).await
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = pause => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learned_accounts_join_configured_names() {
        let own = OwnAccounts::new(BTreeSet::from(["Journeyman".to_owned()]));
        own.add(["reader[bot]".to_owned(), String::new()]);
        assert_eq!(
            own.names().iter().collect::<Vec<_>>(),
            ["Journeyman", "reader[bot]"]
        );
        assert!(own.has("reader[bot]") && !own.has("reader"));
    }
}
