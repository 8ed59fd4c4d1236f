//! Wire format of `/v1/embeddings`, as `OpenAI` describes it and compatible servers implement it.

use futures::StreamExt as _;
use serde::{Deserialize, Serialize};

use super::{EmbeddingError, EmbeddingVector};

// Maximum size of a response in bytes: 2,048 vectors of 3,072 numbers with 10 digits.
const MOST: usize = 64 << 20;

#[derive(Serialize)]
pub(super) struct EmbeddingRequest<'a> {
    pub(super) model: &'a str,
    pub(super) input: &'a [String],
    pub(super) encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dimensions: Option<u32>,
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
pub(super) async fn read_response(
    response: reqwest::Response,
    texts: usize,
) -> Result<Vec<EmbeddingVector>, EmbeddingError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk?);
        if body.len() > MOST {
            return Err(EmbeddingError::Unreadable("it is too large"));
        }
    }
    let answer = serde_json::from_slice(&body).map_err(|_| EmbeddingError::Unreadable("no such JSON"))?;
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

    /// Some builds of the parser refuse a number beyond the range of `f32`; `ordered` refuses it in the
    /// others.
    fn count_vectors(json: &str, texts: usize) -> Result<usize, EmbeddingError> {
        let answer = serde_json::from_str(json).map_err(|_| EmbeddingError::Unreadable("no such JSON"))?;
        order_vectors(answer, texts).map(|all| all.len())
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
