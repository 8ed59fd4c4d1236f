//! The answer to a question.

use domain::{Answered, CommentQuestion, text::capped};

use super::words::{code, one_line, person};
use crate::sanitize;

const ANSWER_CHARS: usize = 8_000;
const QUOTED_CHARS: usize = 200;

pub(crate) fn answered(question: &CommentQuestion, answer: &Answered) -> Vec<String> {
    let asked = capped(&one_line(&question.text), QUOTED_CHARS);
    let mut paragraphs = vec![
        format!("> {}: {}", person(&question.author), sanitize::plain(&asked)),
        sanitize::markdown(&capped(&answer.answer, ANSWER_CHARS)),
    ];
    if !answer.citations.is_empty() {
        let lines = answer.citations.iter().map(|citation| {
            let place = code(&format!("{}:{}", citation.path, citation.line));
            format!("- {place}: {}", code(&citation.quote))
        });
        paragraphs.push(lines.collect::<Vec<_>>().join("\n"));
    }
    paragraphs
}
