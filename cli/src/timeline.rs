//! A run's journal as lines for people: elapsed time, who, what.

use domain::check::{ChangeReport, CheckCandidate, CheckRun, TreeKind};
use domain::{
    CodeSeed, CommitId, Entry, Exit, Fact, Forecast, Intake, IntakeDecision, News, PhaseOutput, Plan,
    Receipt, ReportOutcome, Return, Timestamp, ToolStatus, text::visible,
};
use serde_json::Value;

/// Longest text of a line's last column.
const WIDTH: usize = 110;

/// One line, without a line feed: `  1234 ms  executor  read_file shop/cart.py → ok`. Entries that say nothing to a
/// person give `None`.
pub fn line(entry: &Entry, start: Timestamp) -> Option<String> {
    let (who, what) = describe(&entry.fact)?;
    Some(row(entry.at.unix_ms() - start.unix_ms(), who, &what))
}

/// One line of a timeline, without a character that would steer a terminal.
pub fn row(elapsed_ms: i64, who: &str, what: &str) -> String {
    format!("{elapsed_ms:>7} ms  {who:<9} {}", shorten(what))
}

fn describe(fact: &Fact) -> Option<(&'static str, String)> {
    Some(match fact {
        Fact::RunStarted { trigger } => ("planner", format!("run started for {}", trigger.ticket)),
        Fact::TakenOver { fence } => ("planner", format!("taken over, fence {fence}")),
        Fact::WorkspaceOpened { workspace, .. } => (
            "executor",
            format!(
                "workspace open at {} (sandbox {:?}, {} tools)",
                workspace.base.short(),
                workspace.sandbox,
                workspace.tools.len()
            ),
        ),
        Fact::WorkspaceFailed { detail, .. } => ("executor", format!("no workspace: {detail}")),
        Fact::WorkspaceRestored { workspace, .. } => (
            "executor",
            format!("workspace restored at {}", workspace.executor),
        ),
        Fact::WentBack { .. } => (
            "executor",
            "went back to the state that was proven best".to_owned(),
        ),
        Fact::ModelReplied { reply, .. } => ("model", describe_reply(reply)),
        Fact::ModelFailed { detail, .. } => ("model", format!("failed: {detail}")),
        Fact::ToolRequested { call, .. } => ("planner", format!("{} {}", call.name, arguments(&call.input))),
        Fact::ToolFinished { result, .. } => ("executor", describe_result(result.status, &result.content)),
        Fact::SnapshotTaken { snapshot, .. } => (
            "executor",
            format!("snapshot of {} changed files", snapshot.files_changed),
        ),
        Fact::CodeFound { seeds, note } => ("executor", describe_code(seeds, note)),
        Fact::EffortForecast { forecast } => ("planner", describe_forecast(forecast.as_ref())),
        Fact::ChecksFound { candidates } => ("executor", describe_candidates(candidates)),
        Fact::CheckRequested { check, .. } => ("planner", format!("checks {}", check.command)),
        Fact::CheckRan { run, .. } => ("executor", describe_check(run)),
        Fact::ChangeInspected { report } => ("executor", describe_change(report.as_deref())),
        Fact::PhaseFinished { output } => ("planner", describe_output(output)),
        Fact::ContextCleared { turns, tokens, .. } => (
            "planner",
            format!("old results of {turns} turns left out: about {tokens} tokens less"),
        ),
        Fact::SummaryRequested { turns, tokens, .. } => (
            "planner",
            format!("asks for a summary of {turns} turns with about {tokens} tokens"),
        ),
        Fact::Summarized { reply, .. } => ("model", format!("sums up: {}", reply.text())),
        Fact::SummaryFailed { detail, .. } => ("model", format!("no summary: {detail}")),
        Fact::ClassRaised { class } => (
            "planner",
            format!("more work than it looked like: {}", class.as_str()),
        ),
        Fact::Returned { why } => ("planner", describe_return(why)),
        Fact::HeadMoved { head, by } => ("person", describe_move(head, by.as_deref())),
        Fact::SnapshotFailed { reason, .. } => ("executor", format!("no snapshot: {reason}")),
        Fact::ReportRequested { request, .. } => ("planner", format!("asks: {}", request.summary())),
        Fact::ReportSettled { outcome, .. } => ("reporter", describe_outcome(outcome)),
        Fact::Decided { decision, by } => (
            "person",
            format!("{by} decided: {:?}", decision.verdict).to_lowercase(),
        ),
        Fact::RetryScheduled {
            attempt, due, reason, ..
        } => (
            "planner",
            format!("{}: retry {attempt} at {due}", reason.as_str()),
        ),
        Fact::Retried { by: Some(by) } => ("person", format!("{by} asked to try again")),
        Fact::Retried { by: None } => ("planner", "tries again".to_owned()),
        Fact::StopRequested { by } => ("person", format!("{by} asked to stop")),
        Fact::NewsArrived { news, .. } => ("person", describe_news(news)),
        Fact::BudgetRefused { reason, .. } => ("planner", format!("does not ask: {}", reason.as_str())),
        Fact::Hinted { hint, .. } => ("planner", format!("tells the model: {}", hint.as_str())),
        Fact::RunFinished { reason } => ("planner", format!("run finished: {}", reason.as_str())),
        Fact::WorkspaceRequested { .. }
        | Fact::LimitsSet { .. }
        | Fact::ModelRequested { .. }
        | Fact::Parked { .. } => return None,
    })
}

