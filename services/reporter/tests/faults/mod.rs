//! Tests with faults of GitHub and Jira: after any response, every effect exists once in the end.

mod effects;

use std::{collections::BTreeSet, time::Duration};

use domain::{
    BranchPush, BranchRecord, ChecksConclusion, ChecksSummary, OutboundAction, OutboundOutcome,
    OutboundReceipt, OutboundRequest, PullRequestEnd, PullRequestEvent, TicketKey, TriggerReason, report,
};
use queue::KeyValueBucket;
use secrecy::SecretString;
use testkit::{ServiceFault, jira, poll_until};

use crate::{
    build_work_started, draft_of,
    rig::{Rig, RigOptions, http_get},
};

const DEADLINE: Duration = Duration::from_secs(30);
const BRANCH: &str = "fix/ENG-1-totals";
/// All writes of the story at GitHub.
const AT_GITHUB: [(&str, &str); 3] = [
    ("POST", "/git-receive-pack"),
    ("POST", "/pulls"),
    ("POST", "/graphql"),
];
/// All writes of the story at Jira.
const AT_JIRA: [(&str, &str); 4] = [
    ("POST", "/transitions"),
    ("POST", "/comment"),
    ("PUT", "/comment/"),
    ("POST", "/remotelink"),
];

/// Plays the story from start to merge.
async fn play_story(rig: &Rig) -> BranchPush {
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let done = async |position, request| match rig.settled(&rig.report(position, request)).await {
        OutboundOutcome::Done(receipt) => receipt,
        other => panic!("report {position}: {other:?}"),
    };
    done(2, build_work_started()).await;
    done(4, OutboundAction::PushBranch(push.clone())).await;
    let OutboundReceipt::PullRequestOpened(pull_request) = done(6, draft_of(BRANCH)).await else {
        panic!("not opened")
    };
    let head = push.head.clone();
    done(
        8,
        OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(
            pull_request.clone(),
            head,
            ChecksConclusion::Success,
        ))),
    )
    .await;
    rig.github.merge("acme/shop", pull_request.number, "ann").unwrap();
    let by = "ann".to_owned();
    done(
        10,
        OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
            pull_request,
            by,
            moved_to: None,
        })),
    )
    .await;
    push
}

async fn assert_everything_once(rig: &Rig, push: &BranchPush, fault: &str) {
    let pull_requests = rig.github.pull_requests("acme/shop");
    assert_eq!(pull_requests.len(), 1, "{fault}: {pull_requests:?}");
    assert_eq!(pull_requests[0].head_sha, push.head.to_string(), "{fault}");
    assert!(!pull_requests[0].draft, "{fault}");
    let branches: Vec<String> = rig.github.branches("acme/shop").into_keys().collect();
    assert_eq!(branches, [BRANCH, "main"], "{fault}");
    let history = rig.jira.status_history("ENG-1");
    assert_eq!(history, ["To Do", "In Progress", "In Review", "Done"], "{fault}");
    assert_eq!(rig.jira.remote_links("ENG-1").len(), 1, "{fault}");
    let comments = async || Some(rig.jira.comments("ENG-1")).filter(|comments| comments.len() == 1);
    let comments = poll_until("one comment", DEADLINE, comments).await.unwrap();
    for words in ["merged", "All checks passed", "Draft", "has started"] {
        assert_eq!(
            comments[0].text.matches(words).count(),
            1,
            "{fault}: {comments:?}"
        );
    }
    let left = (rig.github.faults_left(), rig.jira.faults_left());
    assert_eq!(left, (0, 0), "{fault}: every write met its fault");
}

