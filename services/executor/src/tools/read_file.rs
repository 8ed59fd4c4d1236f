//! `read_file`: reads a text file or a range of its lines, with line numbers.

use domain::text::truncate_bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ExecutorTool, FileToolReply, ToolAction, ToolContext, parse_input,
    text::{BOM, FileText, describe_form},
};
use crate::workspace::explain_path_error;

/// Limits of an answer: lines, bytes, and bytes of one line.
const MAX_LINES: usize = 2000;
const MAX_SHOWN: usize = 50 * 1024;
const MAX_LINE: usize = 2000;
/// Limit of a file that is read, in bytes.
const MAX_READ: u64 = 16 * 1024 * 1024;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "read_file",
    description: "Reads a text file: its lines with their numbers, 2,000 lines or 50 kB at a time. Give start_line and \
                  end_line (from 1, both included) to read a part. The first line of the answer says which lines follow \
                  and how to read on, and names an encoding other than UTF-8 and line ends other than LF. The numbers are not part of \
                  the file.",
    schema: super::build_schema_once::<Input>(),
    read_only: true,
    run: ToolAction::Blocking(run_read_file),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Path relative to the workspace's root
    path: String,
    /// First line to read, from 1
    start_line: Option<i64>,
    /// Last line to read
    end_line: Option<i64>,
    /// Number of lines to read, instead of `end_line`
    limit: Option<i64>,
}

impl Input {
    /// Returns the first and last line to show, from 1, of a file with `total` lines.
    fn range(&self, total: usize) -> (usize, usize) {
        let number = |value: i64| usize::try_from(value).unwrap_or(0);
        let start = self.start_line.map_or(1, number).max(1);
        // Models use -1 for the last line, as in other tools.
        let end = self.end_line.filter(|end| *end > 0).map(number);
        let limit = self.limit.filter(|limit| *limit > 0).map(number);
        let end = end.or_else(|| Some(start.saturating_add(limit?) - 1));
        (start, end.unwrap_or(total).min(total))
    }
}

fn run_read_file(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let path = call.workspace.disk.existing(&input.path)?;
    let bytes = call
        .workspace
        .root()
        .read(&path, MAX_READ)
        .map_err(|error| explain_path_error(&path, &error))?;
    let name = path.display();
    let Some(file) = FileText::decode(&bytes) else {
        return Err(format!(
            "{name} is a binary file of {} bytes and cannot be shown.",
            bytes.len()
        ));
    };
    if git::is_lfs_pointer(&bytes) {
        let reason = call.workspace.git.lfs.reason_of(&bytes);
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(format!(
            "Git LFS keeps the content of {name}; here is only a pointer to it{reason}. Work without the content and leave the \
             file as it is."
        ));
    }
    let text = file.text.strip_prefix(BOM).unwrap_or(&file.text);
    let total = text.lines().count();
    if total == 0 {
        return Ok(format!("{name} is empty.").into());
    }
    let (start, end) = input.range(total);
    if start > end {
        return Err(format!(
            "{name} has {total} lines; there are no lines from {start} to {end}."
        ));
    }
    let form = describe_form(&file).map_or_else(String::new, |form| format!("; {form}"));
    let ShownLines {
        body,
        last,
        is_truncated,
    } = render_lines(text, start, end);
    let more = if last < end {
        format!("; read on with start_line = {}", last + 1)
    } else {
        String::new()
    };
    Ok(FileToolReply {
        text: format!("{name} (lines {start}-{last} of {total}{more}{form})\n{body}"),
        truncated: last < end || is_truncated,
    })
}

/// Lines as the answer shows them.
struct ShownLines {
    body: String,
    /// Number of the last line.
    last: usize,
    /// True if a line is shortened.
    is_truncated: bool,
}

