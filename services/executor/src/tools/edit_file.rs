//! `edit_file`: replaces parts of a file, completely or not at all.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ExecutorTool, FileToolReply, ToolAction, ToolContext,
    blocks::{self, DIVIDER, EditBlock},
    encode_text, parse_input,
    placeholders::stands_for_lines,
    read_text, syntax,
    text::{
        IndentRelations, LineSplice, MatchLocations, MatchStrictness, TextLines, find_locations,
        match_kept_lines, render_changes, render_nearest_text, render_numbered_lines, strip_numbers,
        strip_numbers_in,
    },
};
use crate::workspace::explain_path_error;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "edit_file",
    description: "Changes parts of an existing file. `edits` holds one or more blocks, each:\n<<<<<<< SEARCH\nlines as \
                  they are now\n=======\nreplacement lines\n>>>>>>> REPLACE\nThe searched lines must occur exactly \
                  once; add surrounding lines until they do. Differences in white space are forgiven where it is clear what \
                  is meant. Instead of `edits`, old_string and new_string replace one piece of text. Either every \
                  block applies or the file stays as it is. The answer shows the changed lines.",
    schema: super::build_schema_once::<Input>(),
    read_only: false,
    run: ToolAction::Blocking(run_edit_file),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Path relative to the workspace's root
    path: String,
    /// SEARCH/REPLACE blocks, applied in order
    #[schemars(extend("type" = "string"))]
    edits: Option<Value>,
    /// Instead of edits: text that occurs exactly once
    old_string: Option<String>,
    /// Replacement for `old_string`
    new_string: Option<String>,
    /// Replace every occurrence of `old_string`
    #[serde(default)]
    replace_all: bool,
    /// Keep the change even if the file can no longer be parsed
    #[serde(default)]
    force: bool,
}

/// Requested edit.
#[derive(Debug)]
enum FileEdit {
    Blocks(Vec<EditBlock>),
    Strings { old: String, new: String, all: bool },
}

/// Old and new lines of a replacement.
pub(super) type ReplacedLines = (Vec<String>, Vec<String>);

fn run_edit_file(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let edits = parse_edits(&input)?;
    let path = call.workspace.disk.existing(&input.path)?;
    let file = read_text(call, &path)?;
    let text = &file.text;
    let unchanged = |why: String| format!("{}: {why} The file is unchanged.", path.display());
    let before = TextLines::of(text);
    let mut after = before.clone();
    let mut notes = Vec::new();
    for (number, edit) in edits.iter().enumerate() {
        notes.extend(
            apply_edit(&mut after, edit).map_err(|why| unchanged(numbered_problem(&edits, number, &why)))?,
        );
    }
    let edited = after.join();
    if edited == *text {
        return Err(format!("{}: the edits change nothing.", path.display()));
    }
    let unchecked = if input.force {
        String::new()
    } else {
        syntax::check_syntax(call, &path, Some(text), &edited)?
    };
    let bytes = encode_text(file.encoding, &edited).map_err(unchanged)?;
    call.workspace.refuse_lfs_content(&path, &bytes)?;
    call.workspace
        .root()
        .write(&path, &bytes)
        .map_err(|error| explain_path_error(&path, &error))?;
    call.workspace.scanner.note_written(&path);
    notes.dedup();
    let (path, notes) = (path.display(), notes.concat());
    let shown = render_changes(before.texts(), after.texts());
    Ok(format!("Edited {path}. The changed lines now:\n{shown}{notes}{unchecked}").into())
}

fn numbered_problem(edits: &[FileEdit], number: usize, why: &str) -> String {
    match edits {
        [_] => why.to_owned(),
        _ => format!("edit {}: {why}", number + 1),
    }
}

/// Returns the edits of an input in either form.
fn parse_edits(input: &Input) -> Result<Vec<FileEdit>, String> {
    let strings = input.old_string.as_ref().zip(input.new_string.as_ref());
    match (&input.edits, strings) {
        (Some(Value::String(text)), None) => {
            Ok(vec![FileEdit::Blocks(blocks::parse_blocks(text, &input.path)?)])
        }
        (Some(Value::Array(list)), None) => {
            list.iter().map(|entry| parse_listed_edit(entry, input)).collect()
        }
        (None, Some((old, new))) => Ok(vec![FileEdit::Strings {
            old: old.clone(),
            new: new.clone(),
            all: input.replace_all,
        }]),
        (Some(_), Some(_)) => Err("Give either `edits`, or `old_string` and `new_string`.".to_owned()),
        (None, None) if input.old_string.is_some() => {
            Err("`new_string` is missing; an empty one deletes old_string.".to_owned())
        }
        (_, None) => Err("`edits` is missing: SEARCH/REPLACE blocks as one text.".to_owned()),
    }
}

