//! Tests of pages with hostile text in every field.

use api::types::*;
use domain::{
    ChangePlan, CommitId, DecisionVerdict, Dollars, Fact, GateDecision, Job, JournalEntry, PlanStep,
    PoolFreshness, RunFence, StopReason, Timestamp,
};
use maud::Markup;

use super::{
    approval, costs, dead_letters, health, overview, pools, rules, run, run_events, run_pages, runs, ticket,
    tickets,
};
use crate::layout::{ConsolePage, NavigationEntry, PageFrame};

/// Closes open markup, contains a script and an htmx attribute, and reverses the order of letters.
pub(super) const HOSTILE: &str =
    "\"'></pre></textarea><script>alert(1)</script><a hx-get=/x href=javascript:alert(1)>\u{202e}x";

pub(super) fn build_hostile_text() -> String {
    HOSTILE.to_owned()
}

/// Renders the page and asserts that the hostile text is not markup.
pub(super) fn render_safe_page(body: Markup) -> String {
    let page = ConsolePage::new(NavigationEntry::Runs, "Title", body)
        .markup(&PageFrame::default())
        .into_string();
    let main = page.split("<main id=\"main\">").nth(1).unwrap();
    for wrong in [
        "<script",
        "<a hx-get",
        "href=\"javascript",
        "</pre></textarea",
        "\u{202e}",
    ] {
        assert!(!main.contains(wrong), "{wrong} in {main}");
    }
    main.replace("><", ">\n<")
}

/// Time of every page of these tests, some minutes after the start of the runs.
pub(super) fn build_page_time() -> Timestamp {
    Timestamp::parse("2026-11-25T09:45:00Z").unwrap()
}

/// Overview with hostile text in every field that people or models write.
fn build_overview_view() -> OverviewView {
    OverviewView {
        repository: Some(build_hostile_text()),
        title: build_hostile_text(),
        actor: Some(build_hostile_text()),
        phase: Some(build_hostile_text()),
        questions: vec![QuestionView {
            text: build_hostile_text(),
            options: vec![build_hostile_text()],
        }],
        updated_at: "2026-11-25T09:40:00Z".to_owned(),
        cost_usd: Dollars::from_micros(120_000),
        tokens: 1_500,
        evidence: Some("E3".to_owned()),
        pull_request_lines: vec![build_pull_request_line(domain::PullRequestStatus::Merged)],
        ..OverviewView::default()
    }
}

fn build_pull_request_line(status: domain::PullRequestStatus) -> PullRequestLine {
    PullRequestLine {
        repository: build_hostile_text(),
        number: 7,
        url: "javascript:alert(1)".to_owned(),
        status: Some(status),
    }
}

fn build_ticket_summary(standing: TicketStanding) -> TicketSummary {
    let mut run = build_run_view(RunState::Finished, None, Some(gave_up()));
    run.overview = Some(build_overview_view());
    TicketSummary {
        ticket: build_hostile_text(),
        title: build_hostile_text(),
        repository: Some(build_hostile_text()),
        standing,
        last_run: run,
        runs: 2,
        pull_requests: vec![build_pull_request_line(domain::PullRequestStatus::Open)],
        cost_usd: Dollars::from_micros(240_000),
        unpriced: 1,
        evidence: Some("E1".to_owned()),
        actor: Some(build_hostile_text()),
        started_at: "2026-11-25T09:30:12.345Z".to_owned(),
        finished_at: Some("2026-11-25T09:32:12.345Z".to_owned()),
        quarantined: None,
    }
}

pub(super) fn build_run_view(status: RunState, waits_for: Option<&str>, stop: Option<StopReason>) -> RunView {
    RunView {
        id: "jira:ENG-12@57".to_owned(),
        ticket: "jira:ENG-12".to_owned(),
        job: Job::Implement,
        status,
        waits_for: waits_for.map(ToOwned::to_owned),
        finished_at: stop.is_some().then(build_hostile_text),
        stop,
        started_at: "2026-11-25T09:30:12.345Z".to_owned(),
        turns: 7,
        repair: None,
        overview: None,
    }
}

pub(super) fn gave_up() -> StopReason {
    StopReason::GivenUp {
        kind: domain::GiveUp::Blocked,
        evidence: build_hostile_text(),
    }
}

