//! Grading: runs the deciding tests in a fresh workspace.

use std::{path::PathBuf, sync::Arc, time::Duration};

use domain::{
    cause::format_error_chain,
    check::{CheckOutcome, TestReport},
};
use executor::{FolderCheckResult, FolderCheckRunner};
use git::SingleCommitRepository;
use tokio_util::sync::CancellationToken;

use super::dataset::{EvalInstance, InstanceSource};

// Test names of one kind that a sentence lists.
const NAMED: usize = 5;

/// Change to grade.
#[derive(Clone, Debug)]
pub enum GradedChange {
    /// No change: the base.
    None,
    /// Reference solution.
    Reference,
    /// Change of a branch.
    Branch(String),
}

/// Result of the deciding tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceGrade {
    /// Result of the commands.
    outcome: CheckOutcome,
    /// Tests that must start to pass and do not.
    pub unmet: Vec<String>,
    /// Tests that passed on the base and fail now.
    pub broken: Vec<String>,
    /// Infrastructure failure, independent of the change.
    pub infra: Option<String>,
    /// Short reason for a missing result, or a summary of the tests.
    pub note: String,
    /// End of the output of the commands.
    pub output: String,
}

impl InstanceGrade {
    /// True when every deciding test passes.
    pub fn is_resolved(&self) -> bool {
        self.infra.is_none() && self.unmet.is_empty() && self.broken.is_empty()
    }
}

/// Creates the repository of an instance at `place`, with its base and no other commit.
pub async fn create_repository(instance: &EvalInstance, place: PathBuf) -> Result<(), git::Error> {
    match instance.source.clone() {
        InstanceSource::Bundle(path, commit) => SingleCommitRepository::of_bundle(&path, &commit, &place)
            .await
            .map(drop),
        InstanceSource::Git(path, commit) => {
            run_blocking(move || SingleCommitRepository::of_commit(&path, &commit, &place).map(drop)).await
        }
        InstanceSource::Files(path) => {
            run_blocking(move || SingleCommitRepository::of_files(&path, &place).map(drop)).await
        }
    }
}

/// Runs a blocking git operation on a blocking thread.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, git::Error> + Send + 'static,
) -> Result<T, git::Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(git::Error::Failed(error.into())))
}

/// Grades the change in the repository at `place`, in a separate workspace.
///
/// # Errors
/// A patch that does not apply, an unusable sandbox, or `cancel`.
pub async fn grade_change(
    bench: &FolderCheckRunner,
    place: PathBuf,
    instance: &Arc<EvalInstance>,
    change: GradedChange,
    cancel: &CancellationToken,
) -> anyhow::Result<InstanceGrade> {
    // The tree contains the deciding tests. It is next to the repository, in a folder that
    // `executor.hidden` hides from commands.
    let tree = tempfile::tempdir_in(place.parent().unwrap_or(&place))?;
    let (folder, wanted) = (tree.path().to_owned(), Arc::clone(instance));
    run_blocking(move || {
        let alone = SingleCommitRepository::open(&place)?;
        let (branch, solution) = match &change {
            GradedChange::None => (None, None),
            GradedChange::Reference => (None, wanted.patch.as_deref()),
            GradedChange::Branch(name) => (Some(name.as_str()), None),
        };
        let files = alone.files(branch, solution, &wanted.test_patch)?;
        alone.write(files, &folder)
    })
    .await?;
    let limit = Duration::from_secs(instance.limit_s);
    let checked = bench.check(tree.path(), &instance.setup, &instance.tests, limit, cancel);
    Ok(judge_tests(instance, Box::pin(checked).await?))
}

fn judge_tests(instance: &EvalInstance, checked: FolderCheckResult) -> InstanceGrade {
    let report = checked.tests.unwrap_or_default();
    let failing = |tests: &[String]| -> Vec<String> {
        let tests = tests.iter().filter(|test| !has_passed(&report, test));
        tests.cloned().collect()
    };
    // The base check has proved that the commands work, so commands that fail to start now were broken by the change.
    let is_infra = checked.outcome == CheckOutcome::Infra;
    let note = if checked.reason.is_empty() {
        summarize_tests(&report)
    } else {
        format!("{}; {}", checked.reason, summarize_tests(&report))
    };
    InstanceGrade {
        outcome: checked.outcome,
        unmet: failing(&instance.fail_to_pass),
        broken: failing(&instance.pass_to_pass),
        infra: is_infra.then(|| format!("{}: {}", checked.outcome.as_str(), checked.reason)),
        note,
        output: checked.output,
    }
}

