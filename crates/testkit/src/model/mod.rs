//! A model that follows a script and refuses transcripts that break its provider's protocol.

mod anthropic;
pub mod around;
mod bedrock;
mod cache;
mod dialect;
mod openai;
mod reply;
mod schema;
mod script;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::http::{RequestLog, Server, answer, header_text, is_json, lock};
pub use bedrock::{MODEL_ACCESS_KEY_ID, MODEL_REGION, MODEL_SECRET_ACCESS_KEY, frame};
use cache::Cache;
use dialect::Dialect;
pub use dialect::{MODEL_API_KEY, MODEL_AUTH_TOKEN};
use reply::PlayedReply;
pub use script::Step;
use script::{Scripts, Transcript, scripts};

/// The one version of the Messages interface.
const ANTHROPIC_VERSION: &str = "2023-06-01";
const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";
/// Bytes of one network chunk of a stream: odd, so that events are cut anywhere.
const CHUNK: usize = 61;
/// How long a stream that is to be cut rests before its end.
const BEFORE_CUT: Duration = Duration::from_millis(50);

/// One answered call.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// `anthropic`, `bedrock`, `openai` or `azure`.
    pub dialect: &'static str,
    /// The beginning that the script is for, empty for the default script.
    pub start: String,
    /// The script's marker, empty for the default script.
    pub marker: String,
    /// Which step was played, from 0.
    pub step: usize,
    /// When it arrived.
    pub at: Instant,
    /// The request as received.
    pub request: Value,
}

/// The stand-in. Dropping it stops the server.
pub struct ScriptedModel {
    server: Server,
    state: Arc<Model>,
}

struct Model {
    log: Arc<RequestLog>,
    play: Mutex<Play>,
}

#[derive(Default)]
struct Play {
    scripts: Scripts,
    calls: Vec<ModelCall>,
    repeat_after: Option<String>,
    cache: Cache,
    garble: u32,
    cut: u32,
}

impl ScriptedModel {
    /// Starts on a free loopback port with a default script.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(script: Vec<Step>) -> anyhow::Result<Self> {
        let log = Arc::new(RequestLog::default());
        let play = Play {
            scripts: scripts(script),
            ..Play::default()
        };
        let state = Arc::new(Model {
            log: Arc::clone(&log),
            play: Mutex::new(play),
        });
        let router = Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1/chat/completions", post(chat_completions))
            .route("/openai/deployments/{name}/chat/completions", post(azure))
            .route("/model/{name}/invoke-with-response-stream", post(invoke))
            .route("/v1/models", get(models))
            .with_state(Arc::clone(&state));
        let server = Server::start(log, |_| Ok(router)).await?;
        Ok(Self { server, state })
    }

    /// Stops serving and waits for requests under way.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// The base: Anthropic is `<url>/v1/messages`, `OpenAI` `<url>/v1/chat/completions`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The script of conversations whose first user message contains `marker`; the marker that stands first wins, and of those at
    /// one place the longest.
    pub fn set_script(&self, marker: &str, script: Vec<Step>) {
        self.set_script_of("", marker, script);
    }

    /// The same of conversations whose first user message begins with `start`; the longest beginning wins over any marker.
    pub fn set_script_of(&self, start: &str, marker: &str, script: Vec<Step>) {
        let key = (start.to_owned(), marker.to_owned());
        lock(&self.state.play).scripts.insert(key, script);
    }

    /// Delays every answer, those that are waited for too: no latency lets them go.
    pub fn set_latency(&self, latency: Duration) {
        self.state.log.set_delay(latency);
    }

    /// Answers coming calls with an error (429 carries `retry-after: 1`).
    pub fn fail_next(&self, fault: crate::Fault) {
        self.state.log.fail_next(fault);
    }

    /// Answers the next calls with a body that is no JSON and no event stream.
    pub fn garble_next(&self, times: u32) {
        lock(&self.state.play).garble = times;
    }

    /// Cuts the next streams in the middle.
    pub fn cut_next(&self, times: u32) {
        lock(&self.state.play).cut = times;
    }

    /// A step one of whose results contains `text` is played once more: what a model does with a call that was cut.
    pub fn repeat_after(&self, text: &str) {
        lock(&self.state.play).repeat_after = Some(text.to_owned());
    }

    /// Every call answered from a script so far, of the conversations that have no script of their own for how they begin.
    #[must_use]
    pub fn calls(&self) -> Vec<ModelCall> {
        self.calls_of("")
    }

    /// The same of the conversations that begin with `start`.
    #[must_use]
    pub fn calls_of(&self, start: &str) -> Vec<ModelCall> {
        let play = lock(&self.state.play);
        play.calls
            .iter()
            .filter(|call| call.start == start)
            .cloned()
            .collect()
    }

    /// Every call answered from any script so far.
    #[must_use]
    pub fn all_calls(&self) -> Vec<ModelCall> {
        lock(&self.state.play).calls.clone()
    }

    /// How many calls were answered so far from each script, by its marker.
    #[must_use]
    pub fn call_counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.calls() {
            *counts.entry(call.marker.clone()).or_default() += 1;
        }
        counts
    }

    /// How many [`ScriptedModel::calls`] there are.
    #[must_use]
    pub fn call_count(&self) -> usize {
        let play = lock(&self.state.play);
        play.calls.iter().filter(|call| call.start.is_empty()).count()
    }

    /// What callers did that the protocol or the script forbids.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.state.log.violations()
    }
}

