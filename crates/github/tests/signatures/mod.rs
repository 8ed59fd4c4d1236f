//! Commits and branches over the git data API, and the rules about signatures.

use domain::{BaseCondition, CommitId};
use github::{Error, SnapshotScope, TreeChange, TreeContent};
use testkit::github::{BranchRuleset, RulesetCondition, RulesetPattern, WRITER_TOKEN};

use super::{build_shop_name, start_hub, with_token};

fn write_text(path: &str, mode: &'static str, text: &str) -> TreeChange {
    TreeChange {
        path: path.to_owned(),
        mode,
        content: TreeContent::Text(text.to_owned()),
    }
}

#[tokio::test]
async fn required_signatures_come_from_rulesets_and_protection() {
    let hub = start_hub().await;
    let name = build_shop_name();
    let requires = async |branch: &str| {
        let rules = hub.writer.branch_rules(&name, branch).await.unwrap();
        rules.requires_signatures()
    };
    assert!(!requires("main").await && !requires("no-such").await);
    hub.hub.require_checks("acme/shop", "main", &["build"]).unwrap();
    assert!(!requires("main").await, "protection for another reason");
    hub.hub.require_signatures("acme/shop", "main").unwrap();
    assert!(requires("main").await);
    let ruleset = BranchRuleset {
        branches: vec!["fix/*".to_owned()],
        conditions: vec![RulesetCondition::SignedCommits],
        ..BranchRuleset::default()
    };
    hub.hub.set_rulesets("acme/shop", &[ruleset]).unwrap();
    assert!(requires("fix/new").await, "the branch need not exist");
    let read = hub.reader.branch_rules(&name, "fix/new").await.unwrap();
    assert!(
        read.requires_signatures(),
        "rulesets are readable without contents"
    );
    hub.assert_clean();
}

#[tokio::test]
async fn snapshot_distinguishes_signed_from_unsigned_commits() {
    let hub = start_hub().await;
    let (name, commits) = (build_shop_name(), hub.writer.commits());
    let (tree, _) = hub.hub.tree_and_parents("acme/shop", hub.base.as_str()).unwrap();
    let change = [write_text("a.txt", "100644", "a\n")];
    let tree = commits.create_tree(&name, &tree, &change).await.unwrap();
    let parents = [hub.base.clone()];
    let signed = commits
        .create_commit(&name, "Add a", &tree, &parents)
        .await
        .unwrap();
    commits
        .create_branch(&name, "fix/signed", &signed.id)
        .await
        .unwrap();
    let pulls = hub.writer.pull_requests();
    let opened = pulls
        .create_pull_request(&name, "fix/signed", "main", "Add a", "Body", true)
        .await;
    let number = opened.unwrap().number;
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        conditions: vec![RulesetCondition::SignedCommits],
        ..BranchRuleset::default()
    };
    hub.hub.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let is_unsigned = async || {
        let health = hub.reader.health();
        let snapshot = health.snapshot(&name, number, SnapshotScope::default()).await;
        snapshot.unwrap().is_unsigned
    };
    assert!(!is_unsigned().await);
    hub.hub
        .commit("acme/shop", "fix/signed", "Add b", &[("b.txt", "b\n")])
        .unwrap();
    assert!(is_unsigned().await);
    hub.assert_clean();
}

/// GitHub lists the oldest commits first, so the newest one of a long pull request is on a later page.
#[tokio::test]
async fn unsigned_commit_on_second_page_counts() {
    let hub = start_hub().await;
    let (name, commits) = (build_shop_name(), hub.writer.commits());
    let (tree, _) = hub.hub.tree_and_parents("acme/shop", hub.base.as_str()).unwrap();
    let change = [write_text("a.txt", "100644", "a\n")];
    let tree = commits.create_tree(&name, &tree, &change).await.unwrap();
    let mut head = hub.base.clone();
    for number in 0..100 {
        let message = format!("Step {number}");
        let made = commits.create_commit(&name, &message, &tree, &[head]).await;
        head = made.unwrap().id;
    }
    commits.create_branch(&name, "fix/long", &head).await.unwrap();
    let opened = hub
        .writer
        .pull_requests()
        .create_pull_request(&name, "fix/long", "main", "Add a", "Body", true)
        .await;
    let number = opened.unwrap().number;
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        conditions: vec![RulesetCondition::SignedCommits],
        ..BranchRuleset::default()
    };
    hub.hub.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let is_unsigned = async || {
        let health = hub.reader.health();
        let snapshot = health.snapshot(&name, number, SnapshotScope::default()).await;
        snapshot.unwrap().is_unsigned
    };
    assert!(!is_unsigned().await, "GitHub signed all 100");
    hub.hub
        .commit("acme/shop", "fix/long", "Add b", &[("b.txt", "b\n")])
        .unwrap();
    assert!(is_unsigned().await);
    let pages = hub
        .hub
        .count_requests(|request| request.path.contains("/commits?per_page=100&page=2"));
    assert!(pages > 0, "the second page is read");
    hub.assert_clean();
}

