//! Pauses that GitHub and Jira ask polls for. Pure: callers pass the time.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::router::outcome::EventFailure;

/// Ends of pauses by the account or instance with the exhausted limit. The polls of the others continue.
#[derive(Debug)]
pub(crate) struct ServicePauses<A> {
    ends: BTreeMap<A, Instant>,
}

impl<A: Ord> ServicePauses<A> {
    pub(crate) const fn new() -> Self {
        Self {
            ends: BTreeMap::new(),
        }
    }

    /// True until the end of the pause that a service asked for.
    pub(crate) fn is_paused(&self, account: &A, now: Instant) -> bool {
        self.ends.get(account).is_some_and(|end| now < *end)
    }

    /// Records the pause that a failure asks for, if it asks for one.
    pub(crate) fn record(&mut self, account: A, failure: &EventFailure, now: Instant) {
        let EventFailure::Later {
            after: Some(after), ..
        } = failure
        else {
            return;
        };
        self.ends.retain(|_, end| now < *end);
        self.ends.insert(account, now + *after);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn pause_of_account_leaves_others() {
        let limit = |seconds: Option<u64>| EventFailure::Later {
            detail: "429".to_owned(),
            after: seconds.map(Duration::from_secs),
        };
        let start = Instant::now();
        let second = |seconds| start + Duration::from_secs(seconds);
        let mut pauses = ServicePauses::new();
        pauses.record("acme", &limit(Some(60)), start);
        pauses.record("beta", &limit(None), start);
        pauses.record("beta", &EventFailure::Refused("403".to_owned()), start);
        assert!(pauses.is_paused(&"acme", second(59)));
        assert!(!pauses.is_paused(&"beta", start));
        assert!(!pauses.is_paused(&"acme", second(60)));
        pauses.record("beta", &limit(Some(60)), second(60));
        assert!(pauses.is_paused(&"beta", second(119)));
        assert_eq!(pauses.ends.len(), 1, "an ended pause is forgotten");
    }
}
