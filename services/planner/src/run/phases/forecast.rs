//! Posts the effort of similar work on the ticket, where enough history exists.

use domain::{Effort, ReportRequest, report};

use crate::run::machine::{Action, PhaseSpec, RunState, Step, ask};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    let Some(request) = state.request() else {
        return Step::Over;
    };
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::EffortForecast(_));
    match state.forecast {
        // A former release began the work without a forecast.
        None if state.is_at_work() => Step::Over,
        None => Action::Forecast.into(),
        Some(Some(forecast)) if state.last_report(is_it).is_none() => {
            let repository = request.repository.clone();
            ask(
                state,
                ReportRequest::EffortForecast(report::EffortForecast { repository, forecast }),
                None,
            )
            .into()
        }
        Some(_) => Step::Over,
    }
}

/// Returns the effort of the run so far.
pub(crate) fn effort(state: &RunState) -> Effort {
    let change = state.checks.report();
    let lines = change.map(|change| u64::from(change.product_lines) + u64::from(change.test_lines));
    let spent = &state.spending;
    Effort {
        busy_ms: spent.busy_ms,
        cost_micros: spent.unpriced.is_none().then_some(spent.cost),
        tokens: spent.tokens,
        lines: lines.unwrap_or_default(),
    }
}
