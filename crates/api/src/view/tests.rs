use domain::{RunFence, Timestamp};

use super::*;

/// Every stored entry. The file contains each fact and each reason at least once; a test of `domain` verifies
/// that.
fn read_stored_entries() -> Vec<JournalEntry> {
    let lines = include_str!("../../../domain/tests/stored/v1/entry.jsonl").lines();
    lines
        .map(|line| domain::record_format::decode_stored_record(line.as_bytes()).unwrap())
        .collect()
}

fn build_entry(fact: Fact) -> JournalEntry {
    JournalEntry {
        position: 7,
        nonce: String::new(),
        fence: RunFence::default(),
        at: Timestamp::from_unix_ms(1_500),
        fact,
    }
}

/// Formats an entry on one line, with the folded text behind bars.
fn render_entry(view: &EntryView) -> String {
    let tone = serde_json::to_value(view.tone).unwrap();
    let mut text = format!(
        "{:<8} {:<5} {}",
        view.who.as_str(),
        tone.as_str().unwrap(),
        view.head
    );
    for line in view.more.iter().flat_map(|more| more.lines()) {
        text.push_str(&format!("\n               | {line}"));
    }
    text
}

#[test]
fn every_stored_entry_has_words_for_people() {
    let view = TimelineView::of(&read_stored_entries());
    assert_eq!(view.version, TimelineView::VERSION);
    for one in &view.entries {
        assert!(!one.head.is_empty() && !one.head.contains('\n'), "{one:?}");
        assert!(
            !one.head.contains(" { ") && !one.head.contains("Some("),
            "no debug output: {one:?}"
        );
    }
    let listed: Vec<String> = view.entries.iter().map(render_entry).collect();
    insta::assert_snapshot!(listed.join("\n"));
}

#[test]
fn timeline_view_round_trips_through_json() {
    let view = TimelineView::of(&read_stored_entries());
    let written = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<TimelineView>(&written).unwrap(), view);
    let asked = build_entry(Fact::StopRequested { by: "ada".to_owned() });
    assert_eq!(
        serde_json::to_value(EntryView::from(&asked)).unwrap(),
        serde_json::json!({"position": 7, "at": "1970-01-01T00:00:01.5Z", "fact": "stop_requested", "who": "person",
            "tone": "warm", "head": "ada asked to stop"})
    );
}

#[test]
fn foreign_text_is_escaped_and_truncated() {
    // Window title, clipboard, clear screen, carriage return, right-to-left override.
    for steering in [
        "\u{1b}]0;x\u{7}",
        "\u{1b}]52;c;eA==\u{7}",
        "\u{1b}[2J",
        "\u{9b}2J",
        "a\rb\u{8}",
        "\u{202e}",
    ] {
        let detail = format!("ada{steering}end\n").repeat(30);
        let view = EntryView::from(&build_entry(Fact::SummaryFailed {
            id: "jira:ENG-1@1".parse::<domain::RunId>().unwrap().call(3),
            detail,
        }));
        let more = view.more.unwrap();
        assert!(
            !view.head.chars().chain(more.chars()).any(domain::text::is_hidden),
            "{} {more}",
            view.head
        );
        assert!(
            view.head.ends_with('…') && more.ends_with("end\n"),
            "{} {more:?}",
            view.head
        );
    }
    let by = "ä\n".repeat(400);
    let head = EntryView::from(&build_entry(Fact::StopRequested { by })).head;
    assert!(head.ends_with('…') && head.chars().count() == 160, "{head}");
}
