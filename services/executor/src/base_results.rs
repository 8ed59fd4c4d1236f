//! Results of checks on base commits, kept for other runs on the same base.
//!
//! Only results that no model influenced are kept: the tree is that of a commit in the history of the base branch,
//! its setup is complete and unchanged, and the command ran in namespaces of its own, where no command of another
//! run could disturb it. They are in memory, so a restart forgets them.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use proto::executor::{CheckOutcome, CheckResult, RunCheckRequest};
use tokio::time::Instant;

use crate::service::calls::StoredCallResult;

/// Limits of all results together: their bytes and their number.
const MAX_BYTES: usize = 8 << 20;
const MAX_RESULTS: usize = 1000;
// The machine's tools and the time that a test reads may change without a trace in the key.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
// Time in which a planner requests a result that it knows of.
const REQUEST_TIME: Duration = Duration::from_secs(10 * 60);

/// Files of a base commit with the result of its setup, as part of a key; see [`BaseCheckKey`].
#[derive(Clone, Debug)]
pub(crate) struct BaseOrigin(String);

impl BaseOrigin {
    /// Describes a base commit of a repository with the commands of its setup. `tools`: system and programs of
    /// this machine. `lfs`: contents of Git LFS that its files have.
    pub(crate) fn new(repository: &str, base: &str, setup: &[String], tools: &str, lfs: &str) -> Self {
        Self(format!("{repository:?}\n{base}\n{setup:?}\n{tools:?}\n{lfs:?}"))
    }

    /// Returns the key of a check on these files.
    pub(crate) fn key(&self, directory: &str, command: &str, reports: &[String]) -> BaseCheckKey {
        let Self(origin) = self;
        BaseCheckKey(format!("{origin}\n{directory:?}\n{command:?}\n{reports:?}"))
    }

    /// Returns the key of a requested check.
    pub(crate) fn key_of(&self, request: &RunCheckRequest) -> BaseCheckKey {
        self.key(&request.directory, &request.command, &request.reports)
    }
}

/// Key of a result: repository, base commit, setup, tools of the machine, contents of Git LFS, and the check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BaseCheckKey(String);

/// Results by key. The one that was used least recently goes first.
#[derive(Default)]
pub(crate) struct BaseResults(Mutex<KeptResults>);

#[derive(Default)]
struct KeptResults {
    results: HashMap<BaseCheckKey, KeptResult>,
    bytes: usize,
    /// Number of uses so far, as a clock.
    uses: u64,
}

struct KeptResult {
    result: CheckResult,
    bytes: usize,
    since: Instant,
    last_use: u64,
}

impl BaseResults {
    /// Returns a kept result.
    pub(crate) fn find(&self, key: &BaseCheckKey) -> Option<CheckResult> {
        self.0.lock().use_result(key, Duration::ZERO).cloned()
    }

    /// Returns true when a result is kept and stays so until the planner requests it. It counts as used: a planner that
    /// requests a result because it takes no time must not wait for a run of the command.
    pub(crate) fn renew(&self, key: &BaseCheckKey) -> bool {
        self.0.lock().use_result(key, REQUEST_TIME).is_some()
    }

    /// Keeps the result of a run. A result that differs from the kept one shows that the tests are not stable, so
    /// neither is kept.
    pub(crate) fn record(&self, key: BaseCheckKey, result: &CheckResult) {
        let mut kept = self.0.lock();
        let before = kept.remove(&key);
        let is_other = before.is_some_and(|before| {
            before.is_kept_for(Duration::ZERO) && !is_same_result(&before.result, result)
        });
        if is_other || !is_conclusive(result) {
            return;
        }
        kept.insert(key, result.clone());
    }
}

impl KeptResults {
    /// Returns a result that stays kept for this time, and notes its use.
    fn use_result(&mut self, key: &BaseCheckKey, time: Duration) -> Option<&CheckResult> {
        self.uses += 1;
        let found = self
            .results
            .get_mut(key)
            .filter(|found| found.is_kept_for(time))?;
        found.last_use = self.uses;
        Some(&found.result)
    }

