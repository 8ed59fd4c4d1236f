//! Lines about reports: requests, outcomes and returns.

use domain::{Receipt, ReportOutcome, ReportRequest, Return};

use super::{Tone, Who, line::Line};

pub(super) fn requested(request: &ReportRequest) -> Line {
    Line::new(Who::Planner, format!("asks: {}", request.summary())).tone(Tone::Soft)
}

pub(super) fn settled(outcome: &ReportOutcome) -> Line {
    match outcome {
        ReportOutcome::Done(receipt) => done(receipt),
        ReportOutcome::Refused(refusal) => Line::failed(Who::Reporter, "refused", &refusal.words()),
        ReportOutcome::Failed { detail } => Line::failed(Who::Reporter, "failed", detail),
    }
}

fn done(receipt: &Receipt) -> Line {
    let words = match receipt {
        Receipt::Pushed { branch, head } => format!("pushed {branch} at {}", head.short()),
        Receipt::PullRequestOpened(opened) => format!("opened {}", opened.url),
        Receipt::DecisionAsked { head, .. } => format!("asked a person about {}", head.short()),
        Receipt::Told => return Line::new(Who::Reporter, "told").tone(Tone::Soft),
        Receipt::Rehearsed { would } => {
            let effects: usize = would.iter().map(|one| one.effects.len()).sum();
            let reports = would.len();
            format!("rehearsed: {effects} effects in {reports} reports, none of them done")
        }
    };
    Line::new(Who::Reporter, words)
}

pub(super) fn returned(why: &Return) -> Line {
    let back = |text: String| Line::new(Who::Planner, format!("back to work: {text}")).tone(Tone::Warm);
    match why {
        Return::Refused(refusal) => {
            let words = refusal.words();
            back(format!("refused: {words}")).rest_of(&words)
        }
        Return::Feedback { by, feedback } => {
            back(format!("{by} asks for changes: {feedback}")).rest_of(feedback)
        }
        Return::Replan { by, feedback } => {
            let words = format!("back to the plan: {by} asks for changes: {feedback}");
            Line::new(Who::Planner, words).rest_of(feedback).tone(Tone::Warm)
        }
        Return::Unkept { reason } => {
            back(format!("the changes could not be saved: {reason}")).rest_of(reason)
        }
        Return::Red { checks } => back(format!("{} checks fail", checks.len())),
        Return::OutOfScope { files } => back(format!("{} files are out of scope", files.len())),
        Return::Questioned { doubts } => back(format!("{} doubts about the change", doubts.len())),
        Return::Weakened { findings } => back(format!("{} findings weaken checks", findings.len())),
        Return::Reviewed { objections } => back(format!("the reviewer has {} objections", objections.len())),
        Return::NothingChanged => back("nothing was changed".to_owned()),
    }
}
