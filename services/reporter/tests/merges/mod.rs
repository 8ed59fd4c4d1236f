//! Tests of merges of the base branch: what a resolution may change, and what it must keep.

use domain::{
    BranchPush, BranchRecord, CommitId, DroppedHunk, OutboundAction, OutboundOutcome, OutboundReceipt,
    OutboundRefusal, OutdatedBase, PullRequestEvent, PullRequestRef, UpdateWay, report::BranchMerge,
};
use testkit::github::{BranchRuleset, RulesetCondition};

use crate::{
    draft_of, read_refusal,
    rig::{Rig, RigOptions, run_git, try_git},
};

const BRANCH: &str = "fix/ENG-1-totals";

/// A pull request whose base changed the same line, and added a file that only people may change.
struct ConflictScene {
    rig: Rig,
    /// Folder of the clone.
    here: String,
    /// Head of the pull request.
    head: CommitId,
}

impl ConflictScene {
    async fn start() -> Self {
        Self::start_with(RigOptions::default()).await
    }

    async fn start_with(options: RigOptions) -> Self {
        let rig = Rig::start_with(options).await;
        let files = [("cart.py", "total = 3\n"), ("CODEOWNERS", "* @ada\n")];
        rig.github.commit("acme/shop", "main", "Triple", &files).unwrap();
        let here = rig.branch_off(BRANCH).await;
        run_git(&["-C", &here, "reset", "--quiet", "--hard", "origin/main~1"]).await;
        rig.commit(
            &here,
            &[("cart.py", "total = 2\n")],
            &["-m", "fix: totals (ENG-1)"],
        )
        .await;
        let before = run_git(&["-C", &here, "rev-parse", "origin/main~1"]).await;
        let push = BranchPush {
            base: before.trim().parse().unwrap(),
            ..rig.packed(&here, BRANCH).await
        };
        let head = push.head.clone();
        let outcome = rig.settle_push(2, push).await;
        assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
        Self { rig, here, head }
    }

    /// Merges the base with these files, and returns the push of it.
    async fn merge(&self, files: &[(&str, &str)], dropped: Vec<DroppedHunk>) -> BranchPush {
        let head = self.head.as_str();
        run_git(&["-C", &self.here, "checkout", "--quiet", "-B", BRANCH, head]).await;
        // A merge needs a committer, also when the commit follows later.
        let committer = [
            "-c",
            "user.name=Journeyman",
            "-c",
            "user.email=noreply@journeyman.invalid",
        ];
        let merge = ["merge", "--quiet", "--no-commit", "origin/main"];
        let merged = try_git(&[&["-C", self.here.as_str()][..], &committer, &merge].concat()).await;
        let problem = merged.expect_err("the sides conflict");
        assert!(!problem.contains("fatal"), "{problem}");
        self.rig
            .commit(&self.here, files, &["-m", "chore: merge main (ENG-1)"])
            .await;
        BranchPush {
            expected: Some(self.head.clone()),
            merge: Some(Box::new(BranchMerge {
                head: self.head.clone(),
                dropped,
            })),
            ..self.rig.packed(&self.here, BRANCH).await
        }
    }

    async fn refusal_of(&self, position: u64, push: BranchPush) -> String {
        let report = self.rig.report(position, OutboundAction::PushBranch(push));
        read_refusal(&self.rig.settled(&report).await)
    }
}

