//! Spend of models, counted from journals.

use std::{
    collections::{BTreeMap, HashMap},
    pin::pin,
};

use api::types::{ProblemView, SpendLine, SpendQuery, SpendView};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use domain::{
    BudgetPeriod, Dollars, Fact, Job, JournalEntry, ModelReply, RepositoryName, RunId, SpendAmount,
    Timestamp, TriggerReason,
};
use futures::TryStreamExt as _;
use queue::{JournalPlace, RunJournals};

use super::{ApiProblem, ApiState, ViewerProof, scope::TokenScope};

// Pages of journals that one request reads. A client continues at `next`.
const PAGES: usize = 16;
// Tolerance for clock differences: an entry may be stored a little before or after its timestamp.
const CLOCKS_MS: i64 = 60_000;

/// Counts the spend of models in a period, from the stored journals. One request reads a part of them: with `next`,
/// repeat the request with `from` and add the results up.
#[utoipa::path(get, path = "/v1/spend", params(SpendQuery), security(("bearer" = [])),
    responses((status = 200, body = SpendView), (status = 400, body = ProblemView),
        (status = 401, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn show_spend(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
    query: Result<Query<SpendQuery>, QueryRejection>,
) -> Result<Json<SpendView>, ApiProblem> {
    let Query(query) = query?;
    let _permit = state.reads.begin(&caller.name).await?;
    let journal = state.router()?.queue.journal();
    let time = parse_period(&query, bootstrap::read_wall_clock())?;
    let (lines, next) = count_spend(&journal, &caller.scope, query.from, time).await?;
    Ok(Json(SpendView {
        since: time.0.to_string(),
        until: time.1.to_string(),
        lines,
        next,
    }))
}

/// Requested period: the current month, unless the query names another.
fn parse_period(query: &SpendQuery, now: Timestamp) -> Result<(Timestamp, Timestamp), ApiProblem> {
    let instant = |name: &str, text: &Option<String>, or: Timestamp| match text {
        None => Ok(or),
        Some(text) => Timestamp::parse(text)
            .or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")))
            .ok_or_else(|| ApiProblem::BadRequest(format!("{name} must be a day or an instant: 2026-11-23"))),
    };
    let until = instant("until", &query.until, now.plus_ms(CLOCKS_MS))?;
    let (month, _) = BudgetPeriod::Month.around(until.plus_ms(-CLOCKS_MS - 1));
    let since = instant("since", &query.since, month)?;
    if since < until {
        Ok((since, until))
    } else {
        Err(ApiProblem::BadRequest("since must be before until".to_owned()))
    }
}

async fn count_spend(
    journal: &RunJournals,
    scope: &TokenScope,
    from: Option<u64>,
    (since, until): (Timestamp, Timestamp),
) -> Result<(Vec<SpendLine>, Option<u64>), ApiProblem> {
    let mut sums = SpendSums::default();
    let mut runs = SpendRunStarts::new();
    let first = JournalPlace::Since(since.plus_ms(-CLOCKS_MS));
    let mut place = Some(from.map_or(first, JournalPlace::At));
    // A bounded number of pages per request keeps the time of a read permit bounded too.
    for _ in 0..PAGES {
        let Some(here) = place else { break };
        let page = journal.page(here).await?;
        place = page.next;
        let known = page.entries.iter();
        for (run, entry) in known.filter(|(run, _)| scope.has_ticket(run.ticket())) {
            note_run_start(&mut runs, run, entry);
            if entry.at >= since && entry.at < until && entry.fact.taken().is_some() {
                let start = find_run_start(&mut runs, journal, run).await?;
                sums.add(run, &start, entry);
            }
        }
        // Entries are stored in the order of time, up to the tolerance, so later pages contain nothing of the period.
        let is_over = |(_, entry): &(RunId, JournalEntry)| entry.at > until.plus_ms(CLOCKS_MS);
        if page.entries.last().is_some_and(is_over) {
            place = None;
        }
    }
    let next = place.and_then(|place| match place {
        JournalPlace::At(sequence) => Some(sequence),
        JournalPlace::Since(_) => None,
    });
    Ok((sums.into_lines(), next))
}

/// Repository and job of a run, as far as its journal contains them.
#[derive(Clone, Debug, Default)]
struct SpendRunStart {
    repository: Option<RepositoryName>,
    job: Option<Job>,
}

type SpendRunStarts = HashMap<RunId, SpendRunStart>;

fn note_run_start(runs: &mut SpendRunStarts, run: &RunId, entry: &JournalEntry) {
    let Fact::RunStarted { trigger } = &entry.fact else {
        return;
    };
    let repository = match &trigger.reason {
        TriggerReason::JobRequested(request) => Some(request.repository.clone()),
        _ => None,
    };
    let job = trigger.reason.job();
    runs.insert(run.clone(), SpendRunStart { repository, job });
}

/// Repository and job of a run. For a run that started before the pages of this request, it reads the first entry of the
/// journal, once.
async fn find_run_start(
    runs: &mut SpendRunStarts,
    journal: &RunJournals,
    run: &RunId,
) -> Result<SpendRunStart, ApiProblem> {
    if !runs.contains_key(run) {
        let first = pin!(journal.entries(run)).try_next().await;
        let first = match first {
            // A corrupt first entry leaves repository and job unknown. The spend still counts.
            Err(queue::Error::Corrupt { .. }) => None,
            first => first?,
        };
        // A missing start is cached too, so that it is read once.
        runs.insert(run.clone(), SpendRunStart::default());
        if let Some((_, entry)) = first {
            note_run_start(runs, run, &entry);
        }
    }
    Ok(runs.get(run).cloned().unwrap_or_default())
}

/// Day, organization, repository, ticket, job, provider and model.
type SpendKey = (String, String, String, String, String, String, String);

#[derive(Debug, Default)]
struct SpendSums(BTreeMap<SpendKey, (SpendAmount, u64, u64)>);

impl SpendSums {
    fn add(&mut self, run: &RunId, start: &SpendRunStart, entry: &JournalEntry) {
        let (Some(reply), Some(amount)) = (find_reply(&entry.fact), entry.fact.taken()) else {
            return;
        };
        let repository = start.repository.as_ref();
        let key = (
            BudgetPeriod::Day.name(entry.at),
            repository.map(RepositoryName::organization).unwrap_or_default(),
            repository.map(ToString::to_string).unwrap_or_default(),
            run.ticket().to_string(),
            start.job.map(|job| job.to_string()).unwrap_or_default(),
            reply.provider.clone(),
            reply.model.clone(),
        );
        let (sum, calls, unpriced) = self.0.entry(key).or_default();
        *sum = sum.plus(amount);
        *calls += 1;
        *unpriced += u64::from(reply.cost_micros.is_none());
    }

    fn into_lines(self) -> Vec<SpendLine> {
        let line = |(key, (sum, calls, unpriced)): (SpendKey, (SpendAmount, u64, u64))| {
            let (day, organization, repository, ticket, job, provider, model) = key;
            SpendLine {
                day,
                organization,
                repository,
                ticket,
                job,
                provider,
                model,
                calls,
                cost_usd: Dollars::from_micros(sum.cost_micros),
                tokens: sum.tokens,
                unpriced,
            }
        };
        self.0.into_iter().map(line).collect()
    }
}

const fn find_reply(fact: &Fact) -> Option<&ModelReply> {
    match fact {
        Fact::ModelReplied { reply, .. } | Fact::Summarized { reply, .. } => Some(reply),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::{ReplyStop, TokenUsage};

    use super::*;

    fn build_spend_query(since: Option<&str>, until: Option<&str>) -> SpendQuery {
        SpendQuery {
            since: since.map(str::to_owned),
            until: until.map(str::to_owned),
            from: None,
        }
    }

    fn parse_timestamp(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("an instant")
    }

    fn build_reply_entry(model: &str, cost_micros: Option<u64>, when: &str) -> JournalEntry {
        let reply = ModelReply {
            blocks: Vec::new(),
            stop: ReplyStop::EndTurn,
            usage: TokenUsage {
                input_tokens: 90,
                output_tokens: 10,
                ..TokenUsage::default()
            },
            model: model.to_owned(),
            provider: "main".to_owned(),
            cost_micros,
        };
        let run: RunId = "jira:ENG-1@7".parse().unwrap();
        JournalEntry {
            position: 2,
            nonce: "n".to_owned(),
            fence: domain::RunFence::default(),
            at: parse_timestamp(when),
            fact: Fact::ModelReplied {
                id: run.call(1),
                reply,
                prompt: None,
            },
        }
    }

    #[test]
    fn spend_period_defaults_to_current_month() {
        let now = parse_timestamp("2026-11-23T12:00:00Z");
        let (since, until) = parse_period(&build_spend_query(None, None), now).unwrap();
        assert_eq!(since, parse_timestamp("2026-11-01T00:00:00Z"));
        assert!(until > now);
        let (since, until) = parse_period(&build_spend_query(None, Some("2026-11-01")), now).unwrap();
        assert_eq!(
            (since, until),
            (
                parse_timestamp("2026-10-01T00:00:00Z"),
                parse_timestamp("2026-11-01T00:00:00Z")
            )
        );
        let (since, _) = parse_period(&build_spend_query(Some("2026-11-23T10:00:00Z"), None), now).unwrap();
        assert_eq!(since, parse_timestamp("2026-11-23T10:00:00Z"));
        for wrong in [
            build_spend_query(Some("yesterday"), None),
            build_spend_query(Some("2026-11-23"), Some("2026-11-23")),
        ] {
            assert!(
                matches!(parse_period(&wrong, now), Err(ApiProblem::BadRequest(_))),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn spend_sums_by_day_and_model() {
        let run: RunId = "jira:ENG-1@7".parse().unwrap();
        let start = SpendRunStart {
            repository: Some("acme/shop".parse().unwrap()),
            job: Some(Job::Implement),
        };
        let mut sums = SpendSums::default();
        for entry in [
            build_reply_entry("large", Some(20_000), "2026-11-22T23:59:59Z"),
            build_reply_entry("large", Some(30_000), "2026-11-23T00:00:00Z"),
            build_reply_entry("large", None, "2026-11-23T01:00:00Z"),
            build_reply_entry("small", Some(1), "2026-11-23T01:00:00Z"),
        ] {
            sums.add(&run, &start, &entry);
        }
        let found = sums.into_lines();
        let said = Vec::from_iter(found.iter().map(|line| {
            let (day, model) = (line.day.as_str(), line.model.as_str());
            (
                day,
                model,
                line.calls,
                line.cost_usd.micros(),
                line.tokens,
                line.unpriced,
            )
        }));
        assert_eq!(
            said,
            [
                ("2026-11-22", "large", 1, 20_000, 100, 0),
                ("2026-11-23", "large", 2, 30_000, 200, 1),
                ("2026-11-23", "small", 1, 1, 100, 0),
            ]
        );
        assert_eq!(found[0].organization, "acme");
        assert_eq!(
            (found[0].ticket.as_str(), found[0].job.as_str()),
            ("jira:ENG-1", "implement")
        );
    }
}
