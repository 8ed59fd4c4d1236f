//! Texts of the model's questions to the people of a ticket.

use domain::TicketQuestion;

use super::words::{quote_markdown, sanitize_line};

pub(crate) fn render_questions(questions: &[TicketQuestion]) -> Vec<String> {
    let mut paragraphs = vec![match questions.len() {
        1 => "Journeyman needs an answer before it can go on:".to_owned(),
        _ => "Journeyman needs answers before it can go on:".to_owned(),
    }];
    for question in questions {
        paragraphs.push(quote_markdown(&question.text));
        let options = question
            .options
            .iter()
            .map(|option| format!("- {}", sanitize_line(option)));
        paragraphs.push(options.collect::<Vec<_>>().join("\n"));
    }
    paragraphs.push(
        "Answer in a comment on this ticket; the work goes on from there. Comment `/stop` to end it instead."
            .to_owned(),
    );
    paragraphs
}
