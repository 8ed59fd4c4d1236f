//! Accepts a complete change with its description.

use domain::{
    CommitRules, CommitStyle, CriterionNote, DemonstrationClaim, FileNote, JobRequest, ReviewThread,
    TemplateAnswer, ThreadReply, WorkHandover,
};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, note_exit, parse_input, truncate_lines};
use crate::run::forms::intake::is_about;
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

const TITLE_CHARS: std::ops::RangeInclusive<usize> = 5..=120;
const SUMMARY_CHARS: std::ops::RangeInclusive<usize> = 10..=8_000;
const REPLY_CHARS: usize = 2_000;
const PRINTS_CHARS: std::ops::RangeInclusive<usize> = 2..=200;
// More commands cost more time than they show.
const DEMONSTRATIONS: usize = 3;
// Programs that print files or parts of the command: their output is not evidence for the code.
const READERS: [&str; 20] = [
    "awk", "bat", "cat", "cut", "diff", "echo", "egrep", "fgrep", "find", "git", "grep", "head", "less",
    "ls", "printf", "rg", "sed", "sort", "tail", "wc",
];

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "finish",
    ends_work: true,
    act: handle_call,
};

fn handle_call(state: &PlannerRunState, request: &JobRequest, call: &TurnCall) -> RunStep {
    let parsed = parse_handover(&call.call.input)
        .and_then(|handover| check_scope(&request.rules.commits, handover))
        .and_then(|handover| check_complete(state, handover));
    note_exit(state, call, parsed)
}

/// Refuses a handover without a scope if the rules require one in conventional commits.
fn check_scope(rules: &CommitRules, handover: WorkHandover) -> Result<WorkHandover, ArgumentProblem> {
    let is_wanted = rules.scope_required && rules.style == CommitStyle::Conventional;
    match is_wanted && handover.scope.is_empty() {
        true => Err(ArgumentProblem::Scope),
        false => Ok(handover),
    }
}

/// Refuses a handover that omits a criterion of the ticket or a comment of the review.
fn check_complete(state: &PlannerRunState, handover: WorkHandover) -> Result<WorkHandover, ArgumentProblem> {
    let has_row = |quote: &String| handover.criteria.iter().any(|row| is_about(&row.quote, quote));
    let missing: Vec<String> = state
        .outputs()
        .criteria(state.request())
        .into_iter()
        .filter(|quote| !has_row(quote))
        .collect();
    if !missing.is_empty() {
        return Err(ArgumentProblem::Criteria(missing));
    }
    let threads = state.request().map_or(&[][..], |request| request.about.threads());
    let is_answered = |thread: &&ReviewThread| {
        let mut same = handover.replies.iter().filter(|reply| reply.id == thread.id);
        same.next().is_some() && same.next().is_none()
    };
    let open: Vec<u64> = threads
        .iter()
        .filter(|thread| !is_answered(thread))
        .map(|thread| thread.id)
        .collect();
    let is_known = |reply: &ThreadReply| threads.iter().any(|thread| thread.id == reply.id);
    match open.is_empty() && handover.replies.iter().all(is_known) {
        true => Ok(handover),
        false => Err(ArgumentProblem::Replies(open)),
    }
}

/// Arguments of the call.
#[derive(Deserialize)]
struct FinishInput {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    scope: String,
    title: String,
    summary: String,
    #[serde(default)]
    root_cause: Option<String>,
    #[serde(default)]
    files: Vec<FileNote>,
    #[serde(default)]
    decisions: Vec<String>,
    #[serde(default)]
    not_done: Vec<String>,
    #[serde(default)]
    criteria: Vec<CriterionNote>,
    #[serde(default)]
    demonstrations: Vec<DemonstrationClaim>,
    #[serde(default)]
    template: Vec<TemplateAnswer>,
    #[serde(default)]
    replies: Vec<ThreadReply>,
}

/// Parses the handover from a call.
pub(in crate::run) fn parse_handover(input: &Value) -> Result<WorkHandover, ArgumentProblem> {
    let input: FinishInput = parse_input(input)?;
    let (title, summary) = (input.title.trim(), input.summary.trim());
    if !TITLE_CHARS.contains(&title.chars().count()) || title.contains('\n') {
        return Err(ArgumentProblem::Title);
    }
    if !SUMMARY_CHARS.contains(&summary.chars().count()) {
        return Err(ArgumentProblem::Summary);
    }
    if !input.demonstrations.iter().all(is_demonstration) {
        return Err(ArgumentProblem::Demonstration);
    }
    let files = input.files.into_iter().take(LINES * 5).map(|file| FileNote {
        path: cut_line(&file.path),
        change: cut_line(&file.change),
    });
    let criteria = input.criteria.into_iter().take(LINES).map(|row| CriterionNote {
        quote: cut_line(&row.quote),
        shown_by: cut_line(&row.shown_by),
    });
    Ok(WorkHandover {
        kind: cut_line(input.r#type.trim()),
        scope: cut_line(input.scope.trim()),
        title: title.to_owned(),
        summary: summary.to_owned(),
        root_cause: input
            .root_cause
            .map(|cause| cut_line(cause.trim()))
            .filter(|cause| !cause.is_empty()),
        files: files.collect(),
        decisions: truncate_lines(input.decisions, LINE_CHARS),
        not_done: truncate_lines(input.not_done, LINE_CHARS),
        criteria: criteria.collect(),
        demonstrations: input.demonstrations.into_iter().take(DEMONSTRATIONS).collect(),
        template: input.template.into_iter().take(LINES).map(cap_answer).collect(),
        replies: input.replies.into_iter().map(cap_reply).collect(),
        repaired_by: Vec::new(),
    })
}

fn cap_answer(answer: TemplateAnswer) -> TemplateAnswer {
    TemplateAnswer {
        heading: cut_line(answer.heading.trim()),
        text: super::truncate_text(answer.text.trim(), REPLY_CHARS),
        done: truncate_lines(answer.done, LINE_CHARS),
    }
}

fn cap_reply(reply: ThreadReply) -> ThreadReply {
    ThreadReply {
        reply: super::truncate_text(reply.reply.trim(), REPLY_CHARS),
        ..reply
    }
}

/// Returns true if the command runs code and names its expected output.
fn is_demonstration(said: &DemonstrationClaim) -> bool {
    let length = said.command.chars().count();
    let program = said.command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    (2..=LINE_CHARS).contains(&length)
        && PRINTS_CHARS.contains(&said.prints.trim().chars().count())
        && !said.command.contains(&said.prints)
        && !READERS.contains(&program)
}

fn cut_line(text: &str) -> String {
    super::truncate_text(text, LINE_CHARS)
}
