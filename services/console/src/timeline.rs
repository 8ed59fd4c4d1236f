//! A run's journal as a list for people: one entry each, by turns of the model.

use domain::{
    Entry, Exit, Fact, News, PhaseOutput, Receipt, ReportOutcome, Return, Timestamp, ToolStatus, Verdict,
};
use maud::{Markup, html};

use crate::words::{between, count, heading, run_path, short, shown};

/// Longest headline.
const HEAD: usize = 160;
/// Longest text that is folded up below it; the entry's own page has the whole.
const FOLDED: usize = 4_000;

/// What a person reads of an entry.
pub(crate) struct Line {
    who: &'static str,
    /// How it is shown; empty: like any other.
    tone: &'static str,
    head: String,
    /// More text, to fold up.
    more: Option<String>,
}

impl Line {
    fn new(who: &'static str, head: impl AsRef<str>) -> Self {
        Self {
            who,
            tone: "",
            head: short(head.as_ref(), HEAD),
            more: None,
        }
    }

    fn tone(mut self, tone: &'static str) -> Self {
        self.tone = tone;
        self
    }

    /// The whole of a text, where the headline has not all of it.
    fn more(mut self, text: &str) -> Self {
        let is_more = text.chars().count() > HEAD || text.trim().contains('\n');
        self.more = is_more.then(|| shown(&domain::text::capped(text, FOLDED)));
        self
    }
}

/// One entry of the list.
pub(crate) fn item(run: &str, entry: &Entry, start: Timestamp) -> Markup {
    let line = describe(&entry.fact);
    let is_turn = matches!(entry.fact, Fact::ModelRequested { .. });
    let position = entry.position;
    html! {
        li id={ "entry-" (position) } class=[is_turn.then_some("turn")] {
            span.when title=(entry.at) { (between(start, entry.at)) }
            span.who { (line.who) }
            div.what {
                @match &line.more {
                    Some(more) => details { summary class=(line.tone) { (line.head) } pre { (more) } },
                    None => span class=(line.tone) { (line.head) },
                }
            }
            a href={ (run_path(run)) "/entries/" (position) } aria-label={ "Entry " (position) } { "#" (position) }
        }
    }
}

fn describe(fact: &Fact) -> Line {
    let plain = || Line::new("planner", fact.name().replace('_', " ")).tone("soft");
    match fact {
        Fact::RunStarted { trigger } => {
            let by = trigger.actor.as_deref().unwrap_or("nobody in particular");
            Line::new(
                "planner",
                format!("the run begins for {}, asked for by {by}", trigger.ticket),
            )
        }
        Fact::WorkspaceOpened { workspace, .. } => Line::new(
            "executor",
            format!("a workspace is open at {}", workspace.base.short()),
        ),
        Fact::WorkspaceFailed { detail, .. } => failed("executor", "no workspace", detail),
        Fact::SnapshotFailed { reason, .. } => failed("executor", "the changes cannot be kept", reason),
        Fact::SnapshotTaken { snapshot, .. } => Line::new(
            "executor",
            format!("{} changed files are kept", snapshot.files_changed),
        )
        .tone("soft"),
        Fact::CheckRan { run, .. } => {
            let tests = run.tests.as_ref().map_or_else(String::new, |tests| {
                format!(", {} passed, {} failed", tests.passed, tests.failed)
            });
            let head = format!("check {}: {}{tests}", run.command, run.outcome.as_str());
            Line::new("executor", head).more_of(&run.output_tail)
        }
        Fact::CheckRequested { check, .. } => {
            Line::new("planner", format!("runs the check {}", check.command)).tone("soft")
        }
        Fact::ChangeInspected { report: Some(report) } => Line::new(
            "executor",
            format!(
                "the change: {} files, {} lines of the product, {} of tests, {} findings",
                report.files,
                report.product_lines,
                report.test_lines,
                report.findings.len()
            ),
        ),
        Fact::PhaseFinished { output } => outcome(output),
        Fact::Returned { why } => returned(why),
        Fact::HeadMoved { head, by } => {
            let by = by.as_deref().unwrap_or("somebody");
            Line::new(
                "person",
                format!("{by} pushed {}: the work begins again there", head.short()),
            )
        }
        Fact::ReportRequested { request, .. } => {
            Line::new("planner", format!("asks: {}", request.summary())).tone("soft")
        }
        Fact::ReportSettled { outcome, .. } => settled(outcome),
        Fact::Parked { waits_for } => {
            Line::new("planner", crate::words::waiting(waits_for.as_str())).tone("warm")
        }
        Fact::RunFinished { reason } => {
            let line = Line::new("planner", format!("the run {}", heading(reason)));
            let line = line.tone(crate::words::tone(reason));
            match crate::words::detail(reason) {
                Some(detail) => line.more_of(&detail),
                None => line,
            }
        }
        _ => by_model(fact).or_else(|| by_people(fact)).unwrap_or_else(plain),
    }
}

