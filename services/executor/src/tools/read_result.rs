//! `read_result`: reads a part of an earlier result that was truncated.

use domain::text::truncate_bytes;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, parse_input};

const DEFAULT_LINES: usize = 400;
/// Limits of an answer: lines, bytes, and bytes of one line.
const MAX_LINES: usize = 2000;
const MAX_SHOWN: usize = 40 * 1024;
const MAX_LINE: usize = 2000;
/// Limit of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 1024 * 1024;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "read_result",
    description: "Reads a part of an earlier result of which something was left out: its answer names the number, as in \
                  [result 3 ...]. Give from_line and lines to read a part, or a pattern to see the lines that match it.",
    schema: super::build_schema_once::<Input>(),
    read_only: true,
    run: ToolAction::Blocking(run_read_result),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Number of the result
    result: i64,
    /// First line to read, from 1
    from_line: Option<i64>,
    /// Number of lines to read: 400 unless given, at most 2000
    lines: Option<i64>,
    /// Regular expression (Rust syntax); only lines that match it are shown
    pattern: Option<String>,
}

fn run_read_result(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let number = u32::try_from(input.result).unwrap_or(0);
    let kept = call.workspace.results.read(number).map_err(|error| {
        tracing::warn!(error = %domain::cause::format_error_chain(&error), "a kept result cannot be read");
        format!("Result {number} cannot be read. Run the command again.")
    })?;
    let Some(bytes) = kept else {
        return Err(format!(
            "There is no result {number}, or it is no longer kept. Run the command again; write its output to a file outside the \
             repository, such as \"$TMPDIR\"/out, if you need parts of it."
        ));
    };
    let pattern = input.pattern.as_deref().map(compile_regex).transpose()?;
    Ok(render_result(
        &String::from_utf8_lossy(&bytes),
        number,
        &input,
        pattern.as_ref(),
    ))
}

fn compile_regex(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN)
        .build()
        .map_err(|error| format!("The pattern is not a regular expression: {error}."))
}

fn render_result(text: &str, number: u32, input: &Input, pattern: Option<&Regex>) -> FileToolReply {
    let count = |value: i64| usize::try_from(value).unwrap_or(0);
    let from = input.from_line.map_or(1, count).max(1);
    let most = input.lines.map_or(DEFAULT_LINES, count).clamp(1, MAX_LINES);
    let total = text.lines().count();
    let (mut body, mut shown, mut next) = (String::new(), 0, None);
    let lines = text.lines().enumerate().skip(from - 1);
    for (at, line) in lines.filter(|(_, line)| pattern.is_none_or(|pattern| pattern.is_match(line))) {
        let head = truncate_bytes(line, MAX_LINE);
        if shown == most || body.len() + head.len() > MAX_SHOWN {
            next = Some(at + 1);
            break;
        }
        let left_out = match line.len() - head.len() {
            0 => String::new(),
            bytes => format!(" [{bytes} more bytes of this line left out]"),
        };
        body.push_str(&format!("{:>6} {head}{left_out}\n", at + 1));
        shown += 1;
    }
    let more = next.map_or_else(String::new, |next| format!("; read on with from_line = {next}"));
    let what = if pattern.is_some() {
        "matching lines"
    } else {
        "lines"
    };
    FileToolReply {
        text: format!("result {number} ({shown} {what} from line {from} of {total}{more})\n{body}"),
        truncated: next.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn stored_result_is_read_in_parts() {
        let world = World::new();
        let text: String = (1..=1000).map(|line| format!("line {line}\n")).collect();
        let number = world.call.workspace.results.keep(text.as_bytes()).unwrap();
        let read = |input| world.run("read_result", &input).unwrap();
        assert_eq!(
            read(json!({ "result": number, "from_line": 999 })),
            "result 1 (2 lines from line 999 of 1000)\n   999 line 999\n  1000 line 1000\n"
        );
        assert_eq!(
            read(json!({ "result": number, "from_line": 2, "lines": 1 })),
            "result 1 (1 lines from line 2 of 1000; read on with from_line = 3)\n     2 line 2\n"
        );
        assert_eq!(
            read(json!({ "result": number, "pattern": "^line 50[12]$" })),
            "result 1 (2 matching lines from line 1 of 1000)\n   501 line 501\n   502 line 502\n"
        );
    }

    #[test]
    fn missing_result_error_names_remedy() {
        let world = World::new();
        for number in [0, 1, -1, i64::MAX] {
            let error = world
                .run("read_result", &json!({ "result": number }))
                .unwrap_err();
            assert!(error.contains("Run the command again"), "{error}");
        }
        world.call.workspace.results.keep(b"text").unwrap();
        let error = world
            .run("read_result", &json!({ "result": 1, "pattern": "(" }))
            .unwrap_err();
        assert!(error.contains("not a regular expression"), "{error}");
    }

    proptest! {
        #[test]
        fn whatever_was_kept_is_shown_within_bounds(
            bytes in prop::collection::vec(any::<u8>(), 0..20_000),
            from in any::<i64>(),
            lines in any::<i64>(),
        ) {
            let world = World::new();
            let number = world.call.workspace.results.keep(&bytes).unwrap();
            let input = json!({ "result": number, "from_line": from, "lines": lines });
            let text = world.run("read_result", &input).unwrap();
            prop_assert!(text.len() < 64 * 1024);
        }
    }
}
