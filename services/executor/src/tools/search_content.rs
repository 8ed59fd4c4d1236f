//! `search_content`: finds lines that match a regular expression.

use std::{
    collections::BTreeSet,
    fs::FileType,
    path::{Path, PathBuf},
};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use retrieval::{AttributeRules, find_foreign_part};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    ExecutorTool, FileToolReply, ToolAction, ToolContext, explain_unsearched_path,
    file_search::{FileMatches, FileSearch, MAX_IN_FILE, SearchTask, ShownAmount, ShownLine, StepMatches},
    globs::GlobPatterns,
    parse_input,
};

const MAX_CONTEXT: i64 = 10;
/// Limit of files that are named because the search in them failed.
const MAX_FAILED: usize = 10;
/// Limit of folders and files that are named because the search did not reach them.
const MAX_NAMED: usize = 5;
/// Limit of the `.gitattributes` of the root, in bytes.
const MAX_ATTRIBUTES: u64 = 64 * 1024;

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
    amount: ShownAmount,
    searched: usize,
    failed: Vec<String>,
    is_truncated: bool,
    /// True when all files were listed, and every one that is neither vendored nor generated was searched.
    has_own_files: bool,
    /// Vendored and generated files that the search did not reach.
    unreached: Vec<PathBuf>,
}

impl SearchMatches {
    /// Adds results in the order of the files. When a limit is reached, returns the number of vendored and generated
    /// files up to the last file.
    fn add_steps(&mut self, steps: Vec<StepMatches>) -> Option<usize> {
        for step in steps {
            self.searched += step.searched;
            for file in step.files {
                let foreign = file.foreign;
                self.add_file(file);
                if self.amount.is_full() {
                    return Some(foreign);
                }
            }
        }
        None
    }

    /// Adds the lines of the next file, up to a limit.
    fn add_file(&mut self, file: FileMatches) {
        let mut in_file = 0;
        for line in file.lines {
            self.amount.add_line(&line);
            match line {
                ShownLine::Break => self.lines.push("--".to_owned()),
                ShownLine::Context(text) => self.lines.push(text),
                ShownLine::Match(text) => {
                    self.lines.push(text);
                    in_file += 1;
                    if in_file == MAX_IN_FILE {
                        let path = file.path.display();
                        let note = format!("[more matches in {path} left out; give it as path]");
                        self.lines.push(note);
                    }
                    if self.amount.is_full() {
                        return;
                    }
                }
            }
        }
        if file.has_failed {
            self.failed.push(file.path.display().to_string());
        }
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
        if let Some(why) = explain_unsearched_path(call, &scope.folder) {
            return Err(why);
        }
        return Ok(nothing_searched(&input).into());
    }
    if found.amount.matches == 0 && note.is_empty() {
        (found, note) = search_other_readings(call, &scope, pattern).unwrap_or((found, note));
    }
    if found.amount.matches == 0 {
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
    // Without `multi_line`, `$` is the end after the line feed, so that it matches in no line that ends with LF alone.
    builder.crlf(true).multi_line(true);
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
        (found.amount.matches > 0).then_some((found, note))
    })
}

fn search_files(call: &ToolContext, scope: &SearchScope, regex: &RegexMatcher) -> SearchMatches {
    let mut found = SearchMatches::default();
    let foreign_files = ForeignFiles::new(call, scope);
    // Vendored and generated files come last, so that they do not fill the limits before the repository's own files.
    let mut later = Vec::new();
    let listed = call
        .workspace
        .disk
        .paths(FileType::is_file)
        .take_while(|_| !call.cancel.is_cancelled());
    let own = listed.filter_map(|path| {
        let is_wanted = scope.globs.as_ref().is_none_or(|globs| globs.is_match(&path));
        if !is_wanted || !path.starts_with(&scope.folder) {
            return None;
        }
        if foreign_files.contains(&path) {
            later.push(path);
            return None;
        }
        Some(SearchTask {
            path,
            foreign: later.len(),
        })
    });
    let limit = found.add_steps(search_tasks(call, scope, regex, own));
    found.is_truncated = limit.is_some() || call.cancel.is_cancelled();
    if found.is_truncated {
        // Other threads list files beyond the last one whose matches are shown.
        later.truncate(limit.unwrap_or(later.len()));
        found.unreached = later;
        return found;
    }
    found.has_own_files = true;
    let foreign = later.iter().enumerate().map(|(number, path)| SearchTask {
        path: path.clone(),
        foreign: number + 1,
    });
    let limit = found.add_steps(search_tasks(call, scope, regex, foreign));
    found.is_truncated = limit.is_some() || call.cancel.is_cancelled();
    found.unreached = later.split_off(limit.unwrap_or(later.len()));
    found
}

