//! `write_file`: writes a whole file.

use std::{io, path::Path};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ExecutorTool, FileToolReply, MAX_TEXT, ToolAction, ToolContext, encode_text, parse_input, syntax,
    text::{FileText, describe_form, keep_form, list_form_changes},
};
use crate::workspace::explain_path_error;

/// Form of an existing file: its encoding, byte order mark and line ends.
const KEEP: &str = "keep";
/// Form of the content: UTF-8, with its own byte order mark and line ends.
pub(super) const AS_GIVEN: &str = "as_given";

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "write_file",
    description: "Writes a whole file, new or in place of what was there. Missing folders are made. To change a part \
                  of an existing file use edit_file. A content that would change the encoding, the byte order mark or the \
                  line ends of a file is refused, unless `format` says what you want.",
    schema: super::build_schema_once::<Input>(),
    read_only: false,
    run: ToolAction::Blocking(run_write_file),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Path relative to the workspace's root
    path: String,
    /// The file's whole content
    content: String,
    /// Keep the file even if it cannot be parsed
    #[serde(default)]
    force: bool,
    /// For an existing file: `keep` writes in its encoding and with its line ends, `as_given` as UTF-8 with those of the content
    format: Option<String>,
}

/// Form in which an existing file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteForm {
    Keep,
    AsGiven,
}

impl WriteForm {
    fn parse(name: &str) -> Result<Self, String> {
        match name.trim() {
            KEEP => Ok(Self::Keep),
            AS_GIVEN => Ok(Self::AsGiven),
            _ => Err(format!(
                "`format` must be {KEEP:?} or {AS_GIVEN:?}. Call the tool again with that."
            )),
        }
    }
}

fn run_write_file(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let path = call.workspace.disk.path_to_write(&input.path)?;
    if path == Path::new("") {
        return Err("The path is the workspace itself. Name a file in it.".to_owned());
    }
    call.workspace
        .refuse_lfs_content(&path, input.content.as_bytes())?;
    let form = input.format.as_deref().map(WriteForm::parse).transpose()?;
    let before = match call.workspace.root().read(&path, MAX_TEXT) {
        Ok(before) => Some(before),
        // A path that cannot be written fails below.
        Err(error) if error.kind() == io::ErrorKind::NotFound || form == Some(WriteForm::AsGiven) => None,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Err(explain_large_file(&path)),
        Err(error) => return Err(explain_path_error(&path, &error)),
    };
    let file = before.as_deref().and_then(FileText::decode);
    let bytes = match &before {
        Some(before) if !before.is_empty() && form != Some(WriteForm::AsGiven) => {
            build_bytes(&path, before, file.as_ref(), &input.content, form)?
        }
        Some(_) | None => input.content.clone().into_bytes(),
    };
    let unchecked = if input.force {
        String::new()
    } else {
        let before = file.as_ref().map(|file| file.text.as_str());
        syntax::check_syntax(call, &path, before, &input.content)?
    };
    call.workspace
        .root()
        .write(&path, &bytes)
        .map_err(|error| explain_path_error(&path, &error))?;
    call.workspace.scanner.note_written(&path);
    let written = FileText::decode(&bytes).as_ref().and_then(describe_form);
    let written = written.map_or_else(String::new, |form| format!("; {form}"));
    Ok(format!(
        "Wrote {} ({} lines{written}).{unchecked}",
        path.display(),
        input.content.lines().count()
    )
    .into())
}

fn explain_large_file(path: &Path) -> String {
    format!(
        "{} is larger than {} MiB, so its encoding, byte order mark and line ends are not known. Nothing was written. Change \
         a part of it with run_command, or call again with format: {AS_GIVEN:?} to replace the file by UTF-8 with the line \
         ends of the content.",
        path.display(),
        MAX_TEXT >> 20
    )
}