/// Renders lines with their numbers.
fn render_lines(text: &str, start: usize, end: usize) -> ShownLines {
    let (mut body, mut last, mut is_truncated) = (String::new(), start - 1, false);
    let lines = text.lines().enumerate().skip(start - 1).take(end + 1 - start);
    for (at, line) in lines.take(MAX_LINES) {
        let head = truncate_bytes(line, MAX_LINE);
        if body.len() + head.len() + 8 > MAX_SHOWN {
            break;
        }
        body.push_str(&format!("{:>6} {head}", at + 1));
        if head.len() < line.len() {
            body.push_str(&format!(
                " [{} more bytes of this line left out]",
                line.len() - head.len()
            ));
            is_truncated = true;
        }
        body.push('\n');
        last = at + 1;
    }
    if is_truncated {
        body.push_str("[long lines are cut; see a part with run_command: cut -c, jq, or grep -o]\n");
    }
    ShownLines {
        body,
        last,
        is_truncated,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn line_range_is_shown_with_header() {
        let world = World::new();
        let text = world
            .run(
                "read_file",
                &json!({ "path": "shop/cart.py", "start_line": 2, "end_line": 2 }),
            )
            .unwrap();
        assert_eq!(text, "shop/cart.py (lines 2-2 of 6)\n     2     return 0\n");
    }

    #[test]
    fn unreadable_path_error_names_remedy() {
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
    fn similar_names_are_offered_for_wrong_path() {
        let world = World::new();
        for path in [
            "shop/carts.py",
            "Shop/Cart.py",
            "shop/cart.py ",
            "cart.pyy",
            "/workspace/shop/cart.py",
        ] {
            let error = world.run("read_file", &json!({ "path": path })).unwrap_err();
            assert!(error.contains("shop/cart.py"), "{path}: {error}");
            assert!(
                error.contains("similar names") || error.contains("Did you mean"),
                "{path}: {error}"
            );
        }
        // Models write one character for a letter with its accent; file systems may hold two.
        let root = world.call.workspace.root();
        root.write("shop/bu\u{308}cher-u\u{308}bersicht.py".as_ref(), b"x = 1\n")
            .unwrap();
        let error = world
            .run(
                "read_file",
                &json!({ "path": "shop/b\u{fc}cher-\u{fc}bersichten.py" }),
            )
            .unwrap_err();
        assert!(error.contains("bu\u{308}cher-u\u{308}bersicht.py"), "{error}");
        let error = world
            .run("read_file", &json!({ "path": "/etc/hosts" }))
            .unwrap_err();
        assert!(!error.contains("Did you mean"), "{error}");
    }

    #[test]
    fn encoding_and_line_ends_are_named() {
        let world = World::new();
        for (bytes, shown) in [
            (
                b"# Caf\xe9\nprice = 5\n".as_slice(),
                "f (lines 1-2 of 2; windows-1252, detected)\n     1 # Caf\u{e9}\n     2 price = 5\n",
            ),
            (
                b"\xef\xbb\xbfa\r\nb\r\n".as_slice(),
                "f (lines 1-2 of 2; UTF-8 with a byte order mark; lines end with CRLF)\n     1 a\n     2 b\n",
            ),
            (
                b"\xff\xfea\0\n\0".as_slice(),
                "f (lines 1-1 of 1; UTF-16LE with a byte order mark)\n     1 a\n",
            ),
        ] {
            world.call.workspace.root().write("f".as_ref(), bytes).unwrap();
            assert_eq!(world.run("read_file", &json!({ "path": "f" })).unwrap(), shown);
        }
        let mixed = b"caf\xc3\xa9 caf\xe9\n";
        world.call.workspace.root().write("f".as_ref(), mixed).unwrap();
        let text = world.run("read_file", &json!({ "path": "f" })).unwrap();
        assert!(
            text.contains("not valid UTF-8") && text.contains("caf\u{e9} caf\u{fffd}"),
            "{text}"
        );
    }

    #[test]
    fn long_file_is_truncated_with_hint() {
        let world = World::new();
        let root = world.call.workspace.root();
        root.write("long".as_ref(), &b"0123456789\n".repeat(50_000))
            .unwrap();
        root.write("wide".as_ref(), "é".repeat(15_000_000 / 2).as_bytes())
            .unwrap();
        let text = world.run("read_file", &json!({ "path": "long" })).unwrap();
        assert!(
            text.starts_with("long (lines 1-2000 of 50000; read on with start_line = 2001)\n     1 0123"),
            "{}",
            &text[..80]
        );
        assert!(text.len() < 52 * 1024);
        let rest = world
            .run(
                "read_file",
                &json!({ "path": "long", "start_line": 49_999, "end_line": -1 }),
            )
            .unwrap();
        assert!(rest.starts_with("long (lines 49999-50000 of 50000)\n"), "{rest}");
        let some = world
            .run("read_file", &json!({ "path": "long", "offset": 5, "limit": 2 }))
            .unwrap();
        assert!(some.starts_with("long (lines 5-6 of 50000)\n"), "{some}");
        let text = world.run("read_file", &json!({ "path": "wide" })).unwrap();
        assert!(
            text.len() < 3000 && text.contains("more bytes of this line left out"),
            "{}",
            text.len()
        );
    }
}
