//! `search_files`: paths that match a pattern.

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use super::{Call, Run, Tool, object, parse};

const MAX_FOUND: usize = 500;

pub(super) const TOOL: Tool = Tool {
    name: "search_files",
    description: "Finds files by a glob pattern such as **/*_test.go or src/**/cart*. A pattern without a slash is \
                  looked for in every folder. Files named by .gitignore are left out.",
    schema: || {
        object(
            &[(
                "pattern",
                "string",
                "Glob pattern over paths relative to the root",
            )],
            1,
        )
    },
    read_only: true,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
}

/// A matcher over relative paths.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let everywhere = if pattern.contains('/') {
        pattern.to_owned()
    } else {
        format!("**/{pattern}")
    };
    let glob = GlobBuilder::new(&everywhere).literal_separator(true).build();
    let glob = glob.map_err(|error| format!("The pattern is no glob: {error}. Try one such as **/*.py."))?;
    Ok(glob.compile_matcher())
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    let matcher = matcher(&input.pattern)?;
    let mut found = Vec::new();
    for path in call.workspace.paths(|kind| !kind.is_dir()) {
        if matcher.is_match(&path) {
            found.push(path.display().to_string());
        }
        if found.len() > MAX_FOUND || call.cancel.is_cancelled() {
            break;
        }
    }
    if found.is_empty() {
        return Ok(format!("No file matches {:?}.", input.pattern));
    }
    if found.len() > MAX_FOUND {
        found[MAX_FOUND] = "[more files left out; narrow the pattern]".to_owned();
    }
    Ok(found.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn patterns_find_files_in_every_folder_but_not_ignored_ones() {
        let world = World::new();
        world
            .run("write_file", &json!({ "path": "build/x.py", "content": "" }))
            .unwrap();
        let find = |pattern: &str| world.run("search_files", &json!({ "pattern": pattern })).unwrap();
        assert_eq!(find("*.py"), "shop/cart.py");
        assert_eq!(find("shop/*"), "shop/cart.py");
        assert!(find("*.rs").contains("No file matches"));
        assert!(
            world
                .run("search_files", &json!({ "pattern": "a[" }))
                .unwrap_err()
                .contains("no glob")
        );
    }
}
