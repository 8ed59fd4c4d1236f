//! `find_code`: finds code by a description.

use std::path::Path;

use domain::cause::format_error_chain;
use git2::{ObjectType, Oid};
use retrieval::{ChunkKind, ModuleFolders, SearchAnswer, SearchQuery, SearchRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ExecutorTool, FileToolReply, ToolAction, ToolContext, globs::GlobPatterns, parse_input};
use crate::retrieval::{CommitIndex, IndexStatus, search_literally};

/// Limit of shown results.
const MAX_FOUND: usize = 15;
/// Limit in bytes: a larger file counts as changed without a comparison with the base.
const MAX_COMPARED: u64 = 1024 * 1024;

pub(super) static TOOL: ExecutorTool = ExecutorTool {
    name: "find_code",
    description: "Finds the code that a description is about, best first: `path:lines symbol (score) reason`. Give the words \
                  of the ticket, names, an error message or a stack trace as query. Use it when you do not know the exact \
                  text; for exact text use search_content. It knows the files as they were at the base commit.",
    schema: super::build_schema_once::<Input>(),
    read_only: true,
    run: ToolAction::Blocking(run_find_code),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Text to search for: words, names, a message, a stack trace
    query: String,
    /// any (default), definition, usage, test or docs
    kind: Option<String>,
    /// Folder or glob patterns to search, such as src/cart or **/*.py; absent: everywhere
    scope: Option<String>,
}

fn run_find_code(call: &ToolContext, input: Value) -> Result<FileToolReply, String> {
    let input: Input = parse_input(input)?;
    let query = SearchQuery::from_text(&input.query);
    if query.is_empty() {
        return Err(
            "The query has no word to look for. Describe what the code does, or give a name.".to_owned(),
        );
    }
    let kind = parse_kind(input.kind.as_deref())?;
    let scope = input.scope.as_deref().filter(|scope| !scope.trim().is_empty());
    let scope = scope.map(|scope| GlobPatterns::new(call, scope)).transpose()?;
    let is_wanted = |path: &str| scope.as_ref().is_none_or(|scope| scope.is_match(Path::new(path)));
    let status = match &call.index {
        Some(index) => match search_index(index, &query, kind, &is_wanted) {
            Some(answer) => return Ok(render_matches(call, index, &answer)),
            None => index.status(),
        },
        None => IndexStatus::Failed("indexing is switched off"),
    };
    Ok(search_without_index(call, &query, &is_wanted, status).into())
}

fn parse_kind(text: Option<&str>) -> Result<ChunkKind, String> {
    match text
        .map(str::trim)
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "" | "any" => Ok(ChunkKind::Any),
        "definition" => Ok(ChunkKind::Definition),
        "usage" => Ok(ChunkKind::Usage),
        "test" => Ok(ChunkKind::Test),
        "docs" => Ok(ChunkKind::Docs),
        other => Err(format!(
            "kind {other:?} is not known: give any, definition, usage, test or docs."
        )),
    }
}

