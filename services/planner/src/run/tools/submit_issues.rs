//! Accepts the issues that a discussion plans.

use std::ops::RangeInclusive;

use domain::{JobRequest, PlannedIssue};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, arguments, cut, lines, noted};
use crate::run::machine::{Argument, Call, RunState, Step, Tool};

const TITLE_CHARS: usize = 200;
const TEXT_CHARS: usize = 8_000;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "submit_issues",
    ends_work: true,
    act,
};

fn act(state: &RunState, request: &JobRequest, call: &Call) -> Step {
    noted(
        state,
        call,
        parse(&call.call.input, request.rules.issues.most_planned),
    )
}

#[derive(Deserialize)]
struct Input {
    issues: Vec<Wanted>,
}

/// Issue as a call describes it.
#[derive(Deserialize)]
pub(super) struct Wanted {
    title: String,
    text: String,
    #[serde(default)]
    checklist: Vec<String>,
}

/// Parses the issues from a call, at most `most`.
pub(in crate::run) fn parse(input: &Value, most: usize) -> Result<Vec<PlannedIssue>, Argument> {
    let input: Input = arguments(input)?;
    planned(input.issues, 1..=most).ok_or(Argument::Issues { most })
}

/// Validates the number of issues and their content.
pub(super) fn planned(wanted: Vec<Wanted>, count: RangeInclusive<usize>) -> Option<Vec<PlannedIssue>> {
    let issues = wanted.into_iter().map(|issue| PlannedIssue {
        title: cut(&issue.title.replace('\n', " "), TITLE_CHARS),
        text: cut(&issue.text, TEXT_CHARS),
        checklist: lines(issue.checklist, LINE_CHARS),
    });
    let issues: Vec<PlannedIssue> = issues.collect();
    let is_whole = |issue: &PlannedIssue| !issue.title.is_empty() && !issue.text.is_empty();
    (count.contains(&issues.len()) && issues.iter().all(is_whole)).then_some(issues)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn planned_issues_are_limited_and_nonempty() {
        let issue = |title: &str| json!({"title": title, "text": "Do it.", "checklist": ["one", " "]});
        let planned = parse(&json!({"issues": [issue("A\nB")]}), 2).unwrap();
        assert_eq!(planned[0].title, "A B");
        assert_eq!(planned[0].checklist, ["one"]);
        for issues in [
            json!([]),
            json!([issue(" ")]),
            json!([issue("A"), issue("B"), issue("C")]),
        ] {
            let refused = parse(&json!({ "issues": issues }), 2);
            assert_eq!(refused, Err(Argument::Issues { most: 2 }));
        }
    }
}
