//! Tests of pages with hostile text in every field.

use api::types::*;
use domain::{
    ChangePlan, CommitId, DecisionVerdict, Dollars, Fact, GateDecision, Job, JournalEntry, PlanStep,
    PoolFreshness, RunFence, StopReason, Timestamp,
};
use maud::Markup;

use super::{approval, costs, dead_letters, entry, health, needs_you, pools, rules, run, runs, ticket};
use crate::layout::{ConsolePage, NavigationEntry};

/// Closes open markup, contains a script and an htmx attribute, and reverses the order of letters.
const HOSTILE: &str =
    "\"'></pre></textarea><script>alert(1)</script><a hx-get=/x href=javascript:alert(1)>\u{202e}x";

fn hostile() -> String {
    HOSTILE.to_owned()
}

/// Renders the page and asserts that the hostile text is not markup.
fn safe(body: Markup) -> String {
    let page = ConsolePage::new(NavigationEntry::Runs, "Title", body)
        .markup(None)
        .into_string();
    for wrong in [
        "<script",
        "<a hx-get",
        "href=\"javascript",
        "</pre></textarea",
        "\u{202e}",
    ] {
        assert!(!page.contains(wrong), "{wrong} in {page}");
    }
    let main = page.split("<main id=\"main\">").nth(1).unwrap();
    main.replace("><", ">\n<")
}

fn view(status: RunState, waits_for: Option<&str>, stop: Option<StopReason>) -> RunView {
    RunView {
        id: "jira:ENG-12@57".to_owned(),
        ticket: "jira:ENG-12".to_owned(),
        job: Job::Implement,
        status,
        waits_for: waits_for.map(ToOwned::to_owned),
        finished_at: stop.is_some().then(hostile),
        stop,
        started_at: "2026-11-25T09:30:12.345Z".to_owned(),
        turns: 7,
        repair: None,
        overview: None,
    }
}

fn gave_up() -> StopReason {
    StopReason::GivenUp {
        kind: domain::GiveUp::Blocked,
        evidence: hostile(),
    }
}

fn letter(what: &str) -> DeadView {
    DeadView {
        sequence: 3,
        what: what.to_owned(),
        id: hostile(),
        ticket: Some(hostile()),
        reason: hostile(),
        at: hostile(),
    }
}

fn some_rules() -> RulesView {
    RulesView {
        repositories: vec![RepositoryView {
            repository: hostile(),
            project: hostile(),
            status: hostile(),
            problem: Some(hostile()),
        }],
        problems: vec![RulesProblemView {
            file: hostile(),
            line: 4,
            key: hostile(),
            problem: hostile(),
        }],
    }
}

fn switched() -> StopAllView {
    StopAllView {
        on: true,
        by: Some(hostile()),
        at: Some(hostile()),
    }
}

fn credential(is_due: bool) -> CredentialView {
    CredentialView {
        kind: hostile(),
        instance: Some(hostile()),
        ends: "2027-01-31T00:00:00Z".to_owned(),
        days: 10,
        is_due,
    }
}

fn facts(facts: impl IntoIterator<Item = Fact>) -> Vec<JournalEntry> {
    let entry = |(position, fact)| JournalEntry {
        position,
        nonce: hostile(),
        fence: RunFence::default(),
        at: Timestamp::from_unix_ms(1_764_000_000_000),
        fact,
    };
    (0..).zip(facts).map(entry).collect()
}

fn head() -> CommitId {
    "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d".parse().unwrap()
}

fn decided() -> Fact {
    Fact::Decided {
        decision: GateDecision {
            run: "jira:ENG-12@57".parse().unwrap(),
            head: head(),
            verdict: DecisionVerdict::Revise,
            feedback: hostile(),
        },
        by: hostile(),
    }
}

#[test]
fn what_needs_somebody_is_one_list() {
    let mut open = needs_you::AttentionItems {
        runs: vec![
            view(RunState::Parked, Some("decision"), None),
            view(RunState::Parked, Some("answer"), None),
        ],
        letters: vec![letter("ticket"), letter("delivery")],
        rules: Some(some_rules()),
        stop_all: switched(),
        credentials: vec![credential(true), credential(false)],
    };
    let mut failed = view(RunState::Finished, None, Some(gave_up()));
    failed.ticket = "jira:ENG-13".to_owned();
    open.runs.push(failed);
    insta::assert_snapshot!(safe(needs_you::render_needs_you(&open)));
    let nothing = safe(needs_you::render_needs_you(&needs_you::AttentionItems::default()));
    assert!(nothing.contains("Nothing waits for you."), "{nothing}");
}

