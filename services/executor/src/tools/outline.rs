//! `outline`: lists the symbols of a file, or of the whole repository ordered by use.

use std::{
    collections::{HashMap, HashSet},
    fs::FileType,
    path::{Path, PathBuf},
};

use domain::text::truncate_bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, parse_input};
use crate::{
    parser::{GrammarLanguage, MAX_BYTES, ParseFailure, SourceSymbol},
    workspace::{FileKind, explain_path_error},
};

/// Limit of the shown text, in bytes: about 8,000 tokens.
const BUDGET: usize = 32 * 1024;
/// Limits for a whole repository: number of read files, and size of a file in bytes.
const MAX_FILES: usize = 5000;
const MAX_FILE: u64 = 256 * 1024;
/// Number of failed parses after which further files are skipped.
const MAX_FAILURES: usize = 3;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "outline",
    description: "Shows functions, classes and types with their lines: of a file or folder when path is given, else \
                  of the whole repository, the most used files first. A cheap first look before reading files. Knows Python, \
                  JavaScript, TypeScript, Rust, Go, Java, C, C++, Ruby, PHP, Kotlin and shell.",
    schema: super::build_schema_once::<Input>(),
    read_only: true,
    run: ToolAction::Blocking(run_outline),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// File or folder; absent: the whole repository
    path: Option<String>,
}

struct FileOutline {
    path: PathBuf,
    symbols: Vec<SourceSymbol>,
    words: HashSet<String>,
}

fn run_outline(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let path = call
        .workspace
        .disk
        .existing(input.path.as_deref().unwrap_or_default())?;
    let is_folder =
        matches!(call.workspace.root().stat(&path), Ok(Some(stat)) if stat.kind == FileKind::Folder);
    if is_folder || path.as_os_str().is_empty() {
        Ok(outline_folder(call, &path).into())
    } else {
        outline_file(call, &path)
    }
}