fn describe_move(head: &CommitId, by: Option<&str>) -> String {
    let by = by.unwrap_or("somebody");
    format!("{by} pushed {}: the work begins again there", head.short())
}

fn describe_reply(reply: &domain::Reply) -> String {
    let calls: Vec<_> = reply.tool_calls().map(|call| call.name.as_str()).collect();
    let cost = reply.cost_micros.map(|micros| format!(", {}", dollars(micros)));
    let tokens = format!(
        "{}+{} tokens{}",
        reply.usage.input_tokens,
        reply.usage.output_tokens,
        cost.unwrap_or_default()
    );
    if calls.is_empty() {
        format!("says: {} ({tokens})", reply.text())
    } else {
        format!("wants {} ({tokens})", calls.join(", "))
    }
}

/// An amount of money, to a hundredth of a cent.
pub fn dollars(micros: u64) -> String {
    let parts = micros / 100;
    format!("${}.{:04}", parts / 10_000, parts % 10_000)
}

fn describe_result(status: ToolStatus, content: &str) -> String {
    let status = match status {
        ToolStatus::Ok => "ok",
        ToolStatus::Error => "error",
        ToolStatus::Interrupted => "interrupted",
    };
    format!("{status}: {content}")
}

fn describe_code(seeds: &[CodeSeed], note: &str) -> String {
    match seeds.first() {
        Some(first) => format!("{} places to look at, first {}", seeds.len(), first.path),
        None => format!("no place to look at first. {note}"),
    }
}

fn describe_forecast(forecast: Option<&Forecast>) -> String {
    match forecast {
        Some(forecast) => {
            let seconds = forecast.busy_ms.median / 1_000;
            format!("such work took about {seconds} s before")
        }
        None => "too little is known of such work to foretell it".to_owned(),
    }
}

fn describe_candidates(candidates: &[CheckCandidate]) -> String {
    match candidates.first() {
        Some(first) => format!("check: {} ({})", first.command, first.why),
        None => "no command found that checks the change".to_owned(),
    }
}

fn describe_check(run: &CheckRun) -> String {
    let tree = match &run.tree_kind {
        TreeKind::Base => "base",
        TreeKind::Head => "change",
        TreeKind::BaseWith { .. } => "base with the change's tests",
        TreeKind::HeadWithout { .. } => "change without a part",
    };
    let tests = run.tests.as_ref().map_or_else(String::new, |tests| {
        format!(", {} passed, {} failed", tests.passed, tests.failed)
    });
    format!("{tree}: {}{tests} ({})", run.outcome.as_str(), run.command)
}

fn describe_change(report: Option<&ChangeReport>) -> String {
    match report {
        Some(report) => format!(
            "the change: {} files, {} product lines, {} test lines, {} findings",
            report.files,
            report.product_lines,
            report.test_lines,
            report.findings.len()
        ),
        None => "the change could not be looked at".to_owned(),
    }
}

fn describe_output(output: &PhaseOutput) -> String {
    match output {
        PhaseOutput::Answer { answer: Some(answer) } => format!("answer: {}", answer.answer),
        PhaseOutput::Issues { issues } => format!("planned issues: {}", issues.len()),
        PhaseOutput::Answer { answer: None } => "no answer was of use".to_owned(),
        PhaseOutput::PullRequest { review: Some(review) } => {
            format!(
                "review with {} comments: {}",
                review.comments.len(),
                review.summary
            )
        }
        PhaseOutput::PullRequest { review: None } => "the review came to no end".to_owned(),
        PhaseOutput::Intake { intake } => describe_intake(intake.as_deref()),
        PhaseOutput::Plan { plan: Some(plan) } => {
            format!("plan of {} steps: {}", plan.steps.len(), plan.goal)
        }
        PhaseOutput::Plan { plan: None } => "no plan was made".to_owned(),
        PhaseOutput::Review { review } if !review.is_complete => "the review came to no end".to_owned(),
        PhaseOutput::Review { review } => match review.blocking().count() {
            0 => "reviewed: no objection".to_owned(),
            count => format!("reviewed: {count} objections"),
        },
        PhaseOutput::Work {
            exit: Exit::Finished(handover),
        } => format!("work finished: {}", handover.title),
        PhaseOutput::Work {
            exit: Exit::CutShort { reason, .. },
        } => format!("work ended early: {}", reason.as_str()),
        PhaseOutput::Prove { proof } => format!("evidence {}", proof.level),
        PhaseOutput::Work {
            exit: Exit::GaveUp { kind, evidence },
        } => format!("gave up ({}): {evidence}", kind.as_str()),
    }
}

