//! Keeps the directory up to date: resolves the addresses of each pool and follows the status of each
//! executor.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use bootstrap::{jitter, settings::TextList};
use domain::cause::format_error_chain;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    channels::ExecutorChannels,
    connection::CallError,
    directory::{ExecutorDirectory, LastStatus},
};

// Pause between two resolutions of the pools' names.
const RESOLVE_EVERY: Duration = Duration::from_secs(3);
// First pause before the planner reconnects to an executor; it doubles up to the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Spreads a pause between its half and its whole, so that planners do not reconnect at the same time.
fn spread_pause(address: &str, pause: Duration) -> Duration {
    pause / 2 + jitter::own_start_delay(&format!("{address} after {pause:?}"), pause / 2)
}

/// Watch of the executors of all pools, which keeps the directory up to date.
pub(super) struct StatusWatch {
    pub(super) pools: BTreeMap<String, TextList>,
    pub(super) directory: Arc<ExecutorDirectory>,
    pub(super) channels: Arc<ExecutorChannels>,
}

impl StatusWatch {
    /// Follows every executor of every pool until shutdown.
    pub(super) async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let mut watched: HashMap<String, AbortOnDropHandle<()>> = HashMap::new();
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        while !shutdown.is_cancelled() {
            let mut unresolved = BTreeSet::new();
            for (name, resolved) in self.resolve_all().await {
                // A name that fails to resolve for a moment keeps its last addresses.
                match resolved {
                    Some(resolved) => drop(found.insert(name, resolved)),
                    None => drop(unresolved.insert(name)),
                }
            }
            self.directory.set_unresolved(unresolved);
            let pools = self.pools.iter().map(|(pool, names)| {
                let addresses = names.iter().filter_map(|name| found.get(name)).flatten();
                (pool.clone(), addresses.cloned().collect())
            });
            let all = self.directory.set_pools(pools.collect());
            watched.retain(|address, _| all.contains(address));
            for address in all {
                watched.entry(address.clone()).or_insert_with(|| {
                    AbortOnDropHandle::new(tokio::spawn(Arc::clone(&self).listen(address)))
                });
            }
            shutdown
                .run_until_cancelled(tokio::time::sleep(RESOLVE_EVERY))
                .await;
        }
    }

    async fn resolve_all(&self) -> Vec<(String, Option<BTreeSet<String>>)> {
        let names = self.pools.values().flat_map(|names| names.iter());
        let resolved = names.map(async |name| (name.clone(), self.channels.resolve(name).await));
        futures::future::join_all(resolved).await
    }

    /// Follows one executor until the task is aborted.
    async fn listen(self: Arc<Self>, address: String) {
        let mut pause = FIRST_PAUSE;
        // Planners that start together must not connect to an executor in the same moment.
        tokio::time::sleep(jitter::own_start_delay(&address, FIRST_PAUSE)).await;
        loop {
            let why = match self.follow_stream(&address).await {
                Ok(()) => {
                    // The stream worked, so this end is no reason for a longer pause.
                    pause = FIRST_PAUSE;
                    "it ended the connection".to_owned()
                }
                Err(error) => {
                    tracing::debug!(address, error = %format_error_chain(&error), "executor does not send its status");
                    describe_silence(&error)
                }
            };
            self.directory.lose(&address, &why, bootstrap::read_wall_clock());
            tokio::time::sleep(spread_pause(&address, pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Follows one status stream until it ends.
    async fn follow_stream(&self, address: &str) -> Result<(), CallError> {
        let mut statuses = self.channels.watch_status(address).await?;
        let (mut changes, mut is_known) = (self.directory.changes(), false);
        loop {
            tokio::select! {
                message = statuses.message() => match message? {
                    Some(message) => {
                        self.directory.receive(address, LastStatus::new(message));
                        is_known = true;
                    }
                    None => return Ok(()),
                },
                Ok(()) = changes.changed() => {
                    // A call found the executor silent, and the stream of a dead node need not end.
                    if is_known && !self.directory.knows(address) {
                        return Err(CallError::trouble("Unavailable: it did not answer a call"));
                    }
                }
            }
        }
    }
}

/// Describes the reason that an executor is silent, for an operator.
fn describe_silence(error: &CallError) -> String {
    match error {
        CallError::Refused(words) => format!("it refuses this planner: {words}"),
        CallError::Trouble { words, .. } if !is_out_of_reach(words) => format!("it is in trouble: {words}"),
        CallError::Trouble { .. }
        | CallError::WorkspaceLost
        | CallError::Stale
        | CallError::Invalid(_)
        | CallError::TimedOut
        | CallError::Store(_)
        | CallError::Unkeepable(_) => "it cannot be reached".to_owned(),
    }
}

/// Returns true if no process responds at the address, or the connection broke.
fn is_out_of_reach(words: &str) -> bool {
    ["Unavailable", "Unknown", "Cancelled"]
        .iter()
        .any(|code| words.starts_with(code))
}