/// Returns the path of an edit with the old and the new lines of each replacement.
///
/// # Errors
/// When the input is not a valid edit of a file.
pub(super) fn list_replacements(input: Value) -> Result<(String, Vec<ReplacedLines>), String> {
    let input: Input = parse_input(input)?;
    let split = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let mut replacements = Vec::new();
    for edit in parse_edits(&input)? {
        match edit {
            FileEdit::Strings { old, new, .. } => replacements.push((split(&old), split(&new))),
            FileEdit::Blocks(blocks) => {
                let readings = blocks.iter().filter_map(|block| block.readings().next());
                replacements.extend(readings.map(|(old, new)| (old.to_vec(), new.to_vec())));
            }
        }
    }
    Ok((input.path, replacements))
}

/// Parses an edit of a list: a block as text, or an object with the two strings.
fn parse_listed_edit(edit: &Value, input: &Input) -> Result<FileEdit, String> {
    if let Some(text) = edit.as_str() {
        return Ok(FileEdit::Blocks(blocks::parse_blocks(text, &input.path)?));
    }
    let string = |names: [&str; 4]| {
        names
            .iter()
            .find_map(|name| edit.get(name)?.as_str().map(str::to_owned))
    };
    let old = string(["old_string", "old_str", "search", "old_text"]);
    let new = string(["new_string", "new_str", "replace", "new_text"]);
    let (Some(old), Some(new)) = (old, new) else {
        return Err("Each entry of `edits` needs `old_string` and `new_string`.".to_owned());
    };
    let all = edit.get("replace_all").and_then(Value::as_bool);
    Ok(FileEdit::Strings {
        old,
        new,
        all: all.unwrap_or(input.replace_all),
    })
}

/// Applies one edit. Returns notes for the model about inexact matches.
fn apply_edit(lines: &mut TextLines, edit: &FileEdit) -> Result<Vec<String>, String> {
    match edit {
        FileEdit::Strings { old, new, all } => replace_text(lines, old, new, *all).map(Vec::from_iter),
        FileEdit::Blocks(blocks) => {
            let mut notes = Vec::new();
            for (number, block) in blocks.iter().enumerate() {
                let note = replace_lines(lines, block);
                notes.extend(note.map_err(|why| format!("block {}: {why}", number + 1))?);
            }
            Ok(notes)
        }
    }
}

fn replace_text(lines: &mut TextLines, old: &str, new: &str, all: bool) -> Result<Option<String>, String> {
    // The body has `\n` only; unchanged lines keep the line ends of the file.
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    let body = lines.body();
    if old.is_empty() {
        if !body.is_empty() {
            return Err("old_string is empty. Name the text to replace.".to_owned());
        }
        lines.become_body(&new);
        return Ok(None);
    }
    let at: Vec<usize> = body.match_indices(&old).map(|(at, _)| at).collect();
    match at.as_slice() {
        // The texts may differ in white space only, which the search by lines tolerates.
        [] if !all => replace_lines(lines, &EditBlock::plain(&old, &new)),
        [] => Err(describe_missing_text(lines, &old)),
        [_, _, ..] if !all => {
            let line = |at: &usize| body[..*at].matches('\n').count();
            Err(describe_ambiguity(
                "old_string",
                &at.iter().map(line).collect::<Vec<_>>(),
            ))
        }
        _ => {
            lines.become_body(&body.replace(&old, &new));
            Ok(None)
        }
    }
}

fn describe_missing_text(lines: &TextLines, wanted: &str) -> String {
    let wanted: Vec<String> = wanted.lines().map(str::to_owned).collect();
    let near = explain_escapes(lines, &wanted)
        .map_or_else(|| render_nearest_text(lines.texts(), &wanted), str::to_owned);
    format!("the text to replace does not occur. {near}")
}

fn describe_ambiguity(what: &str, at: &[usize]) -> String {
    let shown: Vec<String> = at.iter().take(5).map(|at| (at + 1).to_string()).collect();
    let more = if at.len() > shown.len() { ", ..." } else { "" };
    format!(
        "{what} occurs {} times (lines {}{more}). Add surrounding lines until it occurs once.",
        at.len(),
        shown.join(", ")
    )
}

