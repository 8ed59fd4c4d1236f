//! Atlassian Document Format: validation as Jira does it, and plain text.

use serde_json::{Value, json};

const BLOCKS: [&str; 17] = [
    "paragraph",
    "heading",
    "bulletList",
    "orderedList",
    "codeBlock",
    "blockquote",
    "rule",
    "panel",
    "table",
    "mediaSingle",
    "mediaGroup",
    "expand",
    "taskList",
    "decisionList",
    "blockCard",
    "nestedExpand",
    "embedCard",
];
const INLINE: [&str; 9] = [
    "text",
    "hardBreak",
    "mention",
    "emoji",
    "inlineCard",
    "date",
    "status",
    "media",
    "placeholder",
];
const INNER: [&str; 7] = [
    "listItem",
    "tableRow",
    "tableCell",
    "tableHeader",
    "taskItem",
    "decisionItem",
    "caption",
];
const MARKS: [&str; 9] = [
    "strong",
    "em",
    "code",
    "link",
    "strike",
    "underline",
    "subsup",
    "textColor",
    "backgroundColor",
];

/// Validates a document. It accepts and refuses what Jira does for the nodes that we write.
pub(super) fn validate_document(document: &Value) -> Result<(), String> {
    if document["type"] != "doc" || document["version"] != 1 {
        return Err("a document needs \"type\": \"doc\" and \"version\": 1".to_owned());
    }
    let content = document["content"]
        .as_array()
        .ok_or("a document needs \"content\"")?;
    for node in content {
        let kind = read_node_type(node);
        if !BLOCKS.contains(&kind) {
            return Err(format!("{kind:?} cannot stand at the top of a document"));
        }
        check_node(node)?;
    }
    Ok(())
}

fn check_node(node: &Value) -> Result<(), String> {
    let kind = read_node_type(node);
    let known = BLOCKS.contains(&kind) || INLINE.contains(&kind) || INNER.contains(&kind);
    if !known {
        return Err(format!("{kind:?} is not a known node"));
    }
    match kind {
        "text" => check_text(node)?,
        "heading"
            if !node["attrs"]["level"]
                .as_u64()
                .is_some_and(|level| (1..=6).contains(&level)) =>
        {
            return Err("a heading needs \"attrs.level\" from 1 to 6".to_owned());
        }
        "panel" if !node["attrs"]["panelType"].is_string() => {
            return Err("a panel needs \"panelType\"".to_owned());
        }
        _ => {}
    }
    let children = node["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Jira refuses these nodes without content.
    if matches!(
        kind,
        "bulletList" | "orderedList" | "listItem" | "blockquote" | "panel"
    ) && children.is_empty()
    {
        return Err(format!("{kind} must not be empty"));
    }
    children.iter().try_for_each(|child| {
        check_place(kind, self::read_node_type(child))?;
        check_node(child)
    })
}

fn check_place(parent: &str, child: &str) -> Result<(), String> {
    let fits = match parent {
        "paragraph" | "heading" => INLINE.contains(&child),
        "codeBlock" => child == "text",
        "bulletList" | "orderedList" => child == "listItem",
        "listItem" => {
            matches!(
                child,
                "paragraph" | "bulletList" | "orderedList" | "codeBlock" | "mediaSingle" | "taskList"
            )
        }
        "blockquote" => matches!(
            child,
            "paragraph" | "bulletList" | "orderedList" | "codeBlock" | "mediaSingle"
        ),
        "table" => child == "tableRow",
        "tableRow" => matches!(child, "tableCell" | "tableHeader"),
        _ => true,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{child:?} cannot stand in {parent:?}"))
    }
}

fn check_text(node: &Value) -> Result<(), String> {
    if node["text"].as_str().is_none_or(str::is_empty) {
        return Err("a text node needs a text that is not empty".to_owned());
    }
    let marks = node["marks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = marks.iter().map(read_node_type).collect();
    if let Some(unknown) = names.iter().find(|name| !MARKS.contains(name)) {
        return Err(format!("{unknown:?} is not a known mark"));
    }
    // In ADF the mark `code` excludes all others except links.
    if names.contains(&"code") && names.iter().any(|name| !matches!(*name, "code" | "link")) {
        return Err("the mark \"code\" goes with \"link\" only".to_owned());
    }
    let bad_link = marks
        .iter()
        .any(|mark| read_node_type(mark) == "link" && !mark["attrs"]["href"].is_string());
    if bad_link {
        Err("a link needs \"attrs.href\"".to_owned())
    } else {
        Ok(())
    }
}

fn read_node_type(node: &Value) -> &str {
    node["type"].as_str().unwrap_or_default()
}

/// Returns a document's text with each block on a separate line. Wiki markup is trimmed alone.
pub(super) fn render_plain_text(document: &Value) -> String {
    // On a Data Center a text is wiki markup in a string.
    if let Value::String(wiki) = document {
        return wiki.trim().to_owned();
    }
    let mut text = String::new();
    write_plain(document, &mut text);
    text.trim().to_owned()
}

/// Returns a document's text with blank lines between blocks, as changelogs contain it. Wiki markup stays
/// unchanged.
pub(super) fn render_changelog_text(document: &Value) -> String {
    match document {
        Value::String(wiki) => wiki.clone(),
        document => render_plain_text(document).replace('\n', "\n\n"),
    }
}

fn write_plain(node: &Value, text: &mut String) {
    match read_node_type(node) {
        "text" => text.push_str(node["text"].as_str().unwrap_or_default()),
        "hardBreak" => text.push('\n'),
        "mention" | "emoji" | "status" => text.push_str(node["attrs"]["text"].as_str().unwrap_or_default()),
        "inlineCard" | "blockCard" => text.push_str(node["attrs"]["url"].as_str().unwrap_or_default()),
        _ => {}
    }
    for child in node["content"].as_array().into_iter().flatten() {
        write_plain(child, text);
    }
    if matches!(
        read_node_type(node),
        "paragraph" | "heading" | "codeBlock" | "rule"
    ) {
        text.push('\n');
    }
}

/// Builds a document from paragraphs that blank lines separate.
pub(super) fn from_plain(text: &str) -> Value {
    let paragraphs: Vec<Value> = text
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| json!({"type": "paragraph", "content": [{"type": "text", "text": paragraph}]}))
        .collect();
    json!({"type": "doc", "version": 1, "content": paragraphs})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_survives_document_round_trip() {
        let document = from_plain("one\n\ntwo");
        validate_document(&document).unwrap();
        assert_eq!(render_plain_text(&document), "one\ntwo");
    }

    #[test]
    fn documents_that_jira_refuses_are_refused() {
        let refused = [
            json!("text"),
            json!({"type": "doc", "version": 2, "content": []}),
            json!({"type": "doc", "version": 1, "content": [{"type": "text", "text": "x"}]}),
            json!({"type": "doc", "version": 1, "content": [{"type": "marquee"}]}),
            json!({"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [{"type": "text", "text": ""}]}]}),
            json!({"type": "doc", "version": 1, "content": [{"type": "bulletList", "content": [{"type": "paragraph"}]}]}),
        ];
        for document in refused {
            assert!(validate_document(&document).is_err(), "{document}");
        }
    }
}
