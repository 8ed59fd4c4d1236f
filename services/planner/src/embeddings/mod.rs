//! Ranking of code places by meaning with an optional embeddings server. Its limit and its failures never
//! delay or fail a run: the order of the search applies instead.

mod ranking;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use anyhow::Context as _;
use domain::{CodeSeed, RepositoryRules, cause::format_error_chain};
use futures::{StreamExt as _, future::try_join_all};
use lru::LruCache;
use parking_lot::Mutex;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde::{Deserialize, Serialize};

use crate::config::EmbeddingSettings;
use crate::executors::{CodeSeeds, SeedCandidate};
use crate::model::{find_secret, secret_header};
use crate::telemetry;

// Vectors in memory. With 1,536 numbers each they take 50 MB.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
// Characters of the ticket's text in a request: servers refuse texts that are too long for their model.
const QUERY_CHARS: usize = 8_000;
const AT_ONCE: usize = 4;
// Maximum size of a response in bytes: 2,048 vectors of 3,072 numbers with 10 digits.
const RESPONSE_BYTES: usize = 64 << 20;

type EmbeddingVector = Arc<[f32]>;

/// Content and lines of a chunk.
type ChunkKey = (String, Option<(u32, u32)>);

/// Failure of the embeddings server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EmbeddingError {
    /// The connection failed or broke.
    #[error("the server for embeddings cannot be reached")]
    Http(#[from] reqwest::Error),
    /// The server returned an error status.
    #[error("the server for embeddings answered {0}")]
    Status(u16),
    /// The response is not the expected JSON.
    #[error("the server for embeddings gave an answer that cannot be read: {0}")]
    Unreadable(&'static str),
    /// The request exceeded `timeout_ms`.
    #[error("the server for embeddings did not answer within {0} ms")]
    Late(u64),
}

/// Client of an embeddings server, with a cache of vectors.
pub(crate) struct EmbeddingClient {
    http: reqwest::Client,
    url: String,
    settings: EmbeddingSettings,
    known: Mutex<LruCache<ChunkKey, EmbeddingVector>>,
}

impl EmbeddingClient {
    /// Creates a client without sending a request.
    ///
    /// # Errors
    /// The key is not a valid header value, or TLS setup fails.
    pub(crate) fn new(settings: &EmbeddingSettings) -> anyhow::Result<Self> {
        // Fails if another service of the same process installed a provider first, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .default_headers(build_headers(settings)?)
            .connect_timeout(Duration::from_millis(settings.timeout_ms))
            .redirect(reqwest::redirect::Policy::none());
        let http = webproxy::configure_client(http)?.build()?;
        let base = settings.base_url.trim_end_matches('/');
        let version = if base.ends_with("/v1") { "" } else { "/v1" };
        Ok(Self {
            http,
            url: format!("{base}{version}/embeddings"),
            settings: settings.clone(),
            known: Mutex::new(LruCache::new(KEPT)),
        })
    }

    /// Ranks the places that the search found by their similarity to a text. Returns the order of the
    /// search if the server fails.
    pub(crate) async fn rank(&self, text: &str, found: CodeSeeds, rules: &RepositoryRules) -> Vec<CodeSeed> {
        if found.candidates.is_empty() {
            return found.chunks;
        }
        let limit = Duration::from_millis(self.settings.timeout_ms);
        let compared = tokio::time::timeout(limit, self.vectors(text, &found.candidates)).await;
        let compared = compared.unwrap_or(Err(EmbeddingError::Late(self.settings.timeout_ms)));
        telemetry::count_ranking(compared.is_ok());
        match compared {
            Ok((query, vectors)) => ranking::rank_places(&query, &found, &vectors, rules),
            Err(trouble) => {
                tracing::warn!(error = %format_error_chain(&trouble), "places of the code are not ranked by meaning");
                found.chunks
            }
        }
    }

    /// Returns the vector of a text and one for each candidate.
    async fn vectors(
        &self,
        text: &str,
        candidates: &[SeedCandidate],
    ) -> Result<(EmbeddingVector, Vec<EmbeddingVector>), EmbeddingError> {
        let query: String = text.chars().take(QUERY_CHARS).collect();
        let new: Vec<&SeedCandidate> = {
            let mut known = self.known.lock();
            candidates
                .iter()
                .filter(|one| known.get(&chunk_key(one)).is_none())
                .collect()
        };
        let mut texts = vec![query];
        texts.extend(new.iter().map(|one| format!("{}\n{}", one.seed.path, one.text)));
        let batches: Vec<&[String]> = texts.chunks(self.settings.batch).collect();
        let mut vectors = Vec::new();
        for some in batches.chunks(AT_ONCE) {
            let asked: Vec<_> = some.iter().map(|batch| self.embed(batch)).collect();
            vectors.extend(try_join_all(asked).await?.into_iter().flatten());
        }
        let mut vectors = vectors.into_iter();
        let query = vectors.next().ok_or(EmbeddingError::Unreadable("no vector"))?;
        let mut known = self.known.lock();
        for (one, vector) in new.into_iter().zip(vectors) {
            known.put(chunk_key(one), vector);
        }
        // A cache entry may be evicted meanwhile or have the length of another model; both count as
        // unusable.
        let all = candidates.iter().map(|one| known.get(&chunk_key(one)).cloned());
        let all: Option<Vec<EmbeddingVector>> = all.collect();
        let all = all.filter(|all| all.iter().all(|vector| vector.len() == query.len()));
        Ok((
            query,
            all.ok_or(EmbeddingError::Unreadable("vectors of different lengths"))?,
        ))
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<EmbeddingVector>, EmbeddingError> {
        let body = EmbeddingRequest {
            model: &self.settings.name,
            input: texts,
            encoding_format: "float",
            dimensions: self.settings.dimensions,
        };
        let response = self.http.post(&self.url).json(&body).send().await?;
        if !response.status().is_success() {
            return Err(EmbeddingError::Status(response.status().as_u16()));
        }
        read_response(response, texts.len()).await
    }
}

/// Returns the headers of every request. An empty key counts as absent, as `model.api_key` does.
fn build_headers(settings: &EmbeddingSettings) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(key) = find_secret(settings.api_key.as_ref()) {
        let value = secret_header("Bearer ", key).context("failed to use model.embeddings.api_key")?;
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

fn chunk_key(candidate: &SeedCandidate) -> ChunkKey {
    (candidate.blob.clone(), candidate.seed.lines)
}

// Wire format of `/v1/embeddings`, as `OpenAI` describes it and compatible servers implement it.

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingEntry>,
}

#[derive(Deserialize)]
struct EmbeddingEntry {
    index: usize,
    embedding: Vec<f32>,
}

/// Reads a response. The vectors have the order of the texts.
async fn read_response(
    response: reqwest::Response,
    texts: usize,
) -> Result<Vec<EmbeddingVector>, EmbeddingError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk?);
        if body.len() > RESPONSE_BYTES {
            return Err(EmbeddingError::Unreadable("it is too large"));
        }
    }
    let answer =
        serde_json::from_slice(&body).map_err(|_| EmbeddingError::Unreadable("it has another form"))?;
    order_vectors(answer, texts)
}

