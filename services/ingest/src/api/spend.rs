//! Spend of models, counted from journals.

use api::types::{ProblemView, SpendLine, SpendQuery, SpendView};
use axum::{Json, extract::State};
use domain::{BudgetPeriod, RepositoryName, RunSource, Spend, SpendKey, SpendSum, SpendWindow, Timestamp};
use queue::{RunJournals, SpendReader};

use super::{ApiProblem, ApiQuery, ApiState, ViewerProof, scope::TokenScope};

// Pages of journals that one request reads. A client continues at `next`.
const PAGES: usize = 16;

/// Counts the spend of models in a period, from the stored journals. One request reads a part of them: with `next`,
/// repeat the request with `from` and add the results up.
#[utoipa::path(get, path = "/v1/spend", params(SpendQuery), security(("bearer" = [])),
    responses((status = 200, body = SpendView), (status = 400, body = ProblemView),
        (status = 401, body = ProblemView), (status = 429, body = ProblemView)))]
pub(super) async fn show_spend(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
    ApiQuery(query): ApiQuery<SpendQuery>,
) -> Result<Json<SpendView>, ApiProblem> {
    let _permit = state.reads.begin(&caller.name).await?;
    let journal = state.router()?.queue.journal();
    let window = parse_period(&query, bootstrap::read_wall_clock())?;
    let (lines, next) = count_spend(journal, &caller.scope, query.from, window).await?;
    Ok(Json(SpendView {
        since: window.since.to_string(),
        until: window.until.to_string(),
        lines,
        next,
    }))
}

/// Requested period: the current month, unless the query names another.
fn parse_period(query: &SpendQuery, now: Timestamp) -> Result<SpendWindow, ApiProblem> {
    let instant = |name: &str, text: &Option<String>, or: Timestamp| match text {
        None => Ok(or),
        Some(text) => Timestamp::parse(text)
            .or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")))
            .ok_or_else(|| ApiProblem::BadRequest(format!("{name} must be a day or an instant: 2026-11-23"))),
    };
    let until = instant("until", &query.until, now.plus_ms(SpendWindow::CLOCKS_MS))?;
    let (month, _) = BudgetPeriod::Month.around(until.plus_ms(-SpendWindow::CLOCKS_MS - 1));
    let since = instant("since", &query.since, month)?;
    if since < until {
        Ok(SpendWindow { since, until })
    } else {
        Err(ApiProblem::BadRequest("since must be before until".to_owned()))
    }
}

async fn count_spend(
    journals: RunJournals,
    scope: &TokenScope,
    from: Option<u64>,
    window: SpendWindow,
) -> Result<(Vec<SpendLine>, Option<u64>), ApiProblem> {
    let mut spend = Spend::default();
    let mut reader = SpendReader::new(journals, window, from);
    // A bounded number of pages per request keeps the time of a read permit bounded too.
    for _ in 0..PAGES {
        let page = reader.read_page(|run| scope.has_ticket(run.ticket())).await?;
        let Some(page) = page else { break };
        for charged in page {
            spend.add_entry(&charged.run, &charged.source, &charged.entry);
        }
    }
    Ok((list_lines(&spend), reader.next_sequence()))
}

/// Group of a line, in the order of the lines.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SpendLineKey {
    day: String,
    organization: String,
    repository: String,
    ticket: String,
    job: String,
    provider: String,
    model: String,
}

impl SpendLineKey {
    fn of(key: &SpendKey) -> Self {
        let RunSource { repository, job } = &key.source;
        let repository = repository.as_ref();
        Self {
            day: BudgetPeriod::Day.name(key.day),
            organization: repository.map(RepositoryName::organization).unwrap_or_default(),
            repository: repository.map(ToString::to_string).unwrap_or_default(),
            ticket: key.run.ticket().to_string(),
            job: job.map(|job| job.to_string()).unwrap_or_default(),
            provider: key.provider.clone(),
            model: key.model.clone(),
        }
    }
}

