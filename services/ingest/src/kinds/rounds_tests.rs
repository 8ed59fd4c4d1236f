//! Context of the work on our pull request besides the ticket.

use domain::{
    About, ChangedFile, ChecksSummary, CommitId, Conclusion, Reason, Source, Suspects, Trigger, TriggerKey,
};
use github::{Check, CheckConclusion, Review, ReviewState};

use super::tests::{
    asked_before, check, check_run, checked, commit, follows, ours, pull_request, record, repository, review,
    reviewed, rita, ticket,
};

fn changed(path: &str, patch: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        patch: patch.to_owned(),
    }
}

#[test]
fn reply_includes_thread_history_and_change() {
    let first = review(1, ReviewState::Commented, "", &[(30, None), (40, None)]);
    let by_us = |mut review: Review| {
        let us = pull_request().author;
        review.author.clone_from(&us);
        review.comments[0].author = us;
        review
    };
    let answer = by_us(review(2, ReviewState::Commented, "", &[(31, Some(30))]));
    let elsewhere = review(3, ReviewState::Commented, "", &[(41, Some(40))]);
    let reply = review(4, ReviewState::Commented, "", &[(32, Some(30))]);
    let later = review(5, ReviewState::Commented, "", &[(33, Some(30))]);
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
    let Reason::JobRequested(request) = follows(&*told[0], &facts).reason else {
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
        conclusion: Conclusion::Success,
        failed: vec![],
        unrepaired: None,
        rerun: vec![],
        suspects: Suspects::default(),
    };
    Trigger {
        ticket: ticket(),
        key: TriggerKey::new("checks"),
        at: domain::Timestamp::default(),
        source: Source::Webhook,
        actor: None,
        seen: None,
        reason: Reason::ChecksCompleted(summary),
    }
}

/// Suspects of a repair after successful checks on these heads, with the given changes since the last of them.
fn suspects(heads: &[char], since: Vec<ChangedFile>) -> Suspects {
    let red = Check {
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
    let Reason::JobRequested(request) = follows(&*check_run()[0], &facts).reason else {
        panic!("no job")
    };
    let About::Checks(checks) = request.about else {
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
        Suspects {
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
