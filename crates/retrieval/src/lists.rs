//! Ranked lists of one search.

use std::collections::{HashMap, HashSet};

use crate::{
    error::Error,
    fusion::{MatchReason, RankFusion, ScoredChunk},
    paths,
    ranking::{ChunkHit, ChunkRanking, QueryWord},
    request::{ChunkKind, ReadContent, SearchRequest},
    skip::is_prose,
    text::quoted_in,
};

/// Maximum number of hits of one list.
const MAX_LISTED: usize = 200;
/// Maximum number of definitions of one name, and of chunks that are searched for one message.
const MAX_NAMED: usize = 10;
const MAX_QUOTING: usize = 20;
// Tests and prose count less than code.
const TEST_WEIGHT: f32 = 0.5;
const DOCS_WEIGHT: f32 = 0.7;

/// Builder of the ranked lists.
pub(crate) struct RankedLists<'a> {
    pub(crate) ranking: &'a ChunkRanking<'a>,
    pub(crate) request: &'a SearchRequest<'a>,
    pub(crate) words: &'a [QueryWord],
    pub(crate) read: ReadContent<'a>,
}

impl RankedLists<'_> {
    /// Chunks of all lists, best first, with scores between 0 and 1.
    pub(crate) fn fused(&self) -> Result<Vec<ScoredChunk>, Error> {
        let mut fusion = RankFusion::default();
        let fields = self.ranking.fields;
        let query = self.request.query;
        let named = self.ranking.by_names(&query.identifiers, MAX_NAMED)?;
        match self.request.kind {
            ChunkKind::Definition => {
                fusion.add(
                    1.0,
                    self.ranking.by_field(fields.symbols, self.words, MAX_LISTED)?,
                );
            }
            ChunkKind::Usage => {
                let defined: HashSet<_> = named.iter().map(|(_, hit)| hit.address).collect();
                let using = self.ranking.by_field(fields.body, self.words, MAX_LISTED)?;
                fusion.add(
                    1.0,
                    using
                        .into_iter()
                        .filter(|hit| !defined.contains(&hit.address))
                        .collect(),
                );
                // The other lists would add the definitions again.
                return Ok(fusion.done(|scored| self.weight(scored)));
            }
            ChunkKind::Any | ChunkKind::Test | ChunkKind::Docs => {
                fusion.add(1.0, self.ranking.by_words(self.words, MAX_LISTED)?);
                fusion.add(
                    0.7,
                    // All chunks of a file have the same path, so one file would fill the list.
                    first_of_each(self.ranking.by_field(fields.path, self.words, MAX_LISTED)?),
                );
                self.add_pinned(&mut fusion)?;
                self.add_messages(&mut fusion)?;
            }
        }
        fusion.add_for(
            1.5,
            named
                .into_iter()
                .map(|(name, hit)| (hit, MatchReason::Defines(name)))
                .collect(),
        );
        self.add_near(&mut fusion);
        Ok(fusion.done(|scored| self.weight(scored)))
    }

    fn weight(&self, scored: &ScoredChunk) -> f32 {
        let Some(file) = self.ranking.tree.file(scored.hit.place) else {
            return 0.0;
        };
        // A test or page that the text names is wanted, so its weight is not reduced.
        let is_named = scored.why.contains(&MatchReason::Named);
        if self.request.kind != ChunkKind::Any || is_named {
            1.0
        } else if file.is_test {
            TEST_WEIGHT
        } else if is_prose(&file.path) {
            DOCS_WEIGHT
        } else {
            1.0
        }
    }

    /// Adds chunks of files that the text names, at the named line.
    fn add_pinned(&self, fusion: &mut RankFusion) -> Result<(), Error> {
        let mut hits = Vec::new();
        let best: HashMap<u32, ChunkHit> = fusion.best_of_files();
        for mention in &self.request.query.paths {
            for place in paths::resolve_mention(&mention.path, |name| self.ranking.tree.of_name(name)) {
                let chunks = self.ranking.of_file(place)?;
                let at_line = mention
                    .line
                    .and_then(|line| chunks.iter().find(|hit| (hit.start..=hit.end).contains(&line)));
                let best = best.get(&place).filter(|_| at_line.is_none());
                hits.extend(
                    at_line
                        .or(best)
                        .or(chunks.first())
                        .map(|hit| (*hit, MatchReason::Named)),
                );
            }
        }
        // The surer the evidence, the higher the weight: a named path, then a quoted message, a defined
        // name, words, and closeness.
        fusion.add_for(4.0, hits);
        Ok(())
    }

    /// Adds chunks that contain a message literally.
    fn add_messages(&self, fusion: &mut RankFusion) -> Result<(), Error> {
        let mut hits = Vec::new();
        for message in &self.request.query.messages {
            for hit in self.ranking.with_all(message, MAX_QUOTING)? {
                let text = self.ranking.text(self.read, &hit);
                if text.is_some_and(|text| quoted_in(&text, message)) {
                    hits.push((hit, MatchReason::Quotes(message.clone())));
                }
            }
        }
        fusion.add_for(2.0, hits);
        Ok(())
    }

    /// Adds chunks of files that are close to the best hits in the graph of names.
    fn add_near(&self, fusion: &mut RankFusion) {
        const SEEDS: usize = 8;
        let Some(graph) = self.ranking.tree.graph.get() else {
            return;
        };
        let seeds: HashMap<u32, f32> = fusion.leading(SEEDS).into_iter().collect();
        let near = graph.near(&seeds);
        // Only files that a list already has: closeness changes their order and adds none.
        let best = fusion.best_of_files();
        let mut files: Vec<(f32, ChunkHit)> = best
            .into_iter()
            .filter_map(|(place, hit)| Some((*near.get(&place)?, hit)))
            .collect();
        files.sort_by(|one, other| {
            other
                .0
                .total_cmp(&one.0)
                .then_with(|| one.1.place.cmp(&other.1.place))
        });
        let why = |hit: ChunkHit| {
            (
                hit,
                if seeds.contains_key(&hit.place) {
                    None
                } else {
                    Some(MatchReason::Near)
                },
            )
        };
        let hits = files.into_iter().map(|(_, hit)| why(hit));
        fusion.add_list(0.5, hits.collect());
    }
}

/// First hit of each file.
fn first_of_each(hits: Vec<ChunkHit>) -> Vec<ChunkHit> {
    let mut seen = HashSet::new();
    hits.into_iter().filter(|hit| seen.insert(hit.place)).collect()
}
