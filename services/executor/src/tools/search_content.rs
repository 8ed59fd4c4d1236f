//! `search_content`: finds lines that match a regular expression.

use std::{
    collections::BTreeSet,
    fs::{File, FileType},
    io,
    path::{Path, PathBuf},
};

use domain::cause::format_error_chain;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use retrieval::{AttributeRules, find_foreign_part};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, globs::GlobPatterns, parse_input};

/// Limits of matching lines: in total, and in one file.
const MAX_FOUND: usize = 300;
const MAX_IN_FILE: usize = 100;
/// Limit of a shown line in characters; the part around the match is shown.
const MAX_LINE: usize = 300;
/// Limit of all shown lines, in bytes.
const MAX_SHOWN: usize = 40 * 1024;
const MAX_CONTEXT: i64 = 10;
/// Limit of files that are named because the search in them failed.
const MAX_FAILED: usize = 10;
/// Limit of folders and files that are named because the search did not reach them.
const MAX_NAMED: usize = 5;
/// Limit of the `.gitattributes` of the root, in bytes.
const MAX_ATTRIBUTES: u64 = 64 * 1024;
// Limit in bytes for the memory of the search. A file with a longer line is not searched to its end.
const MAX_LONGEST: usize = 16 * 1024 * 1024;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "search_content",
    description: "Finds lines by a regular expression in all files that .gitignore does not name: `path:line: text` for \
                  each. Give file_pattern (a glob such as *.py) or path (a folder or file) to look in some files only, and \
                  context_lines to see the lines around.",
    schema: super::build_schema_once::<Input>(),
    read_only: true,
    run: ToolAction::Blocking(run_search_content),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Regular expression (Rust syntax: | ( ) without backslashes), matched within a line
    pattern: String,
    /// Glob pattern of the files to search
    file_pattern: Option<String>,
    /// Folder or file to search; absent: everywhere
    path: Option<String>,
    /// Lines to show before and after each match, at most 10
    context_lines: Option<i64>,
}

/// Files and context of a search.
struct SearchScope {
    folder: PathBuf,
    globs: Option<GlobPatterns>,
    context: usize,
}

/// Result of a search.
#[derive(Default)]
struct SearchMatches {
    lines: Vec<String>,
    bytes: usize,
    matches: usize,
    searched: usize,
    failed: Vec<String>,
    is_truncated: bool,
    /// True when all files were listed, and every one that is neither vendored nor generated was searched.
    has_own_files: bool,
    /// Vendored and generated files that the search did not reach.
    unreached: Vec<PathBuf>,
}

impl SearchMatches {
    fn is_full(&self) -> bool {
        self.matches >= MAX_FOUND || self.bytes >= MAX_SHOWN
    }
}

fn run_search_content(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let scope = SearchScope {
        folder: call
            .workspace
            .disk
            .existing(input.path.as_deref().unwrap_or_default())?,
        globs: input
            .file_pattern
            .as_deref()
            .map(|globs| GlobPatterns::new(call, globs))
            .transpose()?,
        context: usize::try_from(input.context_lines.unwrap_or(0).clamp(0, MAX_CONTEXT)).unwrap_or(0),
    };
    let pattern = input.pattern.as_str();
    let (mut found, mut note) = match compile_matcher(pattern) {
        Ok(regex) => (search_files(call, &scope, &regex), String::new()),
        Err(error) => match literal_matcher(pattern) {
            Some(regex) => (
                search_files(call, &scope, &regex),
                format!("[{pattern:?} is not a regular expression ({error}); searched as plain text]\n"),
            ),
            None => return Err(format!("The pattern is not a regular expression: {error}.")),
        },
    };
    // A pattern of files that matches none would otherwise give the same answer as a search without a match.
    if found.searched == 0 {
        return Ok(nothing_searched(&input).into());
    }
    if found.matches == 0 && note.is_empty() {
        (found, note) = search_other_readings(call, &scope, pattern).unwrap_or((found, note));
    }
    if found.matches == 0 {
        found.lines.push(format!(
            "No line of {} files matches {pattern:?}.",
            found.searched
        ));
    }
    found.lines.extend(render_left_out(&found));
    if !found.failed.is_empty() {
        found.failed.truncate(MAX_FAILED);
        let failed = found.failed.join(", ");
        found.lines.push(format!("[not searched to the end: {failed}]"));
    }
    Ok(FileToolReply {
        text: note + &found.lines.join("\n"),
        truncated: found.is_truncated,
    })
}

