//! Text for nodes of ADF whose content is not text: media, cards, mentions, macros and unknown nodes.

use domain::Timestamp;
use serde_json::Value;

use crate::attachment_text::{AttachmentPlace, is_file_name, render_attachment, render_remote_image};

// Limit of a name from the document, in characters.
const MAX_NAME: usize = 200;
// Nodes that only group others, so that an empty one has no text.
const CONTAINERS: &[&str] = &[
    "",
    "doc",
    "paragraph",
    "listItem",
    "taskItem",
    "blockTaskItem",
    "decisionItem",
    "taskList",
    "decisionList",
    "bulletList",
    "orderedList",
    "layoutSection",
    "layoutColumn",
    "caption",
    "mediaSingle",
    "mediaGroup",
    "tableRow",
    "tableCell",
    "tableHeader",
];

/// First of these attributes that has a text or a number.
fn find_attribute(attrs: &Value, names: &[&str]) -> Option<String> {
    let mut values = names.iter().filter_map(|name| match &attrs[*name] {
        Value::String(text) => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let found = values.find(|text| !text.is_empty())?;
    Some(found.chars().take(MAX_NAME).collect())
}

/// Renders an attachment or a remote image. `place` distinguishes an image from a file when the node does not.
pub(super) fn render_media(attrs: &Value, place: AttachmentPlace) -> String {
    let text = |name: &str| attrs[name].as_str().unwrap_or_default();
    let alt = text("alt");
    if let Some(image) = render_remote_image(text("url"), alt).filter(|_| text("type") == "external") {
        return image;
    }
    let place = match text("type") {
        "image" => AttachmentPlace::Shown,
        _ => place,
    };
    match (text("__fileName"), is_file_name(alt)) {
        ("", true) => render_attachment(alt, "", place),
        ("", false) => render_attachment("", alt, place),
        (name, true) if name == alt => render_attachment(name, "", place),
        (name, _) => render_attachment(name, alt, place),
    }
}

/// Renders a mention with its sign, which some programs leave out. Jira omits the text for an account that the reader
/// cannot see.
pub(super) fn render_mention(attrs: &Value) -> String {
    match (find_attribute(attrs, &["text"]), find_attribute(attrs, &["id"])) {
        (Some(text), _) if text.starts_with('@') => text,
        (Some(name), _) => format!("@{name}"),
        (None, Some(id)) => format!("@(account {id})"),
        (None, None) => "@(unknown account)".to_owned(),
    }
}

/// Renders an emoji by its character, otherwise by its short name.
pub(super) fn render_emoji(attrs: &Value) -> String {
    find_attribute(attrs, &["text", "shortName", "id"]).unwrap_or_else(|| "(emoji)".to_owned())
}

/// Renders the label of a status.
pub(super) fn render_status(attrs: &Value) -> String {
    find_attribute(attrs, &["text"]).unwrap_or_else(|| "(status)".to_owned())
}

/// Renders a date: ADF stores Unix milliseconds as a text, some editors as a number.
pub(super) fn render_date(attrs: &Value) -> String {
    let Some(text) = find_attribute(attrs, &["timestamp"]) else {
        return "(date)".to_owned();
    };
    let Ok(ms) = text.parse() else { return text };
    let instant = Timestamp::from_unix_ms(ms).to_string();
    instant.split('T').next().unwrap_or_default().to_owned()
}

/// Renders a card: its address, otherwise the name that its data have.
pub(super) fn render_card(attrs: &Value) -> String {
    if let Some(url) = find_attribute(attrs, &["url"]) {
        return url;
    }
    let data = &attrs["data"];
    match (
        find_attribute(data, &["url", "@id"]),
        find_attribute(data, &["name", "title"]),
    ) {
        (Some(url), Some(name)) => format!("(link {name}: {url})"),
        (Some(text), None) => text,
        (None, Some(name)) => format!("(link {name})"),
        (None, None) if attrs["datasource"].is_object() => "(list of issues)".to_owned(),
        (None, None) => "(link)".to_owned(),
    }
}

/// Renders a macro by its key and what its parameters say about it.
pub(super) fn render_extension(attrs: &Value) -> String {
    let key = find_attribute(attrs, &["extensionKey", "extensionType"]);
    let metadata = &attrs["parameters"]["macroMetadata"];
    let title = find_attribute(attrs, &["text", "title"]).or_else(|| find_attribute(metadata, &["title"]));
    match (key, title) {
        (Some(key), Some(title)) if key != title => format!("(macro {key}: {title})"),
        (Some(name), _) | (None, Some(name)) => format!("(macro {name})"),
        (None, None) => "(macro)".to_owned(),
    }
}

/// Renders a node that is not known and has no text of its own; empty for one that only groups others.
pub(super) fn render_unknown(kind: &str, attrs: &Value) -> String {
    if CONTAINERS.contains(&kind) {
        return String::new();
    }
    let is_name = kind
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        && kind.len() <= MAX_NAME;
    let kind = if is_name { kind } else { "unknown content" };
    match find_attribute(attrs, &["text", "title", "name", "alt", "url"]) {
        Some(text) => format!("({kind}: {text})"),
        None => format!("({kind})"),
    }
}
