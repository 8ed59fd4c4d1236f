//! Runs of one evaluation: each is played, graded and stored.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use domain::{StopReason, cause::format_error_chain};
use evaluation::{
    EvalInstance, EvalResultStore, EvalRunKey, EvalRunRecord, EvalTokens, GradedChange, InstanceGrade,
    run_blocking,
};
use executor::FolderCheckRunner;
use git::SingleCommitRepository;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    super::{folder::FolderRunSettings, print_error, progress::ProgressDisplay},
    play::{self, PlaySetup, PlayedRun},
};

// Largest stored patch in bytes; a larger one is truncated.
const MAX_PATCH: usize = 16 << 20;

/// Evaluation that plays its runs, several at a time.
pub(super) struct EvalSession {
    pub(super) state: Mutex<EvalSessionState>,
    /// Folder for the results.
    pub(super) out: PathBuf,
    /// Temporary folder for the repositories of the runs.
    pub(super) root: PathBuf,
    pub(super) settings: FolderRunSettings,
    /// Runner of the tests that grade a change.
    pub(super) bench: FolderCheckRunner,
    pub(super) rules: Option<PathBuf>,
    /// Limit of the cost of all runs, in millionths of a dollar.
    pub(super) max_cost: Option<u64>,
    /// Number of planned runs.
    pub(super) planned: usize,
    pub(super) shutdown: CancellationToken,
    pub(super) progress: ProgressDisplay,
}

/// Results of an evaluation so far.
pub(super) struct EvalSessionState {
    store: EvalResultStore,
    /// Finished runs, with or without a result.
    finished: usize,
    /// Reason against further runs.
    ended_early: Option<String>,
}

impl EvalSessionState {
    pub(super) fn new(store: EvalResultStore) -> Self {
        Self {
            store,
            finished: 0,
            ended_early: None,
        }
    }
}

impl EvalSession {
    /// Results of these runs, and the reason why some have none.
    pub(super) fn end(self, planned: &[EvalRunKey]) -> (Vec<EvalRunRecord>, Option<String>) {
        let state = self.state.into_inner();
        let mut records = state.store.records;
        // With --resume the folder may also contain results of other instances, models or settings.
        records.retain(|record| planned.contains(&record.key));
        // Concurrent runs finish in any order. The output follows the plan.
        let place = |record: &EvalRunRecord| planned.iter().position(|key| *key == record.key);
        records.sort_by_key(place);
        let interrupted = self
            .shutdown
            .is_cancelled()
            .then(|| "it was interrupted".to_owned());
        (records, interrupted.or(state.ended_early))
    }