/// Renders the notes about matches and files that the limits leave out.
fn render_left_out(found: &SearchMatches) -> Vec<String> {
    if !found.is_truncated {
        return Vec::new();
    }
    let more = if found.has_own_files {
        "[more matches left out, in vendored or generated files only]"
    } else {
        "[more matches left out; narrow the pattern or give file_pattern or path]"
    };
    let mut notes = vec![more.to_owned()];
    if !found.unreached.is_empty() {
        let parts: BTreeSet<&str> = found
            .unreached
            .iter()
            .map(|path| name_foreign_part(path))
            .collect();
        let named: Vec<&str> = parts.iter().copied().take(MAX_NAMED).collect();
        notes.push(format!(
            "[not searched: {}{} vendored or generated files ({}{}); give one of these names as path]",
            // The listing ends where the limits are reached.
            if found.has_own_files { "" } else { "at least " },
            found.unreached.len(),
            named.join(", "),
            if parts.len() > MAX_NAMED { ", ..." } else { "" },
        ));
    }
    notes
}

/// Returns the folder that makes a file a vendored one, or the file's path.
fn name_foreign_part(path: &Path) -> &str {
    let path = path.to_str().unwrap_or_default();
    find_foreign_part(path).unwrap_or(path)
}

fn nothing_searched(input: &Input) -> String {
    match (&input.file_pattern, &input.path) {
        (Some(globs), _) => format!(
            "No file matches file_pattern {globs:?}, so nothing was searched. Give a glob such as *.py or src/**; files that \
             .gitignore names do not count."
        ),
        (None, Some(path)) => {
            format!("There is no file to search in {path:?}; files that .gitignore names do not count.")
        }
        (None, None) => "There is no file to search.".to_owned(),
    }
}

fn compile_matcher(pattern: &str) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.crlf(true);
    builder.build(pattern).map_err(|error| {
        let text = error.to_string();
        // The parser's message draws the position over several lines; the last line has the reason.
        text.lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned()
    })
}

/// Builds a matcher for the pattern as plain text.
fn literal_matcher(pattern: &str) -> Option<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder.crlf(true).fixed_strings(true);
    builder.build(pattern).ok().filter(|_| !pattern.is_empty())
}

/// Searches other interpretations of a pattern that matches nothing.
fn search_other_readings(
    call: &ToolContext,
    scope: &SearchScope,
    pattern: &str,
) -> Option<(SearchMatches, String)> {
    let unescaped = ["\\|", "\\(", "\\)", "\\{", "\\}"]
        .iter()
        .fold(pattern.to_owned(), |text, escaped| {
            text.replace(escaped, &escaped[1..])
        });
    let mut readings = Vec::new();
    if pattern.contains([
        '(', ')', '[', ']', '{', '}', '?', '*', '+', '.', '|', '$', '^', '\\',
    ]) {
        readings.extend(literal_matcher(pattern).map(|regex| (regex, "as plain text".to_owned())));
    }
    if unescaped != pattern {
        let regex = compile_matcher(&unescaped).ok();
        readings
            .extend(regex.map(|regex| (regex, format!("as {unescaped:?}, since | ( ) need no backslash"))));
    }
    readings.into_iter().find_map(|(regex, how)| {
        let found = search_files(call, scope, &regex);
        let note = format!("[{pattern:?} matches no line as a regular expression; found {how}:]\n");
        (found.matches > 0).then_some((found, note))
    })
}

