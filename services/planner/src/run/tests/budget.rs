//! Budgets of a run.

use domain::{
    BudgetUnit, Dollars, Fact, Job, ModelHint, ModelReply, OutboundAction, RunLimits, StopReason, TokenUsage,
    ToolStatus,
};
use serde_json::json;

use super::news::build_comment_news;
use super::play::{
    Play, build_edit_calls, build_finish_call, build_job_request, build_tool_reply, build_work_replies,
};
use super::prove::Bench;
use crate::run::{BudgetAllowance, RunAction, decide_action};
use crate::transcript::TranscriptMessage;

/// Returns a turn with this many tokens, at a dollar per million.
fn build_priced_reply(number: u32, tokens: u64) -> ModelReply {
    let mut reply = build_tool_reply(&[("read_file", json!({ "path": number }))]);
    reply.usage = TokenUsage {
        input_tokens: tokens - 1,
        output_tokens: 1,
        ..TokenUsage::default()
    };
    reply.cost_micros = Some(tokens);
    reply
}

fn build_limited_play(limits: RunLimits, replies: impl IntoIterator<Item = ModelReply>) -> Play {
    Play {
        limits,
        ..Play::with(replies)
    }
}

fn limit_tokens(tokens: u64) -> RunLimits {
    RunLimits {
        tokens: Some(tokens),
        ..RunLimits::default()
    }
}

/// Returns each reported percentage of the limits, with the number of turns before it.
fn list_budget_hints(play: &Play) -> Vec<(u8, usize)> {
    let turns = &play.state.conversation().dialog().unwrap().turns;
    let hints = turns.iter().enumerate().flat_map(|(at, turn)| {
        let parts = turn.hints.iter().filter_map(|hint| match hint {
            ModelHint::Budget { used, .. } => Some(*used),
            ModelHint::Repeating(_) => None,
        });
        parts.map(move |used| (used, at + 1))
    });
    hints.collect()
}

#[test]
fn run_budget_follows_rules_up_to_ceiling() {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.budget.cost_usd = Some(Dollars::from_micros(5_000_000));
    asked.rules.agent.budget.tokens = Some(70);
    let allowance = BudgetAllowance {
        usual: RunLimits {
            minutes: Some(30),
            ..limit_tokens(50)
        },
        most: RunLimits {
            cost_usd: Some(Dollars::from_micros(3_000_000)),
            tokens: None,
            minutes: Some(20),
            ..RunLimits::default()
        },
        ..BudgetAllowance::default()
    };
    let limits = allowance.limits(&asked);
    assert_eq!(limits.cost_usd, Some(Dollars::from_micros(3_000_000)));
    assert_eq!((limits.tokens, limits.minutes), (Some(70), Some(20)));
    let without = BudgetAllowance::default().limits(&build_job_request(Job::Implement));
    assert_eq!(without, RunLimits::default());
}

#[test]
fn budget_hints_precede_draft_at_limit() {
    // The work has nine tenths of the budget: 900.
    let mut replies = vec![build_tool_reply(&build_edit_calls())];
    replies.extend((0..20).map(|number| build_priced_reply(number, 100)));
    let mut play = build_limited_play(limit_tokens(1_000), replies);
    play.until(|action| matches!(action, RunAction::Record(Fact::Hinted { .. })));
    play.until_model_call();
    let messages = play.transcript().messages;
    let [
        ..,
        TranscriptMessage::ToolResults(_),
        TranscriptMessage::User(words),
    ] = &messages[..]
    else {
        panic!("{messages:?}")
    };
    assert!(
        words.starts_with("50 %") && words.contains("400 tokens"),
        "{words}"
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(list_budget_hints(&play), [(50, 6), (80, 9)]);
    assert_eq!(play.state.conversation().turn_count(), 10);
    let spent = StopReason::BudgetSpent {
        budget: BudgetUnit::Tokens,
        spent: 900,
        limit: 1_000,
    };
    assert_eq!(play.state.outputs().cut_short(), Some(&spent));
    play.pushed();
    play.drive();
    assert!(matches!(play.last_request(), OutboundAction::OpenPullRequest(_)));
    play.opened();
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &spent);
}

