//! Lines about models: requests, replies and the outputs of phases.

use domain::{
    IntakeDecision, ModelHint, ModelReply, PhaseOutput, RunPhase, TicketIntake, WorkExit,
    text::{format_count, group_digits},
};

use super::{
    Tone, Who,
    line::{TimelineLine, format_dollars, format_length},
};

pub(super) fn render_model_request(turn: u32, phase: RunPhase) -> TimelineLine {
    // Names of phases are identifiers with underscores; people read spaces.
    let words = format!("turn {turn} of {}", phase.as_str().replace('_', " "));
    TimelineLine::new(Who::Model, words).tone(Tone::Quiet)
}

pub(super) fn render_model_reply(reply: &ModelReply) -> TimelineLine {
    let calls: Vec<_> = reply.tool_calls().map(|call| call.name.as_str()).collect();
    let (text, took) = (reply.text(), format_usage(reply));
    if calls.is_empty() {
        TimelineLine::new(Who::Model, format!("says ({took}): {text}")).rest_of(&text)
    } else {
        TimelineLine::new(Who::Model, format!("wants {} ({took})", calls.join(", "))).more(&text)
    }
}

/// Formats the tokens and the cost of a reply.
fn format_usage(reply: &ModelReply) -> String {
    // A missing price is omitted rather than displayed as 0.
    let usage = reply.usage;
    let cost = reply.cost_micros;
    let cost = cost.map_or_else(String::new, |micros| format!(", {}", format_dollars(micros)));
    let cached = match usage.cache_read_tokens {
        0 => String::new(),
        // Cached tokens are a part of the tokens in.
        cached => format!(", {} of them cached", group_digits(cached)),
    };
    format!(
        "{} in{cached}, {} out{cost}",
        format_count(usage.input_tokens, "token"),
        group_digits(usage.output_tokens)
    )
}

pub(super) fn render_hint(hint: &ModelHint) -> TimelineLine {
    let words = format!("tells the model: {}", hint.as_str());
    TimelineLine::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn render_cleared_context(turns: u32, tokens: u64) -> TimelineLine {
    let turns = format_count(turns.into(), "turn");
    let tokens = format_count(tokens, "token");
    let words = format!("old results of {turns} left out: about {tokens} less");
    TimelineLine::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn render_summary_request(turns: u32, tokens: u64) -> TimelineLine {
    let turns = format_count(turns.into(), "turn");
    let tokens = format_count(tokens, "token");
    let words = format!("asks for a summary of {turns} with about {tokens}");
    TimelineLine::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn render_summary(reply: &ModelReply) -> TimelineLine {
    let text = reply.text();
    TimelineLine::new(Who::Model, format!("sums up: {text}")).rest_of(&text)
}

/// Renders the output of a phase.
pub(super) fn render_phase_output(output: &PhaseOutput) -> TimelineLine {
    let titled =
        |head: &str, text: &str| TimelineLine::new(Who::Model, format!("{head}: {text}")).rest_of(text);
    let nothing = |words: &str| TimelineLine::new(Who::Model, words).tone(Tone::Warm);
    match output {
        PhaseOutput::Intake { intake: Some(it) } => render_intake(it),
        PhaseOutput::Intake { intake: None } => nothing("the first look brought nothing usable"),
        PhaseOutput::Plan { plan: Some(plan) } => titled(
            &format!("plan of {}", format_length(&plan.steps, "step")),
            &plan.goal,
        ),
        PhaseOutput::Plan { plan: None } => nothing("no plan was made"),
        PhaseOutput::Answer { answer: Some(answer) } => titled("answer", &answer.answer),
        PhaseOutput::Answer { answer: None } => nothing("no answer was of use"),
        PhaseOutput::PullRequest { review: Some(review) } => {
            let head = format!("review with {}", format_length(&review.comments, "comment"));
            titled(&head, &review.summary)
        }
        PhaseOutput::PullRequest { review: None } => nothing("the review came to no end"),
        PhaseOutput::Issues { issues } => {
            TimelineLine::new(Who::Model, format!("planned issues: {}", issues.len()))
        }
        PhaseOutput::Work { exit } => render_work_exit(exit),
        PhaseOutput::Prove { proof } => TimelineLine::new(Who::Planner, format!("evidence {}", proof.level)),
        // An incomplete review without objections is not an approval.
        PhaseOutput::Review { review } if !review.is_complete => nothing("the review came to no end"),
        PhaseOutput::Review { review } => match review.blocking().count() {
            0 => TimelineLine::new(Who::Model, "reviewed: no objection").tone(Tone::Good),
            count => {
                let words = format!("reviewed: {}", format_count(count as u64, "objection"));
                TimelineLine::new(Who::Model, words).tone(Tone::Warm)
            }
        },
    }
}

/// Renders the end of the work.
fn render_work_exit(exit: &WorkExit) -> TimelineLine {
    match exit {
        WorkExit::Finished(handover) => {
            TimelineLine::new(Who::Model, format!("work finished: {}", handover.title))
                .more(&handover.summary)
                .tone(Tone::Good)
        }
        WorkExit::CutShort { reason, .. } => {
            let words = format!("work ended early: {}", reason.words());
            TimelineLine::new(Who::Planner, words).tone(Tone::Warm)
        }
        WorkExit::GaveUp { kind, evidence } => {
            let kind = kind.as_str().replace('_', " ");
            TimelineLine::failed(Who::Model, &format!("gave up ({kind})"), evidence)
        }
    }
}

/// Renders the assessment of a ticket.
fn render_intake(intake: &TicketIntake) -> TimelineLine {
    let next = match &intake.decision {
        IntakeDecision::Go => "goes ahead",
        IntakeDecision::Ask { .. } => "asks first",
        IntakeDecision::Decline { .. } => "declines",
    };
    let (kind, class) = (intake.kind.as_str(), intake.class.as_str());
    let modules: Vec<&str> = intake.modules.iter().map(|module| module.name.as_str()).collect();
    let modules = if modules.is_empty() {
        String::new()
    } else {
        format!(" in {}", modules.join(", "))
    };
    let words = format!("{class} {kind}{modules}, {next}: {}", intake.one_liner);
    TimelineLine::new(Who::Model, words).rest_of(&intake.one_liner)
}