fn search_files(call: &ToolContext, scope: &SearchScope, regex: &RegexMatcher) -> SearchMatches {
    let mut searcher = SearcherBuilder::new()
        // A NUL byte marks a binary file.
        .binary_detection(BinaryDetection::quit(0))
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .heap_limit(Some(MAX_LONGEST))
        .before_context(scope.context)
        .after_context(scope.context)
        .build();
    let (root, mut found) = (call.workspace.root(), SearchMatches::default());
    let mut search = |path: &Path, found: &mut SearchMatches| {
        // A process may have deleted the file since the listing.
        let Ok(file) = root.open_file(path) else { return };
        found.searched += 1;
        if let Err(error) = search_one_file(&mut searcher, regex, path, &file, found) {
            tracing::debug!(error = %format_error_chain(&error), "a file could not be searched");
            found.failed.push(path.display().to_string());
        }
    };
    let foreign_files = ForeignFiles::new(call, scope);
    // Vendored and generated files come last, so that they do not fill the limits before the repository's own files.
    let mut later = Vec::new();
    for path in call.workspace.disk.paths(FileType::is_file) {
        let is_wanted = scope.globs.as_ref().is_none_or(|globs| globs.is_match(&path));
        if !is_wanted || !path.starts_with(&scope.folder) {
            continue;
        }
        if foreign_files.contains(&path) {
            later.push(path);
        } else {
            search(&path, &mut found);
        }
        found.is_truncated = found.is_full() || call.cancel.is_cancelled();
        if found.is_truncated {
            found.unreached = later;
            return found;
        }
    }
    found.has_own_files = true;
    let mut later = later.into_iter();
    while !found.is_truncated {
        let Some(path) = later.next() else { break };
        search(&path, &mut found);
        found.is_truncated = found.is_full() || call.cancel.is_cancelled();
    }
    found.unreached = later.collect();
    found
}

/// Distinction of vendored and generated files from the repository's own ones.
struct ForeignFiles<'a> {
    folder: &'a Path,
    /// True when the search is in a vendored folder, where no file comes later than another.
    is_inside: bool,
    /// Rules of the `.gitattributes` of the root.
    attributes: AttributeRules,
}

impl<'a> ForeignFiles<'a> {
    fn new(call: &ToolContext, scope: &'a SearchScope) -> Self {
        let mut attributes = AttributeRules::default();
        if let Ok(rules) = call
            .workspace
            .root()
            .read(Path::new(".gitattributes"), MAX_ATTRIBUTES)
        {
            attributes.add("", &String::from_utf8_lossy(&rules));
        }
        let folder = format!("{}/", scope.folder.display());
        Self {
            folder: &scope.folder,
            is_inside: find_foreign_part(&folder).is_some(),
            attributes,
        }
    }

    fn contains(&self, path: &Path) -> bool {
        // A file that the caller names is searched like any other.
        if self.is_inside || path == self.folder {
            return false;
        }
        path.to_str()
            .is_some_and(|path| find_foreign_part(path).is_some() || self.attributes.skip(path).is_some())
    }
}

fn search_one_file(
    searcher: &mut Searcher,
    regex: &RegexMatcher,
    path: &Path,
    file: &File,
    found: &mut SearchMatches,
) -> io::Result<()> {
    let sink = LineCollector {
        regex,
        path,
        found,
        in_file: 0,
    };
    searcher.search_file(regex, file, sink)
}

/// Collects the matching lines of one file.
struct LineCollector<'a> {
    regex: &'a RegexMatcher,
    path: &'a Path,
    found: &'a mut SearchMatches,
    in_file: usize,
}