fn name_both_sides() -> Vec<DroppedHunk> {
    ["total = 2", "total = 3"]
        .map(|quote| DroppedHunk {
            path: "cart.py".to_owned(),
            quote: quote.to_owned(),
            reason: "One line has both.".to_owned(),
        })
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_is_pushed_when_hunks_are_named() {
    let mut scene = ConflictScene::start().await;
    let push = scene
        .merge(&[("cart.py", "total = 5\n")], name_both_sides())
        .await;
    let head = push.head.clone();
    let report = scene.rig.report(4, OutboundAction::PushBranch(push));
    let outcome = scene.rig.settled(&report).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    assert_eq!(scene.rig.github.branches("acme/shop")[BRANCH], head.as_str());
    scene.rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_merge_continues_remote_branch() {
    let options = RigOptions {
        as_app: true,
        ..RigOptions::default()
    };
    let mut scene = ConflictScene::start_with(options).await;
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        conditions: vec![RulesetCondition::SignedCommits],
        ..BranchRuleset::default()
    };
    scene.rig.github.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let push = scene
        .merge(&[("cart.py", "total = 5\n")], name_both_sides())
        .await;
    let base = push.base.to_string();
    let report = scene.rig.report(4, OutboundAction::PushBranch(push));
    let outcome = scene.rig.settled(&report).await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    let github = &scene.rig.github;
    let head = github.branches("acme/shop")[BRANCH].clone();
    assert_eq!(github.signature_of("acme/shop", &head).unwrap(), "valid");
    let (_, parents) = github.tree_and_parents("acme/shop", &head).unwrap();
    // The commits of the pull request stay as they are: only the merge is created.
    assert_eq!(parents, [scene.head.to_string(), base]);
    scene.rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sided_merge_is_refused() {
    let mut scene = ConflictScene::start().await;
    let rows: [(&str, &str, &str); 3] = [
        ("total = 2\n", "total = 3", "ours"),
        ("total = 3\n", "total = 2", "the base's"),
        ("total = 1\n", "total = 2", "neither"),
    ];
    for (position, (text, lost, case)) in (4..).step_by(2).zip(rows) {
        let push = scene.merge(&[("cart.py", text)], Vec::new()).await;
        let said = scene.refusal_of(position, push).await;
        assert!(
            said.contains("drops a change of `cart.py`") && said.contains(lost),
            "{case}: {said}"
        );
    }
    let marked = "<<<<<<< pull request\ntotal = 2\n=======\ntotal = 3\n>>>>>>> base branch\n";
    let push = scene.merge(&[("cart.py", marked)], Vec::new()).await;
    let said = scene.refusal_of(12, push).await;
    assert!(said.contains("markers of a conflict"), "{said}");
    scene.rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_cannot_smuggle_protected_changes() {
    let mut scene = ConflictScene::start().await;
    let resolved = ("cart.py", "total = 5\n");
    let mut dropped = name_both_sides();
    dropped.push(DroppedHunk {
        path: "CODEOWNERS".to_owned(),
        quote: "* @ada".to_owned(),
        reason: "Not needed.".to_owned(),
    });
    let push = scene
        .merge(&[resolved, ("CODEOWNERS", "* @eve\n")], dropped.clone())
        .await;
    let said = scene.refusal_of(4, push).await;
    assert!(
        said.contains("CODEOWNERS") && said.contains("protected"),
        "{said}"
    );
    let push = scene.merge(&[resolved, ("CODEOWNERS", "")], dropped).await;
    let said = scene.refusal_of(6, push).await;
    assert!(said.contains("CODEOWNERS"), "a removal is a change: {said}");
    scene.rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undeclared_merge_is_refused() {
    let mut scene = ConflictScene::start().await;
    let push = scene
        .merge(&[("cart.py", "total = 5\n")], name_both_sides())
        .await;
    let plain = BranchPush {
        merge: None,
        ..push.clone()
    };
    let said = scene.refusal_of(4, plain).await;
    assert!(said.contains("does not have exactly one parent"), "{said}");
    let other = BranchPush {
        merge: Some(Box::new(BranchMerge {
            head: push.base.clone(),
            dropped: name_both_sides(),
        })),
        ..push
    };
    let said = scene.refusal_of(6, other).await;
    assert!(said.contains("not in the history"), "{said}");
    scene.rig.stop().await;
}

/// Opens a pull request of ours whose base moved on, and returns it with its head.
async fn open_outdated(rig: &Rig) -> (PullRequestRef, CommitId) {
    let push = rig.change(BRANCH, &[("new.py", "x = 1\n")]).await;
    let head = push.head.clone();
    rig.settle_push(4, push).await;
    let opened = match rig.settled(&rig.report(6, draft_of(BRANCH))).await {
        OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) => opened,
        other => panic!("{other:?}"),
    };
    rig.github
        .commit("acme/shop", "main", "Move on", &[("moved.md", "on\n")])
        .unwrap();
    (opened, head)
}

/// Requests the update of an outdated pull request, and returns the head on GitHub.
async fn update_base(
    rig: &Rig,
    position: u64,
    (ours, head): (&PullRequestRef, &CommitId),
    way: UpdateWay,
) -> CommitId {
    let outdated = PullRequestEvent::Outdated(OutdatedBase {
        pull_request: ours.clone(),
        head: head.clone(),
        base_branch: "main".to_owned(),
        way,
    });
    let outcome = rig
        .settled(&rig.report(position, OutboundAction::from(outdated)))
        .await;
    assert!(matches!(outcome, OutboundOutcome::Done(_)), "{outcome:?}");
    let now = rig.github.pull_requests("acme/shop");
    now[0].head_sha.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn required_signatures_replace_rebase_by_merge() {
    for (conditions, parents) in [(Vec::new(), 1), (vec![RulesetCondition::SignedCommits], 2)] {
        let mut rig = Rig::start().await;
        let (ours, head) = open_outdated(&rig).await;
        let ruleset = BranchRuleset {
            branches: vec!["main".to_owned()],
            conditions,
            ..BranchRuleset::default()
        };
        rig.github.set_rulesets("acme/shop", &[ruleset]).unwrap();
        let new = update_base(&rig, 8, (&ours, &head), UpdateWay::Rebase).await;
        let (_, found) = rig.github.tree_and_parents("acme/shop", new.as_str()).unwrap();
        assert_eq!(found.len(), parents, "{found:?}");
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn linear_branch_is_rebased_or_left() {
    let linear = BranchRuleset {
        branches: vec!["*".to_owned()],
        conditions: vec![RulesetCondition::LinearHistory],
        ..BranchRuleset::default()
    };
    let mut rig = Rig::start().await;
    let (ours, head) = open_outdated(&rig).await;
    rig.github
        .set_rulesets("acme/shop", std::slice::from_ref(&linear))
        .unwrap();
    let new = update_base(&rig, 8, (&ours, &head), UpdateWay::Merge).await;
    let (_, parents) = rig.github.tree_and_parents("acme/shop", new.as_str()).unwrap();
    assert_eq!(parents.len(), 1, "{parents:?}");
    rig.stop().await;

    // A rebase would replace the commit of a person.
    let mut rig = Rig::start().await;
    let (ours, _) = open_outdated(&rig).await;
    let files = [("by_rita.py", "y = 1\n")];
    rig.github
        .commit_by("acme/shop", BRANCH, "rita", "Mine", &files)
        .unwrap();
    rig.github.set_rulesets("acme/shop", &[linear]).unwrap();
    let head: CommitId = rig.github.branches("acme/shop")[BRANCH].parse().unwrap();
    let outdated = PullRequestEvent::Outdated(OutdatedBase {
        pull_request: ours,
        head: head.clone(),
        base_branch: "main".to_owned(),
        way: UpdateWay::Rebase,
    });
    let outcome = rig.settled(&rig.report(8, OutboundAction::from(outdated))).await;
    assert!(
        matches!(&outcome, OutboundOutcome::Refused(OutboundRefusal::LinearHistory { branch, .. })
            if branch == BRANCH),
        "{outcome:?}"
    );
    assert_eq!(rig.github.branches("acme/shop")[BRANCH], head.as_str());
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_update_is_recorded_unlike_push_of_person() {
    for (way, parents) in [(UpdateWay::Merge, 2), (UpdateWay::Rebase, 1)] {
        let mut rig = Rig::start().await;
        let (ours, head) = open_outdated(&rig).await;
        let branches = rig.queue.branches();
        let record = async || branches.get(&ours.repository, BRANCH).await.unwrap().unwrap();
        let forget_update = async || {
            let (known, revision) = record().await;
            let earlier = BranchRecord {
                head: head.clone(),
                ..known
            };
            branches.put(&earlier, Some(revision)).await.unwrap();
        };
        let new = update_base(&rig, 8, (&ours, &head), way).await;
        assert_eq!(record().await.0.head, new);
        let (_, found) = rig.github.tree_and_parents("acme/shop", new.as_str()).unwrap();
        assert_eq!(found.len(), parents, "{way:?}");
        // As after a crash between the update and its record.
        forget_update().await;
        assert_eq!(update_base(&rig, 10, (&ours, &head), way).await, new);
        assert_eq!(record().await.0.head, new, "{way:?}");
        forget_update().await;
        let files = [("by_rita.py", "y = 1\n")];
        rig.github
            .commit_by("acme/shop", BRANCH, "rita", "Mine", &files)
            .unwrap();
        update_base(&rig, 12, (&ours, &head), way).await;
        assert_eq!(record().await.0.head, head, "{way:?}");
        rig.stop().await;
    }
}