impl Line {
    /// Text that the headline has nothing of.
    fn more_of(mut self, text: &str) -> Self {
        let is_some = !text.trim().is_empty();
        self.more = is_some.then(|| shown(&domain::text::capped(text, FOLDED)));
        self
    }
}

fn failed(who: &'static str, what: &str, detail: &str) -> Line {
    Line::new(who, format!("{what}: {detail}"))
        .more(detail)
        .tone("bad")
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other facts are not of the model")]
fn by_model(fact: &Fact) -> Option<Line> {
    Some(match fact {
        Fact::ModelRequested { turn, phase, .. } => Line::new(
            "model",
            format!("Turn {turn} of {}", phase.as_str().replace('_', " ")),
        ),
        Fact::ModelReplied { reply, .. } => {
            let cost = reply
                .cost_micros
                .map_or_else(String::new, |micros| format!(", {}", micro_dollars(micros)));
            let usage = reply.usage;
            let tokens = format!(
                "{} in, {} cached, {} out{cost}",
                count(usage.input_tokens),
                count(usage.cache_read_tokens),
                count(usage.output_tokens)
            );
            let calls: Vec<_> = reply.tool_calls().map(|call| call.name.as_str()).collect();
            let text = reply.text();
            let head = match calls.is_empty() {
                true => format!("says ({tokens}): {text}"),
                false => format!("wants {} ({tokens}) {text}", calls.join(", ")),
            };
            Line::new("model", head).more(&text)
        }
        Fact::ModelFailed { detail, .. } => failed("model", "failed", detail),
        Fact::SummaryFailed { detail, .. } => failed("model", "no summary", detail),
        Fact::Summarized { reply, .. } => {
            let text = reply.text();
            Line::new("model", format!("sums up: {text}")).more(&text)
        }
        Fact::ToolRequested { call, .. } => {
            let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
            let values = call
                .input
                .as_object()
                .into_iter()
                .flat_map(serde_json::Map::values);
            let values = values.map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), ToOwned::to_owned)
            });
            let head = format!("{} {}", call.name, values.collect::<Vec<_>>().join(" "));
            Line::new("model", head).more(&input)
        }
        Fact::ToolFinished { result, .. } => {
            let (status, tone) = match result.status {
                ToolStatus::Ok => ("ok", ""),
                ToolStatus::Error => ("error", "bad"),
                ToolStatus::Interrupted => ("interrupted", "warm"),
            };
            Line::new("executor", format!("{status}: {}", result.content))
                .more(&result.content)
                .tone(tone)
        }
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other facts are not of people")]
fn by_people(fact: &Fact) -> Option<Line> {
    Some(match fact {
        Fact::Decided { decision, by } => {
            let said = crate::words::verdict(decision.verdict);
            let tone = match decision.verdict {
                Verdict::Approve => "good",
                Verdict::Reject | Verdict::Revise => "warm",
            };
            let line = Line::new("person", format!("{by} {said}")).tone(tone);
            line.more_of(&decision.feedback)
        }
        Fact::StopRequested { by } => Line::new("person", format!("{by} asked to stop")).tone("warm"),
        Fact::Retried { by: Some(by) } => Line::new("person", format!("{by} asked to try again")),
        Fact::RetryScheduled {
            attempt, due, reason, ..
        } => Line::new(
            "planner",
            format!("{}: try {attempt} again at {due}", heading(reason)),
        )
        .tone("warm"),
        Fact::NewsArrived { news, .. } => match news {
            News::Comment { comment, .. } => {
                let head = format!("{} said: {}", comment.author, comment.text);
                Line::new("person", head).more(&comment.text)
            }
        },
        Fact::BudgetRefused { reason, .. } => {
            Line::new("planner", format!("does not ask the model: {}", heading(reason))).tone("bad")
        }
        _ => return None,
    })
}

fn settled(outcome: &ReportOutcome) -> Line {
    match outcome {
        ReportOutcome::Done(receipt) => Line::new(
            "reporter",
            match receipt {
                Receipt::Pushed { branch, head } => format!("pushed {branch} at {}", head.short()),
                Receipt::PullRequestOpened(opened) => format!("opened {}", opened.url),
                Receipt::DecisionAsked { head, .. } => format!("asked a person about {}", head.short()),
                Receipt::Told => "told".to_owned(),
                Receipt::Rehearsed { would } => format!("rehearsed {} reports and did none", would.len()),
            },
        ),
        ReportOutcome::Refused(refusal) => {
            let text = format!("{refusal:?}");
            failed("reporter", "refused", &text)
        }
        ReportOutcome::Failed { detail } => failed("reporter", "failed", detail),
    }
}

