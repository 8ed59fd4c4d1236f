//! Lines about the run itself and about decisions of people.

use domain::{
    Class, CommitId, Decision, Forecast, News, RunFence, RunLimits, StopReason, Timestamp, Trigger, Verdict,
    WaitsFor,
};

use super::{Tone, Who, line::Line};

pub(super) fn started(trigger: &Trigger) -> Line {
    let by = trigger.actor.as_ref();
    let by = by.map_or_else(String::new, |actor| format!(", asked for by {actor}"));
    Line::new(Who::Planner, format!("run started for {}{by}", trigger.ticket))
}

pub(super) fn taken_over(fence: RunFence) -> Line {
    Line::new(Who::Planner, format!("taken over, fence {fence}")).tone(Tone::Soft)
}

pub(super) fn limits(limits: &RunLimits) -> Line {
    // Limits are displayed as stored, because they are only of interest to operators.
    let limits = serde_json::to_string(limits).unwrap_or_default();
    Line::new(Who::Planner, format!("may take {limits}")).tone(Tone::Quiet)
}

pub(super) fn refused_by_budget(reason: &StopReason) -> Line {
    with_detail(
        Line::new(Who::Planner, ended("does not ask the model", reason)),
        reason,
    )
    .tone(Tone::Bad)
}

pub(super) fn forecast(forecast: Option<&Forecast>) -> Line {
    let words = match forecast {
        Some(forecast) => format!(
            "such work took about {} s before",
            forecast.busy_ms.median / 1_000
        ),
        None => "too little is known of such work to foretell it".to_owned(),
    };
    Line::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn raised(class: Class) -> Line {
    let words = format!("more work than it looked like: {}", class.as_str());
    Line::new(Who::Planner, words)
}

/// Renders a wait. Only a wait for a person is highlighted, because other waits end without help.
pub(super) fn parked(waits_for: WaitsFor) -> Line {
    Line::new(Who::Planner, waits_for.words()).tone(match waits_for.is_for_person() {
        true => Tone::Warm,
        false => Tone::Quiet,
    })
}

pub(super) fn retry(attempt: u32, due: Timestamp, reason: &StopReason) -> Line {
    let words = format!("{}: retry {attempt} at {due}", reason.words());
    with_detail(Line::new(Who::Planner, words), reason).tone(Tone::Warm)
}

pub(super) fn retried(by: Option<&str>) -> Line {
    match by {
        Some(by) => Line::new(Who::Person, format!("{by} asked to try again")),
        None => Line::new(Who::Planner, "tries again"),
    }
}

pub(super) fn decided(decision: &Decision, by: &str) -> Line {
    let (said, tone) = match decision.verdict {
        Verdict::Approve => ("approved it", Tone::Good),
        Verdict::Reject => ("rejected it", Tone::Warm),
        Verdict::Revise => ("asked for changes", Tone::Warm),
    };
    let said = match decision.feedback.trim() {
        "" => format!("{by} {said}"),
        feedback => format!("{by} {said}: {feedback}"),
    };
    Line::new(Who::Person, said)
        .rest_of(&decision.feedback)
        .tone(tone)
}

pub(super) fn stop_requested(by: &str) -> Line {
    Line::new(Who::Person, format!("{by} asked to stop")).tone(Tone::Warm)
}

pub(super) fn news(news: &News) -> Line {
    match news {
        News::Comment { comment, .. } => {
            let said = format!("{} commented: {}", comment.author, comment.text);
            Line::new(Who::Person, said).rest_of(&comment.text)
        }
    }
}

pub(super) fn head_moved(head: &CommitId, by: Option<&str>) -> Line {
    let by = by.unwrap_or("somebody");
    let words = format!("{by} pushed {}: the work begins again there", head.short());
    Line::new(Who::Person, words).tone(Tone::Warm)
}

pub(super) fn finished(reason: &StopReason) -> Line {
    let tone = match reason {
        StopReason::Completed => Tone::Good,
        // A decision of people ends these runs, or there was nothing to do: no failure.
        StopReason::NoChange { .. }
        | StopReason::Stopped { .. }
        | StopReason::Rejected { .. }
        | StopReason::Superseded
        | StopReason::Withdrawn { .. } => Tone::Soft,
        _ => Tone::Bad,
    };
    with_detail(Line::new(Who::Planner, ended("run finished", reason)), reason).tone(tone)
}

/// Formats an event with its reason and the details of the reason.
fn ended(what: &str, reason: &StopReason) -> String {
    // The details are part of the headline, and `with_detail` adds them in full if the headline truncates
    // them.
    match reason.detail() {
        Some(detail) => format!("{what}: {}, {detail}", reason.words()),
        None => format!("{what}: {}", reason.words()),
    }
}

fn with_detail(line: Line, reason: &StopReason) -> Line {
    match reason.detail() {
        Some(detail) => line.rest_of(&detail),
        None => line,
    }
}
