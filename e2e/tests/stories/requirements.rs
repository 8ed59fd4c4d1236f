//! Requirements of a repository that are read before the work: patterns, names and permissions.

use domain::{OutboundRefusal, StopReason};
use e2e::TestWorld;
use testkit::{
    fixture::REPOSITORY,
    github::{BranchRuleset, RulesetPattern, WRITER_APP_ID},
};

use crate::{comment_with, complete_ticket, end_of, list_commit_subjects, start_default_world};

/// Requires a pattern on every branch.
fn require_pattern(world: &TestWorld, pattern: RulesetPattern) {
    let ruleset = BranchRuleset {
        branches: vec!["*".to_owned()],
        patterns: vec![pattern],
        ..BranchRuleset::default()
    };
    world.github.set_rulesets(REPOSITORY, &[ruleset]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_follows_pattern_of_server() {
    let world = start_default_world().await;
    let pattern = RulesetPattern::new("commit_message_pattern", "regex", "^[A-Z]+-[0-9]+: ");
    require_pattern(&world, pattern);
    let key = complete_ticket(&world).await;
    let subjects = list_commit_subjects(&world);
    let start = format!("{key}: ");
    assert!(
        !subjects.is_empty() && subjects.iter().all(|subject| subject.starts_with(&start)),
        "{subjects:?}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unmet_branch_name_ends_before_model() {
    let world = start_default_world().await;
    require_pattern(
        &world,
        RulesetPattern::new("branch_name_pattern", "starts_with", "team/"),
    );
    let key = world.ask().unwrap();
    let end = end_of(&world, &key, 0).await;
    assert!(
        matches!(
            &end,
            StopReason::ReportRefused(OutboundRefusal::UnmetPattern { .. })
        ),
        "{end:?}"
    );
    let comment = comment_with(&world, &key, "must start with").await;
    assert!(
        comment.contains("team/") && comment.contains("branching.pattern"),
        "{comment}"
    );
    assert_eq!(world.model.calls().len(), 0, "no model was paid");
    assert_eq!(world.github.branches(REPOSITORY).len(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permission_ends_before_model() {
    let world = start_default_world().await;
    let lacking = [("contents", "write"), ("issues", "write"), ("metadata", "read")];
    world.github.set_app_permissions(WRITER_APP_ID, &lacking);
    let key = world.ask().unwrap();
    let end = end_of(&world, &key, 0).await;
    assert!(
        matches!(&end, StopReason::ReportRefused(OutboundRefusal::MissingRights { rights, .. })
            if rights == &["pull_requests:write"]),
        "{end:?}"
    );
    let comment = comment_with(&world, &key, "pull_requests:write").await;
    assert!(comment.contains("github_writer"), "{comment}");
    assert_eq!(world.model.calls().len(), 0, "no model was paid");
    // A permission that is granted later counts without a restart.
    world.github.reset_app_permissions();
    let next = world.ask().unwrap();
    assert_eq!(end_of(&world, &next, 0).await, StopReason::Completed);
    world.stop().await.unwrap();
}
