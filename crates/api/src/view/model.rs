//! Lines about models: requests, replies and the outputs of phases.

use domain::{Exit, Hint, Intake, IntakeDecision, Phase, PhaseOutput, Reply};

use super::{
    Tone, Who,
    line::{Line, dollars},
};

pub(super) fn asked(turn: u32, phase: Phase) -> Line {
    // Names of phases are identifiers with underscores; people read spaces.
    let words = format!("turn {turn} of {}", phase.as_str().replace('_', " "));
    Line::new(Who::Model, words).tone(Tone::Quiet)
}

pub(super) fn replied(reply: &Reply) -> Line {
    let calls: Vec<_> = reply.tool_calls().map(|call| call.name.as_str()).collect();
    let (text, took) = (reply.text(), took(reply));
    match calls.is_empty() {
        true => Line::new(Who::Model, format!("says ({took}): {text}")).rest_of(&text),
        false => Line::new(Who::Model, format!("wants {} ({took})", calls.join(", "))).more(&text),
    }
}

/// Formats the tokens and the cost of a reply.
fn took(reply: &Reply) -> String {
    // A missing price is omitted rather than displayed as 0.
    let usage = reply.usage;
    let cost = reply.cost_micros;
    let cost = cost.map_or_else(String::new, |micros| format!(", {}", dollars(micros)));
    let cached = match usage.cache_read_tokens {
        0 => String::new(),
        cached => format!(", {cached} cached"),
    };
    format!(
        "{}+{} tokens{cached}{cost}",
        usage.input_tokens, usage.output_tokens
    )
}

pub(super) fn hinted(hint: &Hint) -> Line {
    let words = format!("tells the model: {}", hint.as_str());
    Line::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn cleared(turns: u32, tokens: u64) -> Line {
    let words = format!("old results of {turns} turns left out: about {tokens} tokens less");
    Line::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn summary_asked(turns: u32, tokens: u64) -> Line {
    let words = format!("asks for a summary of {turns} turns with about {tokens} tokens");
    Line::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn summed_up(reply: &Reply) -> Line {
    let text = reply.text();
    Line::new(Who::Model, format!("sums up: {text}")).rest_of(&text)
}

/// Renders the output of a phase.
pub(super) fn output(output: &PhaseOutput) -> Line {
    let said = |head: &str, text: &str| Line::new(Who::Model, format!("{head}: {text}")).rest_of(text);
    let nothing = |words: &str| Line::new(Who::Model, words).tone(Tone::Warm);
    match output {
        PhaseOutput::Intake { intake: Some(it) } => intake(it),
        PhaseOutput::Intake { intake: None } => nothing("the first look brought nothing usable"),
        PhaseOutput::Plan { plan: Some(plan) } => {
            said(&format!("plan of {} steps", plan.steps.len()), &plan.goal)
        }
        PhaseOutput::Plan { plan: None } => nothing("no plan was made"),
        PhaseOutput::Answer { answer: Some(answer) } => said("answer", &answer.answer),
        PhaseOutput::Answer { answer: None } => nothing("no answer was of use"),
        PhaseOutput::PullRequest { review: Some(review) } => {
            let head = format!("review with {} comments", review.comments.len());
            said(&head, &review.summary)
        }
        PhaseOutput::PullRequest { review: None } => nothing("the review came to no end"),
        PhaseOutput::Issues { issues } => Line::new(Who::Model, format!("planned issues: {}", issues.len())),
        PhaseOutput::Work { exit } => work(exit),
        PhaseOutput::Prove { proof } => Line::new(Who::Planner, format!("evidence {}", proof.level)),
        // An incomplete review without objections is not an approval.
        PhaseOutput::Review { review } if !review.is_complete => nothing("the review came to no end"),
        PhaseOutput::Review { review } => match review.blocking().count() {
            0 => Line::new(Who::Model, "reviewed: no objection").tone(Tone::Good),
            count => Line::new(Who::Model, format!("reviewed: {count} objections")).tone(Tone::Warm),
        },
    }
}

/// Renders the end of the work.
fn work(exit: &Exit) -> Line {
    match exit {
        Exit::Finished(handover) => Line::new(Who::Model, format!("work finished: {}", handover.title))
            .more(&handover.summary)
            .tone(Tone::Good),
        Exit::CutShort { reason, .. } => {
            let words = format!("work ended early: {}", reason.words());
            Line::new(Who::Planner, words).tone(Tone::Warm)
        }
        Exit::GaveUp { kind, evidence } => {
            let kind = kind.as_str().replace('_', " ");
            Line::failed(Who::Model, &format!("gave up ({kind})"), evidence)
        }
    }
}

/// Renders the assessment of a ticket.
fn intake(intake: &Intake) -> Line {
    let next = match &intake.decision {
        IntakeDecision::Go => "goes ahead",
        IntakeDecision::Ask { .. } => "asks first",
        IntakeDecision::Decline { .. } => "declines",
    };
    let (kind, class) = (intake.kind.as_str(), intake.class.as_str());
    let modules: Vec<&str> = intake.modules.iter().map(|module| module.name.as_str()).collect();
    let modules = match modules.is_empty() {
        true => String::new(),
        false => format!(" in {}", modules.join(", ")),
    };
    let words = format!("{class} {kind}{modules}, {next}: {}", intake.one_liner);
    Line::new(Who::Model, words).rest_of(&intake.one_liner)
}
