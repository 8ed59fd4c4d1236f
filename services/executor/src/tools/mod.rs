//! The tools that the model may call; each is defined in one file and listed here.

mod apply_patch;
mod commit_changes;
mod create_branch;
mod diff;
mod edit_file;
mod list_directory;
mod outline;
mod read_file;
mod run_command;
mod search_content;
mod search_files;
mod syntax;
mod undo;
mod write_file;

pub(crate) use run_command::{place as command_place, spec as command_spec};

use std::{path::Path, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    sandbox::Sandbox,
    workspace::{Workspace, explain},
};

/// One tool.
pub(crate) struct Tool {
    /// What the model calls it.
    pub(crate) name: &'static str,
    /// What it does and when to use it, for the model.
    pub(crate) description: &'static str,
    /// JSON Schema of the input.
    pub(crate) schema: fn() -> Value,
    /// True when it never changes the workspace.
    pub(crate) read_only: bool,
    run: Run,
}

/// How a tool runs.
enum Run {
    /// On a blocking thread; short.
    Blocking(fn(&Call, &str) -> Result<String, String>),
    /// Under the launcher.
    Command,
}

/// What a tool works with.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) sandbox: Sandbox,
    /// Unix seconds for a commit.
    pub(crate) commit_time_s: i64,
    /// Fires when nobody waits for the result any more.
    pub(crate) cancel: CancellationToken,
}

/// How a tool ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what was asked.
    Done(String),
    /// It refused or failed; the text says what to do next.
    Failed(String),
    /// It was cut.
    Cut(String),
}

/// Every tool, in the order in which the model sees them.
pub(crate) const ALL: [&Tool; 13] = [
    &read_file::TOOL,
    &write_file::TOOL,
    &edit_file::TOOL,
    &apply_patch::TOOL,
    &list_directory::TOOL,
    &search_files::TOOL,
    &search_content::TOOL,
    &outline::TOOL,
    &run_command::TOOL,
    &diff::TOOL,
    &undo::TOOL,
    &create_branch::TOOL,
    &commit_changes::TOOL,
];

/// Finds a tool by its name.
///
/// # Errors
/// A text for the model that names the tools there are.
pub(crate) fn find(name: &str) -> Result<&'static Tool, String> {
    let names = || ALL.map(|tool| tool.name).join(", ");
    ALL.into_iter()
        .find(|tool| tool.name == name)
        .ok_or_else(|| format!("There is no tool {name:?}. The tools are: {}.", names()))
}

/// Whether the tool of this name starts a command.
pub(crate) fn is_command(name: &str) -> bool {
    find(name).is_ok_and(|tool| matches!(tool.run, Run::Command))
}

/// Runs a tool to its end.
pub(crate) async fn run(
    tool: &'static Tool,
    call: Call,
    input: String,
    sink: &mpsc::Sender<Vec<u8>>,
) -> Outcome {
    match tool.run {
        Run::Command => run_command::run(&call, &input, sink).await,
        Run::Blocking(run) => {
            let done = tokio::task::spawn_blocking(move || run(&call, &input)).await;
            match done {
                Ok(Ok(text)) => Outcome::Done(text),
                Ok(Err(text)) => Outcome::Failed(text),
                Err(error) => {
                    tracing::error!(tool = tool.name, %error, "a tool panicked");
                    Outcome::Failed("The tool failed inside. Try another way.".to_owned())
                }
            }
        }
    }
}

/// The input of a tool that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The largest text that is changed in place, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// A file's text.
fn text_of(call: &Call, path: &Path) -> Result<String, String> {
    let read = call.workspace.root().read(path, MAX_TEXT);
    let bytes = read.map_err(|error| explain(path, &error))?;
    String::from_utf8(bytes).map_err(|_| {
        format!(
            "{} is not UTF-8 text. Change it with run_command.",
            path.display()
        )
    })
}

/// Reads a tool's input.
fn parse<T: DeserializeOwned>(input: &str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(if input.trim().is_empty() { "{}" } else { input });
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, problem) = (error.path().to_string(), error.inner().to_string());
        let place = if path == "." {
            String::new()
        } else {
            format!(" at `{path}`")
        };
        format!("Invalid input{place}: {problem}. Call the tool again with input that fits its schema.")
    })
}

/// An object schema: properties, the first `required` of which must be there.
fn object(properties: &[(&str, &str, &str)], required: usize) -> Value {
    let described = properties.iter().map(|(name, kind, text)| {
        (
            (*name).to_owned(),
            serde_json::json!({ "type": kind, "description": text }),
        )
    });
    let required: Vec<&str> = properties[..required].iter().map(|(name, _, _)| *name).collect();
    serde_json::json!({
        "type": "object",
        "properties": described.collect::<serde_json::Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

/// At most `max` bytes of a text, cut at a character's end.
fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use domain::{RunId, TicketKey};

    use super::*;
    use crate::workspace::Start;

    /// A workspace of a small repository.
    pub(crate) struct World {
        pub(crate) call: Call,
        _folder: tempfile::TempDir,
    }

    impl World {
        pub(crate) fn new() -> Self {
            let folder = tempfile::TempDir::new().unwrap();
            let mirror = git::Repository::init_bare(&folder.path().join("mirror")).unwrap();
            let base = commit(mirror.objects());
            let start = Start {
                run: RunId::new(TicketKey::jira("ENG-12").unwrap(), 1),
                repository: "acme/shop".parse().unwrap(),
                base,
                base_branch: "main".to_owned(),
                mirror: folder.path().join("mirror").into(),
                restore: None,
                runner: None,
            };
            let workspace = Arc::new(Workspace::create(&folder.path().join("workspaces"), start).unwrap());
            let sandbox = Sandbox::without_launcher();
            let cancel = CancellationToken::new();
            Self {
                call: Call {
                    workspace,
                    sandbox,
                    commit_time_s: 1_790_000_000,
                    cancel,
                },
                _folder: folder,
            }
        }

        /// Runs a tool that works on files.
        pub(crate) fn run(&self, name: &str, input: &Value) -> Result<String, String> {
            let Run::Blocking(run) = find(name)?.run else {
                panic!("{name} is a command")
            };
            run(&self.call, &input.to_string())
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

    fn commit(git: &git2::Repository) -> domain::CommitId {
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
        let who = git2::Signature::new("A", "a@example.com", &git2::Time::new(1, 0)).unwrap();
        let id = git
            .commit(Some("refs/heads/main"), &who, &who, "first", &tree, &[])
            .unwrap();
        id.to_string().parse().unwrap()
    }

    #[test]
    fn an_unknown_tool_is_told_which_tools_there_are() {
        let error = find("rm").err().unwrap();
        assert!(
            error.contains("\"rm\"") && error.contains("read_file, write_file"),
            "{error}"
        );
    }

    #[test]
    fn every_tool_has_an_object_schema_and_a_description() {
        for tool in ALL {
            let schema = (tool.schema)();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert!(
                schema["properties"].is_object() && tool.description.len() > 40,
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn bad_input_names_the_field() {
        let world = World::new();
        let error = world
            .run("read_file", &serde_json::json!({ "path": 3 }))
            .unwrap_err();
        assert!(error.contains("`path`"), "{error}");
        let error = world
            .run("write_file", &serde_json::json!({ "path": "a" }))
            .unwrap_err();
        assert!(error.contains("`content`"), "{error}");
        let error = world
            .run("read_file", &serde_json::json!({ "path": "a", "line": 1 }))
            .unwrap_err();
        assert!(error.contains("`line`"), "{error}");
    }
}
