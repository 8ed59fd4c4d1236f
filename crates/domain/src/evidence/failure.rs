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
// Shells report a missing program by exit code 127.
const INERT: [&str; 5] = [
    "exit code 127",
    "command not found",
    "no such task",
    "missing script:",
    "unknown task",
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
const POLICY: [&str; 7] = [
    "dco",
    "cla",
    "commitlint",
    "conventional commit",
    "semantic pull request",
    "pr title",
    "pull request title",
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
    if says(&INERT) {
        return FailureClass::Inert;
    }
    FailureClass::Real
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
            ("make: *** No rule to make target 'test'.  Stop.", Real),
            ("##[error]Process completed with exit code 1.", Real),
        ] {
            assert_eq!(classify_failure("test", false, log), class, "{log}");
        }
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
