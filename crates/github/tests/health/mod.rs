//! Snapshots of pull requests, and updates of their branches.

use std::collections::{BTreeMap, BTreeSet};

use domain::{BaseCondition, CheckResult, CommitId, MergeState, PullRequestStatus, RemovalReason};
use github::{BranchUpdate, Error, HeadState, SnapshotScope};
use testkit::github::{BranchRuleset, HeldRunState, RulesetCondition, RunConclusion};

use super::{Hub, build_shop_name, start_hub};

const QUEUE: SnapshotScope = SnapshotScope {
    queue: true,
    distance: false,
};

/// Opens a pull request that is ready, on a base with a merge queue.
async fn open_ready_on_queue(hub: &Hub) -> github::PullRequest {
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        conditions: vec![RulesetCondition::MergeQueue],
        ..BranchRuleset::default()
    };
    hub.hub.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let made = hub.draft("feat/x").await;
    hub.mark_ready(&made).await;
    made
}

#[tokio::test]
async fn snapshot_shows_checks_with_requirements() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let read = async |scope| {
        let health = hub.reader.health();
        health
            .snapshot(&build_shop_name(), made.number, scope)
            .await
            .unwrap()
    };
    let draft = read(SnapshotScope::default()).await;
    assert!(draft.is_draft && draft.checks.checks.is_empty(), "{draft:?}");
    assert_eq!(draft.merge, MergeState::Draft);

    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        required_checks: vec!["test".to_owned()],
        required_approvals: 1,
        conditions: vec![RulesetCondition::CurrentBase, RulesetCondition::ResolvedThreads],
        ..BranchRuleset::default()
    };
    hub.hub.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let red = [("test", RunConclusion::Failure, "")];
    hub.hub.run_checks("acme/shop", made.head.as_str(), &red).unwrap();
    hub.mark_ready(&made).await;
    let blocked = read(SnapshotScope::default()).await;
    assert_eq!(blocked.merge, MergeState::Blocked);
    assert_eq!(blocked.checks.checks[0].result, Some(CheckResult::Bad));
    assert_eq!(blocked.requirements.checks, ["test"]);
    assert_eq!(blocked.requirements.approvals, 1);
    assert!(blocked.requirements.includes(BaseCondition::CurrentBase));
    assert_eq!(blocked.reviews.open_threads, Some(0));

    hub.hub
        .review("acme/shop", made.number, "rita", "approved", "Fine.")
        .unwrap();
    hub.hub
        .commit("acme/shop", "main", "Move on", &[("moved.md", "on\n")])
        .unwrap();
    let behind = read(SnapshotScope::default()).await;
    assert_eq!((behind.merge, behind.reviews.approvals), (MergeState::Behind, 1));
    assert_eq!(behind.reviews.approvals_of_head, 1);
    hub.hub
        .commit("acme/shop", "feat/x", "Go on", &[("more.md", "on\n")])
        .unwrap();
    let pushed = read(SnapshotScope::default()).await;
    assert_eq!(
        pushed.reviews.approvals, 1,
        "a push dismisses nothing without the rule"
    );
    assert_eq!(pushed.reviews.approvals_of_head, 0);
    assert_eq!(pushed.queue.auto_merge, None);
    hub.hub
        .enable_auto_merge("acme/shop", made.number, "rita", "squash")
        .unwrap();
    let automatic = read(SnapshotScope::default()).await.queue.auto_merge.unwrap();
    assert_eq!(
        (automatic.by.as_str(), automatic.method.as_str()),
        ("rita", "squash")
    );
    hub.assert_clean();
}

