//! Markdown ⇄ ADF.

use serde_json::{Value, json};

use super::{from_markdown, to_markdown};

#[track_caller]
fn round_trips(markdown: &str) {
    assert_eq!(to_markdown(&from_markdown(markdown)), markdown);
}

#[test]
fn paragraphs_headings_and_rules_round_trip() {
    round_trips("# Title\n\nOne paragraph.\n\n### Third level\n\nAnother.\n\n---\n\nLast.");
}

#[test]
fn marks_round_trip() {
    round_trips("Plain **bold** *leaning* ~~gone~~ `code` and **bold *and leaning***.");
}

#[test]
fn links_round_trip_with_text_and_bare() {
    round_trips(
        "See [the **log**](https://ci.example/1) or <https://ci.example/2>, [odd](<https://a.example/x(1)>).",
    );
}

#[test]
fn nested_lists_round_trip() {
    round_trips("- one\n- two\n  - inner\n  - inner two\n    1. deep\n- three\n\n3. third\n4. fourth");
}

#[test]
fn code_blocks_keep_language_indentation_and_fences() {
    round_trips("```python\ndef f():\n    return \"**x**\"\n```\n\n````\n```\nfence\n```\n````");
}

#[test]
fn code_inside_an_item_round_trips() {
    round_trips("- run\n\n  ```sh\n  make\n\n  make test\n  ```\n- done");
}

#[test]
fn quotes_round_trip() {
    round_trips("> first\n>\n> second **bold**\n\nafter");
}

#[test]
fn a_hard_break_round_trips() {
    round_trips("one  \ntwo");
}

#[test]
fn backticks_in_inline_code_round_trip() {
    round_trips("a `` x`y `` b".replace(" x`y ", "x`y").as_str());
    round_trips("a `` `x `` b");
}

#[test]
fn an_empty_text_is_an_empty_document() {
    assert_eq!(
        from_markdown(""),
        json!({ "version": 1, "type": "doc", "content": [] })
    );
    assert_eq!(to_markdown(&from_markdown("")), "");
    assert_eq!(to_markdown(&Value::Null), "");
    assert_eq!(to_markdown(&json!("wiki text\n")), "wiki text");
}

#[test]
fn neighbouring_text_is_one_node() {
    let document = from_markdown("a [b c & d_e");
    assert_eq!(
        document["content"][0]["content"],
        json!([{ "type": "text", "text": "a [b c & d_e" }])
    );
}

#[test]
fn code_carries_no_other_mark_than_a_link() {
    let document = from_markdown("**bold `code`** [`x`](https://a.example)");
    let marks: Vec<&Value> = document["content"][0]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["marks"])
        .collect();
    assert_eq!(marks[1], &json!([{ "type": "code" }]));
    assert_eq!(
        marks[3],
        &json!([{ "type": "link", "attrs": { "href": "https://a.example" } }, { "type": "code" }])
    );
}

/// What Jira's schema allows in each block; a comment that breaks it is refused whole.
fn assert_legal(node: &Value) {
    let allowed: &[&str] = match node["type"].as_str().unwrap() {
        "doc" => &[
            "paragraph",
            "heading",
            "bulletList",
            "orderedList",
            "codeBlock",
            "blockquote",
            "rule",
        ],
        "listItem" => &["paragraph", "bulletList", "orderedList", "codeBlock"],
        "blockquote" => &["paragraph", "bulletList", "orderedList", "codeBlock"],
        "bulletList" | "orderedList" => &["listItem"],
        "paragraph" | "heading" => &["text", "hardBreak"],
        "codeBlock" => &["text"],
        _ => &[],
    };
    for child in node["content"].as_array().into_iter().flatten() {
        let kind = child["type"].as_str().unwrap();
        assert!(allowed.contains(&kind), "{kind} in {}", node["type"]);
        assert_ne!(child["text"], json!(""), "empty text in {}", node["type"]);
        assert_legal(child);
    }
}

