//! Tools that accept reviews: of a foreign pull request, and of the run's own change.

use domain::{JobRequest, JudgedCriterion, LineRemark, ObjectionWeight, ReviewObjection, ReviewOfChange};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, collapse_space, note_exit, parse_input, truncate_text};
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

// More comments are noise that authors ignore.
const MOST_COMMENTS: usize = 5;
// Lines of one comment.
const MOST_LINES: u32 = 20;
const SUMMARY_CHARS: usize = 2_000;
const SUGGESTION_CHARS: usize = 2_000;
const TEXT_CHARS: std::ops::RangeInclusive<usize> = 5..=LINE_CHARS;

/// Accepts the review of a pull request: a summary, and comments on added lines.
pub(in crate::run) const SUBMIT_COMMENTS: PlannerTool = PlannerTool {
    name: "submit_comments",
    ends_work: true,
    act: handle_comments,
};

fn handle_comments(state: &PlannerRunState, request: &JobRequest, call: &TurnCall) -> RunStep {
    let parsed = parse_comments(&call.call.input)
        .and_then(|review| check_places(review, request))
        .and_then(|review| check_verdicts(review, request));
    note_exit(state, call, parsed)
}

/// Refuses a comment on lines that the pull request does not add.
fn check_places(review: ReviewOfChange, request: &JobRequest) -> Result<ReviewOfChange, ArgumentProblem> {
    let change = request.about.change();
    let fits = |comment: &&LineRemark| {
        change.is_some_and(|change| change.may_comment(&comment.path, comment.lines()))
    };
    match review.comments.iter().find(|comment| !fits(comment)) {
        Some(comment) => Err(ArgumentProblem::NotAdded(comment.path.clone(), comment.line)),
        None => Ok(review),
    }
}

/// Refuses a verdict without a quotation from the ticket, and a criterion without a verdict.
fn check_verdicts(review: ReviewOfChange, request: &JobRequest) -> Result<ReviewOfChange, ArgumentProblem> {
    let ticket = &request.background;
    if let Some(foreign) = review
        .criteria
        .iter()
        .find(|judged| !ticket.contains_quote(&judged.quote))
    {
        return Err(ArgumentProblem::Quote(foreign.quote.clone()));
    }
    let is_judged = |point: &String| {
        let mut quotes = review.criteria.iter().map(|judged| &judged.quote);
        quotes.any(|quote| {
            collapse_space(quote).contains(&collapse_space(point))
                || collapse_space(point).contains(&collapse_space(quote))
        })
    };
    let missing: Vec<String> = ticket
        .criteria()
        .into_iter()
        .filter(|point| !is_judged(point))
        .collect();
    if missing.is_empty() {
        Ok(review)
    } else {
        Err(ArgumentProblem::Verdicts(missing))
    }
}

#[derive(Deserialize)]
struct SubmitCommentsInput {
    summary: String,
    #[serde(default)]
    comments: Vec<LineRemark>,
    #[serde(default)]
    criteria: Vec<JudgedCriterion>,
}

/// Parses the review from a call; blocking comments come first.
pub(in crate::run) fn parse_comments(input: &Value) -> Result<ReviewOfChange, ArgumentProblem> {
    let input: SubmitCommentsInput = parse_input(input)?;
    let summary = truncate_text(&input.summary, SUMMARY_CHARS);
    if summary.is_empty() {
        return Err(ArgumentProblem::Summary);
    }
    let comments = input.comments.into_iter().map(check_comment);
    let mut comments = comments.collect::<Result<Vec<_>, _>>()?;
    comments.sort_by_key(|comment| comment.weight != ObjectionWeight::Blocking);
    comments.truncate(MOST_COMMENTS);
    let criteria = input
        .criteria
        .into_iter()
        .take(LINES)
        .map(|judged| JudgedCriterion {
            quote: truncate_text(&judged.quote, LINE_CHARS),
            ..judged
        });
    Ok(ReviewOfChange {
        summary,
        comments,
        criteria: criteria.collect(),
    })
}

