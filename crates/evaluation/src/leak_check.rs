//! Leak check: detects that an agent was shown the reference solution before it wrote it.

use std::collections::BTreeSet;

use domain::{Fact, JournalEntry};

// Length of a window in lines. Shorter sequences match by chance.
const LINES: usize = 3;
// Letters and digits of a significant line.
const LETTERS: usize = 4;

/// Consecutive lines of a solution.
pub type LineWindow = Vec<String>;

/// Windows of consecutive lines that the reference solution adds and the base does not contain.
pub fn list_windows(patch: &str, base: &[String]) -> Vec<LineWindow> {
    let (mut blocks, mut open) = (Vec::new(), Vec::new());
    for line in patch.lines() {
        match line.strip_prefix('+') {
            Some(added) if !line.starts_with("+++ ") => open.push(added),
            _ => blocks.push(std::mem::take(&mut open)),
        }
    }
    blocks.push(open);
    let base: Vec<Vec<&str>> = base
        .iter()
        .map(|text| select_significant_lines(text.lines()))
        .collect();
    let all = blocks.into_iter().flat_map(|block| {
        let block = select_significant_lines(block.into_iter());
        let windows = block.windows(LINES);
        windows
            .map(|window| window.iter().map(ToString::to_string).collect())
            .collect::<Vec<LineWindow>>()
    });
    // Lines that the base contains do not prove a leak.
    all.filter(|window: &LineWindow| !base.iter().any(|text| contains_window(text, window)))
        .collect()
}

fn select_significant_lines<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let says = |line: &&str| line.chars().filter(|letter| letter.is_alphanumeric()).count() >= LETTERS;
    lines.map(str::trim).filter(says).collect()
}

/// True when a text contains these lines in sequence. Tools prefix lines with numbers and the like, so only
/// the ends are compared.
fn contains_window(text: &[&str], window: &[String]) -> bool {
    text.windows(LINES).any(|lines| {
        lines
            .iter()
            .zip(window)
            .all(|(line, wanted)| line.ends_with(wanted.as_str()))
    })
}

/// First window of the solution that a tool showed before the agent wrote it.
pub fn find_leak(windows: &[LineWindow], journal: &[JournalEntry]) -> Option<String> {
    let mut unknown: BTreeSet<&LineWindow> = windows.iter().collect();
    for entry in journal {
        if let Fact::ModelReplied { reply, .. } = &entry.fact {
            let mut texts = vec![reply.text()];
            for call in reply.tool_calls() {
                collect_strings(&call.input, &mut texts);
            }
            let texts: Vec<_> = texts
                .iter()
                .map(|text| select_significant_lines(text.lines()))
                .collect();
            // A window that the agent wrote first is its work, so a later tool result with it is not a
            // leak.
            unknown.retain(|window| !texts.iter().any(|text| contains_window(text, window)));
        } else if let Fact::ToolFinished { result, .. } = &entry.fact {
            let text = select_significant_lines(result.content.lines());
            if let Some(found) = unknown.iter().find(|window| contains_window(&text, window)) {
                return Some(found.join("\n"));
            }
        }
    }
    None
}

fn collect_strings(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => found.push(text.clone()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect_strings(value, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| collect_strings(value, found)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use domain::{ModelReply, ReplyStop, TokenUsage, ToolCall, ToolResult};
    use serde_json::json;

    use super::*;

    const GOLD: &str = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,5 @@\n def total():\n+    first = one()\n+\n+    second = two()\n\
                        +    return first + second\n-    return 0\n+alone = 1\n";
    const SOLUTION: &str = "    first = one()\n    second = two()\n    return first + second\n";

    fn build_entry(fact: Fact) -> JournalEntry {
        let fact = serde_json::to_value(fact).unwrap();
        let entry = json!({"position": 0, "nonce": "n", "fence": {"epoch": 1, "sequence": 1, "delivered": 1}, "at": 0, "fact": fact});
        serde_json::from_value(entry).unwrap()
    }

    fn build_tool_entry(content: &str) -> JournalEntry {
        build_entry(Fact::ToolFinished {
            id: serde_json::from_value(json!("c1")).unwrap(),
            result: ToolResult::ok(content),
        })
    }

    fn build_edit_entry(text: &str) -> JournalEntry {
        let call = ToolCall {
            id: "c".to_owned(),
            name: "edit_file".to_owned(),
            input: json!({"edits": [{"new": text}]}),
        };
        build_entry(Fact::ModelReplied {
            id: serde_json::from_value(json!("c1")).unwrap(),
            reply: ModelReply {
                blocks: vec![domain::ReplyBlock::ToolCall(call)],
                stop: ReplyStop::ToolUse,
                usage: TokenUsage::default(),
                model: "m".to_owned(),
                provider: String::new(),
                cost_micros: None,
            },
            prompt: None,
        })
    }

    #[test]
    fn solution_shown_before_writing_is_leak() {
        let windows = list_windows(GOLD, &[]);
        assert_eq!(windows.len(), 1, "{windows:?}");
        let shown = "commit 1\n+    first = one()\n+    second = two()\n+    return first + second\n";
        let found = find_leak(
            &windows,
            &[
                build_tool_entry("nothing"),
                build_tool_entry(shown),
                build_edit_entry(SOLUTION),
            ],
        )
        .unwrap();
        assert!(found.starts_with("first = one()\nsecond"), "{found}");
        let numbered = "   7\tfirst = one()\n   8\tsecond = two()\n   9\treturn first + second";
        assert!(find_leak(&windows, &[build_tool_entry(numbered)]).is_some());
    }

    #[test]
    fn own_or_base_lines_are_no_leak() {
        let all = list_windows(GOLD, &[]);
        assert_eq!(
            find_leak(&all, &[build_edit_entry(SOLUTION), build_tool_entry(SOLUTION)]),
            None
        );
        assert_eq!(
            find_leak(&all, &[build_tool_entry("first = one()\nsecond = two()\n")]),
            None
        );
        let base = format!("def other():\n{SOLUTION}");
        assert!(list_windows(GOLD, &[base]).is_empty());
        assert!(list_windows("+a = b\n+c = d\n", &[]).is_empty());
    }
}
