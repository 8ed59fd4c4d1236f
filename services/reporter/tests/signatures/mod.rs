//! Repositories that require signed commits: by an App, by a key, and refused before the work.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use domain::{BranchPush, OutboundAction, OutboundOutcome, OutboundReceipt, OutboundRefusal};
use reporter::SigningSettings;
use testkit::{
    ServiceFault,
    github::{BranchRuleset, RulesetCondition, SIGNING_KEY, SIGNING_PUBLIC_KEY},
};

use crate::{
    build_work_started, draft_of,
    rig::{Rig, RigOptions, run_git},
};

const BRANCH: &str = "fix/ENG-1-totals";
const SHOP: &str = "acme/shop";
const CO_AUTHOR: &str = "Co-authored-by: Ann <ann@acme.example>";

fn as_app() -> RigOptions {
    RigOptions {
        as_app: true,
        ..RigOptions::default()
    }
}

fn with_key() -> RigOptions {
    RigOptions {
        signing: SigningSettings {
            private_key: Some(SIGNING_KEY.into()),
            ..SigningSettings::default()
        },
        ..RigOptions::default()
    }
}

/// Requires signatures on branches of these patterns.
fn require_signatures(rig: &Rig, patterns: &[&str]) {
    let ruleset = BranchRuleset {
        branches: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
        conditions: vec![RulesetCondition::SignedCommits],
        ..BranchRuleset::default()
    };
    rig.github.set_rulesets(SHOP, &[ruleset]).unwrap();
}

