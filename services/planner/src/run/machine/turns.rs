//! State transitions of a conversation: model calls, replies and tool calls.

use domain::{
    CallId, Fact, JournalEntry, ModelFault, ModelHint, ModelReply, RepositoryName, RunLimits, RunPhase,
    StopReason, TicketLimits, ToolCall, ToolResult, ToolStatus,
};

use super::shortening::ShortenedContext;
use super::transitions::{ApplyResult, require_legal};
use super::{
    COMMIT_CHANGES, CallResult, DialogTurn, ModelCallFailure, PhaseDialog, PlannerRunState, TurnCall,
    TurnCallState,
};

impl PlannerRunState {
    pub(super) fn conversed(&mut self, entry: &JournalEntry) -> ApplyResult {
        match &entry.fact {
            Fact::LimitsSet { limits, ticket } => self.limits_set(limits, *ticket),
            Fact::ModelRequested {
                id,
                turn,
                phase,
                round,
                ..
            } => self.model_requested(id, *turn, (*phase, *round)),
            Fact::ModelReplied { id, reply, .. } => self.model_replied(id, reply),
            Fact::ModelFailed {
                id,
                detail,
                transient,
                kind,
                limit,
            } => self.model_failed(id, detail, (*transient, *kind), *limit),
            Fact::BudgetRefused { id, reason } => self.budget_refused(id, reason),
            Fact::ToolRequested {
                id,
                call,
                own,
                repository,
            } => self.tool_requested((id, call, *own), repository.as_ref(), entry),
            Fact::ToolFinished { id, result } => self.tool_finished(id, result, entry.position),
            Fact::Hinted { phase, hint } => self.hinted(*phase, hint),
            Fact::ContextCleared { phase, turns, tokens } => self.context_cleared(*phase, *turns, *tokens),
            Fact::SummaryRequested {
                id,
                phase,
                turns,
                tokens,
            } => self.summary_requested(id, *phase, (*turns, *tokens)),
            Fact::Summarized { id, reply } => self.summarized(id, reply, entry.position),
            Fact::SummaryFailed { id, .. } => self.summary_failed(id),
            _ => Err("it is not about a conversation"),
        }
    }

    fn limits_set(&mut self, limits: &RunLimits, ticket: Option<TicketLimits>) -> ApplyResult {
        require_legal(self.limits.is_none(), "limits are set already")?;
        self.limits = Some(limits.clone());
        self.ticket_limits = ticket;
        Ok(())
    }

    /// Removes the turn, because its model call was not made.
    fn budget_refused(&mut self, id: &CallId, reason: &StopReason) -> ApplyResult {
        self.asked_turn(id)?;
        self.drop_turn();
        // A conversation whose first call had no budget has not begun.
        self.dialogs.retain(|dialog| !dialog.turns.is_empty());
        self.refused = Some(reason.clone());
        Ok(())
    }

    /// Removes the last turn. News after it belongs to the next one.
    pub(super) fn drop_turn(&mut self) {
        if let Some(dialog) = self.dialogs.last_mut() {
            dialog.turns.pop();
            let turns = self.turns();
            for heard in &mut self.news {
                heard.after_turns = heard.after_turns.min(turns);
            }
        }
    }

    fn model_failed(
        &mut self,
        id: &CallId,
        detail: &str,
        (transient, kind): (bool, Option<ModelFault>),
        limit: Option<u64>,
    ) -> ApplyResult {
        self.asked_turn(id)?;
        if kind == Some(ModelFault::ContextTooLong) {
            return self.overflown(None);
        }
        // A limit that the provider names counts once: shortening may heal it, a second refusal fails the
        // turn.
        let is_first = || {
            self.dialogs
                .last()
                .is_some_and(|dialog| dialog.room.overflows == 0)
        };
        if limit.is_some() && is_first() {
            return self.overflown(Some(detail));
        }
        let turn = self.asked_turn(id)?;
        turn.failed = Some(ModelCallFailure {
            detail: detail.to_owned(),
            transient,
        });
        Ok(())
    }

    /// Makes a conversation current: an existing one, or a new one.
    fn in_dialog(&mut self, phase: RunPhase, round: u32) -> ApplyResult {
        require_legal(
            self.last_turn().is_none_or(|turn| turn.reply.is_some()),
            "the last turn has no reply",
        )?;
        require_legal(self.open_call().is_none(), "a tool call has no result")?;
        let is_it = |dialog: &PhaseDialog| (dialog.phase, dialog.round) == (phase, round);
        let dialog = match self.dialogs.iter().position(is_it) {
            // Moved to the end, because the last conversation is the current one.
            Some(place) => self.dialogs.remove(place),
            None => PhaseDialog {
                phase,
                round,
                turns: Vec::new(),
                room: ShortenedContext::default(),
            },
        };
        self.dialogs.push(dialog);
        Ok(())
    }

