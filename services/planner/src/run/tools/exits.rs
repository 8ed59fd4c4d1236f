//! Tools that end the work of the model: a complete change, questions for users, or no change.

use std::ops::RangeInclusive;

use domain::{
    CommitRules, CommitStyle, CriterionNote, DemonstrationClaim, DroppedHunk, FileNote, GiveUp, JobRequest,
    LostHunk, OutboundAction, ReviewThread, TemplateAnswer, ThreadReply, TicketQuestion, WorkHandover,
    report,
};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, is_about, note_exit, parse_input, truncate_lines, truncate_text};
use crate::run::machine::{
    ArgumentProblem, CallAnswer, PlannerRunState, PlannerTool, RunStep, TurnCall, answer_call, request_report,
};

const TITLE_CHARS: RangeInclusive<usize> = 5..=120;
const SUMMARY_CHARS: RangeInclusive<usize> = 10..=8_000;
const REPLY_CHARS: usize = 2_000;
const PRINTS_CHARS: RangeInclusive<usize> = 2..=200;
// More commands cost more time than they show.
const DEMONSTRATIONS: usize = 3;
// Named hunks of a merge: fewer than the 200 at which an inspection ends, because the hunks after them are unknown.
const DROPPED: usize = 199;
// Programs that print files or parts of the command: their output is not evidence for the code.
const READERS: [&str; 20] = [
    "awk", "bat", "cat", "cut", "diff", "echo", "egrep", "fgrep", "find", "git", "grep", "head", "less",
    "ls", "printf", "rg", "sed", "sort", "tail", "wc",
];
const MOST_QUESTIONS: usize = 3;
const QUESTION_CHARS: RangeInclusive<usize> = 5..=1_000;
const EVIDENCE_CHARS: RangeInclusive<usize> = 10..=4_000;

/// Accepts a complete change with its description.
pub(in crate::run) const FINISH: PlannerTool = PlannerTool {
    name: "finish",
    ends_work: true,
    act: handle_finish,
};

fn handle_finish(state: &PlannerRunState, request: &JobRequest, call: &TurnCall) -> RunStep {
    let parsed = parse_handover(&call.call.input)
        .and_then(|handover| check_scope(&request.rules.commits, handover))
        .and_then(|handover| check_complete(state, handover));
    note_exit(state, call, parsed)
}

