//! Result of a run: its stages over time, its last reported change, and the evidence for the change.

use api::view::describe_evidence;
use domain::{ChangeProof, Fact, JournalEntry, PhaseOutput, Timestamp, WorkExit, WorkHandover};
use maud::{Markup, html};

use super::run_picture::render_picture;
use crate::{markdown::render_markdown, words::make_visible};

/// Renders the stages of the run until `now`, its last reported change, and its last evidence.
pub(super) fn render_changes(journal: &[JournalEntry], now: Timestamp) -> Markup {
    let mut handover = None;
    let mut proof = None;
    for entry in journal.iter().rev() {
        let Fact::PhaseFinished { output } = &entry.fact else {
            continue;
        };
        if let PhaseOutput::Work {
            exit: WorkExit::Finished(work) | WorkExit::CutShort { handover: work, .. },
        } = output
        {
            handover = handover.or(Some(work));
        } else if let PhaseOutput::Prove { proof: shown } = output {
            proof = proof.or(Some(shown));
        }
    }
    html! {
        (render_picture(journal, now))
        @if let Some(handover) = handover { (render_handover(handover)) }
        @if let Some(proof) = proof { (render_evidence(proof)) }
    }
}

fn render_handover(handover: &WorkHandover) -> Markup {
    html! {
        h2 { "Changes" }
        p { strong { (make_visible(&handover.title)) } }
        (render_markdown(&handover.summary))
        @if !handover.files.is_empty() {
            ul { @for file in &handover.files { li { code { (make_visible(&file.path)) } ": " (make_visible(&file.change)) } } }
        }
        @if !handover.not_done.is_empty() {
            p { "Not done:" }
            ul { @for what in &handover.not_done { li { (make_visible(what)) } } }
        }
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
