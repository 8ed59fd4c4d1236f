//! Every legal arrow of a run.

use domain::{CallId, Entry, Fact, Reply, RunId, ToolCall, ToolResult, Verdict};

use super::state::{Call, CallState, Goal, Heard, ModelTrouble, RunState, Turn, Workspace};

/// A journal entry that cannot follow the ones before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {position} of the journal of {run}, {fact}, cannot be there: {problem}")]
pub(crate) struct IllegalFact {
    pub(crate) run: RunId,
    pub(crate) position: u64,
    pub(crate) fact: &'static str,
    pub(crate) problem: &'static str,
}

pub(super) type Applied = Result<(), &'static str>;

impl RunState {
    /// The run that a journal tells; `None` for an empty one.
    ///
    /// # Errors
    /// [`IllegalFact`] for the first entry that cannot follow those before it.
    pub(crate) fn fold<'a>(
        run: &RunId,
        entries: impl IntoIterator<Item = &'a Entry>,
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

    fn start(run: &RunId, entry: &Entry) -> Result<Self, IllegalFact> {
        let illegal = |problem| IllegalFact {
            run: run.clone(),
            position: entry.position,
            fact: entry.fact.name(),
            problem,
        };
        let Fact::RunStarted { trigger } = &entry.fact else {
            return Err(illegal("a journal begins with run_started"));
        };
        let goal = Goal::of(trigger).ok_or_else(|| illegal("its trigger opens no run"))?;
        Ok(Self {
            run: run.clone(),
            goal,
            position: 1,
            fence: entry.fence,
            last_at: entry.at,
            workspace: Workspace::Absent,
            turns: Vec::new(),
            snapshot: None,
            snapshot_position: 0,
            dirty: false,
            unkept: None,
            branch: None,
            head: None,
            reports: Vec::new(),
            unsent: Vec::new(),
            pushed: None,
            pull_request: None,
            approved: None,
            decision: None,
            stop: None,
            retries: 0,
            retry: None,
            parked: None,
            news: Vec::new(),
            finished: None,
        })
    }

    /// Takes one entry in.
    ///
    /// # Errors
    /// [`IllegalFact`]; the state is then no longer of use.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<(), IllegalFact> {
        let applied = if entry.position == self.position {
            self.take(entry)
        } else {
            Err("its position is wrong")
        };
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

    fn take(&mut self, entry: &Entry) -> Applied {
        if self.finished.is_some() {
            return Err("the run is finished");
        }
        if !matches!(
            entry.fact,
            Fact::TakenOver { .. } | Fact::Parked { .. } | Fact::NewsArrived { .. }
        ) {
            self.parked = None;
        }
        match &entry.fact {
            Fact::RunStarted { .. } => Err("the run has started already"),
            Fact::TakenOver { fence } => legal(*fence >= self.fence, "its fence is older"),
            Fact::WorkspaceRequested { id } => self.workspace_requested(id),
            Fact::WorkspaceOpened { id, workspace } => self.workspace_opened(id, workspace),
            Fact::WorkspaceFailed { detail, setup, .. } => {
                self.workspace_failed(detail, *setup);
                Ok(())
            }
            Fact::WorkspaceRestored { workspace, snapshot } => self.restored(workspace, snapshot.as_ref()),
            Fact::ModelRequested { id, turn } => self.model_requested(id, *turn),
            Fact::ModelReplied { id, reply } => self.model_replied(id, reply),
            Fact::ModelFailed {
                id,
                detail,
                transient,
            } => {
                self.asked_turn(id)?.failed = Some(ModelTrouble {
                    detail: detail.clone(),
                    transient: *transient,
                });
                Ok(())
            }
            Fact::ToolRequested { id, call } => self.tool_requested(id, call, entry),
            Fact::ToolFinished { id, result } => self.tool_finished(id, result, entry.position),
            Fact::SnapshotTaken { snapshot } => self.snapshot_taken(snapshot, entry.position),
            Fact::SnapshotFailed { reason } => self.snapshot_failed(reason),
            Fact::ReportRequested { id, request, answers } => {
                self.report_requested(id, request, answers.as_deref(), entry)
            }
            Fact::ReportSettled { id, outcome } => self.report_settled(id, outcome, entry.position),
            Fact::Parked { waits_for } => {
                self.parked = Some(waits_for.clone());
                self.unsent.clear();
                Ok(())
            }
            Fact::RetryScheduled { attempt, due, reason } => self.retry_scheduled(*attempt, *due, reason),
            Fact::Retried { by } => self.retried(by.as_deref()),
            Fact::Decided { decision, by } => {
                legal(
                    self.asks_about() == Some(&decision.head),
                    "no decision about this commit is asked for",
                )?;
                self.approved = (decision.verdict == Verdict::Approve).then(|| decision.head.clone());
                self.decision = Some((decision.clone(), by.clone()));
                Ok(())
            }
            Fact::StopRequested { by } => {
                self.stop.get_or_insert_with(|| by.clone());
                Ok(())
            }
            Fact::NewsArrived { sequence, news, .. } => {
                legal(self.accepts(&entry.fact), "it is known already")?;
                self.news.push(Heard {
                    sequence: *sequence,
                    after_turns: self.turns.len(),
                    news: news.clone(),
                });
                Ok(())
            }
            Fact::RunFinished { reason } => {
                self.finished = Some(reason.clone());
                Ok(())
            }
        }
    }

