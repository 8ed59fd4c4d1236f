//! Search for code that matches a ticket in the executor's index.

use std::time::Duration;

use domain::{CodeSeed, DbtProject, text::truncate_bytes};
use proto::executor as wire;

use super::{connection::CallError, workspaces::WorkspaceCalls};

// Longer than the executor's fallback search without an index.
const LIMIT: Duration = Duration::from_secs(10);
// Bytes of the ticket's text in a query; the executor reads no more.
const MAX_QUERY: usize = 64 * 1024;

/// Query for code of a ticket.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeedQuery {
    /// Text of the ticket.
    pub(crate) text: String,
    /// Folders of the relevant modules; empty: all.
    pub(crate) modules: Vec<String>,
    /// dbt projects whose models the executor searches.
    pub(crate) dbt: Vec<DbtProject>,
    /// Number of additional candidates with their text, for a second ranking.
    pub(crate) candidates: u32,
}

/// Code place with its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SeedCandidate {
    /// The place, without a reason.
    pub(crate) seed: CodeSeed,
    /// Id of the file's content.
    pub(crate) blob: String,
    /// Lines of the place.
    pub(crate) text: String,
}

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CodeSeeds {
    /// Confident matches, best first; may be empty.
    pub(crate) chunks: Vec<CodeSeed>,
    /// All candidates, best first; includes the confident matches.
    pub(crate) candidates: Vec<SeedCandidate>,
    /// Additional information, such as the reason that the index was not used; may be empty.
    pub(crate) note: String,
}

impl WorkspaceCalls<'_> {
    /// Searches for code that matches a text. It never waits until an index is built.
    ///
    /// # Errors
    /// [`CallError`]; an executor of an earlier release refuses the call.
    pub(crate) async fn seed_context(self, query: SeedQuery) -> Result<CodeSeeds, CallError> {
        let message = wire::SeedContextRequest {
            workspace_id: self.id.to_owned(),
            fence: Some(self.caller.fence.into()),
            query: truncate_bytes(&query.text, MAX_QUERY).to_owned(),
            modules: query.modules,
            candidates: query.candidates,
            dbt: query.dbt.into_iter().map(convert_project).collect(),
        };
        let (mut client, request) = self.prepare(LIMIT, message)?;
        let answer = client.seed_context(request).await?;
        Ok(convert_seeds(answer.into_inner()))
    }
}

fn convert_project(project: DbtProject) -> wire::DbtProject {
    wire::DbtProject {
        path: project.path,
        manifest_path: project.manifest_path,
    }
}

fn convert_seeds(answer: wire::SeedContextResponse) -> CodeSeeds {
    CodeSeeds {
        chunks: answer.chunks.into_iter().map(convert_chunk).collect(),
        candidates: answer.candidates.into_iter().map(convert_candidate).collect(),
        note: answer.note,
    }
}

fn convert_candidate(mut chunk: wire::SeedChunk) -> SeedCandidate {
    SeedCandidate {
        blob: std::mem::take(&mut chunk.blob),
        text: std::mem::take(&mut chunk.text),
        seed: convert_chunk(chunk),
    }
}

fn convert_chunk(chunk: wire::SeedChunk) -> CodeSeed {
    CodeSeed {
        // Line 0 means a whole file.
        lines: (chunk.start_line > 0).then_some((chunk.start_line, chunk.end_line)),
        path: chunk.path,
        symbol: chunk.symbol,
        // Executors are less trusted: a score out of bounds is clamped.
        score: (chunk.score.clamp(0.0, 1.0) * 100.0).round() as u32,
        reason: chunk.reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_whole_files_have_no_lines() {
        let chunk = |start, end| wire::SeedChunk {
            path: "shop/cart.py".to_owned(),
            start_line: start,
            end_line: end,
            symbol: "total".to_owned(),
            score: 0.5,
            reason: "defines total".to_owned(),
            test: false,
            blob: "ab".repeat(20),
            text: String::new(),
        };
        let answer = wire::SeedContextResponse {
            ready: true,
            percent: 100,
            chunks: vec![chunk(3, 9), chunk(0, 0)],
            candidates: vec![chunk(1, 2)],
            note: "Some words.".to_owned(),
        };
        let seeds = convert_seeds(answer);
        assert_eq!(seeds.note, "Some words.");
        let lines: Vec<_> = seeds.chunks.iter().map(|seed| seed.lines).collect();
        assert_eq!(lines, [Some((3, 9)), None]);
        assert_eq!(seeds.candidates[0].seed.lines, Some((1, 2)));
        assert_eq!(
            (seeds.chunks[0].score, seeds.chunks[0].symbol.as_str()),
            (50, "total")
        );
    }
}
