//! Tests of refused pushes: hostile histories, branches of people, and failed inspections.

use std::{path::PathBuf, process::Stdio, time::Duration};

use domain::{
    BranchPush, ChecksConclusion, ChecksSummary, OutboundAction, OutboundOutcome, OutboundReceipt,
    PullRequestEvent,
};
use testkit::{github::BranchRuleset, poll_until};

use crate::{
    draft_of, read_refusal,
    rig::{Rig, RigOptions, run_git},
};

const BRANCH: &str = "fix/ENG-1-totals";
const DEADLINE: Duration = Duration::from_secs(20);

fn build_fake_token() -> String {
    format!("ghp_{}", "a1B2c3D4e5".repeat(4))
}

/// Pushes a branch of the rig's clone, and returns the text of the refusal.
async fn read_push_refusal(rig: &Rig, here: &str, position: u64) -> String {
    let push = rig.packed(here, BRANCH).await;
    let outcome = rig.settle_push(position, push).await;
    read_refusal(&outcome)
}

#[tokio::test(flavor = "multi_thread")]
async fn content_removed_later_is_refused_in_history() {
    let mut rig = Rig::start().await;
    let hostile: [(&str, String, &str); 4] = [
        (
            "config.py",
            format!("t = '{}'\n", build_fake_token()),
            "GitHub token",
        ),
        (
            "data.bin",
            format!("\0\u{1}{}\u{2}\n", build_fake_token()),
            "GitHub token",
        ),
        (
            "config.ps1",
            build_fake_token().chars().flat_map(|c| [c, '\0']).collect(),
            "GitHub token",
        ),
        (".github/workflows/ci.yml", "on: push\n".to_owned(), "protected"),
    ];
    for (position, (path, content, words)) in (2..).step_by(2).zip(&hostile) {
        let here = rig.branch_off(BRANCH).await;
        rig.commit(
            &here,
            &[(path, content), ("cart.py", "total = 2\n")],
            &["-m", "one"],
        )
        .await;
        rig.commit(&here, &[(path, "")], &["-m", "two"]).await;
        let said = read_push_refusal(&rig, &here, position).await;
        assert!(said.contains(words) && said.contains(path), "{path}: {said}");
        assert!(!said.contains(&build_fake_token()), "{said}");
    }
    assert_eq!(rig.github.branches("acme/shop").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_strangers_and_credentials_are_refused() {
    let mut rig = Rig::start().await;
    let here = rig.branch_off(BRANCH).await;
    let author = ["-m", "one", "--author", "Ann <ann@acme.example>"];
    rig.commit(&here, &[("cart.py", "total = 2\n")], &author).await;
    let said = read_push_refusal(&rig, &here, 2).await;
    assert!(said.contains("Ann <ann@acme.example>"), "{said}");

    // A separate root commit contains the credential. The merge has only the files of the base.
    let here = rig.branch_off(BRANCH).await;
    run_git(&["-C", &here, "checkout", "--quiet", "--orphan", "root"]).await;
    rig.commit(&here, &[("config.py", &build_fake_token())], &["-m", "root"])
        .await;
    run_git(&["-C", &here, "checkout", "--quiet", BRANCH]).await;
    let ours = [
        "-c",
        "user.name=Journeyman",
        "-c",
        "user.email=journeyman@users.noreply.github.com",
    ];
    let merge = [
        "merge",
        "--quiet",
        "--allow-unrelated-histories",
        "--strategy=ours",
        "-m",
        "merge",
        "root",
    ];
    run_git(&[&["-C", &here], &ours[..], &merge[..]].concat()).await;
    rig.commit(&here, &[("cart.py", "total = 2\n")], &["-m", "two"])
        .await;
    let said = read_push_refusal(&rig, &here, 4).await;
    assert!(said.contains("exactly one parent"), "{said}");

    let here = rig.branch_off(BRANCH).await;
    rig.commit(
        &here,
        &[(&format!("docs/{}.md", build_fake_token()), "x\n")],
        &["-m", "one"],
    )
    .await;
    let said = read_push_refusal(&rig, &here, 6).await;
    assert!(
        said.contains("the path of a file") && said.contains("GitHub token"),
        "{said}"
    );

    let mut push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    push.branch = format!("fix/ENG-1-{}", build_fake_token());
    let outcome = rig.settle_push(8, push).await;
    assert!(
        read_refusal(&outcome).contains("the branch's name"),
        "{outcome:?}"
    );
    assert_eq!(rig.github.branches("acme/shop").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn branch_of_people_is_never_overwritten() {
    let mut rig = Rig::start().await;
    let theirs = rig
        .github
        .commit("acme/shop", BRANCH, "theirs", &[("cart.py", "total = 7\n")]);
    let theirs = theirs.unwrap();
    let mut ours = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    for (position, expected) in [(2, None), (4, Some(theirs.parse().unwrap()))] {
        ours.expected = expected;
        let outcome = rig.settle_push(position, ours.clone()).await;
        assert!(
            read_refusal(&outcome).contains("was not pushed for this ticket"),
            "{outcome:?}"
        );
    }
    assert_eq!(rig.github.branches("acme/shop")[BRANCH], theirs);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_push_leaves_no_branch_record() {
    let mut rig = Rig::start().await;
    let (folder, _) = BRANCH.split_once('/').unwrap();
    let in_the_way = rig
        .github
        .commit("acme/shop", folder, "theirs", &[("cart.py", "total = 7\n")]);
    in_the_way.unwrap();
    let mut ours = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let report = rig.report(2, OutboundAction::PushBranch(ours.clone()));
    let outcome = rig.settled(&report).await;
    assert!(
        read_refusal(&outcome).contains("cannot be made while"),
        "{outcome:?}"
    );
    let record = rig.queue.branches().get(&ours.repository, BRANCH).await.unwrap();
    assert_eq!(record, None);
    // Another branch name is free, and its record stays.
    ours.branch = BRANCH.replace('/', "-");
    let report = rig.report(4, OutboundAction::PushBranch(ours.clone()));
    let outcome = rig.settled(&report).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    let record = rig.queue.branches().get(&ours.repository, &ours.branch).await;
    assert_eq!(record.unwrap().unwrap().0.head, ours.head);
    rig.stop().await;
}

/// Builds two pushes of the branch: the first creates it, the second moves it.
async fn build_two_pushes(rig: &Rig) -> (BranchPush, BranchPush) {
    let first = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let second = rig.change(BRANCH, &[("cart.py", "total = 3\n")]).await;
    let second = BranchPush {
        expected: Some(first.head.clone()),
        ..second
    };
    (first, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_branch_is_mirrored_without_fetch() {
    let mut rig = Rig::start().await;
    let (first, second) = build_two_pushes(&rig).await;
    for (position, push) in [(2, first), (4, second)] {
        let report = rig.report(position, OutboundAction::PushBranch(push.clone()));
        let outcome = rig.settled(&report).await;
        assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
        // No reader has come since, so no fetch wrote the branch.
        let mirror = git::BareRepository::open(&rig.mirror_path()).unwrap();
        assert_eq!(mirror.branch_head(BRANCH).unwrap(), Some(push.head));
    }
    rig.stop().await;
}

/// An earlier try whose response was lost may still run at the remote.
#[tokio::test(flavor = "multi_thread")]
async fn push_during_other_push_is_retried() {
    let mut rig = Rig::start().await;
    let (first, second) = build_two_pushes(&rig).await;
    for (position, push) in [(2, first), (4, second)] {
        let lock = rig.github.lock_branch("acme/shop", BRANCH).unwrap();
        let before = rig.count_pushes();
        let unlock = async {
            // The second try begins after the refusal of the first one.
            poll_until("two tries", DEADLINE, async || {
                (rig.count_pushes() >= before + 2).then_some(())
            })
            .await
            .unwrap();
            drop(lock);
        };
        let report = rig.report(position, OutboundAction::PushBranch(push.clone()));
        let (outcome, ()) = tokio::join!(rig.settled(&report), unlock);
        assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
        assert_eq!(rig.github.branches("acme/shop")[BRANCH], push.head.as_str());
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_pull_request_gets_no_push() {
    let mut rig = Rig::start().await;
    let (first, second) = build_two_pushes(&rig).await;
    let head = first.head.clone();
    rig.settle_push(2, first).await;
    let opened = match rig.settled(&rig.report(4, draft_of(BRANCH))).await {
        OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) => opened,
        other => panic!("{other:?}"),
    };
    let passed = ChecksSummary::new(opened.clone(), head.clone(), ChecksConclusion::Success);
    let passed = OutboundAction::from(PullRequestEvent::ChecksCompleted(passed));
    rig.settled(&rig.report(6, passed)).await;
    rig.github.merge("acme/shop", opened.number, "ann").unwrap();
    let said = read_refusal(&rig.settle_push(8, second).await);
    assert!(said.contains("was merged or closed"), "{said}");
    assert_eq!(rig.github.branches("acme/shop")[BRANCH], head.as_str());
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_pushes_only_to_repositories_of_project() {
    let mut rig = Rig::start().await;
    let push = rig
        .change("fix/OPS-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    let key = rig.jira.create_issue("OPS", "Elsewhere", "", "Bug", &[]);
    rig.ticket = domain::TicketKey::jira(&key).unwrap();
    let outcome = rig.settle_push(2, push).await;
    assert!(
        read_refusal(&outcome).contains("not for the ticket OPS-"),
        "{outcome:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inspector_that_dies_refuses_the_change() {
    let mut rig = Rig::start_with(RigOptions {
        inspector: Some(PathBuf::from("/bin/false")),
        ..RigOptions::default()
    })
    .await;
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let outcome = rig.settle_push(2, push).await;
    assert!(
        read_refusal(&outcome).contains("could not be inspected"),
        "{outcome:?}"
    );
    assert_eq!(rig.github.branches("acme/shop").len(), 1);
    rig.stop().await;
}

/// Runs the inspector's probe in a folder, and returns its exit code and output.
async fn run_probe(arguments: &[&str]) -> (Option<i32>, String) {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_inspector"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[tokio::test]
async fn inspector_reaches_neither_secrets_nor_network() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    git::BareRepository::init_bare(&mirror).unwrap();
    let quarantine = folder.path().join("quarantine");
    std::fs::create_dir(&quarantine).unwrap();
    let secret = folder.path().join("writer_token");
    std::fs::write(&secret, "planted").unwrap();
    let forbidden = format!("--forbidden={}", secret.display());
    let [here, there] = [&mirror, &quarantine].map(|path| path.to_str().unwrap());
    let (code, said) = run_probe(&[here, there, "--probe", &forbidden]).await;
    assert_eq!(code, Some(0), "{said}");
    // Without confinement, the probe must report a failure.
    let (code, said) = run_probe(&[here, there, "--probe", "--unconfined", &forbidden]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("stays writable"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn push_refused_by_ruleset_quotes_github() {
    let mut rig = Rig::start().await;
    let ruleset = BranchRuleset {
        branches: vec!["fix/*".to_owned()],
        restricts_creation: true,
        ..BranchRuleset::default()
    };
    rig.github.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let outcome = rig.settle_push(2, push).await;
    let said = read_refusal(&outcome);
    assert!(said.contains("GH013"), "{said}");
    assert_eq!(rig.github.branches("acme/shop").len(), 1);
    rig.stop().await;
}