fn replace_lines(lines: &mut TextLines, block: &EditBlock) -> Result<Option<String>, String> {
    let reading = select_reading(lines, block)?;
    let [at] = reading.places.at.as_slice() else {
        return Err(describe_ambiguity("the SEARCH part", &reading.places.at));
    };
    let by = reading.places.by;
    let new = rewrite_lines(lines, *at, &reading.search, &reading.replace, by)?;
    lines.splice(LineSplice {
        at: *at,
        count: reading.search.len(),
        new,
        ends: None,
    });
    let note = match by {
        MatchStrictness::Exact | MatchStrictness::TrailingSpace => "",
        MatchStrictness::Indentation => "[found with another indentation; check the lines above]\n",
        MatchStrictness::Typography => "[found with other quotes or dashes; check the lines above]\n",
    };
    let numbers = if reading.is_numbered {
        "[the line numbers of read_file were left out]\n"
    } else {
        ""
    };
    Ok(Some(format!("{numbers}{note}")).filter(|notes| !notes.is_empty()))
}

/// Searched and replacing lines of a block, with the locations of the searched ones.
struct BlockReading<'a> {
    search: Cow<'a, [String]>,
    replace: Cow<'a, [String]>,
    places: MatchLocations,
    /// True if copied line numbers were removed.
    is_numbered: bool,
}

/// Returns the only division of a block whose SEARCH part occurs in the file, with its locations.
fn select_reading<'a>(lines: &TextLines, block: &'a EditBlock) -> Result<BlockReading<'a>, String> {
    let (mut found, mut first) = (Vec::new(), None);
    for (search, replace) in block.readings() {
        let reading = |places| BlockReading {
            search: Cow::Borrowed(search),
            replace: Cow::Borrowed(replace),
            places,
            is_numbered: false,
        };
        if search.is_empty() && lines.texts().is_empty() {
            return Ok(reading(MatchLocations {
                at: vec![0],
                by: MatchStrictness::Exact,
            }));
        }
        first.get_or_insert(search);
        found.extend(find_locations(lines.texts(), search)?.map(reading));
    }
    if found.is_empty() {
        for (search, replace) in block.readings() {
            found.extend(read_without_numbers(lines, search, replace)?);
        }
    }
    if found.len() > 1 {
        return Err(format!(
            "it has several lines {DIVIDER:?}, and it is not clear which one divides it. Give old_string and new_string instead."
        ));
    }
    found
        .pop()
        .ok_or_else(|| describe_missing_lines(lines, first.unwrap_or_default()))
}

/// Reads a block whose lines begin with the numbers that `read_file` shows; `None` when they do not, or when
/// the lines do not occur without them.
fn read_without_numbers<'a>(
    lines: &TextLines,
    search: &[String],
    replace: &[String],
) -> Result<Option<BlockReading<'a>>, String> {
    let Some(numbered) = strip_numbers(search) else {
        return Ok(None);
    };
    let Some(mut places) = find_locations(lines.texts(), &numbered.texts)? else {
        return Ok(None);
    };
    let named = numbered.first - 1;
    if places.at.contains(&named) {
        places.at = vec![named];
    } else if search.len() == 1 {
        // One number at another place proves nothing.
        return Ok(None);
    }
    let range = numbered.first..numbered.first + search.len() + replace.len();
    Ok(Some(BlockReading {
        replace: Cow::Owned(strip_numbers_in(replace, &range)),
        search: Cow::Owned(numbered.texts),
        places,
        is_numbered: true,
    }))
}

fn describe_missing_lines(lines: &TextLines, search: &[String]) -> String {
    if search.is_empty() {
        return "the SEARCH part is empty. Name the lines to replace.".to_owned();
    }
    if let Some(line) = search.iter().find(|line| stands_for_lines(line)) {
        return format!(
            "the SEARCH part leaves lines out ({:?}). Give every line from the first to the last, or use one block for each \
             place.",
            line.trim()
        );
    }
    if let Some(advice) = explain_escapes(lines, search) {
        return format!("the SEARCH part does not occur. {advice}");
    }
    format!(
        "the SEARCH part does not occur. {}",
        render_nearest_text(lines.texts(), search)
    )
}

/// Returns advice if a text occurs as soon as its escapes, such as the two characters `\n`, are line breaks.
fn explain_escapes(lines: &TextLines, wanted: &[String]) -> Option<&'static str> {
    let whole = wanted.join("\n");
    if !whole.contains(r"\n") {
        return None;
    }
    let unescaped = whole
        .replace(r"\n", "\n")
        .replace(r"\t", "\t")
        .replace("\\\"", "\"");
    let wanted_lines: Vec<String> = unescaped.lines().map(str::to_owned).collect();
    let found = find_locations(lines.texts(), &wanted_lines).ok().flatten();
    found.map(|_| {
        "It occurs with line breaks in place of the two characters `\\n`: the text is escaped twice. Give line breaks, in \
         the replacement too."
    })
}

