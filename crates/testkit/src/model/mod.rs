//! Model that plays scripts and refuses transcripts that break its provider's protocol.

mod anthropic;
mod bedrock;
mod cache;
mod dialect;
mod openai;
mod reply;
mod responses;
mod script;
pub mod surrounding_replies;

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::http::{HttpServer, RequestLog, header_text, is_json, render_json_answer};
pub use bedrock::{MODEL_ACCESS_KEY_ID, MODEL_REGION, MODEL_SECRET_ACCESS_KEY, encode_event_frame};
use cache::PromptCache;
use dialect::PlayedDialect;
pub use dialect::{MODEL_API_KEY, MODEL_AUTH_TOKEN};
use reply::PlayedReply;
pub use script::ScriptStep;
use script::{PlayedTranscript, Script, ScriptTable, with_surrounding_scripts};

/// Only version of the Messages interface.
const ANTHROPIC_VERSION: &str = "2023-06-01";
const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";
// Bytes per network chunk of a stream. The odd number splits events at any position.
const CHUNK: usize = 61;
/// Pause of a broken stream before its end.
const BEFORE_CUT: Duration = Duration::from_millis(50);

/// Model call that was answered from a script.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// `anthropic`, `bedrock`, `openai`, `azure`, `openai-responses` or `azure-responses`.
    pub dialect: &'static str,
    /// Start of the first message that selected the script; empty for the default script.
    pub start: String,
    /// Marker that selected the script; empty for the default script.
    pub marker: String,
    /// Index of the played step, from 0.
    pub step: usize,
    /// Time at which the call arrived.
    pub at: Instant,
    /// Request body as received; null for calls that are counted without being kept.
    pub request: Arc<Value>,
}

/// Server of the model APIs. Dropping it stops the server.
pub struct ScriptedModel {
    server: HttpServer,
    state: Arc<ScriptedModelState>,
}

struct ScriptedModelState {
    log: Arc<RequestLog>,
    play: Mutex<ScriptPlay>,
}

#[derive(Default)]
struct ScriptPlay {
    scripts: ScriptTable,
    calls: Vec<ModelCall>,
    /// Number of calls by the start and the marker of their script.
    counts: BTreeMap<(String, String), usize>,
    /// True while calls are answered without keeping their requests.
    is_muted: bool,
    repeat_after: Option<String>,
    cache: PromptCache,
    garble: u32,
    cut: u32,
}

