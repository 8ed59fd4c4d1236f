//! Fusion of ranked lists.

use std::{cmp::Ordering, collections::HashMap};

use crate::ranking::ChunkHit;

// Usual constant of reciprocal rank fusion: it limits the advantage of the first ranks.
const K: f32 = 60.0;

/// Reason why a chunk is on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MatchReason {
    Named,
    Defines(String),
    Quotes(String),
    Near,
}

/// Chunk with its score and reasons.
pub(crate) struct ScoredChunk {
    pub(crate) hit: ChunkHit,
    pub(crate) score: f32,
    pub(crate) why: Vec<MatchReason>,
}

/// Reciprocal rank fusion of several lists.
#[derive(Default)]
pub(crate) struct RankFusion {
    chunks: HashMap<(u32, u32), ScoredChunk>,
    /// Score of a chunk that is first on every list.
    most: f32,
}

impl RankFusion {
    pub(crate) fn add(&mut self, weight: f32, hits: Vec<ChunkHit>) {
        self.add_list(weight, hits.into_iter().map(|hit| (hit, None)).collect());
    }

    pub(crate) fn add_for(&mut self, weight: f32, hits: Vec<(ChunkHit, MatchReason)>) {
        self.add_list(
            weight,
            hits.into_iter().map(|(hit, why)| (hit, Some(why))).collect(),
        );
    }

    pub(crate) fn add_list(&mut self, weight: f32, hits: Vec<(ChunkHit, Option<MatchReason>)>) {
        // An empty list does not count for the best possible score, so a query without names can reach 1
        // as well.
        if hits.is_empty() {
            return;
        }
        self.most += weight / (K + 1.0);
        let mut rank = K;
        for (hit, why) in hits {
            rank += 1.0;
            let empty = || ScoredChunk {
                hit,
                score: 0.0,
                why: Vec::new(),
            };
            let scored = self.chunks.entry((hit.place, hit.start)).or_insert_with(empty);
            scored.score += weight / rank;
            scored.why.extend(why.filter(|why| !scored.why.contains(why)));
        }
    }

    pub(crate) fn best_of_files(&self) -> HashMap<u32, ChunkHit> {
        let mut best: HashMap<u32, &ScoredChunk> = HashMap::new();
        for scored in self.chunks.values() {
            let known = best.entry(scored.hit.place).or_insert(scored);
            if compare_scores(scored, known) == Ordering::Less {
                *known = scored;
            }
        }
        best.into_iter()
            .map(|(place, scored)| (place, scored.hit))
            .collect()
    }

    /// Files with scores of the chunks on lists of certain hits; without any, those of the best chunks.
    pub(crate) fn leading(&self, max: usize) -> Vec<(u32, f32)> {
        let is_certain = |scored: &&ScoredChunk| !scored.why.is_empty();
        let mut chunks: Vec<&ScoredChunk> = self.chunks.values().filter(is_certain).collect();
        if chunks.is_empty() {
            chunks.extend(self.chunks.values());
        }
        chunks.sort_by(|one, other| compare_scores(one, other));
        chunks
            .into_iter()
            .take(max)
            .map(|scored| (scored.hit.place, scored.score))
            .collect()
    }

    pub(crate) fn done(self, weight: impl Fn(&ScoredChunk) -> f32) -> Vec<ScoredChunk> {
        let most = self.most.max(f32::MIN_POSITIVE);
        let weighted = self.chunks.into_values().map(|mut scored| {
            scored.score = scored.score * weight(&scored) / most;
            scored
        });
        let mut chunks: Vec<ScoredChunk> = weighted.collect();
        chunks.sort_by(compare_scores);
        chunks
    }
}

fn compare_scores(one: &ScoredChunk, other: &ScoredChunk) -> Ordering {
    // The order of a `HashMap` is random. Equal scores are ordered by place, so that a repeated search
    // has the same result.
    let place = |scored: &ScoredChunk| (scored.hit.place, scored.hit.start);
    other
        .score
        .total_cmp(&one.score)
        .then_with(|| place(one).cmp(&place(other)))
}
