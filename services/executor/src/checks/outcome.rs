//! Judges a command by its end and its tests. A check is green only when tests ran, none failed, and the exit
//! code agrees.

use domain::check::{CheckOutcome, TestReport};

use super::preparation::MissingSetup;
use crate::{pattern::LazyPattern, sandbox::CommandEnding};

/// Exit code of POSIX shells for a program that is not found.
const NOT_FOUND: i32 = 127;
/// Exit code of POSIX shells for a program that cannot be executed.
const NOT_STARTED: i32 = 126;
/// Exit code after SIGKILL (128 + 9), which usually comes from the out-of-memory killer.
const KILLED: i32 = 137;

/// An outcome with its reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JudgedOutcome {
    pub(super) outcome: CheckOutcome,
    pub(super) reason: String,
}

/// Output that shows that the requested program, target or script does not exist.
static ABSENT: LazyPattern = LazyPattern::new(
    r"(?m)(?x)
        \bcommand\ not\ found\b | ^(sh|bash|/bin/\w+):.*:\ not\ found$ | \bError\ 127\b
        | \bNo\ rule\ to\ make\ target\b | \*\*\*\ No\ targets\ specified
        | [Mm]issing\ script: | error:\ no\ such\ command
        | \bNo\ module\ named\ '?(pytest|tox|nox|unittest2|nose)\b
        | ^Could\ not\ find\ or\ load\ main\ class | \bTask\ '\S+'\ not\ found\ in
        | \bcould\ not\ determine\ executable\ to\ run\b | \bNo\ such\ file\ or\ directory:\ '\S+/(pytest|tox)'",
);

/// Output that shows an infrastructure failure: disk, memory or network.
static SURROUNDINGS: LazyPattern = LazyPattern::new(
    r"(?m)(?x)
        \bNo\ space\ left\ on\ device\b | \bENOSPC\b | \bDisk\ quota\ exceeded\b
        | \bTemporary\ failure\ in\ name\ resolution\b | \b[Cc]ould\ not\ resolve\ host\b
        | \bName\ or\ service\ not\ known\b | \bEAI_AGAIN\b | \bgetaddrinfo\ ENOTFOUND\b
        | \bdial\ tcp:\ lookup\b | \bUnknownHostException\b | \bNetwork\ is\ unreachable\b
        | \bCannot\ allocate\ memory\b | \bOutOfMemoryError\b | \bJavaScript\ heap\ out\ of\ memory\b
        | ^\[killed:\ ",
);

/// Returns the line in which a pattern matches.
fn find_matching_line<'t>(pattern: &LazyPattern, text: &'t str) -> Option<&'t str> {
    let found = pattern.find(text)?;
    let before = text.get(..found.start())?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    text.get(start..)?.lines().next()
}

/// Judges a command with knowledge of what the machine lacked for it. A check that could not run proves
/// nothing about the code.
pub(super) fn judge_with(
    ending: CommandEnding,
    tests: Option<&TestReport>,
    output: &str,
    missing: Option<&MissingSetup>,
) -> JudgedOutcome {
    let alone = judge_command(ending, tests, output);
    match missing {
        Some(missing) if missing.is_all && alone.outcome == CheckOutcome::Red => {
            build_judged_outcome(CheckOutcome::Inert, &missing.line)
        }
        _ => alone,
    }
}

/// Judges a command. `output` must be free of terminal escapes.
fn judge_command(ending: CommandEnding, tests: Option<&TestReport>, output: &str) -> JudgedOutcome {
    let code = match ending {
        CommandEnding::Exited(code) => code,
        CommandEnding::TimedOut => {
            return build_judged_outcome(CheckOutcome::Timeout, "it did not end in its time");
        }
        CommandEnding::Cancelled => return build_judged_outcome(CheckOutcome::Infra, "the check was cut"),
    };
    match tests {
        Some(tests) if tests.failed > 0 => judge_failed_tests(code, tests),
        Some(tests) if tests.collection_error => judge_uncollected_tests(code, tests, output),
        Some(tests) if tests.passed > 0 && code == 0 => build_judged_outcome(CheckOutcome::Green, ""),
        Some(tests) if tests.passed > 0 => passed_but(code, output),
        _ if code == 0 => build_judged_outcome(CheckOutcome::NoTests, "nothing shows that a test ran"),
        _ => nothing_ran(code, tests, output),
    }
}