fn outcome(output: &PhaseOutput) -> Line {
    let said = |head: String, text: &str| Line::new("model", format!("{head}: {text}")).more(text);
    match output {
        PhaseOutput::Intake { intake: Some(intake) } => said(
            format!("{} {}", intake.class.as_str(), intake.kind.as_str()),
            &intake.one_liner,
        ),
        PhaseOutput::Plan { plan: Some(plan) } => {
            said(format!("a plan of {} steps", plan.steps.len()), &plan.goal)
        }
        PhaseOutput::Answer { answer: Some(answer) } => said("answers".to_owned(), &answer.answer),
        PhaseOutput::PullRequest { review: Some(review) } => said(
            format!("a review with {} comments", review.comments.len()),
            &review.summary,
        ),
        PhaseOutput::Issues { issues } => Line::new("model", format!("plans {} issues", issues.len())),
        PhaseOutput::Work { exit } => match exit {
            Exit::Finished(handover) => said(handover.title.clone(), &handover.summary).tone("good"),
            Exit::CutShort { reason, .. } => {
                Line::new("planner", format!("the work ended early: {}", heading(reason))).tone("warm")
            }
            Exit::GaveUp { kind, evidence } => {
                said(format!("gave up, {}", kind.as_str().replace('_', " ")), evidence).tone("bad")
            }
        },
        PhaseOutput::Prove { proof } => Line::new("planner", format!("evidence {}", proof.level)),
        PhaseOutput::Review { review } => {
            let line = format!("reviewed: {} objections", review.blocking().count());
            Line::new("model", line)
        }
        PhaseOutput::Intake { intake: None }
        | PhaseOutput::Plan { plan: None }
        | PhaseOutput::Answer { answer: None }
        | PhaseOutput::PullRequest { review: None } => {
            Line::new("model", "came to no usable result").tone("warm")
        }
    }
}

fn returned(why: &Return) -> Line {
    let back = |text: String| Line::new("planner", format!("back to work: {text}")).tone("warm");
    match why {
        Return::Feedback { by, feedback } | Return::Replan { by, feedback } => {
            back(format!("{by} asks for changes: {feedback}")).more(feedback)
        }
        Return::Refused(refusal) => back(format!("refused: {refusal:?}")),
        Return::Unkept { reason } => back(format!("the changes could not be kept: {reason}")),
        Return::Red { checks } => back(format!("{} checks fail", checks.len())),
        Return::OutOfScope { files } => back(format!("{} files are out of scope", files.len())),
        Return::Weakened { findings } => back(format!("{} findings weaken checks", findings.len())),
        Return::Reviewed { objections } => back(format!("{} objections of the reviewer", objections.len())),
        Return::NothingChanged => back("nothing was changed".to_owned()),
    }
}

/// Money to a hundredth of a cent: a call costs little.
fn micro_dollars(micros: u64) -> String {
    let parts = micros / 100;
    format!("${}.{:04}", parts / 10_000, parts % 10_000)
}

#[cfg(test)]
mod tests {
    use domain::RunFence;

    use super::*;

    fn listed(fact: Fact) -> String {
        let entry = Entry {
            position: 7,
            nonce: String::new(),
            fence: RunFence::default(),
            at: Timestamp::from_unix_ms(62_000),
            fact,
        };
        item("jira:ENG-1@3", &entry, Timestamp::default()).into_string()
    }

    #[test]
    fn an_entry_says_when_who_and_what_and_has_an_address() {
        let text = listed(Fact::StopRequested { by: "ada".to_owned() });
        for part in [
            "id=\"entry-7\"",
            "1 min 2 s",
            "person",
            "ada asked to stop",
            "href=\"/runs/jira%3AENG%2D1%403/entries/7\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn text_of_others_is_neither_markup_nor_order() {
        let by = "<img src=x onerror=alert(1)>\" hx-get=\"/\r\n\u{202e}".to_owned();
        let text = listed(Fact::StopRequested { by });
        assert!(
            text.contains("&lt;img src=x") && text.contains("&lt;U+202E&gt;"),
            "{text}"
        );
        assert!(
            !text.contains("<img") && !text.contains('\r') && !text.contains("\u{202e}"),
            "{text}"
        );
    }
}
