//! Tests of conversations that accept no texts: locked, moved, deleted or in an archived repository.

use domain::{
    AnyRecord, BranchRecord, ChecksConclusion, ChecksSummary, OutboundAction, OutboundOutcome,
    OutboundReceipt, OutboundRequest, PullRequestEvent, PullRequestRef, RunFence, TicketCost,
    TicketDeparture, TicketKey, report,
};
use queue::{KeyValueBucket, RecordKey};
use serde_json::Value;
use testkit::{
    github::{LockReach, StandInComment, WRITER_LOGIN},
    poll_until,
};

use crate::{
    build_work_started, read_refusal,
    rig::{DEADLINE, Rig},
};

const SHOP: &str = "acme/shop";
const BRANCH: &str = "fix/1-totals";

/// Opens an issue that is the rig's ticket from now on, and returns its number.
fn open_ticket(rig: &mut Rig) -> u64 {
    let number = rig.github.open_issue_as(SHOP, "ada", "Totals", "Wrong.").unwrap();
    rig.ticket = TicketKey::GitHub {
        repository: SHOP.parse().unwrap(),
        number,
    };
    number
}

/// Opens a pull request of ours for the rig's ticket, with the records of the reporter.
async fn open_pull_request(rig: &Rig) -> PullRequestRef {
    let head = rig.github.commit(SHOP, BRANCH, "x", &[("b.txt", "b\n")]).unwrap();
    let opened = rig
        .github
        .open_pull_request_as(SHOP, WRITER_LOGIN, BRANCH, "x", "");
    let ours = PullRequestRef {
        repository: SHOP.parse().unwrap(),
        number: opened.unwrap(),
        url: "https://github.example/acme/shop/pull/2".to_owned(),
        branch: BRANCH.to_owned(),
    };
    let record = BranchRecord {
        repository: ours.repository.clone(),
        branch: BRANCH.to_owned(),
        ticket: rig.ticket.clone(),
        run: rig.run(),
        head: head.parse().unwrap(),
        pull_request: Some(ours.clone()),
        signed: Vec::new(),
    };
    rig.queue.branches().put(&record, None).await.unwrap();
    rig.record(&rig.ticket, &ours).await;
    ours
}

fn list_our_comments(rig: &Rig, number: u64) -> Vec<StandInComment> {
    let comments = rig.github.comments(SHOP, number).into_iter();
    comments
        .filter(|comment| comment.author == WRITER_LOGIN)
        .collect()
}

fn build_cost_reply(on: Option<PullRequestRef>) -> OutboundAction {
    let cost = TicketCost::default();
    OutboundAction::CostTold(report::CostReply { on, cost })
}

async fn assert_no_dead_letter(rig: &Rig) {
    let letters = rig.queue.dead_letters().list(10).await.unwrap();
    assert!(letters.is_empty(), "{letters:?}");
}

const TOLD: OutboundOutcome = OutboundOutcome::Done(OutboundReceipt::Told);

