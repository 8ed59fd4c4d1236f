//! Process of one test alone.

use std::process::Command;

/// Variable that is set in the process of one test.
const OWN_PROCESS: &str = "JOURNEYMAN_TEST_OWN_PROCESS";

/// Returns true in a process that runs this test alone, so that the test can measure its process. In any other process
/// it runs the test in a new one, prints the output, and returns false.
///
/// # Panics
/// Panics if the test fails in the new process, or if no test of the binary has this name.
#[must_use]
#[expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test panics on an unexpected result, and prints what it measured"
)]
pub fn enter_own_process(test: &str) -> bool {
    if std::env::var_os(OWN_PROCESS).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("path of the test binary");
    let run = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(OWN_PROCESS, "1")
        .output()
        .expect("start of the test binary");
    let output = String::from_utf8_lossy(&run.stdout);
    println!("{output}");
    // With a name that no test has, the binary succeeds without a test.
    let has_passed = run.status.success() && output.contains("test result: ok. 1 passed");
    assert!(has_passed, "{test}: {}", String::from_utf8_lossy(&run.stderr));
    false
}
