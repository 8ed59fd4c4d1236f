//! Snapshot tests of all texts.

use domain::check::{ChangeHunk, CheckOutcome, EvidenceLevel};
use domain::{
    BranchPush, BranchRef, BudgetPeriod, BudgetScope, BudgetUnit, ChangeDescription, ChangePlan,
    ChangeStatistics, ChangedFileSize, CheckRow, ChecksConclusion, ChecksSummary, DemonstrationResult,
    FailedCheck, FileNote, FileRole, Job, ObjectRef, OutboundAction, PlanStep, PullRequestEnd,
    PullRequestEvent, PullRequestRef, RepetitionKind, RunId, SharedBudget, SkipPlace, SkipReason, StopReason,
    TicketDeparture, TicketKey, Timestamp, TurnRepetition, WithdrawalReason, WorkHandover, report,
};
use insta::assert_snapshot;

use super::NoticeContext;
use crate::{
    message::*,
    receipt::{EffectReceipts, ShownChange, TransitionResult},
};

fn build_jira_key() -> TicketKey {
    "jira:ENG-12".parse().unwrap()
}

fn build_run_id() -> RunId {
    RunId::new(build_jira_key(), 57)
}

fn pull_request() -> PullRequestRef {
    PullRequestRef {
        repository: "acme/shop".parse().unwrap(),
        number: 5,
        url: "https://github.example/acme/shop/pull/5".to_owned(),
        branch: "feat/ENG-12-x".to_owned(),
    }
}

fn build_draft(title: &str, body: &str) -> PullRequestDraft {
    PullRequestDraft {
        repository: "acme/shop".parse().unwrap(),
        branch: "feat/ENG-12-x".to_owned(),
        base_branch: "main".to_owned(),
        title: title.to_owned(),
        body: body.to_owned(),
        description: None,
    }
}

fn build_opening_action() -> OutboundAction {
    OutboundAction::OpenPullRequest(report::PullRequestOpening {
        repository: "acme/shop".parse().unwrap(),
        branch: "feat/ENG-12-x".to_owned(),
        base_branch: "main".to_owned(),
        title: "Count".to_owned(),
        body: String::new(),
        description: None,
    })
}

fn render_notice(
    request: &OutboundAction,
    receipts: &EffectReceipts,
    ticket: &TicketKey,
    run: Option<&RunId>,
) -> String {
    let again = "Ready for Agent";
    super::render_comment(
        request,
        &NoticeContext {
            receipts,
            unmoved: None,
            ticket,
            run,
            again,
        },
    )
}

fn render_run_comment(say: &OutboundAction) -> String {
    render_notice(
        say,
        &EffectReceipts::default(),
        &build_jira_key(),
        Some(&build_run_id()),
    )
}

fn said_after(say: &OutboundAction, moved: TransitionResult) -> String {
    render_notice(say, &moved.into(), &build_jira_key(), Some(&build_run_id()))
}

fn build_merge_action() -> OutboundAction {
    OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ann".to_owned(),
        moved_to: None,
    }))
}

fn stopped_by(reason: StopReason) -> String {
    render_run_comment(&OutboundAction::RunStopped(report::RunStopped {
        job: Job::Implement,
        reason,
        pull_request: None,
        branch: None,
    }))
}