#[test]
fn failed_run_is_listed_until_newer_run() {
    let open = needs_you::AttentionItems {
        runs: vec![
            view(RunState::Active, None, None),
            view(RunState::Finished, None, Some(gave_up())),
        ],
        ..needs_you::AttentionItems::default()
    };
    assert!(safe(needs_you::render_needs_you(&open)).contains("Nothing waits for you."));
}

#[test]
fn runs_are_listed_with_their_filter() {
    let filter = runs::RunFilter {
        ticket: hostile(),
        repository: hostile(),
        status: "finished".to_owned(),
        stop: "failed".to_owned(),
        ..runs::RunFilter::default()
    };
    let listed = [
        view(RunState::Finished, None, Some(gave_up())),
        view(RunState::Active, None, None),
    ];
    insta::assert_snapshot!(safe(runs::render_runs(&filter, &listed, true)));
}

#[test]
fn a_run_tells_what_happened() {
    let known = run::RunWithJournal {
        id: "jira:ENG-12@57".parse().unwrap(),
        view: view(RunState::Finished, None, Some(gave_up())),
        journal: facts([
            decided(),
            Fact::WorkspaceFailed {
                id: "jira:ENG-12@57".parse::<domain::RunId>().unwrap().call(2),
                detail: hostile(),
                setup: true,
                permanent: false,
                repository: None,
            },
            Fact::RunFinished { reason: gave_up() },
        ]),
    };
    insta::assert_snapshot!(safe(run::render_run(&known, false, None)));
    let page = run::render_run(&known, false, Some("n0nce")).into_string();
    let stamped = page.matches("hx-nonce=\"n0nce\"").count();
    assert_eq!(stamped, 3, "what follows the run is stamped: {page}");
}

#[test]
fn approval_page_shows_plan_or_diff() {
    let plan = ChangePlan {
        goal: hostile(),
        approach: hostile(),
        steps: vec![PlanStep {
            what: hostile(),
            files: vec![hostile()],
        }],
        tests: vec![hostile()],
        risks: vec![hostile()],
        not_doing: vec![hostile()],
    };
    let about = approval::DecisionSubject::Plan(Box::new(plan));
    insta::assert_snapshot!(
        "a_plan_to_decide_about",
        safe(approval::render_question("jira:ENG-12@57", &head(), &about))
    );
    let change = format!("diff --git a/x b/x\n@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n {HOSTILE}\n");
    let about = approval::DecisionSubject::Change(change);
    insta::assert_snapshot!(
        "a_change_to_decide_about",
        safe(approval::render_question("jira:ENG-12@57", &head(), &about))
    );
}

