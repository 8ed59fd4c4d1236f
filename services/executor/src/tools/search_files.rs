//! `search_files`: finds paths that match a pattern.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ExecutorTool, FileToolReply, ToolAction, ToolContext, explain_unsearched_path, globs::GlobPatterns,
    parse_input,
};

const MAX_FOUND: usize = 500;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "search_files",
    description: "Finds files by a glob pattern such as **/*_test.go or src/**/cart*. A pattern without a slash is \
                  looked for in every folder, a folder's name stands for all files in it, and several patterns are separated by \
                  commas. Files named by .gitignore are left out.",
    schema: super::build_schema_once::<Input>(),
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
        let wanted = if globs.is_plain() {
            format!("*{}*", input.pattern)
        } else {
            input.pattern.clone()
        };
        let globs = GlobPatterns::in_any_case(call, &wanted)?;
        found = find_matching_paths(call, &folder, &globs);
        note = "[no file matches in this case; these match in another one]\n".to_owned();
    }
    if found.is_empty() {
        if let Some(why) = explain_unsearched_path(call, &folder) {
            return Err(why);
        }
        let hint = if is_expression(&input.pattern) {
            " The pattern is a glob, not a regular expression: * is any part of a name, **/ any folders."
        } else {
            ""
        };
        return Ok(format!(
            "No file matches {:?}.{hint} Files that .gitignore names are not searched; list_directory shows them.",
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

/// Returns true for a pattern that looks like a regular expression.
fn is_expression(pattern: &str) -> bool {
    let has_mark = ["\\.", "\\w", "\\d", ".+", "|"]
        .iter()
        .any(|mark| pattern.contains(mark));
    has_mark || pattern.starts_with(".*") || pattern.starts_with('^') || pattern.ends_with('$')
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
        assert!(find("*.rs").contains("No file matches \"*.rs\". Files"));
        for pattern in ["CART.py", "Shop/*.PY", "CART"] {
            assert!(
                find(pattern).ends_with("in another one]\nshop/cart.py"),
                "{}",
                find(pattern)
            );
        }
        for pattern in [r".*cart\.py$", "^cart", "(cart|shop).rs"] {
            assert!(
                find(pattern).contains("not a regular expression"),
                "{}",
                find(pattern)
            );
        }
        assert!(
            world
                .run("search_files", &json!({ "pattern": "a[" }))
                .unwrap_err()
                .contains("not a glob")
        );
    }

    #[test]
    fn folder_that_cannot_be_searched_is_named() {
        let world = World::new();
        let root = world.call.workspace.root().path();
        std::os::unix::fs::symlink("shop", root.join("linked")).unwrap();
        for (path, words) in [
            ("source", "source does not exist"),
            ("linked", "linked is a symbolic link"),
        ] {
            for (tool, input) in [
                ("search_files", json!({ "pattern": "*.py", "path": path })),
                (
                    "search_content",
                    json!({ "pattern": "def", "file_pattern": "*.py", "path": path }),
                ),
            ] {
                let error = world.run(tool, &input).unwrap_err();
                assert!(error.contains(words), "{tool}: {error}");
            }
        }
    }

    #[test]
    fn brackets_of_existing_paths_are_literal() {
        let world = World::new();
        for path in ["app/[id]/page.tsx", "app/i/page.tsx", "[slug].py"] {
            let root = world.call.workspace.root();
            root.write(path.as_ref(), b"x\n").unwrap();
        }
        for (pattern, path) in [
            ("app/[id]/page.tsx", "app/[id]/page.tsx"),
            ("app/[id]", "app/[id]/page.tsx"),
            ("app/[id]/", "app/[id]/page.tsx"),
            ("app/[id]/*.tsx", "app/[id]/page.tsx"),
            ("app/[i]/*.tsx", "app/i/page.tsx"),
            ("[slug].py", "[slug].py"),
        ] {
            let found = world.run("search_files", &json!({ "pattern": pattern })).unwrap();
            assert_eq!(found, path, "{pattern}");
        }
    }
}
