//! Texts of answers to questions and of discussions.

use domain::{
    AnsweredQuestion, CitedAnswer, CodeCitation, CommentQuestion, DiscussionTask, Job, RunId,
    text::truncate_text,
};

use super::sign_text;
use super::words::{format_code, is_web_link, name_person, one_line, sanitize_line};
use crate::sanitize;

const ANSWER_CHARS: usize = 8_000;
const FOUND_CHARS: usize = 3_000;
const RESEARCH: &str = "What the code says to this:";
const QUOTED_CHARS: usize = 200;

pub(crate) fn render_answer(
    question: &CommentQuestion,
    answer: &CitedAnswer,
    begun: Option<Job>,
) -> Vec<String> {
    let asked = truncate_text(&one_line(&question.text), QUOTED_CHARS);
    let quoted = format!(
        "> {}: {}",
        name_person(&question.author),
        sanitize::sanitize_plain(&asked)
    );
    let work = answer.needs_change.then(|| {
        match begun {
            Some(Job::AddressReview) => "Journeyman takes this as a request and changes the pull request.",
            Some(_) => "Journeyman takes this as a request and begins to work on it.",
            None => "Journeyman could not begin the work: the request is no longer stored. Ask again.",
        }
        .to_owned()
    });
    std::iter::once(quoted)
        .chain(render_cited_answer(answer))
        .chain(work)
        .collect()
}

/// Renders the result of a research or the end of a discussion.
pub(crate) fn render_discussion(task: DiscussionTask, answer: &CitedAnswer) -> Vec<String> {
    let heading = match task {
        DiscussionTask::Research => RESEARCH,
        DiscussionTask::Summarize => "Summary of this discussion so far:",
        DiscussionTask::Complete => "How this discussion ended:",
        // No issue follows from the discussion; the answer contains the reason.
        DiscussionTask::Plan => "",
    };
    let questions = list_questions(&answer.questions, &[]);
    std::iter::once(heading.to_owned())
        .chain(render_cited_answer(answer))
        .chain(questions)
        .collect()
}

/// Renders the result of a research, with links to its threads. Questions without a thread are answered in full.
pub(crate) fn render_research(answer: &CitedAnswer, links: &[Option<String>], run: Option<&RunId>) -> String {
    let mut paragraphs = vec![RESEARCH.to_owned()];
    paragraphs.extend(render_cited_answer(answer));
    paragraphs.extend(list_questions(&answer.questions, links));
    sign_text(&paragraphs.join("\n\n"), run)
}

/// Renders the comment that begins the thread of one question.
pub(crate) fn research_thread(found: &AnsweredQuestion, run: Option<&RunId>) -> String {
    let mut paragraphs = vec![format!("**{}**", format_question(found))];
    paragraphs.extend(shown_with(&found.answer, FOUND_CHARS, &found.citations));
    sign_text(&paragraphs.join("\n\n"), run)
}

/// Lists the questions with their links, and in full those without a thread.
fn list_questions(questions: &[AnsweredQuestion], links: &[Option<String>]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = Vec::new();
    for (index, found) in questions.iter().enumerate() {
        let link = links
            .get(index)
            .and_then(Option::as_ref)
            .filter(|link| is_web_link(link));
        match link {
            Some(link) => lines.push(format!("- [{}](<{link}>)", format_question(found))),
            None => {
                rest.push(format!("**{}**", format_question(found)));
                rest.extend(shown_with(&found.answer, FOUND_CHARS, &found.citations));
            }
        }
    }
    let list = (!lines.is_empty()).then(|| lines.join("\n"));
    list.into_iter().chain(rest).collect()
}

fn format_question(found: &AnsweredQuestion) -> String {
    sanitize_line(&found.question)
}

/// Renders the result of a discussion as a separate comment.
pub(crate) fn render_summary(task: DiscussionTask, answer: &CitedAnswer, run: Option<&RunId>) -> String {
    sign_text(&render_discussion(task, answer).join("\n\n"), run)
}

fn render_cited_answer(answer: &CitedAnswer) -> Vec<String> {
    shown_with(&answer.answer, ANSWER_CHARS, &answer.citations)
}

fn shown_with(answer: &str, most: usize, citations: &[CodeCitation]) -> Vec<String> {
    let mut paragraphs = vec![sanitize::sanitize_part(&truncate_text(answer, most))];
    if !citations.is_empty() {
        let lines = citations.iter().map(|citation| {
            let place = format_code(&format!("{}:{}", citation.path, citation.line));
            format!("- {place}: {}", format_code(&citation.quote))
        });
        paragraphs.push(lines.collect::<Vec<_>>().join("\n"));
    }
    paragraphs
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn change_request_comment_names_the_started_work() {
        let question = CommentQuestion {
            author: "@rita".to_owned(),
            text: "Round half up, fixes #7".to_owned(),
            pull_request: None,
            head: None,
            comment: None,
            work: None,
        };
        let answer = CitedAnswer {
            answer: "Totals are to be rounded half up.".to_owned(),
            needs_change: true,
            ..CitedAnswer::default()
        };
        let words = |begun| render_answer(&question, &answer, begun).join("\n");
        let all = [Some(Job::Implement), Some(Job::AddressReview), None].map(words);
        assert_snapshot!(all.join("\n=====\n"), @r#"
        > `@rita`: Round half up, fixes `#7`
        Totals are to be rounded half up.
        Journeyman takes this as a request and begins to work on it.
        =====
        > `@rita`: Round half up, fixes `#7`
        Totals are to be rounded half up.
        Journeyman takes this as a request and changes the pull request.
        =====
        > `@rita`: Round half up, fixes `#7`
        Totals are to be rounded half up.
        Journeyman could not begin the work: the request is no longer stored. Ask again.
        "#);
        let plain = CitedAnswer {
            needs_change: false,
            ..answer.clone()
        };
        assert_eq!(render_answer(&question, &plain, None).len(), 2);
    }

    #[test]
    fn research_question_is_linked_or_answered_inline() {
        let found = |question: &str| AnsweredQuestion {
            question: question.to_owned(),
            answer: "Down. @everyone".to_owned(),
            citations: Vec::new(),
        };
        let answer = CitedAnswer {
            answer: "Three things are asked.".to_owned(),
            questions: vec![found("How [x] do we round?"), found("When?"), found("Why?")],
            ..CitedAnswer::default()
        };
        let link = "https://github.example/acme/shop/discussions/7#discussioncomment-1".to_owned();
        let texts = [
            render_discussion(DiscussionTask::Research, &answer).join("\n"),
            render_research(&answer, &[Some(link), None, None], None),
            research_thread(&answer.questions[0], None),
        ];
        assert_snapshot!(texts.join("\n=====\n"), @r#"
        What the code says to this:
        Three things are asked.
        **How \[x\] do we round?**
        Down. `@everyone`
        **When?**
        Down. `@everyone`
        **Why?**
        Down. `@everyone`
        =====
        What the code says to this:

        Three things are asked.

        - [How \[x\] do we round?](<https://github.example/acme/shop/discussions/7#discussioncomment-1>)

        **When?**

        Down. `@everyone`

        **Why?**

        Down. `@everyone`
        =====
        **How \[x\] do we round?**

        Down. `@everyone`
        "#);
    }
}
