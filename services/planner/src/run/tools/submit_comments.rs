//! The model hands in its review of a pull request: a summary, and comments on lines that the change adds.

use domain::{JobRequest, LineRemark, ReviewOfChange, Weight};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, arguments, cut, noted};
use crate::run::machine::{Argument, Call, RunState, Step, Tool};

/// More are noise: people stop reading.
const MOST_COMMENTS: usize = 5;
const SUMMARY_CHARS: usize = 2_000;
const SUGGESTION_CHARS: usize = 2_000;
const TEXT_CHARS: std::ops::RangeInclusive<usize> = 5..=LINE_CHARS;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "submit_comments",
    ends_work: true,
    act,
};

fn act(state: &RunState, request: &JobRequest, call: &Call) -> Step {
    let change = request.about.change();
    let fits =
        |comment: &LineRemark| change.is_some_and(|change| change.may_comment(&comment.path, comment.line));
    let parsed = parse(&call.call.input).and_then(|review| {
        let misplaced = review.comments.iter().find(|comment| !fits(comment));
        match misplaced {
            Some(comment) => Err(Argument::NotAdded(comment.path.clone(), comment.line)),
            None => Ok(review),
        }
    });
    noted(state, call, parsed)
}

#[derive(Deserialize)]
struct Input {
    summary: String,
    #[serde(default)]
    comments: Vec<LineRemark>,
}

/// The review that a call gives: what stands in the way comes first.
pub(in crate::run) fn parse(input: &Value) -> Result<ReviewOfChange, Argument> {
    let input: Input = arguments(input)?;
    let summary = cut(&input.summary, SUMMARY_CHARS);
    if summary.is_empty() {
        return Err(Argument::Summary);
    }
    let comments = input.comments.into_iter().map(comment);
    let mut comments = comments.collect::<Result<Vec<_>, _>>()?;
    comments.sort_by_key(|comment| comment.weight != Weight::Blocking);
    comments.truncate(MOST_COMMENTS);
    Ok(ReviewOfChange { summary, comments })
}

fn comment(comment: LineRemark) -> Result<LineRemark, Argument> {
    let is_long_enough = |text: &str| TEXT_CHARS.contains(&text.trim().chars().count());
    if comment.path.is_empty() || !is_long_enough(&comment.trigger) || !is_long_enough(&comment.why) {
        return Err(Argument::Objection);
    }
    // A fence would end the block that the suggestion stands in.
    let is_code = |code: &String| code.chars().count() <= SUGGESTION_CHARS && !code.contains("```");
    if !comment.suggestion.iter().all(is_code) {
        return Err(Argument::Suggestion);
    }
    Ok(LineRemark {
        trigger: cut(&comment.trigger, LINE_CHARS),
        why: cut(&comment.why, LINE_CHARS),
        ..comment
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn comment(line: u32, weight: &str) -> Value {
        json!({"path": "a", "line": line, "trigger": "An empty cart", "why": "It divides by zero.", "weight": weight})
    }

    #[test]
    fn five_comments_are_kept_and_what_stands_in_the_way_comes_first() {
        let comments: Vec<Value> = (1..=7)
            .map(|line| comment(line, if line == 7 { "blocking" } else { "advice" }))
            .collect();
        let review = parse(&json!({"summary": "Fine.", "comments": comments})).unwrap();
        let lines: Vec<u32> = review.comments.iter().map(|comment| comment.line).collect();
        assert_eq!(lines, [7, 1, 2, 3, 4]);
        assert!(review.is_blocking());
    }

    #[test]
    fn a_suggestion_cannot_end_its_block_and_a_summary_is_needed() {
        let mut fenced = comment(1, "advice");
        fenced["suggestion"] = json!("x\n```\n@everyone");
        let wrong = parse(&json!({"summary": "Fine.", "comments": [fenced]}));
        assert!(matches!(wrong, Err(Argument::Suggestion)), "{wrong:?}");
        let wrong = parse(&json!({"summary": " "}));
        assert!(matches!(wrong, Err(Argument::Summary)), "{wrong:?}");
    }
}
