//! Registry of the model's tools. Each is defined in its own file.

mod apply_patch;
mod blocks;
mod commit_changes;
mod create_branch;
mod diff;
mod edit_file;
mod edit_size;
mod file_search;
mod find_code;
mod folder_guide;
mod globs;
mod hunk_placement;
mod input;
mod list_directory;
mod outline;
mod patch;
mod patch_envelope;
mod placeholders;
mod read_file;
mod read_result;
mod run_command;
mod search_content;
mod search_files;
mod syntax;
mod text;
mod undo;
mod write_file;

pub use edit_size::{EditSize, measure_edits};
pub(crate) use run_command::{HEAD_HINT, build_command_context, build_command_spec};

use std::{
    path::Path,
    sync::{Arc, LazyLock},
};

use domain::{
    CommitAuthor,
    cause::format_error_chain,
    text::{sanitize_output, truncate_bytes},
};
use input::{build_schema_once, parse_input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use text::{FileText, TextEncoding};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    retrieval::CommitIndex,
    sandbox::CommandSandbox,
    workspace::{FileKind, Workspace, explain_path_error},
};

/// Definition of a tool.
pub(crate) struct ExecutorTool {
    /// Name in calls of the model.
    pub(crate) name: &'static str,
    /// Description for the model: purpose and use.
    pub(crate) description: &'static str,
    /// JSON Schema of the input.
    pub(crate) schema: LazyLock<Value>,
    /// True when the tool never changes the workspace.
    pub(crate) read_only: bool,
    run: ToolAction,
}

/// Implementation of a tool.
enum ToolAction {
    /// A short function on a blocking thread.
    Blocking(fn(&ToolContext, Value) -> Result<FileToolReply, String>),
    /// A command under the launcher.
    Command,
}

/// Context of a tool call.
#[derive(Clone)]
pub(crate) struct ToolContext {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) sandbox: CommandSandbox,
    /// Index of the base commit; `None` when indexing is disabled.
    pub(crate) index: Option<Arc<CommitIndex>>,
    /// Time of a commit, in Unix seconds.
    pub(crate) commit_time_s: i64,
    /// Author and committer of a commit.
    pub(crate) commit_author: CommitAuthor,
    /// Cancelled when no caller waits for the result.
    pub(crate) cancel: CancellationToken,
}

/// Reason of a tool's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolEnding {
    /// The tool completed the request.
    Done,
    /// The tool refused or failed; its text contains the next step.
    Failed,
    /// The call was interrupted.
    Interrupted,
}

/// Answer of a tool that works on files.
#[derive(Debug)]
struct FileToolReply {
    text: String,
    /// True when the text is incomplete.
    truncated: bool,
}

impl From<String> for FileToolReply {
    fn from(text: String) -> Self {
        Self {
            text,
            truncated: false,
        }
    }
}

/// Answer of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolOutcome {
    pub(crate) ending: ToolEnding,
    /// Text for the model.
    pub(crate) text: String,
    /// Exit code of a command that ran to its end.
    pub(crate) exit_code: Option<i32>,
    /// True when the text is only a part of the result.
    pub(crate) truncated: bool,
    /// Complete result as far as it is stored, if the text is only a part; otherwise empty.
    pub(crate) whole: Vec<u8>,
}

impl ToolOutcome {
    fn new(ending: ToolEnding, text: impl Into<String>) -> Self {
        Self {
            ending,
            text: text.into(),
            exit_code: None,
            truncated: false,
            whole: Vec::new(),
        }
    }

    /// Creates the outcome of a completed request.
    pub(crate) fn done(text: impl Into<String>) -> Self {
        Self::new(ToolEnding::Done, text)
    }

