//! Result of a run: its stages over time, its last reported change, the evidence for the change, and its writes.

use std::ops::Range;

use domain::{
    ChangePlan, ChangeProof, Fact, JournalEntry, PhaseOutput, Timestamp, WorkExit, WorkHandover,
    check::ChangeReport, describe_evidence,
};
use maud::{Markup, html};

use super::{
    run_diff::diff_path,
    run_outside::{describe_plan, render_outside},
    run_picture::render_picture,
};
use crate::{
    markdown::render_markdown,
    words::{make_visible, run_path},
};

/// Renders the stages of the run until `now`, its last reported change, its last evidence, and what it wrote outside.
/// `shown` are the entries on the same page.
pub(super) fn render_changes(
    run: &str,
    journal: &[JournalEntry],
    shown: &Range<usize>,
    now: Timestamp,
) -> Markup {
    let result = RunResult::of(journal);
    html! {
        (render_picture(run, journal, shown, now))
        @if let Some(plan) = result.plan { (render_plan(plan)) }
        @if let Some(answer) = result.answer { h2 { "Answer" } (render_markdown(answer)) }
        @if let Some(handover) = result.handover { (render_handover(handover)) }
        @if result.handover.is_some() || result.size.is_some() { (render_files(run, &result)) }
        @if let Some(proof) = result.proof { (render_evidence(proof)) }
        (render_outside(run, journal))
    }
}

/// Last results of a run, as its journal has them.
#[derive(Default)]
struct RunResult<'a> {
    handover: Option<&'a WorkHandover>,
    plan: Option<&'a ChangePlan>,
    answer: Option<&'a str>,
    size: Option<&'a ChangeReport>,
    proof: Option<&'a ChangeProof>,
}

impl<'a> RunResult<'a> {
    fn of(journal: &'a [JournalEntry]) -> Self {
        let mut result = Self::default();
        for entry in journal {
            if let Fact::ChangeInspected { report: Some(report) } = &entry.fact {
                result.size = Some(report);
            } else if let Fact::PhaseFinished { output } = &entry.fact {
                result.apply(output);
            }
        }
        result
    }

    fn apply(&mut self, output: &'a PhaseOutput) {
        if let PhaseOutput::Work {
            exit: WorkExit::Finished(work) | WorkExit::CutShort { handover: work, .. },
        } = output
        {
            self.handover = Some(work);
        } else if let PhaseOutput::Plan { plan: Some(plan) } = output {
            self.plan = Some(plan);
        } else if let PhaseOutput::Answer { answer: Some(answer) } = output {
            self.answer = Some(&answer.answer);
        } else if let PhaseOutput::PullRequest { review: Some(review) } = output {
            self.answer = Some(&review.summary);
        } else if let PhaseOutput::Prove { proof } = output {
            self.proof = Some(proof);
        }
    }
}

fn render_plan(plan: &ChangePlan) -> Markup {
    html! {
        h2 { "Plan" }
        details { summary { (make_visible(&plan.goal)) } (render_markdown(&describe_plan(plan))) }
    }
}

fn render_handover(handover: &WorkHandover) -> Markup {
    html! {
        h2 { "Changes" }
        p { strong { (make_visible(&handover.title)) } }
        (render_markdown(&handover.summary))
        @if !handover.not_done.is_empty() {
            p { "Not done:" }
            ul { @for what in &handover.not_done { li { (make_visible(what)) } } }
        }
    }
}

/// Renders the changed files with their sizes, and the remarks of the model about them.
fn render_files(run: &str, result: &RunResult<'_>) -> Markup {
    let notes = result
        .handover
        .map_or(&[][..], |handover| handover.files.as_slice());
    let sizes = result.size.map_or(&[][..], |report| report.changed.as_slice());
    let note_of = |path: &str| {
        notes
            .iter()
            .find(|note| note.path == path)
            .map(|note| note.change.as_str())
    };
    let rest = notes
        .iter()
        .filter(|note| sizes.iter().all(|size| size.path != note.path));
    html! {
        ul.files {
            @for size in sizes {
                li {
                    a href=(diff_path(run, &size.path)) { (make_visible(&size.path)) }
                    " " span.good { "+" (size.added) } " " span.removed { "−" (size.removed) }
                    @if let Some(note) = note_of(&size.path) { ": " (make_visible(note)) }
                }
            }
            @for note in rest { li { code { (make_visible(&note.path)) } ": " (make_visible(&note.change)) } }
        }
        p { a href={ (run_path(run)) "/diff" } { "Show the difference" } }
    }
}

