//! Triage of a ticket before the work.

use domain::{
    Dollars, EarlierPullRequest, Fact, GiveUp, IntakeDecision, Job, JournalEntry, ModelReply, OutboundAction,
    OutboundOutcome, OutboundReceipt, PullRequestStatus, RunPhase, SimilarTicket, StopReason, TicketComment,
    TicketNews, Timestamp, WorkClass, report,
};
use serde_json::{Value, json};
use testkit::model::surrounding_replies;

use super::play::{Play, build_end_reply, build_job_request, build_tool_reply, build_work_replies};
use crate::run::machine::PhaseResult;
use crate::run::{RunAction, decide_action};
use crate::transcript::{ModelTranscript, TranscriptMessage};

fn build_intake_play(replies: &[ModelReply]) -> Play {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.intake = true;
    asked.text.description =
        "Totals are wrong.\n\nAcceptance criteria:\n- Totals count pieces\n- Taxes stay".to_owned();
    let mut play = Play::implement(asked, build_work_replies());
    play.around
        .insert(RunPhase::Intake, replies.iter().cloned().collect());
    play
}

fn build_intake_reply(fields: &Value) -> ModelReply {
    build_end_reply(&surrounding_replies::render_intake(fields))
}

fn read_last_message(transcript: &ModelTranscript) -> &str {
    match transcript.messages.last().unwrap() {
        TranscriptMessage::User(words) => words,
        other => panic!("{other:?}"),
    }
}

fn build_comment_news(sequence: u64, may_instruct: bool) -> Fact {
    let at = Timestamp::from_unix_ms(1);
    let comment = TicketComment {
        author: "ada".to_owned(),
        at,
        text: "They are net.".to_owned(),
        may_instruct,
        is_new: false,
    };
    Fact::NewsArrived {
        sequence,
        at,
        news: TicketNews::Comment {
            comment,
            pull_request: None,
            attachments: Vec::new(),
        },
    }
}

#[test]
fn work_prompt_has_intake_and_criteria() {
    let fields = json!({
        "kind": "bug", "one_liner": "Multiply by the quantity.", "class": "trivial", "files": ["shop/cart.py", "../etc"],
        "components": ["checkout"],
        "criteria": [{"quote": "totals  are WRONG", "testable": true}, {"quote": "taxes stay", "testable": true}],
    });
    let mut play = build_intake_play(&[build_intake_reply(&fields)]);
    play.until_model_call();
    assert_eq!(play.transcript().tools, []);
    assert_eq!(play.transcript().output.unwrap().name, "intake");
    play.drive();
    let intake = play.state.outputs().intake().present().unwrap();
    let quotes: Vec<_> = intake
        .criteria
        .iter()
        .map(|criterion| (criterion.quote.as_str(), criterion.testable))
        .collect();
    assert_eq!(
        quotes,
        [
            ("Totals count pieces", false),
            ("Taxes stay", true),
            ("totals  are WRONG", true)
        ]
    );
    assert_eq!(intake.files, ["shop/cart.py"]);
    assert_eq!(
        (play.state.outputs().class(), play.state.source().lookups()),
        (WorkClass::Trivial, 2)
    );
    let TranscriptMessage::User(task) = &play.transcript().messages[0] else {
        panic!("no task")
    };
    assert!(
        task.contains("bug: Multiply by the quantity.\nAffected parts: checkout"),
        "{task}"
    );
}

#[test]
fn work_begins_only_with_rest_of_budget() {
    for (limit, does_work) in [(100, false), (1_000_000, true)] {
        let mut reply = build_intake_reply(&json!({}));
        reply.cost_micros = Some(100);
        let mut play = build_intake_play(&[reply]);
        play.limits.cost_usd = Some(Dollars::from_micros(limit));
        play.drive();
        let asks_in_work = |entry: &JournalEntry| {
            matches!(
                &entry.fact,
                Fact::ModelRequested {
                    phase: RunPhase::Work,
                    ..
                }
            )
        };
        assert_eq!(play.entries.iter().any(asks_in_work), does_work, "{limit}");
        let is_spent = matches!(
            play.state.lifecycle().finished(),
            Some(StopReason::BudgetSpent { .. })
        );
        assert_eq!(is_spent, !does_work, "{limit}");
    }
}

#[test]
fn finish_requires_row_per_criterion() {
    let mut play = build_intake_play(&[build_intake_reply(&json!({}))]);
    play.drive();
    let words = &play.result_of("finish").content;
    assert!(
        words.contains("- Totals count pieces") && words.contains("- Taxes stay"),
        "{words}"
    );
}

#[test]
fn second_unusable_intake_is_skipped() {
    let cases = [
        (
            json!({"criteria": [{"quote": "Deploy on Fridays", "testable": true}]}),
            "does not contain \"Deploy on Fridays\"",
        ),
        (json!({"one_liner": ""}), "`one_liner` must be"),
        (json!({"decision": "ask"}), "Ask one to three questions"),
        (json!({"decision": "decline"}), "`decline` needs"),
        (json!({"class": "huge"}), "unknown variant `huge`"),
    ];
    for (fields, fault) in cases {
        let mut play = build_intake_play(&[build_intake_reply(&fields), build_intake_reply(&fields)]);
        play.until_model_call();
        play.perform(decide_action(&play.state));
        play.until_model_call();
        let transcript = play.transcript();
        assert!(
            read_last_message(&transcript).contains(fault),
            "{}",
            read_last_message(&transcript)
        );
        play.perform(decide_action(&play.state));
        play.until_model_call();
        assert_eq!(play.state.outputs().intake(), PhaseResult::Missing);
        assert_eq!(play.state.conversation().dialog().unwrap().phase, RunPhase::Work);
    }
}

