//! `SeedContext`: selects the code that a ticket is about, before the first turn of the model.

use std::sync::Arc;

use domain::{cause::format_error_chain, text::truncate_bytes};
use proto::executor::{SeedChunk, SeedContextRequest, SeedContextResponse};
use retrieval::{FoundChunk, MAX_CHUNKS, ModuleFolders, SearchQuery, SearchRequest};
use tokio_util::sync::CancellationToken;
use tonic::Status as GrpcStatus;

use super::{
    dbt,
    fallback::{LiteralMatch, search_literally},
    index_registry::{CommitIndex, IndexStatus},
};
use crate::workspace::Workspace;

/// Limits of the chunks for a second ranking: their number, and the bytes of each.
const MAX_CANDIDATES: usize = 200;
const MAX_TEXT: usize = 4 * 1024;
const MAX_MODULES: usize = 200;

/// Answers from the index if it is ready, and otherwise from paths and literal text.
///
/// # Errors
/// Returns an error when the blocking task panicked.
pub(crate) async fn seed_context(
    index: Option<Arc<CommitIndex>>,
    workspace: Arc<Workspace>,
    cancel: CancellationToken,
    request: SeedContextRequest,
) -> Result<SeedContextResponse, GrpcStatus> {
    let answer = move || {
        let models = dbt::find_named_models(&workspace, &request.dbt, &request.query);
        with_models(
            answer_request(index.as_deref(), &workspace, &cancel, request),
            models,
        )
    };
    let answered = tokio::task::spawn_blocking(answer).await;
    answered.map_err(|error| GrpcStatus::internal(error.to_string()))
}

/// Puts dbt models before other chunks, because the text names them literally.
fn with_models(mut answer: SeedContextResponse, models: Vec<SeedChunk>) -> SeedContextResponse {
    if models.is_empty() {
        return answer;
    }
    if answer.chunks.is_empty() {
        answer.note.clear();
    }
    let is_new = |chunk: &SeedChunk| models.iter().all(|model| model.path != chunk.path);
    // A model that the index found too would otherwise appear twice.
    answer.chunks.retain(is_new);
    answer.chunks.truncate(MAX_CHUNKS.saturating_sub(models.len()));
    answer.chunks.splice(0..0, models);
    answer
}

fn answer_request(
    index: Option<&CommitIndex>,
    workspace: &Workspace,
    cancel: &CancellationToken,
    request: SeedContextRequest,
) -> SeedContextResponse {
    let query = SearchQuery::from_text(&request.query);
    let modules = ModuleFolders::new(request.modules.into_iter().take(MAX_MODULES));
    let candidates = (request.candidates as usize).min(MAX_CANDIDATES);
    if let Some(answer) = index.and_then(|index| search_index(index, &query, &modules, candidates)) {
        return answer;
    }
    let status = index.map_or(
        IndexStatus::Failed("indexing is switched off"),
        CommitIndex::status,
    );
    let is_wanted = |path: &str| modules.hold(path);
    let found = search_literally(
        workspace,
        &query,
        &is_wanted,
        &|| cancel.is_cancelled(),
        MAX_CHUNKS,
    );
    SeedContextResponse {
        ready: false,
        percent: if let IndexStatus::Building(percent) = status {
            percent
        } else {
            0
        },
        chunks: found.into_iter().map(literal_chunk).collect(),
        candidates: Vec::new(),
        note: not_ready(status),
    }
}

/// Returns the note for a search that did not use the index.
fn not_ready(status: IndexStatus) -> String {
    let only = "Only paths and literal text were searched.";
    match status {
        IndexStatus::Ready => format!("The index could not be read. {only}"),
        IndexStatus::Building(percent) => format!("The index is not ready ({percent} %). {only}"),
        IndexStatus::Failed(why) => format!("There is no index: {why}. {only}"),
    }
}

fn search_index(
    index: &CommitIndex,
    query: &SearchQuery,
    modules: &ModuleFolders,
    candidates: usize,
) -> Option<SeedContextResponse> {
    let mut request = SearchRequest::new(query, modules);
    request.candidates = candidates;
    match index.search(&request)? {
        Ok(answer) => Some(SeedContextResponse {
            ready: true,
            percent: 100,
            note: if answer.found.is_empty() {
                "No confident match.".to_owned()
            } else {
                String::new()
            },
            chunks: answer
                .found
                .into_iter()
                .map(|found| seed_chunk(found, ""))
                .collect(),
            candidates: answer
                .candidates
                .into_iter()
                .map(|candidate| seed_chunk(candidate.found, &candidate.text))
                .collect(),
        }),
        Err(error) => {
            tracing::warn!(error = %format_error_chain(&error), "an index could not be searched");
            None
        }
    }
}

fn seed_chunk(found: FoundChunk, text: &str) -> SeedChunk {
    SeedChunk {
        path: found.path,
        start_line: found.start,
        end_line: found.end,
        symbol: found.symbol,
        score: found.score,
        reason: found.reason,
        test: found.is_test,
        blob: found.blob.to_string(),
        text: truncate_bytes(text, MAX_TEXT).to_owned(),
    }
}

fn literal_chunk(found: LiteralMatch) -> SeedChunk {
    SeedChunk {
        test: retrieval::is_test(&found.path),
        path: found.path,
        start_line: found.line,
        end_line: found.line,
        score: found.score,
        reason: found.reason,
        ..SeedChunk::default()
    }
}
