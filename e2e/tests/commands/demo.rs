//! The demo, as `journeyman demo` in one process and as a scenario with a process for each service: its last line, its
//! failures, and Ctrl-C.

use std::path::Path;

use rustix::process::Signal;
use tempfile::TempDir;
use testkit::fixture;

use crate::program::{Program, Ran, run_program};

async fn run_demo_command(arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    run_program("scenarios", &[&["demo"], arguments].concat(), &[], folder.path()).await
}

/// Creates the fixture's project with a replaced text in one file.
fn changed_project(path: &str, from: &str, to: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in fixture::list_shop_files() {
        let text = if name == path {
            assert!(text.contains(from), "{path}");
            text.replace(from, to)
        } else {
            text.to_owned()
        };
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    folder
}

async fn complaint_about(project: &Path) -> String {
    let ran = run_demo_command(&["--repository", project.to_str().unwrap()]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.out.contains("demo ok"), "{}", ran.out);
    let complaints: Vec<_> = ran
        .out
        .lines()
        .filter(|line| line.starts_with("demo failed: "))
        .collect();
    assert_eq!(complaints.len(), 1, "{ran:?}");
    assert_eq!(ran.out.lines().last(), complaints.first().copied());
    complaints.concat()
}

/// Fails unless a line is the verdict about the merged ticket.
fn assert_is_verdict(line: &str) {
    let rest = line.strip_prefix("demo ok ticket=ENG-1 pr=http://").expect(line);
    assert!(
        rest.ends_with("/acme/shop/pull/1 base=failed head=passed status=Done"),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn last_line_is_read_from_final_state() {
    let ran = run_demo_command(&[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_is_verdict(ran.out.lines().last().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn installed_command_plays_demo_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_program("journeyman", &["demo"], &[], folder.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_is_verdict(ran.out.lines().last().unwrap());
    assert_eq!(ran.err, "", "no log between the lines of the timeline");
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_precedes_stay_and_is_printed_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Program::start("journeyman", &["demo", "--stay"], &[], folder.path());
    demo.until_output_contains("everything keeps running").await;
    let verdicts: Vec<_> = demo
        .out()
        .lines()
        .filter(|line| line.starts_with("demo ok"))
        .map(str::to_owned)
        .collect();
    let [verdict] = verdicts.as_slice() else {
        panic!("{verdicts:?}")
    };
    assert_is_verdict(verdict);
    demo.signal(Signal::INT);
    let ran = demo.ended().await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out.matches("demo ok").count(), 1, "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_python_is_named_before_any_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path)
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file());
    std::os::unix::fs::symlink(git.unwrap(), programs.join("git")).unwrap();
    let environment = [("PATH".to_owned(), programs.display().to_string())];
    let ran = run_program("journeyman", &["demo"], &environment, folder.path()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.out, "", "nothing was started");
    assert_eq!(
        ran.err,
        "journeyman: the demo needs python3, which is not on PATH: install it and run the demo again\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_fails_without_failing_test() {
    let project = changed_project(
        "shop/cart.py",
        "sum(line.price for",
        "sum(line.price * line.quantity for",
    );
    let complaint = complaint_about(project.path()).await;
    assert!(
        complaint.contains("the tests pass at the base already"),
        "{complaint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_fails_when_script_mismatches_project() {
    let project = changed_project("shop/cart.py", "line.price for line", "row.price for row");
    let complaint = complaint_about(project.path()).await;
    assert!(
        complaint.contains("the run ended without a pull request: "),
        "{complaint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_names_missing_folder() {
    let complaint = complaint_about(Path::new("/no/such/project")).await;
    assert!(
        complaint.contains("/no/such/project is not a folder"),
        "{complaint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Program::start("scenarios", &["demo"], &[], folder.path());
    demo.until_output_contains("workspace open").await;
    assert!(demo.family_size() >= 7, "nats, redis and five services");
    demo.signal(Signal::INT);
    let ran = demo.ended().await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(
        ran.out
            .ends_with("interrupted; everything that was started is ended\n"),
        "{}",
        ran.out
    );
}
