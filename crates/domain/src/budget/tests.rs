use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    budget::{
        amounts::{ModelSpend, SpendAmount},
        shared_budget::BudgetPeriod,
        spend::{RunSource, Spend, SpendWindow},
    },
    identity::{ids::RunId, repository::RepositoryName, ticket::TicketText, time::Timestamp},
    journal::{
        fact::{Fact, JournalEntry},
        fence::RunFence,
        overview::RunOverview,
    },
    rules::RepositoryRules,
    trigger::job::Job,
};

const RUNS: [&str; 4] = [
    "jira:ENG-1@7",
    "jira:ENG-1@9",
    "jira:ENG-2@8",
    "github:acme/web#3@4",
];
// Three days around the end of a month.
const FIRST_DAY: &str = "2026-10-30T12:00:00Z";
const DAYS_MS: i64 = 3 * 24 * 3_600_000;

fn parse_run_id(index: usize) -> RunId {
    RUNS[index].parse().unwrap()
}

fn parse_fact(fact: &Value) -> Fact {
    serde_json::from_value(fact.clone()).unwrap_or_else(|error| panic!("{error}: {fact}"))
}

/// A start by a request, or by an event of a pull request.
fn build_start_fact(repository: &str, is_request: bool) -> Fact {
    let reason = if is_request {
        json!({"type": "job_requested", "job": "implement", "repository": repository,
            "rules": RepositoryRules::default(), "text": TicketText::default()})
    } else {
        json!({"type": "checks_completed", "head": "a".repeat(40), "conclusion": "failure", "failed": [],
            "pull_request": {"repository": repository, "number": 7, "branch": "b", "url": "u"}})
    };
    parse_fact(&json!({"type": "run_started",
        "trigger": {"ticket": "jira:ENG-1", "key": "k", "at": 1, "source": "webhook", "actor": null, "reason": reason}}))
}

fn build_reply(kind: &str, model: &str, tokens: u64, cost: Option<u64>) -> Fact {
    parse_fact(&json!({"type": kind, "id": "jira:ENG-1@7:1",
        "reply": {"blocks": [], "stop": "end_turn", "model": model, "provider": "main", "cost_micros": cost,
            "usage": {"input_tokens": tokens, "output_tokens": tokens / 3, "cache_read_tokens": tokens / 2,
                "cache_write_tokens": 0}}}))
}

fn any_fact() -> impl Strategy<Value = Fact> {
    let reply = (
        prop_oneof![Just("model_replied"), Just("summarized")],
        prop_oneof![Just("large"), Just("small")],
        prop_oneof![5 => 0..5_000_u64, 1 => Just(u64::MAX)],
        prop::option::weighted(0.8, prop_oneof![5 => 0..90_000_u64, 1 => Just(u64::MAX)]),
    );
    let others = [
        json!({"type": "model_failed", "id": "jira:ENG-1@7:1", "detail": "529"}),
        json!({"type": "taken_over", "fence": {"epoch": 1, "sequence": 1, "delivered": 2}}),
        json!({"type": "parked", "waits_for": "report"}),
        json!({"type": "head_moved", "head": "b".repeat(40)}),
        json!({"type": "run_finished", "reason": {"type": "completed"}}),
    ];
    prop_oneof![
        3 => reply.prop_map(|(kind, model, tokens, cost)| build_reply(kind, model, tokens, cost)),
        2 => prop::sample::select(others.each_ref().map(parse_fact).to_vec()),
    ]
}

/// Entries of four runs in the order of the stream.
fn any_journals() -> impl Strategy<Value = Vec<(RunId, JournalEntry)>> {
    let starts = prop::array::uniform4((
        prop_oneof![Just("acme/shop"), Just("ghe:acme/web")],
        any::<bool>(),
    ));
    let rest = prop::collection::vec((0..RUNS.len(), any_fact(), 0..DAYS_MS), 0..40);
    (starts, rest).prop_map(|(starts, rest)| {
        let starts = starts.into_iter().enumerate();
        let starts = starts.map(|(run, (name, is_request))| (run, build_start_fact(name, is_request), 0));
        let first = Timestamp::parse(FIRST_DAY).unwrap();
        let mut lengths = [0; RUNS.len()];
        let entry = |(run, fact, after): (usize, Fact, i64)| {
            let position = lengths[run];
            lengths[run] += 1;
            let entry = JournalEntry {
                position,
                nonce: String::new(),
                fence: RunFence::default(),
                at: first.plus_ms(after),
                fact,
            };
            (parse_run_id(run), entry)
        };
        starts.chain(rest).map(entry).collect()
    })
}

fn select_entries(journals: &[(RunId, JournalEntry)], run: &RunId) -> Vec<JournalEntry> {
    let of_run = journals.iter().filter(|(of, _)| of == run);
    of_run.map(|(_, entry)| entry.clone()).collect()
}

fn index_sources(journals: &[(RunId, JournalEntry)]) -> BTreeMap<RunId, RunSource> {
    let starts = journals
        .iter()
        .filter_map(|(run, entry)| Some((run, RunSource::of(&entry.fact)?)));
    starts.map(|(run, source)| (run.clone(), source)).collect()
}

/// Amounts of one period, as a rebuild of the budgets adds them up call by call.
fn count_budgets(
    journals: &[(RunId, JournalEntry)],
    window: SpendWindow,
    period: BudgetPeriod,
) -> BTreeMap<(RepositoryName, String), SpendAmount> {
    let sources = index_sources(journals);
    let mut accounts = BTreeMap::<_, SpendAmount>::new();
    for (run, entry) in journals.iter().filter(|(_, entry)| window.contains(entry.at)) {
        if let (Some(charge), Some(repository)) = (entry.fact.charge(), &sources[run].repository) {
            let account = (repository.clone(), period.name(entry.at));
            let amount = accounts.entry(account).or_default();
            *amount = amount.plus(charge.reply.spend_amount());
        }
    }
    accounts
}