fn search_tasks(
    call: &ToolContext,
    scope: &SearchScope,
    regex: &RegexMatcher,
    tasks: impl Iterator<Item = SearchTask> + Send,
) -> Vec<StepMatches> {
    let search = FileSearch {
        root: call.workspace.root(),
        regex,
        context: scope.context,
        cancel: &call.cancel,
    };
    search.run(tasks)
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
    fn anchors_match_ends_of_each_line() {
        let text = "def total(items):\n    return 0\n\ndef count(items):\n    return 0\n";
        for end in ["\n", "\r\n"] {
            let world = World::new();
            let root = world.call.workspace.root();
            root.write("a.py".as_ref(), text.replace('\n', end).as_bytes())
                .unwrap();
            for (pattern, lines) in [
                ("return 0$", "a.py:2:     return 0\na.py:5:     return 0"),
                (
                    r"^def \w+\(items\):$",
                    "a.py:1: def total(items):\na.py:4: def count(items):",
                ),
                (r"^\s+\w+ \d$", "a.py:2:     return 0\na.py:5:     return 0"),
                ("none|^def c", "a.py:4: def count(items):"),
            ] {
                let input = json!({ "pattern": pattern, "path": "a.py" });
                assert_eq!(call_search_content(&world, &input), lines, "{pattern} {end:?}");
            }
            let none = call_search_content(&world, &json!({ "pattern": "^return|def$", "path": "a.py" }));
            assert!(none.contains("No line of "), "{none}");
        }
    }

    #[test]
    fn long_line_is_shown_around_match_at_end() {
        let world = World::new();
        let root = world.call.workspace.root();
        for end in ["", "\n", "\r\n"] {
            let line = format!("{}needle{end}", "x".repeat(5000));
            root.write("wide.txt".as_ref(), line.as_bytes()).unwrap();
            let text = call_search_content(&world, &json!({ "pattern": "needle$" }));
            assert!(
                text.starts_with("wide.txt:1: […] x") && text.ends_with("xneedle"),
                "{end:?}: {text}"
            );
        }
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
    fn matches_of_many_files_keep_order() {
        let world = World::new();
        let root = world.call.workspace.root();
        // The search in the first file takes longer than that in all others.
        let long = [&b"text\n".repeat(1 << 20)[..], b"needle\n"].concat();
        root.write("0/first".as_ref(), &long).unwrap();
        write_needles(&world, "many", &[1; 400]);
        let mut names: Vec<String> = (0..400).map(|number| format!("many/{number}.js")).collect();
        names.sort();
        // The second one follows the last match that is shown.
        for name in [&names[5], &names[310]] {
            let generated = name.replace(".js", ".min.js");
            root.write(generated.as_ref(), b"needle\n").unwrap();
        }
        let text = call_search_content(&world, &json!({ "pattern": "needle" }));
        let mut expected = vec![format!("0/first:{}: needle", (1 << 20) + 1)];
        expected.extend(names.iter().map(|name| format!("{name}:1: needle")));
        let shown: Vec<&str> = text.lines().take(300).collect();
        assert_eq!(shown, expected[..300]);
        let notes: Vec<&str> = text.lines().skip(300).collect();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[1].starts_with("[not searched: at least 1 vendored or generated files (many/102.min.js);"),
            "{notes:?}"
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
