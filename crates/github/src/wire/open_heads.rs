//! JSON of the open pull requests of a repository with the states of their heads.

use std::collections::BTreeMap;

use domain::CommitId;
use serde::Deserialize;

use super::WirePage;
use crate::HeadState;

// GitHub's word for a mergeability that it has not computed.
const UNKNOWN: &str = "UNKNOWN";

/// Data of the query about the heads of the open pull requests.
#[derive(Deserialize)]
pub(crate) struct WireOpenHeads {
    repository: Option<WireOpenRepository>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOpenRepository {
    pull_requests: WirePage<WireOpenPull>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOpenPull {
    number: u64,
    head_ref_oid: CommitId,
    is_in_merge_queue: bool,
    mergeable: String,
    merge_state_status: String,
    commits: WireOpenCommits,
}

#[derive(Deserialize)]
struct WireOpenCommits {
    nodes: Vec<WireOpenCommit>,
}

#[derive(Deserialize)]
struct WireOpenCommit {
    commit: WireCheckedCommit,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCheckedCommit {
    status_check_rollup: Option<WireCheckRollup>,
    check_suites: Option<WireCheckSuites>,
}

#[derive(Deserialize)]
struct WireCheckRollup {
    contexts: WireCheckContexts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCheckContexts {
    check_run_counts_by_state: Option<Vec<WireStateCount>>,
    status_context_counts_by_state: Option<Vec<WireStateCount>>,
}

#[derive(Deserialize)]
struct WireStateCount {
    state: String,
    count: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCheckSuites {
    total_count: u64,
    nodes: Vec<WireCheckSuite>,
}

#[derive(Deserialize)]
struct WireCheckSuite {
    status: String,
    conclusion: Option<String>,
}

impl WireOpenHeads {
    /// States of the heads by the number of their pull request, and the start of the next page.
    pub(crate) fn into_parts(self) -> (BTreeMap<u64, HeadState>, Option<String>) {
        let Some(page) = self.repository.map(|repository| repository.pull_requests) else {
            return (BTreeMap::new(), None);
        };
        let (pulls, next) = page.into_parts();
        let heads = pulls.into_iter().map(|pull| (pull.number, pull.into_state()));
        (heads.collect(), next)
    }
}

impl WireOpenPull {
    fn into_state(self) -> HeadState {
        let is_computed = self.mergeable != UNKNOWN && self.merge_state_status != UNKNOWN;
        let merge = is_computed.then(|| format!("{} {}", self.mergeable, self.merge_state_status));
        let mut checks = BTreeMap::new();
        for head in self.commits.nodes {
            head.commit.count_into(&mut checks);
        }
        HeadState {
            head: self.head_ref_oid,
            is_queued: self.is_in_merge_queue,
            merge,
            checks,
        }
    }
}

impl WireCheckedCommit {
    fn count_into(self, checks: &mut BTreeMap<String, u64>) {
        if let Some(WireCheckRollup { contexts }) = self.status_check_rollup {
            for run in contexts.check_run_counts_by_state.unwrap_or_default() {
                checks.insert(format!("run {}", run.state), run.count);
            }
            for status in contexts.status_context_counts_by_state.unwrap_or_default() {
                checks.insert(format!("status {}", status.state), status.count);
            }
        }
        // A workflow run that waits for an approval has a suite and no check run.
        if let Some(suites) = self.check_suites {
            checks.insert("suites".to_owned(), suites.total_count);
            for suite in suites.nodes {
                let conclusion = suite.conclusion.unwrap_or_default();
                *checks
                    .entry(format!("suite {} {conclusion}", suite.status))
                    .or_default() += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn heads_keep_states_with_next_page() {
        let pull = |mergeable: &str| {
            json!({"number": 7, "headRefOid": "a".repeat(40), "isInMergeQueue": false, "mergeable": mergeable,
                "mergeStateStatus": "CLEAN", "commits": {"nodes": [{"commit": {
                    "statusCheckRollup": {"contexts": {"checkRunCountsByState": [{"state": "SUCCESS", "count": 2}],
                        "statusContextCountsByState": null}},
                    "checkSuites": {"totalCount": 1, "nodes": [{"status": "COMPLETED", "conclusion": "SUCCESS"}]}}}]}})
        };
        let read = |mergeable: &str, has_next: bool| {
            let page_info = json!({"hasNextPage": has_next, "endCursor": "c"});
            let page = json!({"pageInfo": page_info, "nodes": [pull(mergeable)]});
            let data = json!({"repository": {"pullRequests": page}});
            serde_json::from_value::<WireOpenHeads>(data)
                .unwrap()
                .into_parts()
        };
        let (heads, next) = read("MERGEABLE", true);
        assert_eq!(next.as_deref(), Some("c"));
        assert_eq!(heads[&7].merge.as_deref(), Some("MERGEABLE CLEAN"));
        let checks: Vec<(&str, u64)> = heads[&7]
            .checks
            .iter()
            .map(|(state, count)| (state.as_str(), *count))
            .collect();
        assert_eq!(
            checks,
            [("run SUCCESS", 2), ("suite COMPLETED SUCCESS", 1), ("suites", 1)]
        );
        let (heads, next) = read(UNKNOWN, false);
        assert_eq!((heads[&7].merge.as_deref(), next), (None, None));
    }
}