fn build_dead_letter(what: &str) -> DeadView {
    DeadView {
        sequence: 3,
        what: what.to_owned(),
        id: build_hostile_text(),
        ticket: Some(build_hostile_text()),
        reason: build_hostile_text(),
        at: build_hostile_text(),
    }
}

fn some_rules() -> RulesView {
    RulesView {
        repositories: vec![RepositoryView {
            repository: build_hostile_text(),
            project: build_hostile_text(),
            status: build_hostile_text(),
            problem: Some(build_hostile_text()),
        }],
        problems: vec![RulesProblemView {
            file: build_hostile_text(),
            line: 4,
            key: build_hostile_text(),
            problem: build_hostile_text(),
        }],
    }
}

fn build_stop_view() -> StopAllView {
    StopAllView {
        on: true,
        by: Some(build_hostile_text()),
        at: Some(build_hostile_text()),
    }
}

fn build_credential_view(is_due: bool) -> CredentialView {
    CredentialView {
        kind: build_hostile_text(),
        instance: Some(build_hostile_text()),
        ends: "2027-01-31T00:00:00Z".to_owned(),
        days: 10,
        is_due,
    }
}

pub(super) fn build_journal_entries(facts: impl IntoIterator<Item = Fact>) -> Vec<JournalEntry> {
    let entry = |(position, fact)| JournalEntry {
        position,
        nonce: build_hostile_text(),
        fence: RunFence::default(),
        at: Timestamp::from_unix_ms(1_764_000_000_000),
        fact,
    };
    (0..).zip(facts).map(entry).collect()
}

fn build_head_commit() -> CommitId {
    "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d".parse().unwrap()
}

pub(super) fn build_decided_fact() -> Fact {
    Fact::Decided {
        decision: GateDecision {
            run: "jira:ENG-12@57".parse().unwrap(),
            head: build_head_commit(),
            verdict: DecisionVerdict::Revise,
            feedback: build_hostile_text(),
        },
        by: build_hostile_text(),
    }
}

fn build_activity_view() -> ActivityView {
    let total = ActivityTotal {
        merged: 3,
        closed: 1,
        failed: 1,
        runs: 9,
        cost_usd: Dollars::from_micros(1_250_000),
        unpriced: 0,
        lead_ms: Some(7_500_000),
    };
    ActivityView {
        days: vec![
            ActivityDay {
                day: "2026-11-24".to_owned(),
                total: ActivityTotal::default(),
            },
            ActivityDay {
                day: "2026-11-25".to_owned(),
                total,
            },
        ],
        total,
    }
}

fn build_full_overview() -> overview::OverviewReadings {
    let with_overview = |mut run: RunView| {
        run.overview = Some(build_overview_view());
        run
    };
    overview::OverviewReadings {
        waiting: vec![
            build_run_view(RunState::Parked, Some("decision"), None),
            with_overview(build_run_view(RunState::Parked, Some("answer"), None)),
        ],
        live: vec![with_overview(build_run_view(RunState::Active, None, None))],
        failed: vec![build_ticket_summary(TicketStanding::Failed)],
        activity: Some(build_activity_view()),
        health: overview::HealthSigns {
            stop_all: build_stop_view(),
            letters: vec![build_dead_letter("ticket"), build_dead_letter("delivery")],
            rules: Some(some_rules()),
            credentials: vec![build_credential_view(true), build_credential_view(false)],
            pools: vec![a_pool(PoolFreshness::Old)],
            unknown: vec!["rules: the API answered 503".to_owned()],
        },
    }
}

