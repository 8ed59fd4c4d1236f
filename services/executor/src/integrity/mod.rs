//! Detects changes that weaken the checks of a change: removed or weaker tests, disabled checks, and product
//! code that depends on tests.
//!
//! Pure: computed from the texts of changed files before and after.

mod answers;
mod assertions;
mod code_text;
mod comparison;
mod equality;
mod influence;
mod inline;
mod inventory;
mod manifests;
mod pairing;
mod paths;
mod patterns;
mod product;
mod request;
mod rules;
mod runner_names;
mod runners;
mod scope;
mod size;

use std::cmp::Reverse;

use domain::check::{ChangeFinding, FindingSeverity};

use crate::workspace::ChangedFile;

pub(crate) use influence::{code_lines, is_test_hunk, removed_test_files, removed_tests, support_files};
pub(crate) use inline::{LinePart, divide_lines};
pub(crate) use paths::{FilePurpose, classify_path};
pub(crate) use size::{count_changed_lines, measure_change, touched_modules};

/// Returns all findings, the most severe first. `ticket` is the ticket's text.
pub(crate) fn find_weakened_checks(files: &[ChangedFile], ticket: &str) -> Vec<ChangeFinding> {
    let mut found = comparison::compare_tests(files);
    found.extend(answers::find_copied_answers(files, ticket));
    found.extend(rules::check_added_lines(files));
    found.extend(product::find_test_awareness(files));
    found.extend(runners::find_runner_tampering(files));
    found.extend(manifests::compare_manifests(files));
    found.extend(scope::find_outside_effects(files));
    for finding in &mut found {
        // A finding that the ticket asks for no longer blocks; reviewers see it with the sentence of the
        // ticket.
        if let Some(sentence) = request::find_request(finding, ticket) {
            finding.ticket_words = sentence;
            finding.severity = FindingSeverity::Flag;
        }
    }
    found.sort_by(|a, b| {
        let key = |finding: &ChangeFinding| (Reverse(finding.severity), finding.path.clone(), finding.line);
        key(a).cmp(&key(b)).then_with(|| a.kind.cmp(&b.kind))
    });
    found.dedup_by(|a, b| (&a.path, a.line, &a.kind) == (&b.path, b.line, &b.kind));
    found
}

fn new_finding(
    path: &str,
    line: usize,
    kind: &str,
    severity: FindingSeverity,
    words: impl Into<String>,
) -> ChangeFinding {
    ChangeFinding {
        path: path.to_owned(),
        line: u32::try_from(line).unwrap_or(u32::MAX),
        kind: kind.to_owned(),
        severity,
        words: words.into(),
        ticket_words: String::new(),
    }
}

/// Kind of a finding in a line, with its severity.
type JudgedKind = (&'static str, FindingSeverity);

/// Returns the most severe finding in a line; of equally severe ones, the first.
fn take_worst(found: impl IntoIterator<Item = JudgedKind>) -> Option<JudgedKind> {
    found
        .into_iter()
        .reduce(|worst, next| if next.1 > worst.1 { next } else { worst })
}

/// Returns a line as reviewers see it: trimmed, and truncated to 120 characters.
fn truncate_line(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod tests;