/// Searches the index. `None` when it is not ready or cannot be read.
fn search_index(
    index: &CommitIndex,
    query: &SearchQuery,
    kind: ChunkKind,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Option<SearchAnswer> {
    let modules = ModuleFolders::default();
    let mut request = SearchRequest::new(query, &modules);
    request.kind = kind;
    request.scope = Some(is_wanted);
    request.max = MAX_FOUND;
    // The model asks for the best matches anywhere, so a single module may supply all of them.
    request.max_in_module = MAX_FOUND;
    index
        .search(&request)?
        .inspect_err(
            |error| tracing::warn!(error = %format_error_chain(error), "an index could not be searched"),
        )
        .ok()
}

fn render_matches(call: &ToolContext, index: &CommitIndex, answer: &SearchAnswer) -> FileToolReply {
    if answer.found.is_empty() {
        let text = "No confident match. Try other words or names, a wider scope, or search_content.";
        return text.to_owned().into();
    }
    let mut text = String::new();
    let mut changed: Vec<&str> = Vec::new();
    // The index is of the base commit, so lines of a file that changed since may be outdated.
    for found in &answer.found {
        let symbol = if found.symbol.is_empty() {
            String::new()
        } else {
            format!(" {}", found.symbol)
        };
        let test = if found.is_test { " [test]" } else { "" };
        text.push_str(&format!(
            "{}:{}-{}{symbol}{test} ({:.2}) {}\n",
            found.path, found.start, found.end, found.score, found.reason
        ));
        if !changed.contains(&found.path.as_str()) && has_changed(call, index, &found.path) {
            changed.push(&found.path);
        }
    }
    if !changed.is_empty() {
        text.push_str(&format!(
            "[changed since the base commit, so lines may have moved: {}]\n",
            changed.join(", ")
        ));
    }
    if answer.is_truncated {
        text.push_str("[more fits; narrow it with scope, kind or more exact words]\n");
    }
    FileToolReply {
        text,
        truncated: answer.is_truncated,
    }
}

fn has_changed(call: &ToolContext, index: &CommitIndex, path: &str) -> bool {
    let path = Path::new(path);
    let Ok(content) = call.workspace.root().read(path, MAX_COMPARED) else {
        // A needless note about a file does less harm than wrong line numbers.
        return true;
    };
    let now = Oid::hash_object(ObjectType::Blob, &content).ok();
    let base = index.blob(path).and_then(|blob| Oid::from_bytes(&blob.0).ok());
    if now == base {
        return false;
    }
    // Attributes of git may give the file other bytes than its object has.
    let written = call.workspace.git.read_checked_out(path);
    !matches!(written, Ok(Some(written)) if written == content)
}

/// Searches paths and literal text, and adds the reason why the index was not used.
fn search_without_index(
    call: &ToolContext,
    query: &SearchQuery,
    is_wanted: &dyn Fn(&str) -> bool,
    status: IndexStatus,
) -> String {
    let found = search_literally(
        &call.workspace,
        query,
        is_wanted,
        &|| call.cancel.is_cancelled(),
        MAX_FOUND,
    );
    let mut text = String::new();
    for found in &found {
        let line = if found.line == 0 {
            String::new()
        } else {
            format!(":{}", found.line)
        };
        text.push_str(&format!(
            "{}{line} ({:.2}) {}\n",
            found.path, found.score, found.reason
        ));
    }
    if found.is_empty() {
        text.push_str("Nothing found. Try search_content or outline.\n");
    }
    let why = match status {
        IndexStatus::Building(percent) => format!("the index is not ready ({percent} %)"),
        IndexStatus::Failed(why) => format!("there is no index: {why}"),
        IndexStatus::Ready => "the index could not be read".to_owned(),
    };
    text.push_str(&format!("[{why}; only paths and literal text were searched]\n"));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tools::tests::World;

    #[test]
    fn code_search_ranks_best_first() {
        let world = World::indexed();
        let text = world
            .run("find_code", &json!({ "query": "total of the items in a cart" }))
            .unwrap();
        assert!(text.starts_with("shop/cart.py:1-6 total ("), "{text}");
        assert!(text.contains("words: ") && !text.contains('['), "{text}");
        let text = world
            .run("find_code", &json!({ "query": "`count`", "kind": "definition" }))
            .unwrap();
        assert!(
            text.starts_with("shop/cart.py:1-6 count (") && text.contains("defines count"),
            "{text}"
        );
    }

    #[test]
    fn code_search_respects_kind_and_scope() {
        let world = World::indexed();
        let run = |kind: &str, scope: &str| {
            world
                .run(
                    "find_code",
                    &json!({ "query": "cart total", "kind": kind, "scope": scope }),
                )
                .unwrap()
        };
        assert!(run("any", "shop").starts_with("shop/cart.py"));
        assert!(run("any", "*.py").starts_with("shop/cart.py"));
        for (kind, scope) in [("test", ""), ("docs", ""), ("any", "*.rs")] {
            let text = run(kind, scope);
            assert!(
                text.starts_with("No confident match. Try other words"),
                "{kind} {scope}: {text}"
            );
        }
    }

    #[test]
    fn invalid_search_input_lists_valid_values() {
        let world = World::indexed();
        let error = world
            .run("find_code", &json!({ "query": "cart", "kind": "classes" }))
            .unwrap_err();
        assert_eq!(
            error,
            "kind \"classes\" is not known: give any, definition, usage, test or docs."
        );
        let error = world.run("find_code", &json!({ "query": " the " })).unwrap_err();
        assert!(error.starts_with("The query has no word to look for."), "{error}");
    }

    #[test]
    fn missing_index_falls_back_with_reason() {
        let world = World::new();
        let text = world
            .run("find_code", &json!({ "query": "`count` in cart.py" }))
            .unwrap();
        assert_eq!(
            text,
            "shop/cart.py:5 (1.00) named in the text; has count\n[there is no index: indexing is switched off; only \
             paths and literal text were searched]\n"
        );
    }
}
