//! The code that a ticket is about, as the executor's index has it.

use std::time::Duration;

use domain::{CodeSeed, DbtProject, WorkspaceInfo};
use proto::executor as wire;

use super::{
    call::{CallError, Caller},
    client::Executors,
};

/// Longer than the executor looks at files when it has no index.
const LIMIT: Duration = Duration::from_secs(10);
/// Of a ticket no more is sent, in bytes; the executor reads no more.
const MAX_QUERY: usize = 64 * 1024;

/// What to look for.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeedQuery {
    /// The text of the ticket.
    pub(crate) text: String,
    /// Folders of the modules that matter; empty: everywhere.
    pub(crate) modules: Vec<String>,
    /// Projects whose models are looked up.
    pub(crate) dbt: Vec<DbtProject>,
    /// Places with their text that are wanted beside, for another ranking.
    pub(crate) candidates: u32,
}

/// A place with its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Candidate {
    /// Which; without a reason.
    pub(crate) seed: CodeSeed,
    /// Names the content of its file.
    pub(crate) blob: String,
    /// Its lines.
    pub(crate) text: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seeds {
    /// The best first. None: no confident match.
    pub(crate) chunks: Vec<CodeSeed>,
    /// What else may fit, the best first, those above among them.
    pub(crate) candidates: Vec<Candidate>,
    /// What else there is to say, such as why the index was not used; may be empty.
    pub(crate) note: String,
}

impl Executors {
    /// Asks for the code that a text is about. Never waits for the index to be built.
    ///
    /// # Errors
    /// [`CallError`]. An executor of an earlier release refuses the call.
    pub(crate) async fn seed_context(
        &self,
        caller: &Caller,
        info: &WorkspaceInfo,
        query: SeedQuery,
    ) -> Result<Seeds, CallError> {
        let message = wire::SeedContextRequest {
            workspace_id: info.id.clone(),
            fence: Some(caller.fence.into()),
            query: first(query.text),
            modules: query.modules,
            candidates: query.candidates,
            dbt: query.dbt.into_iter().map(project).collect(),
        };
        let request = self.request(caller, Some(&info.id), LIMIT, message)?;
        let mut client = self.client(&info.executor)?;
        let answer = client.seed_context(request).await?;
        Ok(seeds(answer.into_inner()))
    }
}

fn project(project: DbtProject) -> wire::DbtProject {
    wire::DbtProject {
        path: project.path,
        manifest_path: project.manifest_path,
    }
}

fn first(mut text: String) -> String {
    let end = (0..=MAX_QUERY.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

fn seeds(answer: wire::SeedContextResponse) -> Seeds {
    Seeds {
        chunks: answer.chunks.into_iter().map(seed).collect(),
        candidates: answer.candidates.into_iter().map(candidate).collect(),
        note: answer.note,
    }
}

fn candidate(mut chunk: wire::SeedChunk) -> Candidate {
    Candidate {
        blob: std::mem::take(&mut chunk.blob),
        text: std::mem::take(&mut chunk.text),
        seed: seed(chunk),
    }
}

fn seed(chunk: wire::SeedChunk) -> CodeSeed {
    CodeSeed {
        lines: (chunk.start_line > 0).then_some((chunk.start_line, chunk.end_line)),
        path: chunk.path,
        symbol: chunk.symbol,
        // Between 0 and 1 on the wire; a number out of bounds is cut.
        score: (chunk.score.clamp(0.0, 1.0) * 100.0).round() as u32,
        reason: chunk.reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_keeps_what_was_found_and_a_whole_file_has_no_lines() {
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
        let seeds = seeds(answer);
        assert_eq!(seeds.note, "Some words.");
        let lines: Vec<_> = seeds.chunks.iter().map(|seed| seed.lines).collect();
        assert_eq!(lines, [Some((3, 9)), None]);
        assert_eq!(seeds.candidates[0].seed.lines, Some((1, 2)));
        assert_eq!(
            (seeds.chunks[0].score, seeds.chunks[0].symbol.as_str()),
            (50, "total")
        );
    }

    #[test]
    fn a_long_text_is_cut_at_the_end_of_a_character() {
        let cut = first("é".repeat(MAX_QUERY));
        assert!(cut.len() <= MAX_QUERY && cut.chars().all(|c| c == 'é'));
    }
}