/// Returns the replacing lines: unchanged ones as in the file, new ones with the file's indentation.
fn rewrite_lines(
    lines: &TextLines,
    at: usize,
    search: &[String],
    replace: &[String],
    by: MatchStrictness,
) -> Result<Vec<String>, String> {
    let found = &lines.texts()[at..at + search.len()];
    let kept = match_kept_lines(search, replace);
    let is_new = kept.iter().map(Option::is_none);
    let fresh: Vec<String> = replace
        .iter()
        .zip(is_new)
        .filter(|(_, is_new)| *is_new)
        .map(|(line, _)| line.clone())
        .collect();
    let fresh = match by {
        MatchStrictness::Exact | MatchStrictness::TrailingSpace => fresh,
        MatchStrictness::Indentation | MatchStrictness::Typography => {
            let starts_new = kept.first().is_some_and(Option::is_none);
            IndentRelations::of(search, found).apply(&fresh, starts_new).ok_or_else(|| {
                format!(
                    "the indentation of the block differs from the file's, and it is not clear how the new lines should be indented. \
                     Give the lines exactly as the file has them:\n{}",
                    render_numbered_lines(lines.texts(), at..at + search.len())
                )
            })?
        }
    };
    let mut fresh = fresh.into_iter();
    let line = |kept: Option<usize>| kept.map(|at| found[at].clone()).or_else(|| fresh.next());
    Ok(kept.into_iter().filter_map(line).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::{MIXED_LINE_ENDS, MIXED_LINE_WORDS, World, git_diff, one_line_changed};

    fn format_edit_block(search: &str, replace: &str) -> String {
        format!("<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n")
    }

    fn call_edit_file(world: &World, edits: &str) -> Result<String, String> {
        world.run("edit_file", &json!({ "path": "shop/cart.py", "edits": edits }))
    }

    #[test]
    fn a_block_replaces_the_lines_it_names() {
        let world = World::new();
        call_edit_file(
            &world,
            &format_edit_block(
                "def total(items):\n    return 0",
                "def total(items):\n    return sum(items)",
            ),
        )
        .unwrap();
        assert_eq!(
            world.file("shop/cart.py"),
            "def total(items):\n    return sum(items)\n\n\ndef count(items):\n    return 0\n"
        );
    }

    #[test]
    fn twice_escaped_line_breaks_are_named() {
        for all in [false, true] {
            let input = json!({ "old_string": r"a\nb", "new_string": r"a\nc", "replace_all": all });
            let error = edit_file_text("a\nb\n", &input).unwrap_err();
            assert!(error.contains("escaped twice"), "{error}");
        }
        // A text that has the two characters itself is edited as usual.
        let input = json!({ "old_string": r"'a\nb'", "new_string": r"'a\nc'" });
        let (text, _) = edit_file_text("x = 'a\\nb'\n", &input).unwrap();
        assert_eq!(text, "x = 'a\\nc'\n");
        let input = json!({ "old_string": r"q\nr", "new_string": "x" });
        let error = edit_file_text("a\nb\n", &input).unwrap_err();
        assert!(!error.contains("escaped twice"), "{error}");
    }

    #[test]
    fn another_indentation_is_forgiven_and_kept_right() {
        let world = World::new();
        let edits = format_edit_block(
            "  def count(items):\n      return 0",
            "  def count(items):\n      return len(items)",
        );
        call_edit_file(&world, &edits).unwrap();
        assert!(
            world
                .file("shop/cart.py")
                .ends_with("\ndef count(items):\n    return len(items)\n")
        );
    }

    #[test]
    fn repeated_search_lines_are_refused() {
        let world = World::new();
        let error = call_edit_file(&world, &format_edit_block("    return 0", "    return 1")).unwrap_err();
        assert!(error.contains("2 times (lines 2, 6)"), "{error}");
    }

    #[test]
    fn missing_search_lines_show_nearest_text() {
        let world = World::new();
        let error = call_edit_file(&world, &format_edit_block("def counts(items):", "x")).unwrap_err();
        assert!(
            error.contains("    5 def count(items):") && error.contains("unchanged"),
            "{error}"
        );
    }

    #[test]
    fn failing_block_leaves_file_unchanged() {
        let world = World::new();
        let before = world.file("shop/cart.py");
        let edits = format_edit_block("def total(items):", "def sum(items):")
            + &format_edit_block("nothing like it", "x");
        assert!(call_edit_file(&world, &edits).unwrap_err().contains("block 2"));
        assert_eq!(world.file("shop/cart.py"), before);
    }

    #[test]
    fn malformed_blocks_name_missing_part() {
        let world = World::new();
        assert!(
            call_edit_file(&world, "return 1")
                .unwrap_err()
                .contains("<<<<<<< SEARCH")
        );
        assert!(
            call_edit_file(&world, "<<<<<<< SEARCH\na\n")
                .unwrap_err()
                .contains("=======")
        );
        assert!(
            call_edit_file(&world, "<<<<<<< SEARCH\na\n=======\nb\n")
                .unwrap_err()
                .contains(">>>>>>> REPLACE")
        );
    }

    #[test]
    fn edit_deletes_lines_keeps_crlf() {
        let world = World::new();
        world
            .call
            .workspace
            .root()
            .write("shop/cart.py".as_ref(), b"a\r\nb\r\nc")
            .unwrap();
        call_edit_file(&world, "<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE").unwrap();
        assert_eq!(world.file("shop/cart.py"), "a\r\nc");
    }

    #[test]
    fn copied_line_numbers_are_left_out() {
        let world = World::new();
        // The number selects one of two equal lines.
        let edit =
            json!({ "path": "shop/cart.py", "old_string": "2     return 0", "new_string": "    return 1" });
        world.run("edit_file", &edit).unwrap();
        assert!(
            world
                .file("shop/cart.py")
                .starts_with("def total(items):\n    return 1\n")
        );
        let edits = format_edit_block(
            "     5 def count(items):\n     6     return 0",
            "     5 def count(items):\n     6     return len(items)",
        );
        let text = call_edit_file(&world, &edits).unwrap();
        assert!(text.contains("line numbers of read_file were left out"), "{text}");
        assert!(
            world
                .file("shop/cart.py")
                .ends_with("\n\ndef count(items):\n    return len(items)\n")
        );
        let wrong = json!({ "path": "shop/cart.py", "old_string": "3     return 1", "new_string": "x" });
        assert!(
            world
                .run("edit_file", &wrong)
                .unwrap_err()
                .contains("does not occur")
        );
    }

    #[test]
    fn left_out_lines_are_refused_with_way() {
        let world = World::new();
        let elided = format_edit_block(
            "def total(items):\n    return 0",
            "def total(items):\n    # ... existing code ...",
        );
        let error = call_edit_file(&world, &elided).unwrap_err();
        assert!(error.contains("stands for lines that you left out"), "{error}");
        for search in [
            "def total(items):\n    ...\n    return 0",
            "def total(items):\n    # ... existing code ...",
        ] {
            let error = call_edit_file(&world, &format_edit_block(search, "x")).unwrap_err();
            assert!(error.contains("leaves lines out"), "{error}");
        }
        let error = world
            .run(
                "write_file",
                &json!({ "path": "new.py", "content": "def a():\n    # ... rest of the code ...\n" }),
            )
            .unwrap_err();
        assert!(error.contains("line 2"), "{error}");
        let patch = "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1,2 +1,2 @@\n def total(items):\n-    return 0\n+    # ... existing code ...\n";
        let error = world.run("apply_patch", &json!({ "patch": patch })).unwrap_err();
        assert!(error.contains("left out"), "{error}");
        assert_eq!(world.file("shop/cart.py").matches("return 0").count(), 2);
    }

    #[test]
    fn edit_stays_in_encoding_of_file() {
        let world = World::new();
        let root = world.call.workspace.root();
        let wide = |text: &str| -> Vec<u8> {
            let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        let japanese = |text: &str| encoding_rs::SHIFT_JIS.encode(text).0.into_owned();
        let note = "価格は税込みです。数量を確認してください。\r\nprice = 5\r\n";
        for (before, after) in [
            (
                b"# Caf\xe9\nprice = 5\n".to_vec(),
                b"# Caf\xe9\nprice = 7\n".to_vec(),
            ),
            (
                b"\xef\xbb\xbf# Caf\xc3\xa9\r\nprice = 5\r\n".to_vec(),
                b"\xef\xbb\xbf# Caf\xc3\xa9\r\nprice = 7\r\n".to_vec(),
            ),
            (wide("# é\r\nprice = 5\r\n"), wide("# é\r\nprice = 7\r\n")),
            (japanese(note), japanese(&note.replace('5', "7"))),
        ] {
            root.write("f.txt".as_ref(), &before).unwrap();
            let edit = json!({ "path": "f.txt", "old_string": "price = 5", "new_string": "price = 7" });
            world.run("edit_file", &edit).unwrap();
            assert_eq!(root.read("f.txt".as_ref(), 1000).unwrap(), after);
        }
        root.write("f.txt".as_ref(), b"# Caf\xe9\nprice = 5\n").unwrap();
        let edit = json!({ "path": "f.txt", "old_string": "price = 5", "new_string": "price = 価" });
        let error = world.run("edit_file", &edit).unwrap_err();
        assert!(
            error.contains("windows-1252") && error.contains("U+4FA1, line 2") && error.contains("as_given"),
            "{error}"
        );
        for bytes in [b"caf\xc3\xa9 caf\xe9\n".as_slice(), b"a\0b"] {
            root.write("f.txt".as_ref(), bytes).unwrap();
            let edit = json!({ "path": "f.txt", "old_string": "a", "new_string": "b" });
            let error = world.run("edit_file", &edit).unwrap_err();
            assert!(error.contains("with run_command"), "{error}");
        }
    }

    #[test]
    fn unparsable_edit_requires_force() {
        let world = World::new();
        let edits = format_edit_block("def total(items):", "def total(items:");
        let error = call_edit_file(&world, &edits).unwrap_err();
        assert!(error.contains("line 1") && error.contains("force"), "{error}");
        assert!(world.file("shop/cart.py").starts_with("def total(items):\n"));
        let forced = json!({ "path": "shop/cart.py", "edits": edits, "force": true });
        world.run("edit_file", &forced).unwrap();
        assert!(world.file("shop/cart.py").starts_with("def total(items:\n"));
    }

    #[test]
    fn unique_partial_path_is_accepted() {
        let world = World::new();
        let edits = format_edit_block("def total(items):", "def sum(items):");
        world
            .run("edit_file", &json!({ "path": "cart.py", "edits": edits }))
            .unwrap();
        assert!(world.file("shop/cart.py").starts_with("def sum"));
    }

    /// Applies an edit to a file with this text. Returns the new text and the answer.
    fn edit_file_text(before: &str, input: &serde_json::Value) -> Result<(String, String), String> {
        let world = World::new();
        world
            .call
            .workspace
            .root()
            .write("f.txt".as_ref(), before.as_bytes())
            .unwrap();
        let mut input = input.clone();
        input["path"] = "f.txt".into();
        let answer = world.run("edit_file", &input)?;
        Ok((world.file("f.txt"), answer))
    }

    #[test]
    fn listed_edit_replaces_every_occurrence() {
        let entry = json!({ "old_string": "a", "new_string": "x" });
        let mut every = entry.clone();
        every["replace_all"] = true.into();
        for input in [
            json!({ "edits": [every, { "old_string": "b", "new_string": "y" }] }),
            json!({ "edits": [entry], "replace_all": true }),
        ] {
            let (text, _) = edit_file_text("a = a\nb\n", &input).unwrap();
            assert!(text.starts_with("x = x\n"), "{input}: {text}");
        }
        let error = edit_file_text("a = a\nb\n", &json!({ "edits": [entry] })).unwrap_err();
        assert!(error.contains("2 times"), "{error}");
    }

    #[test]
    fn the_answer_shows_the_changed_lines_numbered() {
        let world = World::new();
        let text = call_edit_file(
            &world,
            &format_edit_block("def count(items):", "def number(items):"),
        )
        .unwrap();
        assert!(
            text.contains("     5 def number(items):\n     6     return 0\n"),
            "{text}"
        );
    }

    #[test]
    fn indentation_shift_must_fit_every_line() {
        let file = "class A:\n    def f(self):\n        return 0\n";
        for (search, replace, wanted) in [
            // Case: the first line lost its indentation.
            (
                "def f(self):\n        return 0",
                "def f(self):\n        x = 1\n        return x",
                Some("class A:\n    def f(self):\n        x = 1\n        return x\n"),
            ),
            // Case: two spaces instead of four.
            (
                "  def f(self):\n    return 0",
                "  def f(self):\n    if True:\n      return 1",
                Some("class A:\n    def f(self):\n        if True:\n            return 1\n"),
            ),
            // Case: no rule explains both lines.
            (
                "   def f(self):\n      return 0",
                "   def f(self):\n        return 1",
                None,
            ),
        ] {
            let result = edit_file_text(file, &json!({ "edits": format_edit_block(search, replace) }));
            match wanted {
                Some(wanted) => assert_eq!(result.unwrap().0, wanted),
                None => assert!(
                    result
                        .unwrap_err()
                        .contains("not clear how the new lines should be indented")
                ),
            }
        }
        let tabs = "func f() {\n\tx()\n}\n";
        let edits = format_edit_block(
            "func f() {\n    x()\n}",
            "func f() {\n    if y {\n        x()\n    }\n}",
        );
        let (text, _) = edit_file_text(tabs, &json!({ "edits": edits })).unwrap();
        assert_eq!(text, "func f() {\n\tif y {\n\t\tx()\n\t}\n}\n");
    }

    #[test]
    fn divider_like_content_is_resolved_or_refused() {
        let conflict = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\nd\n";
        let edits = format_edit_block("<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other", "c");
        assert_eq!(
            edit_file_text(conflict, &json!({ "edits": edits })).unwrap().0,
            "a\nc\nd\n"
        );
        let (title, other) = ("Title\n=======", "Other\n=======");
        let refused = edit_file_text(
            "Title\n=======\n",
            &json!({ "edits": format_edit_block(title, other) }),
        )
        .unwrap_err();
        assert!(refused.contains("Give old_string and new_string"), "{refused}");
        let strings = json!({ "old_string": title, "new_string": other });
        assert_eq!(
            edit_file_text("Title\n=======\n", &strings).unwrap().0,
            "Other\n=======\n"
        );
        let both = edit_file_text(
            "x\n=======\nx\n",
            &json!({ "edits": format_edit_block("x\n=======\nx", "y\n=======\ny") }),
        );
        assert!(both.is_err() || both.unwrap().0 == "y\n=======\ny\n");
    }

    #[test]
    fn edit_accepts_strings_lists_and_typography() {
        for (before, input, after) in [
            (
                "a = 1\nb = 2\n",
                json!({ "old_string": "1\nb", "new_string": "3\nc" }),
                "a = 3\nc = 2\n",
            ),
            (
                "a\r\nb\r\n",
                json!({ "old_string": "a\nb", "new_string": "a\nx\nb" }),
                "a\r\nx\r\nb\r\n",
            ),
            (
                "a\nb",
                json!({ "old_string": "b", "new_string": "b\n" }),
                "a\nb\n",
            ),
            (
                "a a\n",
                json!({ "old_string": "a", "new_string": "b", "replace_all": "true" }),
                "b b\n",
            ),
            (
                "a\nb\n",
                json!({ "edits": [{ "old_str": "a", "new_str": "x" }, { "search": "b", "replace": "y" }] }),
                "x\ny\n",
            ),
            (
                "a\nb\n",
                json!({ "edits": [format_edit_block("a", "x"), format_edit_block("b", "y")] }),
                "x\ny\n",
            ),
            (
                "\u{feff}a\nb\n",
                json!({ "edits": format_edit_block("a", "x") }),
                "\u{feff}x\nb\n",
            ),
            (
                "\u{201c}Hi\u{201d}\nend\n",
                json!({ "edits": format_edit_block("\"Hi\"\nend", "\"Hi\"\nthe end") }),
                "\u{201c}Hi\u{201d}\nthe end\n",
            ),
        ] {
            assert_eq!(edit_file_text(before, &input).unwrap().0, after, "{input}");
        }
        let twice = edit_file_text("a\na\n", &json!({ "old_string": "a", "new_string": "b" })).unwrap_err();
        assert!(twice.contains("2 times (lines 1, 2)"), "{twice}");
        let half = edit_file_text("a\n", &json!({ "old_string": "a" })).unwrap_err();
        assert!(half.contains("`new_string` is missing"), "{half}");
    }

    #[test]
    fn kept_lines_keep_mixed_line_ends() {
        let before = "a\r\nb\nc\r\nd\n";
        let (after, _) =
            edit_file_text(before, &json!({ "edits": format_edit_block("b\nc", "b\nx\nc") })).unwrap();
        assert_eq!(after, "a\r\nb\nx\nc\r\nd\n");
    }

    #[test]
    fn edit_keeps_other_bytes_of_mixed_lines() {
        let log = MIXED_LINE_ENDS;
        let whole = super::TextLines::of(log).texts().join("\r\n");
        for (word, other) in MIXED_LINE_WORDS {
            let block = format_edit_block(&whole, &whole.replacen(word, other, 1));
            for input in [
                json!({ "old_string": word, "new_string": other }),
                json!({ "edits": block }),
            ] {
                let (after, _) = edit_file_text(log, &input).unwrap();
                assert_eq!(after, log.replacen(word, other, 1), "{input}");
            }
        }
        let all = json!({ "old_string": "load", "new_string": "store", "replace_all": true });
        assert_eq!(edit_file_text(log, &all).unwrap().0, log.replace("load", "store"));
        let line = json!({ "edits": format_edit_block("load a", "load x\nload y") });
        assert_eq!(
            edit_file_text(log, &line).unwrap().0,
            log.replace("load a\n", "load x\nload y\n")
        );
    }

    #[test]
    fn missing_search_in_long_line_stays_short() {
        let error = edit_file_text(
            &"x".repeat(15_000_000),
            &json!({ "edits": format_edit_block("xy", "z") }),
        )
        .unwrap_err();
        assert!(error.len() < 2000, "{}", error.len());
    }

    /// Converts git's hunks into blocks, with the searched and the replacing lines of each.
    fn as_blocks(hunks: &str, slip: impl Fn(&str, bool) -> String) -> String {
        let side = |hunk: &str, sign: char| {
            let lines = hunk.lines().skip(1).filter(|line| line.starts_with([' ', sign]));
            lines
                .map(|line| slip(&line[1..], sign == '-'))
                .collect::<Vec<_>>()
        };
        let hunks = hunks.split("@@ -").filter(|hunk| !hunk.is_empty());
        hunks
            .map(|hunk| format_edit_block(&side(hunk, '-').join("\n"), &side(hunk, '+').join("\n")))
            .collect()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

        /// Property: blocks made of a git diff give the second text, or are refused as ambiguous.
        #[test]
        fn diff_blocks_apply_or_are_ambiguous(
            before in "(a\n|b\n|    c\n|\td\n|e f\n|g\n){2,12}",
            after in "(a\n|b\n|    c\n|\td\n|e f\n|g\n){1,12}",
            context in 1_usize..4,
        ) {
            let hunks = git_diff(&before, &after, context);
            if !hunks.is_empty() {
                let edits = as_blocks(&hunks, |line, _| line.to_owned());
                match edit_file_text(&before, &json!({ "edits": edits })) {
                    Ok((text, _)) => proptest::prop_assert_eq!(text, after),
                    Err(why) => proptest::prop_assert!(why.contains("times (lines"), "{why}"),
                }
            }
        }

        /// Property: a block with common mistakes gives the intended text or an error.
        #[test]
        fn sloppy_blocks_are_right_or_refused(
            kinds in proptest::collection::vec(0_usize..4, 3..12),
            at in 0_usize..12,
            indent in 0_usize..5,
            trailing in 0_usize..3,
            crlf in proptest::bool::ANY,
            is_first_bare in proptest::bool::ANY,
        ) {
            let (before, after) = one_line_changed(&kinds, at);
            let edits = as_blocks(&git_diff(&before, &after, 2), |line, is_searched| {
                let blanks = if is_searched { trailing } else { 0 };
                format!("{}{line}{}", " ".repeat(indent), " ".repeat(blanks))
            });
            let edits = if is_first_bare {
                // The first line of each part lost its indentation.
                let parts = edits.split_inclusive("SEARCH\n").map(|part| part.trim_start_matches(' '));
                let parts: String = parts.collect();
                parts.split_inclusive("=======\n").map(|part| part.trim_start_matches(' ')).collect()
            } else {
                edits
            };
            let edits = if crlf { edits.replace('\n', "\r\n") } else { edits };
            let is_plain = indent == 0 && !is_first_bare;
            match edit_file_text(&before, &json!({ "edits": edits })) {
                Ok((text, _)) => proptest::prop_assert_eq!(text, after),
                Err(why) => proptest::prop_assert!(!is_plain, "{why}"),
            }
        }

        #[test]
        fn edits_never_change_lines_outside_block(
            lines in proptest::collection::vec("[ab ]{0,3}", 0..12),
            search in proptest::collection::vec("[ab ]{0,3}", 1..4),
            replace in proptest::collection::vec("[ab ]{0,3}", 0..4),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let search: Vec<&str> = search.iter().map(String::as_str).collect();
            let replace: Vec<&str> = replace.iter().map(String::as_str).collect();
            let block = super::EditBlock::plain(&search.join("\n"), &replace.join("\n"));
            let mut edited = super::TextLines::of(&text);
            let (removed, added) = (search.join("\n").lines().count(), replace.join("\n").lines().count());
            if super::replace_lines(&mut edited, &block).is_ok() {
                let before = text.lines().count();
                proptest::prop_assert_eq!(edited.texts().len(), before - removed + added);
            }
        }
    }
}