fn outline_file(call: &ToolContext, path: &Path) -> Result<FileToolReply, String> {
    let bytes = call
        .workspace
        .root()
        .read(path, MAX_BYTES)
        .map_err(|error| explain_path_error(path, &error))?;
    let Some(language) = GrammarLanguage::of(path).filter(|language| language.has_symbols()) else {
        return Err(format!(
            "There is no outline of {}: its language is not known. Use read_file.",
            path.display()
        ));
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let symbols = call.workspace.parser.symbols(language, text, &call.cancel);
    let symbols = symbols.map_err(|why| {
        format!(
            "There is no outline of {}: {why}. Use read_file or search_content.",
            path.display()
        )
    })?;
    if symbols.is_empty() {
        return Ok(format!("{} has no symbols.", path.display()).into());
    }
    let shown = render_symbols(path, &symbols);
    let part = truncate_bytes(&shown, BUDGET);
    let truncated = part.len() < shown.len();
    let more = if truncated {
        "\n[more symbols left out; use search_content]"
    } else {
        ""
    };
    Ok(FileToolReply {
        text: format!("{part}{more}"),
        truncated,
    })
}

/// Outlines of the files of a folder.
#[derive(Default)]
struct OutlineSurvey {
    files: Vec<FileOutline>,
    /// Files that the parser could not parse, with the reason.
    unread: Vec<String>,
}

fn survey_folder(call: &ToolContext, folder: &Path) -> OutlineSurvey {
    let (root, mut survey) = (call.workspace.root(), OutlineSurvey::default());
    for path in call.workspace.disk.paths(FileType::is_file) {
        let is_enough = survey.files.len() >= MAX_FILES || survey.unread.len() >= MAX_FAILURES;
        if is_enough || call.cancel.is_cancelled() {
            break;
        }
        let language = GrammarLanguage::of(&path).filter(|language| language.has_symbols());
        let Some(language) = language.filter(|_| path.starts_with(folder)) else {
            continue;
        };
        let Ok(bytes) = root.read(&path, MAX_FILE) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let words = collect_words(&text);
        match call.workspace.parser.symbols(language, text, &call.cancel) {
            Ok(symbols) if symbols.is_empty() => {}
            Ok(symbols) => survey.files.push(FileOutline { path, symbols, words }),
            Err(ParseFailure::Cancelled) => break,
            Err(why) => survey.unread.push(format!("{} ({why})", path.display())),
        }
    }
    survey
}

fn outline_folder(call: &ToolContext, folder: &Path) -> String {
    let OutlineSurvey { files, unread } = survey_folder(call, folder);
    let mut text = String::new();
    if files.is_empty() {
        text.push_str("No file has an outline. Use list_directory and search_content.\n");
    }
    let mut left_out = 0;
    for file in rank_files(&files) {
        let shown = render_symbols(&file.path, &file.symbols);
        if text.len() + shown.len() > BUDGET {
            left_out += 1;
        } else {
            text.push_str(&shown);
        }
    }
    if left_out > 0 {
        text.push_str(&format!(
            "[{left_out} more files; give path to see a file or folder]\n"
        ));
    }
    if !unread.is_empty() {
        text.push_str(&format!("[no outline of {}", unread.join(", ")));
        text.push_str(if unread.len() >= MAX_FAILURES {
            "; files after these were not read, give path to see them]\n"
        } else {
            "]\n"
        });
    }
    text
}

/// Orders files by use: by the number of other files that contain one of their symbols.
fn rank_files(files: &[FileOutline]) -> Vec<&FileOutline> {
    let mut naming: HashMap<&str, usize> = HashMap::new();
    for file in files {
        for word in &file.words {
            *naming.entry(word).or_default() += 1;
        }
    }
    // The use of a name that several files define cannot be assigned to one of them.
    let mut defining: HashMap<&str, usize> = HashMap::new();
    for symbol in files.iter().flat_map(|file| &file.symbols) {
        *defining.entry(&symbol.name).or_default() += 1;
    }
    let score = |file: &FileOutline| -> usize {
        let of = |symbol: &SourceSymbol| match defining.get(symbol.name.as_str()) {
            // The defining file contains the name too.
            Some(1) => naming.get(symbol.name.as_str()).map_or(0, |count| count - 1),
            Some(_) | None => 0,
        };
        file.symbols.iter().map(of).sum()
    };
    let mut order: Vec<(usize, &FileOutline)> = files.iter().map(|file| (score(file), file)).collect();
    order.sort_by(|(one, a), (two, b)| two.cmp(one).then_with(|| a.path.cmp(&b.path)));
    order.into_iter().map(|(_, file)| file).collect()
}

fn collect_words(text: &str) -> HashSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_word(c))
        .filter(|word| word.len() > 2)
        .map(str::to_owned)
        .collect()
}

fn render_symbols(path: &Path, symbols: &[SourceSymbol]) -> String {
    let lines = symbols.iter().map(|symbol| {
        format!(
            "{:>6} {}{}\n",
            symbol.line,
            "  ".repeat(symbol.depth.min(8)),
            symbol.text
        )
    });
    format!("{}\n{}", path.display(), lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn repository_outline_ranks_most_used_first() {
        let world = World::new();
        let text = world.run("outline", &json!({ "path": "cart.py" })).unwrap();
        assert_eq!(
            text,
            "shop/cart.py\n     1 def total(items):\n     5 def count(items):\n"
        );
        for (path, content) in [
            ("a.py", "def unused_thing():\n    pass\n"),
            (
                "z.py",
                "from shop.cart import total\n\ndef z():\n    return total([])\n",
            ),
        ] {
            world
                .run("write_file", &json!({ "path": path, "content": content }))
                .unwrap();
        }
        let text = world.run("outline", &json!({})).unwrap();
        assert!(text.starts_with("shop/cart.py\n"), "{text}");
        assert!(text.contains("a.py\n     1 def unused_thing():"), "{text}");
        let text = world.run("outline", &json!({ "path": "shop" })).unwrap();
        assert!(
            text.contains("cart.py") && !text.contains("unused_thing"),
            "{text}"
        );
    }
}