impl ScriptedModel {
    /// Starts on a free loopback port with a default script.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(script: Vec<ScriptStep>) -> anyhow::Result<Self> {
        let log = Arc::new(RequestLog::default());
        // The played calls hold the requests.
        log.set_recording(false);
        let play = ScriptPlay {
            scripts: with_surrounding_scripts(script),
            ..ScriptPlay::default()
        };
        let state = Arc::new(ScriptedModelState {
            log: Arc::clone(&log),
            play: Mutex::new(play),
        });
        let route = |dialect| post(answer_dialect(dialect));
        let router = Router::new()
            .route("/v1/messages", route(PlayedDialect::Anthropic))
            .route("/v1/chat/completions", route(PlayedDialect::OpenAi))
            .route(
                "/openai/deployments/{name}/chat/completions",
                route(PlayedDialect::Azure),
            )
            .route("/v1/responses", route(PlayedDialect::Responses))
            .route("/openai/responses", route(PlayedDialect::AzureResponses))
            .route("/model/{name}/invoke-with-response-stream", post(answer_invoke))
            .route("/v1/models", get(list_models))
            .with_state(Arc::clone(&state));
        let server = HttpServer::start(log, |_| Ok(router)).await?;
        Ok(Self { server, state })
    }

    /// Stops the server after the requests under way.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Base URL. Anthropic is at `<url>/v1/messages`, `OpenAI` at `<url>/v1/chat/completions` and
    /// `<url>/v1/responses`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Address and port of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Sets the script of conversations whose first user message contains `marker`. The earliest marker in
    /// the message wins, then the longest one.
    pub fn set_script(&self, marker: &str, script: Vec<ScriptStep>) {
        self.set_script_of("", marker, script);
    }

    /// Sets the script of conversations whose first user message begins with `start` and contains `marker`.
    /// The longest start wins over any marker.
    pub fn set_script_of(&self, start: &str, marker: &str, script: Vec<ScriptStep>) {
        self.state.play.lock().scripts.insert(start, marker, script);
    }

    /// Delays every answer. The change also affects calls that are already waiting.
    pub fn set_latency(&self, latency: Duration) {
        self.state.log.set_delay(latency);
    }

    /// Answers the next matching calls with an error (429 carries `retry-after: 1`).
    pub fn fail_next(&self, fault: crate::ServiceFault) {
        self.state.log.fail_next(fault);
    }

    /// Answers the next calls with a body that is neither JSON nor an event stream.
    pub fn garble_next(&self, times: u32) {
        self.state.play.lock().garble = times;
    }

    /// Breaks the next streams halfway.
    pub fn cut_next(&self, times: u32) {
        self.state.play.lock().cut = times;
    }

    /// Plays a step again if a result of it contains `text`, as a model does after an interrupted call.
    pub fn repeat_after(&self, text: &str) {
        self.state.play.lock().repeat_after = Some(text.to_owned());
    }

    /// Calls of conversations without a script for their start, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<ModelCall> {
        self.calls_of("")
    }

    /// Calls of conversations that begin with `start`, in order.
    #[must_use]
    pub fn calls_of(&self, start: &str) -> Vec<ModelCall> {
        let play = self.state.play.lock();
        play.calls
            .iter()
            .filter(|call| call.start == start)
            .cloned()
            .collect()
    }

    /// Calls of all conversations, in order.
    #[must_use]
    pub fn all_calls(&self) -> Vec<ModelCall> {
        self.state.play.lock().calls.clone()
    }

    /// Number of answered calls by the script's marker.
    #[must_use]
    pub fn call_counts(&self) -> BTreeMap<String, usize> {
        let play = self.state.play.lock();
        let work = play.counts.iter().filter(|((start, _), _)| start.is_empty());
        work.map(|((_, marker), count)| (marker.clone(), *count))
            .collect()
    }

    /// Number of [`ScriptedModel::calls`] so far.
    #[must_use]
    pub fn call_count(&self) -> usize {
        let play = self.state.play.lock();
        let work = play.counts.iter().filter(|((start, _), _)| start.is_empty());
        work.map(|(_, count)| count).sum()
    }

    /// Number of [`ScriptedModel::calls`] of the script with this marker.
    #[must_use]
    pub fn marker_count(&self, marker: &str) -> usize {
        let key = (String::new(), marker.to_owned());
        self.state
            .play
            .lock()
            .counts
            .get(&key)
            .copied()
            .unwrap_or_default()
    }

    /// Number of calls of all conversations so far.
    #[must_use]
    pub fn total_count(&self) -> usize {
        self.state.play.lock().counts.values().sum()
    }

    /// Time at which a call arrived, by its position in [`ScriptedModel::all_calls`].
    #[must_use]
    pub fn arrival(&self, position: usize) -> Option<Instant> {
        let play = self.state.play.lock();
        play.calls.get(position).map(|call| call.at)
    }

    /// Sets whether later calls keep their requests. A bench that reads none of them saves their memory.
    pub fn set_recording(&self, is_recording: bool) {
        self.state.play.lock().is_muted = !is_recording;
    }

    /// Number of answered requests, as a channel that wakes up its receivers at each.
    #[must_use]
    pub fn answered(&self) -> watch::Receiver<u64> {
        self.state.log.answered()
    }

    /// Requests that the protocol or the script forbids, one description each.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.state.log.violations()
    }
}