#[test]
fn reply_with_tool_calls_is_unusable() {
    let mut play = build_intake_play(&[
        build_tool_reply(&[("read_file", json!({}))]),
        build_intake_reply(&json!({"class": "large"})),
    ]);
    play.until_model_call();
    play.perform(decide_action(&play.state));
    play.until_model_call();
    play.perform(decide_action(&play.state));
    play.until(|action| matches!(action, RunAction::AskModel { .. }));
    assert_eq!(play.state.outputs().class(), WorkClass::Large);
}

#[test]
fn intake_question_precedes_work_with_answer() {
    let questions = json!([{"text": "Gross or net?", "options": ["gross", "net"]}]);
    let mut play = build_intake_play(&[build_intake_reply(
        &json!({"decision": "ask", "questions": questions}),
    )]);
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(
        matches!(play.last_request(), OutboundAction::QuestionAsked(report::QuestionAsked { questions }) if questions[0].text == "Gross or net?")
    );
    play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.is_parked_for("answer"));
    play.append(build_comment_news(60, false));
    assert_eq!(play.drive(), RunAction::Wait, "a stranger answers nothing");
    play.append(build_comment_news(61, true));
    play.until_model_call();
    assert_eq!(play.state.conversation().dialog().unwrap().phase, RunPhase::Work);
    let transcript = play.transcript();
    assert!(read_last_message(&transcript).contains("They are net."));
}

#[test]
fn declined_ticket_ends_run_with_reason() {
    let fields = json!({"decision": "decline", "decline_kind": "too_large", "reason": "Split it by module."});
    let mut play = build_intake_play(&[build_intake_reply(&fields)]);
    assert_eq!(play.drive(), RunAction::Rest);
    let reason = StopReason::GivenUp {
        kind: GiveUp::TooLarge,
        evidence: "Split it by module.".to_owned(),
    };
    assert_eq!(play.reason(), &reason);
    assert!(matches!(
        play.state.outputs().intake().present().unwrap().decision,
        IntakeDecision::Decline { .. }
    ));
}

#[test]
fn intake_modules_follow_rules_with_reasons() {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.intake = true;
    let module = |name: &str| domain::ModuleRules {
        name: name.to_owned(),
        paths: vec![format!("{name}/**")],
        description: "All of it.".to_owned(),
        ..domain::ModuleRules::default()
    };
    asked.rules.modules = vec![module("cart"), module("mail")];
    let names =
        |name: &str| build_intake_reply(&json!({"modules": [{"name": name, "why": "It has\nthe total."}]}));
    let mut play = Play::implement(asked, build_work_replies());
    play.around
        .insert(RunPhase::Intake, [names("basket"), names("cart")].into());
    play.until_model_call();
    let shown = format!("{:?}", play.transcript().messages);
    assert!(shown.contains("- mail (mail/**): All of it."), "{shown}");
    play.until(|action| matches!(action, RunAction::CallTool { .. }));
    let shown = format!("{:?}", play.transcript().messages);
    assert!(shown.contains("Module cart: It has the total."), "{shown}");
    assert_eq!(
        play.state.outputs().intake().present().unwrap().modules[0].name,
        "cart"
    );
}

#[test]
fn duplicate_decline_requires_known_ticket() {
    let declined = |kind: &str, repeats: &str| {
        build_intake_reply(
            &json!({"decision": "decline", "decline_kind": kind, "repeats": repeats, "reason": "Both want the same."}),
        )
    };
    let earlier = |number, status| EarlierPullRequest {
        number,
        title: "Total by quantity".to_owned(),
        branch: "eng-1".to_owned(),
        author: "rita".to_owned(),
        is_ours: false,
        status,
        said: Vec::new(),
    };
    let ended = |kind: &str, repeats: &str| {
        let mut asked = build_job_request(Job::Implement);
        asked.rules.agent.intake = true;
        asked.background.similar = vec![SimilarTicket {
            key: "ENG-9".to_owned(),
            summary: "The total is wrong".to_owned(),
            status: "To Do".to_owned(),
        }];
        asked.background.earlier = vec![
            earlier(4, PullRequestStatus::Merged),
            earlier(5, PullRequestStatus::Closed),
        ];
        let mut play = Play::implement(asked, build_work_replies());
        play.around.insert(
            RunPhase::Intake,
            [declined(kind, repeats), build_intake_reply(&json!({}))].into(),
        );
        play.drive();
        match play.state.outputs().intake().present().unwrap().decision.clone() {
            IntakeDecision::Decline { reason, .. } => Some(reason),
            IntakeDecision::Go | IntakeDecision::Ask { .. } => None,
        }
    };
    let reason = |text: &str| Some(text.to_owned());
    assert_eq!(ended("duplicate", "ENG-9"), reason("ENG-9: Both want the same."));
    assert_eq!(ended("already_done", "#4"), reason("#4: Both want the same."));
    assert_eq!(ended("duplicate", "ENG-10"), None, "that ticket is unknown");
    assert_eq!(ended("already_done", "#5"), None, "it was refused");
    assert_eq!(ended("duplicate", ""), None);
}

#[test]
fn long_trivial_ticket_becomes_normal() {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.intake = true;
    let read = |line| build_tool_reply(&[("read_file", json!({"path": "a", "offset": line}))]);
    let mut play = Play::implement(asked, (0..70).map(read));
    play.around.insert(
        RunPhase::Intake,
        [build_intake_reply(&json!({"class": "trivial"}))].into(),
    );
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::TurnLimit { turns: 60 });
    assert_eq!(play.state.outputs().class(), WorkClass::Normal);
}
