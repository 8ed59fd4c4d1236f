//! `demo`: its last line, its failures, and Ctrl-C.

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

#[tokio::test(flavor = "multi_thread")]
async fn the_last_line_tells_the_final_state() {
    let ran = run_demo_command(&[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let last = ran.out.lines().last().unwrap();
    let rest = last.strip_prefix("demo ok ticket=ENG-1 pr=http://").expect(last);
    assert!(
        rest.ends_with("/acme/shop/pull/1 base=failed head=passed status=Done"),
        "{last}"
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
    demo.says("workspace open").await;
    assert!(
        demo.family_size() >= 7,
        "nats, redis, stand-ins and five services"
    );
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
