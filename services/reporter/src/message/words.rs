//! Formatting of names, links and text of others, so that they cause no notification and no reference.

use domain::{PullRequestRef, Timestamp, text::truncate_text};

pub(super) use domain::text::{format_count, format_seconds, format_times, group_digits, one_line};

use crate::{bot_orders, sanitize};

/// Formats text as code. Orders that other bots obey in code, too, are broken.
pub(super) fn format_code(text: &str) -> String {
    domain::text::format_code(&bot_orders::break_orders(text))
}

pub(super) fn link_pull_request_name(pull_request: &PullRequestRef) -> String {
    let name = format!("pull request {}#{}", pull_request.repository, pull_request.number);
    if is_web_link(&pull_request.url) {
        format!("[{name}](<{}>)", pull_request.url)
    } else {
        name
    }
}

/// Formats a name as code. It neither notifies its owner nor acts as Markdown.
pub(super) fn name_person(name: &str) -> String {
    if name.trim().is_empty() {
        "Someone".to_owned()
    } else {
        format_code(name)
    }
}

/// Formats an instant as `2026-11-21 10:00 UTC`.
pub(super) fn format_minute(at: Timestamp) -> String {
    let instant = at.to_string();
    let minute = instant.get(..16).unwrap_or(&instant);
    format!("{} UTC", minute.replace('T', " "))
}

/// Formats a login so that GitHub notifies its owner. A name that is not a valid login becomes code.
pub(super) fn mention_login(login: &str) -> String {
    let is_login = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !login.is_empty() && login.len() <= 39 && login.chars().all(is_login) {
        format!("@{login}")
    } else {
        name_person(login)
    }
}

/// Formats several logins like [`mention_login`].
pub(super) fn mention_logins(logins: &[String]) -> String {
    let names: Vec<String> = logins.iter().map(|login| mention_login(login)).collect();
    names.join(", ")
}

pub(super) fn sanitize_line(text: &str) -> String {
    sanitize::sanitize_plain(&truncate_text(&one_line(text), 300))
}

pub(super) fn quote_markdown(markdown: &str) -> String {
    let text = sanitize::sanitize_markdown(&truncate_text(markdown, 4_000));
    text.trim()
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn fence_text(language: &str, text: &str) -> String {
    fenced_lines(language, text.trim_end())
}

/// Builds a fenced block that keeps trailing white space, which is part of a suggestion.
pub(super) fn fenced_lines(language: &str, text: &str) -> String {
    let text = sanitize::code_lines(text);
    // The fence is longer than every run of backticks in the text, so the text cannot end the block.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

pub(super) fn is_web_link(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://"))
        && !url
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"'))
}