async fn messages(State(model): State<Arc<Model>>, headers: HeaderMap, body: Bytes) -> Response {
    model.handle(Dialect::Anthropic, &headers, &body)
}

async fn chat_completions(State(model): State<Arc<Model>>, headers: HeaderMap, body: Bytes) -> Response {
    model.handle(Dialect::OpenAi, &headers, &body)
}

/// Azure's form: the deployment is part of the path, and the version of the interface a parameter.
async fn azure(State(model): State<Arc<Model>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if !uri.query().unwrap_or_default().starts_with("api-version=") {
        return Dialect::Azure.error(StatusCode::NOT_FOUND, "404", "Resource not found");
    }
    model.handle(Dialect::Azure, &headers, &body)
}

async fn invoke(
    State(model): State<Arc<Model>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refused = |status, message: &str| Dialect::Bedrock.error(status, "", message);
    let is_allowed =
        Dialect::Bedrock.authorized(&headers) || bedrock::is_signed(&method, &uri, &headers, &body);
    if !is_allowed {
        return refused(StatusCode::FORBIDDEN, "the signature does not match");
    }
    let request = serde_json::from_slice(&body).map_err(|error| error.to_string());
    match request.and_then(|request| bedrock::unwrapped(&uri, request)) {
        Ok(request) => model.answer(Dialect::Bedrock, &headers, request),
        Err(problem) => {
            model.log.violation(format!("bedrock: {problem}"));
            refused(StatusCode::BAD_REQUEST, &problem)
        }
    }
}

async fn models(headers: HeaderMap) -> Response {
    if Dialect::Anthropic.authorized(&headers) || Dialect::OpenAi.authorized(&headers) {
        let model = json!({"id": "scripted", "type": "model", "object": "model", "display_name": "Scripted"});
        return answer(
            StatusCode::OK,
            json!({"object": "list", "data": [model], "has_more": false}),
        );
    }
    Dialect::OpenAi.error(StatusCode::UNAUTHORIZED, "authentication_error", "invalid key")
}

impl Model {
    fn handle(&self, dialect: Dialect, headers: &HeaderMap, body: &Bytes) -> Response {
        if !dialect.authorized(headers) {
            return dialect.error(StatusCode::UNAUTHORIZED, "authentication_error", "invalid key");
        }
        match serde_json::from_slice(body) {
            Ok(request) => self.answer(dialect, headers, request),
            Err(error) => {
                self.log.violation(format!("{}: {error}", dialect.name()));
                dialect.error(StatusCode::BAD_REQUEST, "invalid_request_error", "no JSON")
            }
        }
    }

    fn answer(&self, dialect: Dialect, headers: &HeaderMap, request: Value) -> Response {
        match self.play(dialect, headers, &request) {
            Ok(reply) => self.respond(dialect, &reply, &request),
            Err(problem) => {
                self.log.violation(format!("{}: {problem}", dialect.name()));
                dialect.error(StatusCode::BAD_REQUEST, "invalid_request_error", &problem)
            }
        }
    }

