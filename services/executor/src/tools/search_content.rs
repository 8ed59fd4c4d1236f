//! `search_content`: lines that match a regular expression.

use std::fs::FileType;

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, SearcherBuilder, sinks::Lossy};
use serde::Deserialize;

use super::{Call, Run, Tool, cut, object, parse, search_files::matcher};

const MAX_FOUND: usize = 300;
const MAX_LINE: usize = 400;
/// Files that are named because they could not be searched.
const MAX_FAILED: usize = 10;
/// A file with a longer line is not searched to its end, in bytes.
const MAX_LONGEST: usize = 16 * 1024 * 1024;

pub(super) const TOOL: Tool = Tool {
    name: "search_content",
    description: "Finds lines by a regular expression in all files that .gitignore does not name: `path:line: text` for \
                  each. Give file_pattern (a glob such as *.py) to look in some files only.",
    schema: || {
        let properties = [
            (
                "pattern",
                "string",
                "Regular expression (Rust syntax), matched within a line",
            ),
            ("file_pattern", "string", "Glob pattern of the files to look in"),
        ];
        object(&properties, 1)
    },
    read_only: true,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    file_pattern: Option<String>,
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    let regex = RegexMatcher::new_line_matcher(&input.pattern).map_err(|error| {
        format!("The pattern is no regular expression: {error}. Escape special characters with \\.")
    })?;
    let files = input.file_pattern.as_deref().map(matcher).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .heap_limit(Some(MAX_LONGEST))
        .build();
    let root = call.workspace.root();
    let (mut found, mut failed): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for path in call.workspace.paths(FileType::is_file) {
        if files.as_ref().is_some_and(|files| !files.is_match(&path)) {
            continue;
        }
        let Ok(file) = root.open_file(&path) else { continue };
        let sink = Lossy(|line, text| {
            found.push(format!(
                "{}:{line}: {}",
                path.display(),
                cut(text.trim_end(), MAX_LINE)
            ));
            Ok(found.len() <= MAX_FOUND)
        });
        if let Err(error) = searcher.search_file(&regex, &file, sink) {
            tracing::debug!(%error, "a file could not be searched");
            failed.push(path.display().to_string());
        }
        if found.len() > MAX_FOUND || call.cancel.is_cancelled() {
            break;
        }
    }
    if found.is_empty() {
        found.push(format!("No line matches {:?}.", input.pattern));
    }
    if found.len() > MAX_FOUND {
        found[MAX_FOUND] = "[more lines left out; narrow the pattern or give file_pattern]".to_owned();
    }
    if !failed.is_empty() {
        failed.truncate(MAX_FAILED);
        found.push(format!("[not searched to the end: {}]", failed.join(", ")));
    }
    Ok(found.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn matching_lines_come_with_path_and_number() {
        let world = World::new();
        let text = world
            .run(
                "search_content",
                &json!({ "pattern": "def \\w+", "file_pattern": "*.py" }),
            )
            .unwrap();
        assert_eq!(
            text,
            "shop/cart.py:1: def total(items):\nshop/cart.py:5: def count(items):"
        );
        let none = world
            .run(
                "search_content",
                &json!({ "pattern": "def", "file_pattern": "*.md" }),
            )
            .unwrap();
        assert!(none.contains("No line matches"));
        assert!(
            world
                .run("search_content", &json!({ "pattern": "(" }))
                .unwrap_err()
                .contains("Escape")
        );
    }
}
