//! Texts that ask people of a ticket: to decide about a push or a plan, or to answer a question.

use domain::{BranchPush, ChangeDescription, ChangePlan, CommitId, RepositoryName, RunId, TicketQuestion};

use super::{
    description::render_body,
    words::{fence_text, format_code, format_count, group_digits, quote_markdown, sanitize_line},
};
use crate::{receipt::ShownChange, sanitize};

// Length of the difference in a comment, in characters. Jira's limit is 32,767, and other text needs room.
const SHOWN_CHARS: usize = 8_000;
// Length of the description in a comment, in characters, for the same reason.
const SAID_CHARS: usize = 16_000;
// Number of files without a shown line that are named.
const NAMED_FILES: usize = 20;

/// The part of a difference that fits into a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffExcerpt {
    /// Whole lines from the start of the difference.
    pub(crate) text: String,
    /// Number of lines after the excerpt.
    pub(crate) hidden_lines: usize,
    /// Files with lines after the excerpt.
    pub(crate) hidden_files: Vec<String>,
}

/// Returns the start of a difference in git's format.
pub(crate) fn excerpt_diff(diff: &str) -> DiffExcerpt {
    let (mut left, mut shown) = (SHOWN_CHARS, 0);
    let (mut file, mut hidden_lines, mut hidden_files) = (None, 0, Vec::new());
    for line in diff.split_inclusive('\n') {
        if let Some(names) = line.strip_prefix("diff --git ") {
            file = names
                .trim_end()
                .rsplit_once(" b/")
                .map(|(_, name)| name.to_owned());
        }
        let chars = line.chars().count();
        if hidden_lines == 0 && chars <= left {
            left -= chars;
            shown += line.len();
        } else {
            hidden_lines += 1;
            hidden_files.extend(file.take());
        }
    }
    DiffExcerpt {
        text: diff[..shown].to_owned(),
        hidden_lines,
        hidden_files,
    }
}

/// Renders the question: size and description of the change, its difference, and the orders for a decision.
pub(crate) fn decision_needed(
    push: &BranchPush,
    (description, shown): (Option<&ChangeDescription>, Option<&ShownChange>),
    run: Option<&RunId>,
) -> Vec<String> {
    let run = run.map(ToString::to_string).unwrap_or_default();
    let head = push.head.short();
    let files = shown.map_or_else(String::new, |shown| {
        format!(" in {}", format_count(shown.files as u64, "file"))
    });
    let mut paragraphs = vec![format!(
        "A change{files} for `{}` is ready and waits for your decision before it is pushed: commit `{head}` for the branch {}.",
        push.repository,
        format_code(&push.branch)
    )];
    let said = description.map(|description| render_body(description).joined());
    paragraphs.extend(said.map(|said| sanitize::sanitize_and_truncate(&said, SAID_CHARS)));
    if let Some(shown) = shown {
        paragraphs.push(fence_text("diff", &shown.excerpt));
        paragraphs.extend(describe_hidden_lines(shown, &run));
    }
    paragraphs.push(format!(
        "Decide in a comment: `/approve {head}`, `/reject`, or `/feedback` and what to change. Or with `journeyman decide \
         {run} approve --head {head}`. An approval covers this commit only."
    ));
    paragraphs
}

/// Renders the number of omitted lines, and the command that shows them.
fn describe_hidden_lines(shown: &ShownChange, run: &str) -> Option<String> {
    let lines = match shown.hidden_lines {
        0 => return None,
        1 => "1 more line is".to_owned(),
        lines => format!("{} more lines are", group_digits(lines as u64)),
    };
    let named: Vec<String> = shown
        .hidden_files
        .iter()
        .take(NAMED_FILES)
        .map(|file| format_code(file))
        .collect();
    let more = shown.hidden_files.len().saturating_sub(NAMED_FILES);
    let more = if more > 0 {
        format!(" and {}", format_count(more as u64, "more file"))
    } else {
        String::new()
    };
    Some(format!(
        "**{lines} not shown here**, of {}{more}. Read the whole change with `journeyman diff {run}` (or \
         `GET /v1/runs/{{id}}/diff`) before you decide.",
        named.join(", ")
    ))
}

/// Renders the whole plan, and the orders for a decision.
pub(crate) fn render_plan(
    repository: &RepositoryName,
    id: &CommitId,
    plan: &ChangePlan,
    run: Option<&RunId>,
) -> Vec<String> {
    let run = run.map(ToString::to_string).unwrap_or_default();
    let id = id.short();
    let mut paragraphs = vec![
        format!("A plan for `{repository}` waits for your decision before the work begins: plan `{id}`."),
        quote_markdown(&plan.goal),
        sanitize_line(&plan.approach),
        list_steps(plan),
    ];
    let lists = [
        ("Tests", &plan.tests),
        ("Risks", &plan.risks),
        ("Not done", &plan.not_doing),
    ];
    for (name, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        paragraphs.push(format!("**{name}**"));
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("- {}", sanitize_line(line)))
            .collect();
        paragraphs.push(lines.join("\n"));
    }
    paragraphs.push(format!(
        "Decide in a comment: `/approve {id}`, `/reject`, or `/feedback` and what to change. Or with `journeyman decide {run} \
         approve --head {id}`. An approval covers this plan only."
    ));
    paragraphs
}

fn list_steps(plan: &ChangePlan) -> String {
    let lines = plan.steps.iter().enumerate().map(|(number, step)| {
        let files: Vec<String> = step.files.iter().map(|file| format_code(file)).collect();
        let files = if files.is_empty() {
            String::new()
        } else {
            format!(" ({})", files.join(", "))
        };
        format!("{}. {}{files}", number + 1, sanitize_line(&step.what))
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn render_questions(questions: &[TicketQuestion]) -> Vec<String> {
    let mut paragraphs = vec![match questions.len() {
        1 => "Journeyman needs an answer before it can continue:".to_owned(),
        _ => "Journeyman needs answers before it can continue:".to_owned(),
    }];
    for question in questions {
        paragraphs.push(quote_markdown(&question.text));
        let options = question.options.iter().enumerate();
        let options = options.map(|(index, option)| format!("{}. {}", index + 1, sanitize_line(option)));
        paragraphs.push(options.collect::<Vec<_>>().join("\n"));
    }
    let has_options = questions.iter().any(|question| !question.options.is_empty());
    let how = if has_options {
        ", with the number of an option or in your own words"
    } else {
        ""
    };
    paragraphs.push(format!(
        "Answer in a comment on this ticket{how}; the work continues from there. Comment `/stop` to end it instead."
    ));
    paragraphs
}
