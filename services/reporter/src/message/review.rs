//! Text of a review of another author's pull request.

use domain::{
    CriterionVerdict, JudgedCriterion, LineRemark, ObjectionWeight, ReviewOfChange, RunId,
    text::truncate_text,
};

use super::{
    sign_text,
    words::{fenced_lines, format_code, sanitize_line},
};
use crate::sanitize;

const SUMMARY_CHARS: usize = 2_000;
const REMARK_CHARS: usize = 1_000;

/// Renders the review. With `has_comments`, the comments are on their lines; without, they are part of the text.
pub(crate) fn render_review(review: &ReviewOfChange, has_comments: bool, run: Option<&RunId>) -> String {
    let verdict = match (review.is_blocking(), review.comments.is_empty()) {
        (true, _) => "Journeyman asks for changes.",
        (false, _) if review.leaves_open() => {
            "Journeyman found nothing else that stands in the way of a merge, but the ticket asks for more than this does."
        }
        (false, false) => {
            "Journeyman found nothing that stands in the way of a merge, and something to consider."
        }
        (false, true) => "Journeyman found nothing that speaks against a merge.",
    };
    let mut paragraphs = vec![
        format!("{verdict} A person decides."),
        sanitize::sanitize_part(&truncate_text(&review.summary, SUMMARY_CHARS)),
    ];
    paragraphs.push(render_review_criteria(&review.criteria));
    if !has_comments {
        paragraphs.extend(review.comments.iter().map(|remark| {
            let lines = match remark.start_line {
                Some(start) => format!("{start}-{}", remark.line),
                None => remark.line.to_string(),
            };
            let place = format_code(&format!("{}:{lines}", remark.path));
            sanitize::close_code_block(format!("{place}: {}", line_remark(remark)))
        }));
    }
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    sign_text(&paragraphs.join("\n\n"), run)
}

/// Builds a table of the ticket's criteria; empty without any.
fn render_review_criteria(judged: &[JudgedCriterion]) -> String {
    let row = |judged: &JudgedCriterion| {
        let verdict = match judged.verdict {
            CriterionVerdict::Met => "met",
            CriterionVerdict::NotMet => "**not met**",
            CriterionVerdict::NeedsPerson => "a person has to look",
        };
        // The quotation contains text of others, which must not end the cell.
        let quote = sanitize_line(&judged.quote)
            .replace("\\|", "|")
            .replace('|', "\\|");
        format!("| {quote} | {verdict} |")
    };
    if judged.is_empty() {
        String::new()
    } else {
        let rows: Vec<String> = judged.iter().map(row).collect();
        format!(
            "| the ticket asks | this change |\n|---|---|\n{}",
            rows.join("\n")
        )
    }
}

/// Renders a comment on a line.
pub(crate) fn line_remark(remark: &LineRemark) -> String {
    // Behind its lead, the first line of a text opens no block, so whole paragraphs are checked.
    let paragraph = |lead: &str, text: &str| {
        let text = sanitize::sanitize_markdown(&truncate_text(text, REMARK_CHARS));
        sanitize::close_code_block(format!("{lead}{}", text.trim()))
    };
    let weight = match remark.weight {
        ObjectionWeight::Blocking => "**Blocking.** ",
        ObjectionWeight::Advice => "",
    };
    let mut said = format!(
        "{}\n\n{}",
        paragraph(weight, &remark.why),
        paragraph("When: ", &remark.trigger)
    );
    if let Some(suggestion) = &remark.suggestion {
        let suggestion = suggestion.trim_end_matches('\n');
        // A suggestion cannot be changed without changing what a click would commit. If it contains an order to a bot, it
        // becomes plain code.
        let is_safe = sanitize::code_lines(suggestion) == suggestion;
        let kind = if is_safe { "suggestion" } else { "" };
        said.push_str(&format!("\n\n{}", fenced_lines(kind, suggestion)));
    }
    said
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn build_line_remark(weight: ObjectionWeight) -> LineRemark {
        LineRemark {
            path: "shop/`mean`.py".to_owned(),
            line: 2,
            start_line: None,
            trigger: "An empty cart, says @sam".to_owned(),
            why: "It divides by zero, fixes #7".to_owned(),
            weight,
            suggestion: Some("    return 0\n".to_owned()),
        }
    }

    fn build_change_review(comments: Vec<LineRemark>) -> ReviewOfChange {
        let summary = "Adds a mean. ![x](https://evil.example/x.png)".to_owned();
        ReviewOfChange {
            summary,
            comments,
            criteria: Vec::new(),
        }
    }

    #[test]
    fn review_text_has_verdict_and_leaves_decision() {
        let texts = [
            render_review(&build_change_review(Vec::new()), true, None),
            render_review(
                &build_change_review(vec![build_line_remark(ObjectionWeight::Advice)]),
                true,
                None,
            ),
            render_review(
                &build_change_review(vec![build_line_remark(ObjectionWeight::Blocking)]),
                false,
                None,
            ),
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
    fn open_code_block_hides_no_suggestion() {
        let remark = LineRemark {
            why: "x\n\n```\ny".to_owned(),
            ..build_line_remark(ObjectionWeight::Advice)
        };
        let text = line_remark(&remark);
        assert!(text.starts_with("x\n\n```\ny\n```\n\nWhen: "), "{text}");
    }

    #[test]
    fn criteria_table_cells_survive_hostile_quotes() {
        let judged = |quote: &str, verdict| JudgedCriterion {
            quote: quote.to_owned(),
            verdict,
        };
        let several = LineRemark {
            start_line: Some(1),
            ..build_line_remark(ObjectionWeight::Advice)
        };
        let said = ReviewOfChange {
            criteria: vec![
                judged("An empty cart costs 0", CriterionVerdict::Met),
                judged("Tell @sam | then\n| x | fixes #7", CriterionVerdict::NotMet),
                judged("It looks good", CriterionVerdict::NeedsPerson),
            ],
            ..build_change_review(vec![several])
        };
        assert_snapshot!(render_review(&said, false, None), @r#"
        Journeyman found nothing else that stands in the way of a merge, but the ticket asks for more than this does. A person decides.

        Adds a mean. x

        | the ticket asks | this change |
        |---|---|
        | An empty cart costs 0 | met |
        | Tell `@sam` \| then \| x \| fixes `#7` | **not met** |
        | It looks good | a person has to look |

        `shop/'mean'.py:1-2`: It divides by zero, fixes `#7`

        When: An empty cart, says `@sam`

        ```suggestion
            return 0
        ```
        "#);
    }

    #[test]
    fn suggestion_with_order_becomes_plain_code() {
        for (suggestion, shown) in [
            ("# r+ @bors", "# r+ [@]bors"),
            ("say('/deploy')", "say('[/]deploy')"),
        ] {
            let remark = LineRemark {
                suggestion: Some(suggestion.to_owned()),
                ..build_line_remark(ObjectionWeight::Advice)
            };
            let said = line_remark(&remark);
            assert!(said.ends_with(&format!("\n\n```\n{shown}\n```")), "{said}");
        }
    }

    #[test]
    fn line_comment_is_harmless_with_code_suggestion() {
        assert_snapshot!(line_remark(&build_line_remark(ObjectionWeight::Blocking)), @r#"
        **Blocking.** It divides by zero, fixes `#7`

        When: An empty cart, says `@sam`

        ```suggestion
            return 0
        ```
        "#);
    }
}
