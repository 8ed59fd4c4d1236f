//! State transitions of a run: the parts that each fact changes.

use domain::{Fact, JournalEntry, RunId, TriggerChannel, report::WorkOrigin};

use super::super::RunInput;
use super::budget::BudgetState;
use super::conversation::ConversationState;
use super::delivery::{DeliveryState, GateState};
use super::dialog::{ModelCallFailure, OwnCallState, TurnCall};
use super::lifecycle::{LifecycleState, hash_text};
use super::mcp::McpState;
use super::outputs::OutputState;
use super::run_state::{JournalEnd, PlannerRunState};
use super::source::SourceState;
use super::verification::VerificationState;
use super::work::COMMIT_CHANGES;
use super::{ApplyResult, IllegalFact, require_legal};

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
        let begun = WorkOrigin {
            by: trigger.actor.clone(),
            is_command: trigger.source == TriggerChannel::Api,
            is_again: false,
            failed_on: input.failed_on(),
            omitted: input.omitted_attachments(),
        };
        Ok(Self {
            run: run.clone(),
            journal: JournalEnd {
                position: 1,
                fence: entry.fence,
                last_at: entry.at,
            },
            source: SourceState::new(&input),
            input,
            conversation: ConversationState::new(format!("{:016x}", hash_text(&entry.nonce))),
            own_calls: OwnCallState::default(),
            mcp: McpState::default(),
            outputs: OutputState::default(),
            verification: VerificationState::default(),
            gate: GateState::default(),
            delivery: DeliveryState::default(),
            budget: BudgetState::default(),
            lifecycle: LifecycleState::new(begun),
        })
    }

    /// Applies one entry of the journal.
    ///
    /// # Errors
    /// [`IllegalFact`]; the state is then unusable.
    pub(crate) fn apply(&mut self, entry: &JournalEntry) -> Result<(), IllegalFact> {
        self.take(entry).map_err(|problem| IllegalFact {
            run: self.run.clone(),
            position: entry.position,
            fact: entry.fact.name(),
            problem,
        })?;
        self.journal = JournalEnd {
            position: entry.position + 1,
            fence: entry.fence,
            last_at: entry.at,
        };
        Ok(())
    }

    /// Applies an entry to the parts that its fact changes.
    // The one table of all facts: a part has no match of its own, so a new fact cannot be ignored silently.
    fn take(&mut self, entry: &JournalEntry) -> ApplyResult {
        let position = entry.position;
        require_legal(position == self.journal.position, "its position is wrong")?;
        require_legal(self.lifecycle.finished().is_none(), "the run is finished")?;
        // Before the wait ends, because the time of a wait does not count. News may arrive during it.
        let is_waiting = self.lifecycle.parked().is_some() || self.source.has_open_request();
        self.budget.count_time(entry, self.journal.last_at, is_waiting);
        if !matches!(
            entry.fact,
            Fact::TakenOver { .. } | Fact::Parked { .. } | Fact::NewsArrived { .. }
        ) {
            self.lifecycle.resume();
        }
        match &entry.fact {
            Fact::RunStarted { .. } => return Err("the run has started already"),
            Fact::TakenOver { fence } => {
                require_legal(*fence >= self.journal.fence, "its fence is older")?;
                let turn = self.conversation.last_turn_mut().into_iter();
                turn.flat_map(|turn| &mut turn.calls)
                    .for_each(TurnCall::taken_over);
            }
            Fact::WorkspaceRequested { id, repository } => {
                require_legal(self.request().is_some(), "the run needs no workspace")?;
                self.source.work_in(repository.as_ref())?.requested(id)?;
            }
            Fact::WorkspaceOpened {
                id,
                workspace,
                repository,
            } => {
                let work = self.source.work_in(repository.as_ref())?;
                work.opened(id, workspace)?;
            }
            Fact::WorkspaceFailed {
                detail,
                setup,
                permanent,
                repository,
                ..
            } => {
                let work = self.source.work_in(repository.as_ref())?;
                work.failed(detail, *setup, *permanent);
            }
            Fact::WorkspaceRestored {
                workspace,
                snapshot,
                repository,
            } => {
                let work = self.source.work_in(repository.as_ref())?;
                work.restored(workspace, snapshot.as_ref())?;
                // The input of a finished phase is settled, so its calls do not run again.
                let since = work.snapshot_position.max(self.outputs.settled());
                // Only the last turn can be newer than the snapshot: one is taken before each model call
                // after a change.
                let turn = self.conversation.last_turn_mut().into_iter();
                let calls = turn.flat_map(|turn| &mut turn.calls);
                for call in calls.chain(self.own_calls.calls_mut()) {
                    let (named, lost) = (call.repository.as_ref(), repository.as_ref());
                    if self.source.is_same_repository(named, lost) {
                        call.workspace_lost(since);
                    }
                }
            }
            Fact::WentBack { workspace, snapshot } => {
                require_legal(self.source.open_workspace().is_some(), "there is no workspace")?;
                let work = self.source.work();
                let earlier = self.verification.restore_best(snapshot, &self.outputs, work)?;
                self.outputs.went_back(earlier, position);
                self.own_calls.reset();
                self.source
                    .work_in(None)?
                    .went_back(workspace, snapshot, position);
            }
            Fact::SnapshotTaken { snapshot, repository } => {
                let work = self.source.work_in(repository.as_ref())?;
                work.snapshot_taken(snapshot, position)?;
            }
            Fact::SnapshotFailed { reason, repository } => {
                let work = self.source.work_in(repository.as_ref())?;
                work.snapshot_failed(reason)?;
                // The model reads it with the results of its calls.
                if let Some(turn) = self.conversation.last_turn_mut() {
                    turn.unkept = Some(reason.clone());
                }
            }
            Fact::McpToolsListed { servers } => self.mcp.tools_listed(servers)?,
            Fact::CodeFound { seeds, note } => self.source.code_found(seeds, note),
            Fact::LimitsSet { limits, ticket } => self.budget.limits_set(limits, *ticket)?,
            Fact::EffortForecast { forecast } => self.budget.forecast_read(*forecast),
            Fact::ModelRequested {
                id,
                turn,
                phase,
                round,
                ..
            } => {
                require_legal(self.open_call().is_none(), "a tool call has no result")?;
                self.conversation.model_requested(id, *turn, (*phase, *round))?;
            }
            Fact::ModelReplied { id, reply, .. } => {
                self.conversation.model_replied(id, reply)?;
                self.lifecycle.succeeded();
                self.budget.replied(reply);
            }
            Fact::ModelFailed {
                id,
                detail,
                transient,
                kind,
                limit,
            } => {
                let failure = ModelCallFailure {
                    detail: detail.clone(),
                    transient: *transient,
                };
                self.conversation.model_failed(id, failure, *kind, *limit)?;
            }
            Fact::BudgetRefused { id, reason } => {
                self.conversation.call_refused(id)?;
                self.budget.call_refused(reason);
            }
            Fact::Hinted { phase, hint } => self.conversation.hinted(*phase, hint)?,
            Fact::ContextCleared { phase, turns, tokens } => {
                let dialog = self.conversation.last_dialog_of(*phase)?;
                dialog
                    .context
                    .clear_results(*turns, *tokens, dialog.turns.len())?;
            }
            Fact::SummaryRequested {
                id,
                phase,
                turns,
                tokens,
            } => {
                let dialog = self.conversation.last_dialog_of(*phase)?;
                let all = dialog.turns.len();
                dialog.context.request_summary(id, (*turns, *tokens), all)?;
            }
            Fact::Summarized { id, reply } => {
                // A useless summary costs its tokens as well.
                self.budget.replied(reply);
                let dialog = self.conversation.summarized_dialog(id)?;
                dialog
                    .context
                    .finish_summary(reply, position, dialog.turns.len())?;
            }
            Fact::SummaryFailed { id, .. } => {
                let dialog = self.conversation.summarized_dialog(id)?;
                dialog.context.fail_summary(dialog.turns.len());
            }
            Fact::ToolRequested {
                id,
                call,
                own,
                repository,
                server,
            } => {
                match self.open_call() {
                    // A call of the planner that is open runs again.
                    Some(open) if *own => require_legal(open.call == *call, "another call is open")?,
                    None if *own => self.own_calls.add(call),
                    Some(_) | None => {}
                }
                let open = self.open_call_mut().filter(|open| open.call == *call);
                let open = open.ok_or("the model did not ask for it")?;
                open.start(id, (repository.as_ref(), server.as_ref()), entry.at)?;
            }
            Fact::ToolFinished { id, result } => {
                let is_own = self.conversation.open_call().is_none();
                let call = self.open_call_mut().ok_or("no tool call is open")?;
                call.tool_finished(id, result, position)?;
                let is_own_commit = is_own && call.call.name == COMMIT_CHANGES;
                let repository = call.repository.clone();
                self.source
                    .tool_finished(repository.as_ref(), result, is_own_commit)?;
            }
            Fact::ChecksFound { candidates } => self.verification.checks_mut().found(candidates)?,
            Fact::CheckRequested { id, check } => self.verification.checks_mut().requested(id, check)?,
            Fact::CheckRan { id, run } => {
                let is_early = !self.conversation.is_at_work();
                self.verification.check_completed(id, run, is_early)?;
            }
            Fact::ChangeInspected { report } => {
                let checks = self.verification.checks_mut();
                checks.change_inspected(report.as_deref())?;
            }
            Fact::PhaseFinished { output } => {
                self.own_calls.reset();
                self.outputs.phase_finished(output, position);
                let work = self.source.work();
                self.verification.phase_finished(output, &self.outputs, work);
            }
            Fact::ClassRaised { class } => self.outputs.class_raised(*class)?,
            Fact::Returned { why } => {
                self.own_calls.reset();
                self.outputs.returned(why, self.conversation.turn_count());
                self.verification.returned(why);
                self.gate.returned();
                self.delivery.returned();
            }
            Fact::HeadMoved { head, trigger, .. } => {
                self.restart(head)?;
                self.lifecycle.trigger_folded(*trigger);
            }
            Fact::ReportRequested { id, request, answers } => {
                self.delivery.requested(id, request, entry.at)?;
                self.lifecycle.report_requested(request);
                self.gate.report_requested(request);
                if let Some(answers) = answers {
                    let open = self.open_call_mut().filter(|call| call.call.id == *answers);
                    let open = open.ok_or("it answers no open call")?;
                    open.report_requested(id, request)?;
                }
            }
            Fact::ReportSettled { id, outcome } => {
                let push = self.delivery.settled(id, outcome)?;
                self.source.report_settled(push.as_ref(), outcome)?;
                if let Some(call) = self.open_call_mut() {
                    call.report_settled(id, outcome, position);
                }
            }
            Fact::Decided { decision, by } => self.gate.decided(decision, by, &self.delivery)?,
            Fact::NewsArrived { sequence, news, .. } => {
                // Not `accepts`: a journal from before the limit on comments must stay readable.
                require_legal(self.is_first_report_of(*sequence), "it is known already")?;
                self.conversation.news_arrived(*sequence, news);
            }
            Fact::Parked { waits_for } => {
                self.lifecycle.park(*waits_for);
                self.delivery.all_sent();
            }
            Fact::RetryScheduled {
                attempt,
                most,
                due,
                reason,
            } => self.lifecycle.retry_scheduled((*attempt, *most), *due, reason)?,
            Fact::Retried { by, trigger } => {
                self.lifecycle.retried(by.as_deref())?;
                self.lifecycle.trigger_folded(*trigger);
                // A notice is one report, so nothing of it stays.
                if self.request().is_none() {
                    self.delivery.forget_reports();
                }
                self.source.retried();
                self.conversation.retried();
                self.budget.retried();
                let void = self.delivery.retried(by.is_some());
                if let Some(call) = self.open_call_mut() {
                    call.forget_report(&void);
                }
            }
            Fact::StopRequested { by } => self.lifecycle.stop_requested(by),
            Fact::RunFinished { reason } => self.lifecycle.finish(reason),
        }
        Ok(())
    }

    /// Returns the first call without a result for changes.
    fn open_call_mut(&mut self) -> Option<&mut TurnCall> {
        let turn = self.conversation.last_turn_mut().into_iter();
        let mut calls = turn.flat_map(|turn| &mut turn.calls);
        let asked = calls.find(|call| call.is_open());
        asked.or_else(|| self.own_calls.open_mut())
    }
}
