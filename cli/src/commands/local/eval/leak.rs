//! Leak check: detects that an agent was shown the reference solution before it wrote it.

use std::collections::BTreeSet;

use domain::{Entry, Fact};

// Length of a window in lines. Shorter sequences match by chance.
const LINES: usize = 3;
// Letters and digits of a significant line.
const LETTERS: usize = 4;

/// Consecutive lines of a solution.
type Window = Vec<String>;

/// Windows of consecutive lines that the reference solution adds and the base does not contain.
pub(super) fn windows(patch: &str, base: &[String]) -> Vec<Window> {
    let (mut blocks, mut open) = (Vec::new(), Vec::new());
    for line in patch.lines() {
        match line.strip_prefix('+') {
            Some(added) if !line.starts_with("+++ ") => open.push(added),
            _ => blocks.push(std::mem::take(&mut open)),
        }
    }
    blocks.push(open);
    let base: Vec<Vec<&str>> = base.iter().map(|text| telling(text.lines())).collect();
    let all = blocks.into_iter().flat_map(|block| {
        let block = telling(block.into_iter());
        let windows = block.windows(LINES);
        windows
            .map(|window| window.iter().map(ToString::to_string).collect())
            .collect::<Vec<Window>>()
    });
    // Lines that the base contains do not prove a leak.
    all.filter(|window: &Window| !base.iter().any(|text| has(text, window)))
        .collect()
}

fn telling<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let says = |line: &&str| line.chars().filter(|letter| letter.is_alphanumeric()).count() >= LETTERS;
    lines.map(str::trim).filter(says).collect()
}

/// True when a text contains these lines in sequence. Tools prefix lines with numbers and the like, so only
/// the ends are compared.
fn has(text: &[&str], window: &[String]) -> bool {
    text.windows(LINES).any(|lines| {
        lines
            .iter()
            .zip(window)
            .all(|(line, wanted)| line.ends_with(wanted.as_str()))
    })
}

/// First window of the solution that a tool showed before the agent wrote it.
pub(super) fn find(windows: &[Window], journal: &[Entry]) -> Option<String> {
    let mut unknown: BTreeSet<&Window> = windows.iter().collect();
    for entry in journal {
        match &entry.fact {
            Fact::ModelReplied { reply, .. } => {
                let mut texts = vec![reply.text()];
                for call in reply.tool_calls() {
                    strings(&call.input, &mut texts);
                }
                let texts: Vec<_> = texts.iter().map(|text| telling(text.lines())).collect();
                // A window that the agent wrote first is its work, so a later tool result with it is not a
                // leak.
                unknown.retain(|window| !texts.iter().any(|text| has(text, window)));
            }
            Fact::ToolFinished { result, .. } => {
                let text = telling(result.content.lines());
                if let Some(found) = unknown.iter().find(|window| has(&text, window)) {
                    return Some(found.join("\n"));
                }
            }
            _ => {}
        }
    }
    None
}

fn strings(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => found.push(text.clone()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use domain::{Reply, ReplyStop, ToolCall, ToolResult, Usage};
    use serde_json::json;

    use super::*;

    const GOLD: &str = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,5 @@\n def total():\n+    first = one()\n+\n+    second = two()\n\
                        +    return first + second\n-    return 0\n+alone = 1\n";
    const SOLUTION: &str = "    first = one()\n    second = two()\n    return first + second\n";

    fn entry(fact: Fact) -> Entry {
        let fact = serde_json::to_value(fact).unwrap();
        let entry = json!({"position": 0, "nonce": "n", "fence": {"epoch": 1, "sequence": 1, "delivered": 1}, "at": 0, "fact": fact});
        serde_json::from_value(entry).unwrap()
    }

    fn shows(content: &str) -> Entry {
        entry(Fact::ToolFinished {
            id: serde_json::from_value(json!("c1")).unwrap(),
            result: ToolResult::ok(content),
        })
    }

    fn writes(text: &str) -> Entry {
        let call = ToolCall {
            id: "c".to_owned(),
            name: "edit_file".to_owned(),
            input: json!({"edits": [{"new": text}]}),
        };
        entry(Fact::ModelReplied {
            id: serde_json::from_value(json!("c1")).unwrap(),
            reply: Reply {
                blocks: vec![domain::Block::ToolCall(call)],
                stop: ReplyStop::ToolUse,
                usage: Usage::default(),
                model: "m".to_owned(),
                provider: String::new(),
                cost_micros: None,
            },
            prompt: None,
        })
    }

    #[test]
    fn solution_shown_before_writing_is_leak() {
        let windows = windows(GOLD, &[]);
        assert_eq!(windows.len(), 1, "{windows:?}");
        let shown = "commit 1\n+    first = one()\n+    second = two()\n+    return first + second\n";
        let found = find(&windows, &[shows("nothing"), shows(shown), writes(SOLUTION)]).unwrap();
        assert!(found.starts_with("first = one()\nsecond"), "{found}");
        let numbered = "   7\tfirst = one()\n   8\tsecond = two()\n   9\treturn first + second";
        assert!(find(&windows, &[shows(numbered)]).is_some());
    }

    #[test]
    fn own_or_base_lines_are_no_leak() {
        let all = windows(GOLD, &[]);
        assert_eq!(find(&all, &[writes(SOLUTION), shows(SOLUTION)]), None);
        assert_eq!(find(&all, &[shows("first = one()\nsecond = two()\n")]), None);
        let base = format!("def other():\n{SOLUTION}");
        assert!(windows(GOLD, &[base]).is_empty());
        assert!(windows("+a = b\n+c = d\n", &[]).is_empty());
    }
}
