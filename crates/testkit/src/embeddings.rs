//! Stand-in of the `OpenAI` embeddings API. A vector counts the words of each concept; requests beyond
//! `OpenAI`'s documented limits are refused.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fault::ServiceFault;
use crate::http::{HttpServer, RequestLog, header_text, render_json_answer};
use crate::model::MODEL_API_KEY;

// Maximum number of texts in one request, as `OpenAI` documents it.
const MOST_INPUTS: usize = 2_048;
// Maximum length of a text in bytes. `OpenAI` limits texts to 8,192 tokens; the stand-in assumes four bytes
// per token.
const LONGEST: usize = 32 * 1024;

/// Server of the embeddings API. Dropping it stops the server.
pub struct FakeEmbeddings {
    server: HttpServer,
    desk: Arc<EmbeddingsState>,
}

struct EmbeddingsState {
    log: Arc<RequestLog>,
    concepts: Vec<Vec<String>>,
    inputs: Mutex<Vec<Vec<String>>>,
}

#[derive(Deserialize)]
// Unknown fields are refused, so that a typo of our client fails a test.
#[serde(deny_unknown_fields)]
struct EmbeddingsRequest {
    model: String,
    input: Vec<String>,
    #[serde(default)]
    encoding_format: Option<String>,
    #[serde(default)]
    dimensions: Option<usize>,
}

impl FakeEmbeddings {
    /// Starts on a free loopback port. Each entry of `concepts` lists words of the same meaning.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(concepts: &[&[&str]]) -> anyhow::Result<Self> {
        let log = Arc::new(RequestLog::default());
        let owned = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let desk = Arc::new(EmbeddingsState {
            log: Arc::clone(&log),
            concepts: concepts.iter().map(owned).collect(),
            inputs: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/embeddings", post(embed_texts))
            .with_state(Arc::clone(&desk));
        let server = HttpServer::start(log, |_| Ok(router)).await?;
        Ok(Self { server, desk })
    }

    /// Base URL; requests go to `<url>/v1/embeddings`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Texts of each request, in order of arrival.
    #[must_use]
    pub fn inputs(&self) -> Vec<Vec<String>> {
        self.desk.inputs.lock().clone()
    }

    /// Answers the next matching requests with an error.
    pub fn fail_next(&self, fault: ServiceFault) {
        self.desk.log.fail_next(fault);
    }

    /// Requests that the real service would refuse, one description each.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.desk.log.violations()
    }

    /// Stops the server after the requests under way.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

impl EmbeddingsState {
    /// Counts the occurrences of each concept. The constant first component makes any two texts slightly
    /// similar, as real embeddings are.
    fn vector(&self, text: &str) -> Vec<f32> {
        let text = text.to_lowercase();
        let count = |words: &Vec<String>| -> f32 {
            let hits: usize = words.iter().map(|word| text.matches(word.as_str()).count()).sum();
            u8::try_from(hits).map_or(255.0, f32::from)
        };
        std::iter::once(1.0)
            .chain(self.concepts.iter().map(count))
            .collect()
    }

    fn refused(&self, problem: &str) -> Response {
        self.log.violation(format!("embeddings: {problem}"));
        let error = json!({"message": problem, "type": "invalid_request_error", "param": null, "code": null});
        render_json_answer(StatusCode::BAD_REQUEST, json!({"error": error}))
    }
}

async fn embed_texts(State(desk): State<Arc<EmbeddingsState>>, headers: HeaderMap, body: Bytes) -> Response {
    if header_text(&headers, "authorization") != format!("Bearer {MODEL_API_KEY}") {
        let error = json!({"message": "Incorrect API key provided", "type": "invalid_request_error"});
        return render_json_answer(StatusCode::UNAUTHORIZED, json!({"error": error}));
    }
    let request: EmbeddingsRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return desk.refused(&error.to_string()),
    };
    let is_text = |text: &String| !text.is_empty() && text.len() <= LONGEST;
    if request.input.is_empty() || request.input.len() > MOST_INPUTS || !request.input.iter().all(is_text) {
        return desk.refused("'$.input' is invalid");
    }
    if request
        .encoding_format
        .as_deref()
        .is_some_and(|format| format != "float")
        || request.dimensions.is_some()
    {
        return desk.refused("this model does not support the parameter");
    }
    let vectors =
        request.input.iter().enumerate().map(
            |(index, text)| json!({"object": "embedding", "index": index, "embedding": desk.vector(text)}),
        );
    let data: Vec<Value> = vectors.collect();
    // An estimate of four bytes per token, like `LONGEST`.
    let tokens = request.input.iter().map(|text| text.len() / 4 + 1).sum::<usize>();
    desk.inputs.lock().push(request.input);
    render_json_answer(
        StatusCode::OK,
        json!({
            "object": "list", "data": data, "model": request.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }),
    )
}