    fn model_requested(&mut self, id: &CallId, turn: u32) -> Applied {
        let needs_none = matches!(self.goal, Goal::Triage(_));
        legal(
            needs_none || self.open_workspace().is_some(),
            "there is no workspace",
        )?;
        legal(turn as usize == self.turns.len() + 1, "its turn is wrong")?;
        legal(
            self.turns.last().is_none_or(|turn| turn.reply.is_some()),
            "the last turn has no reply",
        )?;
        legal(self.open_call().is_none(), "a tool call has no result")?;
        self.turns.push(Turn {
            id: id.clone(),
            reply: None,
            failed: None,
            calls: Vec::new(),
            notice: None,
        });
        Ok(())
    }

    fn asked_turn(&mut self, id: &CallId) -> Result<&mut Turn, &'static str> {
        self.turns
            .last_mut()
            .filter(|turn| turn.id == *id && turn.reply.is_none() && turn.failed.is_none())
            .ok_or("the model was not asked this")
    }

    fn model_replied(&mut self, id: &CallId, reply: &Reply) -> Applied {
        let turn = self.asked_turn(id)?;
        turn.calls = reply
            .tool_calls()
            .map(|call| Call {
                call: call.clone(),
                state: CallState::Waiting,
                report: None,
                gate: None,
                losses: 0,
            })
            .collect();
        turn.reply = Some(reply.clone());
        self.retries = 0;
        Ok(())
    }

    fn tool_requested(&mut self, id: &CallId, wish: &ToolCall, entry: &Entry) -> Applied {
        let call = self
            .open_call_mut()
            .filter(|call| call.call == *wish)
            .ok_or("the model did not ask for it")?;
        legal(matches!(call.state, CallState::Waiting), "it runs already")?;
        call.state = CallState::Running {
            id: id.clone(),
            at: entry.at,
        };
        Ok(())
    }

    fn tool_finished(&mut self, id: &CallId, result: &ToolResult, position: u64) -> Applied {
        let call = self.open_call_mut().ok_or("no tool call is open")?;
        let running = matches!(&call.state, CallState::Running { id: asked, .. } if asked == id);
        legal(running, "this call does not run")?;
        self.finish_call(result.clone(), position);
        Ok(())
    }
}

pub(super) fn legal(condition: bool, problem: &'static str) -> Applied {
    if condition { Ok(()) } else { Err(problem) }
}
