//! Every legal arrow of a run.

use std::collections::BTreeMap;

use domain::{
    CallId, Decision, Entry, Fact, News, Reply, RepositoryName, RunId, Snapshot, ToolCall, ToolResult,
    Verdict, WaitsFor, WorkspaceInfo,
};

use super::retry::hash;
use super::state::{Call, CallState, Goal, Heard, ModelTrouble, RunState, Turn};
use crate::prompts;

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
            nonce: format!("{:016x}", hash(&entry.nonce)),
            position: 1,
            fence: entry.fence,
            last_at: entry.at,
            works: BTreeMap::new(),
            turns: Vec::new(),
            reports: Vec::new(),
            unsent: Vec::new(),
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
            Fact::WorkspaceRequested { id, repository } => {
                legal(self.request().is_some(), "the run needs no workspace")?;
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
                repository,
                ..
            } => self.workspace_failed(detail, *setup, repository.as_ref()),
            Fact::WorkspaceRestored {
                workspace,
                snapshot,
                repository,
            } => self.restored(workspace, snapshot.as_ref(), repository.as_ref()),
            Fact::ModelRequested { id, turn } => self.model_requested(id, *turn),
            Fact::ModelReplied { id, reply } => self.model_replied(id, reply),
            Fact::ModelFailed {
                id,
                detail,
                transient,
            } => self.model_failed(id, detail, *transient),
            Fact::ToolRequested { id, call, repository } => {
                self.tool_requested(id, call, repository.as_ref(), entry)
            }
            Fact::ToolFinished { id, result } => self.tool_finished(id, result, entry.position),
            Fact::SnapshotTaken { snapshot, repository } => self
                .work_in(repository.as_ref())?
                .snapshot_taken(snapshot, entry.position),
            Fact::SnapshotFailed { reason, repository } => self.snapshot_failed(reason, repository.as_ref()),
            Fact::ReportRequested { id, request, answers } => {
                self.report_requested(id, request, answers.as_deref(), entry)
            }
            Fact::ReportSettled { id, outcome } => self.report_settled(id, outcome, entry.position),
            Fact::Parked { waits_for } => {
                self.park(*waits_for);
                Ok(())
            }
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
                legal(self.accepts(&entry.fact), "it is known already")?;
                self.heard(*sequence, news);
                Ok(())
            }
            Fact::RunFinished { reason } => {
                self.finished = Some(reason.clone());
                Ok(())
            }
        }
    }

    fn park(&mut self, waits_for: WaitsFor) {
        self.parked = Some(waits_for);
        self.unsent.clear();
    }

    fn stop_requested(&mut self, by: &str) -> Applied {
        self.stop.get_or_insert_with(|| by.to_owned());
        Ok(())
    }

    fn workspace_failed(
        &mut self,
        detail: &str,
        setup: bool,
        repository: Option<&RepositoryName>,
    ) -> Applied {
        self.work_in(repository)?.failed(detail, setup);
        Ok(())
    }

    fn heard(&mut self, sequence: u64, news: &News) {
        self.news.push(Heard {
            sequence,
            after_turns: self.turns.len(),
            news: news.clone(),
        });
    }

    fn decided(&mut self, decision: &Decision, by: &str) -> Applied {
        legal(
            self.asks_about() == Some(&decision.head),
            "no decision about this commit is asked for",
        )?;
        self.approved = (decision.verdict == Verdict::Approve).then(|| decision.head.clone());
        self.decision = Some((decision.clone(), by.to_owned()));
        Ok(())
    }

    fn model_failed(&mut self, id: &CallId, detail: &str, transient: bool) -> Applied {
        self.asked_turn(id)?.failed = Some(ModelTrouble {
            detail: detail.to_owned(),
            transient,
        });
        Ok(())
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
                repository: None,
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

    /// The workspace is as the last snapshot has it: what tools did in it after that is void.
    fn restored(
        &mut self,
        info: &WorkspaceInfo,
        snapshot: Option<&Snapshot>,
        named: Option<&RepositoryName>,
    ) -> Applied {
        let work = self.work_in(named)?;
        work.restored(info, snapshot)?;
        let since = work.snapshot_position;
        let own = self.request().map(|request| request.repository.clone());
        let repository = named.or(own.as_ref());
        // Earlier turns are behind a snapshot: one is taken before each model call that follows a change.
        for call in self.turns.last_mut().into_iter().flat_map(|turn| &mut turn.calls) {
            let is_here = call.repository.as_ref().or(own.as_ref()) == repository;
            let ours = call.report.is_some() || call.gate.is_some();
            let void = match &call.state {
                CallState::Finished { position, .. } => *position > since,
                CallState::Running { .. } => true,
                CallState::Waiting => false,
            };
            if is_here && matches!(call.state, CallState::Running { .. }) {
                call.losses += 1;
            }
            if void && is_here && !ours {
                call.state = CallState::Waiting;
            }
        }
        Ok(())
    }

    /// The model hears it with the results of its calls.
    fn snapshot_failed(&mut self, reason: &str, repository: Option<&RepositoryName>) -> Applied {
        self.work_in(repository)?.snapshot_failed(reason)?;
        if let Some(turn) = self.turns.last_mut() {
            turn.notice = Some(prompts::unkept(reason));
        }
        Ok(())
    }

    fn tool_requested(
        &mut self,
        id: &CallId,
        wish: &ToolCall,
        repository: Option<&RepositoryName>,
        entry: &Entry,
    ) -> Applied {
        let call = self
            .open_call_mut()
            .filter(|call| call.call == *wish)
            .ok_or("the model did not ask for it")?;
        legal(matches!(call.state, CallState::Waiting), "it runs already")?;
        call.repository = repository.cloned();
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
        self.finish_call(result.clone(), position)
    }

    /// Ends the open call, if there is one.
    pub(super) fn finish_call(&mut self, result: ToolResult, position: u64) -> Applied {
        let Some(call) = self.open_call_mut() else {
            return Ok(());
        };
        let (repository, was_asked_about) = (call.repository.clone(), call.gate.is_some());
        call.state = CallState::Finished {
            result: result.clone(),
            position,
        };
        if was_asked_about {
            // What a person decided was about this call's commit.
            self.decision = None;
        }
        self.work_in(repository.as_ref())?.changed_by(&result);
        Ok(())
    }
}

pub(super) fn legal(condition: bool, problem: &'static str) -> Applied {
    if condition { Ok(()) } else { Err(problem) }
}