#[test]
fn overview_names_questions_results_and_problems() {
    let page = render_safe_page(overview::render_overview(
        &build_full_overview(),
        build_page_time(),
    ));
    for part in [
        "Needs you (4)",
        ">Decision<",
        ">Question<",
        ">Failed<",
        ">Quarantined<",
        "Running now (1)",
        "Approve its change?",
        "began to wait <time datetime=\"2026-11-25T09:40:00Z\" title=\"2026-11-25 09:40:00 UTC\">5 min ago</time>",
        "for 14 min",
        ">60 %<",
        "$1.25",
        "2 h 5 min",
        "Something is wrong",
        "2 dead letters",
        "1 problem<",
        "takes no work",
        "Not known: rules: the API answered 503",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let (longer, shorter) = (page.find(">Decision<").unwrap(), page.find(">Question<").unwrap());
    assert!(longer < shorter, "the longest wait comes first: {page}");
    assert_eq!(
        page.matches("in 10 days").count(),
        1,
        "only a due credential is named: {page}"
    );
}

#[test]
fn quiet_overview_shows_no_health_and_next_steps() {
    let page = render_safe_page(overview::render_overview(
        &overview::OverviewReadings::default(),
        build_page_time(),
    ));
    assert!(!page.contains("Something is wrong"), "{page}");
    for part in ["Nothing needs you.", "No run works now.", "process-ticket"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let unused = overview::OverviewReadings {
        activity: Some(ActivityView::default()),
        ..overview::OverviewReadings::default()
    };
    let page = render_safe_page(overview::render_overview(&unused, build_page_time()));
    assert!(
        page.contains("No run in these days.") && !page.contains("role=\"img\""),
        "{page}"
    );
}

#[test]
fn ticket_list_has_every_column() {
    let filter = tickets::TicketFilter {
        q: build_hostile_text(),
        ..tickets::TicketFilter::default()
    };
    let listed = [
        build_ticket_summary(TicketStanding::Failed),
        build_ticket_summary(TicketStanding::NeedsPerson),
    ];
    let page = render_safe_page(tickets::render_tickets(&filter, &listed, true, build_page_time()));
    for part in [
        "2 tickets, the newest request first",
        ">failed<",
        ">needs a person<",
        "#7",
        ">open<",
        "checked, no test shows it",
        "$0.24 and 1 reply without a known price",
        "2 min 0 s",
        "14 min ago",
        "rel=\"next\"",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn runs_are_listed_with_their_filter() {
    let filter = runs::RunFilter {
        ticket: build_hostile_text(),
        repository: build_hostile_text(),
        status: "finished".to_owned(),
        stop: "failed".to_owned(),
        ..runs::RunFilter::default()
    };
    let mut failed = build_run_view(RunState::Finished, None, Some(gave_up()));
    failed.finished_at = Some("2026-11-25T09:31:12.345Z".to_owned());
    failed.overview = Some(build_overview_view());
    let listed = [failed, build_run_view(RunState::Active, None, None)];
    let page = render_safe_page(runs::render_runs(&filter, &listed, true, build_page_time()));
    for part in [
        "2 runs, the newest first",
        ">gave up<",
        ">merged<",
        "a test shows it",
        "$0.12",
        "1 min 0 s",
        "14 min ago",
        "value=\"stop=failed\" selected",
        "rel=\"next\"",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn every_page_counts_cached_tokens_as_read() {
    let mut view = build_run_view(RunState::Finished, None, Some(gave_up()));
    view.overview = Some(OverviewView {
        tokens: 1_050,
        input_tokens: 1_000,
        cached_tokens: 600,
        output_tokens: 50,
        ..OverviewView::default()
    });
    let known = run::RunWithJournal {
        id: "jira:ENG-12@57".parse().unwrap(),
        view,
        journal: Vec::new(),
    };
    let page = render_safe_page(run::render_run(
        &known,
        run_pages::RunPageQuery::default(),
        None,
        build_page_time(),
    ));
    assert!(
        page.contains("1,000 tokens in, 600 of them cached, 50 out"),
        "{page}"
    );
    let asked = costs::CostsQuery {
        since: String::new(),
        until: String::new(),
    };
    let spent = SpendView {
        since: String::new(),
        until: String::new(),
        lines: vec![build_spend_line("2026-11-24", 1)],
        next: None,
    };
    let page = render_safe_page(costs::render_costs(&asked, &spent));
    assert!(
        page.contains("cached ones included") && page.contains(">Tokens in and out<"),
        "{page}"
    );
}

#[test]
fn approval_page_shows_plan_or_diff() {
    let plan = ChangePlan {
        goal: build_hostile_text(),
        approach: build_hostile_text(),
        steps: vec![PlanStep {
            what: build_hostile_text(),
            files: vec![build_hostile_text()],
        }],
        tests: vec![build_hostile_text()],
        risks: vec![build_hostile_text()],
        not_doing: vec![build_hostile_text()],
    };
    let about = approval::DecisionSubject::Plan(Box::new(plan));
    insta::assert_snapshot!(
        "a_plan_to_decide_about",
        render_safe_page(approval::render_question(
            "jira:ENG-12@57",
            &build_head_commit(),
            &about
        ))
    );
    let text = format!(
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-{HOSTILE}\n+{HOSTILE}\n {HOSTILE}\n"
    );
    let about = approval::DecisionSubject::Change(RunDiff {
        text,
        source: DiffSource::Decision,
    });
    let page = render_safe_page(approval::render_question(
        "jira:ENG-12@57",
        &build_head_commit(),
        &about,
    ));
    for part in [
        "waits for your decision about its change",
        "1 file",
        "alert(1)",
        "Approve the change",
        "value=\"1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d\"",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn late_decision_page_names_earlier_decider() {
    let journal = build_journal_entries([build_decided_fact()]);
    let page = render_safe_page(approval::render_past_decision(
        "jira:ENG-12@57",
        &journal,
        Some(HOSTILE),
    ));
    assert!(page.contains("asked for changes"), "{page}");
    insta::assert_snapshot!(page);
}

#[test]
fn ticket_page_shows_text_runs_and_cost() {
    let text = TicketTextView {
        ticket: build_hostile_text(),
        url: "javascript:alert(1)".to_owned(),
        status: build_hostile_text(),
        kind: build_hostile_text(),
        priority: build_hostile_text(),
        labels: vec![build_hostile_text()],
        assignees: vec![build_hostile_text()],
        summary: build_hostile_text(),
        description: build_hostile_text(),
        comments: vec![CommentView {
            author: build_hostile_text(),
            at: build_hostile_text(),
            text: build_hostile_text(),
        }],
    };
    let mut earlier = build_run_view(RunState::Finished, None, Some(gave_up()));
    earlier.overview = Some(build_overview_view());
    let known = ticket::TicketReadings {
        standing: Ok(vec![failed_checks()]),
        text: Some(Ok(text)),
        quarantined: Some(build_hostile_text()),
        lock: Some(ConversationLockView {
            since: build_hostile_text(),
            reason: build_hostile_text(),
        }),
        runs: vec![earlier, build_run_view(RunState::Active, None, None)],
        effects: build_journal_entries([Fact::ReportSettled {
            id: domain::OutboundId::seen(&"jira:ENG-12".parse().unwrap(), 1),
            outcome: domain::OutboundOutcome::Failed {
                detail: build_hostile_text(),
            },
        }])
        .into_iter()
        .map(|entry| ticket::SettledRequest {
            run: "jira:ENG-12@57".to_owned(),
            entry,
        })
        .collect(),
        unread: vec![build_hostile_text()],
    };
    let page = render_safe_page(ticket::render_ticket("folder:shop#1", &known, build_page_time()));
    for part in [
        "$0.12, 1,500 tokens in and out, 2 runs",
        "In quarantine",
        "Comment or answer",
        "2 failed",
        "acme/shop#7",
        "2 threads",
        "a test shows it",
        "asked for by",
        "none yet",
        "failed: ",
        "Writes outside are not known for ",
        "Cost of models by kind of work",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let (first, last) = (page.find(">gave up<").unwrap(), page.rfind(">works<").unwrap());
    assert!(first < last, "the story begins with the oldest run: {page}");
    let unknown = ticket::TicketReadings {
        text: Some(Err(build_hostile_text())),
        ..ticket::TicketReadings::default()
    };
    assert!(
        render_safe_page(ticket::render_ticket("jira:ENG-12", &unknown, build_page_time()))
            .contains("is not known")
    );
}

#[test]
fn dead_letters_are_grouped_by_their_reason() {
    let page = render_safe_page(dead_letters::render_letters(
        &[build_dead_letter("trigger"), build_dead_letter("report")],
        build_page_time(),
    ));
    assert_eq!(page.matches("<h2>").count(), 1, "{page}");
    insta::assert_snapshot!(page);
    let found = DeadDetail {
        letter: build_dead_letter("delivery"),
        body: build_hostile_text(),
    };
    insta::assert_snapshot!(
        "a_dead_letter",
        render_safe_page(dead_letters::render_letter_detail(&found, build_page_time()))
    );
}

#[test]
fn rules_are_listed_with_their_problems() {
    insta::assert_snapshot!(render_safe_page(rules::render_rules(&some_rules())));
}

fn build_spend_line(day: &str, calls: u64) -> SpendLine {
    SpendLine {
        day: day.to_owned(),
        organization: build_hostile_text(),
        repository: build_hostile_text(),
        ticket: build_hostile_text(),
        job: String::new(),
        provider: build_hostile_text(),
        model: build_hostile_text(),
        calls,
        cost_usd: Dollars::from_micros(1_500_000),
        tokens: 12_345,
        unpriced: calls / 2,
    }
}

#[test]
fn costs_are_added_up_by_name() {
    let spent = SpendView {
        since: build_hostile_text(),
        until: build_hostile_text(),
        lines: vec![
            build_spend_line("2026-11-24", 1),
            build_spend_line("2026-11-25", 2),
        ],
        next: None,
    };
    let asked = costs::CostsQuery {
        since: build_hostile_text(),
        until: build_hostile_text(),
    };
    let page = render_safe_page(costs::render_costs(&asked, &spent));
    assert!(page.contains("$3.00 and 1 reply without a known price"), "{page}");
    insta::assert_snapshot!(page);
}

#[test]
fn ticket_costs_are_limited_to_highest() {
    let line = |number: u64| SpendLine {
        ticket: format!("jira:ENG-{number}"),
        cost_usd: Dollars::from_micros(number * 1_000_000),
        unpriced: 0,
        ..build_spend_line("2026-11-24", 1)
    };
    let spent = SpendView {
        since: String::new(),
        until: String::new(),
        lines: (1..=102).map(line).collect(),
        next: None,
    };
    let page = costs::render_costs(&costs::CostsQuery::default(), &spent).into_string();
    let table = page.split("Cost by ticket").nth(1).unwrap();
    let table = table.split("</section>").next().unwrap();
    assert!(table.find("ENG-102<") < table.find("ENG-101<"), "{table}");
    assert!(
        table.contains(">jira:ENG-3<") && !table.contains(">jira:ENG-2<"),
        "{table}"
    );
    assert!(table.contains("2 more tickets of lower cost: $3.00. "), "{table}");
    let few = SpendView {
        lines: (1..=100).map(line).collect(),
        ..spent
    };
    let page = costs::render_costs(&costs::CostsQuery::default(), &few).into_string();
    assert!(!page.contains("of lower cost"), "{page}");
}

#[test]
fn health_page_contains_the_planner_switch() {
    let seen = health::HealthReadings {
        stop_all: build_stop_view(),
        runs: vec![build_run_view(RunState::Active, None, None)],
        letters: vec![build_dead_letter("trigger")],
        rules: Some(some_rules()),
    };
    insta::assert_snapshot!(render_safe_page(health::render_health(&seen, build_page_time())));
}

#[test]
fn entry_page_shows_stored_json() {
    let journal = build_journal_entries([build_decided_fact()]);
    let page = render_safe_page(run_events::render_entry("jira:ENG-12@57", &journal[0]));
    assert!(page.contains("&lt;U+202E&gt;"), "{page}");
}

fn failed_checks() -> PullRequestView {
    let check = |class| FailedCheckView {
        name: build_hostile_text(),
        url: "javascript:alert(1)".to_owned(),
        class,
    };
    PullRequestView {
        pull_request: domain::PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "https://github.com/acme/shop/pull/7".to_owned(),
            branch: build_hostile_text(),
        },
        status: Some(domain::PullRequestStatus::Open),
        head: Some(build_hostile_text()),
        checks: Some(ChecksView {
            head: build_head_commit().to_string(),
            outdated: true,
            conclusion: domain::ChecksConclusion::Failure,
            failed: vec![
                check(domain::FailureClass::Real),
                check(domain::FailureClass::Flaky),
            ],
            page: build_hostile_text(),
            at: "2026-11-25T09:30:12Z".to_owned(),
            follows: "left".to_owned(),
            left: Some(domain::RepairEnd::PerHead),
        }),
        review: Some(ReviewView {
            author: build_hostile_text(),
            asks_for_changes: true,
            threads: 2,
            at: build_hostile_text(),
        }),
        awaits_review_of: vec![build_hostile_text()],
        awaits_review_since: Some(build_hostile_text()),
        health: Some(HealthView {
            state: "blocked".to_owned(),
            cause: Some("conflict".to_owned()),
            text: build_hostile_text(),
            since: Some(build_hostile_text()),
            until: Some(build_hostile_text()),
            who: Some(build_hostile_text()),
            base_branch: build_hostile_text(),
            auto_merge: Some(AutoMergeView {
                by: build_hostile_text(),
                method: build_hostile_text(),
            }),
            ignored_checks: vec![build_hostile_text()],
            at: build_hostile_text(),
        }),
        conversation_lock: None,
    }
}

fn a_pool(news: PoolFreshness) -> PoolView {
    let make = |executors| MakeView {
        version: build_hostile_text(),
        sandbox: "L2".to_owned(),
        system: build_hostile_text(),
        programs: vec![build_hostile_text()],
        executors,
    };
    let member = |state, make| ExecutorView {
        address: build_hostile_text(),
        state,
        why: build_hostile_text(),
        free: 1,
        total: 4,
        held: 3,
        make,
        heard_at: Some(build_hostile_text()),
        started_at: None,
    };
    PoolView {
        name: build_hostile_text(),
        news,
        seen_at: Some("2026-11-25T09:30:12Z".to_owned()),
        planners: 1,
        executors: 2,
        ready: 1,
        free: 1,
        total: 4,
        held: 3,
        waiting: 2,
        waiting_since: Some(build_hostile_text()),
        makes: vec![make(1), make(2)],
        problems: vec![build_hostile_text()],
        members: vec![
            member(domain::ExecutorState::Unready, None),
            member(domain::ExecutorState::Ready, Some(1)),
        ],
    }
}

#[test]
fn ticket_page_names_locked_conversation() {
    let lock = api::types::ConversationLockView {
        since: "2026-11-25T09:30:12Z".to_owned(),
        reason: build_hostile_text(),
    };
    let known = ticket::TicketReadings {
        lock: Some(lock.clone()),
        standing: Ok(vec![PullRequestView {
            conversation_lock: Some(lock),
            ..failed_checks()
        }]),
        ..ticket::TicketReadings::default()
    };
    let page = render_safe_page(ticket::render_ticket(
        "github:acme/shop#7",
        &known,
        build_page_time(),
    ));
    assert_eq!(page.matches("conversation locked").count(), 2, "{page}");
    let open = ticket::TicketReadings::default();
    let page = render_safe_page(ticket::render_ticket(
        "github:acme/shop#7",
        &open,
        build_page_time(),
    ));
    assert!(!page.contains("locked"), "{page}");
}

/// The row is that of the pull request, whatever the ticket is.
#[test]
fn merge_row_shows_block_for_every_ticket() {
    let mut assessed = failed_checks();
    assessed.health = Some(HealthView {
        state: "blocked".to_owned(),
        cause: Some("pending_checks".to_owned()),
        text: "checks have not ended".to_owned(),
        since: None,
        until: None,
        who: Some("maintainer".to_owned()),
        base_branch: "main".to_owned(),
        auto_merge: None,
        ignored_checks: vec!["WIP".to_owned(), "codecov/patch".to_owned()],
        at: "2026-11-25T09:30:12Z".to_owned(),
    });
    let mut unassessed = failed_checks();
    unassessed.health = None;
    for key in ["jira:ENG-12", "github:acme/shop#7", "folder:shop#1"] {
        let render = |standing: &PullRequestView| {
            let known = ticket::TicketReadings {
                standing: Ok(vec![standing.clone()]),
                ..ticket::TicketReadings::default()
            };
            render_safe_page(ticket::render_ticket(key, &known, build_page_time()))
        };
        let page = render(&assessed);
        for part in [
            "<dt>Merge</dt>",
            "checks have not ended",
            "Acts: maintainer",
            "Ignored checks: WIP, codecov/patch",
        ] {
            assert!(page.contains(part), "{key}: {part} in {page}");
        }
        assert!(!render(&unassessed).contains("<dt>Merge</dt>"), "{key}");
    }
}

#[test]
fn pools_page_lists_executors_and_problems() {
    let listed = PoolsView {
        pools: vec![a_pool(PoolFreshness::Current)],
    };
    insta::assert_snapshot!(render_safe_page(pools::render_pools(&listed, build_page_time())));
}

#[test]
fn outdated_pool_is_not_shown_as_ready() {
    for (news, words) in [
        (PoolFreshness::Old, "not heard of"),
        (PoolFreshness::Unknown, "not known"),
    ] {
        let listed = PoolsView {
            pools: vec![a_pool(news)],
        };
        let page = render_safe_page(pools::render_pools(&listed, build_page_time()));
        assert!(page.contains(words) && !page.contains("takes work"), "{page}");
    }
    let nothing = render_safe_page(pools::render_pools(&PoolsView::default(), build_page_time()));
    assert!(nothing.contains("Start a planner"), "{nothing}");
}