/// Commits twice: text, a program, a link, a binary file and a removed file, with a co-author.
async fn change_everything(rig: &Rig) -> BranchPush {
    let here = rig.branch_off(BRANCH).await;
    let folder = std::path::Path::new(&here);
    std::fs::write(folder.join("logo.bin"), [0_u8, 255, 254, 10]).unwrap();
    std::fs::write(folder.join("run.sh"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(folder.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("cart.py", folder.join("link")).unwrap();
    rig.commit(
        &here,
        &[("cart.py", "total = 2\n")],
        &["-m", "fix: totals (ENG-1)"],
    )
    .await;
    // A folder takes the place of a file.
    std::fs::remove_file(folder.join("README.md")).unwrap();
    rig.commit(
        &here,
        &[("README.md/index.md", "# Shop\n")],
        &["-m", "docs: move (ENG-1)", "-m", CO_AUTHOR],
    )
    .await;
    rig.packed(&here, BRANCH).await
}

async fn settle_push(rig: &Rig, position: u64, push: &BranchPush) -> OutboundOutcome {
    let report = rig.report(position, OutboundAction::PushBranch(push.clone()));
    rig.settled(&report).await
}

/// Pushes, and returns the head that the receipt names.
async fn push_signed(rig: &Rig, position: u64, push: &BranchPush) -> String {
    match settle_push(rig, position, push).await {
        OutboundOutcome::Done(OutboundReceipt::Pushed { head, .. }) => head.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Asserts that the remote has the verified trees under signed commits.
async fn assert_signed_copy(rig: &Rig, push: &BranchPush, head: &str) {
    assert_ne!(head, push.head.as_str());
    assert_eq!(rig.github.branches(SHOP)[BRANCH], head);
    let clone = rig.clone_path();
    let mut there = head.to_owned();
    let mut here = push.head.to_string();
    while here != push.base.as_str() {
        assert_eq!(rig.github.signature_of(SHOP, &there).unwrap(), "valid");
        let (tree, parents) = rig.github.tree_and_parents(SHOP, &there).unwrap();
        let local = run_git(&[
            "-C",
            &clone,
            "rev-parse",
            &format!("{here}^{{tree}}"),
            &format!("{here}^"),
        ])
        .await;
        let mut local = local.lines();
        assert_eq!(
            local.next(),
            Some(tree.as_str()),
            "modes, links and removals are kept"
        );
        here = local.next().unwrap().to_owned();
        there = parents[0].clone();
    }
    assert_eq!(there, push.base.as_str());
    let record = rig.queue.branches().get(&push.repository, BRANCH).await.unwrap();
    assert_eq!(record.unwrap().0.head.as_str(), head, "ingest knows our own head");
}

fn count_posts(rig: &Rig, ending: &str) -> usize {
    let requests = rig.github.requests();
    let is_it =
        |request: &&testkit::RecordedRequest| request.method == "POST" && request.path.ends_with(ending);
    requests.iter().filter(is_it).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn app_commits_verified_tree_with_signature() {
    let mut rig = Rig::start_with(as_app()).await;
    require_signatures(&rig, &["main", "fix/*"]);
    let push = change_everything(&rig).await;
    let head = push_signed(&rig, 2, &push).await;
    assert_signed_copy(&rig, &push, &head).await;
    // A repetition finds the signed commit.
    assert_eq!(push_signed(&rig, 4, &push).await, head);
    assert_eq!(count_posts(&rig, "/git/commits"), 2);
    assert_eq!(rig.count_pushes(), 0, "git itself pushed nothing");

    // The workspace continues from its own commit, the remote from the signed one.
    let here = rig.clone_path();
    rig.commit(&here, &[("cart.py", "total = 3\n")], &["-m", "fix: more (ENG-1)"])
        .await;
    let next = BranchPush {
        expected: Some(head.parse().unwrap()),
        ..rig.packed(&here, BRANCH).await
    };
    let second = push_signed(&rig, 6, &next).await;
    assert_signed_copy(&rig, &next, &second).await;
    let (_, parents) = rig.github.tree_and_parents(SHOP, &second).unwrap();
    assert_eq!(parents, [head]);
    assert_eq!(count_posts(&rig, "/git/commits"), 3, "earlier commits stay");

    let opened = rig.settled(&rig.report(8, draft_of(BRANCH))).await;
    assert!(
        matches!(
            &opened,
            OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(_))
        ),
        "{opened:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_signs_commits_by_configured_account() {
    let options = with_key();
    let mut rig = Rig::start_with(RigOptions {
        signing: SigningSettings {
            committer: Some("Bot <bot@acme.example>".parse().unwrap()),
            ..options.signing.clone()
        },
        ..options
    })
    .await;
    rig.github.add_signing_key(SHOP, SIGNING_PUBLIC_KEY).unwrap();
    require_signatures(&rig, &["main", "fix/*"]);
    let push = change_everything(&rig).await;
    let head = push_signed(&rig, 2, &push).await;
    assert_signed_copy(&rig, &push, &head).await;
    assert_eq!(push_signed(&rig, 4, &push).await, head);
    assert_eq!(rig.count_pushes(), 1);
    assert_eq!(count_posts(&rig, "/git/commits"), 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_push_stays_where_no_rule_asks() {
    let mut rig = Rig::start_with(with_key()).await;
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    assert_eq!(push_signed(&rig, 2, &push).await, push.head.as_str());
    assert_eq!(
        rig.github.signature_of(SHOP, push.head.as_str()).unwrap(),
        "unsigned"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unverified_signature_is_refused_by_reason() {
    // The key is not registered at GitHub.
    let mut keyed = Rig::start_with(with_key()).await;
    require_signatures(&keyed, &["main"]);
    // The server does not sign the commits of Apps.
    let mut app = Rig::start_with(as_app()).await;
    app.github.stop_signing(SHOP).unwrap();
    require_signatures(&app, &["main"]);
    for (rig, code) in [(&keyed, "unknown_key"), (&app, "unsigned")] {
        let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
        let outcome = settle_push(rig, 2, &push).await;
        let OutboundOutcome::Refused(OutboundRefusal::UnverifiedSignature { reason, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(reason, code);
    }
    assert_eq!(app.github.branches(SHOP).len(), 1, "no branch has the commit");
    keyed.stop().await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_without_way_to_sign_is_not_announced() {
    let mut by_ruleset = Rig::start().await;
    require_signatures(&by_ruleset, &["main"]);
    let mut by_protection = Rig::start().await;
    by_protection.github.require_signatures(SHOP, "main").unwrap();
    for rig in [&by_ruleset, &by_protection] {
        let outcome = rig.settled(&rig.report(2, build_work_started())).await;
        let OutboundOutcome::Refused(refusal @ OutboundRefusal::NoSigningKey { .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(refusal.words().contains("reporter.signing.private_key"));
        assert_eq!(rig.jira.status_history("ENG-1"), ["To Do"]);
        assert!(rig.jira.comments("ENG-1").is_empty());
    }
    by_ruleset.stop().await;
    by_protection.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_leave_one_signed_branch() {
    for (method, path, after) in [
        ("POST", "/git/trees", true),
        ("POST", "/git/commits", false),
        ("POST", "/git/commits", true),
        ("POST", "/git/refs", false),
        ("POST", "/git/refs", true),
    ] {
        let mut rig = Rig::start_with(as_app()).await;
        require_signatures(&rig, &["main", "fix/*"]);
        let fault = ServiceFault::new(path, 1, 502).on(method);
        rig.github
            .fail_next(if after { fault.after_effect() } else { fault });
        let push = change_everything(&rig).await;
        let head = push_signed(&rig, 2, &push).await;
        assert_signed_copy(&rig, &push, &head).await;
        assert_eq!(rig.github.branches(SHOP).len(), 2, "{path}, after: {after}");
        assert_eq!(rig.github.faults_left(), 0);
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn push_of_person_wins_over_signed_commit() {
    let mut rig = Rig::start_with(as_app()).await;
    require_signatures(&rig, &["main"]);
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let head = push_signed(&rig, 2, &push).await;
    let theirs = rig
        .github
        .commit(SHOP, BRANCH, "theirs", &[("cart.py", "total = 7\n")])
        .unwrap();
    let here = rig.clone_path();
    rig.commit(&here, &[("cart.py", "total = 3\n")], &["-m", "fix: more (ENG-1)"])
        .await;
    let next = BranchPush {
        expected: Some(head.parse().unwrap()),
        ..rig.packed(&here, BRANCH).await
    };
    let outcome = settle_push(&rig, 4, &next).await;
    assert!(
        matches!(
            &outcome,
            OutboundOutcome::Refused(OutboundRefusal::BranchMoved { .. })
        ),
        "{outcome:?}"
    );
    assert_eq!(rig.github.branches(SHOP)[BRANCH], theirs);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_branch_beside_its_folder_is_named() {
    let mut rig = Rig::start_with(as_app()).await;
    require_signatures(&rig, &["main"]);
    rig.github
        .commit(SHOP, "fix", "theirs", &[("cart.py", "total = 7\n")])
        .unwrap();
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let outcome = settle_push(&rig, 2, &push).await;
    assert!(
        matches!(&outcome, OutboundOutcome::Refused(OutboundRefusal::BranchInTheWay { by, .. }) if by == "fix"),
        "{outcome:?}"
    );
    let record = rig.queue.branches().get(&push.repository, BRANCH).await.unwrap();
    assert_eq!(record, None);
    rig.stop().await;
}