/// Returns the bytes of a content in place of those of an existing file.
///
/// # Errors
/// Returns a text for the model when the form of the file would change, or cannot be kept.
fn build_bytes(
    path: &Path,
    before: &[u8],
    file: Option<&FileText>,
    content: &str,
    form: Option<WriteForm>,
) -> Result<Vec<u8>, String> {
    let name = path.display();
    let Some(file) = file else {
        return Err(format!(
            "{name} is a binary file of {} bytes, and would become text. Nothing was written. If you want that, call again \
             with format: {AS_GIVEN:?}.",
            before.len()
        ));
    };
    if !file.is_reversible(before) {
        return Err(format!(
            "{name} has bytes that are not valid {}, which this content would lose. Nothing was written. Change its bytes \
             with run_command, or call again with format: {AS_GIVEN:?} to write the content as UTF-8.",
            file.encoding.name()
        ));
    }
    let changes = list_form_changes(file, content);
    if changes.is_empty() {
        return Ok(content.as_bytes().to_vec());
    }
    if form.is_none() {
        let shown = describe_form(file).unwrap_or_else(|| "UTF-8; lines end with LF".to_owned());
        return Err(format!(
            "{name} is: {shown}. This content would change its {}. Nothing was written. Call again with format: {KEEP:?} to \
             write the content in the form of the file, or with format: {AS_GIVEN:?} to change the form. To change a part, \
             use edit_file.",
            changes.join(" and ")
        ));
    }
    let kept = keep_form(&file.text, content).and_then(|kept| encode_text(file.encoding, &kept));
    kept.map_err(|why| format!("{name}: {why} Nothing was written."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::{MAX_TEXT, tests::World};

    #[test]
    fn large_file_is_replaced_on_request() {
        let world = World::new();
        let root = world.call.workspace.root();
        let line = b"a\r\n";
        let lines = usize::try_from(MAX_TEXT).unwrap() / line.len() + 1;
        let before = line.repeat(lines);
        root.write("f.txt".as_ref(), &before).unwrap();
        for form in [None, Some("keep")] {
            let input = json!({ "path": "f.txt", "content": "x\n", "format": form });
            let error = world.run("write_file", &input).unwrap_err();
            assert!(
                error.contains("16 MiB") && error.contains("Nothing was written"),
                "{error}"
            );
            assert_eq!(root.read("f.txt".as_ref(), u64::MAX).unwrap().len(), before.len());
        }
        let input = json!({ "path": "f.txt", "content": "x\n", "format": "as_given" });
        world.run("write_file", &input).unwrap();
        assert_eq!(world.file("f.txt"), "x\n");
    }

    #[test]
    fn folder_is_not_taken_for_new_file() {
        let world = World::new();
        let error = world
            .run("write_file", &json!({ "path": "shop", "content": "x" }))
            .unwrap_err();
        assert!(error.contains("not an ordinary file"), "{error}");
    }

    #[test]
    fn write_creates_file_and_folder() {
        let world = World::new();
        world
            .run(
                "write_file",
                &json!({ "path": "a/b/c.txt", "content": "hello\n" }),
            )
            .unwrap();
        assert_eq!(world.file("a/b/c.txt"), "hello\n");
    }

    #[test]
    fn form_of_file_changes_only_on_request() {
        let world = World::new();
        let root = world.call.workspace.root();
        let write = |content: &str, form: Option<&str>| {
            let input = json!({ "path": "f.txt", "content": content, "format": form });
            world.run("write_file", &input)
        };
        for (before, content, named, kept) in [
            (
                b"# Caf\xe9\nprice = 5\n".as_slice(),
                "# Caf\u{e9}\nprice = 7\n",
                "its encoding",
                b"# Caf\xe9\nprice = 7\n".as_slice(),
            ),
            (
                b"a\r\nb\r\n".as_slice(),
                "a\nc\n",
                "its line ends",
                b"a\r\nc\r\n".as_slice(),
            ),
            (
                b"a\nb\n".as_slice(),
                "a\r\nc\r\n",
                "its line ends",
                b"a\nc\n".as_slice(),
            ),
            (
                b"\xef\xbb\xbfa\n".as_slice(),
                "b\n",
                "its byte order mark",
                b"\xef\xbb\xbfb\n".as_slice(),
            ),
            (
                b"\xff\xfea\0\r\0\n\0".as_slice(),
                "b\n",
                "its encoding and line ends",
                b"\xff\xfeb\0\r\0\n\0".as_slice(),
            ),
        ] {
            root.write("f.txt".as_ref(), before).unwrap();
            let error = write(content, None).unwrap_err();
            assert!(
                error.contains(named) && error.contains("\"keep\"") && error.contains("\"as_given\""),
                "{error}"
            );
            assert_eq!(root.read("f.txt".as_ref(), 100).unwrap(), before);
            write(content, Some("keep")).unwrap();
            assert_eq!(root.read("f.txt".as_ref(), 100).unwrap(), kept);
            root.write("f.txt".as_ref(), before).unwrap();
            write(content, Some("as_given")).unwrap();
            assert_eq!(world.file("f.txt"), content);
        }
        assert!(
            write("a", Some("utf-8"))
                .unwrap_err()
                .contains("must be \"keep\"")
        );
    }

    #[test]
    fn text_replaces_unreadable_bytes_on_request() {
        let world = World::new();
        let root = world.call.workspace.root();
        for before in [b"a\0b".as_slice(), b"caf\xc3\xa9 caf\xe9\n"] {
            root.write("f.txt".as_ref(), before).unwrap();
            for form in [None, Some("keep")] {
                let input = json!({ "path": "f.txt", "content": "x\n", "format": form });
                let error = world.run("write_file", &input).unwrap_err();
                assert!(error.contains("as_given"), "{error}");
                assert_eq!(root.read("f.txt".as_ref(), 100).unwrap(), before);
            }
            let input = json!({ "path": "f.txt", "content": "x\n", "format": "as_given" });
            world.run("write_file", &input).unwrap();
            assert_eq!(world.file("f.txt"), "x\n");
        }
        root.write("f.txt".as_ref(), b"").unwrap();
        world
            .run("write_file", &json!({ "path": "f.txt", "content": "x\r\n" }))
            .unwrap();
        assert_eq!(world.file("f.txt"), "x\r\n");
    }

    #[test]
    fn links_are_never_written_through() {
        let world = World::new();
        for path in ["link", "out/x", "out"] {
            let error = world
                .run("write_file", &json!({ "path": path, "content": "x" }))
                .unwrap_err();
            assert!(error.contains("symbolic link"), "{path}: {error}");
        }
        assert_eq!(world.file("README.md"), "# Shop\n");
    }
}
