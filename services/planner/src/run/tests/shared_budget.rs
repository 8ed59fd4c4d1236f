//! Budgets that runs share.

use domain::{
    BudgetPeriod, BudgetScope, BudgetUnit, Dollars, Fact, Job, ModelHint, ModelReply, OutboundAction,
    RunPhase, SharedBudget, SpendAmount, StopReason, TicketLimits, Timestamp, WaitCondition, report,
};
use serde_json::json;

use super::play::{
    Play, build_edit_calls, build_entry, build_job_request, build_tool_reply, build_work_replies,
};
use crate::run::{BudgetAllowance, RunAction, decide_action, ticket_budget_refusal};

/// The budget has room again in the second minute of the play's clock.
const RESETS: i64 = 120_000;

fn of_repository(resets: Option<i64>) -> StopReason {
    StopReason::SharedBudgetSpent(SharedBudget {
        of: BudgetScope::Repository,
        name: "acme/shop".to_owned(),
        period: Some(BudgetPeriod::Day),
        budget: BudgetUnit::Tokens,
        spent: 90,
        limit: 100,
        needs: 20,
        resets: resets.map(Timestamp::from_unix_ms),
    })
}

fn build_refused_play(
    after: usize,
    reason: StopReason,
    replies: impl IntoIterator<Item = ModelReply>,
) -> Play {
    Play {
        refuses: Some((after, reason)),
        ..Play::with(replies)
    }
}

/// Returns a reply with this many tokens, at a millionth of a dollar each.
fn build_priced_reply(number: u32, tokens: u64) -> ModelReply {
    let mut reply = build_tool_reply(&[("read_file", json!({ "path": number }))]);
    reply.usage.input_tokens = tokens;
    reply.cost_micros = Some(tokens);
    reply
}

fn read_retry_time(play: &Play) -> Timestamp {
    play.state.lifecycle().retry().unwrap().due
}

#[test]
fn spent_shared_budget_delivers_named_draft() {
    let reason = of_repository(Some(RESETS));
    let mut play = build_refused_play(
        2,
        reason.clone(),
        [build_tool_reply(&build_edit_calls()), build_priced_reply(1, 5)],
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(play.state.outputs().cut_short(), Some(&reason));
    assert_eq!(
        play.state.conversation().turn_count(),
        2,
        "the third call was not made"
    );
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    play.pushed();
    play.drive();
    play.opened();
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &reason);
}

#[test]
fn unchanged_run_waits_for_budget_period() {
    let reason = of_repository(Some(RESETS));
    let mut play = build_refused_play(0, reason.clone(), build_work_replies());
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(play.state.lifecycle().parked(), Some(WaitCondition::Retry));
    assert!(
        read_retry_time(&play) > Timestamp::from_unix_ms(RESETS),
        "not before the period is over"
    );
    let OutboundAction::RetryScheduled(report::RetryScheduled { reason: reported, .. }) = play.last_request()
    else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(*reported, reason);
    assert_eq!(play.state.conversation().turn_count(), 0);
    play.append(Fact::Retried {
        by: None,
        trigger: None,
    });
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn run_never_waits_without_budget_reset() {
    let reason = of_repository(None);
    let mut play = build_refused_play(0, reason.clone(), build_work_replies());
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &reason);
    assert!(matches!(play.last_request(), OutboundAction::RunStopped(_)));
}

