//! Round trips and fuzz tests of the conversions between Markdown and ADF.

use proptest::{collection::vec, prelude::*, sample::select};
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
fn tables_round_trip() {
    round_trips("| check | before |\n| --- | --- |\n| `make` | **fails** |\n| a \\| b |  |");
    let document = from_markdown("| a |\n|---|\n|  |");
    let empty = &document["content"][0]["content"][1]["content"][0];
    assert_eq!(
        empty["content"][0]["type"], "paragraph",
        "a cell without a block is refused"
    );
}

#[test]
fn table_in_list_becomes_paragraphs() {
    let document = from_markdown("- one\n\n  | a | b |\n  |---|---|\n  | c | **d** |");
    assert_legal(&document);
    assert_eq!(to_markdown(&document), "- one\n\n  a | b\n\n  c | **d**");
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
fn inline_code_keeps_only_link_mark() {
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

/// Checks the children that Jira's schema allows in each block; Jira refuses a whole comment for one
/// violation.
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
            "table",
        ],
        "table" => &["tableRow"],
        "tableRow" => &["tableHeader", "tableCell"],
        "tableHeader" | "tableCell" => &["paragraph"],
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

fn build_document(content: &Value) -> Value {
    json!({ "version": 1, "type": "doc", "content": content })
}

#[test]
fn mentions_dates_cards_and_emoji_become_text() {
    let document = build_document(&json!([{ "type": "paragraph", "content": [
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
fn structured_and_unknown_nodes_keep_text() {
    let text = |text: &str| json!({ "type": "paragraph", "content": [{ "type": "text", "text": text }] });
    let cell = |kind: &str, words: &str| json!({ "type": kind, "content": [text(words)] });
    let document = build_document(&json!([
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
fn node_without_text_becomes_named_placeholder() {
    for (node, text) in [
        (
            json!({ "type": "mention", "attrs": { "id": "557058:ada" } }),
            "@(account 557058:ada)",
        ),
        (json!({ "type": "mention" }), "@(unknown account)"),
        (
            json!({ "type": "mention", "attrs": { "id": "557058:ada", "text": "Ada" } }),
            "@Ada",
        ),
        (
            json!({ "type": "emoji", "attrs": { "shortName": ":grinning:" } }),
            ":grinning:",
        ),
        (json!({ "type": "emoji" }), "(emoji)"),
        (
            json!({ "type": "date", "attrs": { "timestamp": 1_767_225_600_000_i64 } }),
            "2026-01-01",
        ),
        (json!({ "type": "date", "attrs": {} }), "(date)"),
        (json!({ "type": "status", "attrs": { "text": "" } }), "(status)"),
        (
            json!({ "type": "inlineCard", "attrs": { "data": { "url": "https://a.example/1", "name": "Plan" } } }),
            "(link Plan: https://a.example/1)",
        ),
        (
            json!({ "type": "inlineCard", "attrs": { "data": { "name": "Plan" } } }),
            "(link Plan)",
        ),
        (json!({ "type": "inlineCard", "attrs": {} }), "(link)"),
        (
            json!({ "type": "blockCard", "attrs": { "datasource": { "id": "x" } } }),
            "(list of issues)",
        ),
        (
            json!({ "type": "placeholder", "attrs": { "text": "Steps here" } }),
            "(placeholder: Steps here)",
        ),
        (
            json!({ "type": "extension", "attrs": { "extensionKey": "jira", "parameters": { "macroMetadata": { "title": "Open bugs" } } } }),
            "(macro jira: Open bugs)",
        ),
        (
            json!({ "type": "inlineExtension", "attrs": { "extensionKey": "toc" } }),
            "(macro toc)",
        ),
        (json!({ "type": "hologram" }), "(hologram)"),
        (
            json!({ "type": "holo\ngram", "attrs": { "title": "Cube" } }),
            "(unknown content: Cube)",
        ),
    ] {
        let document = build_document(&json!([{ "type": "paragraph", "content": [node.clone()] }]));
        assert_eq!(to_markdown(&document), text, "{node}");
    }
}

#[test]
fn media_node_keeps_name_and_description() {
    let media = |attrs: Value| json!({ "type": "media", "attrs": attrs });
    let file = json!({ "type": "file", "id": "5f", "collection": "" });
    let named = json!({ "type": "file", "id": "5f", "alt": "shot.png" });
    for (node, text) in [
        (
            json!({ "type": "mediaSingle", "content": [media(file.clone())] }),
            "(image)",
        ),
        (
            json!({ "type": "mediaSingle", "content": [media(named.clone())] }),
            "(image `shot.png`)",
        ),
        (
            json!({ "type": "mediaSingle", "content": [media(json!({ "alt": "the dialog", "__fileName": "a.png" })),
                { "type": "caption", "content": [{ "type": "text", "text": "After saving" }] }] }),
            "(image `a.png`: the dialog)\n\nAfter saving",
        ),
        (
            json!({ "type": "mediaSingle", "content": [media(json!({ "type": "external", "url": "https://a.example/x.png", "alt": "logo" }))] }),
            "![logo](https://a.example/x.png)",
        ),
        (
            json!({ "type": "mediaSingle", "content": [media(json!({ "type": "external", "url": "javascript:x", "alt": "logo" }))] }),
            "(image: logo)",
        ),
        (
            json!({ "type": "mediaGroup", "content": [media(file), media(json!({ "alt": "trace.log" }))] }),
            "(file)\n\n(file `trace.log`)",
        ),
        (
            json!({ "type": "paragraph", "content": [{ "type": "text", "text": "See " },
                { "type": "mediaInline", "attrs": { "type": "file", "id": "5f" } }, { "type": "text", "text": " and " },
                { "type": "mediaInline", "attrs": { "type": "image", "alt": "shot.png" } }, { "type": "text", "text": "." }] }),
            "See (file) and (image `shot.png`).",
        ),
    ] {
        assert_eq!(to_markdown(&build_document(&json!([node]))), text);
    }
}

#[test]
fn outer_spaces_move_outside_marks() {
    let document = build_document(&json!([{ "type": "paragraph", "content": [
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

/// Collects all links of a document.
fn collect_links(node: &Value) -> Vec<String> {
    let own = node["marks"].as_array().into_iter().flatten();
    let own = own.filter_map(|mark| mark["attrs"]["href"].as_str().map(str::to_owned));
    let inner = node["content"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(collect_links);
    own.chain(inner).collect()
}

fn measure_depth(node: &Value) -> usize {
    let inner = node["content"]
        .as_array()
        .into_iter()
        .flatten()
        .map(measure_depth);
    1 + inner.max().unwrap_or(0)
}

#[test]
fn links_that_could_run_something_become_text() {
    let document =
        from_markdown("[a](javascript:alert(1)) [b](https://b.example) <data:text/html,x> [c](page)");
    assert_eq!(collect_links(&document), ["https://b.example"]);
    assert!(to_markdown(&document).contains("a [b](https://b.example)"));
    let foreign = build_document(&json!([{ "type": "paragraph", "content": [
        { "type": "text", "text": "x", "marks": [{ "type": "link", "attrs": { "href": "javascript:y" } }] }
    ]}]));
    assert_eq!(to_markdown(&foreign), "x");
}

#[test]
fn deep_lists_are_flattened_without_losing_text() {
    let markdown: String = (0..200)
        .map(|level| format!("{}- level{level}\n", "  ".repeat(level)))
        .collect();
    let document = from_markdown(&markdown);
    assert_legal(&document);
    assert!(measure_depth(&document) < 50);
    let text = to_markdown(&document);
    assert!((0..200).all(|level| text.contains(&format!("level{level}"))));
}

/// Builds nested lists to this depth, with one word at each level.
fn nested_lists(levels: usize) -> Value {
    (0..levels).rev().fold(Value::Null, |inner, level| {
        let text =
            json!({ "type": "paragraph", "content": [{ "type": "text", "text": format!("level{level}.") }] });
        let content: Vec<Value> = std::iter::once(text)
            .chain((!inner.is_null()).then_some(inner))
            .collect();
        json!({ "type": "bulletList", "content": [{ "type": "listItem", "content": content }] })
    })
}

#[test]
fn deepest_document_fits_small_stack() {
    // Document, content and innermost text take eight levels; each list takes four.
    let levels = (domain::json::MAX_DEPTH - 8) / 4;
    let text = build_document(&json!([nested_lists(levels)])).to_string();
    let read = std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(move || {
            let document: Value = domain::json::from_slice(text.as_bytes()).unwrap();
            to_markdown(&document)
        });
    let markdown = read.unwrap().join().unwrap();
    assert!(levels > 40 && (0..levels).all(|level| markdown.contains(&format!("level{level}."))));
}

/// Documents as Jira sends them, for [`testkit::apply_edits`].
const RECORDED: [&str; 3] = [
    r#"{"version":1,"type":"doc","content":[{"type":"paragraph","content":[{"type":"text","text":"See ","marks":[{"type":"strong"}]},
        {"type":"text","text":"log","marks":[{"type":"link","attrs":{"href":"https://ci.example/1"}}]},{"type":"hardBreak"},
        {"type":"mention","attrs":{"id":"557058:ada","text":"@Ada"}},{"type":"emoji","attrs":{"shortName":":+1:","text":"+1"}},
        {"type":"inlineCard","attrs":{"url":"https://a.example"}},{"type":"date","attrs":{"timestamp":"1700000000000"}}]}]}"#,
    r#"{"version":1,"type":"doc","content":[{"type":"bulletList","content":[{"type":"listItem","content":[{"type":"paragraph","content":[
        {"type":"text","text":"one"}]},{"type":"orderedList","attrs":{"order":3},"content":[{"type":"listItem","content":[{"type":"paragraph"}]}]}]}]},
        {"type":"codeBlock","attrs":{"language":"rust"},"content":[{"type":"text","text":"``` <!-- x"}]},{"type":"rule"},
        {"type":"heading","attrs":{"level":2},"content":[{"type":"text","text":"T","marks":[{"type":"code"},{"type":"em"},{"type":"strike"}]}]}]}"#,
    r#"{"version":1,"type":"doc","content":[{"type":"table","content":[{"type":"tableRow","content":[{"type":"tableHeader","content":[
        {"type":"paragraph","content":[{"type":"text","text":"a|b"}]}]},{"type":"tableCell","attrs":{"colspan":2},"content":[]}]}]},
        {"type":"panel","attrs":{"panelType":"info"},"content":[{"type":"blockquote","content":[{"type":"paragraph"}]}]},
        {"type":"expand","attrs":{"title":"more"},"content":[]},{"type":"mediaSingle","content":[{"type":"media","attrs":{"id":"1","alt":"x"}}]}]}"#,
];

