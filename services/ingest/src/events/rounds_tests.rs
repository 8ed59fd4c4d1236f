//! Context of the work on our pull request besides the ticket.

use domain::{
    ChecksConclusion, ChecksSummary, CommitId, JobSubject, PullRequestEvent, PullRequestFile, SuspectChanges,
    Trigger, TriggerChannel, TriggerKey, TriggerReason,
};
use github::{CheckConclusion, CommitCheck, PullRequestReview, ReviewVerdict};

use super::tests::{
    asked_before, build_checked_facts, build_commit_check, build_commit_id, build_pull_record,
    build_pull_reference, build_repository_name, build_review, build_rita_actor, build_ticket_key, check_run,
    expect_trigger, prepare_review, pull_request,
};
use crate::facts::EventActor;

fn build_changed_file(path: &str, patch: &str) -> PullRequestFile {
    PullRequestFile {
        path: path.to_owned(),
        patch: patch.to_owned(),
    }
}

#[test]
fn reply_includes_thread_history_and_change() {
    let first = build_review(1, ReviewVerdict::Commented, "", &[(30, None), (40, None)]);
    let by_us = |mut review: PullRequestReview| {
        let us = pull_request().author;
        review.author.clone_from(&us);
        review.comments[0].author = us;
        review
    };
    let answer = by_us(build_review(2, ReviewVerdict::Commented, "", &[(31, Some(30))]));
    let elsewhere = build_review(3, ReviewVerdict::Commented, "", &[(41, Some(40))]);
    let reply = build_review(4, ReviewVerdict::Commented, "", &[(32, Some(30))]);
    let later = build_review(5, ReviewVerdict::Commented, "", &[(33, Some(30))]);
    let (delivered, _, _) = prepare_review(reply.clone());
    let mut facts = super::tests::build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(build_rita_actor(), true);
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts.put_reviews(
        build_repository_name(),
        7,
        vec![first, answer, elsewhere, reply, later],
    );
    facts.put_files(
        build_repository_name(),
        7,
        vec![build_changed_file("shop/cart.py", "@@ -1 +1 @@\n-a\n+b")],
    );
    let TriggerReason::JobRequested(request) = expect_trigger(&*delivered[0], &facts).reason else {
        panic!("no job")
    };
    let round = request.about.round().expect("a review");
    assert_eq!(
        round.files,
        [build_changed_file("shop/cart.py", "@@ -1 +1 @@\n-a\n+b")]
    );
    let [thread] = &round.threads[..] else {
        panic!("{round:?}")
    };
    assert_eq!(
        (thread.id, thread.text.as_str(), thread.hunk.as_str()),
        (30, "Comment 32", "@@ -1 +3 @@\n+x")
    );
    let earlier: Vec<(&str, bool)> = thread
        .earlier
        .iter()
        .map(|said| (said.text.as_str(), said.is_ours))
        .collect();
    assert_eq!(earlier, [("Comment 30", false), ("Comment 31", true)]);
}

/// Review with one reply to comment 30, by this account.
fn build_reply_of(id: u64, login: &str, account: u64, by_bot: bool) -> PullRequestReview {
    let mut review = build_review(id, ReviewVerdict::Commented, "", &[(30 + id, Some(30))]);
    for comment in &mut review.comments {
        comment.author = login.to_owned();
        comment.author_id = Some(account);
        comment.by_bot = by_bot;
    }
    PullRequestReview {
        author: login.to_owned(),
        author_id: Some(account),
        by_bot,
        ..review
    }
}

#[test]
fn earlier_remarks_of_strangers_are_marked() {
    let reviews = vec![
        build_review(1, ReviewVerdict::Commented, "", &[(30, None)]),
        build_reply_of(2, "guest", 55, false),
        build_reply_of(3, "lint", 56, true),
        build_reply_of(4, "grace", 57, false),
        build_reply_of(5, "rita", 8, false),
    ];
    let (delivered, _, _) = prepare_review(reviews[4].clone());
    let build_actor = |login: &str, id: u64| EventActor::GitHub {
        repository: build_repository_name(),
        login: login.to_owned(),
        id: Some(id),
        is_bot: false,
    };
    let mut facts = super::tests::build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts.put_reviews(build_repository_name(), 7, reviews);
    facts.put_files(build_repository_name(), 7, Vec::new());
    facts.put_authority(build_rita_actor(), true);
    facts.put_authority(build_actor("grace", 57), true);
    facts.put_authority(build_actor("guest", 55), false);
    let TriggerReason::JobRequested(request) = expect_trigger(&*delivered[0], &facts).reason else {
        panic!("no job")
    };
    let round = request.about.round().expect("a review");
    let earlier: Vec<(&str, bool)> = round.threads[0]
        .earlier
        .iter()
        .map(|said| (said.text.as_str(), said.is_stranger))
        .collect();
    assert_eq!(
        earlier,
        [
            ("Comment 30", false),
            ("Comment 32", true),
            ("Comment 33", true),
            ("Comment 34", false)
        ]
    );
}

fn build_green_trigger(head: char) -> Trigger {
    let summary = ChecksSummary::new(
        build_pull_reference(),
        head.to_string().repeat(40).parse().expect("commit"),
        ChecksConclusion::Success,
    );
    Trigger {
        ticket: build_ticket_key(),
        key: TriggerKey::new("checks"),
        at: domain::Timestamp::default(),
        source: TriggerChannel::Webhook,
        actor: None,
        seen: None,
        reason: TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(summary)),
    }
}

/// Suspects of a repair after successful checks on these heads, with the given changes since the last of them.
fn collect_suspects(heads: &[char], since: Vec<PullRequestFile>) -> SuspectChanges {
    let red = CommitCheck {
        output_tail: "error: 1".to_owned(),
        ..build_commit_check(1, Some(CheckConclusion::Failure))
    };
    let mut facts = build_checked_facts(pull_request(), vec![red]);
    let history = std::iter::once(asked_before()).chain(heads.iter().map(|head| build_green_trigger(*head)));
    facts.put_history(build_ticket_key(), history.collect());
    facts.put_files(
        build_repository_name(),
        7,
        vec![build_changed_file("whole", "@@ -0,0 +1 @@\n+x")],
    );
    if let Some(last) = heads.last() {
        let base: CommitId = last.to_string().repeat(40).parse().expect("commit");
        facts.put_changed_since(build_repository_name(), base, build_commit_id(), since);
    }
    let TriggerReason::JobRequested(request) = expect_trigger(&*check_run()[0], &facts).reason else {
        panic!("no job")
    };
    let JobSubject::Checks(checks) = request.about else {
        panic!("no checks")
    };
    checks.suspects
}

#[test]
fn repair_shows_changes_since_last_success() {
    let last = build_changed_file("last", "@@ -0,0 +1 @@\n+y");
    let whole = [build_changed_file("whole", "@@ -0,0 +1 @@\n+x")];
    assert_eq!(
        collect_suspects(&[], vec![]),
        SuspectChanges {
            since: None,
            files: whole.to_vec()
        }
    );
    let found = collect_suspects(&['a', 'b'], vec![last.clone()]);
    assert_eq!(found.since, Some("b".repeat(40).parse().expect("commit")));
    assert_eq!(found.files, [last]);
    let gone = collect_suspects(&['a'], vec![]);
    assert_eq!(
        (gone.since, gone.files),
        (None, whole.to_vec()),
        "that commit is gone"
    );
}
