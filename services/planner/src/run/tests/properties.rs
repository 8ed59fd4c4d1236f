//! Properties for any replies of the model and any crash of a planner.

use std::collections::BTreeMap;

use domain::{
    ApprovalRule, DecisionVerdict, Fact, Job, JobRequest, JobSubject, ModelReply, OutboundAction,
    OutboundOutcome, OutboundReceipt, OutboundRefusal, PlanningRule, ReplyStop, RunFence, TicketComment,
    TicketNews, Timestamp,
};
use proptest::prelude::*;
use serde_json::json;

use super::play::{
    Play, build_entry, build_finish_call, build_job_request, build_reply, build_workspace, decided_on,
    pull_request, run_id,
};
use super::rounds::{asked_in_a_comment, build_review_subject, finish_review, red_checks};
use crate::prompts;
use crate::run::{PlannerRunState, RunAction, decide_action, next_conversation};
use crate::transcript::TranscriptMessage;

pub(super) fn any_reply() -> impl Strategy<Value = ModelReply> {
    let call = prop_oneof![
        Just(("read_file", json!({}))),
        Just(("edit_file", json!({}))),
        Just(("edit_file", json!("cut"))),
        Just(("commit_changes", json!({}))),
        Just(("nonsense", json!({}))),
        Just(("docs__search", json!({}))),
        Just(("docs__create", json!({}))),
        Just(build_finish_call()),
        Just(finish_review()),
        Just(("submit_answer", json!({"answer": "Net.", "citations": []}))),
        Just((
            "give_up",
            json!({"kind": "blocked", "evidence": "There is no compiler."})
        )),
        Just(("ask", json!({"questions": [{"text": "Gross or net?"}]}))),
    ];
    let stop = prop_oneof![6 => Just(ReplyStop::ToolUse), 1 => Just(ReplyStop::MaxTokens), 1 => Just(ReplyStop::EndTurn)];
    (prop::collection::vec(call, 0..4), stop).prop_map(|(calls, stop)| {
        let mut reply = build_reply(stop, "I try.", &calls);
        reply.usage.input_tokens = 100;
        reply
    })
}

/// Returns a request: the work alone, every phase, failed checks, a review, or a question.
fn choose_request(kind: u8) -> JobRequest {
    let (mut asked, is_full) = (build_job_request(Job::Implement), kind == 1);
    asked.rules.agent.intake = is_full;
    asked.rules.agent.auto_review = is_full;
    if is_full {
        asked.rules.agent.plan = PlanningRule::Always;
        asked.rules.agent.mcp = vec!["docs".to_owned()];
    }
    let (job, about) = match kind {
        2 => (Job::FixCi, red_checks()),
        3 => (Job::AddressReview, build_review_subject()),
        4 => (Job::Answer, asked_in_a_comment()),
        5 => {
            let task = domain::DiscussionTask::Plan;
            let wanted = domain::DiscussionRequest { task, comment: None };
            (Job::Discuss, JobSubject::Discussion(Box::new(wanted)))
        }
        _ => (Job::Implement, JobSubject::Ticket),
    };
    JobRequest { job, about, ..asked }
}

pub(super) fn whole_run(
    (replies, around): (Vec<ModelReply>, Vec<ModelReply>),
    refusals: u8,
    (gate, kind): (bool, u8),
    faults: u8,
) -> Play {
    let mut asked = choose_request(kind);
    asked.rules.agent.max_turns = 8;
    if gate {
        asked.rules.agent.approval = ApprovalRule::BeforePush;
    }
    let mut play = Play::implement(asked, replies);
    play.surround(&around);
    // Eight turns of the work, with hints about the budget.
    play.limits.tokens = Some(900);
    play.faults = faults;
    for round in 0..100_u8 {
        if play.drive() == RunAction::Rest {
            return play;
        }
        match play.last_request() {
            _ if play.is_parked_for("retry") => play.retry(),
            _ if play.is_parked_for("answer") => play.append(build_answer(u64::from(round))),
            OutboundAction::DecisionNeeded(asked) if play.is_parked_for("decision") => {
                let head = asked.push.head.as_str().chars().next().unwrap();
                let verdict = if round % 2 == 0 {
                    DecisionVerdict::Revise
                } else {
                    DecisionVerdict::Approve
                };
                play.append(decided_on(head, verdict));
            }
            _ if round < refusals => play.settle(OutboundOutcome::Refused(OutboundRefusal::NotInspected)),
            OutboundAction::PushBranch(_) => play.pushed(),
            OutboundAction::DecisionNeeded(_) => play.shown(),
            OutboundAction::QuestionAsked(_) => play.settle(OutboundOutcome::Done(OutboundReceipt::Told)),
            _ => play.opened(),
        }
    }
    panic!("the run never ends");
}