fn judge_failed_tests(code: i32, tests: &TestReport) -> JudgedOutcome {
    let is_outside = |message: &str| find_matching_line(&SURROUNDINGS, message).is_some();
    let messages = || tests.failing.iter().map(|test| test.message.as_str());
    // A red outcome becomes an infrastructure failure only when every failing test names one. A truncated
    // list could hide a real failure.
    if !tests.truncated && !tests.failing.is_empty() && messages().all(is_outside) {
        let first = messages().next().unwrap_or_default();
        return build_judged_outcome(CheckOutcome::Infra, first);
    }
    if code == 0 {
        return build_judged_outcome(
            CheckOutcome::Red,
            "tests failed although the command ended with 0: something hides the exit code",
        );
    }
    build_judged_outcome(CheckOutcome::Red, "")
}

fn judge_uncollected_tests(code: i32, tests: &TestReport, output: &str) -> JudgedOutcome {
    if let Some(line) = find_infrastructure_failure(code, output) {
        return build_judged_outcome(CheckOutcome::Infra, &line);
    }
    // A missing package of the runner produces the same output as a missing package of a test, so both are
    // red.
    let ran = if tests.passed > 0 {
        "some tests"
    } else {
        "the tests"
    };
    build_judged_outcome(
        CheckOutcome::Red,
        &format!("{ran} could not be collected, imported or compiled, or their report is not whole"),
    )
}

fn passed_but(code: i32, output: &str) -> JudgedOutcome {
    if let Some(line) = find_infrastructure_failure(code, output) {
        return build_judged_outcome(CheckOutcome::Infra, &line);
    }
    build_judged_outcome(
        CheckOutcome::Red,
        &format!("no test failed, but the command ended with {code}"),
    )
}

fn nothing_ran(code: i32, tests: Option<&TestReport>, output: &str) -> JudgedOutcome {
    if let Some(line) = find_infrastructure_failure(code, output) {
        return build_judged_outcome(CheckOutcome::Infra, &line);
    }
    if matches!(code, NOT_FOUND | NOT_STARTED) {
        let line = find_matching_line(&ABSENT, output)
            .or_else(|| output.lines().rev().find(|line| !line.trim().is_empty()));
        return build_judged_outcome(CheckOutcome::Inert, line.unwrap_or("the program is not there"));
    }
    if let Some(line) = find_matching_line(&ABSENT, output) {
        return build_judged_outcome(CheckOutcome::Inert, line);
    }
    if tests.is_some() {
        return build_judged_outcome(CheckOutcome::NoTests, "the runner found no test to run");
    }
    build_judged_outcome(
        CheckOutcome::Red,
        &format!("the command ended with {code} and nothing shows that a test ran"),
    )
}

fn find_infrastructure_failure(code: i32, output: &str) -> Option<String> {
    let line = find_matching_line(&SURROUNDINGS, output).map(str::to_owned);
    let killed = (code == KILLED).then(|| "the command was killed, usually for its memory".to_owned());
    line.or(killed)
}

fn build_judged_outcome(outcome: CheckOutcome, reason: &str) -> JudgedOutcome {
    JudgedOutcome {
        outcome,
        reason: reason.trim().chars().take(300).collect(),
    }
}

#[cfg(test)]
mod tests {
    use domain::check::FailedTest;
    use proptest::prelude::*;

    use super::*;

    fn build_test_report(passed: u32, failing: &[&str], collection_error: bool) -> TestReport {
        let failing: Vec<FailedTest> = failing
            .iter()
            .map(|message| FailedTest {
                id: "t".to_owned(),
                message: (*message).to_owned(),
            })
            .collect();
        TestReport {
            passed,
            failed: u32::try_from(failing.len()).unwrap(),
            failing,
            collection_error,
            ..TestReport::default()
        }
    }

    fn judge_exit_code(code: i32, tests: Option<TestReport>, output: &str) -> CheckOutcome {
        judge_command(CommandEnding::Exited(code), tests.as_ref(), output).outcome
    }