#[tokio::test]
async fn patterns_of_bypassed_ruleset_are_left_out() {
    let hub = start_hub().await;
    let name = build_shop_name();
    let of = |kind, pattern: &str, is_bypassed| BranchRuleset {
        branches: vec!["fix/*".to_owned()],
        patterns: vec![RulesetPattern::new(kind, "starts_with", pattern)],
        is_bypassed,
        ..BranchRuleset::default()
    };
    let rulesets = [
        of("commit_message_pattern", "ENG-", false),
        of("branch_name_pattern", "team/", true),
        BranchRuleset {
            required_approvals: 2,
            conditions: vec![RulesetCondition::LinearHistory],
            ..of("commit_author_email_pattern", "bot@", false)
        },
    ];
    hub.hub.set_rulesets("acme/shop", &rulesets).unwrap();
    let bound = hub.writer.branch_rules(&name, "fix/new").await.unwrap();
    let words: Vec<String> = bound.patterns.iter().map(|found| found.pattern.words()).collect();
    assert_eq!(
        words,
        [
            "the commit message must start with `ENG-`",
            "the mail address of the author must start with `bot@`"
        ]
    );
    assert!(bound.includes(BaseCondition::LinearHistory) && !bound.requires_signatures());
    assert_eq!(bound.requirements.approvals, 2);
    // The reader does not push, so its own right does not matter.
    let read = hub.reader.branch_rules(&name, "fix/new").await.unwrap();
    assert_eq!(read.patterns.len(), 3);
    assert_eq!(hub.writer.branch_rules(&name, "main").await.unwrap().patterns, []);
    hub.assert_clean();
}

#[tokio::test]
async fn conditions_need_no_read_of_rulesets() {
    let hub = start_hub().await;
    let name = build_shop_name();
    let ruleset = BranchRuleset {
        branches: vec!["*".to_owned()],
        patterns: vec![RulesetPattern::new("commit_message_pattern", "contains", "ENG-")],
        required_approvals: 2,
        conditions: vec![RulesetCondition::SignedCommits],
        ..BranchRuleset::default()
    };
    hub.hub.set_rulesets("acme/shop", &[ruleset]).unwrap();
    let count_reads = || {
        let requests = hub.hub.requests();
        let reads = requests
            .iter()
            .filter(|request| request.path.contains("/rulesets/"));
        reads.count()
    };
    let found = hub.writer.branch_requirements(&name, "main").await.unwrap();
    assert!(found.includes(BaseCondition::SignedCommits) && found.approvals == 2);
    assert_eq!(count_reads(), 0);
    let rules = hub.writer.branch_rules(&name, "main").await.unwrap();
    assert_eq!((rules.requirements, count_reads()), (found, 1));
    hub.assert_clean();
}

#[tokio::test]
async fn merge_over_api_is_signed_with_both_parents() {
    let hub = start_hub().await;
    let name = build_shop_name();
    assert!(hub.writer.commits().are_signed_by_github(&name).await.unwrap());
    let by_user = github::GitHubWriter::new(&with_token(&hub.hub, WRITER_TOKEN)).unwrap();
    assert!(!by_user.commits().are_signed_by_github(&name).await.unwrap());
    let theirs = hub.branch("theirs");
    let (tree, _) = hub.hub.tree_and_parents("acme/shop", hub.base.as_str()).unwrap();
    let binary = hub.writer.commits().create_blob(&name, &[0, 255]).await.unwrap();
    let changes = [
        write_text("run.sh", "100755", "#!/bin/sh\n"),
        write_text("link", "120000", "run.sh"),
        TreeChange {
            path: "logo.bin".to_owned(),
            mode: "100644",
            content: TreeContent::Object(binary),
        },
    ];
    let tree = hub
        .writer
        .commits()
        .create_tree(&name, &tree, &changes)
        .await
        .unwrap();
    let parents = [hub.base.clone(), theirs.clone()];
    let message = "Merge theirs\n\nCo-authored-by: Ann <ann@acme.example>\n";
    let merge = hub
        .writer
        .commits()
        .create_commit(&name, message, &tree, &parents)
        .await
        .unwrap();
    assert!(merge.verification.verified, "{merge:?}");
    assert_eq!(
        hub.hub.tree_and_parents("acme/shop", merge.id.as_str()).unwrap(),
        (tree, parents.map(|parent| parent.to_string()).to_vec())
    );
    hub.writer
        .commits()
        .create_branch(&name, "fix/x", &hub.base)
        .await
        .unwrap();
    let again = hub
        .writer
        .commits()
        .create_branch(&name, "fix/x", &merge.id)
        .await;
    assert!(matches!(again, Err(Error::Conflict { .. })), "{again:?}");
    hub.writer
        .commits()
        .forward_branch(&name, "fix/x", &merge.id)
        .await
        .unwrap();
    let back = hub
        .writer
        .commits()
        .forward_branch(&name, "fix/x", &hub.base)
        .await;
    let Err(Error::Rejected { detail }) = back else {
        panic!("{back:?}")
    };
    assert!(detail.contains("fast forward"), "{detail}");
    let listed = hub
        .writer
        .commits()
        .branches_with_prefix(&name, "fix")
        .await
        .unwrap();
    assert_eq!(listed.get("fix/x"), Some(&merge.id));
    let absent: CommitId = "d".repeat(40).parse().unwrap();
    assert_eq!(
        hub.writer.commits().verification(&name, &absent).await.unwrap(),
        None
    );
    hub.assert_clean();
}