    /// Creates a failed outcome.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::new(ToolEnding::Failed, text)
    }

    /// Creates the outcome of an interrupted call.
    pub(crate) fn interrupted(text: impl Into<String>) -> Self {
        Self::new(ToolEnding::Interrupted, text)
    }

    /// Adds a sentence for the model.
    pub(crate) fn add(&mut self, note: &str) {
        if !note.is_empty() {
            self.text = format!("{}\n{note}", self.text.trim_end());
        }
    }

    /// Removes characters that control a terminal or that gateways to models refuse. `whole` keeps the
    /// original.
    fn legible(mut self) -> Self {
        if let std::borrow::Cow::Owned(shown) = sanitize_output(&self.text) {
            self.text = shown;
        }
        self
    }

    /// Truncates the text to [`MAX_ANSWER`], and keeps the original in `whole`.
    fn bounded(mut self) -> Self {
        if self.text.len() > MAX_ANSWER {
            let total = self.text.len();
            let shown = truncate_bytes(&self.text, MAX_ANSWER).len();
            if self.whole.is_empty() {
                self.whole = self.text.clone().into_bytes();
            }
            self.text.truncate(shown);
            self.add(&format!(
                "[left out: {} of {total} bytes. Ask for less: some lines, a narrower pattern, or a part of the output]",
                total - shown
            ));
            self.truncated = true;
        }
        self
    }
}

/// Limit of an answer's text, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// All tools, in the order in which the model sees them.
pub(crate) static ALL: [&ExecutorTool; 15] = [
    &read_file::TOOL,
    &write_file::TOOL,
    &edit_file::TOOL,
    &apply_patch::TOOL,
    &list_directory::TOOL,
    &search_files::TOOL,
    &search_content::TOOL,
    &outline::TOOL,
    &find_code::TOOL,
    &run_command::TOOL,
    &read_result::TOOL,
    &diff::TOOL,
    &undo::TOOL,
    &create_branch::TOOL,
    &commit_changes::TOOL,
];

/// Finds a tool by its name.
///
/// # Errors
/// Returns a text for the model that lists the tools.
pub(crate) fn find_tool(name: &str) -> Result<&'static ExecutorTool, String> {
    let names = || ALL.map(|tool| tool.name).join(", ");
    ALL.into_iter()
        .find(|tool| tool.name == name)
        .ok_or_else(|| format!("There is no tool {name:?}. The tools are: {}.", names()))
}

/// Returns true for a tool that changes only files which it notes as written. A commit changes none, and it has
/// surveyed all of them itself.
pub(crate) fn has_noted_writes(tool: &ExecutorTool) -> bool {
    [
        apply_patch::TOOL.name,
        commit_changes::TOOL.name,
        edit_file::TOOL.name,
        write_file::TOOL.name,
    ]
    .contains(&tool.name)
}

/// Runs a tool to its end. The text of the outcome is always bounded.
pub(crate) async fn run_tool(
    tool: &'static ExecutorTool,
    call: ToolContext,
    input: &str,
    sink: &mpsc::Sender<Vec<u8>>,
) -> ToolOutcome {
    let input::FittedInput { input, ignored } = match read_input(tool, input) {
        Ok(read) => read,
        Err(text) => return ToolOutcome::failed(text),
    };
    let workspace = Arc::clone(&call.workspace);
    let touched = folder_guide::list_touched_files(tool.name, &input);
    let mut outcome = match tool.run {
        ToolAction::Command => run_command::run_command_tool(&call, input, sink).await,
        ToolAction::Blocking(run) => run_blocking_tool(tool.name, move || run(&call, input)).await,
    }
    // Legible before bounded, because escaping a control character makes the text longer.
    .legible()
    .bounded();
    let whole = std::mem::take(&mut outcome.whole);
    outcome.add(&store_result(Arc::clone(&workspace), whole).await);
    if outcome.ending == ToolEnding::Done {
        outcome.add(&folder_guide::render_new_guides(workspace, touched).await);
    }
    if !ignored.is_empty() {
        let names: String = ignored.join(", ").chars().take(200).collect();
        outcome.add(&format!("[{} has no field {names}; ignored]", tool.name));
    }
    outcome
}

