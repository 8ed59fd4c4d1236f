//! The answer to a question.

use domain::{Answered, CommentQuestion, DiscussionTask, RunId, text::capped};

use super::signed;
use super::words::{code, one_line, person};
use crate::sanitize;

const ANSWER_CHARS: usize = 8_000;
const QUOTED_CHARS: usize = 200;

pub(crate) fn answered(question: &CommentQuestion, answer: &Answered) -> Vec<String> {
    let asked = capped(&one_line(&question.text), QUOTED_CHARS);
    let quoted = format!("> {}: {}", person(&question.author), sanitize::plain(&asked));
    std::iter::once(quoted).chain(shown(answer)).collect()
}

/// What was found out, or said in the end, in a discussion.
pub(crate) fn discussed(task: DiscussionTask, answer: &Answered) -> Vec<String> {
    let heading = match task {
        DiscussionTask::Research => "What the code says to this:",
        DiscussionTask::Summarize => "Summary of this discussion so far:",
        DiscussionTask::Complete => "How this discussion ended:",
        // No issue follows from it, for the reason that is said.
        DiscussionTask::Plan => "",
    };
    std::iter::once(heading.to_owned()).chain(shown(answer)).collect()
}

/// The same as a comment of its own.
pub(crate) fn summary(task: DiscussionTask, answer: &Answered, run: Option<&RunId>) -> String {
    signed(&discussed(task, answer).join("\n\n"), run)
}

fn shown(answer: &Answered) -> Vec<String> {
    let mut paragraphs = vec![sanitize::markdown(&capped(&answer.answer, ANSWER_CHARS))];
    if !answer.citations.is_empty() {
        let lines = answer.citations.iter().map(|citation| {
            let place = code(&format!("{}:{}", citation.path, citation.line));
            format!("- {place}: {}", code(&citation.quote))
        });
        paragraphs.push(lines.collect::<Vec<_>>().join("\n"));
    }
    paragraphs
}
