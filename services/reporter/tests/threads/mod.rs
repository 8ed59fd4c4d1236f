//! Tests of the review threads that the reporter resolves.

use domain::{OutboundAction, OutboundOutcome, OutboundReceipt, ThreadDisposition, ThreadReply, report};
use serde_json::json;

use crate::{draft_of, rig::Rig};

const SHOP: &str = "acme/shop";
const BRANCH: &str = "fix/ENG-1-totals";

fn build_notes(change: Option<usize>) -> String {
    let line = |number| match change {
        Some(changed) if changed == number => "changed\n".to_owned(),
        _ => format!("line {number}\n"),
    };
    (1..=60).map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn thread_stays_open_unless_place_changes() {
    let mut rig = Rig::start().await;
    let here = rig.branch_off(BRANCH).await;
    let first = [
        ("notes.md", build_notes(None)),
        ("cart.py", "total = 2\n".to_owned()),
    ];
    let first = first.each_ref().map(|(path, text)| (*path, text.as_str()));
    rig.commit(&here, &first, &["-m", "fix: totals (ENG-1)"]).await;
    let reviewed = rig.packed(&here, BRANCH).await;
    rig.settle_push(2, reviewed.clone()).await;
    let opened = rig.settled(&rig.report(4, draft_of(BRANCH))).await;
    let OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(ours)) = opened else {
        panic!("{opened:?}")
    };
    let first_id = rig.github.next_id() + 1;
    let lines = [
        ("notes.md", 5, "Near the change."),
        ("notes.md", 40, "Far from it."),
        ("cart.py", 1, "In a file that stays."),
        ("notes.md", 6, "Begun by a stranger."),
    ];
    let judged = ("changes_requested", "Not yet.");
    rig.github
        .review_lines(SHOP, ours.number, "rita", judged, &lines)
        .unwrap();
    let threads: Vec<_> = (first_id..)
        .zip(lines)
        .map(|(id, (path, line, text))| {
            let stranger = json!([{"author": "mallory", "is_stranger": true, "text": "Do it."}]);
            let earlier = if text.contains("stranger") {
                stranger
            } else {
                json!([])
            };
            json!({"id": id, "path": path, "line": line, "text": text, "earlier": earlier})
        })
        .collect();
    let round = json!({"type": "review", "pull_request": ours, "head": reviewed.head, "id": 1, "author": "rita",
        "asks_for_changes": true, "body": "Not yet.", "threads": threads});
    rig.ask_for(&rig.ticket, "address_review", round).await;

    let second = [("notes.md", build_notes(Some(9)))];
    let second = second.each_ref().map(|(path, text)| (*path, text.as_str()));
    rig.commit(&here, &second, &["-m", "docs: change a line (ENG-1)"])
        .await;
    let mut push = rig.packed(&here, BRANCH).await;
    push.expected = Some(reviewed.head.clone());
    let pushed = rig.settle_push(6, push.clone()).await;
    assert!(matches!(pushed, OutboundOutcome::Done(_)), "{pushed:?}");

    let reply = |id| ThreadReply {
        id,
        disposition: ThreadDisposition::Changed,
        reply: "Done as you say.".to_owned(),
    };
    let addressed = |commit| {
        OutboundAction::ReviewAddressed(report::ReviewAddressed {
            pull_request: ours.clone(),
            reviewer: "rita".to_owned(),
            commit: Some(commit),
            summary: "What was asked for.".to_owned(),
            replies: (first_id..).take(lines.len()).map(reply).collect(),
            left: None,
            deciders: Vec::new(),
        })
    };
    let resolved = |rig: &Rig| rig.github.resolved(SHOP, ours.number).unwrap();
    // A commit that is not the pushed one proves nothing.
    rig.settled(&rig.report(8, addressed(reviewed.head.clone())))
        .await;
    assert_eq!(resolved(&rig), Vec::<u64>::new());
    rig.settled(&rig.report(10, addressed(push.head.clone()))).await;
    assert_eq!(resolved(&rig), [first_id]);
    rig.stop().await;
}
