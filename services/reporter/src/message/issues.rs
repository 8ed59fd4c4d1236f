//! Texts of issues that the reporter opens.

use domain::{PlannedIssue, RunId, TicketKey, text::truncate_text};

use super::{
    sign_text,
    words::{format_code, is_web_link, one_line, sanitize_line},
};
use crate::{receipt::MadeIssue, sanitize};

const TITLE_CHARS: usize = 200;
const TEXT_CHARS: usize = 8_000;
const MOST_ITEMS: usize = 50;

/// Renders the title of an issue of a plan.
pub(crate) fn issue_title(issue: &PlannedIssue) -> String {
    sanitize::sanitize_title(&truncate_text(&one_line(&issue.title), TITLE_CHARS))
}

/// Renders the text of an issue of a plan, with the ticket of the plan.
pub(crate) fn issue_text(issue: &PlannedIssue, ticket: &TicketKey, run: Option<&RunId>) -> String {
    let items = issue.checklist.iter().take(MOST_ITEMS);
    let items: Vec<String> = items
        .map(|item| format!("- [ ] {}", sanitize_line(item)))
        .collect();
    let planned = format!("Planned in {}.", format_ticket(ticket));
    let mut paragraphs = vec![
        sanitize::sanitize_part(&truncate_text(&issue.text, TEXT_CHARS)),
        items.join("\n"),
        planned,
    ];
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    sign_text(&paragraphs.join("\n\n"), run)
}

/// Returns the ticket's name. GitHub turns the name of its own tickets into a link.
fn format_ticket(ticket: &TicketKey) -> String {
    match ticket {
        TicketKey::GitHub { .. } | TicketKey::Discussion { .. } => ticket.short(),
        TicketKey::Jira { .. } | TicketKey::Folder { .. } => format_code(&ticket.short()),
    }
}

/// Lists the opened issues; empty without any.
pub(crate) fn issues_opened<'a>(issues: impl Iterator<Item = &'a MadeIssue>) -> Vec<String> {
    list_issues("Journeyman opened:", issues)
}

/// Lists the sub-issues of a ticket that was split.
pub(crate) fn parts_opened<'a>(issues: impl Iterator<Item = &'a MadeIssue>) -> Vec<String> {
    list_issues(
        "This is too large for one pull request, so Journeyman opened an issue for each part of it. Close those that you do not \
         want:",
        issues,
    )
}

fn list_issues<'a>(heading: &str, issues: impl Iterator<Item = &'a MadeIssue>) -> Vec<String> {
    let lines = issues.map(|issue| {
        let title = sanitize_line(&issue.title);
        if is_web_link(&issue.url) {
            format!("- [#{}](<{}>) {title}", issue.number, issue.url)
        } else {
            format!("- {} {title}", format_code(&format!("#{}", issue.number)))
        }
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        Vec::new()
    } else {
        vec![heading.to_owned(), lines.join("\n")]
    }
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