fn order_vectors(answer: EmbeddingResponse, texts: usize) -> Result<Vec<EmbeddingVector>, EmbeddingError> {
    let mut data = answer.data;
    data.sort_by_key(|one| one.index);
    let is_whole = data.len() == texts && data.iter().enumerate().all(|(at, one)| one.index == at);
    if !is_whole {
        return Err(EmbeddingError::Unreadable("not one vector for each text"));
    }
    let is_number = |vector: &[f32]| !vector.is_empty() && vector.iter().all(|number| number.is_finite());
    if !data.iter().all(|one| is_number(&one.embedding)) {
        return Err(EmbeddingError::Unreadable("a vector without numbers"));
    }
    Ok(data.into_iter().map(|one| one.embedding.into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some builds of the parser refuse a number beyond the range of `f32`; [`order_vectors`] refuses it in the
    /// others.
    fn count_vectors(json: &str, texts: usize) -> Result<usize, EmbeddingError> {
        let answer =
            serde_json::from_str(json).map_err(|_| EmbeddingError::Unreadable("it has another form"))?;
        order_vectors(answer, texts).map(|all| all.len())
    }

    #[test]
    fn empty_api_key_sends_no_authorization() {
        for (key, wanted) in [(None, None), (Some(""), None), (Some("k"), Some("Bearer k"))] {
            let settings = serde_json::json!({ "name": "m", "api_key": key });
            let settings: EmbeddingSettings = serde_json::from_value(settings).unwrap();
            let headers = build_headers(&settings).unwrap();
            let sent = headers
                .get(AUTHORIZATION)
                .map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(sent.as_deref(), wanted, "{key:?}");
        }
    }

    #[test]
    fn response_needs_one_vector_per_text() {
        let good = r#"{"data": [{"index": 1, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}]}"#;
        assert_eq!(count_vectors(good, 2).unwrap(), 2);
        for (json, texts) in [
            (good, 3),
            (r#"{"data": [{"index": 1, "embedding": [1.0]}]}"#, 1),
            (r#"{"data": [{"index": 0, "embedding": []}]}"#, 1),
            (r#"{"data": [{"index": 0, "embedding": [1e40]}]}"#, 1),
        ] {
            assert!(count_vectors(json, texts).is_err(), "{json}");
        }
    }
}
