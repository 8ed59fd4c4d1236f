//! Classification of failed checks by name, end and log, and fingerprints that identify recurring failures.

use serde::{Deserialize, Serialize};

use crate::evidence::log_failures::has_failed_test;

/// Kind of failure of a red check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The change may have caused it. Only this kind is given to a model.
    #[default]
    Real,
    /// The machine or the network of the check failed.
    Infra,
    /// The check runs a program or target that does not exist.
    Inert,
    /// The check exceeded its time limit.
    Timeout,
    /// The same check also fails on the target branch.
    PreExisting,
    /// The same check passed on this very commit.
    Flaky,
    /// A rule about the pull request itself, such as a sign-off, which people have to fulfill.
    Policy,
}

impl FailureClass {
    /// Returns true for [`FailureClass::Real`].
    pub fn is_real(&self) -> bool {
        *self == Self::Real
    }

    /// The name in the API and in journals.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

// Lines of test runners and compilers that report errors of the code. They take precedence over every other
// pattern in a log.
const ABOUT_CODE: [&str; 12] = [
    "assertionerror",
    "assert ",
    "panicked at",
    "error[e",
    "error ts",
    "traceback (most recent call last)",
    "--- fail:",
    "tests failed",
    "test failed",
    "failed tests",
    "syntaxerror",
    "compilation failed",
];
// Exit code 137 is 128 + SIGKILL, by which the kernel ends a process that exceeds its memory limit.
const INFRA: [&str; 41] = [
    "no space left on device",
    "exit code 137",
    "exited with code 137",
    "exit status 137",
    "signal 9 [killed]",
    "signal: 9, sigkill",
    "heap out of memory",
    "oomkilled",
    "cannot allocate memory",
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "connection reset by peer",
    "econnreset",
    "etimedout",
    "eai_again",
    "connection timed out",
    "tls handshake timeout",
    "cannot connect to the docker daemon",
    "toomanyrequests",
    "429 too many requests",
    "api rate limit exceeded",
    "503 service unavailable",
    "502 bad gateway",
    "504 gateway time",
    "returned error: 429",
    "returned error: 500",
    "returned error: 502",
    "returned error: 503",
    "returned error: 504",
    "status code: 503",
    "nu1301",
    "daemon disappeared",
    "failed to initialize container",
    "received a shutdown signal",
    "lost communication with the server",
    "failed to launch the browser process",
    "no hosted runner",
    "executable doesn't exist",
    "input required and not supplied",
    "resource not accessible by integration",
];
// Shells report a missing program by exit code 127, and one that they must not execute by 126.
const INERT: [&str; 11] = [
    "exit code 127",
    "exit code 126",
    "command not found",
    "no such task",
    "missing script:",
    "unknown task",
    "err_pnpm_no_script",
    "don't know how to build task",
    "justfile does not contain recipe",
    "file or directory not found:",
    "no tests found, exiting with code 1",
];
// The program `timeout` of GNU reports an exceeded limit by exit code 124.
const TIMEOUT: [&str; 6] = [
    "exit code 124",
    "exited with code 124",
    "exit status 124",
    "exceeded the maximum execution time",
    "the job was canceled because it exceeded",
    "timed out after",
];
// Names of checks about a pull request itself.
const POLICY: [&str; 9] = [
    "dco",
    "cla",
    "commitlint",
    "conventional commit",
    "semantic pull request",
    "pr title",
    "pull request title",
    "codecov/patch",
    "codecov/project",
];
// Messages of checks that a person decides about: the measured share of tested lines, leftover snapshots, and
// rules about titles, commits, sizes and changelogs.
const POLICY_MESSAGES: [&str; 20] = [
    "required test coverage of",
    "coverage failure: total of",
    "is below the expected minimum coverage",
    "covered ratio is",
    "snapshot obsolete",
    "snapshots obsolete",
    "obsolete snapshot",
    "snapshot unused",
    "snapshots unused",
    "release type found in pull request title",
    "unknown release type",
    "[subject-empty]",
    "[type-empty]",
    "[type-enum]",
    "pull request exceeds",
    "pull request is too large",
    "no update to changelog",
    "changelog entry is missing",
    "no changelog entry",
    "no new newsfragments found",
];

/// Returns the kind of failure that a check's name and log show.
///
/// The results [`FailureClass::PreExisting`] and [`FailureClass::Flaky`] need other runs, so this function
/// never returns them.
pub fn classify_failure(name: &str, has_timed_out: bool, log: &str) -> FailureClass {
    let (name, lower) = (name.to_lowercase(), log.to_lowercase());
    // Whole words only: `cla` must not match a check named `declare`.
    let has_word = |phrase: &&&str| {
        let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        name.match_indices(**phrase).any(|(at, found)| {
            is_edge(name[..at].chars().next_back()) && is_edge(name[at + found.len()..].chars().next())
        })
    };
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    if POLICY.iter().any(|phrase| has_word(&phrase)) {
        return FailureClass::Policy;
    }
    if has_timed_out {
        return FailureClass::Timeout;
    }
    // Before the infrastructure patterns: tests of network code print messages such as "connection reset by
    // peer", too.
    // The formats of test runners depend on the case of letters.
    if says(&ABOUT_CODE) || has_failed_test(log) {
        return FailureClass::Real;
    }
    if says(&TIMEOUT) {
        return FailureClass::Timeout;
    }
    if says(&INFRA) {
        return FailureClass::Infra;
    }
    let has_line = |is_it: fn(&str) -> bool| lower.lines().any(is_it);
    if has_line(requires_variable) {
        return FailureClass::Infra;
    }
    if says(&INERT) || has_line(lacks_target) || has_line(denies_execution) || has_line(deselects_all) {
        return FailureClass::Inert;
    }
    if says(&POLICY_MESSAGES) || has_line(misses_coverage) {
        return FailureClass::Policy;
    }
    FailureClass::Real
}

/// Returns true for a line about a variable of the environment, such as a secret, that the job lacks.
fn requires_variable(line: &str) -> bool {
    ["env var", "environment variable"]
        .iter()
        .any(|name| line.contains(name))
        && (line.contains("required") || line.contains("not supplied"))
}

/// Returns true for a line about a missing target or task. A missing file of a known target may be due to the
/// change.
fn lacks_target(line: &str) -> bool {
    let is_make = line.contains("no rule to make target") && !line.contains("needed by");
    // Gradle: `Task 'x' not found in root project`; go-task: `Task "x" does not exist`; Yarn: `Command "x" not
    // found`; Composer: `Command "x" is not defined`.
    let is_named = ["task '", "task \"", "command \""].iter().any(|start| {
        let rest = line.split_once(start).map_or("", |(_, rest)| rest);
        let after = rest.split_once(['\'', '"']).map_or("", |(_, after)| after);
        ["not found", "does not exist", "is not defined"]
            .iter()
            .any(|end| after.trim_start().starts_with(end))
    });
    is_make || is_named
}

/// Returns true when a shell must not execute a file, as in `bash: ./test.sh: Permission denied`.
fn denies_execution(line: &str) -> bool {
    let Some(rest) = line.trim_end().strip_suffix(": permission denied") else {
        return false;
    };
    let mut parts = rest.rsplit(": ");
    let (file, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shell = before.rsplit(['/', ' ']).next().unwrap_or_default();
    let is_shell = matches!(shell, "sh" | "bash" | "dash" | "zsh" | "ksh")
        || is_number(before)
        || before.strip_prefix("line ").is_some_and(is_number);
    is_shell && !file.contains(' ') && !file.is_empty()
}

/// Returns true for pytest's summary of a run without a test, such as `12 deselected in 0.02s`.
fn deselects_all(line: &str) -> bool {
    let is_summary = line.contains(" deselected") && line.contains(" in ");
    let has_result = ["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
        .iter()
        .any(|word| line.contains(word));
    let is_empty = line.contains("no tests ran in ") || line.trim_end().ends_with("collected 0 items");
    (is_summary && !has_result) || is_empty
}

/// Returns true for Jest's `coverage threshold for lines (90%) not met: 87.2%`, and for `Coverage for lines (87.2%)
/// does not meet global threshold (90%)` of nyc, c8 and Vitest.
fn misses_coverage(line: &str) -> bool {
    (line.contains("coverage threshold for ") && line.contains("not met"))
        || (line.contains("coverage for ") && line.contains("does not meet"))
}

/// Returns a fingerprint of a recurring failure: the check's name and its error lines with normalized
/// numbers.
pub fn fingerprint_failure(name: &str, log: &str) -> String {
    let errors = log.lines().filter(|line| {
        let line = line.to_lowercase();
        line.contains("error") || line.contains("fail") || line.contains("panicked")
    });
    // Durations, line numbers and dates differ between runs: every number becomes a single 0.
    let plain = |line: &str| -> String {
        let letters = line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
        let mut text: String = letters.collect();
        while text.contains("00") {
            text = text.replace("00", "0");
        }
        text.trim().to_owned()
    };
    let mut lines: Vec<String> = errors.map(plain).collect();
    // Parallel tests print in any order, which must not change the fingerprint.
    lines.sort();
    lines.dedup();
    lines.truncate(50);
    format!("{name}\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_defaults_to_real_class() {
        use FailureClass::{Inert, Infra, Policy, Real, Timeout};
        for (name, timed_out, log, class) in [
            ("test", false, "E   AssertionError: 1 != 2", Real),
            ("test", false, "some words", Real),
            ("test", false, "", Real),
            ("test", false, "write: No space left on device", Infra),
            ("test", false, "curl: (6) Could not resolve host: pypi", Infra),
            (
                "test",
                false,
                "Could not resolve host\nAssertionError: 1 != 2",
                Real,
            ),
            ("lint", false, "make: ruff: command not found", Inert),
            ("test", true, "running", Timeout),
            ("DCO", false, "missing sign-off", Policy),
            ("lint PR title", false, "", Policy),
            ("declare", false, "", Real),
        ] {
            assert_eq!(classify_failure(name, timed_out, log), class, "{name}: {log}");
        }
    }

    #[test]
    fn failure_of_machine_or_network_is_not_real() {
        use FailureClass::{Infra, Real, Timeout};
        for (log, class) in [
            ("npm error code ECONNRESET\nnpm error network aborted", Infra),
            ("npm error code ETIMEDOUT", Infra),
            ("curl: (22) The requested URL returned error: 429", Infra),
            ("HTTP status: 429 Too Many Requests", Infra),
            ("curl: (22) The requested URL returned error: 503", Infra),
            (
                "Received status code: 503 from server: Service Unavailable",
                Infra,
            ),
            (
                "collect2: fatal error: ld terminated with signal 9 [Killed]",
                Infra,
            ),
            (
                "process didn't exit successfully: `rustc` (signal: 9, SIGKILL: kill)",
                Infra,
            ),
            ("##[error]Process completed with exit code 137.", Infra),
            ("The command exited with code 137", Infra),
            (
                "error NU1301: Unable to load the service index for source https://api.nuget.org",
                Infra,
            ),
            (
                "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
                Infra,
            ),
            (
                "  ● Test suite failed to run\n\n    JavaScript heap out of memory",
                Infra,
            ),
            ("Gradle build daemon disappeared unexpectedly", Infra),
            (
                "ERROR: failed to solve: toomanyrequests: You have reached your pull rate limit",
                Infra,
            ),
            ("✗ Could not resolve host: registry.example", Infra),
            ("API rate limit exceeded for installation ID 1.", Infra),
            (
                "browserType.launch: Executable doesn't exist at /root/.cache/ms-playwright",
                Infra,
            ),
            ("Error: Input required and not supplied: token", Infra),
            ("Error: Failed to initialize container node:20", Infra),
            ("##[error]Process completed with exit code 124.", Timeout),
            ("##[error]Process completed with exit code 1.", Real),
        ] {
            assert_eq!(classify_failure("test", false, log), class, "{log}");
        }
    }

    #[test]
    fn variable_that_job_lacks_is_infrastructure() {
        for log in [
            "Error: Env var required: SONAR_TOKEN",
            "Environment variable DEPLOY_KEY is required",
            "Error: Resource not accessible by integration",
        ] {
            assert_eq!(classify_failure("test", false, log), FailureClass::Infra, "{log}");
        }
        let own = "KeyError: the environment variable SHOP_MODE";
        assert_eq!(classify_failure("test", false, own), FailureClass::Real);
    }

    #[test]
    fn missing_target_or_test_is_inert() {
        for log in [
            "make: *** No rule to make target 'test'.  Stop.",
            "Task 'testt' not found in root project 'shop'.",
            "task: Task \"unit\" does not exist",
            "error Command \"test:ci\" not found.",
            "  Command \"test\" is not defined.",
            " ERR_PNPM_NO_SCRIPT  Missing script: unit",
            "Don't know how to build task 'spec' (See the list of available tasks with `rake --tasks`)",
            "error: Justfile does not contain recipe `ci`",
            "/home/runner/work/_temp/1.sh: line 1: ./run_tests.sh: Permission denied",
            "bash: ./scripts/test.sh: Permission denied",
            "/bin/sh: 1: ./test.sh: Permission denied",
            "##[error]Process completed with exit code 126.",
            "ERROR: file or directory not found: tests/unit",
            "collected 0 items\n\n===== no tests ran in 0.01s =====\n##[error]Process completed with exit code 5.",
            "===== 12 deselected in 0.02s =====\n##[error]Process completed with exit code 5.",
        ] {
            assert_eq!(classify_failure("test", false, log), FailureClass::Inert, "{log}");
        }
        for log in [
            "make: *** No rule to make target 'src/cart.c', needed by 'cart.o'.  Stop.",
            "cp: cannot create regular file '/srv/x': Permission denied",
            "PermissionError: [Errno 13] Permission denied: '/srv/x'",
            "open ./cart.db: permission denied",
            "===== 1 failed, 12 deselected in 0.02s =====",
            "ValueError: task 'pack' was canceled",
        ] {
            assert_eq!(classify_failure("test", false, log), FailureClass::Real, "{log}");
        }
    }

    #[test]
    fn rule_about_pull_request_is_policy() {
        for log in [
            "FAIL Required test coverage of 90% not reached. Total coverage: 87.31%",
            "Jest: \"global\" coverage threshold for lines (90%) not met: 87.2%",
            "ERROR: Coverage for lines (87.2%) does not meet global threshold (90%)",
            "Coverage failure: total of 87 is less than fail-under=90",
            "Line coverage (87.00%) is below the expected minimum coverage (90.00%).",
            "Rule violated for bundle shop: lines covered ratio is 0.87, but expected minimum is 0.90",
            " › 1 snapshot obsolete.",
            "2 snapshots unused. Re-run pytest with --snapshot-update to delete unused snapshots.",
            "No release type found in pull request title \"Fix it\". Add a prefix to indicate what kind of release",
            "✖   subject may not be empty [subject-empty]",
            "This pull request exceeds the maximum size of 500 lines",
            "No update to CHANGELOG.md found!",
            "No new newsfragments found on this branch.",
        ] {
            assert_eq!(
                classify_failure("lint", false, log),
                FailureClass::Policy,
                "{log}"
            );
        }
        assert_eq!(
            classify_failure("codecov/patch", false, "87.31% of diff hit (target 90.00%)"),
            FailureClass::Policy
        );
        let failing = "FAILED tests/test_cart.py::test_total - assert 1 == 2\nFAIL Required test coverage of 90% not reached.";
        assert_eq!(classify_failure("test", false, failing), FailureClass::Real);
    }

    #[test]
    fn phrase_inside_failing_test_is_real() {
        for log in [
            "FAILED tests/test_net.py::test_retry - OSError: ECONNRESET",
            "E   AssertionError: expected '200', got '429 Too Many Requests'",
            "--- FAIL: TestRetry (0.01s)\n    retry_test.go:9: read: connection reset by peer",
            "  1 failing\n\n  1) client\n       retries:\n     Error: returned error: 503",
            "  1) Failure:\nClientTest#test_retries [test/client_test.rb:5]:\nECONNRESET",
            "  1) [chromium] › api.spec.js:3:31 › retries ───\n\n    429 Too Many Requests",
            "1) client retries\n  Message:\n    Expected 'heap out of memory' to be ''.",
            "✖ retries (3.1ms)\n  Error: read ECONNRESET",
            "not ok 3 - retries after ECONNRESET",
            "  ● api › survives exit code 137\n\n    expect(received).toBe(expected)",
            "ERROR: test_retry (client.ClientTest)\nOSError: [Errno 104] Connection reset by peer",
            "test client::retries ... FAILED\nexit code 124",
        ] {
            assert_eq!(classify_failure("test", false, log), FailureClass::Real, "{log}");
        }
    }

    #[test]
    fn fingerprint_ignores_times_and_line_numbers() {
        let one = "12:01:07 FAILED tests/test_cart.py:31 - AssertionError\npassed in 0.31s";
        let two = "13:44:59 FAILED tests/test_cart.py:128 - AssertionError\npassed in 2.00s";
        assert_eq!(fingerprint_failure("test", one), fingerprint_failure("test", two));
        let other = "13:44:59 FAILED tests/test_user.py:128 - AssertionError";
        assert_ne!(
            fingerprint_failure("test", one),
            fingerprint_failure("test", other)
        );
        assert_ne!(fingerprint_failure("test", one), fingerprint_failure("lint", one));
    }
}