    fn remove(&mut self, key: &BaseCheckKey) -> Option<KeptResult> {
        let removed = self.results.remove(key)?;
        self.bytes = self.bytes.saturating_sub(removed.bytes);
        Some(removed)
    }

    fn insert(&mut self, key: BaseCheckKey, result: CheckResult) {
        let bytes = key.0.len() + result.size();
        if bytes > MAX_BYTES {
            return;
        }
        self.uses += 1;
        let kept = KeptResult {
            result,
            bytes,
            since: Instant::now(),
            last_use: self.uses,
        };
        self.bytes += bytes;
        self.results.insert(key, kept);
        while self.bytes > MAX_BYTES || self.results.len() > MAX_RESULTS {
            let oldest = self.results.iter().min_by_key(|(_, kept)| kept.last_use);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.remove(&oldest);
        }
    }
}

impl KeptResult {
    fn is_kept_for(&self, time: Duration) -> bool {
        self.since.elapsed() + time < MAX_AGE
    }
}

/// Returns true for a result that depends on the code alone.
fn is_conclusive(result: &CheckResult) -> bool {
    match result.outcome() {
        CheckOutcome::Green | CheckOutcome::Red | CheckOutcome::NoTests => true,
        CheckOutcome::Inert | CheckOutcome::Timeout | CheckOutcome::Infra | CheckOutcome::Unspecified => {
            false
        }
    }
}

/// Returns true when two runs agree, except for texts and times.
fn is_same_result(one: &CheckResult, other: &CheckResult) -> bool {
    let summary = |result: &CheckResult| {
        let tests = result.tests.as_ref().map(|tests| {
            let names = |names: &[String]| {
                let mut names = names.to_vec();
                names.sort();
                names
            };
            let mut failing: Vec<String> = tests.failing.iter().map(|test| test.id.clone()).collect();
            failing.sort();
            (
                failing,
                names(&tests.passing),
                names(&tests.skipping),
                tests.passed,
                tests.failed,
            )
        });
        (result.outcome, result.exit_code, tests)
    };
    summary(one) == summary(other)
}

#[cfg(test)]
mod tests {
    use proto::executor::{FailedTest, TestReport};

    use super::*;

    fn build_key(command: &str) -> BaseCheckKey {
        let setup = ["npm ci".to_owned()];
        BaseOrigin::new("acme/shop", "b1", &setup, "debian", "").key("", command, &[])
    }

    fn build_result(outcome: CheckOutcome, failing: &[&str]) -> CheckResult {
        let failing = failing.iter().map(|id| FailedTest {
            id: (*id).to_owned(),
            ..FailedTest::default()
        });
        CheckResult {
            outcome: outcome.into(),
            tests: Some(TestReport {
                failing: failing.collect(),
                ..TestReport::default()
            }),
            ..CheckResult::default()
        }
    }

