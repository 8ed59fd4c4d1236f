//! Forecast of the effort on the ticket.

use domain::{Forecast, Job, Middle, ReportRequest};

use super::play::{Play, done, request};
use crate::run::Action;

fn told(play: &Play) -> usize {
    let asked = play.state.reports.iter();
    asked
        .filter(|report| matches!(report.request, ReportRequest::EffortForecast(_)))
        .count()
}

#[test]
fn people_hear_once_what_such_work_took_before_the_work_begins() {
    let middle = |median| Middle {
        low: median - 1,
        median,
        high: median + 1,
    };
    let forecast = Forecast {
        runs: 3,
        busy_ms: middle(60_000),
        cost_micros: None,
        lines: middle(30),
    };
    let mut play = Play::implement(request(Job::Implement), done());
    play.forecast = Some(forecast);
    play.until_model_call();
    assert_eq!((told(&play), play.state.turns()), (1, 1));
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!(told(&play), 1);
}

#[test]
fn nothing_is_told_where_too_little_is_known() {
    let mut play = Play::implement(request(Job::Implement), done());
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!((told(&play), play.state.forecast), (0, Some(None)));
}
