//! `edit_file`: SEARCH/REPLACE blocks, all or nothing.

use serde::Deserialize;

use super::{Call, Run, Tool, object, parse, syntax, text_of};
use crate::workspace::explain;

const SEARCH: &str = "<<<<<<< SEARCH";
const DIVIDER: &str = "=======";
const REPLACE: &str = ">>>>>>> REPLACE";

pub(super) const TOOL: Tool = Tool {
    name: "edit_file",
    description: "Changes parts of an existing file. `edits` holds one or more blocks, each:\n<<<<<<< SEARCH\nlines as \
                  they are now\n=======\nlines as they shall be\n>>>>>>> REPLACE\nThe searched lines must occur exactly \
                  once (differences in leading and trailing white space are forgiven); add surrounding lines until they do. Either \
                  every block applies or the file stays as it is.",
    schema: || {
        let properties = [
            ("path", "string", "Path relative to the workspace's root"),
            ("edits", "string", "SEARCH/REPLACE blocks, applied in order"),
            (
                "force",
                "boolean",
                "Keep the change even if the file can no longer be parsed",
            ),
        ];
        object(&properties, 2)
    },
    read_only: false,
    run: Run::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    edits: String,
    #[serde(default)]
    force: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Block<'a> {
    search: Vec<&'a str>,
    replace: Vec<&'a str>,
}

fn run(call: &Call, input: &str) -> Result<String, String> {
    let input: Input = parse(input)?;
    let path = call.workspace.existing(&input.path)?;
    let text = text_of(call, &path)?;
    let blocks = read_blocks(&input.edits)?;
    let edited =
        apply(&text, &blocks).map_err(|why| format!("{}: {why} The file is unchanged.", path.display()))?;
    if edited == text {
        return Err(format!("{}: the edits change nothing.", path.display()));
    }
    let unchecked = if input.force {
        String::new()
    } else {
        syntax::check(call, &path, Some(&text), &edited)?
    };
    call.workspace
        .root()
        .write(&path, edited.as_bytes())
        .map_err(|error| explain(&path, &error))?;
    Ok(format!(
        "Edited {} ({} block(s)).{unchecked}",
        path.display(),
        blocks.len()
    ))
}

fn read_blocks(edits: &str) -> Result<Vec<Block<'_>>, String> {
    let mut blocks = Vec::new();
    let mut lines = edits.lines();
    while let Some(line) = lines.next() {
        if line.trim_end() != SEARCH {
            continue;
        }
        let search = until(&mut lines, DIVIDER)?;
        let replace = until(&mut lines, REPLACE)?;
        blocks.push(Block { search, replace });
    }
    if blocks.is_empty() {
        return Err(format!(
            "`edits` has no block. Each starts with a line {SEARCH:?}."
        ));
    }
    Ok(blocks)
}

fn until<'a>(lines: &mut impl Iterator<Item = &'a str>, end: &str) -> Result<Vec<&'a str>, String> {
    let mut found = Vec::new();
    for line in lines {
        if line.trim_end() == end {
            return Ok(found);
        }
        found.push(line);
    }
    Err(format!("A block in `edits` lacks its line {end:?}."))
}