    #[test]
    fn result_is_found_under_its_whole_key() {
        let results = BaseResults::default();
        results.record(build_key("npm test"), &build_result(CheckOutcome::Red, &["a"]));
        assert!(results.renew(&build_key("npm test")));
        assert_eq!(
            results.find(&build_key("npm test")),
            Some(build_result(CheckOutcome::Red, &["a"]))
        );
        let key = |repository, base, setup: &[&str], tools, directory, reports: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
            BaseOrigin::new(repository, base, &texts(setup), tools, "").key(
                directory,
                "npm test",
                &texts(reports),
            )
        };
        let setup = ["npm ci".to_owned()];
        let with_contents = BaseOrigin::new("acme/shop", "b1", &setup, "debian", "c1");
        for other in [
            key("acme/other", "b1", &["npm ci"], "debian", "", &[]),
            key("acme/shop", "b2", &["npm ci"], "debian", "", &[]),
            key("acme/shop", "b1", &[], "debian", "", &[]),
            key("acme/shop", "b1", &["npm ci"], "alpine", "", &[]),
            key("acme/shop", "b1", &["npm ci"], "debian", "api", &[]),
            key("acme/shop", "b1", &["npm ci"], "debian", "", &["out/*.xml"]),
            with_contents.key("", "npm test", &[]),
            // The parts of a key cannot run into each other.
            key("acme/shop", "b1\n[]", &["npm ci"], "debian", "", &[]),
        ] {
            assert_eq!(results.find(&other), None, "{other:?}");
        }
    }

    #[test]
    fn announced_result_outlives_newer_ones() {
        let results = BaseResults::default();
        let green = build_result(CheckOutcome::Green, &[]);
        results.record(build_key("announced"), &green);
        for number in 1..MAX_RESULTS {
            results.record(build_key(&number.to_string()), &green);
        }
        assert!(results.renew(&build_key("announced")));
        for number in 0..MAX_RESULTS - 1 {
            results.record(build_key(&format!("new {number}")), &green);
        }
        assert_eq!(results.find(&build_key("announced")), Some(green));
    }

    #[tokio::test(start_paused = true)]
    async fn expiring_result_is_not_announced() {
        let results = BaseResults::default();
        let green = build_result(CheckOutcome::Green, &[]);
        results.record(build_key("a"), &green);
        tokio::time::advance(MAX_AGE - REQUEST_TIME - Duration::from_secs(1)).await;
        assert!(results.renew(&build_key("a")));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!results.renew(&build_key("a")));
        assert_eq!(results.find(&build_key("a")), Some(green));
    }

    #[test]
    fn inconclusive_results_are_not_kept() {
        use CheckOutcome::{Inert, Infra, Timeout, Unspecified};
        for outcome in [Inert, Infra, Timeout, Unspecified] {
            let results = BaseResults::default();
            results.record(build_key("a"), &build_result(outcome, &[]));
            assert!(!results.renew(&build_key("a")), "{outcome:?}");
            // A machine in trouble takes the earlier result with it: the next run decides again.
            results.record(build_key("a"), &build_result(CheckOutcome::Green, &[]));
            results.record(build_key("a"), &build_result(outcome, &[]));
            assert!(!results.renew(&build_key("a")), "{outcome:?}");
        }
    }

    #[test]
    fn results_that_differ_are_forgotten() {
        let results = BaseResults::default();
        let (green, red) = (CheckOutcome::Green, CheckOutcome::Red);
        results.record(build_key("a"), &build_result(red, &["x"]));
        let mut slower = build_result(red, &["x"]);
        slower.duration_ms = 9;
        results.record(build_key("a"), &slower);
        assert_eq!(
            results.find(&build_key("a")),
            Some(slower),
            "only the time differs"
        );
        for other in [build_result(green, &[]), build_result(red, &["x", "y"])] {
            results.record(build_key("a"), &build_result(red, &["x"]));
            results.record(build_key("a"), &other);
            assert!(!results.renew(&build_key("a")));
        }
    }

    #[test]
    fn kept_results_stay_within_limits() {
        let results = BaseResults::default();
        results.record(build_key("used"), &build_result(CheckOutcome::Green, &[]));
        for number in 0..MAX_RESULTS {
            assert!(results.find(&build_key("used")).is_some());
            results.record(
                build_key(&number.to_string()),
                &build_result(CheckOutcome::Green, &[]),
            );
        }
        assert!(results.renew(&build_key("used")) && !results.renew(&build_key("0")));
        assert_eq!(results.0.lock().results.len(), MAX_RESULTS);
        let large = CheckResult {
            output_tail: "x".repeat(MAX_BYTES / 2),
            ..build_result(CheckOutcome::Green, &[])
        };
        for name in ["large 1", "large 2"] {
            results.record(build_key(name), &large);
        }
        assert!(results.renew(&build_key("large 2")) && !results.renew(&build_key("large 1")));
        let too_large = CheckResult {
            output_tail: "x".repeat(MAX_BYTES),
            ..large
        };
        results.record(build_key("too large"), &too_large);
        assert!(!results.renew(&build_key("too large")) && results.renew(&build_key("large 2")));
        let kept = results.0.lock();
        assert!(kept.bytes <= MAX_BYTES);
        assert_eq!(
            kept.bytes,
            kept.results.values().map(|kept| kept.bytes).sum::<usize>()
        );
    }
}
