//! Tickets with the sums of their runs, for lists that ask no tracker.

use api::types::{ProblemView, RunView, TicketStanding, TicketSummariesQuery, TicketSummary};
use axum::{Json, extract::State};
use domain::{Dollars, RunId, RunOverview};

use super::{
    ApiProblem, ApiQuery, ApiState, ViewerProof,
    known_runs::build_sort_key,
    scope::TokenScope,
    search_words::{SearchWords, build_search_text, format_pull_request},
    ticket_history::{KnownRun, TicketHistory},
};

const LISTED: usize = 100;

/// Lists tickets that have runs, the most recently requested first, from the records of their runs and pull requests.
#[utoipa::path(get, path = "/v1/ticket-summaries", params(TicketSummariesQuery), security(("bearer" = [])),
    responses((status = 200, body = Vec<TicketSummary>), (status = 400, body = ProblemView),
        (status = 401, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn list_ticket_summaries(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
    ApiQuery(query): ApiQuery<TicketSummariesQuery>,
) -> Result<Json<Vec<TicketSummary>>, ApiProblem> {
    let wanted = TicketListFilter::new(query, caller.scope)?;
    let list = move |histories: &[TicketHistory]| list_summaries(histories, &wanted);
    Ok(Json(state.read_histories(&caller.name, list).await?))
}

/// Filter of a list of tickets.
struct TicketListFilter {
    scope: TokenScope,
    repository: Option<String>,
    standing: Option<TicketStanding>,
    search: SearchWords,
    before: Option<RunId>,
    limit: usize,
}

impl TicketListFilter {
    /// Parses a query.
    ///
    /// # Errors
    /// When the run id is invalid.
    fn new(query: TicketSummariesQuery, scope: TokenScope) -> Result<Self, ApiProblem> {
        Ok(Self {
            scope,
            repository: query.repository,
            standing: query.standing,
            search: SearchWords::parse(query.search.as_deref()),
            before: query.before.map(|run| run.parse()).transpose()?,
            limit: query.limit.unwrap_or(LISTED).min(api::types::RunsQuery::MOST),
        })
    }

    fn holds(&self, history: &TicketHistory, last: &RunId) -> bool {
        let is_older = |before: &RunId| build_sort_key(last) < build_sort_key(before);
        let is_in = |wanted: &String| find_repository(history).as_ref() == Some(wanted);
        self.scope.has_ticket(&history.ticket)
            && self.before.as_ref().is_none_or(is_older)
            && self.repository.as_ref().is_none_or(is_in)
            && self.standing.is_none_or(|wanted| history.standing() == wanted)
            && self.search.are_in(|| build_ticket_search_text(history))
    }
}

fn list_summaries(tickets: &[TicketHistory], wanted: &TicketListFilter) -> Vec<TicketSummary> {
    let mut listed: Vec<_> = tickets
        .iter()
        .filter_map(|history| Some((history, history.runs.last()?)))
        .filter(|(history, last)| wanted.holds(history, &last.summary.id))
        .collect();
    listed
        .sort_unstable_by(|(_, a), (_, b)| build_sort_key(&b.summary.id).cmp(&build_sort_key(&a.summary.id)));
    let listed = listed.into_iter().take(wanted.limit);
    listed
        .map(|(history, last)| summarize_ticket(history, last))
        .collect()
}

fn build_ticket_search_text(history: &TicketHistory) -> String {
    let of_runs = history
        .runs
        .iter()
        .map(|run| build_search_text(&run.summary.id, run.overview.as_deref()));
    let of_pull_requests = history
        .pull_requests
        .iter()
        .map(|one| format_pull_request(&one.repository, one.number));
    of_runs.chain(of_pull_requests).collect::<Vec<_>>().join("\n")
}

/// Last known repository of the work.
fn find_repository(history: &TicketHistory) -> Option<String> {
    let mut newest_first = list_overviews(history).rev();
    let repository = newest_first.find_map(|overview| overview.repository.as_ref());
    repository.map(ToString::to_string)
}

fn list_overviews(history: &TicketHistory) -> impl DoubleEndedIterator<Item = &RunOverview> {
    history.runs.iter().filter_map(|run| run.overview.as_deref())
}

fn summarize_ticket(history: &TicketHistory, last: &KnownRun) -> TicketSummary {
    let overviews = || list_overviews(history);
    let title = overviews()
        .rev()
        .find_map(|overview| Some(overview.title.clone()).filter(|title| !title.is_empty()));
    let evidence = overviews().rev().find_map(|overview| overview.evidence);
    let cost = overviews().fold(Dollars::default(), |sum, overview| {
        sum.plus(overview.spend.cost_usd)
    });
    TicketSummary {
        ticket: history.ticket.to_string(),
        title: title.unwrap_or_default(),
        repository: find_repository(history),
        standing: history.standing(),
        last_run: RunView {
            overview: last.overview.as_deref().map(Into::into),
            ..RunView::from(&last.summary)
        },
        runs: u64::try_from(history.runs.len()).unwrap_or(u64::MAX),
        pull_requests: history.pull_requests.clone(),
        cost_usd: cost,
        unpriced: overviews()
            .map(|overview| u64::from(overview.spend.unpriced))
            .sum(),
        evidence: evidence.map(|level| level.to_string()),
        actor: overviews().find_map(|overview| overview.actor.clone()),
        started_at: history.started_at().unwrap_or_default().to_string(),
        finished_at: history.finished_at().map(|at| at.to_string()),
        quarantined: history.quarantined.clone(),
    }
}

#[cfg(test)]
mod tests {
    use domain::{PullRequestStatus, StopReason, TicketKey};

    use super::{
        super::ticket_history::tests::{build_history, finished},
        *,
    };

    fn list_keys(query: TicketSummariesQuery) -> Vec<String> {
        let keys: [TicketKey; 2] = ["jira:ENG-1", "jira:OPS-2"].map(|key| key.parse().unwrap());
        let completed = finished(StopReason::Completed);
        let failed = finished(StopReason::NoPlan);
        let tickets = [
            build_history(
                &keys[0],
                std::slice::from_ref(&completed),
                Some(PullRequestStatus::Merged),
            ),
            build_history(&keys[1], &[completed, failed], None),
        ];
        let wanted = TicketListFilter::new(query, TokenScope::default()).ok().unwrap();
        let listed = list_summaries(&tickets, &wanted);
        listed.into_iter().map(|one| one.ticket).collect()
    }

    #[test]
    fn newest_request_comes_first_in_list() {
        assert_eq!(
            list_keys(TicketSummariesQuery::default()),
            ["jira:OPS-2", "jira:ENG-1"]
        );
        let older = TicketSummariesQuery {
            before: Some("jira:OPS-2@2".to_owned()),
            ..TicketSummariesQuery::default()
        };
        assert_eq!(list_keys(older), ["jira:ENG-1"]);
        let limited = TicketSummariesQuery {
            limit: Some(1),
            ..TicketSummariesQuery::default()
        };
        assert_eq!(list_keys(limited), ["jira:OPS-2"]);
    }

    #[test]
    fn each_ticket_filter_excludes_alone() {
        let failed = TicketSummariesQuery {
            standing: Some(TicketStanding::Failed),
            ..TicketSummariesQuery::default()
        };
        assert_eq!(list_keys(failed), ["jira:OPS-2"]);
        let searched = TicketSummariesQuery {
            search: Some("ACME shop#7".to_owned()),
            ..TicketSummariesQuery::default()
        };
        assert_eq!(list_keys(searched), ["jira:ENG-1"]);
        let elsewhere = TicketSummariesQuery {
            repository: Some("acme/shop".to_owned()),
            ..TicketSummariesQuery::default()
        };
        assert!(
            list_keys(elsewhere).is_empty(),
            "no overview names the repository"
        );
    }

    #[test]
    fn limited_token_lists_own_tickets_only() {
        let ticket: TicketKey = "jira:ENG-1".parse().unwrap();
        let history = build_history(&ticket, &[finished(StopReason::Completed)], None);
        let projects = bootstrap::settings::TextList(vec!["OPS".to_owned()]);
        let scope = TokenScope::new(None, Some(&projects)).unwrap();
        let wanted = TicketListFilter::new(TicketSummariesQuery::default(), scope)
            .ok()
            .unwrap();
        assert!(list_summaries(&[history], &wanted).is_empty());
    }
}