/// True when a test passed. Some runners name only failing tests. A test that they do not list passed, if the list of failures
/// is complete and all tests were loaded.
fn has_passed(report: &TestReport, test: &str) -> bool {
    let dotted = parse_unittest_name(test);
    let is_it = |id: &str| id.split_whitespace().eq(test.split_whitespace()) || Some(id) == dotted.as_deref();
    if report.failing.iter().any(|failed| is_it(&failed.id)) || report.skipping.iter().any(|id| is_it(id)) {
        return false;
    }
    let names_passing = report.passing.len() >= report.passed as usize;
    let names_failing = report.failing.len() >= report.failed as usize && !report.truncated;
    report.passing.iter().any(|id| is_it(id))
        || (!names_passing && names_failing && !report.collection_error && report.passed > 0)
}

/// Dotted name of a test in the form of unittest, `test_x (module.Class)` or `test_x (module.Class.test_x)`.
fn parse_unittest_name(test: &str) -> Option<String> {
    let (name, place) = test.trim().strip_suffix(')')?.split_once(" (")?;
    let is_whole = place.strip_suffix(name).is_some_and(|class| class.ends_with('.'));
    Some(if is_whole {
        place.to_owned()
    } else {
        format!("{place}.{name}")
    })
}

fn summarize_tests(report: &TestReport) -> String {
    if report.ran() == 0 {
        return "no test was seen in the output".to_owned();
    }
    let failing = report.failing.iter().map(|test| test.id.as_str());
    let names = failing.chain(report.passing.iter().map(String::as_str));
    let names: Vec<_> = names.take(NAMED).collect();
    format!(
        "seen: {} passed, {} failed ({})",
        report.passed,
        report.failed,
        names.join(", ")
    )
}

/// Reason why an instance is unusable, found before any model cost; `None` for a usable one.
pub async fn find_instance_problem(
    bench: &FolderCheckRunner,
    place: PathBuf,
    instance: &Arc<EvalInstance>,
    cancel: &CancellationToken,
) -> Option<String> {
    if let Err(error) = create_repository(instance, place.clone()).await {
        return Some(format!("the base cannot be made: {}", format_error_chain(&error)));
    }
    let base = match grade_change(bench, place.clone(), instance, GradedChange::None, cancel).await {
        Ok(grade) => grade,
        Err(error) => return Some(format!("the tests cannot be run on the base: {error:#}")),
    };
    if let Some(problem) = find_base_problem(instance, &base) {
        return Some(problem);
    }
    // Without a reference solution, the check of the base must suffice.
    instance.patch.as_ref()?;
    match grade_change(bench, place, instance, GradedChange::Reference, cancel).await {
        Ok(grade) if grade.is_resolved() => None,
        Ok(grade) => Some(format!(
            "the reference solution does not solve it: {} ({})",
            join_test_names(&[grade.unmet, grade.broken].concat()),
            grade.infra.unwrap_or(grade.note)
        )),
        Err(error) => Some(format!("the reference solution cannot be tried: {error:#}")),
    }
}

fn find_base_problem(instance: &EvalInstance, base: &InstanceGrade) -> Option<String> {
    if let Some(infra) = &base.infra {
        return Some(format!("the tests cannot be run on the base: {infra}"));
    }
    if matches!(base.outcome, CheckOutcome::Inert | CheckOutcome::NoTests) {
        return Some(format!("no test runs on the base: {}", base.note));
    }
    let done: Vec<_> = instance
        .fail_to_pass
        .iter()
        .filter(|test| !base.unmet.contains(test))
        .cloned()
        .collect();
    if !done.is_empty() {
        return Some(format!("passes on the base already: {}", join_test_names(&done)));
    }
    (!base.broken.is_empty()).then(|| {
        format!(
            "does not pass on the base: {} ({})",
            join_test_names(&base.broken),
            base.note
        )
    })
}