#[tokio::test]
async fn snapshot_shows_queue_with_removal() {
    let hub = start_hub().await;
    let made = open_ready_on_queue(&hub).await;
    let read = async |scope| {
        let health = hub.reader.health();
        health
            .snapshot(&build_shop_name(), made.number, scope)
            .await
            .unwrap()
    };
    let tested = hub.hub.enqueue("acme/shop", made.number, "rita").unwrap();
    let queued = read(QUEUE).await.queue.entry.unwrap();
    assert_eq!(
        (queued.position, queued.commit),
        (1, Some(tested.parse().unwrap()))
    );
    hub.hub
        .dequeue("acme/shop", made.number, "CI_FAILURE", "rita")
        .unwrap();
    let removed = read(QUEUE).await.queue;
    assert_eq!(removed.entry, None);
    let removal = removed.removal.unwrap();
    assert_eq!(
        (removal.reason, removal.commit),
        (RemovalReason::Checks, Some(tested.parse().unwrap()))
    );
    hub.hub
        .set_mergeability_computed("acme/shop", made.number, false)
        .unwrap();
    assert_eq!(read(SnapshotScope::default()).await.merge, MergeState::Unknown);
    hub.hub.close("acme/shop", made.number, "rita").unwrap();
    assert_eq!(read(QUEUE).await.status, PullRequestStatus::Closed);
    hub.assert_clean();
}

#[tokio::test]
async fn queued_branch_stays_until_merge() {
    let hub = start_hub().await;
    let made = open_ready_on_queue(&hub).await;
    let name = build_shop_name();
    hub.hub.enqueue("acme/shop", made.number, "rita").unwrap();
    let commits = hub.writer.commits();
    let refused = commits.forward_branch(&name, "feat/x", &made.head).await;
    let refused = refused.unwrap_err();
    assert!(refused.is_about_merge_queue(), "{refused}");
    hub.hub.merge("acme/shop", made.number, "rita").unwrap();
    let branches = hub.hub.branches("acme/shop");
    let queued = branches.keys().filter(|branch| branch.starts_with("gh-readonly"));
    assert_eq!(queued.count(), 0, "{branches:?}");
    commits.forward_branch(&name, "feat/x", &made.head).await.unwrap();
    hub.assert_clean();
}

#[tokio::test]
async fn conflict_with_base_removes_queue_entry() {
    let hub = start_hub().await;
    let made = open_ready_on_queue(&hub).await;
    let read = async || {
        let health = hub.reader.health();
        health
            .snapshot(&build_shop_name(), made.number, QUEUE)
            .await
            .unwrap()
    };
    let tested = hub.hub.enqueue("acme/shop", made.number, "rita").unwrap();
    let move_base = |path: &str| {
        let files = [(path, "of the base\n")];
        hub.hub.commit("acme/shop", "main", "Move on", &files).unwrap();
    };
    move_base("moved.md");
    let kept = read().await;
    let again = kept.queue.entry.and_then(|entry| entry.commit);
    assert!(
        again.is_some_and(|commit| commit.as_str() != tested),
        "the queue tests the new base"
    );
    move_base("a.txt");
    let removed = read().await;
    assert_eq!(removed.merge, MergeState::Conflicting);
    assert_eq!(removed.queue.entry, None);
    let reason = removed.queue.removal.map(|removal| removal.reason);
    assert_eq!(reason, Some(RemovalReason::Conflict));
    let branches = hub.hub.branches("acme/shop");
    assert!(
        !branches.keys().any(|branch| branch.starts_with("gh-readonly")),
        "{branches:?}"
    );
    hub.assert_clean();
}

#[tokio::test]
async fn branch_update_refuses_moved_head() {
    let hub = start_hub().await;
    for (branch, way, commits) in [
        ("feat/by-merge", BranchUpdate::Merge, 2),
        ("feat/by-rebase", BranchUpdate::Rebase, 1),
    ] {
        let made = hub.draft(branch).await;
        let file = format!("{branch}.md").replace('/', "-");
        hub.hub
            .commit("acme/shop", "main", "Move on", &[(file.as_str(), "on\n")])
            .unwrap();
        let update = async |head: &CommitId| {
            hub.writer
                .pull_requests()
                .update_branch(&build_shop_name(), &made.node_id, head, way)
                .await
        };
        let stale = update(&hub.base).await.unwrap_err();
        assert!(matches!(stale, Error::Rejected { .. }), "{stale}");
        let head = update(&made.head).await.unwrap();
        let current = update(&head).await.unwrap_err();
        assert!(matches!(current, Error::Rejected { .. }), "{current}");
        let origin = hub.writer.commits().origin(&build_shop_name(), &head).await;
        let origin = origin.unwrap().unwrap();
        let is_merge = way == BranchUpdate::Merge;
        assert_eq!(origin.is_made_by_server, is_merge);
        let signature = hub.hub.signature_of("acme/shop", head.as_str()).unwrap();
        assert_eq!(signature == "valid", is_merge, "{signature}");
        assert_eq!(origin.parents.first() == Some(&made.head), is_merge);
        let authors = hub
            .writer
            .pull_requests()
            .commit_authors(&build_shop_name(), made.number)
            .await
            .unwrap();
        assert_eq!(
            authors.len(),
            commits,
            "the commits of the base are not listed: {authors:?}"
        );
        let now = hub
            .reader
            .pull_requests()
            .pull_request(&build_shop_name(), made.number)
            .await
            .unwrap();
        assert_eq!((now.head, now.merge.state), (head, MergeState::Draft));
    }
    hub.assert_clean();
}