    /// Plays a run, unless it has a result or no further run may start.
    ///
    /// # Errors
    /// When a result cannot be stored.
    pub(super) async fn play_run(&self, instance: Arc<EvalInstance>, key: EvalRunKey) -> anyhow::Result<()> {
        if self.state.lock().store.has(&key) || !self.can_begin_run() {
            return Ok(());
        }
        let name = format!("{}.{}", key.instance, key.run);
        let work = self.root.join(&name);
        let kept = self.out.join("runs").join(&name);
        for folder in [&work, &kept] {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let record = Box::pin(self.play_and_grade(&instance, key, &work, &kept)).await?;
        if let Err(error) = tokio::fs::remove_dir_all(&work).await {
            print_error(&format!("cannot delete {}: {error}", work.display()));
        }
        let Some(record) = record else { return Ok(()) };
        // One lock covers count, output and record, so that concurrent runs print their numbers in
        // order.
        let mut state = self.state.lock();
        state.finished += 1;
        self.progress.step();
        print_error(&format!(
            "[{}/{}] {}",
            state.finished,
            self.planned,
            evaluation::render_run_line(&record)
        ));
        state.store.add(record)?;
        let records = &state.store.records;
        let spent: u64 = records.iter().map(|record| record.cost_micros).sum();
        let resolved = records.iter().filter(|record| record.resolved).count();
        self.progress.show_activity(&format!(
            "{resolved} resolved, {}",
            crate::timeline::format_dollars(spent)
        ));
        Ok(())
    }

    /// True while time and money suffice for another run. Resumed runs of this evaluation count too.
    fn can_begin_run(&self) -> bool {
        if self.shutdown.is_cancelled() {
            return false;
        }
        let Some(most) = self.max_cost else { return true };
        let mut state = self.state.lock();
        let records = &state.store.records;
        let spent: u64 = records.iter().map(|record| record.cost_micros).sum();
        let is_unknown = records.iter().any(|record| record.unpriced > 0);
        let reason = if spent >= most {
            "--max-cost is reached"
        } else if is_unknown {
            "the price of the model is not known, so --max-cost cannot be kept"
        } else {
            return true;
        };
        if state.ended_early.is_none() {
            print_error(&format!("no more runs: {reason}"));
            state.ended_early = Some(reason.to_owned());
        }
        false
    }

    /// Result of a run; `None` after an interruption.
    async fn play_and_grade(
        &self,
        instance: &Arc<EvalInstance>,
        key: EvalRunKey,
        work: &Path,
        kept: &Path,
    ) -> anyhow::Result<Option<EvalRunRecord>> {
        let place = PlaySetup {
            work,
            kept,
            settings: &self.settings,
            rules: self.rules.as_deref(),
        };
        let repository = play::locate_repository(work);
        evaluation::create_repository(instance, repository.clone()).await?;
        let played = Box::pin(play::play_instance(instance, &place, &self.shutdown)).await;
        let (played, failure) = match played {
            Ok(played) => (played, None),
            // A run whose services failed is a result too: an infrastructure failure.
            Err(error) => (PlayedRun::default(), Some(format!("{error:#}"))),
        };
        if self.shutdown.is_cancelled() || (played.reason.is_none() && failure.is_none()) {
            return Ok(None);
        }
        let leak = self.find_leak(instance, &repository, &played).await?;
        let graded = self.grade(instance, &repository, &played, kept).await;
        // An interruption may have ended the tests early, so their result does not count.
        if self.shutdown.is_cancelled() {
            return Ok(None);
        }
        Ok(Some(build_record(instance, key, &played, failure, leak, graded)))
    }

    /// Text of the published patch that the run read; `None` for a task without one.
    async fn find_leak(
        &self,
        instance: &EvalInstance,
        repository: &Path,
        played: &PlayedRun,
    ) -> anyhow::Result<Option<String>> {
        let Some(patch) = &instance.patch else {
            return Ok(None);
        };
        let place = repository.to_owned();
        let base = run_blocking(move || SingleCommitRepository::open(&place)?.texts()).await?;
        Ok(evaluation::find_leak(
            &evaluation::list_windows(patch, &base),
            &played.journal,
        ))
    }

    /// Grade of a run's change; `None` without a change.
    async fn grade(
        &self,
        instance: &Arc<EvalInstance>,
        repository: &Path,
        played: &PlayedRun,
        kept: &Path,
    ) -> anyhow::Result<Option<InstanceGrade>> {
        let Some(branch) = played.branch.clone() else {
            return Ok(None);
        };
        let (place, name) = (repository.to_owned(), branch.clone());
        let patch =
            run_blocking(move || SingleCommitRepository::open(&place)?.change(&name, MAX_PATCH)).await?;
        let Some(patch) = patch else { return Ok(None) };
        std::fs::write(kept.join("change.patch"), patch).context("cannot keep the change")?;
        let graded = evaluation::grade_change(
            &self.bench,
            repository.to_owned(),
            instance,
            GradedChange::Branch(branch),
            &self.shutdown,
        );
        let grade = Box::pin(graded).await?;
        let report = format!("{}\n\n{}", grade.note, grade.output);
        std::fs::write(kept.join("tests.txt"), report).context("cannot keep the output of the tests")?;
        Ok(Some(grade))
    }
}

fn build_record(
    instance: &EvalInstance,
    key: EvalRunKey,
    played: &PlayedRun,
    failure: Option<String>,
    leak: Option<String>,
    graded: anyhow::Result<Option<InstanceGrade>>,
) -> EvalRunRecord {
    let (grade, ungraded) = match graded {
        Ok(grade) => (grade, None),
        Err(error) => (
            None,
            Some(format!("not graded: {}", format_error_chain(error.as_ref()))),
        ),
    };
    let infra = failure
        .or_else(|| played.reason.as_ref().and_then(describe_infrastructure_failure))
        .or(ungraded)
        .or_else(|| grade.as_ref().and_then(|grade| grade.infra.clone()));
    let is_done = matches!(played.reason, Some(StopReason::Completed));
    let stop = match &played.reason {
        Some(StopReason::Stopped { .. }) if played.asked => "asked_a_person",
        Some(reason) => reason.as_str(),
        None => "no_end",
    };
    EvalRunRecord {
        resolved: infra.is_none() && grade.as_ref().is_some_and(InstanceGrade::is_resolved),
        delivered: is_done && played.branch.is_some(),
        stop: stop.to_owned(),
        infra,
        evidence: played.evidence,
        unmet: grade
            .as_ref()
            .map_or_else(|| instance.fail_to_pass.clone(), |grade| grade.unmet.clone()),
        broken: grade.map(|grade| grade.broken).unwrap_or_default(),
        leak,
        cost_micros: played.spend.cost_usd.micros(),
        unpriced: played.spend.unpriced,
        turns: played.turns,
        duration_ms: played.duration_ms,
        tokens: EvalTokens {
            input: played.spend.input_tokens,
            cached: played.spend.cached_tokens,
            output: played.spend.output_tokens,
        },
        created_at: instance.created_at.clone(),
        key,
    }
}

/// Infrastructure failure behind a stop reason, caused by neither the agent nor the model's work.
fn describe_infrastructure_failure(reason: &StopReason) -> Option<String> {
    let detail = match reason {
        StopReason::ModelFailed { detail }
        | StopReason::WorkspaceUnavailable { detail }
        | StopReason::ReportFailed { detail } => detail.as_str(),
        StopReason::SetupFailed { .. } => "the setup commands failed",
        StopReason::JournalLost | StopReason::JournalUnreadable | StopReason::PriceUnknown { .. } => "",
        StopReason::Completed
        | StopReason::NoChange { .. }
        | StopReason::Unfinished { .. }
        | StopReason::ChecksFail { .. }
        | StopReason::TurnLimit { .. }
        | StopReason::Stuck(_)
        | StopReason::BudgetSpent { .. }
        | StopReason::SharedBudgetSpent(_)
        | StopReason::NoPlan
        | StopReason::Stopped { .. }
        | StopReason::Rejected { .. }
        | StopReason::GivenUp { .. }
        | StopReason::ConflictLeft { .. }
        | StopReason::RevisionLimit { .. }
        | StopReason::ModelRefused
        | StopReason::ContextTooLong
        | StopReason::ReportRefused(_)
        | StopReason::UnsupportedJob
        | StopReason::Superseded
        | StopReason::Withdrawn { .. }
        | StopReason::TicketLeft(_) => return None,
    };
    let name = reason.as_str();
    Some(if detail.is_empty() {
        name.to_owned()
    } else {
        format!("{name}: {detail}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infrastructure_stop_differs_from_agent_failure() {
        let failed = StopReason::ModelFailed {
            detail: "529 overloaded".to_owned(),
        };
        assert_eq!(
            describe_infrastructure_failure(&failed).unwrap(),
            "model_failed: 529 overloaded"
        );
        assert_eq!(
            describe_infrastructure_failure(&StopReason::JournalLost).unwrap(),
            "journal_lost"
        );
        for own in [
            StopReason::Completed,
            StopReason::ModelRefused,
            StopReason::TurnLimit { turns: 3 },
        ] {
            assert_eq!(describe_infrastructure_failure(&own), None);
        }
    }
}
