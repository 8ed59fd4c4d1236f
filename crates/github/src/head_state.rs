//! State of the head of an open pull request, for a comparison with an earlier one.

use std::collections::BTreeMap;

use domain::CommitId;

/// Facts that decide about the merge of an open pull request and may change without its update time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadState {
    /// Head commit.
    pub head: CommitId,
    /// True in a merge queue.
    pub is_queued: bool,
    /// GitHub's words for the mergeability; absent while GitHub computes it.
    pub merge: Option<String>,
    /// Number of check runs, commit statuses and check suites by kind and state.
    pub checks: BTreeMap<String, u64>,
}

impl HeadState {
    /// Takes the mergeability of an earlier state while GitHub computes the present one.
    #[must_use]
    pub fn completed_by(mut self, earlier: &Self) -> Self {
        if self.merge.is_none() {
            self.merge.clone_from(&earlier.merge);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_state(merge: Option<&str>) -> HeadState {
        HeadState {
            head: "a".repeat(40).parse().unwrap(),
            is_queued: false,
            merge: merge.map(str::to_owned),
            checks: BTreeMap::new(),
        }
    }

    #[test]
    fn computed_mergeability_alone_is_no_change() {
        let clean = build_state(Some("MERGEABLE CLEAN"));
        assert_eq!(build_state(None).completed_by(&clean), clean);
        let conflicting = build_state(Some("CONFLICTING DIRTY"));
        assert_eq!(conflicting.clone().completed_by(&clean), conflicting);
    }
}
