//! Tools that accept plans: of a change, and of the issues of a discussion.

use std::ops::RangeInclusive;

use domain::{ChangePlan, JobRequest, PlanStep, PlannedIssue};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, note_exit, parse_input, truncate_lines, truncate_text};
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

const PLAN_CHARS: usize = 4_000;
const TITLE_CHARS: usize = 200;
const ISSUE_CHARS: usize = 8_000;

/// Accepts the plan of a change.
pub(in crate::run) const SUBMIT_PLAN: PlannerTool = PlannerTool {
    name: "submit_plan",
    ends_work: true,
    act: handle_plan,
};

fn handle_plan(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    note_exit(state, call, parse_plan(&call.call.input))
}

#[derive(Deserialize)]
struct SubmitPlanInput {
    goal: String,
    approach: String,
    steps: Vec<PlanStep>,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    risks: Vec<String>,
    #[serde(default)]
    not_doing: Vec<String>,
}

/// Parses the plan from a call.
pub(in crate::run) fn parse_plan(input: &Value) -> Result<ChangePlan, ArgumentProblem> {
    let input: SubmitPlanInput = parse_input(input)?;
    let steps = input.steps.into_iter().take(LINES).map(|step| PlanStep {
        what: truncate_text(&step.what, LINE_CHARS),
        files: truncate_lines(step.files, LINE_CHARS),
    });
    let plan = ChangePlan {
        goal: truncate_text(&input.goal, PLAN_CHARS),
        approach: truncate_text(&input.approach, PLAN_CHARS),
        steps: steps.filter(|step| !step.what.is_empty()).collect(),
        tests: truncate_lines(input.tests, LINE_CHARS),
        risks: truncate_lines(input.risks, LINE_CHARS),
        not_doing: truncate_lines(input.not_doing, LINE_CHARS),
    };
    if plan.goal.is_empty() || plan.approach.is_empty() || plan.steps.is_empty() {
        Err(ArgumentProblem::Plan)
    } else {
        Ok(plan)
    }
}

/// Accepts the issues that a discussion plans.
pub(in crate::run) const SUBMIT_ISSUES: PlannerTool = PlannerTool {
    name: "submit_issues",
    ends_work: true,
    act: handle_issues,
};

fn handle_issues(state: &PlannerRunState, request: &JobRequest, call: &TurnCall) -> RunStep {
    note_exit(
        state,
        call,
        parse_issues(&call.call.input, request.rules.issues.most_planned),
    )
}

#[derive(Deserialize)]
struct SubmitIssuesInput {
    issues: Vec<IssueInput>,
}

/// Issue as a call describes it.
#[derive(Deserialize)]
pub(super) struct IssueInput {
    title: String,
    text: String,
    #[serde(default)]
    checklist: Vec<String>,
}

/// Parses the issues from a call, at most `most`.
pub(in crate::run) fn parse_issues(input: &Value, most: usize) -> Result<Vec<PlannedIssue>, ArgumentProblem> {
    let input: SubmitIssuesInput = parse_input(input)?;
    check_issues(input.issues, 1..=most).ok_or(ArgumentProblem::Issues { most })
}

/// Validates the number of issues and their content.
pub(super) fn check_issues(
    wanted: Vec<IssueInput>,
    count: RangeInclusive<usize>,
) -> Option<Vec<PlannedIssue>> {
    let issues = wanted.into_iter().map(|issue| PlannedIssue {
        title: truncate_text(&issue.title.replace('\n', " "), TITLE_CHARS),
        text: truncate_text(&issue.text, ISSUE_CHARS),
        checklist: truncate_lines(issue.checklist, LINE_CHARS),
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
        let planned = parse_issues(&json!({"issues": [issue("A\nB")]}), 2).unwrap();
        assert_eq!(planned[0].title, "A B");
        assert_eq!(planned[0].checklist, ["one"]);
        for issues in [
            json!([]),
            json!([issue(" ")]),
            json!([issue("A"), issue("B"), issue("C")]),
        ] {
            let refused = parse_issues(&json!({ "issues": issues }), 2);
            assert_eq!(refused, Err(ArgumentProblem::Issues { most: 2 }));
        }
    }
}
