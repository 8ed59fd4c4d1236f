//! Body of a pull request: facts in a fixed form, and the model's text in marked places.

use domain::{ChangeDescription, CheckRow, SetupHint, StopReason, WorkHandover};

use super::{
    change, effort,
    evidence::{
        LIST, describe_evidence_level, describe_outcome, format_place, render_evidence, render_list,
        render_section,
    },
    words::{format_code, one_line, quote_markdown, sanitize_line},
};
use crate::sanitize;

// Length of the filled template, in characters. The evidence follows it, also in the shorter text for a decision.
const TEMPLATE_CHARS: usize = 12_000;
const WENT_BACK: &str =
    "The work continued after this state and ended worse, so the state that was proven best is delivered.";
const UNREVIEWED: &str =
    "**Not reviewed by a model.** The review did not come to its end: a budget or its turns were used up.";
const TEMPLATE_AUTHOR: &str = "The text above is by the author of the change. The evidence below is from checks that \
                               Journeyman ran.";

/// Text of a pull request without its footer, in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DescriptionText {
    /// Summary, evidence, and everything that needs a person.
    pub(super) visible: String,
    /// Level of evidence, files and effort; empty without them.
    pub(super) details: String,
}

impl DescriptionText {
    /// Returns both parts as one text, for readers without foldable sections.
    pub(super) fn joined(&self) -> String {
        if self.details.is_empty() {
            self.visible.clone()
        } else {
            format!("{}\n\n### Details\n\n{}", self.visible, self.details)
        }
    }
}

/// Builds the body. People who decide before the pull request exists read the same text.
///
/// A repository's template takes the place of the author's own form, which then is among the details. Evidence is
/// always visible, because it is not the author's.
pub(super) fn render_body(description: &ChangeDescription) -> DescriptionText {
    let handover = &description.handover;
    let has_template = !description.template.is_empty();
    let mut visible: Vec<String> = description.cut_short.iter().map(render_cut_short).collect();
    let mut details: Vec<String> = render_ticket(description).into_iter().collect();
    details.extend(description.level.map(describe_evidence_level));
    if has_template {
        let filled = sanitize::sanitize_and_truncate(&description.template, TEMPLATE_CHARS);
        visible.extend([filled.trim().to_owned(), TEMPLATE_AUTHOR.to_owned()]);
        details.extend(render_summary(handover));
    } else {
        visible.extend(render_summary(handover));
    }
    visible.extend(description.change.iter().flat_map(change::render_warnings));
    visible.push(render_evidence(description));
    let criteria = render_criteria(handover);
    let decisions = handover.decisions.iter().map(|line| one_line(line));
    let decisions = render_section("Decisions", decisions.collect());
    let uncovered = render_section("Not covered", list_uncovered(description));
    if has_template {
        visible.extend(uncovered);
        details.extend(criteria.into_iter().chain(decisions));
    } else {
        visible.extend(criteria.into_iter().chain(uncovered).chain(decisions));
    }
    visible.extend(list_scope(description));
    let open = description.objections.iter().map(|line| one_line(line));
    visible.extend(render_list(
        "Open remarks of the review by a model",
        open.collect(),
    ));
    visible.extend(description.went_back.then(|| WENT_BACK.to_owned()));
    visible.extend(description.unreviewed.then(|| UNREVIEWED.to_owned()));
    details.extend(change::list_files(description));
    details.extend(description.change.iter().map(change::render_size));
    details.extend(description.effort.iter().map(effort::render_effort));
    DescriptionText {
        visible: visible.join("\n\n"),
        details: details.join("\n\n"),
    }
}

/// Renders the ticket's title, for readers without access to the tracker.
fn render_ticket(description: &ChangeDescription) -> Option<String> {
    let title = one_line(&description.ticket);
    (!title.is_empty()).then(|| format!("Ticket: {}", sanitize_line(&title)))
}

/// Renders the warning that the work ended early.
pub(super) fn render_cut_short(reason: &StopReason) -> String {
    const LEAD: &str = "**This change is not complete.**";
    if let StopReason::Unfinished { summary, .. } = reason
        && !summary.trim().is_empty()
    {
        let last = quote_markdown(summary);
        return format!("{LEAD} The model stopped without handing it over. Its last message:\n\n{last}");
    }
    format!("{LEAD} The work ended early: {}.", reason.words())
}

