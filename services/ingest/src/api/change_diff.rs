//! Difference of a run's change: the one that a person decides about, a later pushed one, or the last one of its workspace.

use std::{convert::Infallible, pin::pin};

use api::{
    DIFF_SOURCE_HEADER,
    types::{DiffSource, ProblemView},
};
use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::{
    CallId, CommitId, Fact, JournalEntry, ObjectRef, OutboundReceipt, RunId, ToolStatus, text::escape_hidden,
};
use futures::{TryStreamExt as _, stream};
use queue::RunJournals;

use super::{ApiProblem, ApiState, ViewerProof, auth::InScope, runs::find_run};
use crate::facts::gates::{find_last_shown, find_open_gate, is_about_gate, update_last_shown};

/// Tool of the executor that shows the difference of a workspace.
const DIFF_TOOL: &str = "diff";
/// Start of each file in git's format.
const FILE_START: &str = "diff --git ";

/// Returns the change of a run as text in git's format: the one that a user was last asked about, else the last one that
/// the run pushed or that its workspace showed.
///
/// A later push of another commit replaces the one of the question.
#[utoipa::path(get, path = "/v1/runs/{id}/diff",
    params(("id" = String, Path, description = "Percent-encoded run id.")), security(("bearer" = [])),
    responses((status = 200, body = String, content_type = "text/x-diff",
            description = "The header `journeyman-diff` names the origin of the text: `decision`, `pushed` or `workspace`."),
        (status = 404, body = ProblemView, description = "No difference of this run is kept."),
        (status = 429, body = ProblemView)))]
pub(super) async fn get_run_diff(
    InScope(ViewerProof(caller), run): InScope<ViewerProof, RunId>,
    State(state): State<ApiState>,
) -> Result<Response, ApiProblem> {
    let router = state.router()?;
    find_run(&state, &caller, &run).await?;
    let permit = state.reads.begin(&caller.name).await?;
    let read = router.queue.triggers().read_each_after(run.ticket(), 0).await?;
    let change = match find_last_shown(&run, read.iter().filter_map(|(_, trigger)| trigger.as_ref().ok())) {
        Some((head, diff)) => Some(KnownChange::Stored(DiffSource::Decision, head, diff)),
        None => search_journal(&router.queue.journal(), &run).await?.result(),
    };
    let change = change.ok_or_else(|| ApiProblem::NotFound(format!("no difference of run {run} is kept")))?;
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/x-diff; charset=utf-8"),
    );
    // A diff contains text of other people, which a browser must not render as a page.
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        HeaderName::from_static(DIFF_SOURCE_HEADER),
        HeaderValue::from_static(change.source().as_str()),
    );
    let text = match change {
        KnownChange::Stored(_, head, object) => {
            if let Ok(tag) = HeaderValue::from_str(&format!("\"{head}\"")) {
                headers.insert(header::ETAG, tag);
            }
            router.queue.objects().get(&object).await?
        }
        KnownChange::Workspace(text) => Bytes::from(text),
    };
    // A diff may be long. The permit lasts until the last byte is sent.
    let text = stream::once(async move {
        let _permit = permit;
        Ok::<_, Infallible>(text)
    });
    Ok((headers, Body::from_stream(text)).into_response())
}

/// Change of a run.
#[derive(Debug, PartialEq, Eq)]
enum KnownChange {
    /// A commit with its difference in the object store.
    Stored(DiffSource, CommitId, ObjectRef),
    /// Difference of the workspace, as the tool showed it.
    Workspace(String),
}

impl KnownChange {
    const fn source(&self) -> DiffSource {
        match self {
            Self::Stored(source, ..) => *source,
            Self::Workspace(_) => DiffSource::Workspace,
        }
    }
}

async fn search_journal(journal: &RunJournals, run: &RunId) -> Result<ChangeSearch, queue::Error> {
    let mut search = ChangeSearch::default();
    let mut entries = pin!(journal.entries(run));
    while let Some((_, entry)) = entries.try_next().await? {
        search.apply(entry);
    }
    Ok(search)
}

/// Search for the last change in a journal. It outlives the triggers, which are kept for 30 days.
#[derive(Debug, Default)]
struct ChangeSearch {
    /// Entries about decisions.
    about_gate: Vec<JournalEntry>,
    /// Last call of the tool.
    call: Option<CallId>,
    /// Change that a person was asked about, unless another commit was pushed since.
    decided: Option<(CommitId, ObjectRef)>,
    last: Option<KnownChange>,
}

impl ChangeSearch {
    fn apply(&mut self, entry: JournalEntry) {
        if let Some(receipt) = entry.fact.receipt() {
            self.apply_receipt(receipt);
        } else if let Fact::ToolRequested { id, call, .. } = &entry.fact
            && call.name == DIFF_TOOL
        {
            self.call = Some(id.clone());
        } else if let Fact::ToolFinished { id, result } = &entry.fact
            && self.call.as_ref() == Some(id)
            && result.status == ToolStatus::Ok
        {
            // The text before the first file is for the model.
            let start = result.content.find(FILE_START);
            self.last = start.map(|start| KnownChange::Workspace(escape_hidden(&result.content[start..])));
        }
        if is_about_gate(&entry) {
            self.about_gate.push(entry);
        }
    }

    fn apply_receipt(&mut self, receipt: &OutboundReceipt) {
        self.decided = update_last_shown(self.decided.take(), receipt);
        if let Some((head, diff)) = receipt.pushed_change() {
            self.last = Some(KnownChange::Stored(DiffSource::Pushed, head, diff));
        }
    }