/// Plays the story; each of its writes meets the fault once.
async fn story_under(fault: impl Fn(&str) -> ServiceFault, name: &str, list_lag: Duration) {
    let mut rig = Rig::start().await;
    rig.github.set_list_lag(list_lag);
    rig.jira.set_list_lag(list_lag);
    for (method, path) in AT_GITHUB {
        // For git, a 403 means invalid credentials. Its rate limits are 429.
        let fault = fault(path);
        if !(path == "/git-receive-pack" && fault.status == 403) {
            rig.github.fail_next(fault.on(method));
        }
    }
    for (method, path) in AT_JIRA {
        // Jira never limits by 403.
        let fault = fault(path);
        if fault.status != 403 {
            rig.jira.fail_next(fault.on(method));
        }
    }
    let push = play_story(&rig).await;
    assert_everything_once(&rig, &push, name).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_writes_with_error_are_not_repeated() {
    let lag = Duration::from_millis(1500);
    tokio::join!(
        story_under(
            |path| ServiceFault::new(path, 1, 502).after_effect(),
            "502 after",
            Duration::ZERO
        ),
        story_under(
            |path| ServiceFault::new(path, 1, 504).after_effect(),
            "504 after, lists lag",
            lag
        ),
        story_under(
            |path| ServiceFault::new(path, 1, 200).after_effect().cut(),
            "cut after, lists lag",
            lag
        ),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn temporarily_refused_writes_happen_later() {
    tokio::join!(
        story_under(
            |path| ServiceFault::new(path, 1, 502),
            "502 before",
            Duration::ZERO
        ),
        story_under(
            |path| ServiceFault::new(path, 1, 403),
            "secondary rate limit",
            Duration::ZERO
        ),
        story_under(
            |path| ServiceFault::new(path, 1, 429),
            "rate limit",
            Duration::ZERO
        ),
    );
}

fn build_jira_writer(rig: &Rig) -> ::jira::JiraWriter {
    ::jira::JiraWriter::new(&::jira::Settings {
        base_url: rig.jira.url(),
        email: jira::WRITER_EMAIL.to_owned(),
        api_token: SecretString::from(jira::WRITER_API_TOKEN),
        ..::jira::Settings::default()
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_status_comment_gets_newest_text() {
    let mut rig = Rig::start().await;
    let marker = format!("status:{}", rig.ticket);
    let earlier = build_jira_writer(&rig)
        .comment(&rig.ticket, "From a reporter that is gone.", &marker)
        .await
        .unwrap();
    rig.jira.comment_as("ENG-1", "ann", &marker).unwrap();
    rig.settled(&rig.report(2, build_work_started())).await;
    let tidied = async || Some(rig.jira.comments("ENG-1")).filter(|comments| comments.len() == 2);
    poll_until("ours is there twice, or once again", DEADLINE, async || {
        let comments = rig.jira.comments("ENG-1");
        let first = comments.first()?;
        (comments.len() == 2 && first.text.contains("has started")).then_some(())
    })
    .await
    .unwrap();
    let comments = poll_until("one of ours and one of ann's", DEADLINE, tidied)
        .await
        .unwrap();
    assert_eq!(comments[0].id, earlier.to_string());
    assert_eq!(comments[1].author, "ann");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_status_comment_is_written_again() {
    let mut rig = Rig::start().await;
    rig.settled(&rig.report(2, build_work_started())).await;
    let first = rig.jira.comments("ENG-1").remove(0);
    build_jira_writer(&rig)
        .delete_comment(&rig.ticket, &::jira::JiraCommentId(first.id))
        .await
        .unwrap();
    let notice = OutboundAction::Skipped(domain::SkipReason::Label {
        label: "later".into(),
    });
    rig.settled(&rig.report(4, notice)).await;
    let comments = rig.jira.comments("ENG-1");
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].text.contains("later") && comments[0].text.contains("has started"));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_with_long_wait_holds_no_slot() {
    let mut rig = Rig::start_with(RigOptions {
        slots: 1,
        ..RigOptions::default()
    })
    .await;
    rig.github
        .commit("acme/shop", "theirs", "docs", &[("notes.md", "x\n")])
        .unwrap();
    let number = rig
        .github
        .open_pull_request_as("acme/shop", "ann", "theirs", "Other", "It is.")
        .unwrap();
    rig.jira.fail_next(
        ServiceFault::new("ENG-1/transitions", 1, 429)
            .on("POST")
            .retry_after(8),
    );
    let limited = rig.report(2, build_work_started());
    rig.queue.reports().append(&limited).await.unwrap();
    let refused = async || (rig.jira.faults_left() == 0).then_some(());
    poll_until("the first ticket is limited", DEADLINE, refused)
        .await
        .unwrap();
    // Jira refuses all requests now, and GitHub none.
    let other: TicketKey = format!("github:acme/shop#{number}").parse().unwrap();
    let run = domain::RunId::new(other.clone(), 1);
    let report = OutboundRequest {
        id: run.call(2).into(),
        run: Some(run),
        ticket: other,
        ..rig.report(0, build_work_started())
    };
    rig.queue.reports().append(&report).await.unwrap();
    let read_comment = async || rig.github.comments("acme/shop", number).pop();
    poll_until("the second ticket has a comment", DEADLINE, read_comment)
        .await
        .unwrap();
    assert!(rig.jira.comments("ENG-1").is_empty(), "the first one still waits");
    assert_eq!(
        rig.settled(&limited).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    assert_eq!(rig.jira.status_history("ENG-1"), ["To Do", "In Progress"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn same_head_is_pushed_only_once() {
    let mut rig = Rig::start().await;
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    for position in [2, 4] {
        let report = rig.report(position, OutboundAction::PushBranch(push.clone()));
        let outcome = rig.settled(&report).await;
        assert!(
            matches!(&outcome, OutboundOutcome::Done(OutboundReceipt::Pushed { branch, head, .. })
                if branch == BRANCH && *head == push.head),
            "{outcome:?}"
        );
    }
    assert_eq!(rig.count_pushes(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn github_ticket_has_one_unforgeable_status_comment() {
    let mut rig = Rig::start().await;
    rig.github
        .commit("acme/shop", "theirs", "docs", &[("notes.md", "x\n")])
        .unwrap();
    let number = rig
        .github
        .open_pull_request_as("acme/shop", "ann", "theirs", "Totals are wrong", "They are.")
        .unwrap();
    let ticket: TicketKey = format!("github:acme/shop#{number}").parse().unwrap();
    let forged = format!("Hello\n\n<!-- journeyman:effect=status:{ticket} -->");
    rig.github
        .comment_as("acme/shop", number, "mallory", &forged)
        .unwrap();
    rig.github
        .fail_next(ServiceFault::new("/comments", 1, 502).on("POST").after_effect());
    let run = domain::RunId::new(ticket.clone(), 1);
    let of = |position: u64, request| OutboundRequest {
        id: run.call(position).into(),
        run: Some(run.clone()),
        ticket: ticket.clone(),
        ..rig.report(0, request)
    };
    let skipped = OutboundAction::Skipped(domain::SkipReason::Label {
        label: "later".into(),
    });
    for report in [of(2, build_work_started()), of(4, skipped)] {
        rig.queue.reports().append(&report).await.unwrap();
    }
    let comments = poll_until("both have comments", DEADLINE, async || {
        let comments = rig.github.comments("acme/shop", number);
        let is_notice = |words: &str| comments.iter().any(|comment| comment.body.contains(words));
        (is_notice("later") && is_notice("has started")).then_some(comments)
    })
    .await
    .unwrap();
    assert_eq!(comments.len(), 2, "{comments:?}");
    assert_eq!(
        (comments[0].author.as_str(), &comments[0].body),
        ("mallory", &forged)
    );
    assert!(
        comments[1]
            .body
            .ends_with(&format!("<!-- journeyman:effect=status:{ticket} -->"))
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_report_is_dead_lettered_next_settled() {
    let mut rig = Rig::start().await;
    rig.append_garbage(b"!!!").await;
    assert_eq!(
        rig.settled(&rig.report(2, build_work_started())).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    let (_, letter) = rig.queue.dead_letters().list(10).await.unwrap().remove(0);
    assert_eq!(
        (letter.what.as_str(), letter.ticket),
        ("report", Some(rig.ticket.clone()))
    );
    assert!(!letter.reason.contains("!!!"), "{}", letter.reason);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn run_learns_of_its_unreadable_report() {
    let mut rig = Rig::start().await;
    let report = rig.report(2, build_work_started());
    let future =
        serde_json::json!({"version": 1, "id": report.id, "run": report.run, "request": "unheard of"});
    rig.append_garbage(future.to_string().as_bytes()).await;
    rig.queue.reports().wake(&rig.ticket).await.unwrap();
    let settled = async || {
        let known = rig.queue.triggers().read_after(&rig.ticket, 0).await.unwrap();
        known.into_iter().find_map(|(_, trigger)| match trigger.reason {
            TriggerReason::ReportSettled(settled) => Some(settled),
            _ => None,
        })
    };
    let settled = testkit::poll_until("the run hears of it", Duration::from_secs(20), settled)
        .await
        .unwrap();
    assert_eq!((settled.report, settled.run), (report.id, rig.run()));
    assert!(matches!(settled.outcome, OutboundOutcome::Failed { .. }));
    let read_comment = async || {
        let comments = rig.jira.comments(&rig.ticket.short());
        comments
            .into_iter()
            .find(|comment| comment.text.contains("could not read a report"))
    };
    testkit::poll_until("the ticket has a comment", Duration::from_secs(20), read_comment)
        .await
        .unwrap();
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_pack_or_unreadable_branch_fails_report() {
    let mut rig = Rig::start().await;
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let mut gone = push.clone();
    gone.pack.sha256 = "0".repeat(64);
    let outcome = rig.settle_push(2, gone).await;
    assert!(
        matches!(&outcome, OutboundOutcome::Failed { detail } if detail.contains("0000")),
        "{outcome:?}"
    );
    let report = rig.report(4, OutboundAction::PushBranch(push.clone()));
    let record = BranchRecord {
        repository: push.repository,
        branch: push.branch,
        ticket: report.ticket.clone(),
        run: report.run.clone().unwrap(),
        head: push.head,
        pull_request: None,
        signed: Vec::new(),
    };
    rig.queue.branches().put(&record, None).await.unwrap();
    let rows = rig.queue.table::<domain::AnyRecord>(KeyValueBucket::Branches);
    let (key, _) = rows.list().await.unwrap().remove(0);
    let last = rows.get(&key).await.unwrap().map(|(_, revision)| revision);
    rows.put(&key, &build_broken_record(), last).await.unwrap();
    let outcome = rig.settled(&report).await;
    assert!(matches!(outcome, OutboundOutcome::Failed { .. }), "{outcome:?}");
    assert_eq!(rig.github.branches("acme/shop").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_ledger_rows_are_rebuilt_without_doubles() {
    let mut rig = Rig::start().await;
    let done = OutboundOutcome::Done(OutboundReceipt::Told);
    assert_eq!(rig.settled(&rig.report(2, build_work_started())).await, done);
    let rows = rig.queue.table::<domain::AnyRecord>(KeyValueBucket::Effects);
    let keys: Vec<queue::RecordKey> = rows
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    for key in &keys {
        let (_, revision) = rows.get(key).await.unwrap().unwrap();
        rows.put(key, &build_broken_record(), Some(revision))
            .await
            .unwrap();
    }
    let reason = "just so".to_owned();
    let later = rig.report(
        3,
        OutboundAction::Quarantined(report::TicketQuarantined { reason }),
    );
    assert_eq!(rig.settled(&later).await, done);
    let key = rig.ticket.short();
    let comments = rig.jira.comments(&key);
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(
        comments[0].text.contains("just so") && comments[0].text.contains("started to work on"),
        "{comments:?}"
    );
    assert_eq!(rig.jira.status_history(&key), ["To Do", "In Progress"]);
    let letters = rig.queue.dead_letters().list(100).await.unwrap();
    let buried: BTreeSet<String> = letters.into_iter().map(|(_, letter)| letter.id).collect();
    assert_eq!(
        buried,
        keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>()
    );
    let broken = rows
        .list()
        .await
        .unwrap()
        .into_iter()
        .filter(|(_, row)| row.0.contains_key("broken"));
    assert_eq!(broken.count(), 0, "each is rebuilt");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_closing_other_ticket_is_refused() {
    let mut rig = Rig::start().await;
    let files = [("cart.py", "total = 2\n")];
    let push = rig.change_as(BRANCH, &files, "fix: totals\n\nCloses #99").await;
    let outcome = rig.settle_push(2, push).await;
    let detail = super::read_refusal(&outcome);
    assert!(detail.contains("Closes #99"), "{detail}");
    assert_eq!(rig.github.branches("acme/shop").len(), 1);
    rig.stop().await;
}

/// Answers of GitHub in the moments after a push, when it does not know the commits yet.
const UNSEEN_ANSWERS: [&str; 2] = [
    r#"{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "code": "custom",
        "message": "No commits between main and fix/ENG-1-totals"}]}"#,
    r#"{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "head", "code": "invalid",
        "message": "Head sha can't be blank"}, {"message": "not all refs are readable"}]}"#,
];

/// Pushes a branch, and opens a pull request that meets these answers first. Returns the outcome and the number of
/// requests to open it.
async fn open_after_answers(rig: &Rig, answers: &[&'static str]) -> (OutboundOutcome, usize) {
    let push = rig.change(BRANCH, &[("cart.py", "total = 2\n")]).await;
    let pushed = rig.settle_push(2, push).await;
    assert!(matches!(pushed, OutboundOutcome::Done(_)), "{pushed:?}");
    for &answer in answers {
        let fault = ServiceFault::new("acme/shop/pulls", 1, 422).on("POST");
        rig.github.fail_next(fault.page("application/json", answer));
    }
    let outcome = rig.settled(&rig.report(4, draft_of(BRANCH))).await;
    let requests = rig.github.requests();
    let is_opening = |request: &&testkit::RecordedRequest| {
        request.method == "POST" && request.path.ends_with("acme/shop/pulls")
    };
    (outcome, requests.iter().filter(is_opening).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn unseen_commits_delay_new_pull_request() {
    let mut rig = Rig::start().await;
    let (outcome, requests) = open_after_answers(&rig, &UNSEEN_ANSWERS).await;
    assert!(
        matches!(
            &outcome,
            OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(_))
        ),
        "{outcome:?}"
    );
    assert_eq!((requests, rig.github.faults_left()), (3, 0));
    assert_eq!(rig.github.pull_requests("acme/shop").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn persistent_unseen_commits_refuse_pull_request() {
    let mut rig = Rig::start().await;
    let (outcome, requests) = open_after_answers(&rig, &[UNSEEN_ANSWERS[0]; 4]).await;
    let refusal = super::read_refusal(&outcome);
    assert!(refusal.contains("No commits between main and"), "{refusal}");
    assert_eq!((requests, rig.github.pull_requests("acme/shop").len()), (4, 0));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_follows_nats_and_work_resumes() {
    let mut rig = Rig::start().await;
    let address = rig.address;
    let is = async |status: &str| http_get(address, "/readyz").await.contains(status).then_some(());
    poll_until("ready", DEADLINE, async || is("200").await)
        .await
        .unwrap();
    rig.nats.kill();
    poll_until("not ready", DEADLINE, async || is("503").await)
        .await
        .unwrap();
    rig.nats.restart().await.unwrap();
    poll_until("ready again", DEADLINE, async || is("200").await)
        .await
        .unwrap();
    assert_eq!(
        rig.settled(&rig.report(2, build_work_started())).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    rig.stop().await;
}

/// A record that no release can read.
fn build_broken_record() -> domain::AnyRecord {
    let fields = [("broken".to_owned(), true.into())];
    domain::AnyRecord(fields.into_iter().collect())
}
