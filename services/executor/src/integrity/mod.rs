//! Detects changes that weaken the checks of a change: removed or weaker tests, disabled checks, and product
//! code that depends on tests.
//!
//! Pure: computed from the texts of changed files before and after.

mod answers;
mod assertions;
mod compare;
mod definitions;
mod influence;
mod inline;
mod inventory;
mod lines;
mod manifests;
mod pairing;
mod paths;
mod patterns;
mod product;
mod request;
mod rules;
mod runners;
mod scope;
mod size;

use std::cmp::Reverse;

use domain::check::{Finding, Severity};

use crate::workspace::ChangedFile;

pub(crate) use influence::{code_lines, is_test_hunk, removed_test_files, removed_tests, support_files};
pub(crate) use paths::{Role, role};
pub(crate) use size::{lines_of, modules, size};

/// Returns all findings, the most severe first. `ticket` is the ticket's text.
pub(crate) fn findings(files: &[ChangedFile], ticket: &str) -> Vec<Finding> {
    let mut found = compare::findings(files);
    found.extend(answers::findings(files, ticket));
    found.extend(rules::findings(files));
    found.extend(product::findings(files));
    found.extend(runners::findings(files));
    found.extend(manifests::findings(files));
    found.extend(scope::findings(files));
    for finding in &mut found {
        // A finding that the ticket asks for no longer blocks; reviewers see it with the sentence of the
        // ticket.
        if let Some(sentence) = request::find_request(finding, ticket) {
            finding.ticket_words = sentence;
            finding.severity = Severity::Flag;
        }
    }
    found.sort_by(|a, b| {
        let key = |finding: &Finding| (Reverse(finding.severity), finding.path.clone(), finding.line);
        key(a).cmp(&key(b)).then_with(|| a.kind.cmp(&b.kind))
    });
    found.dedup_by(|a, b| (&a.path, a.line, &a.kind) == (&b.path, b.line, &b.kind));
    found
}

fn finding(path: &str, line: usize, kind: &str, severity: Severity, words: impl Into<String>) -> Finding {
    Finding {
        path: path.to_owned(),
        line: u32::try_from(line).unwrap_or(u32::MAX),
        kind: kind.to_owned(),
        severity,
        words: words.into(),
        ticket_words: String::new(),
    }
}

/// Returns a line as reviewers see it: trimmed, and truncated to 120 characters.
fn shown(line: &str) -> String {
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