#[test]
fn whatever_markdown_nests_stays_legal() {
    for markdown in [
        "- # heading in item\n- > quote in item\n  > - list in quote\n-\n- ---\n- <b>html</b>",
        "> # heading\n> > nested quote\n> ---\n> ```\n> ```",
        "<div>\nblock\n</div>\n\ntext <br> more",
        "![alt](https://a.example/i.png) ![](x) [](y) [a](<>)",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "1. one\n\n   two\n\n       indented code\n\n2.",
        "- [ ] open\n- [x] closed",
        "**unclosed *mess `",
        "[![badge](https://a.example/b.svg)](https://a.example)",
    ] {
        assert_legal(&from_markdown(markdown));
    }
}

#[test]
fn an_item_begins_with_a_paragraph() {
    let document = from_markdown("- ```\n  x\n  ```\n-");
    for item in document["content"][0]["content"].as_array().unwrap() {
        assert_eq!(item["content"][0]["type"], "paragraph");
    }
}

fn doc(content: &Value) -> Value {
    json!({ "version": 1, "type": "doc", "content": content })
}

#[test]
fn mentions_dates_cards_and_emoji_become_text() {
    let document = doc(&json!([{ "type": "paragraph", "content": [
        { "type": "mention", "attrs": { "id": "5b1", "text": "@Mia" } },
        { "type": "text", "text": " by " },
        { "type": "date", "attrs": { "timestamp": "1767225600000" } },
        { "type": "text", "text": " " },
        { "type": "inlineCard", "attrs": { "url": "https://a.example/1" } },
        { "type": "emoji", "attrs": { "shortName": ":ok:", "text": "👌" } },
        { "type": "status", "attrs": { "text": "BLOCKED" } }
    ]}]));
    assert_eq!(
        to_markdown(&document),
        "@Mia by 2026-01-01 https://a.example/1👌BLOCKED"
    );
}

#[test]
fn tables_panels_tasks_and_unknown_nodes_keep_their_text() {
    let text = |text: &str| json!({ "type": "paragraph", "content": [{ "type": "text", "text": text }] });
    let cell = |kind: &str, words: &str| json!({ "type": kind, "content": [text(words)] });
    let document = doc(&json!([
        { "type": "table", "content": [
            { "type": "tableRow", "content": [cell("tableHeader", "in"), cell("tableHeader", "out")] },
            { "type": "tableRow", "content": [cell("tableCell", "a|b"), cell("tableCell", "2")] }
        ]},
        { "type": "panel", "attrs": { "panelType": "warning" }, "content": [text("careful")] },
        { "type": "taskList", "content": [
            { "type": "taskItem", "attrs": { "state": "DONE" }, "content": [{ "type": "text", "text": "did" }] },
            { "type": "taskItem", "attrs": { "state": "TODO" }, "content": [{ "type": "text", "text": "do" }] }
        ]},
        { "type": "expand", "attrs": { "title": "More" }, "content": [text("hidden")] },
        { "type": "hologram", "content": [text("from the future")] }
    ]));
    assert_eq!(
        to_markdown(&document),
        "| in | out |\n| --- | --- |\n| a\\|b | 2 |\n\n> careful\n\n- [x] did\n- [ ] do\n\nMore\n\nhidden\n\nfrom the future"
    );
}

#[test]
fn spaces_at_the_edge_of_a_mark_go_outside() {
    let document = doc(&json!([{ "type": "paragraph", "content": [
        { "type": "text", "text": "very " },
        { "type": "text", "text": " bold ", "marks": [{ "type": "strong" }] },
        { "type": "text", "text": "claim" }
    ]}]));
    assert_eq!(to_markdown(&document), "very  **bold** claim");
}

#[test]
fn a_skip_phrase_is_readable_as_written() {
    let document = from_markdown("Please do not: [AGENT-SKIP]");
    assert_eq!(to_markdown(&document), "Please do not: [AGENT-SKIP]");
}
