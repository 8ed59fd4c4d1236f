//! Context of the work on our pull request besides the ticket.

use domain::{
    ChecksConclusion, ChecksSummary, CommitId, JobSubject, PullRequestFile, SuspectChanges, Trigger,
    TriggerChannel, TriggerKey, TriggerReason,
};
use github::{CheckConclusion, CommitCheck, PullRequestReview, ReviewVerdict};

use super::tests::{
    asked_before, check, check_run, checked, commit, follows, ours, pull_request, record, repository, review,
    reviewed, rita, ticket,
};

fn changed(path: &str, patch: &str) -> PullRequestFile {
    PullRequestFile {
        path: path.to_owned(),
        patch: patch.to_owned(),
    }
}

#[test]
fn reply_includes_thread_history_and_change() {
    let first = review(1, ReviewVerdict::Commented, "", &[(30, None), (40, None)]);
    let by_us = |mut review: PullRequestReview| {
        let us = pull_request().author;
        review.author.clone_from(&us);
        review.comments[0].author = us;
        review
    };
    let answer = by_us(review(2, ReviewVerdict::Commented, "", &[(31, Some(30))]));
    let elsewhere = review(3, ReviewVerdict::Commented, "", &[(41, Some(40))]);
    let reply = review(4, ReviewVerdict::Commented, "", &[(32, Some(30))]);
    let later = review(5, ReviewVerdict::Commented, "", &[(33, Some(30))]);
    let (told, _, _) = reviewed(reply.clone());
    let mut facts = super::tests::facts();
    facts.put_record(repository(), 7, Some(record()));
    facts.put_authority(rita(), true);
    facts.put_pull_request(repository(), 7, pull_request());
    facts.put_reviews(repository(), 7, vec![first, answer, elsewhere, reply, later]);
    facts.put_files(
        repository(),
        7,
        vec![changed("shop/cart.py", "@@ -1 +1 @@\n-a\n+b")],
    );
    let TriggerReason::JobRequested(request) = follows(&*told[0], &facts).reason else {
        panic!("no job")
    };
    let round = request.about.round().expect("a review");
    assert_eq!(round.files, [changed("shop/cart.py", "@@ -1 +1 @@\n-a\n+b")]);
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

fn green(head: char) -> Trigger {
    let summary = ChecksSummary {
        asked: Vec::new(),
        page: String::new(),
        pull_request: ours(),
        head: head.to_string().repeat(40).parse().expect("commit"),
        conclusion: ChecksConclusion::Success,
        failed: vec![],
        unrepaired: None,
        rerun: vec![],
        suspects: SuspectChanges::default(),
    };
    Trigger {
        ticket: ticket(),
        key: TriggerKey::new("checks"),
        at: domain::Timestamp::default(),
        source: TriggerChannel::Webhook,
        actor: None,
        seen: None,
        reason: TriggerReason::ChecksCompleted(summary),
    }
}

/// Suspects of a repair after successful checks on these heads, with the given changes since the last of them.
fn suspects(heads: &[char], since: Vec<PullRequestFile>) -> SuspectChanges {
    let red = CommitCheck {
        output_tail: "error: 1".to_owned(),
        ..check(1, Some(CheckConclusion::Failure))
    };
    let mut facts = checked(pull_request(), vec![red]);
    let history = std::iter::once(asked_before()).chain(heads.iter().map(|head| green(*head)));
    facts.put_history(ticket(), history.collect());
    facts.put_files(repository(), 7, vec![changed("whole", "@@ -0,0 +1 @@\n+x")]);
    if let Some(last) = heads.last() {
        let base: CommitId = last.to_string().repeat(40).parse().expect("commit");
        facts.put_changed_since(repository(), base, commit(), since);
    }
    let TriggerReason::JobRequested(request) = follows(&*check_run()[0], &facts).reason else {
        panic!("no job")
    };
    let JobSubject::Checks(checks) = request.about else {
        panic!("no checks")
    };
    checks.suspects
}

#[test]
fn repair_shows_changes_since_last_success() {
    let last = changed("last", "@@ -0,0 +1 @@\n+y");
    let whole = [changed("whole", "@@ -0,0 +1 @@\n+x")];
    assert_eq!(
        suspects(&[], vec![]),
        SuspectChanges {
            since: None,
            files: whole.to_vec()
        }
    );
    let found = suspects(&['a', 'b'], vec![last.clone()]);
    assert_eq!(found.since, Some("b".repeat(40).parse().expect("commit")));
    assert_eq!(found.files, [last]);
    let gone = suspects(&['a'], vec![]);
    assert_eq!(
        (gone.since, gone.files),
        (None, whole.to_vec()),
        "that commit is gone"
    );
}
