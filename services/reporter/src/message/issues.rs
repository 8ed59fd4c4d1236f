//! Texts of issues that the reporter opens.

use domain::{PlannedIssue, RunId, TicketKey, text::capped};

use super::{
    signed,
    words::{code, harmless, is_web_link, one_line},
};
use crate::{made::MadeIssue, sanitize};

const TITLE_CHARS: usize = 200;
const TEXT_CHARS: usize = 8_000;
const MOST_ITEMS: usize = 50;

/// Renders the title of an issue of a plan.
pub(crate) fn issue_title(issue: &PlannedIssue) -> String {
    sanitize::title(&capped(&one_line(&issue.title), TITLE_CHARS))
}

/// Renders the text of an issue of a plan, with the ticket of the plan.
pub(crate) fn issue_text(issue: &PlannedIssue, ticket: &TicketKey, run: Option<&RunId>) -> String {
    let items = issue.checklist.iter().take(MOST_ITEMS);
    let items: Vec<String> = items.map(|item| format!("- [ ] {}", harmless(item))).collect();
    let planned = format!("Planned in {}.", place(ticket));
    let mut paragraphs = vec![
        sanitize::markdown(&capped(&issue.text, TEXT_CHARS)),
        items.join("\n"),
        planned,
    ];
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    signed(&paragraphs.join("\n\n"), run)
}

/// Returns the ticket's name. GitHub turns the name of its own tickets into a link.
fn place(ticket: &TicketKey) -> String {
    match ticket {
        TicketKey::GitHub { .. } | TicketKey::Discussion { .. } => ticket.short(),
        TicketKey::Jira { .. } | TicketKey::Folder { .. } => code(&ticket.short()),
    }
}

/// Lists the opened issues; empty without any.
pub(crate) fn issues_opened(issues: &[MadeIssue]) -> Vec<String> {
    listed("I opened these issues:", issues)
}

/// Lists the sub-issues of a ticket that was split.
pub(crate) fn parts_opened(issues: &[MadeIssue]) -> Vec<String> {
    listed(
        "This is too large for one pull request, so I opened an issue for each part of it. Close those that are not meant:",
        issues,
    )
}

fn listed(heading: &str, issues: &[MadeIssue]) -> Vec<String> {
    if issues.is_empty() {
        return Vec::new();
    }
    let lines = issues.iter().map(|issue| {
        let title = harmless(&issue.title);
        match is_web_link(&issue.url) {
            true => format!("- [#{}](<{}>) {title}", issue.number, issue.url),
            false => format!("- {} {title}", code(&format!("#{}", issue.number))),
        }
    });
    vec![heading.to_owned(), lines.collect::<Vec<_>>().join("\n")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_issue_has_checklist_and_no_mentions() {
        let issue = PlannedIssue {
            title: "Round\n@ann's totals".to_owned(),
            text: "As @bob said, see #3.".to_owned(),
            checklist: vec!["Ask @eve".to_owned(), "Test".to_owned()],
        };
        let title = issue_title(&issue);
        assert!(!title.contains('\n') && !title.contains("@ann"), "{title}");
        let text = issue_text(&issue, &"github:acme/shop#7".parse().unwrap(), None);
        assert!(
            text.contains("- [ ] Ask") && text.contains("- [ ] Test"),
            "{text}"
        );
        assert!(text.contains("`@bob`") && text.contains("`#3`"), "{text}");
        assert!(text.ends_with("Planned in acme/shop#7."), "{text}");
    }
}
