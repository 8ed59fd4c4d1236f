//! Text about skipped work. The sentences are those of the API, with the marks of trackers.

use domain::{Marks, SkipReason};

use super::words::{code, harmless, is_web_link, person};

const MARKS: Marks = Marks {
    code,
    person,
    name: |name| format!("**{}**", harmless(name)),
    link: |words, url| match is_web_link(url) {
        true => format!("[{words}](<{url}>)"),
        false => words.to_owned(),
    },
};

pub(crate) fn skipped(reason: &SkipReason, retry: &str) -> Vec<String> {
    let words = reason.words(&MARKS);
    let words = match reason.can_be_retried() {
        true => format!("{words} {retry}"),
        false => words,
    };
    let choices = reason.choices(&MARKS);
    let choices = choices.into_iter().map(|choice| format!("- {choice}"));
    std::iter::once(words).chain(choices).collect()
}
