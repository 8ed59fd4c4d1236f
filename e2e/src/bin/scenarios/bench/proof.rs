//! Cost of the proof: tickets without it, and its wall time for suites of several durations.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use domain::{Fact, JournalEntry, Timestamp};
use e2e::{Options, ServiceMode, TestWorld};
use testkit::fixture;
use tokio::process::Command;

use crate::bench::{
    measure::{DurationSamples, print_figure},
    processes::ServiceProcesses,
    throughput::{WITHOUT_CHECKS, build_untested_script},
    tickets::{create_scripted_ticket, pull_requests, write_shop_files},
    waiting::{is_completed, wait_for_end},
};
use crate::output::print_line;

/// Suite of tests that takes a known CPU time.
struct TimedSuite {
    name: &'static str,
    seconds: f64,
    /// Number of runs outside of Journeyman whose median is the floor.
    floor_runs: usize,
    /// True for a suite that runs with the option for long measurements alone.
    is_long: bool,
}

const SUITES: [TimedSuite; 3] = [
    TimedSuite {
        name: "100ms",
        seconds: 0.1,
        floor_runs: 5,
        is_long: false,
    },
    TimedSuite {
        name: "2s",
        seconds: 2.0,
        floor_runs: 3,
        is_long: false,
    },
    TimedSuite {
        name: "60s",
        seconds: 60.0,
        floor_runs: 1,
        is_long: true,
    },
];
/// Path of the test that takes the suite's time.
const TIMED_TEST: &str = "tests/test_duration.py";

/// Prints all figures of this part. The suite of a minute runs if `is_long`.
pub(crate) async fn measure_proof(is_long: bool) -> anyhow::Result<()> {
    let world = Box::pin(start_world(WITHOUT_CHECKS)).await?;
    pull_requests(&world, "ticket_to_pull_request_without_checks").await?;
    world.stop().await?;
    for suite in &SUITES {
        if suite.is_long && !is_long {
            print_line(&format!(
                "# proof_wall_{0} is left out: --long runs the suite of {0}, which takes minutes",
                suite.name
            ));
        } else {
            Box::pin(measure_suite(suite)).await?;
        }
    }
    Ok(())
}

async fn start_world(rules: &str) -> anyhow::Result<TestWorld> {
    let world = Box::pin(TestWorld::start(Options {
        mode: ServiceMode::Processes,
        rules: rules.to_owned(),
        ..Options::default()
    }))
    .await?;
    world.github.set_recording(false);
    world.jira.set_recording(false);
    world.model.set_recording(false);
    Ok(world)
}

/// Prints the proof's wall time, one run of the suite, and their ratio.
async fn measure_suite(suite: &TimedSuite) -> anyhow::Result<()> {
    let test = render_timed_test(suite.seconds);
    let floor = time_suite(suite, &test).await?.as_secs_f64();
    // A world of its own, so that the first clone already contains the test.
    let mut world = Box::pin(start_world("")).await?;
    let files = [(TIMED_TEST, test.as_str())];
    world
        .github
        .commit(fixture::REPOSITORY, "main", "A test that takes its time", &files)?;
    let services = ServiceProcesses::of(&mut world)?;
    let before = services.tree_cpu();
    let key = create_scripted_ticket(&world, &format!("suite-{}", suite.name), |_| {
        build_untested_script()
    });
    world.ask_for_work(&key)?;
    let journal = wait_for_end(&world, &key, is_completed).await?;
    let proof = ProofTimes::of(&journal).context("no check ran")?;
    print_line(&format!(
        "# {} checks of {}, {:.1} CPU seconds of the services",
        proof.checks,
        suite.name,
        services.tree_cpu() - before
    ));
    print_figure(&format!("floor_check_{}", suite.name), floor, "s");
    print_figure(&format!("proof_wall_{}", suite.name), proof.wall_s(), "s");
    print_figure(
        &format!("proof_wall_per_check_wall_{}", suite.name),
        proof.wall_s() / floor,
        "times",
    );
    world.stop().await
}

/// Renders a test that uses a CPU for this time, as real tests do. Side by side with others it takes longer
/// where the cores do not suffice.
fn render_timed_test(seconds: f64) -> String {
    format!(
        "import time\nimport unittest\n\n\nclass Duration(unittest.TestCase):\n    def test_takes_its_time(self):\n        \
         end = time.process_time() + {seconds}\n        while time.process_time() < end:\n            sum(range(1000))\n"
    )
}

/// Median of the suite alone, on the fixture's files before the change. Its own tests fail, as they do at the
/// base.
async fn time_suite(suite: &TimedSuite, test: &str) -> anyhow::Result<Duration> {
    let checkout = tempfile::tempdir()?;
    write_shop_files(checkout.path())?;
    std::fs::write(checkout.path().join(TIMED_TEST), test)?;
    let samples = DurationSamples::sequential(suite.floor_runs, async |_| {
        let output = Command::new("bash")
            .args(["-c", fixture::TEST_COMMAND])
            .current_dir(checkout.path())
            .kill_on_drop(true)
            .output()
            .await?;
        let shown = String::from_utf8_lossy(&output.stderr);
        ensure!(shown.contains("Ran "), "the suite did not run: {shown}");
        Ok(())
    });
    Ok(samples.await?.median())
}

/// Begin and end of the checks of a run.
struct ProofTimes {
    begin: Timestamp,
    end: Timestamp,
    checks: usize,
}

impl ProofTimes {
    fn of(journal: &[JournalEntry]) -> Option<Self> {
        let is_begin = |entry: &&JournalEntry| matches!(entry.fact, Fact::CheckRequested { .. });
        let is_end = |entry: &&JournalEntry| matches!(entry.fact, Fact::CheckRan { .. });
        // Checks before the work, whose results on the base were known, are not part of the proof.
        let start = journal
            .iter()
            .position(|entry| matches!(entry.fact, Fact::ChangeInspected { .. }))?;
        let proof = journal.get(start..)?;
        Some(Self {
            begin: proof.iter().find(is_begin)?.at,
            end: proof.iter().rfind(is_end)?.at,
            checks: proof.iter().filter(is_begin).count(),
        })
    }

    fn wall_s(&self) -> f64 {
        (self.end.unix_ms() - self.begin.unix_ms()) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timed_test_contains_its_duration() {
        let test = render_timed_test(0.1);
        assert!(test.contains("process_time() + 0.1\n"), "{test}");
        assert!(
            test.contains("    def test_takes_its_time(self):\n        end"),
            "{test}"
        );
    }

    #[test]
    fn proof_spans_first_request_to_last_result() {
        assert!(ProofTimes::of(&[]).is_none());
    }
}
