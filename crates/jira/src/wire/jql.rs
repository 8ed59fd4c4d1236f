//! Searches in Jira's query language.

use std::fmt::Write as _;

use domain::{TicketKey, Timestamp};
use time::{OffsetDateTime, macros::format_description};

/// Accounts read a date in JQL in their own time zone, at most this far behind UTC.
const ZONE_MARGIN_MS: i64 = 12 * 3600 * 1000;

/// The search for issues that are ready. Its date is too early by up to a day; hits are compared exactly afterwards.
pub(crate) fn ready_jql(project: &str, status: &str, updated_since: Option<Timestamp>) -> String {
    let mut jql = format!("project = {} AND status = {}", quoted(project), quoted(status));
    if let Some(minute) = updated_since.and_then(|since| jql_minute(since.plus_ms(-ZONE_MARGIN_MS))) {
        let _ = write!(jql, " AND updated >= {}", quoted(&minute));
    }
    jql.push_str(" ORDER BY updated ASC");
    jql
}

/// The search for what changed lately. A relative date means the same in every account's time zone.
pub(crate) fn changed_jql(project: &str, minutes: u64) -> String {
    let period = quoted(&format!("-{minutes}m"));
    format!(
        "project = {} AND updated >= {period} ORDER BY updated ASC",
        quoted(project)
    )
}

/// The search for unfinished issues of a project whose title has one of these words, the latest change first. The words are
/// letters and digits alone, so none of them is an operator of the text search.
pub(crate) fn similar_jql(project: &str, words: &[String]) -> String {
    let titles: Vec<String> = words
        .iter()
        .map(|word| format!("summary ~ {}", quoted(word)))
        .collect();
    format!(
        "project = {} AND statusCategory != Done AND ({}) ORDER BY updated DESC",
        quoted(project),
        titles.join(" OR ")
    )
}

/// The search for the issues of a project in a status, or for the unfinished ones, the latest change first.
pub(crate) fn list_jql(project: &str, status: Option<&str>) -> String {
    let which = match status {
        Some(status) => format!("status = {}", quoted(status)),
        None => "statusCategory != Done".to_owned(),
    };
    format!("project = {} AND {which} ORDER BY updated DESC", quoted(project))
}

/// The search for unfinished issues of a project that a condition holds for, the latest change first.
pub(crate) fn matching_jql(project: &str, condition: &str) -> String {
    format!(
        "project = {} AND statusCategory != Done AND ({condition}) ORDER BY updated DESC",
        quoted(project)
    )
}

/// The search for one issue that finds it when a condition holds for it.
pub(crate) fn match_jql(key: &TicketKey, condition: &str) -> String {
    format!("key = {} AND ({condition})", quoted(&key.short()))
}

/// The search for these issues.
pub(crate) fn these_jql(keys: &[&TicketKey]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| quoted(&key.short())).collect();
    format!("key in ({})", keys.join(", "))
}

fn jql_minute(at: Timestamp) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(at.unix_s()).ok()?;
    at.format(format_description!("[year]-[month]-[day] [hour]:[minute]"))
        .ok()
}

fn quoted(text: &str) -> String {
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
