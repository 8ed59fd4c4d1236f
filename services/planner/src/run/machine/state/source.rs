//! Source code of a run: its work in each repository, and the code that may match its ticket.

use std::collections::BTreeMap;

use domain::{
    CodeSeed, CommitId, ExecutorWorkspace, OutboundOutcome, OutboundReceipt, PullRequestRef, RepositoryName,
    ToolResult, ToolStatus,
};

use super::super::RunInput;
use super::ApplyResult;
use super::work::{RepositoryWork, UNTOUCHED};

/// Work of a run in its repositories.
#[derive(Clone, Debug)]
pub(crate) struct SourceState {
    /// Repository of the run; absent for a notice.
    own: Option<RepositoryName>,
    /// Work in each repository that the run touches.
    works: BTreeMap<RepositoryName, RepositoryWork>,
    /// Code that may match the ticket, once it is searched.
    code: Option<CodeMatches>,
    /// Number of code searches.
    lookups: u32,
}

/// Result of a code search.
#[derive(Clone, Debug)]
struct CodeMatches {
    seeds: Vec<CodeSeed>,
    note: String,
}

impl SourceState {
    /// Creates the state at the start of the work. It has the remote state of a continued pull request.
    pub(super) fn new(input: &RunInput) -> Self {
        let request = match input {
            RunInput::Request(request) => Some(request),
            RunInput::Notice(..) => None,
        };
        let on_remote = |(ours, head): (&PullRequestRef, &CommitId)| RepositoryWork {
            pushed: Some((ours.branch.clone(), head.clone())),
            pull_request: Some(ours.clone()),
            ..RepositoryWork::default()
        };
        let work_of_request = request.and_then(|request| {
            let work = request.about.pull_request().map(on_remote)?;
            Some((request.repository.clone(), work))
        });
        Self {
            own: request.map(|request| request.repository.clone()),
            works: work_of_request.into_iter().collect(),
            code: None,
            lookups: 0,
        }
    }

    /// Restarts the work at the head that the input names. Nothing is kept: the workspaces are of the old
    /// head, and the session closes them.
    pub(super) fn reset(&mut self, input: &RunInput) {
        *self = Self::new(input);
    }

    /// Returns the work in the run's own repository.
    pub(crate) fn work(&self) -> &RepositoryWork {
        let work = self.own.as_ref().and_then(|own| self.works.get(own));
        work.unwrap_or(&UNTOUCHED)
    }

    /// Returns the work in the other repositories.
    pub(crate) fn other_works(&self) -> impl Iterator<Item = &RepositoryWork> {
        let is_other = |(repository, _): &(&RepositoryName, _)| Some(*repository) != self.own.as_ref();
        self.works.iter().filter(is_other).map(|(_, work)| work)
    }

    /// Returns the open workspace in the run's own repository.
    pub(crate) fn open_workspace(&self) -> Option<&ExecutorWorkspace> {
        self.work().open_workspace()
    }

    /// Returns every open workspace.
    pub(crate) fn open_workspaces(&self) -> impl Iterator<Item = (&RepositoryName, &ExecutorWorkspace)> {
        self.works
            .iter()
            .filter_map(|(repository, work)| Some((repository, work.open_workspace()?)))
    }

    /// Returns true if a requested workspace is not open yet: the run may wait for a slot.
    pub(super) fn has_open_request(&self) -> bool {
        self.works.values().any(RepositoryWork::has_open_request)
    }

    /// Returns the branch of the run, once it is known.
    pub(crate) fn branch(&self) -> Option<&str> {
        self.work().branch.as_deref()
    }

    /// Returns the code that may match the ticket, once it is searched, and the note of the search.
    pub(crate) fn code(&self) -> Option<(&[CodeSeed], &str)> {
        let found = self.code.as_ref()?;
        Some((&found.seeds, &found.note))
    }

    /// Returns the number of code searches.
    pub(crate) const fn lookups(&self) -> u32 {
        self.lookups
    }

    /// Returns true if two facts name the same repository; a fact without a name means the run's own.
    pub(super) fn is_same_repository(
        &self,
        one: Option<&RepositoryName>,
        other: Option<&RepositoryName>,
    ) -> bool {
        one.or(self.own.as_ref()) == other.or(self.own.as_ref())
    }

    /// Returns the work in a repository for changes; without a name, in the run's own.
    pub(super) fn work_in(
        &mut self,
        named: Option<&RepositoryName>,
    ) -> Result<&mut RepositoryWork, &'static str> {
        let repository = named.or(self.own.as_ref()).cloned();
        let repository = repository.ok_or("the run has no repository")?;
        Ok(self.works.entry(repository).or_default())
    }

    pub(super) fn code_found(&mut self, seeds: &[CodeSeed], note: &str) {
        self.code = Some(CodeMatches {
            seeds: seeds.to_vec(),
            note: note.to_owned(),
        });
        self.lookups += 1;
    }

    /// Updates branch and files from a tool's result. `is_own_commit`: the planner made a commit.
    pub(super) fn tool_finished(
        &mut self,
        repository: Option<&RepositoryName>,
        result: &ToolResult,
        is_own_commit: bool,
    ) -> ApplyResult {
        let work = self.work_in(repository)?;
        work.changed_by(result);
        // Only commits of the planner are noted, because only they may be replaced.
        if is_own_commit && result.status == ToolStatus::Ok {
            work.note_commit(result);
        }
        Ok(())
    }

    /// Records the remote state from the outcome of a report; `push`: repository and commit of its push.
    pub(super) fn report_settled(
        &mut self,
        push: Option<&(RepositoryName, CommitId)>,
        outcome: &OutboundOutcome,
    ) -> ApplyResult {
        match outcome {
            OutboundOutcome::Done(OutboundReceipt::Pushed { branch, head, .. }) => {
                let (repository, from) = (push.map(|push| &push.0), push.map(|push| &push.1));
                self.work_in(repository)?.note_push(branch, head, from);
            }
            OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) => {
                self.work_in(Some(&opened.repository))?.pull_request = Some(opened.clone());
            }
            OutboundOutcome::Done(
                OutboundReceipt::Told
                | OutboundReceipt::Started { .. }
                | OutboundReceipt::DecisionAsked { .. }
                | OutboundReceipt::Rehearsed { .. },
            )
            | OutboundOutcome::Refused(_)
            | OutboundOutcome::Failed { .. } => {}
        }
        Ok(())
    }

    /// Requests failed workspaces again.
    pub(super) fn retried(&mut self) {
        self.works.values_mut().for_each(RepositoryWork::retried);
    }
}