    /// Returns the change. `None` while a decision is open: only the reporter's triggers prove what users were shown.
    fn result(self) -> Option<KnownChange> {
        match find_open_gate(self.about_gate.iter()) {
            Some(_) => None,
            None => {
                let stored = |(head, diff)| KnownChange::Stored(DiffSource::Decision, head, diff);
                self.decided.map(stored).or(self.last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{OutboundOutcome, RunFence, Timestamp, ToolCall, ToolResult, WaitCondition};

    use super::*;

    fn build_run_id() -> RunId {
        "jira:ENG-1@5".parse().expect("run")
    }

    fn search(facts: impl IntoIterator<Item = Fact>) -> Option<KnownChange> {
        let mut search = ChangeSearch::default();
        for (position, fact) in (0..).zip(facts) {
            search.apply(JournalEntry {
                position,
                nonce: String::new(),
                fence: RunFence::default(),
                at: Timestamp::default(),
                fact,
            });
        }
        search.result()
    }

    fn run_tool(name: &str, result: ToolResult) -> [Fact; 2] {
        let id = build_run_id().call(u64::from(name != DIFF_TOOL) + 3);
        let call = ToolCall {
            id: "t".to_owned(),
            name: name.to_owned(),
            input: serde_json::json!({}),
        };
        let requested = Fact::ToolRequested {
            id: id.clone(),
            call,
            own: true,
            repository: None,
            server: None,
        };
        [requested, Fact::ToolFinished { id, result }]
    }

    fn settle(receipt: OutboundReceipt) -> Fact {
        Fact::ReportSettled {
            id: build_run_id().call(4).into(),
            outcome: OutboundOutcome::Done(receipt),
        }
    }

    fn build_object() -> ObjectRef {
        ObjectRef {
            sha256: "a".repeat(64),
            size_bytes: 9,
        }
    }

    fn build_commit() -> CommitId {
        "a".repeat(40).parse().expect("commit")
    }

    fn push(diff: Option<ObjectRef>) -> Fact {
        push_commit(build_commit(), diff)
    }

    fn push_commit(head: CommitId, diff: Option<ObjectRef>) -> Fact {
        settle(OutboundReceipt::Pushed {
            branch: "fix/ENG-1".to_owned(),
            head,
            diff,
        })
    }

    #[test]
    fn workspace_shows_last_successful_difference() {
        let shown = ToolResult::ok("1 file(s) changed\ndiff --git a/x b/x\n+\u{202e}\n");
        let facts = run_tool("diff", shown).into_iter();
        let facts = facts.chain(run_tool("diff", ToolResult::error("diff --git a/y b/y")));
        let facts = facts.chain(run_tool("read_file", ToolResult::ok("diff --git a/z b/z")));
        let text = "diff --git a/x b/x\n+<U+202E>\n".to_owned();
        assert_eq!(search(facts), Some(KnownChange::Workspace(text)));
        let nothing = ToolResult::ok("Nothing has changed since the base commit.");
        assert_eq!(search(run_tool("diff", nothing)), None);
    }

    #[test]
    fn pushed_change_replaces_that_of_workspace() {
        let shown = || run_tool("diff", ToolResult::ok("diff --git a/x b/x\n"));
        let pushed = KnownChange::Stored(DiffSource::Pushed, build_commit(), build_object());
        let facts = shown().into_iter().chain([push(Some(build_object()))]);
        assert_eq!(search(facts), Some(pushed));
        // An earlier release stored no difference.
        let facts = shown().into_iter().chain([push(None)]);
        assert_eq!(
            search(facts).map(|known| known.source()),
            Some(DiffSource::Workspace)
        );
    }

    #[test]
    fn later_push_of_other_commit_replaces_decided_change() {
        let shown = || {
            settle(OutboundReceipt::DecisionAsked {
                head: build_commit(),
                diff: build_object(),
            })
        };
        let decided = KnownChange::Stored(DiffSource::Decision, build_commit(), build_object());
        let revised: CommitId = "b".repeat(40).parse().expect("commit");
        let pushed = KnownChange::Stored(DiffSource::Pushed, revised.clone(), build_object());
        let push_revised = || push_commit(revised.clone(), Some(build_object()));
        // The push of the approved commit leaves what the person approved.
        assert_eq!(
            search([shown(), push(Some(build_object()))]).as_ref(),
            Some(&decided)
        );
        assert_eq!(search([shown(), push_revised()]), Some(pushed));
        assert_eq!(
            search([shown(), push_revised(), shown()]).as_ref(),
            Some(&decided)
        );
        // Without its difference the push cannot replace anything.
        assert_eq!(search([shown(), push_commit(revised, None)]), Some(decided));
    }

    #[test]
    fn open_decision_shows_nothing_from_journal() {
        let push = domain::BranchPush {
            repository: "acme/shop".parse().expect("repository"),
            branch: "fix/ENG-1".to_owned(),
            base: build_commit(),
            head: build_commit(),
            pack: build_object(),
            expected: None,
            scope: None,
            merge: None,
        };
        let asked = Fact::ReportRequested {
            id: build_run_id().call(4).into(),
            request: domain::OutboundAction::DecisionNeeded(domain::PushProposal {
                push,
                description: None,
            }),
            answers: None,
        };
        let shown = settle(OutboundReceipt::DecisionAsked {
            head: build_commit(),
            diff: build_object(),
        });
        let waits_for = WaitCondition::Decision;
        let facts = [asked, shown, Fact::Parked { waits_for }];
        assert_eq!(search(facts.clone()), None);
        let stopped = Fact::StopRequested { by: "ada".to_owned() };
        let reason = domain::StopReason::Stopped { by: "ada".to_owned() };
        let ended = facts.into_iter().chain([stopped, Fact::RunFinished { reason }]);
        assert_eq!(
            search(ended).map(|known| known.source()),
            Some(DiffSource::Decision)
        );
    }
}