fn fold_window(journals: &[(RunId, JournalEntry)], window: SpendWindow) -> Spend {
    let sources = index_sources(journals);
    let mut spend = Spend::default();
    for (run, entry) in journals.iter().filter(|(_, entry)| window.contains(entry.at)) {
        spend.add_entry(run, &sources[run], entry);
    }
    spend
}

proptest! {
    /// The status page shows overviews, the API sums of the fold, budgets amounts of single calls, and the cost reply
    /// a ticket's sum.
    #[test]
    fn answers_about_cost_agree(journals in any_journals()) {
        let always = SpendWindow::starting_at(Timestamp::from_unix_ms(0));
        let spend = fold_window(&journals, always);
        let mut whole = Spend::default();
        let mut by_repository = BTreeMap::<Option<RepositoryName>, ModelSpend>::new();
        let mut by_ticket = BTreeMap::<_, (Spend, ModelSpend)>::new();
        let by_run = spend.sum_by(|key| key.run.clone());
        for run in (0..RUNS.len()).map(parse_run_id) {
            let entries = select_entries(&journals, &run);
            let seen = RunOverview::of(&run, &entries).unwrap();
            let sum = by_run.get(&run).copied().unwrap_or_default();
            prop_assert_eq!(seen.spend, sum.spend);
            whole.add_journal(&run, &entries);
            let of_ticket = by_ticket.entry(run.ticket().clone()).or_default();
            of_ticket.0.add_journal(&run, entries.iter().filter(|entry| Spend::is_affected_by(&entry.fact)));
            of_ticket.1 = of_ticket.1.plus(seen.spend);
            if sum.replies > 0 {
                let of_repository = by_repository.entry(seen.repository).or_default();
                *of_repository = of_repository.plus(seen.spend);
            }
        }
        prop_assert_eq!(&whole, &spend);
        let summed = spend.sum_by(|key| key.source.repository.clone());
        let summed: BTreeMap<_, _> = summed.into_iter().map(|(name, sum)| (name, sum.spend)).collect();
        prop_assert_eq!(summed, by_repository);
        for (ticket, seen) in by_ticket.into_values() {
            let cost = ticket.ticket_cost();
            prop_assert_eq!((cost.cost_usd, cost.tokens), (seen.cost_usd, seen.tokens));
            prop_assert_eq!(cost.is_priced, seen.unpriced == 0);
            prop_assert_eq!(ticket.total().spend.amount(), seen.amount());
        }
    }

    #[test]
    fn rebuilt_budgets_equal_reported_spend(journals in any_journals()) {
        let month = SpendWindow::starting_at(Timestamp::parse("2026-11-01T00:00:00Z").unwrap());
        let all = SpendWindow::starting_at(Timestamp::from_unix_ms(0));
        for (window, period) in [(month, BudgetPeriod::Month), (month, BudgetPeriod::Day), (all, BudgetPeriod::Month)] {
            let reported = fold_window(&journals, window).sum_by(|key| {
                let repository = key.source.repository.clone();
                (repository.expect("every run has a repository"), period.name(key.day))
            });
            let reported: BTreeMap<_, _> = reported.into_iter().map(|(name, sum)| (name, sum.spend.amount())).collect();
            prop_assert_eq!(count_budgets(&journals, window, period), reported);
        }
    }
}

#[test]
fn ticket_cost_lists_latest_runs_with_tokens() {
    let mut spend = Spend::default();
    for sequence in 1..=25 {
        let run = RunId::new("jira:ENG-1".parse().unwrap(), sequence);
        let tokens = if sequence == 25 { 0 } else { 90 };
        let facts = [
            build_start_fact("acme/shop", true),
            build_reply("model_replied", "large", tokens, Some(sequence)),
        ];
        let entries = facts.into_iter().zip(0..).map(|(fact, position)| JournalEntry {
            position,
            nonce: String::new(),
            fence: RunFence::default(),
            at: Timestamp::default(),
            fact,
        });
        spend.add_journal(&run, &entries.collect::<Vec<_>>());
    }
    let cost = spend.ticket_cost();
    let listed: Vec<u64> = cost.runs.iter().map(|run| run.run.sequence()).collect();
    assert_eq!(listed, (5..=24).collect::<Vec<_>>());
    assert_eq!((cost.runs[0].job, cost.runs[0].tokens), (Job::Implement, 120));
    assert_eq!((cost.cost_usd.micros(), cost.is_priced), ((1..=25).sum(), true));
}

#[test]
fn window_tolerates_clocks_that_differ() {
    let since = Timestamp::parse("2026-11-01T00:00:00Z").unwrap();
    let window = SpendWindow {
        since,
        until: since.plus_ms(1_000),
    };
    assert!(window.contains(since) && !window.contains(window.until) && !window.contains(since.plus_ms(-1)));
    assert_eq!(window.first_stored(), since.plus_ms(-SpendWindow::CLOCKS_MS));
    let last = window.until.plus_ms(SpendWindow::CLOCKS_MS);
    assert!(!window.is_over(last) && window.is_over(last.plus_ms(1)));
    assert!(!SpendWindow::starting_at(since).is_over(Timestamp::from_unix_ms(i64::MAX)));
}