/// Refuses a handover without a scope if the rules require one in conventional commits.
fn check_scope(rules: &CommitRules, handover: WorkHandover) -> Result<WorkHandover, ArgumentProblem> {
    let is_wanted = rules.scope_required && rules.style == CommitStyle::Conventional;
    if is_wanted && handover.scope.is_empty() {
        Err(ArgumentProblem::Scope)
    } else {
        Ok(handover)
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
    if open.is_empty() && handover.replies.iter().all(is_known) {
        Ok(handover)
    } else {
        Err(ArgumentProblem::Replies(open))
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
    #[serde(default)]
    dropped: Vec<DroppedHunk>,
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
        path: truncate_line(&file.path),
        change: truncate_line(&file.change),
    });
    let criteria = input.criteria.into_iter().take(LINES).map(|row| CriterionNote {
        quote: truncate_line(&row.quote),
        shown_by: truncate_line(&row.shown_by),
    });
    Ok(WorkHandover {
        kind: truncate_line(input.r#type.trim()),
        scope: truncate_line(input.scope.trim()),
        title: title.to_owned(),
        summary: summary.to_owned(),
        root_cause: input
            .root_cause
            .map(|cause| truncate_line(cause.trim()))
            .filter(|cause| !cause.is_empty()),
        files: files.collect(),
        decisions: truncate_lines(input.decisions, LINE_CHARS),
        not_done: truncate_lines(input.not_done, LINE_CHARS),
        criteria: criteria.collect(),
        demonstrations: input.demonstrations.into_iter().take(DEMONSTRATIONS).collect(),
        template: input.template.into_iter().take(LINES).map(cap_answer).collect(),
        replies: input.replies.into_iter().map(cap_reply).collect(),
        dropped: input.dropped.into_iter().take(DROPPED).map(cap_dropped).collect(),
        repaired_by: Vec::new(),
    })
}

fn cap_answer(answer: TemplateAnswer) -> TemplateAnswer {
    TemplateAnswer {
        heading: truncate_line(answer.heading.trim()),
        text: truncate_text(answer.text.trim(), REPLY_CHARS),
        done: truncate_lines(answer.done, LINE_CHARS),
    }
}

// A line of a file is quoted whole, so it has its own limit.
fn cap_dropped(hunk: DroppedHunk) -> DroppedHunk {
    DroppedHunk {
        path: truncate_line(hunk.path.trim()),
        quote: truncate_text(hunk.quote.trim(), LostHunk::LINE_CHARS),
        reason: truncate_line(hunk.reason.trim()),
    }
}

fn cap_reply(reply: ThreadReply) -> ThreadReply {
    ThreadReply {
        reply: truncate_text(reply.reply.trim(), REPLY_CHARS),
        ..reply
    }
}

/// Returns true if the command runs code and names its expected output.
fn is_demonstration(claim: &DemonstrationClaim) -> bool {
    let length = claim.command.chars().count();
    let program = claim.command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    (2..=LINE_CHARS).contains(&length)
        && PRINTS_CHARS.contains(&claim.prints.trim().chars().count())
        && !claim.command.contains(&claim.prints)
        && !READERS.contains(&program)
}

fn truncate_line(text: &str) -> String {
    truncate_text(text, LINE_CHARS)
}

/// Asks users on the ticket. The run waits for their answer without holding resources.
pub(in crate::run) const ASK: PlannerTool = PlannerTool {
    name: "ask",
    ends_work: true,
    act: handle_ask,
};

/// Asks only once per run, so that users answer once.
fn handle_ask(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    if has_asked(state) {
        return answer_call(state, call, CallAnswer::AskedAlready).into();
    }
    match parse_questions(&call.call.input) {
        Ok(questions) => request_report(
            state,
            OutboundAction::QuestionAsked(report::QuestionAsked { questions }),
            Some(call),
        )
        .into(),
        Err(wrong) => answer_call(state, call, CallAnswer::Argument(wrong)).into(),
    }
}

fn has_asked(state: &PlannerRunState) -> bool {
    let mut known = state.delivery().reports().iter().filter(|report| !report.is_void);
    known.any(|report| matches!(report.request, OutboundAction::QuestionAsked(_)))
}

#[derive(Deserialize)]
struct AskInput {
    questions: Vec<TicketQuestion>,
}

fn parse_questions(input: &Value) -> Result<Vec<TicketQuestion>, ArgumentProblem> {
    let AskInput { questions } = parse_input(input)?;
    check_questions(questions)
}

/// Validates questions for users.
pub(in crate::run) fn check_questions(
    questions: Vec<TicketQuestion>,
) -> Result<Vec<TicketQuestion>, ArgumentProblem> {
    let is_fit = |question: &TicketQuestion| {
        let options = question.options.len() <= 6 && question.options.iter().all(|text| text.len() <= 300);
        QUESTION_CHARS.contains(&question.text.trim().chars().count()) && options
    };
    if (1..=MOST_QUESTIONS).contains(&questions.len()) && questions.iter().all(is_fit) {
        Ok(questions)
    } else {
        Err(ArgumentProblem::Questions)
    }
}

/// Accepts that no change is possible, with a reason: an honest end must be as easy as a false one.
pub(in crate::run) const GIVE_UP: PlannerTool = PlannerTool {
    name: "give_up",
    ends_work: true,
    act: handle_give_up,
};

fn handle_give_up(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    note_exit(state, call, parse_give_up(&call.call.input))
}

#[derive(Deserialize)]
struct GiveUpInput {
    kind: GiveUp,
    evidence: String,
}

/// Parses the kind and its evidence.
pub(in crate::run) fn parse_give_up(input: &Value) -> Result<(GiveUp, String), ArgumentProblem> {
    let GiveUpInput { kind, evidence } = parse_input(input)?;
    let evidence = evidence.trim().to_owned();
    if EVIDENCE_CHARS.contains(&evidence.chars().count()) {
        Ok((kind, evidence))
    } else {
        Err(ArgumentProblem::Evidence)
    }
}
