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
use domain::{Amount, Dollars, Entry, Fact, Job, Period, Reason, Reply, RepositoryName, RunId, Timestamp};
use futures::TryStreamExt as _;
use queue::{Journal, JournalPlace};

use super::{ApiState, Problem, Viewer, scope::Scope};

// Pages of journals that one request reads. A client continues at `next`.
const PAGES: usize = 16;
// Tolerance for clock differences: an entry may be stored a little before or after its timestamp.
const CLOCKS_MS: i64 = 60_000;

/// Counts the spend of models in a period, from the stored journals. One request reads a part of them: with `next`,
/// repeat the request with `from` and add the results up.
#[utoipa::path(get, path = "/v1/spend", params(SpendQuery), security(("bearer" = [])),
    responses((status = 200, body = SpendView), (status = 400, body = ProblemView),
        (status = 401, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn show(
    Viewer(caller): Viewer,
    State(state): State<ApiState>,
    query: Result<Query<SpendQuery>, QueryRejection>,
) -> Result<Json<SpendView>, Problem> {
    let Query(query) = query?;
    let _permit = state.reads.begin(&caller.name).await?;
    let journal = state.router()?.queue.journal();
    let time = asked(&query, bootstrap::now())?;
    let (lines, next) = count(&journal, &caller.scope, query.from, time).await?;
    Ok(Json(SpendView {
        since: time.0.to_string(),
        until: time.1.to_string(),
        lines,
        next,
    }))
}

/// Requested period: the current month, unless the query names another.
fn asked(query: &SpendQuery, now: Timestamp) -> Result<(Timestamp, Timestamp), Problem> {
    let instant = |name: &str, text: &Option<String>, or: Timestamp| match text {
        None => Ok(or),
        Some(text) => Timestamp::parse(text)
            .or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")))
            .ok_or_else(|| Problem::BadRequest(format!("{name} must be a day or an instant: 2026-11-23"))),
    };
    let until = instant("until", &query.until, now.plus_ms(CLOCKS_MS))?;
    let (month, _) = Period::Month.around(until.plus_ms(-CLOCKS_MS - 1));
    let since = instant("since", &query.since, month)?;
    if since < until {
        Ok((since, until))
    } else {
        Err(Problem::BadRequest("since must be before until".to_owned()))
    }
}

async fn count(
    journal: &Journal,
    scope: &Scope,
    from: Option<u64>,
    (since, until): (Timestamp, Timestamp),
) -> Result<(Vec<SpendLine>, Option<u64>), Problem> {
    let mut sums = Sums::default();
    let mut runs = Runs::new();
    let first = JournalPlace::Since(since.plus_ms(-CLOCKS_MS));
    let mut place = Some(from.map_or(first, JournalPlace::At));
    // A bounded number of pages per request keeps the time of a read permit bounded too.
    for _ in 0..PAGES {
        let Some(here) = place else { break };
        let page = journal.page(here).await?;
        place = page.next;
        let known = page.entries.iter();
        for (run, entry) in known.filter(|(run, _)| scope.has_ticket(run.ticket())) {
            note(&mut runs, run, entry);
            if entry.at >= since && entry.at < until && entry.fact.taken().is_some() {
                let start = start_of(&mut runs, journal, run).await?;
                sums.add(run, &start, entry);
            }
        }
        // Entries are stored in the order of time, up to the tolerance, so later pages contain nothing of the period.
        let is_over = |(_, entry): &(RunId, Entry)| entry.at > until.plus_ms(CLOCKS_MS);
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
struct Start {
    repository: Option<RepositoryName>,
    job: Option<Job>,
}

type Runs = HashMap<RunId, Start>;

fn note(runs: &mut Runs, run: &RunId, entry: &Entry) {
    let Fact::RunStarted { trigger } = &entry.fact else {
        return;
    };
    let repository = match &trigger.reason {
        Reason::JobRequested(request) => Some(request.repository.clone()),
        _ => None,
    };
    let job = trigger.reason.job();
    runs.insert(run.clone(), Start { repository, job });
}

/// Repository and job of a run. For a run that started before the pages of this request, it reads the first entry of the
/// journal, once.
async fn start_of(runs: &mut Runs, journal: &Journal, run: &RunId) -> Result<Start, Problem> {
    if !runs.contains_key(run) {
        let first = pin!(journal.entries(run)).try_next().await;
        let first = match first {
            // A corrupt first entry leaves repository and job unknown. The spend still counts.
            Err(queue::Error::Corrupt { .. }) => None,
            first => first?,
        };
        // A missing start is cached too, so that it is read once.
        runs.insert(run.clone(), Start::default());
        if let Some((_, entry)) = first {
            note(runs, run, &entry);
        }
    }
    Ok(runs.get(run).cloned().unwrap_or_default())
}

/// Day, organization, repository, ticket, job, provider and model.
type Key = (String, String, String, String, String, String, String);

#[derive(Debug, Default)]
struct Sums(BTreeMap<Key, (Amount, u64, u64)>);

impl Sums {
    fn add(&mut self, run: &RunId, start: &Start, entry: &Entry) {
        let (Some(reply), Some(amount)) = (reply_of(&entry.fact), entry.fact.taken()) else {
            return;
        };
        let repository = start.repository.as_ref();
        let key = (
            Period::Day.name(entry.at),
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
        let line = |(key, (sum, calls, unpriced)): (Key, (Amount, u64, u64))| {
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

const fn reply_of(fact: &Fact) -> Option<&Reply> {
    match fact {
        Fact::ModelReplied { reply, .. } | Fact::Summarized { reply, .. } => Some(reply),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::{ReplyStop, Usage};

    use super::*;

    fn query(since: Option<&str>, until: Option<&str>) -> SpendQuery {
        SpendQuery {
            since: since.map(str::to_owned),
            until: until.map(str::to_owned),
            from: None,
        }
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("an instant")
    }

    fn replied(model: &str, cost_micros: Option<u64>, when: &str) -> Entry {
        let reply = Reply {
            blocks: Vec::new(),
            stop: ReplyStop::EndTurn,
            usage: Usage {
                input_tokens: 90,
                output_tokens: 10,
                ..Usage::default()
            },
            model: model.to_owned(),
            provider: "main".to_owned(),
            cost_micros,
        };
        let run: RunId = "jira:ENG-1@7".parse().unwrap();
        Entry {
            position: 2,
            nonce: "n".to_owned(),
            fence: domain::RunFence::default(),
            at: at(when),
            fact: Fact::ModelReplied {
                id: run.call(1),
                reply,
                prompt: None,
            },
        }
    }

    #[test]
    fn spend_period_defaults_to_current_month() {
        let now = at("2026-11-23T12:00:00Z");
        let (since, until) = asked(&query(None, None), now).unwrap();
        assert_eq!(since, at("2026-11-01T00:00:00Z"));
        assert!(until > now);
        let (since, until) = asked(&query(None, Some("2026-11-01")), now).unwrap();
        assert_eq!(
            (since, until),
            (at("2026-10-01T00:00:00Z"), at("2026-11-01T00:00:00Z"))
        );
        let (since, _) = asked(&query(Some("2026-11-23T10:00:00Z"), None), now).unwrap();
        assert_eq!(since, at("2026-11-23T10:00:00Z"));
        for wrong in [
            query(Some("yesterday"), None),
            query(Some("2026-11-23"), Some("2026-11-23")),
        ] {
            assert!(
                matches!(asked(&wrong, now), Err(Problem::BadRequest(_))),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn spend_sums_by_day_and_model() {
        let run: RunId = "jira:ENG-1@7".parse().unwrap();
        let start = Start {
            repository: Some("acme/shop".parse().unwrap()),
            job: Some(Job::Implement),
        };
        let mut sums = Sums::default();
        for entry in [
            replied("large", Some(20_000), "2026-11-22T23:59:59Z"),
            replied("large", Some(30_000), "2026-11-23T00:00:00Z"),
            replied("large", None, "2026-11-23T01:00:00Z"),
            replied("small", Some(1), "2026-11-23T01:00:00Z"),
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