#[test]
fn nearly_spent_budget_allows_only_exits() {
    let mut replies = vec![build_tool_reply(&build_edit_calls())];
    replies.extend((0..50).map(|number| build_priced_reply(number, 20)));
    let mut play = build_limited_play(limit_tokens(1_000), replies);
    play.until(|action| {
        matches!(
            action,
            RunAction::Record(Fact::Hinted {
                hint: ModelHint::Budget { used: 95, .. },
                ..
            })
        )
    });
    play.until_model_call();
    play.perform(decide_action(&play.state));
    play.until_model_call();
    assert_eq!(play.last_result().status, ToolStatus::Error);
    assert!(
        play.last_result().content.contains("finish, ask, give_up"),
        "{}",
        play.last_result().content
    );
    play.replies = [build_tool_reply(&[build_finish_call()])].into();
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        play.state.outputs().cut_short(),
        None,
        "an end of the work is still accepted"
    );
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn unknown_price_ends_only_money_limited_work() {
    let money = RunLimits {
        cost_usd: Some(Dollars::from_micros(1_000_000)),
        ..RunLimits::default()
    };
    let mut play = build_limited_play(money, build_work_replies());
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        play.state.outputs().cut_short(),
        Some(&StopReason::PriceUnknown {
            model: "m (its replies count no tokens)".to_owned()
        })
    );
    let mut play = build_limited_play(limit_tokens(10), build_work_replies());
    play.drive();
    assert_eq!(play.state.outputs().cut_short(), None);
}

#[test]
fn minutes_count_only_while_run_works() {
    let mut play = build_limited_play(
        RunLimits {
            minutes: Some(10),
            ..RunLimits::default()
        },
        (0..30).map(|number| build_priced_reply(number, 10)),
    );
    play.until_model_call();
    play.model_fails(true);
    play.drive();
    let before = play.state.budget().spending().busy_ms;
    let retried = Fact::Retried {
        by: None,
        trigger: None,
    };
    play.append_after(500, retried);
    let fence = play.state.journal.fence;
    play.append_after(500, Fact::TakenOver { fence });
    assert_eq!(play.state.budget().spending().busy_ms, before);
    let action = play.until(|action| matches!(action, RunAction::CallTool { .. }));
    let RunAction::CallTool { id, .. } = action else {
        panic!("{action:?}")
    };
    let result = domain::ToolResult::ok("slow");
    play.append_after(9, Fact::ToolFinished { id, result });
    play.until(|action| matches!(action, RunAction::Record(Fact::ReportRequested { .. })));
    play.drive();
    assert!(
        matches!(
            play.reason(),
            StopReason::BudgetSpent {
                budget: BudgetUnit::Minutes,
                limit: 10,
                ..
            }
        ),
        "{:?}",
        play.reason()
    );
}

#[test]
fn wait_for_workspace_counts_no_minutes() {
    let mut play = Play::with(build_work_replies());
    let action = play.until(|action| matches!(action, RunAction::OpenWorkspace { .. }));
    let RunAction::OpenWorkspace { id } = action else {
        panic!("{action:?}")
    };
    let before = play.state.budget().spending().busy_ms;
    // A comment during the wait is an entry, too.
    play.append_after(500, build_comment_news(60, "Mind the tax."));
    let opened = Fact::WorkspaceOpened {
        id,
        workspace: play.workspace.clone(),
        repository: None,
    };
    play.append_after(500, opened);
    assert_eq!(play.state.budget().spending().busy_ms, before);
}

#[test]
fn failed_checks_after_early_end_stay() {
    let mut replies = vec![build_tool_reply(&build_edit_calls())];
    replies.extend((0..20).map(|number| build_priced_reply(number, 100)));
    let mut play = build_limited_play(limit_tokens(500), replies);
    play.checks = Bench {
        is_there: true,
        head: vec!["test_empty_cart"],
        ..Bench::default()
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    assert!(play.state.outputs().returns().is_empty());
    let broken = play
        .state
        .outputs()
        .proof()
        .unwrap()
        .rows
        .iter()
        .map(|row| row.broken.len());
    assert_eq!(broken.sum::<usize>(), 1);
}

#[test]
fn triage_ends_with_spent_budget() {
    let mut replies = vec![build_priced_reply(0, 100)];
    replies.extend((1..4).map(|number| build_priced_reply(number, 100)));
    let mut play = Play {
        limits: limit_tokens(100),
        ..Play::implement(build_job_request(Job::Triage), replies)
    };
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.state.conversation().turn_count(), 1);
    assert!(matches!(play.reason(), StopReason::BudgetSpent { .. }));
}

#[test]
fn unpaid_review_is_omitted_and_reported() {
    let paid = |reply| ModelReply {
        usage: build_priced_reply(0, 60).usage,
        ..reply
    };
    let request = build_job_request(Job::Implement);
    let mut play = Play {
        limits: limit_tokens(120),
        ..Play::implement_reviewed(request, build_work_replies().map(paid), [])
    };
    assert_eq!(play.drive(), RunAction::Wait);
    let review = play.state.outputs().review().map(|review| review.is_complete);
    assert_eq!(review, Some(false));
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    play.pushed();
    assert_eq!(play.drive(), RunAction::Wait);
    let description = play.description();
    assert!(description.unreviewed, "people read of it: {description:?}");
}