fn list_lines(spend: &Spend) -> Vec<SpendLine> {
    let line = |(group, sum): (SpendLineKey, SpendSum)| SpendLine {
        day: group.day,
        organization: group.organization,
        repository: group.repository,
        ticket: group.ticket,
        job: group.job,
        provider: group.provider,
        model: group.model,
        calls: sum.replies,
        cost_usd: sum.spend.cost_usd,
        tokens: sum.spend.tokens,
        unpriced: u64::from(sum.spend.unpriced),
    };
    spend.sum_by(SpendLineKey::of).into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use domain::{Dollars, Fact, Job, JournalEntry, ModelReply, ReplyStop, RunId, RunOverview, TokenUsage};
    use proptest::prelude::*;
    use serde_json::json;

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

    proptest! {
        /// The lines of a run have the sums that its page shows.
        #[test]
        fn lines_add_up_to_overview_of_run(replies in prop::collection::vec(
            ("(large|small)", prop::option::of(0..90_000_u64), 0..172_800_000_i64), 0..20,
        )) {
            let run: RunId = "jira:ENG-1@7".parse().unwrap();
            let trigger = json!({"ticket": "jira:ENG-1", "key": "k", "at": 1, "source": "webhook", "actor": null,
                "reason": {"type": "job_requested", "job": "implement", "repository": "acme/shop",
                    "rules": domain::RepositoryRules::default(), "text": domain::TicketText::default()}});
            let mut entries = vec![build_reply_entry("large", None, "2026-11-22T00:00:00Z")];
            entries[0].fact = Fact::RunStarted { trigger: serde_json::from_value(trigger).unwrap() };
            for (model, cost, after) in replies {
                let mut entry = build_reply_entry(&model, cost, "2026-11-22T00:00:00Z");
                entry.at = entry.at.plus_ms(after);
                entries.push(entry);
            }
            for (position, entry) in (0..).zip(&mut entries) {
                entry.position = position;
            }
            let seen = RunOverview::of(&run, &entries).unwrap();
            let mut spend = Spend::default();
            spend.add_journal(&run, &entries);
            let lines = list_lines(&spend);
            prop_assert_eq!(lines.iter().map(|line| line.calls).sum::<u64>(), entries.len() as u64 - 1);
            prop_assert_eq!(lines.iter().map(|line| line.tokens).sum::<u64>(), seen.spend.tokens);
            prop_assert_eq!(lines.iter().map(|line| line.unpriced).sum::<u64>(), u64::from(seen.spend.unpriced));
            let cost = lines.iter().fold(Dollars::default(), |sum, line| sum.plus(line.cost_usd));
            prop_assert_eq!(cost, seen.spend.cost_usd);
            prop_assert!(lines.iter().all(|line| Some(&line.repository) == seen.repository.as_ref().map(ToString::to_string).as_ref()));
        }
    }

    #[test]
    fn spend_period_defaults_to_current_month() {
        let now = parse_timestamp("2026-11-23T12:00:00Z");
        let window = parse_period(&build_spend_query(None, None), now).unwrap();
        assert_eq!(window.since, parse_timestamp("2026-11-01T00:00:00Z"));
        assert!(window.until > now);
        let window = parse_period(&build_spend_query(None, Some("2026-11-01")), now).unwrap();
        assert_eq!(
            window,
            SpendWindow {
                since: parse_timestamp("2026-10-01T00:00:00Z"),
                until: parse_timestamp("2026-11-01T00:00:00Z")
            }
        );
        let window = parse_period(&build_spend_query(Some("2026-11-23T10:00:00Z"), None), now).unwrap();
        assert_eq!(window.since, parse_timestamp("2026-11-23T10:00:00Z"));
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
        let source = RunSource {
            repository: Some("acme/shop".parse().unwrap()),
            job: Some(Job::Implement),
        };
        let mut spend = Spend::default();
        for entry in [
            build_reply_entry("large", Some(20_000), "2026-11-22T23:59:59Z"),
            build_reply_entry("large", Some(30_000), "2026-11-23T00:00:00Z"),
            build_reply_entry("large", None, "2026-11-23T01:00:00Z"),
            build_reply_entry("small", Some(1), "2026-11-23T01:00:00Z"),
        ] {
            spend.add_entry(&run, &source, &entry);
        }
        let found = list_lines(&spend);
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
