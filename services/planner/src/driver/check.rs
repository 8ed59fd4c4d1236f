//! Requests to an executor for code and checks. A request that it cannot answer has an empty result; it
//! does not fail the run.

use domain::check::{CheckOutcome, CheckSpec, CompletedCheck, TreeKind};
use domain::{CallId, Fact, JobRequest, SandboxLevel, TicketNews, cause::format_error_chain};
use futures::future::join_all;

use super::recovery::FailedCall;
use super::{PlannerRunState, RunDriver, StepOutcome, TicketError, retry_call};
use crate::embeddings::EmbeddingClient;
use crate::executors::{CallError, CodeSeeds, RunCaller, SeedQuery, WorkspaceCalls};
use crate::live_output;

// Number of code places to rank by meaning; the executor returns no more.
const CANDIDATES: u32 = 200;
// Characters of the ticket's text that an executor compares a change with.
const TICKET_CHARS: usize = 60_000;

impl RunDriver {
    pub(super) async fn find_code(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        request: &JobRequest,
    ) -> Result<StepOutcome, TicketError> {
        let query = SeedQuery {
            text: build_seed_query(state, request),
            dbt: if request.rules.dbt.enabled {
                request.rules.dbt.projects.clone()
            } else {
                Vec::new()
            },
            candidates: self.ranking(request).map_or(0, |_| CANDIDATES),
            ..SeedQuery::default()
        };
        let text = query.text.clone();
        let found = match workspace.seed_context(query).await {
            Ok(found) => Ok(self.ranked(request, &text, found).await),
            Err(error) => Err(error),
        };
        let nothing = Fact::CodeFound {
            seeds: Vec::new(),
            note: String::new(),
        };
        self.or_nothing(workspace.caller, state, found, nothing).await
    }

    /// Returns the embeddings client, if it is configured and the repository's rules allow it.
    fn ranking(&self, request: &JobRequest) -> Option<&EmbeddingClient> {
        self.embeddings
            .as_ref()
            .filter(|_| request.rules.agent.embeddings)
    }

    async fn ranked(&self, request: &JobRequest, text: &str, found: CodeSeeds) -> Fact {
        let (note, had_none) = (found.note.clone(), found.chunks.is_empty());
        let seeds = match self.ranking(request) {
            Some(embeddings) => embeddings.rank(text, found, &request.rules).await,
            None => found.chunks,
        };
        // The search's note reports that there was no confident match; the ranking found some.
        let note = if had_none && !seeds.is_empty() {
            String::new()
        } else {
            note
        };
        Fact::CodeFound { seeds, note }
    }

    /// Searches for checks, and inspects the change at the same time if `inspects_change`. The facts have the order
    /// that they have one after the other, so a crash between them leaves the inspection to the next planner.
    pub(super) async fn find_checks(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        request: &JobRequest,
        inspects_change: bool,
    ) -> Result<StepOutcome, TicketError> {
        let searching = request_checks(workspace, request);
        let inspecting = async {
            if inspects_change {
                Some(request_inspection(workspace, state, request).await)
            } else {
                None
            }
        };
        let (found, seen) = tokio::join!(searching, inspecting);
        let nothing = Fact::ChecksFound {
            candidates: Vec::new(),
        };
        let outcome = self.or_nothing(workspace.caller, state, found, nothing).await?;
        Ok(match (outcome, seen) {
            (StepOutcome::Fact(found), Some(Ok(seen))) if matches!(*found, Fact::ChecksFound { .. }) => {
                StepOutcome::Facts(vec![*found, seen])
            }
            // A failed inspection is repeated as the next step, and its failure shows again. After the loss of the
            // workspace both are repeated.
            (outcome, _) => outcome,
        })
    }

    pub(super) async fn inspect_change(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        request: &JobRequest,
    ) -> Result<StepOutcome, TicketError> {
        let seen = request_inspection(workspace, state, request).await;
        let nothing = Fact::ChangeInspected { report: None };
        self.or_nothing(workspace.caller, state, seen, nothing).await
    }

    /// Runs checks at the same time. The results are recorded together, in the order of the requests.
    pub(super) async fn run_checks(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        sandbox: SandboxLevel,
        checks: Vec<(CallId, CheckSpec)>,
    ) -> Result<StepOutcome, TicketError> {
        let running = checks
            .iter()
            .map(|(id, check)| self.run_check(workspace, id, check));
        let (mut facts, mut failed) = (Vec::new(), None);
        for (ended, (id, check)) in join_all(running).await.into_iter().zip(&checks) {
            match ended {
                Ok(run) => facts.push(build_check_fact(id, clear_passing_names(run))),
                Err(error) if is_unanswered(&error) => {
                    let run = unrun_check(check, format_error_chain(&error), sandbox);
                    facts.push(build_check_fact(id, run));
                }
                Err(error) => failed = failed.or(Some((error, id, check))),
            }
        }
        match failed {
            Some((error, id, check)) if facts.is_empty() => {
                let run = unrun_check(check, format_error_chain(&error), sandbox);
                let nothing = FailedCall::Check(Box::new(build_check_fact(id, run)));
                self.recover(workspace.caller, state, error, nothing).await
            }
            // Results come first, because a recovery may take long. A check without one is repeated under its
            // id, and its failure shows again.
            Some(_) | None => Ok(StepOutcome::Facts(facts)),
        }
    }

