//! A review of a pull request of somebody.

use domain::{LineRemark, ReviewOfChange, RunId, Weight, text::capped};

use super::{signed, words::code};
use crate::sanitize;

const SUMMARY_CHARS: usize = 2_000;
const REMARK_CHARS: usize = 1_000;

/// The review as a whole; with its comments, where they cannot stand on their lines.
pub(crate) fn review(review: &ReviewOfChange, has_comments: bool, run: Option<&RunId>) -> String {
    let verdict = match (review.is_blocking(), review.comments.is_empty()) {
        (true, _) => "Journeyman asks for changes.",
        (false, false) => {
            "Journeyman found nothing that stands in the way of a merge, and something to consider."
        }
        (false, true) => "Journeyman found nothing that speaks against a merge.",
    };
    let mut paragraphs = vec![
        format!("{verdict} A person decides."),
        sanitize::markdown(&capped(&review.summary, SUMMARY_CHARS)),
    ];
    if !has_comments {
        paragraphs.extend(review.comments.iter().map(|remark| {
            let place = code(&format!("{}:{}", remark.path, remark.line));
            format!("{place}: {}", line_remark(remark))
        }));
    }
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    signed(&paragraphs.join("\n\n"), run)
}

/// A comment on a line.
pub(crate) fn line_remark(remark: &LineRemark) -> String {
    let text = |text: &str| sanitize::markdown(&capped(text, REMARK_CHARS)).trim().to_owned();
    let weight = match remark.weight {
        Weight::Blocking => "**Blocking.** ",
        Weight::Advice => "",
    };
    let mut said = format!("{weight}{}\n\nWhen: {}", text(&remark.why), text(&remark.trigger));
    if let Some(suggestion) = &remark.suggestion {
        said.push_str(&format!(
            "\n\n```suggestion\n{}\n```",
            suggestion.trim_end_matches('\n')
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn remark(weight: Weight) -> LineRemark {
        LineRemark {
            path: "shop/`mean`.py".to_owned(),
            line: 2,
            trigger: "An empty cart, says @sam".to_owned(),
            why: "It divides by zero, fixes #7".to_owned(),
            weight,
            suggestion: Some("    return 0\n".to_owned()),
        }
    }

    fn of(comments: Vec<LineRemark>) -> ReviewOfChange {
        let summary = "Adds a mean. ![x](https://evil.example/x.png)".to_owned();
        ReviewOfChange { summary, comments }
    }

    #[test]
    fn a_review_says_its_verdict_and_that_a_person_decides() {
        let texts = [
            review(&of(Vec::new()), true, None),
            review(&of(vec![remark(Weight::Advice)]), true, None),
            review(&of(vec![remark(Weight::Blocking)]), false, None),
        ];
        assert_snapshot!(texts.join("\n=====\n"), @r#"
        Journeyman found nothing that speaks against a merge. A person decides.

        Adds a mean. x
        =====
        Journeyman found nothing that stands in the way of a merge, and something to consider. A person decides.

        Adds a mean. x
        =====
        Journeyman asks for changes. A person decides.

        Adds a mean. x

        `shop/'mean'.py:2`: **Blocking.** It divides by zero, fixes `#7`

        When: An empty cart, says `@sam`

        ```suggestion
            return 0
        ```
        "#);
    }

    #[test]
    fn a_comment_names_nobody_and_closes_nothing_and_its_suggestion_is_code() {
        assert_snapshot!(line_remark(&remark(Weight::Blocking)), @r#"
        **Blocking.** It divides by zero, fixes `#7`

        When: An empty cart, says `@sam`

        ```suggestion
            return 0
        ```
        "#);
    }
}