#[test]
fn intake_plan_and_triage_await_budget() {
    for set in [
        |rules: &mut domain::RepositoryRules| rules.agent.intake = true,
        |rules: &mut domain::RepositoryRules| rules.agent.plan = domain::PlanningRule::Always,
    ] {
        let mut asked = build_job_request(Job::Implement);
        set(&mut asked.rules);
        let mut play = Play {
            refuses: Some((0, of_repository(Some(RESETS)))),
            ..Play::implement(asked, build_work_replies())
        };
        assert_eq!(play.drive(), RunAction::Wait);
        assert_eq!(play.state.lifecycle().parked(), Some(WaitCondition::Retry));
        play.append(Fact::Retried {
            by: None,
            trigger: None,
        });
        play.drive();
        assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    }
    let mut play = Play {
        refuses: Some((0, of_repository(Some(RESETS)))),
        ..Play::implement(build_job_request(Job::Triage), build_work_replies())
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(play.state.lifecycle().parked(), Some(WaitCondition::Retry));
}

#[test]
fn review_without_budget_room_is_omitted() {
    let request = build_job_request(Job::Implement);
    let calls = build_work_replies().len();
    let mut play = Play {
        refuses: Some((calls, of_repository(Some(RESETS)))),
        ..Play::implement_reviewed(request, build_work_replies(), [])
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        play.state.outputs().review().map(|review| review.is_complete),
        Some(false)
    );
    assert_eq!(play.state.outputs().cut_short(), None);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn budget_refusal_lasts_until_period_end() {
    let mut play = build_refused_play(0, of_repository(Some(RESETS)), build_work_replies());
    play.until(|action| matches!(action, RunAction::ScheduleRetry { .. }));
    assert!(play.state.budget().refused(play.state.journal.last_at).is_some());
    let fence = play.state.journal.fence;
    let mut later = build_entry(play.state.journal.position, Fact::TakenOver { fence });
    later.at = Timestamp::from_unix_ms(RESETS);
    play.state.apply(&later).unwrap();
    assert_eq!(play.state.budget().refused(play.state.journal.last_at), None);
    assert!(matches!(
        decide_action(&play.state),
        RunAction::Record(Fact::ModelRequested { .. })
    ));
}

#[test]
fn ticket_budget_follows_rules_up_to_ceiling() {
    let dollars = |dollars: u64| Some(Dollars::from_micros(dollars * 1_000_000));
    let mut asked = build_job_request(Job::Implement);
    assert_eq!(BudgetAllowance::default().ticket_limits(&asked), None);
    let allowance = BudgetAllowance {
        usual_ticket: TicketLimits {
            tokens: Some(50),
            ..TicketLimits::default()
        },
        most_ticket: TicketLimits {
            cost_usd: dollars(3),
            ..TicketLimits::default()
        },
        ..BudgetAllowance::default()
    };
    asked.rules.agent.budget.ticket.cost_usd = dollars(5);
    let limits = allowance.ticket_limits(&asked).unwrap();
    assert_eq!((limits.cost_usd, limits.tokens), (dollars(3), Some(50)));
}

/// Other runs have spent 700 of 1,000 tokens; the work may use 900 of them.
fn build_ticket_limits() -> TicketLimits {
    TicketLimits {
        tokens: Some(1_000),
        spent_tokens: 700,
        ..TicketLimits::default()
    }
}

#[test]
fn ticket_budget_includes_other_runs_spending() {
    let mut replies = vec![build_tool_reply(&build_edit_calls())];
    replies.extend((0..20).map(|number| build_priced_reply(number, 50)));
    let mut play = Play {
        ticket_limits: Some(build_ticket_limits()),
        ..Play::with(replies)
    };
    assert_eq!(play.drive(), RunAction::Wait);
    let hints = play
        .state
        .conversation()
        .dialog()
        .unwrap()
        .turns
        .iter()
        .flat_map(|turn| &turn.hints);
    let used_percents: Vec<u8> = hints
        .filter_map(|hint| match hint {
            ModelHint::Budget { used, .. } => Some(*used),
            ModelHint::Repeating(_) => None,
        })
        .collect();
    assert_eq!(used_percents, [50, 80]);
    let Some(StopReason::SharedBudgetSpent(budget)) = play.state.outputs().cut_short() else {
        panic!("{:?}", play.state.outputs().cut_short())
    };
    assert_eq!(
        (budget.of, budget.spent, budget.limit),
        (BudgetScope::Ticket, 900, 1_000)
    );
    assert_eq!(budget.resets, None);
}

#[test]
fn ticket_budget_reserves_tenth_for_review() {
    let mut play = Play {
        ticket_limits: Some(build_ticket_limits()),
        ..Play::with(build_work_replies())
    };
    play.until_model_call();
    let room = |phase, tokens| {
        let most = SpendAmount {
            cost_micros: 0,
            tokens,
        };
        ticket_budget_refusal(&play.state, phase, most).is_none()
    };
    assert!(room(RunPhase::Work, 200) && !room(RunPhase::Work, 201));
    assert!(room(RunPhase::Review, 300) && !room(RunPhase::Review, 301));
}

#[test]
fn unknown_price_ends_ticket_limited_work() {
    let limits = TicketLimits {
        cost_usd: Some(Dollars::from_micros(1_000_000)),
        ..TicketLimits::default()
    };
    let mut play = Play {
        ticket_limits: Some(limits),
        ..Play::with(build_work_replies())
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(
        play.state.outputs().cut_short(),
        Some(StopReason::PriceUnknown { .. })
    ));
}