    fn play(&self, dialect: Dialect, headers: &HeaderMap, request: &Value) -> Result<PlayedReply, String> {
        let at = Instant::now();
        if !is_json(headers) {
            return Err("content-type: application/json is required".to_owned());
        }
        if dialect == Dialect::Anthropic && header_text(headers, "anthropic-version") != ANTHROPIC_VERSION {
            return Err(format!("anthropic-version: {ANTHROPIC_VERSION} is required"));
        }
        let mut transcript = dialect.read(request)?;
        transcript.turns += script::left_out(&transcript.opening);
        let mut play = lock(&self.play);
        let ((start, marker), step) = play.step_for(&transcript)?;
        script::check(&step, &transcript).map_err(|problem| format!("script {marker:?}: {problem}"))?;
        let counts = match dialect {
            Dialect::Anthropic | Dialect::Bedrock => play.cache.marked(request)?,
            Dialect::OpenAi | Dialect::Azure => play.cache.automatic(request),
        };
        let reply = PlayedReply::new(&step, transcript.turns, request, counts);
        let call = ModelCall {
            dialect: dialect.name(),
            start,
            marker,
            step: transcript.turns,
            at,
            request: request.clone(),
        };
        play.calls.push(call);
        Ok(reply)
    }

    fn respond(&self, dialect: Dialect, reply: &PlayedReply, request: &Value) -> Response {
        if self.garbled() {
            return (
                StatusCode::OK,
                [(header::CONTENT_TYPE, "text/html")],
                "<html>not what you asked for",
            )
                .into_response();
        }
        let streamed = request["stream"] == true;
        match dialect {
            Dialect::Bedrock => {
                let frames = bedrock::framed(&anthropic::events(reply));
                self.stream(&frames, "application/vnd.amazon.eventstream")
            }
            Dialect::Anthropic if streamed => self.stream(anthropic::stream(reply).as_bytes(), EVENT_STREAM),
            Dialect::Anthropic => answer(StatusCode::OK, anthropic::whole(reply)),
            Dialect::OpenAi | Dialect::Azure if streamed => {
                let include_usage = request["stream_options"]["include_usage"] == true;
                self.stream(openai::stream(reply, include_usage).as_bytes(), EVENT_STREAM)
            }
            Dialect::OpenAi | Dialect::Azure => answer(StatusCode::OK, openai::whole(reply)),
        }
    }

    fn stream(&self, events: &[u8], content_type: &'static str) -> Response {
        let mut chunks: Vec<Bytes> = events.chunks(CHUNK).map(Bytes::copy_from_slice).collect();
        let cut = self.cut();
        if cut {
            chunks.truncate(chunks.len() / 2);
        }
        let end = futures::stream::once(async move {
            if !cut {
                return Ok(Bytes::new());
            }
            // Without the pause the server drops what it has not written yet, the head of the answer included.
            tokio::time::sleep(BEFORE_CUT).await;
            Err(std::io::Error::other("the stand-in was told to cut the stream"))
        });
        let body = Body::from_stream(futures::stream::iter(chunks.into_iter().map(Ok)).chain(end));
        ([(header::CONTENT_TYPE, content_type)], body).into_response()
    }

    fn garbled(&self) -> bool {
        count_down(&mut lock(&self.play).garble)
    }

    fn cut(&self) -> bool {
        count_down(&mut lock(&self.play).cut)
    }
}

fn count_down(left: &mut u32) -> bool {
    let any = *left > 0;
    *left = left.saturating_sub(1);
    any
}

impl Play {
    fn step_for(&self, transcript: &Transcript) -> Result<((String, String), Step), String> {
        let (key, steps) = script::chosen(&self.scripts, &transcript.opening)
            .ok_or("there is no script for this conversation")?;
        if transcript.latest.contains(script::SUMMARY_ASKED) {
            return Ok((key.clone(), script::summary()));
        }
        let marker = &key.1;
        let index = transcript.turns - self.repeated(transcript);
        let step = steps.get(index).ok_or_else(|| {
            format!(
                "script {marker:?} has {} steps, step {index} was asked for",
                steps.len(),
            )
        })?;
        Ok((key.clone(), step.clone()))
    }

    /// How many turns are to be played once more.
    fn repeated(&self, transcript: &Transcript) -> usize {
        let Some(text) = &self.repeat_after else { return 0 };
        let answers = transcript.answers.iter();
        answers.filter(|answer| answer.contains(text.as_str())).count()
    }
}
