//! API that serves the records of one state to a console.

use std::{convert::Infallible, sync::Arc};

use api::types::{
    CallerView, DeadDetail, JournalQuery, Role, RunState, RunView, RunsQuery, SpendView,
    TicketSummariesQuery, TicketView,
};
use axum::{
    Json, Router,
    extract::{Path, Query, State},
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
};
use domain::{JournalEntry, Timestamp, WaitCondition};
use futures::stream;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use super::state_records::{DAY_MS, InstallationState, LONG_RUN, StateRecords, lengthen_journal};

/// Text that closes markup, has a script, an htmx attribute, a link with a script and hidden characters, and no place
/// to break a line.
pub(crate) const HOSTILE: &str = "\"'></pre></textarea></svg><script>alert(1)</script><a hx-get=/x \
     href=javascript:alert(1)>[x](javascript:alert(1)) \u{202e}\u{200b}WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW";
// Fields whose text comes from people or models. Fields with names of ours keep their values, because the console
// would refuse others.
const FREE_FIELDS: [&str; 21] = [
    "title",
    "actor",
    "text",
    "summary",
    "description",
    "detail",
    "by",
    "author",
    "reason",
    "problem",
    "why",
    "goal",
    "approach",
    "what",
    "content",
    "branch",
    "log_tail",
    "quarantined",
    "repository",
    "priority",
    "model",
];
const DIFF: &str = "diff --git a/shop/cart.py b/shop/cart.py\n--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1,2 +1,2 @@\n \
     def total(items):\n-    return round(sum(items))\n+    return round(sum(items), 2)\n";

/// Running API of one state. Dropping it ends the API.
pub(crate) struct StandInApi {
    pub(crate) url: String,
    served: JoinHandle<()>,
}

impl Drop for StandInApi {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl StandInApi {
    /// Starts the API of a state. It accepts every token.
    pub(crate) async fn start(state: InstallationState) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let now = bootstrap::read_wall_clock();
        let answers = Arc::new(StateAnswers {
            records: StateRecords::of(state, now),
            is_hostile: state == InstallationState::Hostile,
            now,
        });
        let served = axum::serve(listener, build_routes(answers));
        let served = tokio::spawn(async move {
            // The task is aborted at the end, so a result is an error of the listener.
            if let Err(error) = served.await {
                crate::output::print_error(&format!("console-check: the API ended: {error}"));
            }
        });
        Ok(Self { url, served })
    }
}

struct StateAnswers {
    records: StateRecords,
    is_hostile: bool,
    now: Timestamp,
}

type AnswersState = State<Arc<StateAnswers>>;