/// Generates JSON with the keywords of documents.
fn any_json() -> impl Strategy<Value = Value> {
    let word = select(vec![
        "type",
        "content",
        "text",
        "attrs",
        "marks",
        "doc",
        "paragraph",
        "bulletList",
        "listItem",
        "codeBlock",
        "table",
        "tableRow",
        "heading",
        "level",
        "link",
        "href",
        "hardBreak",
        "mention",
        "orderedList",
        "order",
        "panel",
    ]);
    let leaf = prop_oneof![
        word.clone().prop_map(Value::from),
        any::<Option<bool>>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        let entry = (word.clone().prop_map(str::to_owned), inner.clone());
        prop_oneof![
            vec(inner, 0..6).prop_map(Value::from),
            vec(entry, 0..6).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

    #[test]
    fn fuzz_any_json_converts_to_markdown(document in any_json()) {
        assert_legal(&from_markdown(&to_markdown(&document)));
    }

    #[test]
    fn fuzz_mutated_document_has_safe_links(
        which in 0..RECORDED.len(), edits in vec(any::<testkit::InputEdit>(), 0..6)
    ) {
        let text = testkit::apply_edits(RECORDED[which].as_bytes(), &edits);
        if let Ok(document) = domain::json::from_slice::<Value>(&text) {
            let again = from_markdown(&to_markdown(&document));
            assert_legal(&again);
            for link in collect_links(&again) {
                prop_assert!(domain::is_safe_link(&link), "{}", link);
            }
        }
    }

    #[test]
    fn fuzz_any_text_becomes_a_legal_document(text in "\\PC{0,80}", bytes in vec(any::<u8>(), 0..80)) {
        assert_legal(&from_markdown(&text));
        assert_legal(&from_markdown(&String::from_utf8_lossy(&bytes)));
    }
}

proptest::proptest! {
    #[test]
    fn any_markdown_becomes_legal_document(
        markdown in "([-*>#`_ \n!a-c]|\\[x\\]\\((https://a\\.example|javascript:x|data:,|//b|mailto:m)\\)|<[a-z]{1,10}:x>){0,60}"
    ) {
        let document = from_markdown(&markdown);
        assert_legal(&document);
        for link in collect_links(&document) {
            proptest::prop_assert!(domain::is_safe_link(&link), "{}", link);
        }
    }

    #[test]
    fn nested_lists_keep_words_or_are_refused(levels in 1_usize..200) {
        let text = build_document(&json!([nested_lists(levels)])).to_string();
        match domain::json::from_slice::<Value>(text.as_bytes()) {
            Ok(document) => {
                let markdown = to_markdown(&document);
                for level in 0..levels {
                    let word = format!("level{level}.");
                    proptest::prop_assert!(markdown.contains(&word), "{}", word);
                }
            }
            Err(error) => proptest::prop_assert!(levels > 50, "{} at {}", error, levels),
        }
    }
}