fn render_evidence(proof: &ChangeProof) -> Markup {
    html! {
        h2 { "Evidence" }
        p { (describe_evidence(proof)) }
        @if !proof.rows.is_empty() { (render_check_table(proof)) }
    }
}

fn render_check_table(proof: &ChangeProof) -> Markup {
    html! {
        table.stack {
            caption { "Checks before and after the change" }
            thead {
                tr {
                    th scope="col" { "Check" }
                    th scope="col" { "Before" }
                    th scope="col" { "After" }
                    th.number scope="col" { "Passed" }
                }
            }
            tbody {
                @for row in &proof.rows {
                    tr {
                        th scope="row" { code { (make_visible(&row.command)) } }
                        td data-name="Before" { (row.base.as_ref().map_or("not run", |outcome| outcome.as_str())) }
                        td data-name="After" { (row.head.as_str()) }
                        td.number data-name="Passed" { (row.passed) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{ChangedFileSize, FileRole};

    use super::*;
    use crate::sample_journal::{RUN, build_run_journal, push_fact};

    fn build_report(path: &str) -> ChangeReport {
        ChangeReport {
            tree: "0".repeat(40).parse().unwrap(),
            files: 1,
            product_lines: 3,
            test_lines: 0,
            modules: Vec::new(),
            test_files: Vec::new(),
            findings: Vec::new(),
            hunks: Vec::new(),
            changed: vec![ChangedFileSize {
                path: path.to_owned(),
                added: 2,
                removed: 1,
                role: FileRole::default(),
            }],
            support_files: Vec::new(),
            removed_test_files: Vec::new(),
            removed_tests: Vec::new(),
            code_lines: None,
            lost_hunks: Vec::new(),
            marked_files: Vec::new(),
            truncated: false,
        }
    }

    #[test]
    fn change_has_files_with_links_and_evidence() {
        let mut journal = build_run_journal();
        let report = Some(Box::new(build_report("shop/cart.py")));
        push_fact(&mut journal, Fact::ChangeInspected { report });
        let page = render_changes(RUN, &journal, &(0..journal.len()), Timestamp::default()).into_string();
        for part in [
            "<strong>Count every item</strong>",
            "<p>The loop <strong>skipped</strong> the last item.</p>",
            "<a href=\"/runs/jira%3AENG-1%403/diff#file-shop%2Fcart.py\">shop/cart.py</a> <span class=\"good\">+2</span> <span \
             class=\"removed\">−1</span>",
            "<h2>Evidence</h2><p>The existing checks pass; no test shows the change itself.</p>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn plan_and_answer_are_results() {
        let plan = ChangePlan {
            goal: "Count every item".to_owned(),
            approach: "Fix the *loop*".to_owned(),
            ..ChangePlan::default()
        };
        let mut journal = Vec::new();
        let plan = Some(Box::new(plan));
        let output = PhaseOutput::Plan { plan };
        push_fact(&mut journal, Fact::PhaseFinished { output });
        let answer = domain::CitedAnswer {
            answer: "In **cart.py**.".to_owned(),
            ..domain::CitedAnswer::default()
        };
        let answer = Some(Box::new(answer));
        let output = PhaseOutput::Answer { answer };
        push_fact(&mut journal, Fact::PhaseFinished { output });
        let page = render_changes(RUN, &journal, &(0..journal.len()), Timestamp::default()).into_string();
        assert!(page.contains("<summary>Count every item</summary>"), "{page}");
        assert!(page.contains("<p>Fix the <em>loop</em></p>"), "{page}");
        assert!(page.contains("<p>In <strong>cart.py</strong>.</p>"), "{page}");
    }

    #[test]
    fn run_without_change_has_no_files() {
        let page =
            render_changes(RUN, &build_run_journal()[..5], &(0..5), Timestamp::default()).into_string();
        assert!(!page.contains("difference") && !page.contains("<h2>"), "{page}");
    }
}