impl StateAnswers {
    /// Answers with a value, whose free texts are hostile in that state.
    fn answer(&self, value: &impl Serialize) -> Response {
        match serde_json::to_value(value) {
            Ok(mut value) => {
                if self.is_hostile {
                    replace_free_texts(&mut value);
                }
                Json(value).into_response()
            }
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }

    fn journal(&self) -> Vec<Value> {
        let entries = self.records.journal.iter();
        entries
            .map(|entry| {
                if self.is_hostile {
                    build_hostile_entry(entry)
                } else {
                    entry.clone()
                }
            })
            .collect()
    }
}

/// Replaces the free texts of an entry, unless one of them is a name that the journal reads.
fn build_hostile_entry(entry: &Value) -> Value {
    let mut hostile = entry.clone();
    replace_free_texts(&mut hostile);
    match serde_json::from_value::<JournalEntry>(hostile.clone()) {
        Ok(_) => hostile,
        Err(_) => entry.clone(),
    }
}

fn replace_free_texts(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if FREE_FIELDS.contains(&name.as_str()) => HOSTILE.clone_into(text),
                    field => replace_free_texts(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(replace_free_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn build_refusal(status: StatusCode, error: &str, detail: &str) -> Response {
    (status, Json(json!({"error": error, "detail": detail}))).into_response()
}

fn refuse_unknown() -> Response {
    build_refusal(StatusCode::NOT_FOUND, "not_found", "nothing is known of it")
}

fn build_routes(answers: Arc<StateAnswers>) -> Router {
    Router::new()
        .route("/v1/me", get(show_caller))
        .route(
            "/v1/activity",
            get(async |State(known): AnswersState| known.answer(&known.records.activity)),
        )
        .route("/v1/runs", get(list_runs))
        .route("/v1/runs/{id}", get(show_run))
        .route("/v1/runs/{id}/journal", get(show_journal))
        .route("/v1/runs/{id}/diff", get(show_diff))
        .route("/v1/runs/{id}/events", get(follow_run))
        .route("/v1/runs/{id}/stop", post(stop_run))
        .route("/v1/ticket-summaries", get(list_tickets))
        .route("/v1/tickets/{key}", get(show_ticket))
        .route("/v1/tickets/{key}/text", get(show_text))
        .route(
            "/v1/tickets/{key}/comments",
            post(async || StatusCode::NO_CONTENT),
        )
        .route(
            "/v1/dead",
            get(async |State(known): AnswersState| known.answer(&known.records.letters)),
        )
        .route("/v1/dead/{sequence}", get(show_letter))
        .route(
            "/v1/rules",
            get(async |State(known): AnswersState| known.answer(&known.records.rules)),
        )
        .route(
            "/v1/credentials",
            get(async |State(known): AnswersState| known.answer(&known.records.credentials)),
        )
        .route(
            "/v1/pools",
            get(async |State(known): AnswersState| known.answer(&known.records.pools)),
        )
        .route("/v1/spend", get(show_spend))
        .route(
            "/v1/stop-all",
            get(async |State(known): AnswersState| known.answer(&known.records.stop_all)),
        )
        .fallback(async || refuse_unknown())
        .with_state(answers)
}

async fn show_caller(State(known): AnswersState) -> Response {
    let caller = CallerView {
        name: if known.is_hostile {
            HOSTILE.to_owned()
        } else {
            "ada@acme.example".to_owned()
        },
        role: Role::Operator,
        is_limited: false,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    known.answer(&caller)
}

async fn list_runs(State(known): AnswersState, Query(query): Query<RunsQuery>) -> Response {
    let is_for_person = |run: &RunView| {
        let waits_for = serde_json::from_value(json!(run.waits_for));
        waits_for.is_ok_and(WaitCondition::is_for_person)
    };
    let is_wanted = |run: &&RunView| {
        query.status.is_none_or(|status| run.status == status)
            && query.ticket.as_ref().is_none_or(|ticket| run.ticket == *ticket)
            && (query.waits_for.as_deref() != Some(RunsQuery::PERSON) || is_for_person(run))
    };
    let runs = known.records.runs.iter().filter(is_wanted);
    known.answer(&runs.take(query.limit.unwrap_or(100)).collect::<Vec<_>>())
}

async fn show_run(State(known): AnswersState, Path(id): Path<String>) -> Response {
    match known.records.runs.iter().find(|run| run.id == id) {
        Some(run) => known.answer(run),
        None => refuse_unknown(),
    }
}

async fn show_journal(
    State(known): AnswersState,
    Path(id): Path<String>,
    Query(query): Query<JournalQuery>,
) -> Response {
    if !known.records.runs.iter().any(|run| run.id == id) {
        return refuse_unknown();
    }
    let from = usize::try_from(query.from.unwrap_or_default()).unwrap_or(usize::MAX);
    let journal = if id == LONG_RUN {
        lengthen_journal(&known.journal())
    } else {
        known.journal()
    };
    let entries = journal.into_iter().skip(from);
    let entries: Vec<_> = entries.take(query.limit.unwrap_or(usize::MAX)).collect();
    Json(entries).into_response()
}

async fn show_diff(State(known): AnswersState, Path(id): Path<String>) -> Response {
    if !known.records.runs.iter().any(|run| run.id == id) {
        return refuse_unknown();
    }
    if known.is_hostile {
        DIFF.replace("shop", HOSTILE)
            .replace("total", HOSTILE)
            .into_response()
    } else {
        DIFF.into_response()
    }
}

/// Answers as if the run was stopped, or refuses with the hostile text.
async fn stop_run(State(known): AnswersState) -> Response {
    if known.is_hostile {
        build_refusal(StatusCode::CONFLICT, "conflict", HOSTILE)
    } else {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// Streams nothing: the run of the page stays live.
async fn follow_run() -> Response {
    Sse::new(stream::pending::<Result<Event, Infallible>>()).into_response()
}

async fn list_tickets(State(known): AnswersState, Query(query): Query<TicketSummariesQuery>) -> Response {
    let tickets = known.records.tickets.iter();
    let tickets = tickets.filter(|ticket| query.standing.is_none_or(|standing| ticket.standing == standing));
    known.answer(&tickets.take(query.limit.unwrap_or(100)).collect::<Vec<_>>())
}

async fn show_ticket(State(known): AnswersState, Path(key): Path<String>) -> Response {
    let runs = known.records.runs.iter().rev().filter(|run| run.ticket == key);
    let runs: Vec<_> = runs.cloned().collect();
    if runs.is_empty() {
        return refuse_unknown();
    }
    known.answer(&TicketView {
        ticket: key,
        quarantined: runs
            .iter()
            .any(|run| run.status == RunState::Finished && known.is_hostile)
            .then(|| HOSTILE.to_owned()),
        runs,
        pull_requests: Vec::new(),
        standing: Vec::new(),
        due: None,
        last_skip: None,
        conversation_lock: None,
    })
}

async fn show_text(State(known): AnswersState) -> Response {
    match &known.records.text {
        Some(text) => known.answer(text),
        None => build_refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "Jira does not answer",
        ),
    }
}

async fn show_letter(State(known): AnswersState, Path(sequence): Path<u64>) -> Response {
    let letter = known
        .records
        .letters
        .iter()
        .find(|letter| letter.sequence == sequence);
    match letter {
        Some(letter) => known.answer(&DeadDetail {
            letter: letter.clone(),
            body: if known.is_hostile {
                HOSTILE.to_owned()
            } else {
                "{\"webhookEvent\": \"jira:issue_updated\"}".to_owned()
            },
        }),
        None => refuse_unknown(),
    }
}

async fn show_spend(State(known): AnswersState) -> Response {
    known.answer(&SpendView {
        since: known.now.plus_ms(-30 * DAY_MS).to_string(),
        until: known.now.to_string(),
        lines: known.records.spend.clone(),
        next: None,
    })
}