/// Renders the author's summary, and the root cause of a bug. Neither can hide the text after it.
pub(super) fn render_summary(handover: &WorkHandover) -> Vec<String> {
    let clean = |text: &str| sanitize::sanitize_part(text).trim().to_owned();
    let summary = clean(&handover.summary);
    let cause = sanitize::sanitize_markdown(handover.root_cause.as_deref().unwrap_or_default());
    let cause = Some(cause.trim()).filter(|cause| !cause.is_empty());
    // Behind the lead, the first line of the text opens no block, so the whole paragraph is checked.
    let cause = cause.map(|cause| sanitize::close_code_block(format!("**Root cause.** {cause}")));
    let summary = (!summary.is_empty()).then_some(summary);
    summary.into_iter().chain(cause).collect()
}

/// Lists what no check shows: places, checks without a result, files outside of the change, and requests that are not
/// done.
fn list_uncovered(description: &ChangeDescription) -> Vec<String> {
    let unnoticed = description.unnoticed.iter().map(|hunk| {
        format!(
            "{}: no test fails without it",
            format_place(&hunk.path, hunk.line)
        )
    });
    let contracts = description.untested_contracts.iter().map(|path| {
        format!(
            "{}: other programs rely on it, and no test is new or changed",
            format_code(path)
        )
    });
    let not_run = description.checks.iter().filter_map(describe_missing_result);
    let skipped = description.skipped_checks.iter().map(|command| {
        format!(
            "{} did not run: the rules name more checks than a proof runs",
            format_code(command)
        )
    });
    let ignored = description.ignored.iter().map(|path| {
        format!(
            "{} is not in the change: an ignore rule of the repository names it",
            format_code(path)
        )
    });
    let not_done = description.handover.not_done.iter();
    let not_done = not_done.map(|line| format!("Not done: {}", one_line(line)));
    not_done
        .chain(ignored)
        .chain(unnoticed)
        .chain(contracts)
        .chain(not_run)
        .chain(skipped)
        .collect()
}

/// Describes a check without a result because a requirement is missing, which is not a fault of the change.
fn describe_missing_result(row: &CheckRow) -> Option<String> {
    let why = row.setup_hint.as_ref().map(SetupHint::sentence);
    let why = why.or_else(|| (!row.reason.is_empty()).then(|| row.reason.clone()))?;
    Some(format!(
        "{} {}: {}",
        format_code(&row.command),
        describe_outcome(row.head),
        one_line(&why)
    ))
}

/// Lists the parts of the change that exceed the modules of its kind of ticket.
fn list_scope(description: &ChangeDescription) -> Vec<String> {
    let widened = description.widened.iter();
    let widened = widened.map(|wish| format!("{}: {}", format_code(&wish.module), one_line(&wish.reason)));
    let outside = description.outside.iter();
    let outside = outside.map(|file| {
        format!(
            "{} (module {})",
            format_code(&file.path),
            format_code(&file.module)
        )
    });
    let parts = [
        render_list(
            "Modules beyond those of this kind of ticket, as the author says",
            widened.collect(),
        ),
        render_list(
            "Files that this kind of ticket does not change (needs a person's approval)",
            outside.collect(),
        ),
    ];
    parts.into_iter().flatten().collect()
}

/// Builds a table of the acceptance criteria. The heading marks their evidence as the model's claim.
fn render_criteria(handover: &WorkHandover) -> Option<String> {
    // A separator in the text would end the cell.
    let cell = |text: &str| one_line(text).replace('|', "\\|");
    let rows: Vec<String> = handover
        .criteria
        .iter()
        .take(LIST)
        .enumerate()
        .map(|(number, row)| {
            format!(
                "| {} | {} | {} |",
                number + 1,
                cell(&row.quote),
                cell(&row.shown_by)
            )
        })
        .collect();
    (!rows.is_empty()).then(|| {
        format!(
            "### Acceptance criteria\n\n| # | the ticket asks | shown by, as the author says |\n|---|---|---|\n{}",
            rows.join("\n")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_code_block_hides_no_evidence() {
        for cause in ["```\nx", "x\n```", "x\n```\n    ```"] {
            let handover = WorkHandover {
                root_cause: Some(cause.to_owned()),
                ..WorkHandover::default()
            };
            let body = render_body(&ChangeDescription {
                handover,
                ..ChangeDescription::default()
            });
            let (before, _) = body.visible.split_once("### Evidence").unwrap();
            assert_eq!(sanitize::close_code_block(before.to_owned()), before);
        }
    }

    #[test]
    fn long_template_leaves_room_for_evidence() {
        let description = ChangeDescription {
            template: "## What?\n\n".to_owned() + &"cc @ann and #1\n".repeat(4_000),
            ..ChangeDescription::default()
        };
        let text = render_body(&description).visible;
        let at = text.find("### Evidence").unwrap();
        assert!((TEMPLATE_CHARS..14_000).contains(&at), "{at}");
    }
}
