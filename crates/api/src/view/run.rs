//! Lines about the run itself and about decisions of people.

use domain::{
    CommitId, DecisionVerdict, EffortEstimate, GateDecision, RunFence, RunLimits, StopClass, StopReason,
    TicketNews, Timestamp, Trigger, WaitCondition, WorkClass,
};

use super::{Tone, Who, line::TimelineLine};

pub(super) fn render_run_start(trigger: &Trigger) -> TimelineLine {
    let by = trigger.actor.as_ref();
    let by = by.map_or_else(String::new, |actor| format!(", asked for by {actor}"));
    TimelineLine::new(Who::Planner, format!("run started for {}{by}", trigger.ticket))
}

pub(super) fn render_takeover(fence: RunFence) -> TimelineLine {
    TimelineLine::new(Who::Planner, format!("taken over, fence {fence}")).tone(Tone::Soft)
}

pub(super) fn render_limits(limits: &RunLimits) -> TimelineLine {
    // Limits are displayed as stored, because they are only of interest to operators.
    let limits = serde_json::to_string(limits).unwrap_or_default();
    TimelineLine::new(Who::Planner, format!("may take {limits}")).tone(Tone::Quiet)
}

pub(super) fn render_budget_refusal(reason: &StopReason) -> TimelineLine {
    with_detail(
        TimelineLine::new(Who::Planner, format_end("does not ask the model", reason)),
        reason,
    )
    .tone(Tone::Bad)
}

pub(super) fn render_estimate(forecast: Option<&EffortEstimate>) -> TimelineLine {
    let words = match forecast {
        Some(forecast) => format!(
            "such work took about {} s before",
            forecast.busy_ms.median / 1_000
        ),
        None => "too little is known of such work to foretell it".to_owned(),
    };
    TimelineLine::new(Who::Planner, words).tone(Tone::Soft)
}

pub(super) fn render_raised_class(class: WorkClass) -> TimelineLine {
    let words = format!("more work than it looked like: {}", class.as_str());
    TimelineLine::new(Who::Planner, words)
}

/// Renders a wait. Only a wait for a person is highlighted, because other waits end without help.
pub(super) fn render_wait(waits_for: WaitCondition) -> TimelineLine {
    TimelineLine::new(Who::Planner, waits_for.words()).tone(if waits_for.is_for_person() {
        Tone::Warm
    } else {
        Tone::Quiet
    })
}

pub(super) fn render_retry_schedule(attempt: u32, due: Timestamp, reason: &StopReason) -> TimelineLine {
    let words = format!("{}: retry {attempt} at {due}", reason.words());
    with_detail(TimelineLine::new(Who::Planner, words), reason).tone(Tone::Warm)
}

pub(super) fn render_retry(by: Option<&str>) -> TimelineLine {
    match by {
        Some(by) => TimelineLine::new(Who::Person, format!("{by} asked to try again")),
        None => TimelineLine::new(Who::Planner, "tries again"),
    }
}

pub(super) fn render_decision(decision: &GateDecision, by: &str) -> TimelineLine {
    let (verdict, tone) = match decision.verdict {
        DecisionVerdict::Approve => ("approved it", Tone::Good),
        DecisionVerdict::Reject => ("rejected it", Tone::Warm),
        DecisionVerdict::Revise => ("asked for changes", Tone::Warm),
    };
    let words = match decision.feedback.trim() {
        "" => format!("{by} {verdict}"),
        feedback => format!("{by} {verdict}: {feedback}"),
    };
    TimelineLine::new(Who::Person, words)
        .rest_of(&decision.feedback)
        .tone(tone)
}

pub(super) fn render_stop_request(by: &str) -> TimelineLine {
    TimelineLine::new(Who::Person, format!("{by} asked to stop")).tone(Tone::Warm)
}

pub(super) fn render_news(news: &TicketNews) -> TimelineLine {
    match news {
        TicketNews::Comment { comment, .. } => {
            let words = format!("{} commented: {}", comment.author, comment.text);
            TimelineLine::new(Who::Person, words).rest_of(&comment.text)
        }
    }
}

pub(super) fn render_head_move(head: &CommitId, by: Option<&str>) -> TimelineLine {
    let by = by.unwrap_or("somebody");
    let words = format!("{by} pushed {}: the work begins again there", head.short());
    TimelineLine::new(Who::Person, words).tone(Tone::Warm)
}

pub(super) fn render_run_end(reason: &StopReason) -> TimelineLine {
    let tone = match reason.class() {
        StopClass::Completed => Tone::Good,
        // A decision of people ends these runs, or there was nothing to do: no failure.
        StopClass::Settled => Tone::Soft,
        StopClass::GivenBack | StopClass::ServiceFailure | StopClass::Failure => Tone::Bad,
    };
    with_detail(
        TimelineLine::new(Who::Planner, format_end("run finished", reason)),
        reason,
    )
    .tone(tone)
}

/// Formats an event with its reason and the details of the reason.
fn format_end(what: &str, reason: &StopReason) -> String {
    // The details are part of the headline, and `with_detail` adds them in full if the headline truncates
    // them.
    match reason.detail() {
        Some(detail) => format!("{what}: {}, {detail}", reason.words()),
        None => format!("{what}: {}", reason.words()),
    }
}

fn with_detail(line: TimelineLine, reason: &StopReason) -> TimelineLine {
    match reason.detail() {
        Some(detail) => line.rest_of(&detail),
        None => line,
    }
}
