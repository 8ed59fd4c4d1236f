//! Selection of the best chunks by their texts, with reasons.

use std::collections::HashSet;

use tantivy::{TantivyDocument, schema::Value};

use crate::{
    caps::ChunkCaps,
    error::Error,
    file::BlobId,
    fusion::{MatchReason, ScoredChunk},
    ranking::{ChunkRanking, QueryWord},
    request::{FoundChunk, RankCandidate, ReadContent, SearchAnswer, SearchRequest},
    schema::normalize_name,
    skip::{self, is_prose},
    tokens,
};

/// Maximum number of chunks whose text is read to find matching words.
const MAX_READ: usize = 40;
/// Minimum share of the query's word weights that a chunk must match.
const MIN_COVER: f32 = 0.3;
/// Minimum share for a chunk that has names in common with certain hits.
const MIN_COVER_NEAR: f32 = 0.15;
/// Maximum number of words in a reason.
const MAX_SHOWN_WORDS: usize = 5;

/// Selection of chunks for an answer.
pub(crate) struct ChunkJudge<'a> {
    pub(crate) ranking: &'a ChunkRanking<'a>,
    pub(crate) request: &'a SearchRequest<'a>,
    pub(crate) words: &'a [QueryWord],
    pub(crate) read: ReadContent<'a>,
    /// Number of different words in the query, including those that no file has.
    pub(crate) word_count: usize,
}

impl ChunkJudge<'_> {
    pub(crate) fn answer(&self, fused: Vec<ScoredChunk>) -> Result<SearchAnswer, Error> {
        let tree = self.ranking.tree;
        let modules = Some(self.request.modules).filter(|modules| !modules.is_empty());
        let modules = modules.unwrap_or(&tree.modules);
        let mut caps = ChunkCaps::new(self.request.max, self.request.max_in_module);
        let mut answer = SearchAnswer::default();
        for (at, scored) in fused.into_iter().enumerate() {
            let is_candidate = answer.candidates.len() < self.request.candidates;
            if !is_candidate && (at >= MAX_READ || caps.is_full()) {
                answer.is_truncated = caps.is_full();
                break;
            }
            let (Some(file), Some(text)) = (
                tree.file(scored.hit.place),
                self.ranking.text(self.read, &scored.hit),
            ) else {
                continue;
            };
            let matched = self.matched(&file.path, &text);
            let is_confident = at < MAX_READ && self.is_confident(&scored, &matched);
            let takes = is_confident && caps.take(modules.of(&file.path), scored.hit.place);
            if takes || is_candidate {
                let found = self.found(&scored, &matched)?;
                if is_candidate {
                    let plain = FoundChunk {
                        reason: String::new(),
                        ..found.clone()
                    };
                    answer.candidates.push(RankCandidate { found: plain, text });
                }
                answer.found.extend(Some(found).filter(|_| takes));
            }
        }
        Ok(answer)
    }

    /// Words of the query that a chunk contains, in the order of their weight.
    fn matched(&self, path: &str, text: &str) -> Vec<&QueryWord> {
        let mut there: HashSet<String> = HashSet::new();
        for text in [path, text] {
            tokens::each_word(text, |word| {
                if !there.contains(word) {
                    there.insert(word.to_owned());
                }
            });
        }
        let has = |word: &&QueryWord| {
            let other = word.other.as_ref().is_some_and(|other| there.contains(other));
            other || there.contains(&word.text)
        };
        self.words.iter().filter(has).collect()
    }

    fn is_confident(&self, scored: &ScoredChunk, matched: &[&QueryWord]) -> bool {
        let is_certain = scored.why.iter().any(|why| *why != MatchReason::Near);
        let all: f32 = self.words.iter().map(|word| word.weight).sum();
        let shared: f32 = matched.iter().map(|word| word.weight).sum();
        // One shared word proves little, unless the query has no second one.
        let enough = !matched.is_empty() && matched.len() >= self.word_count.min(2);
        let cover = if scored.why.is_empty() {
            MIN_COVER
        } else {
            MIN_COVER_NEAR
        };
        is_certain || (enough && shared >= cover * all)
    }

    fn found(&self, scored: &ScoredChunk, matched: &[&QueryWord]) -> Result<FoundChunk, Error> {
        let file = self.ranking.tree.file(scored.hit.place);
        let document: TantivyDocument = self.ranking.searcher.doc(scored.hit.address)?;
        let shown = document.get_first(self.ranking.fields.shown);
        let shown = shown.and_then(|shown| shown.as_str()).unwrap_or_default();
        let path = file.map(|file| file.path.to_string()).unwrap_or_default();
        Ok(FoundChunk {
            symbol: self.symbol(shown, scored, &path),
            blob: file.map_or(BlobId([0; 20]), |file| file.blob),
            start: scored.hit.start,
            end: scored.hit.end,
            score: scored.score.min(1.0),
            reason: describe_match(scored, matched),
            is_test: skip::is_test(&path),
            path,
        })
    }

    /// Name to show for a chunk: the defined name that the query has, otherwise the name with the most words
    /// of the query.
    fn symbol(&self, shown: &str, scored: &ScoredChunk, path: &str) -> String {
        if is_prose(path) {
            return shown.to_owned();
        }
        let names: Vec<&str> = shown.split(' ').collect();
        let defined = scored.why.iter().find_map(|why| match why {
            MatchReason::Defines(name) => names
                .iter()
                .find(|shown| normalize_name(shown) == normalize_name(name)),
            MatchReason::Named | MatchReason::Quotes(_) | MatchReason::Near => None,
        });
        let fits = |name: &&&str| {
            let words = tokens::collect_words(name);
            self.words
                .iter()
                .filter(|word| words.contains(&word.text))
                .count()
        };
        // The first of equally good names.
        let best = || names.iter().rev().max_by_key(fits);
        defined
            .or_else(best)
            .map(|name| (*name).to_owned())
            .unwrap_or_default()
    }
}

fn describe_match(scored: &ScoredChunk, matched: &[&QueryWord]) -> String {
    let mut parts: Vec<String> = scored
        .why
        .iter()
        .map(|why| match why {
            MatchReason::Named => "named in the text".to_owned(),
            MatchReason::Defines(name) => format!("defines {name}"),
            MatchReason::Quotes(message) => format!("has the message \"{message}\""),
            MatchReason::Near => "shares names with other results".to_owned(),
        })
        .collect();
    let words: Vec<&str> = matched
        .iter()
        .take(MAX_SHOWN_WORDS)
        .map(|word| word.text.as_str())
        .collect();
    if !words.is_empty() {
        parts.push(format!("words: {}", words.join(", ")));
    }
    parts.join("; ")
}
