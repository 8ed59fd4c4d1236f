//! Requests to an executor for code and checks. A request that it cannot answer has an empty result; it
//! does not fail the run.

use domain::check::{CheckOutcome, CheckRun, CheckSpec, TreeKind};
use domain::{CallId, Fact, JobRequest, News, WorkspaceInfo, cause::chain};

use super::recover::Cut;
use super::{Driver, Outcome, RunState, Trouble, retried};
use crate::embeddings::Embeddings;
use crate::executors::{CallError, Caller, SeedQuery, Seeds};
use crate::live;

// Number of code places to rank by meaning; the executor returns no more.
const CANDIDATES: u32 = 200;
// Characters of the ticket's text that an executor compares a change with.
const TICKET_CHARS: usize = 60_000;

impl Driver {
    pub(super) async fn find_code(
        &self,
        caller: &Caller,
        state: &RunState,
        info: &WorkspaceInfo,
        request: &JobRequest,
    ) -> Result<Outcome, Trouble> {
        let query = SeedQuery {
            text: wanted(state, request),
            dbt: match request.rules.dbt.enabled {
                true => request.rules.dbt.projects.clone(),
                false => Vec::new(),
            },
            candidates: self.ranking(request).map_or(0, |_| CANDIDATES),
            ..SeedQuery::default()
        };
        let text = query.text.clone();
        let found = match self.executors.seed_context(caller, info, query).await {
            Ok(found) => Ok(self.ranked(request, &text, found).await),
            Err(error) => Err(error),
        };
        let nothing = Fact::CodeFound {
            seeds: Vec::new(),
            note: String::new(),
        };
        self.or_nothing(caller, state, found, nothing).await
    }

    /// Returns the embeddings client, if it is configured and the repository's rules allow it.
    fn ranking(&self, request: &JobRequest) -> Option<&Embeddings> {
        self.embeddings
            .as_ref()
            .filter(|_| request.rules.agent.embeddings)
    }

    async fn ranked(&self, request: &JobRequest, text: &str, found: Seeds) -> Fact {
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

    pub(super) async fn find_checks(
        &self,
        caller: &Caller,
        state: &RunState,
        info: &WorkspaceInfo,
        request: &JobRequest,
    ) -> Result<Outcome, Trouble> {
        let given = &request.rules.agent.checks;
        let found = retried(|| self.executors.find_checks(caller, info, given)).await;
        self.or_nothing(
            caller,
            state,
            found.map(|candidates| Fact::ChecksFound { candidates }),
            Fact::ChecksFound {
                candidates: Vec::new(),
            },
        )
        .await
    }

    pub(super) async fn inspect_change(
        &self,
        caller: &Caller,
        state: &RunState,
        info: &WorkspaceInfo,
        request: &JobRequest,
    ) -> Result<Outcome, Trouble> {
        let asked = ticket_text(state, request);
        let seen = retried(|| self.executors.inspect_change(caller, info, asked.clone())).await;
        let seen = seen.map(|report| Fact::ChangeInspected {
            report: Some(Box::new(report)),
        });
        self.or_nothing(caller, state, seen, Fact::ChangeInspected { report: None })
            .await
    }

    pub(super) async fn run_check(
        &self,
        caller: &Caller,
        state: &RunState,
        info: &WorkspaceInfo,
        (id, check): (CallId, CheckSpec),
    ) -> Result<Outcome, Trouble> {
        let output = live::output_of(self.queue.live(), caller.run.clone(), id.clone());
        let ran = retried(|| self.executors.run_check(caller, info, &id, &check, &output)).await;
        // Kept for the report, because `or_nothing` consumes the error.
        let reason = ran.as_ref().err().map(|error| chain(error)).unwrap_or_default();
        let ran = ran.map(|run| Fact::CheckRan {
            id: id.clone(),
            run: Box::new(without_names(run)),
        });
        let run = Box::new(not_run(&check, reason, info));
        self.or_nothing(caller, state, ran, Fact::CheckRan { id, run })
            .await
    }

    /// Recovers a lost workspace. Every other failure has the result `nothing`.
    async fn or_nothing(
        &self,
        caller: &Caller,
        state: &RunState,
        answered: Result<Fact, CallError>,
        nothing: Fact,
    ) -> Result<Outcome, Trouble> {
        match answered {
            Ok(fact) => Ok(fact.into()),
            Err(
                CallError::TimedOut
                | CallError::Invalid(_)
                | CallError::Refused(_)
                | CallError::Unkeepable(_),
            ) => Ok(nothing.into()),
            Err(error) => {
                self.recover(caller, state, error, Cut::Check(Box::new(nothing)))
                    .await
            }
        }
    }
}

/// Wording of the ticket: its text and the comments of users who may instruct, new ones included.
fn ticket_text(state: &RunState, request: &JobRequest) -> String {
    let mut text = format!("{}\n\n{}", request.text.summary, request.text.description);
    let comments = request
        .text
        .comments
        .iter()
        .filter(|comment| comment.may_instruct);
    let said = state.news.iter().map(|heard| {
        let News::Comment { comment, .. } = &heard.news;
        comment
    });
    for comment in comments.chain(said.filter(|comment| comment.may_instruct)) {
        text.push_str("\n\n");
        text.push_str(&comment.text);
    }
    truncate(&text, TICKET_CHARS).to_owned()
}

/// Truncates a text to its first `most` characters.
fn truncate(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// Query for code: the ticket's text, and the files that its triage expects to change.
fn wanted(state: &RunState, request: &JobRequest) -> String {
    let expected = state.intake().flatten().map(|intake| intake.files.join("\n"));
    format!(
        "{}\n\n{}\n\n{}",
        request.text.summary,
        expected.unwrap_or_default(),
        request.text.description
    )
}

/// Clears the names of passing tests from a run without a part of the change: only its failures matter, and
/// the names would fill the journal.
fn without_names(mut run: CheckRun) -> CheckRun {
    if let (TreeKind::HeadWithout { .. }, Some(tests)) = (&run.tree_kind, &mut run.tests) {
        tests.passing.clear();
        tests.skipping.clear();
    }
    run
}

/// Result of a check that did not run.
fn not_run(check: &CheckSpec, reason: String, info: &WorkspaceInfo) -> CheckRun {
    CheckRun {
        command: check.command.clone(),
        directory: check.directory.clone(),
        tree: None,
        tree_kind: check.tree.clone(),
        outcome: CheckOutcome::Infra,
        reason,
        exit_code: None,
        duration_ms: 0,
        tests: None,
        output_tail: String::new(),
        truncated: false,
        sandbox: info.sandbox,
        tampered: Vec::new(),
        setup_hint: None,
    }
}
