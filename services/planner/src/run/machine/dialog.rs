//! A conversation with the model: its turns, and the tool calls of each.

use domain::{
    CallId, Hint, Phase, Reply, ReplyStop, ReportId, ReportOutcome, RepositoryName, Timestamp, ToolCall,
    ToolResult,
};

use super::shorter::Shorter;

/// The turns of one conversation; each has a transcript of its own.
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    pub(crate) phase: Phase,
    /// Several conversations may serve one phase, one after another.
    pub(crate) round: u32,
    pub(crate) turns: Vec<Turn>,
    pub(crate) room: Shorter,
}

/// One model call and its tool calls.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) id: CallId,
    /// How many turns the run had before it, in all dialogs.
    pub(crate) after: usize,
    pub(crate) reply: Option<Reply>,
    pub(crate) failed: Option<ModelTrouble>,
    pub(crate) calls: Vec<Call>,
    /// Why what its calls changed could not be kept.
    pub(crate) unkept: Option<String>,
    /// What the model is told with its results.
    pub(crate) hints: Vec<Hint>,
}

impl Turn {
    /// True when the reply stopped for this reason.
    pub(crate) fn stopped_with(&self, stop: ReplyStop) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.stop == stop)
    }
}

/// Why a model call failed.
#[derive(Clone, Debug)]
pub(crate) struct ModelTrouble {
    pub(crate) detail: String,
    /// The same call may work later.
    pub(crate) transient: bool,
}

/// One tool call of a reply.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: ToolCall,
    /// In whose workspace it runs; absent: the run's own repository.
    pub(crate) repository: Option<RepositoryName>,
    pub(crate) state: CallState,
    /// The report that does what the call asks for.
    pub(crate) report: Option<ReportId>,
    /// How often its workspace was lost while it ran.
    pub(crate) losses: u32,
}

/// A call is not run again once its workspace was lost this often while it ran.
const MOST_LOSSES: u32 = 2;

impl Call {
    pub(super) const fn new(call: ToolCall) -> Self {
        Self {
            call,
            repository: None,
            state: CallState::Waiting,
            report: None,
            losses: 0,
        }
    }

    /// The files that it writes by their names; commands write where they like.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let text = |field: &str| self.call.input.get(field).and_then(serde_json::Value::as_str);
        match self.call.name.as_str() {
            "edit_file" | "write_file" => text("path").into_iter().collect(),
            "apply_patch" => text("patch").map(patched).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Whether it probably costs every workspace that it runs in.
    pub(crate) const fn is_deadly(&self) -> bool {
        self.losses >= MOST_LOSSES
    }

    pub(crate) const fn is_open(&self) -> bool {
        !matches!(self.state, CallState::Finished { .. })
    }
}

/// The lines of the `*** Begin Patch` format that name a file.
const FILE_MARKS: [&str; 4] = [
    "*** Update File:",
    "*** Add File:",
    "*** Delete File:",
    "*** Move to:",
];

/// The files that a patch names: a unified diff, or one of the `*** Begin Patch` format.
fn patched(patch: &str) -> Vec<&str> {
    let is_marked = patch
        .lines()
        .any(|line| line.trim_end().starts_with("*** Begin Patch"));
    if is_marked {
        let named = |line| FILE_MARKS.iter().find_map(|mark| str::strip_prefix(line, *mark));
        return patch.lines().filter_map(named).map(str::trim).collect();
    }
    let named = patch
        .lines()
        .filter_map(|line| line.strip_prefix("--- ").or(line.strip_prefix("+++ ")));
    named
        .map(|name| name.split('\t').next().unwrap_or_default().trim())
        .map(|name| {
            name.strip_prefix("a/")
                .or(name.strip_prefix("b/"))
                .unwrap_or(name)
        })
        .collect()
}

/// Where a tool call stands.
#[derive(Clone, Debug)]
pub(crate) enum CallState {
    Waiting,
    Running { id: CallId, at: Timestamp },
    Finished { result: CallResult, position: u64 },
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallResult {
    /// A tool's own result.
    Ran(ToolResult),
    /// The end of the report that did it.
    Settled(ReportOutcome),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(patch: &str) -> Vec<String> {
        let call = ToolCall {
            id: "1".to_owned(),
            name: "apply_patch".to_owned(),
            input: json!({ "patch": patch }),
        };
        let call = Call::new(call);
        call.paths().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn patches_of_both_formats_name_their_files() {
        let diff = "--- a/shop/cart.py\n+++ b/shop/cart.py\t2026\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(paths(diff), ["shop/cart.py", "shop/cart.py"]);
        let marked = "*** Begin Patch\n*** Update File: shop/cart.py\n*** Move to: shop/basket.py\n@@\n-a\n+b\n\
                      *** Add File: docs/new.md\n+*** Update File: no/file.md\n*** Delete File: old.md\n*** End Patch\n";
        assert_eq!(
            paths(marked),
            ["shop/cart.py", "shop/basket.py", "docs/new.md", "old.md"]
        );
        assert!(paths("words").is_empty());
    }
}
