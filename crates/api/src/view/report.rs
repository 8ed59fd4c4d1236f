//! Lines about reports: requests, outcomes and returns.

use domain::{MetadataPattern, OutboundAction, OutboundOutcome, OutboundReceipt, ReturnReason};

use super::{
    Tone, Who,
    line::{TimelineLine, format_length},
};

pub(super) fn render_request(request: &OutboundAction) -> TimelineLine {
    TimelineLine::new(Who::Planner, format!("asks: {}", request.summary())).tone(Tone::Soft)
}

pub(super) fn render_outcome(outcome: &OutboundOutcome) -> TimelineLine {
    match outcome {
        OutboundOutcome::Done(receipt) => render_receipt(receipt),
        OutboundOutcome::Refused(refusal) => TimelineLine::failed(Who::Reporter, "refused", &refusal.words()),
        OutboundOutcome::Failed { detail } => TimelineLine::failed(Who::Reporter, "failed", detail),
    }
}

fn render_receipt(receipt: &OutboundReceipt) -> TimelineLine {
    let words = match receipt {
        OutboundReceipt::Pushed { branch, head, .. } => format!("pushed {branch} at {}", head.short()),
        OutboundReceipt::PullRequestOpened(opened) => format!("opened {}", opened.url),
        OutboundReceipt::DecisionAsked { head, .. } => format!("asked a person about {}", head.short()),
        OutboundReceipt::Started { patterns } => {
            let required: Vec<String> = patterns.iter().map(MetadataPattern::words).collect();
            format!(
                "updated the ticket; the repository requires: {}",
                required.join("; ")
            )
        }
        OutboundReceipt::Told => {
            return TimelineLine::new(Who::Reporter, "updated the ticket").tone(Tone::Soft);
        }
        OutboundReceipt::Rehearsed { would } => {
            let effects: usize = would.iter().map(|one| one.effects.len()).sum();
            let reports = would.len();
            format!("rehearsed: {effects} effects in {reports} reports, none of them done")
        }
    };
    TimelineLine::new(Who::Reporter, words)
}

pub(super) fn render_return(why: &ReturnReason) -> TimelineLine {
    let back =
        |text: String| TimelineLine::new(Who::Planner, format!("back to work: {text}")).tone(Tone::Warm);
    match why {
        ReturnReason::Refused(refusal) => {
            let words = refusal.words();
            back(format!("refused: {words}")).rest_of(&words)
        }
        ReturnReason::Feedback { by, feedback } => {
            back(format!("{by} asks for changes: {feedback}")).rest_of(feedback)
        }
        ReturnReason::Replan { by, feedback } => {
            let words = format!("back to the plan: {by} asks for changes: {feedback}");
            TimelineLine::new(Who::Planner, words)
                .rest_of(feedback)
                .tone(Tone::Warm)
        }
        ReturnReason::Unkept { reason } => {
            back(format!("the changes could not be saved: {reason}")).rest_of(reason)
        }
        ReturnReason::Red { checks } => back(format_statement(checks, "check", ["fails", "fail"])),
        ReturnReason::HunksLost { hunks, marked_files } if hunks.is_empty() => {
            let verbs = ["has conflict markers", "have conflict markers"];
            back(format_statement(marked_files, "file", verbs))
        }
        ReturnReason::HunksLost { hunks, .. } => back(format_statement(
            hunks,
            "change",
            ["is lost in the merge", "are lost in the merge"],
        )),
        ReturnReason::OutOfScope { files } => {
            let verbs = ["is out of scope", "are out of scope"];
            back(format_statement(files, "file", verbs))
        }
        ReturnReason::Questioned { doubts } => {
            back(format!("{} about the change", format_length(doubts, "doubt")))
        }
        ReturnReason::Weakened { findings } => {
            let verbs = ["weakens checks", "weaken checks"];
            back(format_statement(findings, "finding", verbs))
        }
        ReturnReason::Reviewed { objections } => back(format!(
            "the reviewer has {}",
            format_length(objections, "objection")
        )),
        ReturnReason::NothingChanged => back("nothing was changed".to_owned()),
    }
}

/// Formats a sentence about the entries of a list, with the verb for one entry and for several.
fn format_statement<T>(list: &[T], noun: &str, [one, several]: [&str; 2]) -> String {
    let verb = if list.len() == 1 { one } else { several };
    format!("{} {verb}", format_length(list, noun))
}