/// Settles what a waiting run waits for.
fn settle_wait(play: &mut Play) {
    match (
        play.state.lifecycle().parked().map(domain::WaitCondition::as_str),
        play.last_request(),
    ) {
        (Some("retry"), _) => play.retry(),
        (Some("answer"), _) => play.append(build_answer(play.state.journal.position)),
        (_, OutboundAction::PushBranch(_)) => play.pushed(),
        (_, OutboundAction::QuestionAsked(_) | OutboundAction::WorkStarted(_)) => {
            play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
        }
        _ => play.opened(),
    }
}

/// Returns the messages of the next model call.
fn render_messages(state: &PlannerRunState) -> Vec<TranscriptMessage> {
    prompts::render_conversation(&next_conversation(state).unwrap())
        .unwrap()
        .0
        .messages
}

/// Returns Ada's answer to a question.
fn build_answer(sequence: u64) -> Fact {
    let at = Timestamp::from_unix_ms(1);
    let comment = TicketComment {
        author: "ada".to_owned(),
        at,
        text: "Net.".to_owned(),
        may_instruct: true,
        is_new: false,
    };
    let news = TicketNews::Comment {
        comment,
        pull_request: None,
        attachments: Vec::new(),
    };
    Fact::NewsArrived {
        sequence: 10_000 + sequence,
        at,
        news,
    }
}

