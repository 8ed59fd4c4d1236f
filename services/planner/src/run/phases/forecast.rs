//! Posts the effort of similar work on the ticket, where enough history exists.

use domain::{Dollars, OutboundAction, RunEffort, report};

use crate::run::machine::{PhaseSpec, PlannerRunState, RunAction, RunStep, request_report};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: None,
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let Some(request) = state.request() else {
        return RunStep::Over;
    };
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::EffortForecast(_));
    match state.budget().forecast() {
        // A former release began the work without a forecast.
        None if state.conversation().is_at_work() => RunStep::Over,
        None => RunAction::Forecast.into(),
        Some(Some(forecast)) if state.delivery().last_report(is_it).is_none() => {
            let repository = request.repository.clone();
            request_report(
                state,
                OutboundAction::EffortForecast(report::EffortForecast { repository, forecast }),
                None,
            )
            .into()
        }
        Some(_) => RunStep::Over,
    }
}

/// Returns the effort of the run so far.
pub(crate) fn effort_so_far(state: &PlannerRunState) -> RunEffort {
    let change = state.verification().checks().report();
    let lines = change.map(|change| u64::from(change.product_lines) + u64::from(change.test_lines));
    let spent = state.budget().spending();
    RunEffort {
        busy_ms: spent.busy_ms,
        cost_micros: spent.models.known_cost().map(Dollars::micros),
        tokens: spent.models.tokens,
        lines: lines.unwrap_or_default(),
    }
}
