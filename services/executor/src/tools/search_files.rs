//! `search_files`: finds paths that match a pattern.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, globs::GlobPatterns, parse_input};

const MAX_FOUND: usize = 500;

pub(super) const TOOL: ExecutorTool = ExecutorTool {
    name: "search_files",
    description: "Finds files by a glob pattern such as **/*_test.go or src/**/cart*. A pattern without a slash is \
                  looked for in every folder, a folder's name stands for all files in it, and several patterns are separated by \
                  commas. Files named by .gitignore are left out.",
    schema: super::input_schema::<Input>,
    read_only: true,
    run: ToolAction::Blocking(run_search_files),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Glob pattern over paths relative to the root
    pattern: String,
    /// Folder to search; absent: everywhere
    path: Option<String>,
}

fn run_search_files(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let globs = GlobPatterns::new(call, &input.pattern)?;
    let folder = call
        .workspace
        .disk
        .path(input.path.as_deref().unwrap_or_default())?;
    let mut found = find_matching_paths(call, &folder, &globs);
    let mut note = String::new();
    if found.is_empty() && globs.is_plain() {
        // A name without a wildcard is usually a part of a file's name.
        found = find_matching_paths(
            call,
            &folder,
            &GlobPatterns::new(call, &format!("*{}*", input.pattern))?,
        );
        note = format!(
            "[no file is named {:?}; these have it in their names]\n",
            input.pattern
        );
    }
    if found.is_empty() {
        return Ok(format!(
            "No file matches {:?}. Files that .gitignore names are not searched; list_directory shows them.",
            input.pattern
        )
        .into());
    }
    let truncated = found.len() > MAX_FOUND;
    if truncated {
        found[MAX_FOUND] = "[more files left out; narrow the pattern]".to_owned();
    }
    Ok(FileToolReply {
        text: note + &found.join("\n"),
        truncated,
    })
}

fn find_matching_paths(call: &ToolContext, folder: &Path, globs: &GlobPatterns) -> Vec<String> {
    let mut found = Vec::new();
    for path in call.workspace.disk.paths(|kind| !kind.is_dir()) {
        if path.starts_with(folder) && globs.is_match(&path) {
            found.push(path.display().to_string());
        }
        // One more than the limit, so that the answer can report further files.
        if found.len() > MAX_FOUND || call.cancel.is_cancelled() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn glob_finds_files_except_ignored() {
        let world = World::new();
        world
            .run("write_file", &json!({ "path": "build/x.py", "content": "" }))
            .unwrap();
        let find = |pattern: &str| world.run("search_files", &json!({ "pattern": pattern })).unwrap();
        let root = world.call.workspace.root().path().display().to_string();
        let absolute = format!("{root}/shop/*.py");
        for pattern in [
            "*.py",
            "shop/*",
            "./shop/*.py",
            "shop",
            "shop/",
            "*.go,*.py",
            "*.{go,py}",
            &absolute,
            "cart.py",
        ] {
            assert_eq!(find(pattern), "shop/cart.py", "{pattern}");
        }
        assert!(
            find("cart").ends_with("have it in their names]\nshop/cart.py"),
            "{}",
            find("cart")
        );
        assert!(find("*.rs").contains("No file matches"));
        assert!(
            world
                .run("search_files", &json!({ "pattern": "a[" }))
                .unwrap_err()
                .contains("not a glob")
        );
    }
}
