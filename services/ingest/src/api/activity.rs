//! Results of the last days, counted from the records of runs and pull requests.

use api::types::{ActivityDay, ActivityQuery, ActivityTotal, ActivityView, ProblemView, TicketStanding};
use axum::{Json, extract::State};
use domain::{Job, Timestamp};

use super::{ApiProblem, ApiQuery, ApiState, ViewerProof, scope::TokenScope, ticket_history::TicketHistory};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Counts merged, closed and failed tickets, cost and lead time of the last days, from the records that are kept.
#[utoipa::path(get, path = "/v1/activity", params(ActivityQuery), security(("bearer" = [])),
    responses((status = 200, body = ActivityView), (status = 400, body = ProblemView),
        (status = 401, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn show_activity(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
    ApiQuery(query): ApiQuery<ActivityQuery>,
) -> Result<Json<ActivityView>, ApiProblem> {
    let days = query.days.unwrap_or(ActivityQuery::DAYS);
    if !(1..=ActivityQuery::MOST_DAYS).contains(&days) {
        return Err(ApiProblem::BadRequest(format!(
            "days must be a number from 1 to {}",
            ActivityQuery::MOST_DAYS
        )));
    }
    let now = bootstrap::read_wall_clock();
    let scope = caller.scope;
    let count =
        move |histories: &[TicketHistory]| ActivityCount::new(now, days).of_tickets(histories, &scope);
    Ok(Json(state.read_histories(&caller.name, count).await?))
}

/// Counts of some days, oldest first.
struct ActivityCount {
    /// Days since 1970 of the first day.
    first: i64,
    days: Vec<DayCount>,
}

#[derive(Clone, Default)]
struct DayCount {
    total: ActivityTotal,
    /// Times from the first request to the merge, in milliseconds.
    leads: Vec<u64>,
}

impl ActivityCount {
    fn new(now: Timestamp, days: u32) -> Self {
        Self {
            first: number_day(now) - i64::from(days) + 1,
            days: vec![DayCount::default(); usize::try_from(days).unwrap_or_default()],
        }
    }

    fn of_tickets(mut self, tickets: &[TicketHistory], scope: &TokenScope) -> ActivityView {
        for history in tickets.iter().filter(|history| scope.has_ticket(&history.ticket)) {
            self.add_runs(history);
            self.add_end(history);
        }
        self.view()
    }

    /// The day of a time; `None` outside of the period.
    fn day(&mut self, at: Timestamp) -> Option<&mut DayCount> {
        let index = usize::try_from(number_day(at) - self.first).ok()?;
        self.days.get_mut(index)
    }

    /// Adds the runs to the days of their start, with their whole cost: a run seldom lasts longer than a day.
    fn add_runs(&mut self, history: &TicketHistory) {
        for run in &history.runs {
            let Some(DayCount { total, .. }) = self.day(run.summary.started_at) else {
                continue;
            };
            total.runs = total.runs.saturating_add(1);
            if let Some(overview) = &run.overview {
                total.cost_usd = total.cost_usd.plus(overview.spend.cost_usd);
                total.unpriced = total.unpriced.saturating_add(overview.spend.unpriced.into());
            }
        }
    }

    /// Adds the ticket to the day of its end.
    fn add_end(&mut self, history: &TicketHistory) {
        let standing = history.standing();
        let ended = find_end(history, standing);
        let (Some(ended), Some(started)) = (ended, history.started_at()) else {
            return;
        };
        let Some(DayCount { total, leads }) = self.day(ended) else {
            return;
        };
        match standing {
            TicketStanding::Merged => {
                total.merged = total.merged.saturating_add(1);
                leads.push(u64::try_from(ended.since(started).as_millis()).unwrap_or(u64::MAX));
            }
            TicketStanding::Closed => total.closed = total.closed.saturating_add(1),
            TicketStanding::Failed => total.failed = total.failed.saturating_add(1),
            TicketStanding::NeedsPerson
            | TicketStanding::Working
            | TicketStanding::Open
            | TicketStanding::Done => {}
        }
    }

    fn view(self) -> ActivityView {
        let mut all = DayCount::default();
        let mut days = Vec::with_capacity(self.days.len());
        for (number, day) in (self.first..).zip(self.days) {
            add_total(&mut all.total, &day.total);
            all.leads.extend(&day.leads);
            let start = Timestamp::from_unix_ms(number.saturating_mul(DAY_MS)).to_string();
            days.push(ActivityDay {
                day: start.get(..10).unwrap_or(&start).to_owned(),
                total: day.finish(),
            });
        }
        ActivityView {
            days,
            total: all.finish(),
        }
    }
}

impl DayCount {
    fn finish(mut self) -> ActivityTotal {
        self.leads.sort_unstable();
        // The lower one of two middle values: a time that one of the tickets took.
        let middle = self.leads.len().saturating_sub(1) / 2;
        ActivityTotal {
            lead_ms: self.leads.get(middle).copied(),
            ..self.total
        }
    }
}

fn add_total(sum: &mut ActivityTotal, day: &ActivityTotal) {
    sum.merged = sum.merged.saturating_add(day.merged);
    sum.closed = sum.closed.saturating_add(day.closed);
    sum.failed = sum.failed.saturating_add(day.failed);
    sum.runs = sum.runs.saturating_add(day.runs);
    sum.cost_usd = sum.cost_usd.plus(day.cost_usd);
    sum.unpriced = sum.unpriced.saturating_add(day.unpriced);
}

/// Time of the ticket's end: the event that started its last `finish` run, else the end of its last run.
fn find_end(history: &TicketHistory, standing: TicketStanding) -> Option<Timestamp> {
    let mut newest_first = history.runs.iter().rev();
    // A merge starts the run, so its start is the time of the merge, however long the run takes.
    let finish = newest_first.find(|run| run.summary.job == Job::Finish);
    let of_event = finish.map(|run| run.summary.started_at);
    match standing {
        TicketStanding::Merged | TicketStanding::Closed => of_event.or_else(|| history.finished_at()),
        TicketStanding::Failed => history.finished_at(),
        TicketStanding::NeedsPerson
        | TicketStanding::Working
        | TicketStanding::Open
        | TicketStanding::Done => None,
    }
}

/// Number of the day since 1970, UTC.
const fn number_day(at: Timestamp) -> i64 {
    at.unix_ms().div_euclid(DAY_MS)
}

#[cfg(test)]
mod tests {
    use domain::{PullRequestStatus, StopReason, TicketKey};

    use super::{
        super::ticket_history::tests::{build_history, finished},
        *,
    };

    fn count_three_days(tickets: &[TicketHistory], scope: &TokenScope) -> ActivityView {
        let now = Timestamp::from_unix_ms(3 * DAY_MS + 5);
        ActivityCount::new(now, 3).of_tickets(tickets, scope)
    }

    #[test]
    fn ticket_counts_on_day_of_its_end() {
        let keys: Vec<TicketKey> = ["jira:ENG-1", "jira:ENG-2", "jira:ENG-3", "jira:ENG-4"]
            .map(|key| key.parse().unwrap())
            .to_vec();
        let completed = || finished(StopReason::Completed);
        let mut merged = build_history(
            &keys[0],
            &[completed(), completed()],
            Some(PullRequestStatus::Merged),
        );
        merged.runs[1].summary.job = Job::Finish;
        let view = count_three_days(
            &[
                merged,
                build_history(&keys[1], &[completed()], Some(PullRequestStatus::Closed)),
                build_history(&keys[2], &[finished(StopReason::NoPlan)], None),
                build_history(&keys[3], &[completed()], Some(PullRequestStatus::Open)),
            ],
            &TokenScope::default(),
        );
        let days: Vec<_> = view.days.iter().map(|day| day.day.as_str()).collect();
        assert_eq!(days, ["1970-01-02", "1970-01-03", "1970-01-04"]);
        let ended = |index: usize| {
            let total = view.days[index].total;
            (total.merged, total.closed, total.failed, total.runs)
        };
        assert_eq!([0, 1, 2].map(ended), [(0, 1, 1, 4), (1, 0, 0, 1), (0, 0, 0, 0)]);
        assert_eq!(
            view.total.lead_ms,
            Some(86_400_000),
            "from the first run to the merge"
        );
        assert_eq!((view.total.ended(), view.total.runs), (3, 5));
    }

    #[test]
    fn results_outside_of_scope_are_left_out() {
        let ticket: TicketKey = "jira:ENG-1".parse().unwrap();
        let history = build_history(&ticket, &[finished(StopReason::NoPlan)], None);
        let projects = bootstrap::settings::TextList(vec!["OPS".to_owned()]);
        let scope = TokenScope::new(None, Some(&projects)).unwrap();
        assert_eq!(
            count_three_days(&[history], &scope).total,
            ActivityTotal::default()
        );
    }
}
