//! Ten whole texts as people read them, as snapshots.

use domain::check::{CheckOutcome, EvidenceLevel};
use domain::{
    ChangeDescription, ChangeStatistics, ChangedFileSize, CheckRow, CriterionNote, FileNote, FileRole,
    GiveUp, Job, OutboundAction, OutboundId, PullRequestEnd, PullRequestEvent, PullRequestRef, RunEffort,
    RunId, ShownBy, StopReason, TicketKey, TicketQuestion, Timestamp, WorkHandover, report,
};
use insta::assert_snapshot;

use super::NoticeContext;
use crate::{
    board::{BoardEntry, StatusBoard},
    message::{BodyLinks, PullRequestDraft, pull_request_body, render_status},
    receipt::{ChangedFiles, EffectReceipts, TransitionResult},
};

const RUN_URL: &str = "https://jm.example/runs/{run}";

fn build_key() -> TicketKey {
    TicketKey::jira("ENG-12").unwrap()
}

fn build_run() -> RunId {
    RunId::new(build_key(), 57)
}

fn pull_request() -> PullRequestRef {
    PullRequestRef {
        repository: "acme/shop".parse().unwrap(),
        number: 5,
        url: "https://github.example/acme/shop/pull/5".to_owned(),
        branch: "fix/ENG-12-count".to_owned(),
    }
}

fn build_row(base: Option<CheckOutcome>, head: CheckOutcome) -> CheckRow {
    CheckRow {
        command: "pytest".to_owned(),
        base,
        head,
        passed: 1_204,
        broken: Vec::new(),
        missing_count: 0,
        missing: Vec::new(),
        mended: Vec::new(),
        still_failing: Vec::new(),
        flaky: Vec::new(),
        reason: String::new(),
        setup_hint: None,
    }
}

/// Describes the repair of a bug that a test of the repository shows.
fn build_description() -> ChangeDescription {
    let file = ChangedFileSize {
        path: "shop/cart.py".to_owned(),
        added: 1,
        removed: 1,
        role: FileRole::Product,
    };
    ChangeDescription {
        handover: WorkHandover {
            summary: "The total multiplies each price by its quantity.".to_owned(),
            root_cause: Some("`total` left the quantity out.".to_owned()),
            files: vec![FileNote {
                path: "shop/cart.py".to_owned(),
                change: "Multiplies by the quantity.".to_owned(),
            }],
            criteria: vec![CriterionNote {
                quote: "Three mugs cost 25.50".to_owned(),
                shown_by: "`test_every_piece_is_paid`".to_owned(),
            }],
            decisions: vec!["Discounts stay as they are.".to_owned()],
            ..WorkHandover::default()
        },
        ticket: "Cart total ignores the quantity".to_owned(),
        change: Some(ChangeStatistics::of(&[file], &["shop".to_owned()])),
        checks: vec![CheckRow {
            mended: vec!["test_every_piece_is_paid".to_owned()],
            ..build_row(Some(CheckOutcome::Red), CheckOutcome::Green)
        }],
        level: Some(EvidenceLevel::E3),
        shown_by: Some(ShownBy::OwnTests),
        effort: Some(RunEffort {
            busy_ms: 95_000,
            cost_micros: Some(412_000),
            tokens: 28_061,
            lines: 2,
        }),
        ..ChangeDescription::default()
    }
}

fn render_body(ticket: &TicketKey, description: ChangeDescription) -> String {
    let draft = PullRequestDraft {
        repository: "acme/shop".parse().unwrap(),
        branch: "fix/ENG-12-count".to_owned(),
        base_branch: "main".to_owned(),
        title: "fix(cart): Count every piece (ENG-12)".to_owned(),
        body: String::new(),
        description: Some(Box::new(description)),
    };
    let run = RunId::new(ticket.clone(), 57);
    let links = BodyLinks {
        ticket_url: Some("https://jira.example/browse/ENG-12"),
        board_url: None,
        run: Some(&run),
        run_url: Some(RUN_URL),
        guide_url: Some("https://jm.example/reviewers"),
    };
    pull_request_body(&draft, ticket, &links)
}