fn join_test_names(tests: &[String]) -> String {
    let named: Vec<_> = tests.iter().take(NAMED).map(String::as_str).collect();
    match tests.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use domain::check::FailedTest;

    use super::*;

    fn build_report(passed: u32, passing: &[&str], failing: &[&str]) -> TestReport {
        let failing = failing.iter().map(|id| FailedTest {
            id: (*id).to_owned(),
            message: String::new(),
        });
        let failing: Vec<_> = failing.collect();
        TestReport {
            runner: "r".to_owned(),
            passed,
            failed: u32::try_from(failing.len()).unwrap(),
            failing,
            passing: passing.iter().map(ToString::to_string).collect(),
            ..TestReport::default()
        }
    }

    #[test]
    fn complete_list_of_failures_decides_outcome() {
        let named = build_report(2, &["t (m.C)", "u"], &["v"]);
        assert!(has_passed(&named, "t  (m.C)") && has_passed(&named, "u"));
        assert!(!has_passed(&named, "v") && !has_passed(&named, "w"));
        let unnamed = build_report(2, &[], &["v"]);
        assert!(has_passed(&unnamed, "t") && !has_passed(&unnamed, "v"));
        let unloaded = TestReport {
            collection_error: true,
            ..unnamed.clone()
        };
        let unlisted = TestReport { failed: 2, ..unnamed };
        assert!(!has_passed(&unloaded, "t") && !has_passed(&unlisted, "t"));
        assert!(!has_passed(&TestReport::default(), "t"));
        let skipped = TestReport {
            skipping: vec!["s".to_owned()],
            ..build_report(2, &[], &[])
        };
        assert!(!has_passed(&skipped, "s"));
    }

    fn build_instance() -> EvalInstance {
        EvalInstance {
            id: "a".to_owned(),
            source: InstanceSource::Files(PathBuf::new()),
            problem_statement: "x".to_owned(),
            test_patch: String::new(),
            fail_to_pass: vec!["t".to_owned()],
            pass_to_pass: Vec::new(),
            tests: vec!["make test".to_owned()],
            setup: Vec::new(),
            patch: None,
            created_at: None,
            limit_s: 1,
            digest: String::new(),
        }
    }

    #[test]
    fn missing_command_fails_change_not_base() {
        let ended = |outcome| {
            judge_tests(
                &build_instance(),
                FolderCheckResult {
                    outcome,
                    reason: "why".to_owned(),
                    tests: None,
                    output: String::new(),
                },
            )
        };
        let absent = ended(CheckOutcome::Inert);
        assert!(
            find_base_problem(&build_instance(), &absent)
                .unwrap()
                .starts_with("no test runs on the base: why")
        );
        assert!(!absent.is_resolved() && absent.infra.is_none());
        let killed = ended(CheckOutcome::Infra);
        assert_eq!(killed.infra.as_deref(), Some("infra: why"));
        assert!(
            find_base_problem(&build_instance(), &killed)
                .unwrap()
                .contains("cannot be run")
        );
        assert_eq!(
            find_base_problem(&build_instance(), &ended(CheckOutcome::Red)),
            None
        );
    }

    #[test]
    fn unittest_names_match_in_every_form() {
        let dots = build_report(1, &["m.C.t"], &[]);
        for test in ["t (m.C)", "t (m.C.t)", "m.C.t"] {
            assert!(has_passed(&dots, test), "{test}");
        }
        assert!(!has_passed(&dots, "t (m.D)") && !has_passed(&dots, "t (m.C"));
    }

    #[test]
    fn a_long_list_is_cut() {
        let tests: Vec<_> = (0..7).map(|n| format!("t{n}")).collect();
        assert_eq!(join_test_names(&tests), "t0, t1, t2, t3, t4 and 2 more");
        assert_eq!(join_test_names(&tests[..2]), "t0, t1");
    }
}
