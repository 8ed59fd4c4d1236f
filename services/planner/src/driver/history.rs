//! Effort of earlier runs by repository, and the forecast for the next one. A forecast is an estimate:
//! nothing waits for it, and its failure is only logged.

use domain::{
    EffortEstimate, EffortHistory, Fact, PastRun, RepositoryName, StopReason, cause::format_error_chain,
};
use queue::{Error, KeyValueBucket};

use super::RunDriver;
use crate::run::{PlannerRunState, effort_so_far};

// Attempts to add a run to the history. Other planners add at the same time, and each one makes the others'
// compare-and-set fail.
const TRIES: u32 = 20;

impl RunDriver {
    /// Forecasts the effort of the run.
    pub(super) async fn forecast(&self, state: &PlannerRunState) -> Fact {
        let forecast = match state.request() {
            Some(request) => self.read_history(state, &request.repository).await,
            None => None,
        };
        Fact::EffortForecast { forecast }
    }

    async fn read_history(
        &self,
        state: &PlannerRunState,
        repository: &RepositoryName,
    ) -> Option<EffortEstimate> {
        let table = self.queue.table::<EffortHistory>(KeyValueBucket::History);
        let key = repository.to_string();
        match table.get(key.as_str()).await {
            Ok(found) => found.and_then(|(history, _)| history.forecast(state.outputs().class())),
            Err(error) => {
                tracing::warn!(run = %state.run, error = %format_error_chain(&error), "no forecast: the history is not read");
                None
            }
        }
    }

    /// Adds the effort of a run that ends with a pull request to the history.
    pub(super) async fn remember(&self, fact: &Fact, state: &PlannerRunState) {
        let is_done = matches!(
            fact,
            Fact::RunFinished {
                reason: StopReason::Completed
            }
        );
        let Some(request) = state.request().filter(|_| state.implements_ticket()) else {
            return;
        };
        if !is_done || state.source().work().pull_request.is_none() {
            return;
        }
        let past = PastRun {
            run: state.run.clone(),
            class: state.outputs().class(),
            effort: effort_so_far(state),
        };
        if let Err(error) = self.add(&request.repository, past).await {
            tracing::warn!(run = %state.run, error = %format_error_chain(&error), "what the run took is not kept");
        }
    }

    async fn add(&self, repository: &RepositoryName, past: PastRun) -> Result<(), Error> {
        let table = self.queue.table::<EffortHistory>(KeyValueBucket::History);
        let key = repository.to_string();
        for _ in 0..TRIES {
            let (known, revision) = table
                .get(key.as_str())
                .await?
                .map_or((None, None), |(known, revision)| (Some(known), Some(revision)));
            let history = known.unwrap_or_default().with(past.clone());
            match table.put(key.as_str(), &history, revision).await {
                Err(Error::Conflict) => {}
                done => return done.map(drop),
            }
        }
        Err(Error::Conflict)
    }
}
