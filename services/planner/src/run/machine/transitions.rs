//! State transitions of a run.

use std::collections::BTreeMap;

use domain::{
    CodeSeed, CommitId, DecisionVerdict, ExecutorWorkspace, Fact, GateDecision, JournalEntry, OutboundAction,
    OutboundOutcome, PhaseOutput, PullRequestRef, RepositoryName, ReturnReason, RunId, TicketNews,
    TriggerChannel, WaitCondition, WorkClass, WorkspaceSnapshot, report::WorkOrigin,
};

use super::budget::RunSpending;
use super::state::{ReceivedNews, ReturnRecord};
use super::work::RepositoryWork;
use super::{PlannerRunState, RunChecks, RunInput, TurnCallState, hash_text};

/// Returns the remote state of the pull request that a run continues.
pub(super) fn works_at_start(input: &RunInput) -> BTreeMap<RepositoryName, RepositoryWork> {
    let RunInput::Request(request) = input else {
        return BTreeMap::new();
    };
    let on_remote = |(ours, head): (&PullRequestRef, &CommitId)| RepositoryWork {
        pushed: Some((ours.branch.clone(), head.clone())),
        pull_request: Some(ours.clone()),
        ..RepositoryWork::default()
    };
    let work = request.about.pull_request().map(on_remote);
    work.map(|work| (request.repository.clone(), work))
        .into_iter()
        .collect()
}

/// Journal entry that is illegal after the previous ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {position} of the journal of {run}, {fact}, cannot be there: {problem}")]
pub(crate) struct IllegalFact {
    pub(crate) run: RunId,
    pub(crate) position: u64,
    pub(crate) fact: &'static str,
    pub(crate) problem: &'static str,
}

pub(super) type ApplyResult = Result<(), &'static str>;