#[tokio::test(flavor = "multi_thread")]
async fn locked_ticket_is_informed_on_pull_request() {
    let mut rig = Rig::start().await;
    let issue = open_ticket(&mut rig);
    let ours = open_pull_request(&rig).await;
    rig.github
        .lock_conversation(SHOP, issue, "ada", LockReach::Tokens)
        .unwrap();
    let status = rig.report(2, build_work_started());
    let cost = rig.report(4, build_cost_reply(None));
    let again = rig.report(6, build_work_started());
    for report in [&status, &cost, &again] {
        assert_eq!(rig.settled(report).await, TOLD);
    }
    rig.deliver_everything_again(&[&status, &cost, &again]).await;

    assert!(list_our_comments(&rig, issue).is_empty());
    let there = list_our_comments(&rig, ours.number);
    assert_eq!(there.len(), 2, "one status and one answer: {there:#?}");
    let reason = "The conversation of `acme/shop#1` is locked, so this text is here.";
    for comment in &there {
        assert!(comment.body.starts_with(reason), "{comment:?}");
    }
    assert!(there[0].body.contains("has started"), "{there:?}");
    // The ledger has the reason, and no attempt is left open.
    let key = RecordKey::effect(&rig.ticket, cost.id.as_str(), "comment");
    let table = rig.queue.table::<AnyRecord>(KeyValueBucket::Effects);
    let (row, _) = table.get(key).await.unwrap().unwrap();
    assert_eq!(row.0["receipt"]["not_possible"]["cause"], "locked");
    assert_no_dead_letter(&rig).await;

    rig.github.unlock_conversation(SHOP, issue, "ada").unwrap();
    assert_eq!(rig.settled(&rig.report(8, build_work_started())).await, TOLD);
    let here = list_our_comments(&rig, issue);
    assert_eq!(here.len(), 1, "{here:#?}");
    assert!(here[0].body.contains("has started"), "{here:?}");
    assert_eq!(list_our_comments(&rig, ours.number).len(), 2);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_ticket_without_pull_request_is_recorded() {
    let mut rig = Rig::start().await;
    let issue = open_ticket(&mut rig);
    rig.github
        .lock_conversation(SHOP, issue, "ada", LockReach::Tokens)
        .unwrap();
    for position in [2, 4] {
        let started = rig.report(position, build_work_started());
        assert_eq!(rig.settled(&started).await, TOLD);
    }
    assert!(list_our_comments(&rig, issue).is_empty());
    let refused = rig.github.requests();
    let refused = refused.iter().filter(|request| {
        request.path.ends_with(&format!("/issues/{issue}/comments")) && request.status == 403
    });
    assert_eq!(refused.count(), 2, "one for each text");
    assert_no_dead_letter(&rig).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn account_with_write_access_comments_despite_lock() {
    let mut rig = Rig::start().await;
    let issue = open_ticket(&mut rig);
    assert_eq!(rig.settled(&rig.report(2, build_work_started())).await, TOLD);
    rig.github
        .lock_conversation(SHOP, issue, "ada", LockReach::Readers)
        .unwrap();
    assert_eq!(rig.settled(&rig.report(4, build_work_started())).await, TOLD);
    assert_eq!(rig.settled(&rig.report(6, build_cost_reply(None))).await, TOLD);
    assert_eq!(list_our_comments(&rig, issue).len(), 2, "a status and an answer");
    rig.stop().await;
}

/// Sends a notice, which has no run, and waits for its outcome.
async fn settle_notice(rig: &Rig, request: OutboundAction) -> Value {
    let notice = OutboundRequest::notice(
        rig.run().call(90).into(),
        rig.ticket.clone(),
        RunFence::default(),
        bootstrap::read_wall_clock(),
        request,
    );
    rig.queue.reports().append(&notice).await.unwrap();
    let table = rig.queue.table::<AnyRecord>(KeyValueBucket::Effects);
    let key = RecordKey::outcome(&rig.ticket, &notice.id);
    let look = async || Some(Value::Object(table.get(&key).await.unwrap()?.0.0));
    poll_until("the notice is settled", DEADLINE, look).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn notice_on_moved_pull_request_is_recorded() {
    let mut rig = Rig::start().await;
    let ours = open_pull_request(&rig).await;
    rig.github
        .create_repository("acme/other", &[("a.txt", "a\n")])
        .unwrap();
    rig.github
        .transfer_thread(SHOP, ours.number, ("acme/other", 220))
        .unwrap();
    let outcome = settle_notice(&rig, build_cost_reply(Some(ours.clone()))).await;
    assert_eq!(outcome["outcome"], "done", "{outcome}");
    assert_no_dead_letter(&rig).await;

    let head = rig.github.branches(SHOP)[BRANCH].parse().unwrap();
    let passed = ChecksSummary::new(ours, head, ChecksConclusion::Success);
    let passed = OutboundAction::from(PullRequestEvent::ChecksCompleted(passed));
    let refused = read_refusal(&rig.settled(&rig.report(2, passed)).await);
    assert_eq!(refused, "acme/shop#1 moved to acme/other#220");
    rig.stop().await;
}

/// Checks that a departure gets one comment on the pull request, which has this text.
async fn check_departure(rig: &Rig, ours: &PullRequestRef, departure: TicketDeparture, text: &str) {
    let outcome = settle_notice(rig, OutboundAction::TicketLeft(departure)).await;
    assert_eq!(outcome["outcome"], "done", "{outcome}");
    let there = list_our_comments(rig, ours.number);
    assert_eq!(there.len(), 1, "{there:#?}");
    for part in [text, "This pull request stays open."] {
        assert!(there[0].body.contains(part), "{there:#?}");
    }
    assert_no_dead_letter(rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transferred_ticket_is_named_on_pull_request() {
    let mut rig = Rig::start().await;
    let issue = open_ticket(&mut rig);
    let ours = open_pull_request(&rig).await;
    // The status comment moves with the issue.
    assert_eq!(rig.settled(&rig.report(2, build_work_started())).await, TOLD);
    rig.github
        .create_repository("acme/other", &[("a.txt", "a\n")])
        .unwrap();
    let number = rig
        .github
        .transfer_issue(SHOP, issue, "acme/other", "ada")
        .unwrap();
    let to = format!("acme/other#{number}");
    let text = format!("The issue was transferred to `{to}`, so Journeyman stopped its work on it.");
    let departure = TicketDeparture::Transferred { to: Some(to) };
    check_departure(&rig, &ours, departure, &text).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_ticket_is_named_on_pull_request() {
    let mut rig = Rig::start().await;
    let issue = open_ticket(&mut rig);
    let ours = open_pull_request(&rig).await;
    rig.github.delete_issue(SHOP, issue, "ada").unwrap();
    let text = "The issue was deleted, so Journeyman stopped its work on it.";
    check_departure(&rig, &ours, TicketDeparture::Deleted, text).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn departure_without_pull_request_is_recorded() {
    let mut rig = Rig::start().await;
    let issue = open_ticket(&mut rig);
    rig.github.delete_issue(SHOP, issue, "ada").unwrap();
    let outcome = settle_notice(&rig, OutboundAction::TicketLeft(TicketDeparture::Deleted)).await;
    assert_eq!(outcome["outcome"], "done", "{outcome}");
    assert_no_dead_letter(&rig).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn push_to_archived_repository_is_refused() {
    let mut rig = Rig::start().await;
    let push = rig
        .change("fix/ENG-1-totals", &[("cart.py", "total = 2\n")])
        .await;
    rig.github.archive_repository(SHOP).unwrap();
    let refused = rig.settle_push(2, push).await;
    assert!(read_refusal(&refused).contains("archived"), "{refused:?}");
    rig.stop().await;
}
