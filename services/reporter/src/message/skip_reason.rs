//! Text about skipped work. The sentences are those of the API, with the marks of trackers.

use domain::{SkipReason, TextMarkup};

use super::words::{format_code, is_web_link, name_person, sanitize_line};

const MARKS: TextMarkup = TextMarkup {
    code: format_code,
    person: name_person,
    name: |name| format!("**{}**", sanitize_line(name)),
    link: |words, url| match is_web_link(url) {
        true => format!("[{words}](<{url}>)"),
        false => words.to_owned(),
    },
};

pub(crate) fn render_skip(reason: &SkipReason, retry: &str) -> Vec<String> {
    let words = reason.words(&MARKS);
    let words = match reason.can_be_retried() {
        true => format!("{words} {retry}"),
        false => words,
    };
    let choices = reason.choices(&MARKS);
    let choices = choices.into_iter().map(|choice| format!("- {choice}"));
    std::iter::once(words).chain(choices).collect()
}
