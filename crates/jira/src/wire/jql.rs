//! JQL of the searches.

use domain::TicketKey;

/// Search for issues in a ready status.
pub(crate) fn ready_jql(project: &str, status: &str) -> String {
    format!(
        "project = {} AND status = {} ORDER BY updated ASC",
        quote_text(project),
        quote_text(status)
    )
}

/// Search for recent changes. A relative date is independent of the account's time zone.
pub(crate) fn changed_jql(project: &str, minutes: u64) -> String {
    let period = quote_text(&format!("-{minutes}m"));
    format!(
        "project = {} AND updated >= {period} ORDER BY updated ASC",
        quote_text(project)
    )
}

/// Search for unfinished issues whose title has one of these words, latest change first. The words are
/// letters and digits only, so that none is an operator of the text search.
pub(crate) fn similar_jql(project: &str, words: &[String]) -> String {
    let titles: Vec<String> = words
        .iter()
        .map(|word| format!("summary ~ {}", quote_text(word)))
        .collect();
    format!(
        "project = {} AND statusCategory != Done AND ({}) ORDER BY updated DESC",
        quote_text(project),
        titles.join(" OR ")
    )
}

/// Search for the issues of a project in a status, or for the unfinished ones, latest change first.
pub(crate) fn list_jql(project: &str, status: Option<&str>) -> String {
    let which = match status {
        Some(status) => format!("status = {}", quote_text(status)),
        None => "statusCategory != Done".to_owned(),
    };
    format!(
        "project = {} AND {which} ORDER BY updated DESC",
        quote_text(project)
    )
}

/// Search for the issues of a project that changed within the last days, latest change first.
pub(crate) fn recent_jql(project: &str, days: u32) -> String {
    let period = quote_text(&format!("-{days}d"));
    format!(
        "project = {} AND updated >= {period} ORDER BY updated DESC",
        quote_text(project)
    )
}

/// Search for unfinished issues of a project that match a condition, latest change first.
pub(crate) fn matching_jql(project: &str, condition: &str) -> String {
    format!(
        // The parentheses keep an OR in the condition within the project.
        "project = {} AND statusCategory != Done AND ({condition}) ORDER BY updated DESC",
        quote_text(project)
    )
}

/// Search that finds one issue if it matches a condition.
pub(crate) fn match_jql(key: &TicketKey, condition: &str) -> String {
    // The parentheses keep an OR in the condition within the issue.
    format!("key = {} AND ({condition})", quote_text(&key.short()))
}

/// Search for issues by their keys.
pub(crate) fn these_jql(keys: &[&TicketKey]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| quote_text(&key.short())).collect();
    format!("key in ({})", keys.join(", "))
}

fn quote_text(text: &str) -> String {
    let escaped = text.chars().fold(String::new(), |mut escaped, c| {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
        escaped
    });
    format!("\"{escaped}\"")
}