/// Returns the facts that may arrive while a step is running.
fn list_interjections(play: &Play, number: u64) -> Vec<Fact> {
    let at = Timestamp::from_unix_ms(1);
    let comment = TicketComment {
        author: "ada".to_owned(),
        at,
        text: "Mind the tax.".to_owned(),
        may_instruct: true,
        is_new: false,
    };
    let news = TicketNews::Comment {
        comment,
        pull_request: None,
        attachments: Vec::new(),
    };
    let open = play
        .state
        .delivery()
        .reports()
        .iter()
        .find(|report| report.outcome.is_none());
    let settled = open.map(|report| Fact::ReportSettled {
        id: report.id.clone(),
        outcome: OutboundOutcome::Done(match &report.request {
            OutboundAction::PushBranch(push) => OutboundReceipt::Pushed {
                branch: push.branch.clone(),
                head: push.head.clone(),
                diff: None,
            },
            OutboundAction::OpenPullRequest(_) => OutboundReceipt::PullRequestOpened(pull_request()),
            _ => OutboundReceipt::Told,
        }),
    });
    let comment = Fact::NewsArrived {
        sequence: number,
        at,
        news,
    };
    let facts = [
        Some(comment),
        settled,
        Some(Fact::Retried {
            by: Some("ada".to_owned()),
            trigger: None,
        }),
    ];
    facts
        .into_iter()
        .flatten()
        .filter(|fact| play.state.accepts(fact))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn interleaved_planners_leave_one_history(
        replies in prop::collection::vec(any_reply(), 0..6),
        faults in 0_u8..4,
        kind in 0_u8..5,
        steps in prop::collection::vec(0_usize..2, 1..120),
    ) {
        let first = Play::implement(choose_request(kind), replies.clone());
        let mut history = first.entries.clone();
        let mut planners: [Option<Play>; 2] = [Some(first), None];
        let mut fence = 9;
        for who in steps {
            let Some(planner) = &mut planners[who] else {
                let state = PlannerRunState::fold(&run_id(), &history).unwrap().unwrap();
                if state.lifecycle().finished().is_some() {
                    break;
                }
                let mut taker = Play::resumed(history.clone(), state, replies.clone());
                taker.faults = faults;
                fence += 1;
                taker.append(Fact::TakenOver { fence: RunFence::new(1, fence, 1) });
                history.clone_from(&taker.entries);
                planners[who] = Some(taker);
                continue;
            };
            let known = planner.entries.len();
            match decide_action(&planner.state) {
                RunAction::Rest => {}
                RunAction::Wait => settle_wait(planner),
                action => planner.perform(action),
            }
            // The server accepts an entry only after the last one that its writer knows.
            if planner.entries.len() > known {
                if known == history.len() {
                    history.extend_from_slice(&planner.entries[known..]);
                } else {
                    planners[who] = None;
                }
            }
        }
        let state = PlannerRunState::fold(&run_id(), &history);
        prop_assert!(state.is_ok(), "{:?}", state.err());
        let nonces: Vec<u64> = history.iter().map(|entry| entry.position).collect();
        prop_assert_eq!(nonces, (0..history.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn step_outcome_stays_legal_after_interjections(
        replies in prop::collection::vec(any_reply(), 0..6),
        faults in 0_u8..3,
        around in prop::collection::vec(any_reply(), 0..3),
        kind in 0_u8..5,
        interjections in prop::collection::vec(any::<bool>(), 200),
    ) {
        let mut play = Play::implement(choose_request(kind), replies);
        play.surround(&around);
        play.faults = faults;
        for (number, is_due) in (0_u64..).zip(interjections) {
            let action = decide_action(&play.state);
            match action {
                RunAction::Rest => break,
                RunAction::Wait => {
                    settle_wait(&mut play);
                    continue;
                }
                _ => {}
            }
            let is_interjected = is_due && !action.is_immediate();
            // A step keeps the state that it was decided on.
            let brought = play.brings(action);
            if is_interjected {
                for fact in list_interjections(&play, number) {
                    play.append(fact);
                }
            }
            match brought {
                Some(fact) => {
                    let entry = build_entry(play.state.journal.position, fact);
                    let applied = play.state.apply(&entry);
                    prop_assert!(applied.is_ok(), "{:?}", applied.err());
                    play.entries.push(entry);
                }
                None => {
                    let sent = play.state.delivery().first_unsent().map(|report| report.id.clone());
                    sent.iter().for_each(|id| play.state.sent(id));
                }
            }
        }
    }

    #[test]
    fn shown_messages_are_stable_over_restart(
        replies in prop::collection::vec(any_reply(), 0..12),
        around in prop::collection::vec(any_reply(), 0..3),
        kind in 0_u8..5,
        faults in 0_u8..3,
    ) {
        let whole = whole_run((replies, around), 1, (false, kind), faults);
        let mut all: BTreeMap<_, Vec<TranscriptMessage>> = BTreeMap::new();
        for cut in 1..=whole.entries.len() {
            let state = PlannerRunState::fold(&run_id(), &whole.entries[..cut]).unwrap().unwrap();
            if !matches!(decide_action(&state), RunAction::AskModel { .. }) {
                continue;
            }
            let shown = render_messages(&state);
            let dialog = state.conversation().dialog().unwrap();
            let before = all.entry((dialog.phase, dialog.round)).or_default();
            let mut resumed = state.clone();
            resumed.apply(&build_entry(state.journal.position, Fact::TakenOver { fence: RunFence::new(1, 9, 1) })).unwrap();
            prop_assert_eq!(&render_messages(&resumed), &shown);
            prop_assert_eq!(&shown[..before.len()], &before[..]);
            *before = shown;
        }
    }

    #[test]
    fn workspace_loss_is_legal_at_every_step(
        replies in prop::collection::vec(any_reply(), 0..6),
        around in prop::collection::vec(any_reply(), 0..3),
        kind in 0_u8..5,
        losses in prop::collection::vec(prop::bool::weighted(0.3), 60),
    ) {
        let mut play = Play::implement(choose_request(kind), replies);
        play.surround(&around);
        let mut losses = losses.into_iter();
        for _ in 0..600 {
            let action = decide_action(&play.state);
            let is_there = !action.is_immediate()
                && !matches!(action, RunAction::AskModel { .. } | RunAction::OpenWorkspace { .. } | RunAction::SendReport { .. });
            match action {
                RunAction::Rest => return Ok(()),
                RunAction::Wait => settle_wait(&mut play),
                _ if is_there && losses.next().unwrap_or(false) => {
                    let snapshot = play.state.source().work().snapshot.clone();
                    play.append(Fact::WorkspaceRestored { workspace: build_workspace(), snapshot, repository: None });
                }
                action => play.perform(action),
            }
        }
        prop_assert!(false, "the run never ends");
    }

    #[test]
    fn journal_prefixes_resume_to_legal_steps(
        replies in prop::collection::vec(any_reply(), 0..8),
        refusals in 0_u8..3,
        gate in any::<bool>(),
        faults in 0_u8..8,
        around in prop::collection::vec(any_reply(), 0..3),
        kind in 0_u8..5,
    ) {
        let whole = whole_run((replies, around), refusals, (gate, kind), faults);
        for cut in 1..=whole.entries.len() {
            let entries = whole.entries[..cut].to_vec();
            let state = PlannerRunState::fold(&run_id(), &entries).unwrap().unwrap();
            let mut resumed = Play::resumed(entries, state, Vec::new());
            let at = resumed.state.journal.position;
            let taken_over = Fact::TakenOver { fence: RunFence::new(1, 9, 1) };
            if resumed.state.lifecycle().finished().is_none() {
                resumed.append(taken_over);
                // A requested step keeps its id; any other gets one after the takeover.
                if let RunAction::CallTool { id, .. } | RunAction::AskModel { id } | RunAction::OpenWorkspace { id } = decide_action(&resumed.state) {
                    prop_assert!(id.as_str() != run_id().call(at).as_str());
                }
            }
            resumed.drive();
        }
    }
}