fn apply(text: &str, blocks: &[Block<'_>]) -> Result<String, String> {
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (number, block) in blocks.iter().enumerate() {
        let place = locate(&lines, block).map_err(|why| format!("block {}: {why}", number + 1))?;
        let shift = indentation_shift(&lines[place..], &block.search);
        let new: Vec<String> = block.replace.iter().map(|line| shift.apply(line)).collect();
        lines.splice(place..place + block.search.len(), new);
    }
    let mut edited = lines.join(ending);
    if !lines.is_empty() && (text.ends_with('\n') || text.is_empty()) {
        edited.push_str(ending);
    }
    Ok(edited)
}

/// Whether a line is the one that was wanted.
type Rule = fn(&str, &str) -> bool;

/// The one line at which the searched lines start: exactly, else up to white space at both ends.
fn locate(lines: &[String], block: &Block<'_>) -> Result<usize, String> {
    let search = &block.search;
    if search.is_empty() {
        return if lines.is_empty() {
            Ok(0)
        } else {
            Err("the SEARCH part is empty. Name the lines to replace.".to_owned())
        };
    }
    match places(lines, search).as_slice() {
        [] => {}
        [place] => return Ok(*place),
        places => {
            let shown: Vec<String> = places
                .iter()
                .take(5)
                .map(|place| (place + 1).to_string())
                .collect();
            let count = places.len();
            return Err(format!(
                "the SEARCH part occurs {count} times (lines {}). Add surrounding lines until it occurs once.",
                shown.join(", ")
            ));
        }
    }
    Err(format!(
        "the SEARCH part does not occur. {}",
        nearest(lines, search)
    ))
}

/// Where the lines occur: exactly, else with other white space at line ends, else with other indentation.
pub(super) fn places(lines: &[String], search: &[&str]) -> Vec<usize> {
    let exact = |line: &str, wanted: &str| line == wanted;
    let trailing = |line: &str, wanted: &str| line.trim_end() == wanted.trim_end();
    let loose = |line: &str, wanted: &str| line.trim() == wanted.trim();
    let rules: [Rule; 3] = [exact, trailing, loose];
    let mut found = Vec::new();
    for same in rules {
        let matches = |window: &[String]| window.iter().zip(search).all(|(line, wanted)| same(line, wanted));
        found = (0..=lines.len().saturating_sub(search.len()))
            .filter(|start| lines.get(*start..*start + search.len()).is_some_and(matches))
            .collect();
        if !found.is_empty() {
            break;
        }
    }
    found
}

/// The part of the file that looks most like what was searched.
pub(super) fn nearest(lines: &[String], search: &[&str]) -> String {
    let score = |start: usize| -> usize {
        let window = lines.iter().skip(start).take(search.len());
        window
            .zip(search)
            .map(|(line, wanted)| similar_bytes(line.trim(), wanted.trim()))
            .sum()
    };
    let best = (0..lines.len().min(20_000)).max_by_key(|start| (score(*start), usize::MAX - start));
    let Some(best) = best.filter(|start| score(*start) > 0) else {
        return "Read the file again.".to_owned();
    };
    let end = (best + search.len().clamp(1, 20)).min(lines.len());
    let shown: Vec<String> = (best..end)
        .map(|at| format!("{:>5} {}", at + 1, lines[at]))
        .collect();
    format!("The nearest text is:\n{}\n", shown.join("\n"))
}

/// Bytes in common at both ends: cheap, and enough to find the place that was meant.
fn similar_bytes(line: &str, wanted: &str) -> usize {
    let same = |a: &mut dyn Iterator<Item = (u8, u8)>| a.take_while(|(a, b)| a == b).count();
    let front = same(&mut line.bytes().zip(wanted.bytes()));
    let back = same(&mut line.bytes().rev().zip(wanted.bytes().rev()));
    (front + back).min(line.len()).min(wanted.len())
}

/// What to do to replacing lines when the searched ones were found with another indentation.
enum Shift<'a> {
    Add(&'a str),
    Remove(&'a str),
}

impl Shift<'_> {
    fn apply(&self, line: &str) -> String {
        match self {
            Self::Add(_) if line.trim().is_empty() => line.to_owned(),
            Self::Add(indent) => format!("{indent}{line}"),
            Self::Remove(indent) => line.strip_prefix(indent).unwrap_or(line).to_owned(),
        }
    }
}

fn indentation_shift<'a>(lines: &'a [String], search: &[&'a str]) -> Shift<'a> {
    let pair = search
        .iter()
        .zip(lines)
        .find(|(wanted, _)| !wanted.trim().is_empty());
    let Some((wanted, line)) = pair else {
        return Shift::Add("");
    };
    let indent = |text: &'a str| &text[..text.len() - text.trim_start().len()];
    let (wanted, found) = (indent(wanted), indent(line));
    if let Some(missing) = found.strip_suffix(wanted) {
        Shift::Add(missing)
    } else {
        Shift::Remove(wanted.strip_suffix(found).unwrap_or(""))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    fn block(search: &str, replace: &str) -> String {
        format!("<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n")
    }

    fn edit(world: &World, edits: &str) -> Result<String, String> {
        world.run("edit_file", &json!({ "path": "shop/cart.py", "edits": edits }))
    }

    #[test]
    fn a_block_replaces_the_lines_it_names() {
        let world = World::new();
        edit(
            &world,
            &block(
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
    fn another_indentation_is_forgiven_and_kept_right() {
        let world = World::new();
        let edits = block(
            "  def count(items):\n      return 0",
            "  def count(items):\n      return len(items)",
        );
        edit(&world, &edits).unwrap();
        assert!(
            world
                .file("shop/cart.py")
                .ends_with("\ndef count(items):\n    return len(items)\n")
        );
    }

    #[test]
    fn lines_that_occur_twice_are_refused_with_their_places() {
        let world = World::new();
        let error = edit(&world, &block("    return 0", "    return 1")).unwrap_err();
        assert!(error.contains("2 times (lines 2, 6)"), "{error}");
    }

    #[test]
    fn missing_lines_are_answered_with_the_nearest_text() {
        let world = World::new();
        let error = edit(&world, &block("def counts(items):", "x")).unwrap_err();
        assert!(
            error.contains("    5 def count(items):") && error.contains("unchanged"),
            "{error}"
        );
    }

    #[test]
    fn one_block_that_fails_leaves_the_file_as_it_was() {
        let world = World::new();
        let before = world.file("shop/cart.py");
        let edits = block("def total(items):", "def sum(items):") + &block("nothing like it", "x");
        assert!(edit(&world, &edits).unwrap_err().contains("block 2"));
        assert_eq!(world.file("shop/cart.py"), before);
    }

    #[test]
    fn malformed_blocks_say_what_is_missing() {
        let world = World::new();
        assert!(edit(&world, "return 1").unwrap_err().contains("<<<<<<< SEARCH"));
        assert!(
            edit(&world, "<<<<<<< SEARCH\na\n")
                .unwrap_err()
                .contains("=======")
        );
        assert!(
            edit(&world, "<<<<<<< SEARCH\na\n=======\nb\n")
                .unwrap_err()
                .contains(">>>>>>> REPLACE")
        );
    }

    #[test]
    fn lines_can_be_deleted_and_windows_line_ends_stay() {
        let world = World::new();
        world
            .call
            .workspace
            .root()
            .write("shop/cart.py".as_ref(), b"a\r\nb\r\nc")
            .unwrap();
        edit(&world, "<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE").unwrap();
        assert_eq!(world.file("shop/cart.py"), "a\r\nc");
    }

    #[test]
    fn a_change_after_which_the_file_cannot_be_parsed_is_kept_only_by_force() {
        let world = World::new();
        let edits = block("def total(items):", "def total(items:");
        let error = edit(&world, &edits).unwrap_err();
        assert!(error.contains("line 1") && error.contains("force"), "{error}");
        assert!(world.file("shop/cart.py").starts_with("def total(items):\n"));
        let forced = json!({ "path": "shop/cart.py", "edits": edits, "force": true });
        world.run("edit_file", &forced).unwrap();
        assert!(world.file("shop/cart.py").starts_with("def total(items:\n"));
    }

    #[test]
    fn a_part_of_a_path_that_names_one_file_is_enough() {
        let world = World::new();
        let edits = block("def total(items):", "def sum(items):");
        world
            .run("edit_file", &json!({ "path": "cart.py", "edits": edits }))
            .unwrap();
        assert!(world.file("shop/cart.py").starts_with("def sum"));
    }

    proptest::proptest! {
        #[test]
        fn edits_never_panic_and_change_nothing_outside_their_block(
            lines in proptest::collection::vec("[ab ]{0,3}", 0..12),
            search in proptest::collection::vec("[ab ]{0,3}", 1..4),
            replace in proptest::collection::vec("[ab ]{0,3}", 0..4),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let search: Vec<&str> = search.iter().map(String::as_str).collect();
            let replace: Vec<&str> = replace.iter().map(String::as_str).collect();
            let block = super::Block { search: search.clone(), replace: replace.clone() };
            if let Ok(edited) = super::apply(&text, &[block]) {
                let before = text.lines().count();
                proptest::prop_assert_eq!(edited.lines().count(), before - search.len() + replace.len());
            }
        }
    }
}