#[test]
fn work_start_announced() {
    let say = OutboundAction::WorkStarted(report::WorkStarted {
        job: Job::Implement,
        repository: "acme/shop".parse().unwrap(),
        begun: report::WorkOrigin::default(),
    });
    assert_snapshot!(render_run_comment(&say), @"
    Journeyman has started to work on this ticket in `acme/shop`.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn pull_request_opened() {
    let receipts = pull_request().into();
    assert_snapshot!(render_notice(&build_opening_action(), &receipts, &build_jira_key(), Some(&build_run_id())), @"
    Draft [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) is open. It becomes ready for review when its checks pass.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn ready_with_unfinished_checks() {
    let checks = ChecksSummary {
        unfinished: vec!["WIP".to_owned(), "deploy (eu)".to_owned()],
        ignored: vec!["codecov/patch".to_owned()],
        ..ChecksSummary::new(
            pull_request(),
            "a".repeat(40).parse().unwrap(),
            ChecksConclusion::Success,
        )
    };
    assert_snapshot!(render_run_comment(&OutboundAction::from(PullRequestEvent::ChecksCompleted(checks))), @"
    [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) is ready for review, although not all of its checks have ended: `WIP`, `deploy (eu)`. They made no progress for a long time and may wait for the end of the draft; the others passed. Please look at these checks, review and merge it; Journeyman never merges. Ignored by `ci.ignore_checks`: `codecov/patch`.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn ready_for_review() {
    assert_snapshot!(render_run_comment(&OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary::new(pull_request(), "a".repeat(40).parse().unwrap(), ChecksConclusion::Success)))), @"
    All checks passed: [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) is ready for review. Please review and merge it; Journeyman never merges.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn checks_failed() {
    let failed = |name: &str, url: &str| FailedCheck {
        name: name.into(),
        url: url.into(),
        log_tail: String::new(),
        class: domain::FailureClass::Real,
        step: String::new(),
        command: String::new(),
        log: String::new(),
    };
    let failed = vec![
        failed("test (3.11)", "https://ci.example/1"),
        failed("lint`s", "javascript:alert(1)"),
    ];
    assert_snapshot!(render_run_comment(&OutboundAction::from(PullRequestEvent::ChecksCompleted(ChecksSummary { failed, ..ChecksSummary::new(pull_request(), "a".repeat(40).parse().unwrap(), ChecksConclusion::Failure) }))), @"
    Checks failed on [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>). It stays a draft.

    - `test (3.11)` ([log](<https://ci.example/1>))
    - `lint's`

    Please look at the failed checks: push a fix to the branch, or close the pull request.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn repairs_that_are_used_up_call_people() {
    let red = vec![FailedCheck {
        name: "test".into(),
        url: "https://ci.example/1".into(),
        log_tail: String::new(),
        class: domain::FailureClass::Real,
        step: String::new(),
        command: String::new(),
        log: String::new(),
    }];
    let asked = ["grace".to_owned(), "not a login".to_owned()];
    let call = |failed, why, asked: &[String]| {
        checks_call(&ChecksSummary {
            failed,
            unrepaired: Some(why),
            asked: asked.to_vec(),
            ..ChecksSummary::new(
                pull_request(),
                "a".repeat(40).parse().unwrap(),
                ChecksConclusion::Failure,
            )
        })
    };
    assert_snapshot!(call(red, domain::RepairEnd::PerHead, &asked), @"
    Checks failed on [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>). It stays a draft.

    - `test` ([log](<https://ci.example/1>))

    The maximum number of repairs of this commit is reached. Please continue here, @grace, `not a login`: push a fix to the branch, ask for the work again, or close the pull request.
    ");
    let unknown = call(Vec::new(), domain::RepairEnd::Repeated, &[]);
    assert_snapshot!(unknown, @"
    Checks failed on [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>). It stays a draft.

    The same failure came again after a repair of it. Please continue here: push a fix to the branch, ask for the work again, or close the pull request.
    ");
}

#[test]
fn what_contradicts_the_ticket_calls_who_decides() {
    let reply = domain::ThreadReply {
        id: 4,
        disposition: domain::ThreadDisposition::Asked,
        reply: "The ticket asks for net totals, @rita.".to_owned(),
    };
    assert_snapshot!(thread_reply(&reply, None, &["grace".to_owned()]), @"
    This needs a decision, @grace. The ticket asks for net totals, `@rita`.

    Reply here with what is right: Journeyman follows the reply of anyone who may write to the repository.
    ");
    let mut addressed = report::ReviewAddressed {
        pull_request: pull_request(),
        reviewer: "rita".to_owned(),
        commit: None,
        summary: "One thread is open.".to_owned(),
        replies: vec![reply],
        left: None,
        deciders: Vec::new(),
    };
    assert_snapshot!(decision_call(&addressed), @"One comment of the review of [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) by `rita` cannot be settled by what this ticket says. It waits for a decision there: please reply in the thread, or say here what the ticket means.");
    addressed.deciders = vec!["grace".to_owned()];
    assert_snapshot!(render_run_comment(&addressed.into()), @"
    The review of [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) by `rita` is answered; nothing was changed. One comment waits for a decision by `grace`.

    > One thread is open.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn merged_and_moved() {
    assert_snapshot!(said_after(&build_merge_action(), TransitionResult::To("Done".to_owned())), @"
    `ann` merged [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>).

    The ticket is now **Done**.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn unmoved_ticket_suggests_another_way_to_retry() {
    let unmoved = [
        TransitionResult::Unavailable {
            wanted: "In Progress".to_owned(),
            status: "Ready for Agent".to_owned(),
            reachable: Vec::new(),
        },
        TransitionResult::Refused {
            wanted: "In Progress".to_owned(),
            detail: "a field".to_owned(),
            asks_for: Vec::new(),
        },
    ];
    let stopped = OutboundAction::RunStopped(report::RunStopped {
        job: Job::Implement,
        reason: StopReason::Superseded,
        pull_request: Some(pull_request()),
        branch: None,
    });
    for moved in unmoved {
        let text = said_after(&stopped, moved);
        assert!(
            text.contains("move the ticket to another status and then to **Ready for Agent**"),
            "{text}"
        );
    }
}

#[test]
fn closed_without_merge() {
    let say = OutboundAction::from(PullRequestEvent::Closed(PullRequestEnd {
        pull_request: pull_request(),
        by: "ann".into(),
        moved_to: None,
    }));
    assert_snapshot!(render_run_comment(&say), @"
    `ann` closed [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) without merging it, so nothing more happens here.

    To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn moved_pull_request_names_its_place() {
    let say = OutboundAction::from(PullRequestEvent::Closed(PullRequestEnd {
        pull_request: pull_request(),
        by: "GitHub".into(),
        moved_to: Some("acme/other#220".into()),
    }));
    assert_snapshot!(render_run_comment(&say), @"
    GitHub moved [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) to `acme/other#220`, so nothing more happens here.

    To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn departure_names_ways_to_continue() {
    let transferred = TicketDeparture::Transferred {
        to: Some("acme/other#220".into()),
    };
    assert_snapshot!(render_run_comment(&OutboundAction::TicketLeft(transferred)), @"
    The issue was transferred to `acme/other#220`, so Journeyman stopped its work on it.

    This pull request stays open. Journeyman still handles its checks and reviews.

    To have the work done in the new repository, ask for it there: add the label, or assign the issue. This pull request is not part of that work, so close it when it is no longer wanted.

    Journeyman, run `jira:ENG-12@57`
    ");
    assert_snapshot!(render_run_comment(&OutboundAction::TicketLeft(TicketDeparture::Deleted)), @"
    The issue was deleted, so Journeyman stopped its work on it.

    This pull request stays open. Journeyman still handles its checks and reviews.

    If the change is no longer wanted, close this pull request. To ask for other work, open a new issue.

    Journeyman, run `jira:ENG-12@57`
    ");
}

fn build_branch_push() -> BranchPush {
    BranchPush {
        scope: None,
        merge: None,
        repository: "acme/shop".parse().unwrap(),
        branch: "feat/ENG-12-x".to_owned(),
        base: "b".repeat(40).parse().unwrap(),
        head: "a".repeat(40).parse().unwrap(),
        pack: build_object_ref(),
        expected: None,
    }
}

fn build_object_ref() -> ObjectRef {
    ObjectRef {
        sha256: "0".repeat(64),
        size_bytes: 1,
    }
}

fn render_push_question(diff: &str, files: usize) -> String {
    asked_about(diff, files, None)
}

fn asked_about(diff: &str, files: usize, description: Option<Box<ChangeDescription>>) -> String {
    let excerpt = excerpt_diff(diff);
    let shown = ShownChange {
        head: build_branch_push().head,
        diff: build_object_ref(),
        files,
        excerpt: excerpt.text,
        hidden_lines: excerpt.hidden_lines,
        hidden_files: excerpt.hidden_files,
    };
    render_notice(
        &OutboundAction::DecisionNeeded(domain::PushProposal {
            push: build_branch_push(),
            description,
        }),
        &shown.into(),
        &build_jira_key(),
        Some(&build_run_id()),
    )
}

#[test]
fn decision_needed() {
    assert_snapshot!(render_push_question("--- a/x\n+++ b/x\n+```\n", 1), @r#"
    A change in 1 file for `acme/shop` is ready and waits for your decision before it is pushed: commit `aaaaaaaaaaaa` for the branch `feat/ENG-12-x`.

    ````diff
    --- a/x
    +++ b/x
    +```
    ````

    Decide in a comment: `/approve aaaaaaaaaaaa`, `/reject`, or `/feedback` and what to change. Or with `journeyman decide jira:ENG-12@57 approve --head aaaaaaaaaaaa`. An approval covers this commit only.

    Journeyman, run `jira:ENG-12@57`
    "#);
}

#[test]
fn plan_proposed() {
    let plan = ChangePlan {
        goal: "Totals count pieces.".to_owned(),
        approach: "Multiply @here before the discount.".to_owned(),
        steps: vec![PlanStep {
            what: "Multiply by the quantity.".to_owned(),
            files: vec!["shop/cart.py".to_owned()],
        }],
        tests: vec!["Two pieces of one kind".to_owned()],
        risks: Vec::new(),
        not_doing: vec!["Taxes".to_owned()],
    };
    let say = OutboundAction::PlanProposed(report::PlanProposed {
        repository: "acme/shop".parse().unwrap(),
        id: "a".repeat(40).parse().unwrap(),
        plan: Box::new(plan),
    });
    assert_snapshot!(render_notice(&say, &EffectReceipts::default(), &build_jira_key(), Some(&build_run_id())), @r#"
    A plan for `acme/shop` waits for your decision before the work begins: plan `aaaaaaaaaaaa`.

    > Totals count pieces.

    Multiply `@here` before the discount.

    1. Multiply by the quantity. (`shop/cart.py`)

    **Tests**

    - Two pieces of one kind

    **Not done**

    - Taxes

    Decide in a comment: `/approve aaaaaaaaaaaa`, `/reject`, or `/feedback` and what to change. Or with `journeyman decide jira:ENG-12@57 approve --head aaaaaaaaaaaa`. An approval covers this plan only.

    Journeyman, run `jira:ENG-12@57`
    "#);
}

fn build_description(files: &[(&str, u32, u32, FileRole)], modules: &[&str]) -> Box<ChangeDescription> {
    let note = |path: &str, change: &str| FileNote {
        path: path.to_owned(),
        change: change.to_owned(),
    };
    let files: Vec<ChangedFileSize> = files
        .iter()
        .map(|(path, added, removed, role)| ChangedFileSize {
            path: (*path).to_owned(),
            added: *added,
            removed: *removed,
            role: *role,
        })
        .collect();
    let modules: Vec<String> = modules.iter().map(|name| (*name).to_owned()).collect();
    Box::new(ChangeDescription {
        handover: WorkHandover {
            summary: "Counts every piece, cc @ann.".to_owned(),
            root_cause: Some("`total` left the quantity out.".to_owned()),
            files: vec![
                note("./shop/cart.py", "Multiplies by the quantity."),
                note("shop/tax.py", "Is not in the change."),
            ],
            ..WorkHandover::default()
        },
        ticket: "Totals are <b>wrong</b> for #3".to_owned(),
        change: Some(ChangeStatistics::of(&files, &modules)),
        checks: vec![CheckRow {
            command: "pytest".to_owned(),
            base: Some(CheckOutcome::Green),
            head: CheckOutcome::Green,
            passed: 4,
            broken: Vec::new(),
            mended: Vec::new(),
            still_failing: Vec::new(),
            flaky: vec!["test_clock".to_owned()],
            missing_count: 3,
            missing: vec!["test_tax".to_owned()],
            reason: String::new(),
            setup_hint: None,
        }],
        demonstrations: vec![
            DemonstrationResult {
                command: "shop total | tee all".to_owned(),
                prints: "37.50".to_owned(),
                before: String::new(),
                after: "total: 37.50".to_owned(),
                is_shown: true,
            },
            DemonstrationResult {
                command: "shop list".to_owned(),
                prints: "3 mugs".to_owned(),
                before: "mugs".to_owned(),
                after: "mugs".to_owned(),
                is_shown: false,
            },
        ],
        level: Some(EvidenceLevel::E1),
        unnoticed: vec![ChangeHunk {
            path: "shop/cart.py".to_owned(),
            line: 7,
            lines: 2,
            is_test: false,
        }],
        skipped_checks: vec!["make `e`".to_owned()],
        ..ChangeDescription::default()
    })
}

#[test]
fn decision_text_describes_change_before_diff() {
    let description = build_description(
        &[
            ("shop/cart.py", 3, 1, FileRole::Product),
            ("tests/test_cart.py", 8, 0, FileRole::Test),
        ],
        &["shop"],
    );
    assert_snapshot!(asked_about("--- a/x\n+++ b/x\n+1\n", 2, Some(description)), @r#"
    A change in 2 files for `acme/shop` is ready and waits for your decision before it is pushed: commit `aaaaaaaaaaaa` for the branch `feat/ENG-12-x`.

    Counts every piece, cc `@ann`.

    **Root cause.** `total` left the quantity out.

    ### Evidence

    The existing checks pass; no test shows the change itself.

    | check | before | with the change |
    |---|---|---|
    | `pytest` | passes | passes, 4 passed |

    | command | printed before | prints with the change |
    |---|---|---|
    | `shop total \| tee all` | nothing | `total: 37.50` |

    **Said by the author, and not seen when it was run with and without the change**

    - `shop list` prints `3 mugs`

    **Ran before and does not run with the change: 3 tests of `pytest`**

    - `test_tax`

    **Fails in some runs of the same files only, so it shows nothing**

    - `test_clock`

    ### Not covered

    - `shop/cart.py` line 7: no test fails without it
    - `make 'e'` did not run: the rules name more checks than a proof runs

    ### Details

    Ticket: Totals are \<b\>wrong\</b\> for `#3`

    Level of evidence: E1 (checks ran, and none shows the change itself).

    **What changed**

    - `shop/cart.py`: Multiplies by the quantity. (+3 -1)
    - `tests/test_cart.py` (+8 -0)

    2 files: 11 lines added, 1 removed.

    ```diff
    --- a/x
    +++ b/x
    +1
    ```

    Decide in a comment: `/approve aaaaaaaaaaaa`, `/reject`, or `/feedback` and what to change. Or with `journeyman decide jira:ENG-12@57 approve --head aaaaaaaaaaaa`. An approval covers this commit only.

    Journeyman, run `jira:ENG-12@57`
    "#);
}

#[test]
fn large_change_warns_without_counting_lock_files() {
    let body = |files: &[(&str, u32, u32, FileRole)], modules: &[&str]| {
        let mut draft = build_draft("x", "");
        draft.description = Some(build_description(files, modules));
        pull_request_body(&draft, &build_jira_key(), &BodyLinks::default())
    };
    let locked = [
        ("shop/cart.py", 200, 100, FileRole::Product),
        ("uv.lock", 900, 900, FileRole::Pinned),
    ];
    let small = body(&locked, &["a", "b"]);
    assert!(
        !small.contains("Large change") && !small.contains("modules:"),
        "{small}"
    );
    let large = body(&[("shop/cart.py", 200, 101, FileRole::Product)], &["a", "b", "c"]);
    assert_snapshot!(large.split("### Evidence").next().unwrap(), @r"
    Counts every piece, cc `@ann`.

    **Root cause.** `total` left the quantity out.

    **Large change:** 301 lines in 1 file, without lock files, generated files and snapshots. Please review it with extra care.

    **3 modules:** `a`, `b`, `c`. Please check that the ticket needs a change in each of them.
    ");
}

#[test]
fn long_change_counts_hidden_lines_and_links() {
    let file = |name: &str, lines: usize| {
        let added = "+123456789\n".repeat(lines);
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n{added}")
    };
    let text = render_push_question(
        &[file("a.txt", 100), file("b.txt", 700), file("c.txt", 10)].concat(),
        3,
    );
    let end = text
        .split("````\n")
        .last()
        .unwrap_or_default()
        .split("```\n")
        .last()
        .unwrap_or_default();
    assert_snapshot!(end.lines().nth(1).unwrap(), @"**100 more lines are not shown here**, of `b.txt`, `c.txt`. Read the whole change with `journeyman diff jira:ENG-12@57` (or `GET /v1/runs/{id}/diff`) before you decide.");
    let short = render_push_question(&file("a.txt", 100), 1);
    assert!(!short.contains("not shown"), "{short}");
}

#[test]
fn stopped_without_a_change() {
    let summary = "The bug is not there, @ann.\n\nSee #3.".to_owned();
    assert_snapshot!(stopped_by(StopReason::NoChange { summary }), @"
    Journeyman made no change. The reason:

    > The bug is not there, `@ann`.
    >
    > See `#3`.

    If a change is needed, add to the ticket what should be different.

    Nothing was pushed. To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn pushed_branch_without_pull_request_is_named() {
    let say = OutboundAction::RunStopped(report::RunStopped {
        job: Job::Implement,
        reason: StopReason::ReportFailed {
            detail: "GitHub denied it: the App lacks the permission pull_requests: write".to_owned(),
        },
        pull_request: None,
        branch: Some(BranchRef {
            repository: "acme/shop".parse().unwrap(),
            branch: "feat/ENG-12-x".to_owned(),
        }),
    });
    assert_snapshot!(render_run_comment(&say), @"
    Journeyman stopped: GitHub or Jira did not accept what it had to write there.

    > GitHub denied it: the App lacks the permission pull_requests: write

    The branch `feat/ENG-12-x` was pushed to `acme/shop`, but it has no pull request. Open one yourself or delete the branch. To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn stop_text_at_turn_limit_keeps_draft() {
    let say = OutboundAction::RunStopped(report::RunStopped {
        job: Job::Implement,
        reason: StopReason::TurnLimit { turns: 50 },
        pull_request: Some(pull_request()),
        branch: None,
    });
    assert_snapshot!(render_run_comment(&say), @"
    Journeyman stopped: the limit of 50 model turns was reached before the work was done.

    The draft stays open: [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>). To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn stopped_because_the_model_repeated_itself() {
    let said = |kind| {
        let repetition = TurnRepetition {
            kind,
            turns: 5,
            tools: vec!["run_command".to_owned(), "read_file".to_owned()],
        };
        let text = stopped_by(StopReason::Stuck(repetition));
        text.lines().next().unwrap_or_default().to_owned()
    };
    let sentences = [
        RepetitionKind::Same,
        RepetitionKind::Alternating,
        RepetitionKind::Malformed,
        RepetitionKind::Truncated,
        RepetitionKind::Summaries,
    ]
    .map(said);
    assert_snapshot!(sentences.join("\n"), @"
    Journeyman stopped: the model repeated itself: 5 turns in a row made the same calls (`run_command`, `read_file`) with the same results. More detail in the ticket may help it, such as where to look and how to see that the work is done.
    Journeyman stopped: the model repeated itself: 5 turns in a row went back and forth between the same calls (`run_command`, `read_file`). More detail in the ticket may help it, such as where to look and how to see that the work is done.
    Journeyman stopped: the model repeated itself: in 5 turns in a row no tool could take its calls (`run_command`, `read_file`). More detail in the ticket may help it, such as where to look and how to see that the work is done.
    Journeyman stopped: the model repeated itself: 5 replies in a row reached the token limit and called no tool. More detail in the ticket may help it, such as where to look and how to see that the work is done.
    Journeyman stopped: the model repeated itself: it read so much in 5 turns that they would have to be summed up again, and changed no file. More detail in the ticket may help it, such as where to look and how to see that the work is done.
    ");
}

#[test]
fn stopped_because_a_budget_is_spent() {
    let said = |budget, spent, limit| {
        let text = stopped_by(StopReason::BudgetSpent { budget, spent, limit });
        text.lines().next().unwrap_or_default().to_owned()
    };
    let sentences = [
        said(BudgetUnit::Cost, 1_812_345, 2_000_000),
        said(BudgetUnit::Tokens, 910, 1_000),
        said(BudgetUnit::Minutes, 81, 90),
    ];
    assert_snapshot!(sentences.join("\n"), @"
    Journeyman stopped: the run has used $1.82 of $2.00, and a tenth is kept for what comes after the work. To give the next run more, raise `agent.budget.cost_usd` in the repository's rules; an operator may have set a ceiling (`planner.budget_ceiling.cost_usd`).
    Journeyman stopped: the run has used 910 of 1,000 tokens, and a tenth is kept for what comes after the work. To give the next run more, raise `agent.budget.tokens` in the repository's rules; an operator may have set a ceiling (`planner.budget_ceiling.tokens`).
    Journeyman stopped: the run has used 81 of 90 minutes, and a tenth is kept for what comes after the work. To give the next run more, raise `agent.budget.minutes` in the repository's rules; an operator may have set a ceiling (`planner.budget_ceiling.minutes`).
    ");
}

#[test]
fn stop_text_names_exhausted_shared_budget() {
    let shared = |of, name: &str, period, budget, resets: Option<&str>| SharedBudget {
        of,
        name: name.to_owned(),
        period,
        budget,
        spent: 1_912_345,
        limit: 2_000_000,
        needs: 101_000,
        resets: resets.and_then(Timestamp::parse),
    };
    let day = Some(BudgetPeriod::Day);
    let stopped = [
        shared(BudgetScope::Ticket, "jira:ENG-12", None, BudgetUnit::Cost, None),
        shared(
            BudgetScope::Repository,
            "acme/shop",
            day,
            BudgetUnit::Tokens,
            Some("2026-11-24T00:00:00Z"),
        ),
        shared(
            BudgetScope::Organization,
            "acme",
            Some(BudgetPeriod::Month),
            BudgetUnit::Cost,
            None,
        ),
    ]
    .map(|budget| stopped_by(StopReason::SharedBudgetSpent(budget)));
    assert_snapshot!(stopped.join("\n"), @"
    Journeyman stopped: this ticket may use $2.00 in all its runs; used or set aside so far: $1.92; the next call of the model may take up to $0.11; a tenth is kept for what comes after the work.

    To give the ticket more, raise `agent.budget.ticket.cost_usd` in the repository's rules; an operator may have set a ceiling (`planner.budget_ceiling.ticket.cost_usd`).

    Nothing was pushed. To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    Journeyman stopped: the repository `acme/shop` may use 2,000,000 tokens a day (UTC); used or set aside so far: 1,912,345 tokens; the next call of the model may take up to 101,000 tokens.

    There is room again from 2026-11-24 00:00 UTC on.

    An operator can raise it (`planner.budget.repository.day.tokens`).

    Nothing was pushed. To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    Journeyman stopped: the organization `acme` may use $2.00 a month (UTC); used or set aside so far: $1.92; the next call of the model may take up to $0.11.

    An operator can raise it (`planner.budget.organization.month.cost_usd`).

    Nothing was pushed. To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn waiting_run_names_time_it_continues() {
    let budget = SharedBudget {
        of: BudgetScope::Repository,
        name: "acme/shop".to_owned(),
        period: Some(BudgetPeriod::Day),
        budget: BudgetUnit::Tokens,
        spent: 990,
        limit: 1_000,
        needs: 40,
        resets: Timestamp::parse("2026-11-24T00:00:00Z"),
    };
    let say = OutboundAction::RetryScheduled(report::RetryScheduled {
        job: Job::Implement,
        reason: StopReason::SharedBudgetSpent(budget),
        attempt: 1,
        most: 5,
        due: Timestamp::parse("2026-11-24T00:02:00Z").unwrap_or_default(),
    });
    assert_snapshot!(render_run_comment(&say), @"
    The implement run pauses: the repository `acme/shop` may use 1,000 tokens a day (UTC); used or set aside so far: 990 tokens; the next call of the model may take up to 40 tokens.

    It continues at 2026-11-24 00:02 UTC. Comment `/retry` once there is more, or `/stop` to end it.

    An operator can raise it (`planner.budget.repository.day.tokens`).

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn each_stop_reason_has_first_sentence() {
    let by = || "ann".to_owned();
    let detail = || "503 overloaded".to_owned();
    let first = |reason| stopped_by(reason).lines().next().unwrap_or_default().to_owned();
    let sentences: Vec<String> = [
        StopReason::Completed,
        StopReason::ChecksFail {
            commands: vec!["pytest".to_owned()],
            uncompared: Vec::new(),
            failing: vec!["test_a".to_owned()],
            missing: vec!["test_b".to_owned()],
        },
        StopReason::Stopped { by: by() },
        StopReason::Rejected { by: by() },
        StopReason::ContextTooLong,
        StopReason::ModelFailed { detail: detail() },
        StopReason::WorkspaceUnavailable { detail: detail() },
        StopReason::SetupFailed { log_tail: detail() },
        StopReason::ReportRefused(domain::OutboundRefusal::Outside { detail: detail() }),
        StopReason::Superseded,
        StopReason::Withdrawn {
            why: WithdrawalReason::Merged,
        },
        StopReason::Withdrawn {
            why: WithdrawalReason::Closed,
        },
        StopReason::Withdrawn {
            why: WithdrawalReason::Unrequested,
        },
        StopReason::TicketLeft(TicketDeparture::Transferred {
            to: Some("acme/other#220".to_owned()),
        }),
        StopReason::TicketLeft(TicketDeparture::Transferred { to: None }),
        StopReason::TicketLeft(TicketDeparture::Deleted),
    ]
    .map(first)
    .into();
    assert_snapshot!(sentences.join("\n"), @"
    The implement run is complete.
    Journeyman ended its work, and the change is not ready. These checks do not pass with it: `pytest`.
    `ann` stopped the run.
    `ann` rejected the change, so it was not pushed.
    Journeyman stopped: the conversation with the model became too long for it and could not be made shorter. A smaller ticket, or a model with a larger window, may help.
    Journeyman stopped: the model provider failed (`503 overloaded`). An operator must look into it.
    Journeyman stopped: no workspace could be opened (`503 overloaded`).
    Journeyman stopped: the repository's setup commands failed. The end of their log:
    Journeyman stopped: the change was refused.
    A newer request took this run's place.
    The pull request was merged, so no review follows.
    The pull request was closed, so no review follows.
    The review is not asked for any more, so none follows.
    The issue was transferred to `acme/other#220`, so Journeyman stopped its work on it.
    The issue was transferred to a repository that Journeyman does not see, so Journeyman stopped its work on it.
    The issue was deleted, so Journeyman stopped its work on it.
    ");
}

#[test]
fn skip_reasons_rendered() {
    let skipped = |reason| {
        render_notice(
            &OutboundAction::Skipped(reason),
            &EffectReceipts::default(),
            &build_jira_key(),
            None,
        )
    };
    let comments = [
        skipped(SkipReason::Phrase {
            phrase: "[AGENT-SKIP]".into(),
            place: SkipPlace::Comment {
                author: "@ann".to_owned(),
            },
        }),
        skipped(SkipReason::Label {
            label: "skip-dispatch".into(),
        }),
        skipped(SkipReason::PullRequestExists {
            url: "https://github.example/x/pull/1".into(),
            author: "bob".into(),
        }),
        skipped(SkipReason::NotAllowed {
            actor: "@eve".into(),
            group: "agents".into(),
            role: String::new(),
        }),
        skipped(SkipReason::NotAllowed {
            actor: "ann".into(),
            group: String::new(),
            role: String::new(),
        }),
        skipped(SkipReason::NotAllowed {
            actor: "ann".into(),
            group: "agents".into(),
            role: "Developers".into(),
        }),
        skipped(SkipReason::Bot {
            actor: "tidy[bot]".into(),
        }),
        skipped(SkipReason::NoWritePermission { actor: "@eve".into() }),
        skipped(SkipReason::StatusLeft {
            wanted: "Ready".into(),
            status: "Done".into(),
        }),
        skipped(SkipReason::TextChanged { by: "eve".into() }),
        skipped(SkipReason::Unreadable),
    ];
    assert_snapshot!(comments.join("\n"), @r#"
    Journeyman leaves this ticket alone: `[AGENT-SKIP]` is in a comment by `@ann`. Remove it first. To try again, move the ticket back to **Ready for Agent**.
    Journeyman leaves this ticket alone: it has the label `skip-dispatch`. Remove the label first. To try again, move the ticket back to **Ready for Agent**.
    Journeyman leaves this ticket alone: [a pull request](<https://github.example/x/pull/1>) by `bob` is open for it. Close that one first. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work that `@eve` asked for: only members of the Jira group **agents** may ask for it. A member can start it. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work that `ann` asked for: no group may ask for work yet. An operator names the Jira group whose members may ask for work in the setting `ingest.jira_trigger_group`. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work that `ann` asked for: only members of the Jira group **agents** and people with the role **Developers** in this project may ask for it. A member can start it. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work that `tidy[bot]` asked for: that is a program, and the rules of this repository do not name it in `review.agents`. A person can start it. Journeyman does not reply to this program here again. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work that `@eve` asked for: only people with write permission in this repository may ask for it. One of them can start it. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work: the ticket was moved to **Ready**, and it is in **Done** now. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work: `eve`, who is not allowed to ask for work, changed the ticket's text after it was asked for. Read the text again. To try again, move the ticket back to **Ready for Agent**.
    Journeyman did not start work: Jira's answer about this ticket could not be read. Make the text simpler, for example with fewer nested lists. To try again, move the ticket back to **Ready for Agent**.
    "#);
}

#[test]
fn pull_request_body_names_its_origin() {
    let draft = build_draft(
        "fix:  round\ttotals\n(ENG-12)",
        "Rounds totals.\n\n<!-- hidden -->\nCloses #99, cc @ann",
    );
    assert_snapshot!(pull_request_title(&draft), @"fix: round totals (ENG-12)");
    let run = build_run_id();
    let links = BodyLinks {
        ticket_url: Some("https://jira.example/browse/ENG-12"),
        run: Some(&run),
        ..BodyLinks::default()
    };
    let body = pull_request_body(&draft, &build_jira_key(), &links);
    assert_snapshot!(body, @"
    Rounds totals.

    Closes `#99`, cc `@ann`

    ---

    For [ENG-12](https://jira.example/browse/ENG-12) · Ask for changes in a review · `/stop` `/retry` `/help` · written by Journeyman (run `jira:ENG-12@57`)
    ");
    let links = BodyLinks {
        run_url: Some("https://jm.example/runs/{run}"),
        guide_url: Some("https://jm.example/reviewers"),
        ..links
    };
    let body = pull_request_body(&draft, &build_jira_key(), &links);
    assert_snapshot!(body.lines().last().unwrap_or_default(), @"For [ENG-12](https://jira.example/browse/ENG-12) · Ask for changes in a review · `/stop` `/retry` `/help` · written by Journeyman ([run](https://jm.example/runs/jira%3AENG-12%4057)) · [how this works](https://jm.example/reviewers)");
    let links = BodyLinks {
        run_url: Some("javascript:{run}"),
        guide_url: Some("/reviewers"),
        ..links
    };
    let body = pull_request_body(&draft, &build_jira_key(), &links);
    assert!(
        !body.contains("javascript") && !body.contains("/reviewers"),
        "{body}"
    );
}

#[test]
fn template_replaces_form_of_author() {
    let mut draft = build_draft("x", "");
    let mut description = build_description(&[("shop/cart.py", 3, 1, FileRole::Product)], &["shop"]);
    description.checks.clear();
    description.demonstrations.clear();
    description.handover.files.clear();
    description.handover.decisions = vec!["Discounts stay.".to_owned()];
    description.handover.not_done = vec!["Taxes".to_owned()];
    description.template = "## What?\n\nCounts pieces.\n\n- [x] Tests added".to_owned();
    draft.description = Some(description);
    let body = pull_request_body(&draft, &build_jira_key(), &BodyLinks::default());
    assert_snapshot!(body, @r"
    ## What?

    Counts pieces.

    - [x] Tests added

    The text above is by the author of the change. The evidence below is from checks that Journeyman ran.

    ### Evidence

    The existing checks pass; no test shows the change itself.

    ### Not covered

    - Not done: Taxes
    - `shop/cart.py` line 7: no test fails without it
    - `make 'e'` did not run: the rules name more checks than a proof runs

    <details>
    <summary>Details</summary>

    Ticket: Totals are \<b\>wrong\</b\> for `#3`

    Level of evidence: E1 (checks ran, and none shows the change itself).

    Counts every piece, cc `@ann`.

    **Root cause.** `total` left the quantity out.

    ### Decisions

    - Discounts stay.

    **What changed**

    - `shop/cart.py` (+3 -1)

    1 file: 3 lines added, 1 removed.

    </details>

    ---

    For ENG-12 · Ask for changes in a review · `/stop` `/retry` `/help` · written by Journeyman
    ");
}

#[test]
fn folder_text_has_no_markup_for_github() {
    let mut draft = build_draft("x", "");
    draft.description = Some(build_description(&[], &[]));
    let ticket: TicketKey = "folder:local#3".parse().unwrap();
    let body = pull_request_body(&draft, &ticket, &BodyLinks::default());
    assert!(
        !body.contains("<details>") && body.contains("### Details"),
        "{body}"
    );
    assert!(!body.contains("/stop"), "no review: {body}");
}

#[test]
fn titles_and_bodies_stay_within_the_limits() {
    // A sanitized reference is longer than its source.
    for text in ["y".repeat(200_000), "#1 ".repeat(60_000)] {
        let draft = build_draft(&"x".repeat(500), &text);
        assert_eq!(pull_request_title(&draft).chars().count(), 256);
        let body = pull_request_body(&draft, &build_jira_key(), &BodyLinks::default());
        let length = body.chars().count();
        assert!(length < 65_536, "{length}");
    }
}

#[test]
fn retry_text_names_time_and_shortcut() {
    let detail = "the model provider is overloaded or in trouble (529)".to_owned();
    let say = OutboundAction::RetryScheduled(report::RetryScheduled {
        job: Job::Implement,
        reason: StopReason::ModelFailed { detail },
        attempt: 2,
        most: 5,
        due: domain::Timestamp::from_unix_ms(1_700_000_000_000),
    });
    assert_snapshot!(render_run_comment(&say), @"
    The implement run pauses: the model provider failed (`the model provider is overloaded or in trouble (529)`).

    It continues at 2023-11-14 22:13 UTC (retry 2 of 5). Comment `/retry` to continue now, or `/stop` to end it.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn quarantine_text_names_reason_and_way_out() {
    let reason = "6 planners in a row took the ticket over and made no progress".to_owned();
    assert_snapshot!(render_notice(&OutboundAction::Quarantined(report::TicketQuarantined { reason }), &EffectReceipts::default(), &build_jira_key(), None), @"
    Journeyman has paused this ticket: `6 planners in a row took the ticket over and made no progress`. Nothing more happens here until an operator reviews it.

    To try again from where it stands, comment `/retry`.
    ");
}

#[test]
fn unreadable_record_text_names_next_step() {
    let what = domain::RecordKind::Trigger;
    assert_snapshot!(render_notice(&OutboundAction::Unreadable(report::UnreadableRecordNotice { what, is_poison: false }), &EffectReceipts::default(), &build_jira_key(), None), @"
    Journeyman could not read a `trigger` about this ticket and has set it aside.

    Everything else continues. If something that you asked for does not happen, ask for it again; an operator finds what was set aside among the dead letters (`journeyman dead list`).
    ");
}

#[test]
fn poison_is_set_aside_with_its_attempts() {
    let what = domain::RecordKind::Report;
    let request = OutboundAction::Unreadable(report::UnreadableRecordNotice {
        what,
        is_poison: true,
    });
    assert_snapshot!(render_notice(&request, &EffectReceipts::default(), &build_jira_key(), None), @"
    Journeyman failed to handle a `report` about this ticket five times and has set it aside.

    Everything else continues. If something that you asked for does not happen, ask for it again; an operator finds what was set aside among the dead letters (`journeyman dead list`).
    ");
}

#[test]
fn skip_text_names_reason_and_next_step() {
    let texts = [
        credentials_refused(),
        unreadable_request(),
        no_comment_of_github(),
        no_run(),
        nothing_to_link(),
        no_difference(),
        work_was_cut(),
        poison_request(),
    ];
    assert_snapshot!(texts.join("\n"), @"
    the reporter's credentials are refused; an operator must look into it
    the reporter could not read what it was asked for
    the ledger names no comment of GitHub
    a push needs a run
    there is no pull request to link
    the inspector gave no difference
    the work on the repository was cut
    the reporter stopped unexpectedly at each of five attempts; an operator finds the request among the dead letters (`journeyman dead list`)
    ");
}