    fn model_requested(&mut self, id: &CallId, turn: u32, (phase, round): (RunPhase, u32)) -> ApplyResult {
        self.in_dialog(phase, round)?;
        let after = self.turns();
        let dialog = self.dialogs.last_mut().ok_or("there is no conversation")?;
        require_legal(turn as usize == dialog.turns.len() + 1, "its turn is wrong")?;
        dialog.turns.push(DialogTurn {
            id: id.clone(),
            after,
            reply: None,
            failed: None,
            calls: Vec::new(),
            unkept: None,
            hints: Vec::new(),
        });
        Ok(())
    }

    /// Returns the last conversation of a phase for changes.
    pub(super) fn last_dialog_of(&mut self, phase: RunPhase) -> Result<&mut PhaseDialog, &'static str> {
        let mut dialogs = self.dialogs.iter_mut().rev();
        let found = dialogs.find(|dialog| dialog.phase == phase);
        found.ok_or("there is no such conversation")
    }

    /// Attaches a hint to the conversation's last turn, so that it follows that turn's results.
    fn hinted(&mut self, phase: RunPhase, hint: &ModelHint) -> ApplyResult {
        let turn = self.last_dialog_of(phase)?.turns.last_mut();
        let turn = turn.ok_or("there is no turn to tell it after")?;
        turn.hints.push(hint.clone());
        Ok(())
    }

    fn asked_turn(&mut self, id: &CallId) -> Result<&mut DialogTurn, &'static str> {
        self.last_turn_mut()
            .filter(|turn| turn.id == *id && turn.reply.is_none() && turn.failed.is_none())
            .ok_or("the model was not asked this")
    }

    fn model_replied(&mut self, id: &CallId, reply: &ModelReply) -> ApplyResult {
        let turn = self.asked_turn(id)?;
        // Calls without a result exist from here on, so a crash after this entry runs them and not the
        // model again.
        turn.calls = reply.tool_calls().cloned().map(TurnCall::new).collect();
        turn.reply = Some(reply.clone());
        // A reply is progress: retries count failures in a row.
        self.retries = 0;
        self.spending.replied(reply);
        if let Some(dialog) = self.dialogs.last_mut() {
            dialog.room.taken();
        }
        Ok(())
    }

    /// Adds a call of the planner, unless it is open and runs again.
    fn own_requested(&mut self, wish: &ToolCall) -> ApplyResult {
        match self.open_call() {
            Some(open) => require_legal(open.call == *wish, "another call is open"),
            None => {
                self.own.push(TurnCall::new(wish.clone()));
                Ok(())
            }
        }
    }

    fn tool_requested(
        &mut self,
        (id, wish, own): (&CallId, &ToolCall, bool),
        repository: Option<&RepositoryName>,
        entry: &JournalEntry,
    ) -> ApplyResult {
        if own {
            self.own_requested(wish)?;
        }
        let call = self
            .open_call_mut()
            .filter(|call| call.call == *wish)
            .ok_or("the model did not ask for it")?;
        require_legal(matches!(call.state, TurnCallState::Waiting), "it runs already")?;
        call.repository = repository.cloned();
        call.state = TurnCallState::Running {
            id: id.clone(),
            at: entry.at,
        };
        Ok(())
    }

    fn tool_finished(&mut self, id: &CallId, result: &ToolResult, position: u64) -> ApplyResult {
        let call = self.open_call_mut().ok_or("no tool call is open")?;
        let running = matches!(&call.state, TurnCallState::Running { id: asked, .. } if asked == id);
        require_legal(running, "this call does not run")?;
        self.finish_call(CallResult::Ran(result.clone()), position)
    }

    /// Finishes the open call, if it exists.
    pub(super) fn finish_call(&mut self, result: CallResult, position: u64) -> ApplyResult {
        let Some(call) = self.open_call_mut() else {
            return Ok(());
        };
        let (call_id, repository) = (call.call.id.clone(), call.repository.clone());
        let is_commit = call.call.name == COMMIT_CHANGES;
        call.state = TurnCallState::Finished {
            result: result.clone(),
            position,
        };
        let is_own = self.own.iter().any(|own| own.call.id == call_id);
        if let CallResult::Ran(result) = &result {
            let work = self.work_in(repository.as_ref())?;
            work.changed_by(result);
            // Only commits of the planner are noted, because only they may be replaced.
            if is_own && is_commit && result.status == ToolStatus::Ok {
                work.note_commit(result);
            }
        }
        Ok(())
    }
}