/// Renders the status comment that shows this report alone.
fn render_comment(action: &OutboundAction, receipts: &EffectReceipts, job: Job) -> String {
    let (ticket, run) = (build_key(), build_run());
    let context = NoticeContext {
        receipts,
        unmoved: None,
        ticket: &ticket,
        run: Some(&run),
        again: "Ready for Agent",
    };
    let entry = BoardEntry {
        report: OutboundId::notice(&ticket, 9),
        at: Timestamp::from_unix_ms(1_795_255_200_000),
        run: Some(run.clone()),
        job: Some(job),
        text: super::render_report(action, &context),
        mark: super::work_end(action, &context),
    };
    let mut board = StatusBoard::default();
    board.keep(super::finished_work(action, &context));
    board.add(entry, true);
    render_status(&board, Some(RUN_URL))
}

fn render_stop(reason: StopReason, draft: Option<PullRequestRef>) -> String {
    let stopped = OutboundAction::RunStopped(report::RunStopped {
        job: Job::Implement,
        reason,
        pull_request: draft,
        branch: None,
    });
    render_comment(&stopped, &EffectReceipts::default(), Job::Implement)
}

#[test]
fn sample_of_proven_pull_request() {
    assert_snapshot!(render_body(&build_key(), build_description()), @r"
    The total multiplies each price by its quantity.

    **Root cause.** `total` left the quantity out.

    ### Evidence

    A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.

    | check | before | with the change |
    |---|---|---|
    | `pytest` | fails | passes, 1,204 passed |

    **Failed before and passes now**

    - `test_every_piece_is_paid`

    ### Acceptance criteria

    | # | the ticket asks | shown by, as the author says |
    |---|---|---|
    | 1 | Three mugs cost 25.50 | `test_every_piece_is_paid` |

    ### Decisions

    - Discounts stay as they are.

    <details>
    <summary>Details</summary>

    Ticket: Cart total ignores the quantity

    Level of evidence: E3 (a test fails without the change and passes with it).

    **What changed**

    - `shop/cart.py`: Multiplies by the quantity. (+1 -1)

    1 file: 1 line added, 1 removed.

    It took 2 min of work and $0.42 for models.

    </details>

    ---

    For [ENG-12](https://jira.example/browse/ENG-12) · Ask for changes in a review · `/stop` `/retry` `/help` · written by Journeyman ([run](https://jm.example/runs/jira%3AENG-12%4057)) · [how this works](https://jm.example/reviewers)
    ");
}

#[test]
fn sample_of_pull_request_for_issue() {
    let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
    let description = ChangeDescription {
        handover: WorkHandover {
            summary: "Adds a mean.".to_owned(),
            not_done: vec!["The median".to_owned()],
            ..WorkHandover::default()
        },
        level: Some(EvidenceLevel::E0),
        checks: vec![CheckRow {
            passed: 0,
            reason: "`pytest` was not found".to_owned(),
            ..build_row(None, CheckOutcome::Inert)
        }],
        ignored: vec!["shop/mean.gen.py".to_owned()],
        ..ChangeDescription::default()
    };
    assert_snapshot!(render_body(&ticket, description), @r"
    Adds a mean.

    ### Evidence

    No check could be run here, so nothing was verified.

    | check | before | with the change |
    |---|---|---|
    | `pytest` | not run | cannot be run here |

    ### Not covered

    - Not done: The median
    - `shop/mean.gen.py` is not in the change: an ignore rule of the repository names it
    - `pytest` cannot be run here: `pytest` was not found

    <details>
    <summary>Details</summary>

    Level of evidence: E0 (no check could be run).

    </details>

    ---

    Fixes #7 · Ask for changes in a review · `/stop` `/retry` `/help` · written by Journeyman ([run](https://jm.example/runs/github%3Aacme%2Fshop%237%4057)) · [how this works](https://jm.example/reviewers)
    ");
}

#[test]
fn sample_of_incomplete_pull_request() {
    let description = ChangeDescription {
        cut_short: Some(StopReason::TurnLimit { turns: 60 }),
        level: Some(EvidenceLevel::E1),
        checks: vec![CheckRow {
            broken: vec!["test_total".to_owned()],
            ..build_row(Some(CheckOutcome::Timeout), CheckOutcome::Red)
        }],
        ..ChangeDescription::default()
    };
    assert_snapshot!(render_body(&build_key(), description), @r"
    **This change is not complete.** The work ended early: turn limit.

    ### Evidence

    The checks fail with the change. Before it they gave no result to compare with; no test shows that the change is right.

    | check | before | with the change |
    |---|---|---|
    | `pytest` | did not end in time | fails, 1,204 passed |

    **Fails with the change, and the check gave no result before**

    - `test_total`

    <details>
    <summary>Details</summary>

    Level of evidence: E1 (checks ran, and none shows the change itself).

    </details>

    ---

    For [ENG-12](https://jira.example/browse/ENG-12) · Ask for changes in a review · `/stop` `/retry` `/help` · written by Journeyman ([run](https://jm.example/runs/jira%3AENG-12%4057)) · [how this works](https://jm.example/reviewers)
    ");
}

#[test]
fn sample_of_opened_draft_on_ticket() {
    let opening = OutboundAction::OpenPullRequest(report::PullRequestOpening {
        repository: "acme/shop".parse().unwrap(),
        branch: "fix/ENG-12-count".to_owned(),
        base_branch: "main".to_owned(),
        title: "Count".to_owned(),
        body: String::new(),
        description: Some(Box::new(build_description())),
    });
    let mut receipts = EffectReceipts::from(pull_request());
    let changed = ChangedFiles {
        files: Vec::new(),
        total: 2,
    };
    receipts.extend(changed.into());
    assert_snapshot!(render_comment(&opening, &receipts, Job::Implement), @r"
    Draft [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>) is open. It becomes ready for review when its checks pass.

    Journeyman, run `jira:ENG-12@57` (implement), 2026-11-21 10:00 UTC, [follow it](<https://jm.example/runs/jira%3AENG-12%4057>)

    **What was done**

    The total multiplies each price by its quantity.

    **Root cause.** `total` left the quantity out.

    **Evidence.** A test that failed before passes with the change, and the others are no worse. Shown by the repository's own tests.

    [Show the change in 2 files](<https://github.example/acme/shop/pull/5/files>)
    ");
}

#[test]
fn sample_of_refused_ticket() {
    let evidence = "`test_discount` expects the rounding that the ticket calls wrong.".to_owned();
    let refused = StopReason::GivenUp {
        kind: GiveUp::SpecContradictsTests,
        evidence,
    };
    assert_snapshot!(render_stop(refused, None), @r"
    ⏹ Could not be done: what the ticket asks for contradicts tests of the repository. Say which of the two is right.

    > `test_discount` expects the rounding that the ticket calls wrong.

    Nothing was pushed. To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57` (implement), 2026-11-21 10:00 UTC, [follow it](<https://jm.example/runs/jira%3AENG-12%4057>)
    ");
}

#[test]
fn sample_of_unfinished_run() {
    let unfinished = StopReason::Unfinished {
        summary: "The count is used and the tests pass.".to_owned(),
        unsaved: Vec::new(),
    };
    assert_snapshot!(render_stop(unfinished, Some(pull_request())), @r"
    ❌ Journeyman stopped: the model did not hand over its change. The last message of the model:

    > The count is used and the tests pass.

    The draft stays open: [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>). To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57` (implement), 2026-11-21 10:00 UTC, [follow it](<https://jm.example/runs/jira%3AENG-12%4057>)
    ");
}

#[test]
fn sample_of_failing_checks() {
    let fails = StopReason::ChecksFail {
        commands: vec!["pytest".to_owned()],
        uncompared: vec!["pytest".to_owned()],
        failing: vec!["test_total".to_owned()],
        missing: Vec::new(),
    };
    assert_snapshot!(render_stop(fails, Some(pull_request())), @r"
    ❌ Journeyman ended its work, and the change is not ready. These checks do not pass with it: `pytest`.

    Without the change, `pytest` gave no result, so what fails may be older than the change.

    Fails with the change:

    - `test_total`

    The draft stays open: [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>). To try again, move the ticket back to **Ready for Agent**.

    Journeyman, run `jira:ENG-12@57` (implement), 2026-11-21 10:00 UTC, [follow it](<https://jm.example/runs/jira%3AENG-12%4057>)
    ");
}

#[test]
fn sample_of_merge_on_ticket() {
    let merged = OutboundAction::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ann".to_owned(),
        moved_to: None,
    }));
    let receipts = TransitionResult::To("Done".to_owned()).into();
    assert_snapshot!(render_comment(&merged, &receipts, Job::Finish), @r"
    ✅ `ann` merged [pull request acme/shop#5](<https://github.example/acme/shop/pull/5>).

    The ticket is now **Done**.

    Journeyman, run `jira:ENG-12@57` (finish), 2026-11-21 10:00 UTC, [follow it](<https://jm.example/runs/jira%3AENG-12%4057>)
    ");
}

#[test]
fn sample_of_question_with_options() {
    let asked = OutboundAction::QuestionAsked(report::QuestionAsked {
        questions: vec![TicketQuestion {
            text: "Are prices gross or net?".to_owned(),
            options: vec!["gross".to_owned(), "net".to_owned()],
        }],
    });
    let (ticket, run) = (build_key(), build_run());
    let context = NoticeContext {
        receipts: &EffectReceipts::default(),
        unmoved: None,
        ticket: &ticket,
        run: Some(&run),
        again: "Ready for Agent",
    };
    assert_snapshot!(super::render_comment(&asked, &context), @r"
    Journeyman needs an answer before it can continue:

    > Are prices gross or net?

    1. gross
    2. net

    Answer in a comment on this ticket, with the number of an option or in your own words; the work continues from there. Comment `/stop` to end it instead.

    Journeyman, run `jira:ENG-12@57`
    ");
}

#[test]
fn sample_of_wait_for_shared_budget() {
    let budget = domain::SharedBudget {
        of: domain::BudgetScope::Repository,
        name: "acme/shop".to_owned(),
        period: Some(domain::BudgetPeriod::Day),
        budget: domain::BudgetUnit::Tokens,
        spent: 1_912_345,
        limit: 2_000_000,
        needs: 101_000,
        resets: None,
    };
    let waits = OutboundAction::RetryScheduled(report::RetryScheduled {
        job: Job::Implement,
        reason: StopReason::SharedBudgetSpent(budget),
        attempt: 1,
        most: 5,
        due: Timestamp::parse("2026-11-24T00:02:00Z").unwrap(),
    });
    assert_snapshot!(render_comment(&waits, &EffectReceipts::default(), Job::Implement), @r"
    The implement run pauses: the repository `acme/shop` may use 2,000,000 tokens a day (UTC); used or set aside so far: 1,912,345 tokens; the next call of the model may take up to 101,000 tokens.

    It continues at 2026-11-24 00:02 UTC. Comment `/retry` once there is more, or `/stop` to end it.

    An operator can raise it (`planner.budget.repository.day.tokens`).

    Journeyman, run `jira:ENG-12@57` (implement), 2026-11-21 10:00 UTC, [follow it](<https://jm.example/runs/jira%3AENG-12%4057>)
    ");
}