/// A plan, for a person who decides about it.
pub fn plan(plan: &Plan) -> String {
    let mut lines = vec![
        format!("goal: {}", plan.goal),
        format!("approach: {}", plan.approach),
    ];
    let steps = plan.steps.iter().zip(1..);
    lines.extend(steps.map(|(step, number)| format!("  {number}. {} {}", step.what, step.files.join(" "))));
    for (name, items) in [
        ("test", &plan.tests),
        ("risk", &plan.risks),
        ("not done", &plan.not_doing),
    ] {
        lines.extend(items.iter().map(|item| format!("{name}: {item}")));
    }
    lines.join("\n")
}

fn describe_intake(intake: Option<&Intake>) -> String {
    let Some(intake) = intake else {
        return "the first look brought nothing usable".to_owned();
    };
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
    format!("{class} {kind}{modules}, {next}: {}", intake.one_liner)
}

fn describe_return(why: &Return) -> String {
    match why {
        Return::Refused(refusal) => format!("back to work: refused: {}", reporter::refused(refusal)),
        Return::Feedback { by, feedback } => format!("back to work: {by} asks for changes: {feedback}"),
        Return::Unkept { reason } => format!("back to work: the changes could not be saved: {reason}"),
        Return::Red { checks } => format!("back to work: {} checks fail", checks.len()),
        Return::OutOfScope { files } => format!("back to work: {} files are out of scope", files.len()),
        Return::Weakened { findings } => format!("back to work: {} findings weaken checks", findings.len()),
        Return::Replan { by, feedback } => format!("back to the plan: {by} asks for changes: {feedback}"),
        Return::Reviewed { objections } => {
            format!("back to work: the reviewer has {} objections", objections.len())
        }
        Return::NothingChanged => "back to work: nothing was changed".to_owned(),
    }
}

fn describe_news(news: &News) -> String {
    match news {
        News::Comment { comment, .. } => format!("{} commented: {}", comment.author, comment.text),
    }
}

fn describe_outcome(outcome: &ReportOutcome) -> String {
    match outcome {
        ReportOutcome::Done(Receipt::Pushed { branch, head }) => {
            format!("pushed {branch} at {}", head.short())
        }
        ReportOutcome::Done(Receipt::PullRequestOpened(opened)) => format!("opened {}", opened.url),
        ReportOutcome::Done(Receipt::DecisionAsked { head, .. }) => {
            format!("asked a person about {}", head.short())
        }
        ReportOutcome::Done(Receipt::Told) => "told".to_owned(),
        ReportOutcome::Done(Receipt::Rehearsed { would }) => {
            let effects: usize = would.iter().map(|one| one.effects.len()).sum();
            format!(
                "rehearsed: {effects} effects in {} reports, none of them done",
                would.len()
            )
        }
        ReportOutcome::Refused(refusal) => format!("refused: {}", reporter::refused(refusal)),
        ReportOutcome::Failed { detail } => format!("failed: {detail}"),
    }
}

/// The values of a tool's arguments, names left out: enough to recognise the call.
fn arguments(input: &Value) -> String {
    let Value::Object(fields) = input else {
        return input.to_string();
    };
    let values = fields
        .values()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    values.collect::<Vec<_>>().join(" ")
}

fn shorten(text: &str) -> String {
    let flat = visible(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    match flat.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}

#[cfg(test)]
mod tests {
    use domain::RunFence;

    use super::*;

    fn entry(fact: Fact) -> Entry {
        let at = Timestamp::from_unix_ms(1_500);
        Entry {
            position: 0,
            nonce: String::new(),
            fence: RunFence::default(),
            at,
            fact,
        }
    }

    #[test]
    fn a_line_tells_elapsed_time_who_and_what() {
        let stopped = entry(Fact::StopRequested { by: "ada".to_owned() });
        assert_eq!(
            line(&stopped, Timestamp::from_unix_ms(1_000)).unwrap(),
            "    500 ms  person    ada asked to stop"
        );
    }

    #[test]
    fn no_text_of_a_stranger_steers_the_terminal() {
        // Window title, clipboard, clear screen, carriage return, right-to-left override.
        for steering in [
            "\u{1b}]0;x\u{7}",
            "\u{1b}]52;c;eA==\u{7}",
            "\u{1b}[2J",
            "\u{9b}2J",
            "a\rb\u{8}",
            "\u{202e}",
        ] {
            let by = format!("ada{steering}end");
            let line = line(&entry(Fact::StopRequested { by }), Timestamp::default()).unwrap();
            assert!(!line.chars().any(domain::text::is_hidden), "{line:?}");
            assert!(line.contains("end"), "{line:?}");
        }
    }

    #[test]
    fn long_and_wide_text_is_cut_at_a_character() {
        let long = entry(Fact::StopRequested {
            by: "ä\n".repeat(400),
        });
        let line = line(&long, Timestamp::default()).unwrap();
        assert!(line.ends_with('…') && !line.contains('\n'));
    }
}