impl PlannerRunState {
    /// Folds a journal into the state of its run; `None` for an empty journal.
    ///
    /// # Errors
    /// [`IllegalFact`] for the first entry that is illegal after the previous ones.
    pub(crate) fn fold<'a>(
        run: &RunId,
        entries: impl IntoIterator<Item = &'a JournalEntry>,
    ) -> Result<Option<Self>, IllegalFact> {
        let mut entries = entries.into_iter();
        let Some(first) = entries.next() else {
            return Ok(None);
        };
        let mut state = Self::start(run, first)?;
        for entry in entries {
            state.apply(entry)?;
        }
        Ok(Some(state))
    }

    fn start(run: &RunId, entry: &JournalEntry) -> Result<Self, IllegalFact> {
        let illegal = |problem| IllegalFact {
            run: run.clone(),
            position: entry.position,
            fact: entry.fact.name(),
            problem,
        };
        let Fact::RunStarted { trigger } = &entry.fact else {
            return Err(illegal("a journal begins with run_started"));
        };
        let input = RunInput::of(trigger).ok_or_else(|| illegal("its trigger opens no run"))?;
        let works = works_at_start(&input);
        let begun = WorkOrigin {
            by: trigger.actor.clone(),
            is_command: trigger.source == TriggerChannel::Api,
            is_again: false,
            failed_on: input.failed_on(),
        };
        Ok(Self {
            run: run.clone(),
            input,
            begun,
            nonce: format!("{:016x}", hash_text(&entry.nonce)),
            position: 1,
            fence: entry.fence,
            last_at: entry.at,
            works,
            dialogs: Vec::new(),
            outputs: Vec::new(),
            returns: Vec::new(),
            moves: 0,
            code: None,
            settled: 0,
            lookups: 0,
            forecast: None,
            best: None,
            went_back: false,
            raised: None,
            checks: RunChecks::default(),
            own: Vec::new(),
            reports: Vec::new(),
            unsent: Vec::new(),
            approved: None,
            decision: None,
            stop: None,
            retries: 0,
            retry: None,
            parked: None,
            limits: None,
            ticket_limits: None,
            refused: None,
            spending: RunSpending::default(),
            learned: BTreeMap::new(),
            news: Vec::new(),
            finished: None,
        })
    }

    /// Applies one entry of the journal.
    ///
    /// # Errors
    /// [`IllegalFact`]; the state is then unusable.
    pub(crate) fn apply(&mut self, entry: &JournalEntry) -> Result<(), IllegalFact> {
        // Before `parked` is reset, because the time of a parked run does not count.
        let applied = self.follows(entry).and_then(|()| {
            self.count_time(entry);
            if !matches!(
                entry.fact,
                Fact::TakenOver { .. } | Fact::Parked { .. } | Fact::NewsArrived { .. }
            ) {
                self.parked = None;
            }
            self.take(entry)
        });
        applied.map_err(|problem| IllegalFact {
            run: self.run.clone(),
            position: entry.position,
            fact: entry.fact.name(),
            problem,
        })?;
        self.position += 1;
        self.fence = entry.fence;
        self.last_at = entry.at;
        Ok(())
    }

    fn follows(&self, entry: &JournalEntry) -> ApplyResult {
        require_legal(entry.position == self.position, "its position is wrong")?;
        require_legal(self.finished.is_none(), "the run is finished")
    }

    fn take(&mut self, entry: &JournalEntry) -> ApplyResult {
        match &entry.fact {
            Fact::RunStarted { .. } => Err("the run has started already"),
            Fact::TakenOver { fence } => require_legal(*fence >= self.fence, "its fence is older"),
            Fact::WorkspaceRequested { id, repository } => {
                require_legal(self.request().is_some(), "the run needs no workspace")?;
                self.work_in(repository.as_ref())?.requested(id)
            }
            Fact::WorkspaceOpened {
                id,
                workspace,
                repository,
            } => self.work_in(repository.as_ref())?.opened(id, workspace),
            Fact::WorkspaceFailed {
                detail,
                setup,
                permanent,
                repository,
                ..
            } => self.workspace_failed(detail, (*setup, *permanent), repository.as_ref()),
            Fact::WorkspaceRestored {
                workspace,
                snapshot,
                repository,
            } => self.restored(workspace, snapshot.as_ref(), repository.as_ref()),
            Fact::WentBack { workspace, snapshot } => self.went_back(workspace, snapshot, entry.position),
            Fact::LimitsSet { .. }
            | Fact::ModelRequested { .. }
            | Fact::ModelReplied { .. }
            | Fact::ModelFailed { .. }
            | Fact::BudgetRefused { .. }
            | Fact::ToolRequested { .. }
            | Fact::ToolFinished { .. }
            | Fact::Hinted { .. }
            | Fact::ContextCleared { .. }
            | Fact::SummaryRequested { .. }
            | Fact::Summarized { .. }
            | Fact::SummaryFailed { .. } => self.conversed(entry),
            Fact::CodeFound { seeds, note } => self.code_found(seeds, note),
            Fact::EffortForecast { forecast } => {
                self.forecast = Some(*forecast);
                Ok(())
            }
            Fact::ChecksFound { .. }
            | Fact::CheckRequested { .. }
            | Fact::CheckRan { .. }
            | Fact::ChangeInspected { .. } => self.checks.apply(&entry.fact),
            Fact::PhaseFinished { output } => self.phase_finished(output, entry.position),
            Fact::ClassRaised { class } => self.class_raised(*class),
            Fact::Returned { why } => self.returned(why),
            Fact::HeadMoved { head, .. } => self.begin_again(head),
            Fact::SnapshotTaken { snapshot, repository } => self
                .work_in(repository.as_ref())?
                .snapshot_taken(snapshot, entry.position),
            Fact::SnapshotFailed { reason, repository } => self.snapshot_failed(reason, repository.as_ref()),
            Fact::ReportRequested { id, request, answers } => {
                self.report_requested(id, request, answers.as_deref(), entry)
            }
            Fact::ReportSettled { id, outcome } => self.report_settled(id, outcome, entry.position),
            Fact::Parked { waits_for } => self.park(*waits_for),
            Fact::RetryScheduled {
                attempt,
                most,
                due,
                reason,
            } => self.retry_scheduled((*attempt, *most), *due, reason),
            Fact::Retried { by } => self.retried(by.as_deref()),
            Fact::Decided { decision, by } => self.decided(decision, by),
            Fact::StopRequested { by } => self.stop_requested(by),
            Fact::NewsArrived { sequence, news, .. } => {
                // Not `accepts`: a journal from before the limit on comments must stay readable.
                let is_new = self.finished.is_none() && self.is_first_report_of(*sequence);
                require_legal(is_new, "it is known already")?;
                self.heard(*sequence, news)
            }
            Fact::RunFinished { reason } => {
                self.finished = Some(reason.clone());
                Ok(())
            }
        }
    }

    fn park(&mut self, waits_for: WaitCondition) -> ApplyResult {
        self.parked = Some(waits_for);
        // A run parks only after its reports are in the log.
        self.unsent.clear();
        Ok(())
    }

    fn code_found(&mut self, seeds: &[CodeSeed], note: &str) -> ApplyResult {
        self.code = Some((seeds.to_vec(), note.to_owned()));
        self.lookups += 1;
        Ok(())
    }

    fn phase_finished(&mut self, output: &PhaseOutput, position: u64) -> ApplyResult {
        self.own.clear();
        self.settled = position;
        self.outputs.push(output.clone());
        if matches!(output, PhaseOutput::Prove { .. } | PhaseOutput::Review { .. }) {
            self.keep_best();
        }
        Ok(())
    }

    fn class_raised(&mut self, class: WorkClass) -> ApplyResult {
        require_legal(class > self.class(), "the class is no larger")?;
        self.raised = Some(class);
        Ok(())
    }

    fn stop_requested(&mut self, by: &str) -> ApplyResult {
        self.stop.get_or_insert_with(|| by.to_owned());
        Ok(())
    }

    fn workspace_failed(
        &mut self,
        detail: &str,
        (setup, permanent): (bool, bool),
        repository: Option<&RepositoryName>,
    ) -> ApplyResult {
        self.work_in(repository)?.failed(detail, setup, permanent);
        Ok(())
    }

    fn heard(&mut self, sequence: u64, news: &TicketNews) -> ApplyResult {
        self.news.push(ReceivedNews {
            sequence,
            after_turns: self.turns(),
            news: news.clone(),
        });
        Ok(())
    }

    fn decided(&mut self, decision: &GateDecision, by: &str) -> ApplyResult {
        require_legal(
            self.asks_about() == Some(&decision.head),
            "no decision about this commit is asked for",
        )?;
        self.approved = (decision.verdict == DecisionVerdict::Approve).then(|| decision.head.clone());
        self.decision = Some((decision.clone(), by.to_owned()));
        Ok(())
    }

    /// Resets the workspace to its last snapshot: later results of tools in it are void.
    fn restored(
        &mut self,
        info: &ExecutorWorkspace,
        snapshot: Option<&WorkspaceSnapshot>,
        named: Option<&RepositoryName>,
    ) -> ApplyResult {
        let work = self.work_in(named)?;
        work.restored(info, snapshot)?;
        let kept = work.snapshot_position;
        let own = self.request().map(|request| request.repository.clone());
        let repository = named.or(own.as_ref());
        // The input of a finished phase is settled, so its calls do not run again.
        let since = kept.max(self.settled);
        // Only the last turn can be newer than the snapshot: one is taken before each model call after a
        // change.
        let turn = self.dialogs.last_mut().and_then(|dialog| dialog.turns.last_mut());
        let asked = turn.into_iter().flat_map(|turn| &mut turn.calls);
        for call in asked.chain(&mut self.own) {
            let is_here = call.repository.as_ref().or(own.as_ref()) == repository;
            let ours = call.report.is_some();
            let void = match &call.state {
                TurnCallState::Finished { position, .. } => *position > since,
                TurnCallState::Running { .. } => true,
                TurnCallState::Waiting => false,
            };
            // Only a running call can have caused the loss; a finished one is merely void.
            if is_here && matches!(call.state, TurnCallState::Running { .. }) {
                call.losses += 1;
            }
            if void && is_here && !ours {
                call.state = TurnCallState::Waiting;
            }
        }
        Ok(())
    }

    /// Returns to the work. Its later outputs are void, and so is a decision about them.
    fn returned(&mut self, why: &ReturnReason) -> ApplyResult {
        self.own.clear();
        if matches!(why, ReturnReason::Feedback { .. } | ReturnReason::Replan { .. }) {
            // The request of users has changed, so the best state of the old request does not count.
            self.best = None;
        }
        // The next work is judged again, even if an earlier one was replaced by the best state.
        self.went_back = false;
        self.outputs.retain(|output| output.outlasts(why));
        self.checks.forget_change();
        self.decision = None;
        // The next handover brings a new description, so a refused one is requested again.
        for report in &mut self.reports {
            let is_refused = matches!(report.outcome, Some(OutboundOutcome::Refused(_)));
            report.is_void |= is_refused
                && matches!(
                    report.request,
                    OutboundAction::OpenPullRequest(_) | OutboundAction::WorkDelivered(_)
                );
        }
        self.returns.push(ReturnRecord {
            after_turns: self.turns(),
            why: why.clone(),
        });
        Ok(())
    }

    /// Records the failure; the model reads it with the results of its calls.
    fn snapshot_failed(&mut self, reason: &str, repository: Option<&RepositoryName>) -> ApplyResult {
        self.work_in(repository)?.snapshot_failed(reason)?;
        if let Some(turn) = self.last_turn_mut() {
            turn.unkept = Some(reason.to_owned());
        }
        Ok(())
    }
}

pub(super) fn require_legal(condition: bool, problem: &'static str) -> ApplyResult {
    if condition { Ok(()) } else { Err(problem) }
}
