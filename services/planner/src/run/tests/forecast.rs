//! Forecast of the effort on the ticket.

use domain::{EffortEstimate, EffortQuartiles, Job, OutboundAction};

use super::play::{Play, build_job_request, build_work_replies};
use crate::run::RunAction;

fn count_forecasts(play: &Play) -> usize {
    let asked = play.state.delivery().reports().iter();
    asked
        .filter(|report| matches!(report.request, OutboundAction::EffortForecast(_)))
        .count()
}

#[test]
fn forecast_is_posted_once_before_work() {
    let middle = |median| EffortQuartiles {
        low: median - 1,
        median,
        high: median + 1,
    };
    let forecast = EffortEstimate {
        runs: 3,
        busy_ms: middle(60_000),
        cost_micros: None,
        lines: middle(30),
    };
    let mut play = Play::implement(build_job_request(Job::Implement), build_work_replies());
    play.forecast = Some(forecast);
    play.until_model_call();
    assert_eq!(
        (count_forecasts(&play), play.state.conversation().turn_count()),
        (1, 1)
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(count_forecasts(&play), 1);
}

#[test]
fn forecast_without_history_is_omitted() {
    let mut play = Play::implement(build_job_request(Job::Implement), build_work_replies());
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        (count_forecasts(&play), play.state.budget().forecast()),
        (0, Some(None))
    );
}