#[tokio::test]
async fn conflict_is_a_state_of_its_own() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let file = [("a.txt", "of the base\n")];
    hub.hub.commit("acme/shop", "main", "Theirs", &file).unwrap();
    let snapshot = hub
        .reader
        .health()
        .snapshot(&build_shop_name(), made.number, SnapshotScope::default())
        .await
        .unwrap();
    assert_eq!(snapshot.merge, MergeState::Conflicting);
    hub.assert_clean();
}

#[tokio::test]
async fn open_heads_show_changes_without_update() {
    let hub = start_hub().await;
    let (first, second) = (hub.draft("feat/x").await, hub.draft("feat/y").await);
    let name = build_shop_name();
    let numbers = BTreeSet::from([first.number, second.number]);
    let list = async || {
        let health = hub.reader.health();
        health.open_heads(&name, &numbers).await.unwrap().unwrap()
    };
    let before = list().await;
    assert_eq!(before.keys().copied().collect::<BTreeSet<_>>(), numbers);
    assert_eq!(before[&first.number].head, first.head);
    assert_eq!(list().await, before, "nothing changed");
    let assert_only_first_changed = |now: &BTreeMap<u64, HeadState>, earlier: &BTreeMap<u64, HeadState>| {
        assert_ne!(now[&first.number], earlier[&first.number]);
        assert_eq!(now[&second.number], earlier[&second.number]);
    };

    // A run that waits for an approval has no check run.
    let head = first.head.as_str();
    hub.hub
        .hold_run("acme/shop", head, "ci", HeldRunState::ActionRequired)
        .unwrap();
    let held = list().await;
    assert_only_first_changed(&held, &before);
    let red = [("test", RunConclusion::Failure, "")];
    hub.hub.run_checks("acme/shop", head, &red).unwrap();
    let checked = list().await;
    assert_only_first_changed(&checked, &held);
    hub.hub
        .set_mergeability_computed("acme/shop", first.number, false)
        .unwrap();
    assert_eq!(list().await[&first.number].merge, None);
    hub.hub.close("acme/shop", first.number, "rita").unwrap();
    let open: Vec<u64> = list().await.into_keys().collect();
    assert_eq!(open, [second.number]);
    hub.assert_clean();
}

#[tokio::test]
async fn open_heads_are_listed_by_hundreds() {
    let hub = start_hub().await;
    let name = build_shop_name();
    let mut numbers = BTreeSet::new();
    for number in 0..101 {
        let branch = format!("feat/{number}");
        hub.branch(&branch);
        let opened = hub.hub.open_pull_request_as("acme/shop", "mia", &branch, "x", "");
        numbers.insert(opened.unwrap());
    }
    let list = async |numbers: &BTreeSet<u64>| {
        let count = || hub.hub.count_requests(|request| request.path == "/graphql");
        let before = count();
        let found = hub.reader.health().open_heads(&name, numbers).await.unwrap();
        let found: BTreeSet<u64> = found.unwrap().into_keys().collect();
        assert_eq!(found, *numbers);
        count() - before
    };
    assert_eq!(list(&numbers).await, 2);
    let newest = numbers.last().copied().into_iter().collect();
    assert_eq!(list(&newest).await, 1, "the first page has it");
    hub.assert_clean();
}