/// Converts an input to the schema of its tool.
fn read_input(tool: &ExecutorTool, input: &str) -> Result<input::FittedInput, String> {
    let schema = &tool.schema;
    // Only `apply_patch` is also called with plain text.
    if tool.name != apply_patch::TOOL.name {
        return input::fit_input(input, schema);
    }
    let bare = apply_patch::wrap_bare_patch(input);
    // A model that knows the name but not the format repeats an empty call until it sees an example.
    input::fit_input(bare.as_deref().unwrap_or(input), schema)
        .map_err(|text| format!("{text}\n{}", patch::EXAMPLE))
}

/// Stores the complete result of a truncated answer. Returns a note about `read_result` for the end of the
/// answer.
async fn store_result(workspace: Arc<Workspace>, whole: Vec<u8>) -> String {
    if whole.is_empty() {
        return String::new();
    }
    let (bytes, lines) = (whole.len(), whole.split(|byte| *byte == b'\n').count());
    let kept = tokio::task::spawn_blocking(move || workspace.results.keep(&whole)).await;
    match kept.map_err(std::io::Error::other).flatten() {
        Ok(number) => format!(
            "[result {number} ({} KiB, {lines} lines): read what was left out with read_result]",
            bytes.div_ceil(1024)
        ),
        Err(error) => {
            tracing::warn!(error = %format_error_chain(&error), "a long result could not be kept");
            String::new()
        }
    }
}

async fn run_blocking_tool(
    name: &str,
    run: impl FnOnce() -> Result<FileToolReply, String> + Send + 'static,
) -> ToolOutcome {
    match tokio::task::spawn_blocking(run).await {
        Ok(Ok(reply)) => ToolOutcome {
            truncated: reply.truncated,
            ..ToolOutcome::new(ToolEnding::Done, reply.text)
        },
        Ok(Err(text)) => ToolOutcome::failed(text),
        Err(error) => {
            tracing::error!(tool = name, error = %format_error_chain(&error), "a tool panicked");
            ToolOutcome::failed(
                "The tool failed because of a mistake in it. Reach your goal with another tool.",
            )
        }
    }
}

/// Input of a tool without parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Explains that a search finds nothing beneath a path because it is missing or a link; `None` for another path.
fn explain_unsearched_path(call: &ToolContext, path: &Path) -> Option<String> {
    let name = path.display();
    match call.workspace.root().stat(path) {
        Ok(None) => Some(format!(
            "{name} does not exist, so nothing was searched. Look with list_directory."
        )),
        Ok(Some(stat)) if stat.kind == FileKind::Link => Some(format!(
            "{name} is a symbolic link, which a search does not follow. Give the path that it points to."
        )),
        Ok(Some(_)) | Err(_) => None,
    }
}

/// Limit of a text that is changed in place, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Reads the text of a file that is to be changed; the error is a text for the model.
fn read_text(call: &ToolContext, path: &Path) -> Result<FileText, String> {
    let read = call.workspace.root().read(path, MAX_TEXT);
    let bytes = read.map_err(|error| explain_path_error(path, &error))?;
    let name = path.display();
    let file = FileText::decode(&bytes)
        .ok_or_else(|| format!("{name} is a binary file. Change it with run_command."))?;
    // Otherwise writing the text would change bytes outside of the edited lines.
    if !file.is_reversible(&bytes) {
        return Err(format!(
            "{name} has bytes that are not valid {}, so it cannot be changed as text. Change its bytes with run_command.",
            file.encoding.name()
        ));
    }
    Ok(file)
}