/// Returns the handler of a dialect's route. Azure's routes have the API version as a parameter.
fn answer_dialect(
    dialect: PlayedDialect,
) -> impl Fn(State<Arc<ScriptedModelState>>, Uri, HeaderMap, Bytes) -> Ready<Response> + Clone {
    let is_azure = matches!(dialect, PlayedDialect::Azure | PlayedDialect::AzureResponses);
    move |State(model), uri, headers, body| {
        let has_version = uri.query().unwrap_or_default().starts_with("api-version=");
        ready(if is_azure && !has_version {
            dialect.error(StatusCode::NOT_FOUND, "404", "Resource not found")
        } else {
            model.handle(dialect, &headers, &body)
        })
    }
}

async fn answer_invoke(
    State(model): State<Arc<ScriptedModelState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refused = |status, message: &str| PlayedDialect::Bedrock.error(status, "", message);
    let is_allowed =
        PlayedDialect::Bedrock.authorized(&headers) || bedrock::is_signed(&method, &uri, &headers, &body);
    if !is_allowed {
        return refused(StatusCode::FORBIDDEN, "the signature does not match");
    }
    let request = serde_json::from_slice(&body).map_err(|error| error.to_string());
    match request.and_then(|request| bedrock::unwrap_request(&uri, request)) {
        Ok(request) => model.answer(PlayedDialect::Bedrock, &headers, request),
        Err(problem) => {
            model.log.violation(format!("bedrock: {problem}"));
            refused(StatusCode::BAD_REQUEST, &problem)
        }
    }
}

async fn list_models(headers: HeaderMap) -> Response {
    if PlayedDialect::Anthropic.authorized(&headers) || PlayedDialect::OpenAi.authorized(&headers) {
        let model = json!({"id": "scripted", "type": "model", "object": "model", "display_name": "Scripted"});
        return render_json_answer(
            StatusCode::OK,
            json!({"object": "list", "data": [model], "has_more": false}),
        );
    }
    PlayedDialect::OpenAi.error(StatusCode::UNAUTHORIZED, "authentication_error", "invalid key")
}