fn check_comment(comment: LineRemark) -> Result<LineRemark, ArgumentProblem> {
    let is_long_enough = |text: &str| TEXT_CHARS.contains(&text.trim().chars().count());
    if comment.path.is_empty() || !is_long_enough(&comment.trigger) || !is_long_enough(&comment.why) {
        return Err(ArgumentProblem::Objection);
    }
    // GitHub accepts a range of one line only as a single line.
    let start_line = comment.start_line.filter(|start| *start != comment.line);
    let count = start_line.map_or(Some(1), |start| comment.line.checked_sub(start)?.checked_add(1));
    if count.is_none_or(|count| count > MOST_LINES) {
        return Err(ArgumentProblem::Range);
    }
    // A code fence would end the block of the suggestion.
    let is_code = |code: &String| code.chars().count() <= SUGGESTION_CHARS && !code.contains("```");
    if !comment.suggestion.iter().all(is_code) {
        return Err(ArgumentProblem::Suggestion);
    }
    Ok(LineRemark {
        start_line,
        trigger: truncate_text(&comment.trigger, LINE_CHARS),
        why: truncate_text(&comment.why, LINE_CHARS),
        ..comment
    })
}

/// Accepts the objections of the reviewer.
pub(in crate::run) const SUBMIT_REVIEW: PlannerTool = PlannerTool {
    name: "submit_review",
    ends_work: true,
    act: handle_review,
};

/// Refuses an objection to a file outside of the change.
fn handle_review(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    let change = state.own_calls().diff().unwrap_or_default();
    let parsed = parse_objections(&call.call.input).and_then(|objections| {
        let is_here = |objection: &ReviewObjection| change.contains(&objection.path);
        if objections.iter().all(is_here) {
            Ok(objections)
        } else {
            Err(ArgumentProblem::Objection)
        }
    });
    note_exit(state, call, parsed)
}

#[derive(Deserialize)]
struct SubmitReviewInput {
    objections: Vec<ReviewObjection>,
}

/// Parses the objections from a call.
pub(in crate::run) fn parse_objections(input: &Value) -> Result<Vec<ReviewObjection>, ArgumentProblem> {
    let input: SubmitReviewInput = parse_input(input)?;
    let objections = input
        .objections
        .into_iter()
        .take(LINES)
        .map(|objection| ReviewObjection {
            path: truncate_text(&objection.path, LINE_CHARS),
            trigger: truncate_text(&objection.trigger, LINE_CHARS),
            why: truncate_text(&objection.why, LINE_CHARS),
            ..objection
        });
    let objections: Vec<ReviewObjection> = objections.collect();
    let is_long_enough = |text: &str| TEXT_CHARS.contains(&text.chars().count());
    let is_fit = |objection: &ReviewObjection| {
        !objection.path.is_empty() && is_long_enough(&objection.trigger) && is_long_enough(&objection.why)
    };
    if objections.iter().all(is_fit) {
        Ok(objections)
    } else {
        Err(ArgumentProblem::Objection)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build_line_comment(line: u32, weight: &str) -> Value {
        json!({"path": "a", "line": line, "trigger": "An empty cart", "why": "It divides by zero.", "weight": weight})
    }

    #[test]
    fn blocking_comments_come_first_of_five() {
        let comments: Vec<Value> = (1..=7)
            .map(|line| build_line_comment(line, if line == 7 { "blocking" } else { "advice" }))
            .collect();
        let review = parse_comments(&json!({"summary": "Fine.", "comments": comments})).unwrap();
        let lines: Vec<u32> = review.comments.iter().map(|comment| comment.line).collect();
        assert_eq!(lines, [7, 1, 2, 3, 4]);
        assert!(review.is_blocking());
    }

    #[test]
    fn comment_range_is_ordered_and_limited() {
        let of = |start: u32, line: u32| {
            let mut range = build_line_comment(line, "advice");
            range["start_line"] = json!(start);
            let review = parse_comments(&json!({"summary": "Fine.", "comments": [range]}));
            review.map(|review| review.comments[0].lines())
        };
        assert_eq!(of(2, 4).unwrap(), 2..=4);
        assert_eq!(of(4, 4).unwrap(), 4..=4);
        assert!(matches!(of(5, 4), Err(ArgumentProblem::Range)));
        assert!(matches!(of(1, 21), Err(ArgumentProblem::Range)));
        assert!(matches!(of(0, u32::MAX), Err(ArgumentProblem::Range)));
    }

    #[test]
    fn suggestion_with_fence_is_refused() {
        let mut fenced = build_line_comment(1, "advice");
        fenced["suggestion"] = json!("x\n```\n@everyone");
        let wrong = parse_comments(&json!({"summary": "Fine.", "comments": [fenced]}));
        assert!(matches!(wrong, Err(ArgumentProblem::Suggestion)), "{wrong:?}");
        let wrong = parse_comments(&json!({"summary": " "}));
        assert!(matches!(wrong, Err(ArgumentProblem::Summary)), "{wrong:?}");
    }
}