/// Encodes the changed text of a file; the error is a text for the model.
fn encode_text(encoding: TextEncoding, text: &str) -> Result<Vec<u8>, String> {
    encoding.encode(text).map_err(|missing| {
        let line = text.lines().position(|line| line.contains(missing)).unwrap_or(0) + 1;
        format!(
            "its encoding {} has no character {missing:?} (U+{:04X}, line {line} of the new text). Use other characters, or \
             convert the file first with write_file and format: {:?}.",
            encoding.name(),
            u32::from(missing),
            write_file::AS_GIVEN,
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;
    use crate::workspace::WorkspaceStart;

    /// Workspace of a small repository.
    pub(crate) struct World {
        pub(crate) call: ToolContext,
        _folder: tempfile::TempDir,
    }

    impl World {
        pub(crate) fn new() -> Self {
            Self::limited(crate::workspace::KeepLimits::default())
        }

        /// Creates a workspace with other limits for the history of changes.
        pub(crate) fn limited(limits: crate::workspace::KeepLimits) -> Self {
            let folder = tempfile::TempDir::new().unwrap();
            let mirror = git::BareRepository::init_bare(&folder.path().join("mirror")).unwrap();
            let base = commit_shop_files(mirror.objects());
            let start = WorkspaceStart {
                limits,
                ..WorkspaceStart::sample(folder.path(), base)
            };
            let workspace =
                Arc::new(Workspace::create(&folder.path().join("workspaces"), start, None).unwrap());
            let sandbox = CommandSandbox::without_launcher();
            let cancel = CancellationToken::new();
            Self {
                call: ToolContext {
                    workspace,
                    sandbox,
                    index: None,
                    commit_time_s: 1_790_000_000,
                    commit_author: CommitAuthor::journeyman(),
                    cancel,
                },
                _folder: folder,
            }
        }

        /// Creates a workspace at another commit of the same repository.
        pub(crate) fn at(self, base: domain::CommitId) -> Self {
            let Self { call, _folder } = self;
            let start = WorkspaceStart::sample(_folder.path(), base);
            let workspace = Workspace::create(&_folder.path().join("workspaces"), start, None);
            let call = ToolContext {
                workspace: Arc::new(workspace.unwrap()),
                ..call
            };
            Self { call, _folder }
        }

        /// Creates a workspace with an index of its base commit.
        pub(crate) fn indexed() -> Self {
            let mut world = Self::new();
            let mirror = world._folder.path().join("mirror").into();
            world.call.index = Some(CommitIndex::built(&mirror, &world.call.workspace.git.base).0);
            world
        }

        /// Runs a tool that works on files.
        pub(crate) fn run(&self, name: &str, input: &Value) -> Result<String, String> {
            let ToolAction::Blocking(run) = find_tool(name)?.run else {
                panic!("{name} is a command")
            };
            let read = read_input(find_tool(name)?, &input.to_string())?;
            run(&self.call, read.input).map(|reply| reply.text)
        }

        pub(crate) fn parents(&self, commit: &domain::CommitId) -> Vec<domain::CommitId> {
            self.call.workspace.git.parents(commit)
        }

        pub(crate) fn file(&self, path: &str) -> String {
            let bytes = self
                .call
                .workspace
                .root()
                .read(Path::new(path), 1_000_000)
                .unwrap();
            String::from_utf8(bytes).unwrap()
        }
    }

    fn commit_shop_files(git: &git2::Repository) -> domain::CommitId {
        let mut root = git.treebuilder(None).unwrap();
        let mut source = git.treebuilder(None).unwrap();
        let blob = |text: &str| git.blob(text.as_bytes()).unwrap();
        source
            .insert(
                "cart.py",
                blob("def total(items):\n    return 0\n\n\ndef count(items):\n    return 0\n"),
                0o100_644,
            )
            .unwrap();
        root.insert("shop", source.write().unwrap(), 0o040_000).unwrap();
        root.insert("README.md", blob("# Shop\n"), 0o100_644).unwrap();
        root.insert(".gitignore", blob("build/\n*.log\n"), 0o100_644)
            .unwrap();
        root.insert("run.sh", blob("#!/bin/sh\n"), 0o100_755).unwrap();
        root.insert("link", blob("README.md"), 0o120_000).unwrap();
        root.insert("out", blob("/etc"), 0o120_000).unwrap();
        let tree = git.find_tree(root.write().unwrap()).unwrap();
        let who = git2::Signature::new("A", "a@acme.example", &git2::Time::new(1, 0)).unwrap();
        let id = git
            .commit(Some("refs/heads/main"), &who, &who, "first", &tree, &[])
            .unwrap();
        id.to_string().parse().unwrap()
    }

    #[test]
    fn unknown_tool_error_lists_tools() {
        let error = find_tool("rm").err().unwrap();
        assert!(
            error.contains("\"rm\"") && error.contains("read_file, write_file"),
            "{error}"
        );
    }

    #[test]
    fn every_tool_has_schema_and_description() {
        for tool in ALL {
            let schema: &Value = &tool.schema;
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert!(
                schema["properties"].is_object() && tool.description.len() > 40,
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn commit_needs_no_second_survey() {
        let noting = ALL.iter().filter(|tool| has_noted_writes(tool));
        let names: BTreeSet<&str> = noting.map(|tool| tool.name).collect();
        let expected = ["apply_patch", "commit_changes", "edit_file", "write_file"];
        assert_eq!(names, BTreeSet::from(expected));
    }

    #[test]
    fn tool_answer_is_bounded_with_hint() {
        let outcome = ToolOutcome::new(ToolEnding::Done, "é".repeat(MAX_ANSWER)).bounded();
        assert!(outcome.truncated && outcome.text.len() < MAX_ANSWER + 200);
        assert!(
            outcome
                .text
                .contains("left out: 65536 of 131072 bytes. Ask for less")
        );
        let short = ToolOutcome::new(ToolEnding::Done, "short").bounded();
        assert_eq!((short.text.as_str(), short.truncated), ("short", false));
    }

    #[tokio::test]
    async fn unknown_input_field_is_ignored_with_note() {
        let world = World::new();
        let (sink, _chunks) = mpsc::channel(1);
        let input = r#"{"file_path": "README.md", "reason": "to see it"}"#;
        let outcome = run_tool(&read_file::TOOL, world.call.clone(), input, &sink).await;
        assert_eq!(outcome.ending, ToolEnding::Done);
        assert!(
            outcome.text.ends_with("[read_file has no field reason; ignored]"),
            "{}",
            outcome.text
        );
        let refused = run_tool(&write_file::TOOL, world.call.clone(), r#"{"path": "a"}"#, &sink).await;
        assert!(refused.text.contains("`content` is missing"), "{}", refused.text);
    }

    /// Returns a text of lines with these indentations, and the same text with one line changed.
    pub(crate) fn one_line_changed(indents: &[usize], at: usize) -> (String, String) {
        let at = at % indents.len();
        let text = |changed: Option<usize>| -> String {
            let line = |(number, indent): (usize, &usize)| match changed {
                Some(changed) if changed == number => format!("{}changed\n", "    ".repeat(*indent)),
                _ => format!("{}line {number}\n", "    ".repeat(*indent)),
            };
            indents.iter().enumerate().map(line).collect()
        };
        (text(None), text(Some(at)))
    }

    /// Log of a terminal: lines that end in LF, CRLF and nothing, with lone CR as data.
    pub(crate) const MIXED_LINE_ENDS: &str =
        "start\r\n 10%\r 20%\r 30%\nload a\nload b\r\ncount\r\r\nload c\rload d\n\rend";
    /// A word of each line of [`MIXED_LINE_ENDS`], and another word for it.
    pub(crate) const MIXED_LINE_WORDS: [(&str, &str); 7] = [
        ("start", "begin"),
        ("20%", "25%"),
        ("load a", "keep a"),
        ("load b", "keep b"),
        ("count", "total"),
        ("load d", "keep d"),
        ("end", "stop"),
    ];

    /// Returns git's patch from one text to another.
    pub(crate) fn git_diff(before: &str, after: &str, context: usize) -> String {
        let folder = tempfile::TempDir::new().unwrap();
        for (name, text) in [("a", before), ("b", after)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let output = std::process::Command::new("git")
            .args([
                "diff",
                "--no-index",
                "--no-color",
                &format!("-U{context}"),
                "a",
                "b",
            ])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.find("@@")
            .map_or_else(String::new, |at| text[at..].to_owned())
    }
}