#[test]
fn late_decision_page_names_earlier_decider() {
    let journal = facts([decided()]);
    let page = safe(approval::render_past_decision(
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
        ticket: hostile(),
        url: "javascript:alert(1)".to_owned(),
        status: hostile(),
        kind: hostile(),
        priority: hostile(),
        labels: vec![hostile()],
        assignees: vec![hostile()],
        summary: hostile(),
        description: hostile(),
        comments: vec![CommentView {
            author: hostile(),
            at: hostile(),
            text: hostile(),
        }],
    };
    let known = ticket::TicketReadings {
        standing: Ok(vec![failed_checks()]),
        text: Some(Ok(text)),
        runs: vec![view(RunState::Active, None, None)],
        effects: facts([Fact::ReportSettled {
            id: domain::OutboundId::seen(&"jira:ENG-12".parse().unwrap(), 1),
            outcome: domain::OutboundOutcome::Failed { detail: hostile() },
        }])
        .into_iter()
        .map(|entry| ticket::SettledRequest {
            run: "jira:ENG-12@57".to_owned(),
            entry,
        })
        .collect(),
        ..ticket::TicketReadings::default()
    };
    insta::assert_snapshot!(safe(ticket::render_ticket("folder:shop#1", &known)));
    let unknown = ticket::TicketReadings {
        text: Some(Err(hostile())),
        ..ticket::TicketReadings::default()
    };
    assert!(safe(ticket::render_ticket("jira:ENG-12", &unknown)).contains("is not known"));
}

#[test]
fn dead_letters_are_grouped_by_their_reason() {
    let page = safe(dead_letters::render_letters(&[
        letter("trigger"),
        letter("report"),
    ]));
    assert_eq!(page.matches("<h2>").count(), 1, "{page}");
    insta::assert_snapshot!(page);
    let found = DeadDetail {
        letter: letter("delivery"),
        body: hostile(),
    };
    insta::assert_snapshot!("a_dead_letter", safe(dead_letters::render_letter_detail(&found)));
}

#[test]
fn rules_are_listed_with_their_problems() {
    insta::assert_snapshot!(safe(rules::render_rules(&some_rules())));
}

#[test]
fn costs_are_added_up_by_name() {
    let line = |day: &str, calls| SpendLine {
        day: day.to_owned(),
        organization: hostile(),
        repository: hostile(),
        ticket: hostile(),
        job: String::new(),
        provider: hostile(),
        model: hostile(),
        calls,
        cost_usd: Dollars::from_micros(1_500_000),
        tokens: 12_345,
        unpriced: calls / 2,
    };
    let spent = SpendView {
        since: hostile(),
        until: hostile(),
        lines: vec![line("2026-11-24", 1), line("2026-11-25", 2)],
        next: None,
    };
    let asked = costs::CostsQuery {
        since: hostile(),
        until: hostile(),
    };
    let page = safe(costs::render_costs(&asked, &spent));
    assert!(
        page.contains("$3.00 and 1 replies without a known price"),
        "{page}"
    );
    insta::assert_snapshot!(page);
}

#[test]
fn health_page_contains_the_planner_switch() {
    let seen = health::HealthReadings {
        stop_all: switched(),
        runs: vec![view(RunState::Active, None, None)],
        letters: vec![letter("trigger")],
        rules: Some(some_rules()),
    };
    insta::assert_snapshot!(safe(health::render_health(&seen)));
}

#[test]
fn entry_page_shows_stored_json() {
    let journal = facts([decided()]);
    let page = safe(entry::render_entry("jira:ENG-12@57", &journal[0]));
    assert!(page.contains("&lt;U+202E&gt;"), "{page}");
}

fn failed_checks() -> PullRequestView {
    let check = |class| FailedCheckView {
        name: hostile(),
        url: "javascript:alert(1)".to_owned(),
        class,
    };
    PullRequestView {
        pull_request: domain::PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "https://github.com/acme/shop/pull/7".to_owned(),
            branch: hostile(),
        },
        status: Some(domain::PullRequestStatus::Open),
        head: Some(hostile()),
        checks: Some(ChecksView {
            head: head().to_string(),
            outdated: true,
            conclusion: domain::ChecksConclusion::Failure,
            failed: vec![
                check(domain::FailureClass::Real),
                check(domain::FailureClass::Flaky),
            ],
            page: hostile(),
            at: "2026-11-25T09:30:12Z".to_owned(),
            follows: "left".to_owned(),
            left: Some(domain::RepairEnd::PerHead),
        }),
        review: Some(ReviewView {
            author: hostile(),
            asks_for_changes: true,
            threads: 2,
            at: hostile(),
        }),
        awaits_review_of: vec![hostile()],
        awaits_review_since: Some(hostile()),
    }
}

fn a_pool(news: PoolFreshness) -> PoolView {
    let make = |executors| MakeView {
        version: hostile(),
        sandbox: "L2".to_owned(),
        system: hostile(),
        programs: vec![hostile()],
        executors,
    };
    let member = |state, make| ExecutorView {
        address: hostile(),
        state,
        why: hostile(),
        free: 1,
        total: 4,
        held: 3,
        make,
        heard_at: Some(hostile()),
        started_at: None,
    };
    PoolView {
        name: hostile(),
        news,
        seen_at: Some("2026-11-25T09:30:12Z".to_owned()),
        planners: 1,
        executors: 2,
        ready: 1,
        free: 1,
        total: 4,
        held: 3,
        waiting: 2,
        waiting_since: Some(hostile()),
        makes: vec![make(1), make(2)],
        problems: vec![hostile()],
        members: vec![
            member(domain::ExecutorState::Unready, None),
            member(domain::ExecutorState::Ready, Some(1)),
        ],
    }
}

#[test]
fn pools_page_lists_executors_and_problems() {
    let listed = PoolsView {
        pools: vec![a_pool(PoolFreshness::Current)],
    };
    insta::assert_snapshot!(safe(pools::render_pools(&listed)));
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
        let page = safe(pools::render_pools(&listed));
        assert!(page.contains(words) && !page.contains("takes work"), "{page}");
    }
    let nothing = safe(pools::render_pools(&PoolsView::default()));
    assert!(nothing.contains("Start a planner"), "{nothing}");
}