    async fn run_check(
        &self,
        workspace: WorkspaceCalls<'_>,
        id: &CallId,
        check: &CheckSpec,
    ) -> Result<CompletedCheck, CallError> {
        let run = workspace.caller.run.clone();
        let output = live_output::start_output(self.queue.live(), run, id.clone());
        retry_call(|| workspace.run_check(id, check, &output)).await
    }

    /// Recovers a lost workspace. Every other failure has the result `nothing`.
    pub(super) async fn or_nothing(
        &self,
        caller: &RunCaller,
        state: &PlannerRunState,
        answered: Result<Fact, CallError>,
        nothing: Fact,
    ) -> Result<StepOutcome, TicketError> {
        match answered {
            Ok(fact) => Ok(fact.into()),
            Err(error) if is_unanswered(&error) => Ok(nothing.into()),
            Err(error) => {
                self.recover(caller, state, error, FailedCall::Check(Box::new(nothing)))
                    .await
            }
        }
    }
}

async fn request_checks(workspace: WorkspaceCalls<'_>, request: &JobRequest) -> Result<Fact, CallError> {
    let given = match &request.rules.agent.checks {
        // The rules turn checks off, so the executor has nothing to search for.
        Some(commands) if commands.is_empty() => {
            return Ok(Fact::ChecksFound {
                candidates: Vec::new(),
            });
        }
        Some(commands) => commands.as_slice(),
        None => &[],
    };
    let asked = (given, request.rules.agent.reports.as_slice());
    let found = retry_call(|| workspace.find_checks(asked)).await;
    found.map(|candidates| Fact::ChecksFound { candidates })
}

async fn request_inspection(
    workspace: WorkspaceCalls<'_>,
    state: &PlannerRunState,
    request: &JobRequest,
) -> Result<Fact, CallError> {
    let asked = collect_ticket_text(state, request);
    let seen = retry_call(|| workspace.inspect_change(asked.clone())).await;
    seen.map(|report| Fact::ChangeInspected {
        report: Some(Box::new(report)),
    })
}

/// Returns true for a call that has no answer although the workspace is open.
const fn is_unanswered(error: &CallError) -> bool {
    match error {
        CallError::TimedOut | CallError::Invalid(_) | CallError::Refused(_) | CallError::Unkeepable(_) => {
            true
        }
        CallError::Stale | CallError::Store(_) | CallError::WorkspaceLost | CallError::Trouble { .. } => {
            false
        }
    }
}

fn build_check_fact(id: &CallId, run: CompletedCheck) -> Fact {
    Fact::CheckRan {
        id: id.clone(),
        run: Box::new(run),
    }
}

/// Wording of the ticket: its text and the comments of users who may instruct, new ones included.
fn collect_ticket_text(state: &PlannerRunState, request: &JobRequest) -> String {
    let mut text = format!("{}\n\n{}", request.text.summary, request.text.description);
    let comments = request
        .text
        .comments
        .iter()
        .filter(|comment| comment.may_instruct);
    let received = state.conversation().news().received().iter().map(|item| {
        let TicketNews::Comment { comment, .. } = &item.news;
        comment
    });
    for comment in comments.chain(received.filter(|comment| comment.may_instruct)) {
        text.push_str("\n\n");
        text.push_str(&comment.text);
    }
    truncate_chars(&text, TICKET_CHARS).to_owned()
}

/// Truncates a text to its first `most` characters.
fn truncate_chars(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// Query for code: the ticket's text, and the files that its triage expects to change.
fn build_seed_query(state: &PlannerRunState, request: &JobRequest) -> String {
    let expected = state
        .outputs()
        .intake()
        .present()
        .map(|intake| intake.files.join("\n"));
    format!(
        "{}\n\n{}\n\n{}",
        request.text.summary,
        expected.unwrap_or_default(),
        request.text.description
    )
}

/// Clears the names of passing tests from a run without a part of the change: only its failures matter, and
/// the names would fill the journal.
fn clear_passing_names(mut run: CompletedCheck) -> CompletedCheck {
    if let (TreeKind::HeadWithout { .. }, Some(tests)) = (&run.tree_kind, &mut run.tests) {
        tests.passing.clear();
        tests.skipping.clear();
    }
    run
}

/// Result of a check that did not run.
fn unrun_check(check: &CheckSpec, reason: String, sandbox: SandboxLevel) -> CompletedCheck {
    CompletedCheck {
        command: check.command.clone(),
        directory: check.directory.clone(),
        tree: None,
        tree_kind: check.tree.clone(),
        // A check that did not run says nothing about the change, neither for nor against it.
        outcome: CheckOutcome::Infra,
        reason,
        exit_code: None,
        duration_ms: 0,
        tests: None,
        output_tail: String::new(),
        truncated: false,
        sandbox,
        tampered: Vec::new(),
        setup_hint: None,
    }
}