    #[test]
    fn green_requires_tests_and_exit_zero() {
        use CheckOutcome::{Green, NoTests, Red};
        for (code, tests, expected) in [
            (0, Some(build_test_report(3, &[], false)), Green),
            (0, None, NoTests),
            (0, Some(build_test_report(0, &[], false)), NoTests),
            (5, Some(build_test_report(0, &[], false)), NoTests),
            (1, Some(build_test_report(3, &[], false)), Red),
            (0, Some(build_test_report(3, &["AssertionError"], false)), Red),
            (1, Some(build_test_report(3, &["AssertionError"], false)), Red),
            (0, Some(build_test_report(3, &[], true)), Red),
            (2, Some(build_test_report(0, &[], true)), Red),
            (1, None, Red),
        ] {
            assert_eq!(
                judge_exit_code(code, tests.clone(), ""),
                expected,
                "{code} {tests:?}"
            );
        }
    }

    #[test]
    fn missing_program_makes_check_inert() {
        for (code, output) in [
            (127, "bash: line 1: pytest: command not found"),
            (127, ""),
            (126, "permission denied"),
            (
                2,
                "make: pytest: No such file or directory\nmake: *** [Makefile:2: test] Error 127",
            ),
            (2, "make: *** No rule to make target 'test'.  Stop."),
            (1, "npm error Missing script: \"test\""),
            (1, "/usr/bin/python3: No module named pytest"),
            (101, "error: no such command: `nextest`"),
            (1, "Task 'tset' not found in root project 'shop'."),
        ] {
            assert_eq!(
                judge_exit_code(code, None, output),
                CheckOutcome::Inert,
                "{output}"
            );
        }
    }

    #[test]
    fn infrastructure_failure_is_not_red() {
        for (code, tests, output) in [
            (137, None, ""),
            (1, None, "OSError: [Errno 28] No space left on device"),
            (1, Some(build_test_report(2, &[], false)), "npm ERR! ENOSPC"),
            (1, None, "curl: (6) Could not resolve host: registry.example"),
            (
                137,
                Some(build_test_report(0, &[], true)),
                "\n[killed: more than 4096 MiB of memory]",
            ),
            (
                1,
                Some(build_test_report(2, &["getaddrinfo EAI_AGAIN db"], false)),
                "",
            ),
        ] {
            assert_eq!(
                judge_exit_code(code, tests, output),
                CheckOutcome::Infra,
                "{output}"
            );
        }
        let one_of_two = build_test_report(2, &["getaddrinfo EAI_AGAIN db", "expected 1"], false);
        assert_eq!(judge_exit_code(1, Some(one_of_two), ""), CheckOutcome::Red);
    }

    #[test]
    fn missing_setup_is_inert_without_tests() {
        let missing = |is_all| MissingSetup {
            line: "Cannot find module 'express'".to_owned(),
            hint: domain::SetupHint::default(),
            is_all,
        };
        let judge = |code, tests: Option<TestReport>, is_all| {
            judge_with(
                CommandEnding::Exited(code),
                tests.as_ref(),
                "",
                Some(&missing(is_all)),
            )
        };
        let judged = judge(1, Some(build_test_report(0, &[], true)), true);
        assert_eq!(
            (judged.outcome, judged.reason.as_str()),
            (CheckOutcome::Inert, "Cannot find module 'express'")
        );
        assert_eq!(
            judge(1, Some(build_test_report(3, &["x"], false)), false).outcome,
            CheckOutcome::Red
        );
        assert_eq!(
            judge(0, Some(build_test_report(3, &[], false)), true).outcome,
            CheckOutcome::Green
        );
    }

    #[test]
    fn outcome_reason_is_matching_line() {
        let output = "one\nmake: *** No rule to make target 'test'.  Stop.\nthree";
        let judged = judge_command(CommandEnding::Exited(2), None, output);
        assert_eq!(judged.reason, "make: *** No rule to make target 'test'.  Stop.");
    }

    #[test]
    fn every_pattern_can_be_read() {
        assert!(ABSENT.is_sound() && SURROUNDINGS.is_sound());
    }

    proptest! {
        #[test]
        fn printed_text_never_makes_check_green(code in 0..256, output in ".{0,200}") {
            let judged = judge_command(CommandEnding::Exited(code), None, &output);
            prop_assert_ne!(judged.outcome, CheckOutcome::Green);
            let failing = build_test_report(5, &["AssertionError"], false);
            let judged = judge_command(CommandEnding::Exited(code), Some(&failing), &output);
            prop_assert_ne!(judged.outcome, CheckOutcome::Green);
        }
    }
}
