//! Classification of failed checks by name, end and log, and fingerprints that identify recurring failures.

use serde::{Deserialize, Serialize};

/// Kind of failure of a red check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Infra => "infra",
            Self::Inert => "inert",
            Self::Timeout => "timeout",
            Self::PreExisting => "pre_existing",
            Self::Flaky => "flaky",
            Self::Policy => "policy",
        }
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
const INFRA: [&str; 18] = [
    "no space left on device",
    "exit code 137",
    "oomkilled",
    "cannot allocate memory",
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "connection reset by peer",
    "connection timed out",
    "tls handshake timeout",
    "cannot connect to the docker daemon",
    "toomanyrequests",
    "503 service unavailable",
    "502 bad gateway",
    "received a shutdown signal",
    "lost communication with the server",
    "failed to launch the browser process",
    "no hosted runner",
];
// Shells report a missing program by exit code 127.
const INERT: [&str; 5] = [
    "exit code 127",
    "command not found",
    "no such task",
    "missing script:",
    "unknown task",
];
const TIMEOUT: [&str; 3] = [
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
    let (name, log) = (name.to_lowercase(), log.to_lowercase());
    // Whole words only: `cla` must not match a check named `declare`.
    let has_word = |phrase: &&&str| {
        let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        name.match_indices(**phrase).any(|(at, found)| {
            is_edge(name[..at].chars().next_back()) && is_edge(name[at + found.len()..].chars().next())
        })
    };
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| log.contains(phrase));
    if POLICY.iter().any(|phrase| has_word(&phrase)) {
        return FailureClass::Policy;
    }
    if has_timed_out {
        return FailureClass::Timeout;
    }
    // Before the infrastructure patterns: tests of network code print messages such as "connection reset by
    // peer", too.
    if says(&ABOUT_CODE) {
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