impl ScriptedModelState {
    fn handle(&self, dialect: PlayedDialect, headers: &HeaderMap, body: &Bytes) -> Response {
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

    fn answer(&self, dialect: PlayedDialect, headers: &HeaderMap, request: Value) -> Response {
        let request = Arc::new(request);
        match self.play(dialect, headers, &request) {
            Ok(reply) => self.respond(dialect, &reply, &request),
            Err(problem) => {
                self.log.violation(format!("{}: {problem}", dialect.name()));
                dialect.error(StatusCode::BAD_REQUEST, "invalid_request_error", &problem)
            }
        }
    }

    fn play(
        &self,
        dialect: PlayedDialect,
        headers: &HeaderMap,
        request: &Arc<Value>,
    ) -> Result<PlayedReply, String> {
        // The time is taken before the lock, so that waiting does not count.
        let at = Instant::now();
        if !is_json(headers) {
            return Err("content-type: application/json is required".to_owned());
        }
        if dialect == PlayedDialect::Anthropic
            && header_text(headers, "anthropic-version") != ANTHROPIC_VERSION
        {
            return Err(format!("anthropic-version: {ANTHROPIC_VERSION} is required"));
        }
        let mut transcript = dialect.read(request)?;
        // A summary replaces earlier turns in the first message; the script continues after them.
        transcript.turns += script::left_out(&transcript.opening);
        let mut play = self.play.lock();
        let (script, step) = play.step_for(&transcript)?;
        let Script { start, marker, .. } = script;
        script::check_step(&step, &transcript).map_err(|problem| format!("script {marker:?}: {problem}"))?;
        let counts = match dialect {
            PlayedDialect::Anthropic | PlayedDialect::Bedrock => play.cache.marked(request)?,
            PlayedDialect::OpenAi
            | PlayedDialect::Azure
            | PlayedDialect::Responses
            | PlayedDialect::AzureResponses => play.cache.automatic(request),
        };
        let reply = PlayedReply::new(&step, transcript.turns, request, counts);
        let key = (start.clone(), marker.clone());
        *play.counts.entry(key).or_default() += 1;
        let call = ModelCall {
            dialect: dialect.name(),
            start,
            marker,
            step: transcript.turns,
            at,
            request: if play.is_muted {
                Arc::default()
            } else {
                Arc::clone(request)
            },
        };
        play.calls.push(call);
        Ok(reply)
    }

    fn respond(&self, dialect: PlayedDialect, reply: &PlayedReply, request: &Value) -> Response {
        // The call counts as played: a garbled reply is lost after the model has answered.
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
            PlayedDialect::Bedrock => {
                let frames = bedrock::frame_events(&anthropic::reply_events(reply));
                self.stream(&frames, "application/vnd.amazon.eventstream")
            }
            PlayedDialect::Anthropic if streamed => {
                self.stream(anthropic::stream_reply(reply).as_bytes(), EVENT_STREAM)
            }
            PlayedDialect::Anthropic => render_json_answer(StatusCode::OK, anthropic::render_reply(reply)),
            PlayedDialect::OpenAi | PlayedDialect::Azure if streamed => {
                let include_usage = request["stream_options"]["include_usage"] == true;
                self.stream(
                    openai::stream_reply(reply, include_usage).as_bytes(),
                    EVENT_STREAM,
                )
            }
            PlayedDialect::OpenAi | PlayedDialect::Azure => {
                render_json_answer(StatusCode::OK, openai::render_reply(reply))
            }
            PlayedDialect::Responses | PlayedDialect::AzureResponses => {
                let is_encrypted = responses::wants_reasoning(request);
                if streamed {
                    self.stream(
                        responses::stream_reply(reply, is_encrypted).as_bytes(),
                        EVENT_STREAM,
                    )
                } else {
                    render_json_answer(StatusCode::OK, responses::render_reply(reply, is_encrypted))
                }
            }
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
            // Without this pause the server drops what it has not yet written, which includes the head of the
            // answer.
            tokio::time::sleep(BEFORE_CUT).await;
            Err(std::io::Error::other(
                "the stand-in had the order to interrupt the stream",
            ))
        });
        let body = Body::from_stream(futures::stream::iter(chunks.into_iter().map(Ok)).chain(end));
        ([(header::CONTENT_TYPE, content_type)], body).into_response()
    }

    fn garbled(&self) -> bool {
        count_down(&mut self.play.lock().garble)
    }

    fn cut(&self) -> bool {
        count_down(&mut self.play.lock().cut)
    }
}

fn count_down(left: &mut u32) -> bool {
    let any = *left > 0;
    *left = left.saturating_sub(1);
    any
}

impl ScriptPlay {
    fn step_for(&self, transcript: &PlayedTranscript) -> Result<(Script, ScriptStep), String> {
        let script = self.scripts.choose_script(&transcript.opening);
        let script = script.ok_or("there is no script for this conversation")?.clone();
        // A request for a summary is not a step of the script.
        if transcript.latest.contains(script::SUMMARY_ASKED) {
            return Ok((script, script::build_summary_step()));
        }
        let index = transcript.turns - self.repeated(transcript);
        let step = script.steps.get(index).cloned().ok_or_else(|| {
            format!(
                "script {:?} has {} steps, step {index} was asked for",
                script.marker,
                script.steps.len(),
            )
        })?;
        Ok((script, step))
    }

    /// Counts the turns that are to be played again.
    fn repeated(&self, transcript: &PlayedTranscript) -> usize {
        let Some(text) = &self.repeat_after else { return 0 };
        let answers = transcript.answers.iter();
        answers.filter(|answer| answer.contains(text.as_str())).count()
    }
}