impl LineCollector<'_> {
    fn push(&mut self, number: Option<u64>, mark: char, text: &str) {
        let line = format!(
            "{}{mark}{}{mark} {text}",
            self.path.display(),
            number.unwrap_or(0)
        );
        self.found.bytes += line.len() + 1;
        self.found.lines.push(line);
    }
}

impl Sink for LineCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        let (bytes, number) = (line.bytes(), line.line_number());
        let at = self.regex.find(bytes).ok().flatten().map_or(0, |at| at.start());
        self.push(number, ':', &excerpt_line(bytes, at));
        self.in_file += 1;
        self.found.matches += 1;
        if self.in_file == MAX_IN_FILE {
            let note = format!(
                "[more matches in {} left out; give it as path]",
                self.path.display()
            );
            self.found.lines.push(note);
        }
        let goes_on = self.in_file < MAX_IN_FILE && self.found.matches < MAX_FOUND;
        Ok(goes_on && self.found.bytes < MAX_SHOWN)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if *line.kind() != SinkContextKind::Other {
            self.push(line.line_number(), '-', &excerpt_line(line.bytes(), 0));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.lines.push("--".to_owned());
        Ok(true)
    }
}

/// Returns a line, or the part of a long line around the match.
fn excerpt_line(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if text.chars().count() <= MAX_LINE {
        return text.to_owned();
    }
    let before = String::from_utf8_lossy(&line[..at]).chars().count();
    let start = before.saturating_sub(MAX_LINE / 3);
    let part: String = text.chars().skip(start).take(MAX_LINE).collect();
    let (front, back) = (
        if start > 0 { "[…] " } else { "" },
        if start + MAX_LINE < text.chars().count() {
            " […]"
        } else {
            ""
        },
    );
    format!("{front}{part}{back}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    fn call_search_content(world: &World, input: &serde_json::Value) -> String {
        world.run("search_content", input).unwrap()
    }

    #[test]
    fn matches_show_path_number_and_context() {
        let world = World::new();
        let both = "shop/cart.py:1: def total(items):\nshop/cart.py:5: def count(items):";
        for scope in [
            json!({ "pattern": "def \\w+", "file_pattern": "*.py" }),
            json!({ "pattern": "def \\w+", "file_pattern": "shop/" }),
            json!({ "pattern": "def \\w+", "file_pattern": "*.go,*.py" }),
            json!({ "pattern": "def \\w+", "path": "shop" }),
            json!({ "pattern": "def \\w+", "path": "cart.py" }),
        ] {
            assert_eq!(call_search_content(&world, &scope), both, "{scope}");
        }
        let text = call_search_content(&world, &json!({ "pattern": "total", "context_lines": 1 }));
        assert_eq!(
            text,
            "shop/cart.py:1: def total(items):\nshop/cart.py-2-     return 0"
        );
        let none = call_search_content(&world, &json!({ "pattern": "def", "file_pattern": "*.rs" }));
        assert!(none.contains("No file matches file_pattern"), "{none}");
        let none = call_search_content(&world, &json!({ "pattern": "nothing like it" }));
        assert!(none.contains("No line of "), "{none}");
    }

    #[test]
    fn other_pattern_syntax_is_found_with_note() {
        let world = World::new();
        let root = world.call.workspace.root();
        root.write("a.py".as_ref(), b"x = open(path)\r\nalpha\r\n")
            .unwrap();
        for (pattern, line) in [
            ("open(path)", "a.py:1: x = open(path)"),
            ("def total\\|def none", "shop/cart.py:1: def total(items):"),
            ("open(", "a.py:1: x = open(path)"),
        ] {
            let text = call_search_content(&world, &json!({ "pattern": pattern }));
            assert!(text.starts_with('[') && text.contains(line), "{pattern}: {text}");
        }
        assert_eq!(
            call_search_content(&world, &json!({ "pattern": "alpha$" })),
            "a.py:2: alpha"
        );
    }

    #[test]
    fn matches_per_file_are_limited() {
        let world = World::new();
        let root = world.call.workspace.root();
        root.write("many".as_ref(), &b"needle\n".repeat(5000)).unwrap();
        root.write(
            "wide".as_ref(),
            format!("{}needle{}", "x".repeat(5000), "y".repeat(5000)).as_bytes(),
        )
        .unwrap();
        let text = call_search_content(&world, &json!({ "pattern": "needle" }));
        assert!(text.contains("[more matches in many left out"), "{text}");
        let wide = text.lines().find(|line| line.starts_with("wide:")).unwrap();
        assert!(
            wide.contains("xneedley") && wide.len() < 400 && wide.ends_with(" […]"),
            "{wide}"
        );
    }

    /// Writes files `0.js`, `1.js` and so on with these numbers of matching lines.
    fn write_needles(world: &World, folder: &str, counts: &[usize]) {
        for (number, count) in counts.iter().enumerate() {
            let path = format!("{folder}/{number}.js");
            let root = world.call.workspace.root();
            root.write(path.as_ref(), &b"needle\n".repeat(*count)).unwrap();
        }
    }

    #[test]
    fn vendored_matches_come_after_all_others() {
        let world = World::new();
        write_needles(&world, "node_modules/a/dist", &[50; 10]);
        write_needles(&world, "src", &[1]);
        let text = call_search_content(&world, &json!({ "pattern": "needle" }));
        assert!(
            text.starts_with("src/0.js:1: needle\nnode_modules/a/dist/0.js:1: needle\n"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "[more matches left out, in vendored or generated files only]\n[not searched: 4 vendored or generated files \
                 (node_modules); give one of these names as path]"
            ),
            "{text}"
        );
        for path in ["node_modules", "node_modules/a", "node_modules/a/dist/9.js"] {
            let text = call_search_content(&world, &json!({ "pattern": "needle", "path": path }));
            assert!(
                text.starts_with("node_modules/") && !text.contains("vendored"),
                "{text}"
            );
        }
    }

    #[test]
    fn unreached_vendored_files_are_counted() {
        let world = World::new();
        write_needles(&world, ".yarn", &[1, 1]);
        write_needles(&world, "web/vendor", &[1]);
        write_needles(&world, "src", &[100; 4]);
        let text = call_search_content(&world, &json!({ "pattern": "needle" }));
        assert!(text.starts_with("src/0.js:1: needle\n"), "{text}");
        assert!(
            text.ends_with(
                "give file_pattern or path]\n[not searched: at least 2 vendored or generated files (.yarn); give one of \
                 these names as path]"
            ),
            "{text}"
        );
    }

    #[test]
    fn generated_matches_come_last_by_attributes() {
        let world = World::new();
        let root = world.call.workspace.root();
        root.write(".gitattributes".as_ref(), b"api/** linguist-generated\n")
            .unwrap();
        write_needles(&world, "api", &[1]);
        write_needles(&world, "src", &[1]);
        root.write("app.min.js".as_ref(), b"needle\n").unwrap();
        assert_eq!(
            call_search_content(&world, &json!({ "pattern": "needle" })),
            "src/0.js:1: needle\napi/0.js:1: needle\napp.min.js:1: needle"
        );
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

        /// Property: vendored files change nothing about the matches in other files.
        #[test]
        fn vendored_files_displace_no_match(
            own in proptest::collection::vec(1_usize..120, 1..5),
            vendored in proptest::collection::vec(1_usize..120, 1..5),
        ) {
            let world = World::new();
            let list_matches = || -> Vec<String> {
                let text = call_search_content(&world, &json!({ "pattern": "needle" }));
                text.lines().filter(|line| !line.starts_with('[')).map(str::to_owned).collect()
            };
            write_needles(&world, "src", &own);
            let alone = list_matches();
            write_needles(&world, "node_modules", &vendored);
            let both = list_matches();
            proptest::prop_assert!(both.starts_with(&alone), "{alone:?} {both:?}");
        }
    }
}
