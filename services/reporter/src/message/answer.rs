//! Texts of answers to questions and of discussions.

use domain::{
    Answered, AnsweredQuestion, Citation, CommentQuestion, DiscussionTask, Job, RunId, text::capped,
};

use super::signed;
use super::words::{code, harmless, is_web_link, one_line, person};
use crate::sanitize;

const ANSWER_CHARS: usize = 8_000;
const FOUND_CHARS: usize = 3_000;
const RESEARCH: &str = "What the code says to this:";
const QUOTED_CHARS: usize = 200;

pub(crate) fn answered(question: &CommentQuestion, answer: &Answered, begun: Option<Job>) -> Vec<String> {
    let asked = capped(&one_line(&question.text), QUOTED_CHARS);
    let quoted = format!("> {}: {}", person(&question.author), sanitize::plain(&asked));
    let work = answer.needs_change.then(|| {
        match begun {
            Some(Job::AddressReview) => "Journeyman takes this as a request and changes the pull request.",
            Some(_) => "Journeyman takes this as a request and begins to work on it.",
            None => {
                "Journeyman could not begin the work: what was asked for is not kept any more. Ask once more."
            }
        }
        .to_owned()
    });
    std::iter::once(quoted).chain(shown(answer)).chain(work).collect()
}

/// Renders the result of a research or the end of a discussion.
pub(crate) fn discussed(task: DiscussionTask, answer: &Answered) -> Vec<String> {
    let heading = match task {
        DiscussionTask::Research => RESEARCH,
        DiscussionTask::Summarize => "Summary of this discussion so far:",
        DiscussionTask::Complete => "How this discussion ended:",
        // No issue follows from the discussion; the answer contains the reason.
        DiscussionTask::Plan => "",
    };
    let questions = listed(&answer.questions, &[]);
    std::iter::once(heading.to_owned())
        .chain(shown(answer))
        .chain(questions)
        .collect()
}

/// Renders the result of a research, with links to its threads. Questions without a thread are answered in full.
pub(crate) fn research(answer: &Answered, links: &[Option<String>], run: Option<&RunId>) -> String {
    let mut paragraphs = vec![RESEARCH.to_owned()];
    paragraphs.extend(shown(answer));
    paragraphs.extend(listed(&answer.questions, links));
    signed(&paragraphs.join("\n\n"), run)
}

/// Renders the comment that begins the thread of one question.
pub(crate) fn research_thread(found: &AnsweredQuestion, run: Option<&RunId>) -> String {
    let mut paragraphs = vec![format!("**{}**", question(found))];
    paragraphs.extend(shown_with(&found.answer, FOUND_CHARS, &found.citations));
    signed(&paragraphs.join("\n\n"), run)
}

/// Lists the questions with their links, and in full those without a thread.
fn listed(questions: &[AnsweredQuestion], links: &[Option<String>]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = Vec::new();
    for (index, found) in questions.iter().enumerate() {
        let link = links
            .get(index)
            .and_then(Option::as_ref)
            .filter(|link| is_web_link(link));
        match link {
            Some(link) => lines.push(format!("- [{}](<{link}>)", question(found))),
            None => {
                rest.push(format!("**{}**", question(found)));
                rest.extend(shown_with(&found.answer, FOUND_CHARS, &found.citations));
            }
        }
    }
    let list = (!lines.is_empty()).then(|| lines.join("\n"));
    list.into_iter().chain(rest).collect()
}

fn question(found: &AnsweredQuestion) -> String {
    harmless(&found.question)
}

/// Renders the result of a discussion as a separate comment.
pub(crate) fn summary(task: DiscussionTask, answer: &Answered, run: Option<&RunId>) -> String {
    signed(&discussed(task, answer).join("\n\n"), run)
}

fn shown(answer: &Answered) -> Vec<String> {
    shown_with(&answer.answer, ANSWER_CHARS, &answer.citations)
}

fn shown_with(answer: &str, most: usize, citations: &[Citation]) -> Vec<String> {
    let mut paragraphs = vec![sanitize::markdown(&capped(answer, most))];
    if !citations.is_empty() {
        let lines = citations.iter().map(|citation| {
            let place = code(&format!("{}:{}", citation.path, citation.line));
            format!("- {place}: {}", code(&citation.quote))
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
        let answer = Answered {
            answer: "Totals are to be rounded half up.".to_owned(),
            needs_change: true,
            ..Answered::default()
        };
        let words = |begun| answered(&question, &answer, begun).join("\n");
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
        Journeyman could not begin the work: what was asked for is not kept any more. Ask once more.
        "#);
        let plain = Answered {
            needs_change: false,
            ..answer.clone()
        };
        assert_eq!(answered(&question, &plain, None).len(), 2);
    }

    #[test]
    fn research_question_is_linked_or_answered_inline() {
        let found = |question: &str| AnsweredQuestion {
            question: question.to_owned(),
            answer: "Down. @everyone".to_owned(),
            citations: Vec::new(),
        };
        let answer = Answered {
            answer: "Three things are asked.".to_owned(),
            questions: vec![found("How [x] do we round?"), found("When?"), found("Why?")],
            ..Answered::default()
        };
        let link = "https://github.example/acme/shop/discussions/7#discussioncomment-1".to_owned();
        let texts = [
            discussed(DiscussionTask::Research, &answer).join("\n"),
            research(&answer, &[Some(link), None, None], None),
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
