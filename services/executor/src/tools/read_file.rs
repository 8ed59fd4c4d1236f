//! `read_file`: a text file or a range of its lines.

use serde::Deserialize;

use super::{Call, Run, Tool, cut, object, parse};
use crate::workspace::explain;

/// Shown at most, in bytes.
const MAX_SHOWN: usize = 256 * 1024;
/// Read at most, in bytes.
const MAX_READ: u64 = 16 * 1024 * 1024;

pub(super) const TOOL: Tool = Tool {
    name: "read_file",
    description: "Reads a text file. Give start_line and end_line (from 1, both included) to read a part of a long \
                  file. The first line of the answer says which lines follow.",
    schema: || {
        let properties = [
            ("path", "string", "Path relative to the workspace's root"),
            ("start_line", "integer", "First line to read, from 1"),
            ("end_line", "integer", "Last line to read"),
        ];
        object(&properties, 1)
    },
    read_only: true,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    start_line: Option<usize>,
    end_line: Option<usize>,
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    let path = call.workspace.existing(&input.path)?;
    let bytes = call
        .workspace
        .root()
        .read(&path, MAX_READ)
        .map_err(|error| explain(&path, &error))?;
    if bytes.iter().take(8000).any(|byte| *byte == 0) {
        return Err(format!(
            "{} is a binary file of {} bytes and cannot be shown.",
            path.display(),
            bytes.len()
        ));
    }
    if git::is_lfs_pointer(&bytes) {
        return Err(format!(
            "Git LFS keeps the content of {}; here is only a pointer to it. Work without the content and leave the file as it is.",
            path.display()
        ));
    }
    let text = String::from_utf8_lossy(&bytes);
    let total = text.lines().count();
    let start = input.start_line.unwrap_or(1).max(1);
    let end = input.end_line.unwrap_or(total).min(total);
    if total == 0 {
        return Ok(format!("{} is empty.", path.display()));
    }
    if start > end {
        return Err(format!(
            "{} has {total} lines; lines {start} to {end} are none of them.",
            path.display()
        ));
    }
    let part: String = text
        .split_inclusive('\n')
        .skip(start - 1)
        .take(end + 1 - start)
        .collect();
    let shown = cut(&part, MAX_SHOWN);
    let last = if shown.len() < part.len() {
        start + shown.matches('\n').count()
    } else {
        end
    };
    let more = if last < end {
        "; read on with start_line"
    } else {
        ""
    };
    Ok(format!(
        "{} (lines {start}-{last} of {total}{more})\n{shown}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn a_range_of_lines_is_shown_under_a_header() {
        let world = World::new();
        let text = world
            .run(
                "read_file",
                &json!({ "path": "shop/cart.py", "start_line": 2, "end_line": 2 }),
            )
            .unwrap();
        assert_eq!(text, "shop/cart.py (lines 2-2 of 6)\n    return 0\n");
    }

    #[test]
    fn a_missing_file_a_folder_a_binary_file_and_a_way_out_each_say_what_to_do() {
        let world = World::new();
        world
            .call
            .workspace
            .root()
            .write("bin".as_ref(), b"a\0b")
            .unwrap();
        for (path, hint) in [
            ("nothing", "list_directory"),
            ("shop", "list_directory"),
            ("bin", "binary file of 3 bytes"),
            ("out/passwd", "symbolic link"),
            ("/etc/passwd", "inside the workspace"),
        ] {
            let error = world.run("read_file", &json!({ "path": path })).unwrap_err();
            assert!(error.contains(hint), "{path}: {error}");
        }
        let error = world
            .run("read_file", &json!({ "path": "README.md", "start_line": 9 }))
            .unwrap_err();
        assert!(error.contains("has 1 lines"), "{error}");
    }

    #[test]
    fn a_long_file_is_cut_and_says_where_to_read_on() {
        let world = World::new();
        world
            .call
            .workspace
            .root()
            .write("long".as_ref(), &b"0123456789\n".repeat(50_000))
            .unwrap();
        let text = world.run("read_file", &json!({ "path": "long" })).unwrap();
        assert!(text.len() < 257 * 1024 && text.lines().next().unwrap().contains("read on with start_line"));
    }
}
