//! Ranked lists that a search fuses.

use std::sync::Arc;

use tantivy::{
    DocAddress, DocId, Score, Searcher, SegmentReader, Term,
    collector::TopDocs,
    query::{BooleanQuery, BoostQuery, Query as TantivyQuery, TermQuery},
    schema::{Field, IndexRecordOption},
};

use crate::{
    error::Error,
    query::SearchQuery,
    request::ReadContent,
    schema::{ChunkFields, FILE, LINES, WEIGHTS, normalize_name, unpack_lines},
    tokens,
    tree::IndexedTree,
};

/// Maximum number of words of a query that are searched, the rarest first.
const MAX_TERMS: usize = 24;
// A word in a larger share of the chunks is omitted if enough rarer ones exist.
const COMMON: f32 = 0.2;
const MIN_TERMS: usize = 4;
// A word in at most this many chunks is cheap to search, whatever its share.
const FEW: u64 = 2000;
// A word in a larger share of the chunks is omitted if any other exists.
const EVERYWHERE: f32 = 0.5;
/// Weight of a word from a name of code; a word of prose has 1.
const NAME_WEIGHT: f32 = 2.0;

/// Chunk of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkHit {
    pub(crate) place: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) address: DocAddress,
}

/// Word of a query with its weight.
#[derive(Clone, Debug)]
pub(crate) struct QueryWord {
    pub(crate) text: String,
    pub(crate) weight: f32,
    /// Other form under which the word is also searched: the singular of a plural.
    pub(crate) other: Option<String>,
}

/// Input of the lists: the current index, a tree, and the files that may be shown.
pub(crate) struct ChunkRanking<'a> {
    pub(crate) searcher: &'a Searcher,
    pub(crate) fields: ChunkFields,
    pub(crate) tree: &'a Arc<IndexedTree>,
    /// For each file of the tree, by its position; absent: all files.
    pub(crate) allowed: Option<Arc<[bool]>>,
}

impl ChunkRanking<'_> {
    /// Most specific words of a query, with their weights.
    pub(crate) fn words(&self, query: &SearchQuery) -> Result<Vec<QueryWord>, Error> {
        let names = query
            .identifiers
            .iter()
            .flat_map(|name| tokens::collect_words(name));
        let names = names.map(|word| (word, NAME_WEIGHT));
        let prose = query.words.iter().map(|word| (word.clone(), 1.0));
        let mut counted: Vec<(String, f32)> = Vec::new();
        for (word, weight) in names.chain(prose) {
            match counted.iter_mut().find(|(known, _)| *known == word) {
                // A repeated word counts slightly more.
                Some((_, known)) => *known = (*known + 0.2).min(3.0).max(weight),
                None => counted.push((word, weight)),
            }
        }
        let all = convert_count(self.searcher.num_docs().max(1));
        let mut words = Vec::new();
        for (text, weight) in counted {
            let other = derive_singular(&text);
            let mut found = self.frequency(&text)?;
            if let Some(other) = &other {
                found += self.frequency(other)?;
            }
            if found > 0 {
                let rarity = (1.0 + all / convert_count(found)).ln();
                let share = if found > FEW {
                    convert_count(found) / all
                } else {
                    0.0
                };
                words.push((
                    share,
                    QueryWord {
                        text,
                        weight: weight * rarity,
                        other,
                    },
                ));
            }
        }
        words.sort_by(|(_, one), (_, other)| other.weight.total_cmp(&one.weight));
        // Common words take much time and distinguish little, so they only fill up the list.
        let rare = words.iter().filter(|(share, _)| *share <= COMMON).count();
        let has_others = words.iter().any(|(share, _)| *share <= EVERYWHERE);
        let mut room = MIN_TERMS.saturating_sub(rare);
        words.retain(|(share, _)| {
            let is_rare = *share <= COMMON;
            let is_kept = is_rare || (room > 0 && (*share <= EVERYWHERE || !has_others));
            room = room.saturating_sub(usize::from(!is_rare));
            is_kept
        });
        Ok(words.into_iter().map(|(_, word)| word).take(MAX_TERMS).collect())
    }

    /// Number of chunks that contain a word in the text or the path.
    fn frequency(&self, word: &str) -> Result<u64, Error> {
        let body = self
            .searcher
            .doc_freq(&Term::from_field_text(self.fields.body, word))?;
        let path = self
            .searcher
            .doc_freq(&Term::from_field_text(self.fields.path, word))?;
        Ok(body.max(path))
    }

    /// Chunks that match the words in any field.
    pub(crate) fn by_words(&self, words: &[QueryWord], max: usize) -> Result<Vec<ChunkHit>, Error> {
        let weighted = [
            (self.fields.path, WEIGHTS.path),
            (self.fields.symbols, WEIGHTS.symbols),
            (self.fields.head, WEIGHTS.head),
            (self.fields.body, WEIGHTS.body),
        ];
        let fields = weighted.into_iter();
        let queries = fields.flat_map(|(field, boost)| {
            words
                .iter()
                .flat_map(move |word| build_word_clauses(field, word, boost))
        });
        self.collect(&BooleanQuery::union(queries.collect()), max)
    }

    /// Chunks that match the words in one field.
    pub(crate) fn by_field(
        &self,
        field: Field,
        words: &[QueryWord],
        max: usize,
    ) -> Result<Vec<ChunkHit>, Error> {
        let queries = words.iter().flat_map(|word| build_word_clauses(field, word, 1.0));
        self.collect(&BooleanQuery::union(queries.collect()), max)
    }

    /// Chunks that define one of the names.
    pub(crate) fn by_names(&self, names: &[String], max: usize) -> Result<Vec<(String, ChunkHit)>, Error> {
        let mut found = Vec::new();
        for name in names {
            let term = Term::from_field_text(self.fields.names, &normalize_name(name));
            let hits = self.collect(&TermQuery::new(term, IndexRecordOption::Basic), max)?;
            found.extend(hits.into_iter().map(|hit| (name.clone(), hit)));
        }
        Ok(found)
    }

    /// Chunks that contain every word of a text.
    pub(crate) fn with_all(&self, text: &str, max: usize) -> Result<Vec<ChunkHit>, Error> {
        let mut words = tokens::collect_words(text);
        words.sort_unstable();
        words.dedup();
        let term = |word: &String| build_term_query(self.fields.body, word);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.collect(&BooleanQuery::intersection(words.iter().map(term).collect()), max)
    }

    /// Chunks of a file, in order.
    pub(crate) fn of_file(&self, place: u32) -> Result<Vec<ChunkHit>, Error> {
        const MAX: usize = 2000;
        let Some(file) = self.tree.file(place) else {
            return Ok(Vec::new());
        };
        let term = Term::from_field_u64(self.fields.file, u64::from(file.number));
        let mut hits = self.collect(&TermQuery::new(term, IndexRecordOption::Basic), MAX)?;
        hits.sort_by_key(|hit| hit.start);
        Ok(hits)
    }

    /// Text of a chunk; `None` when its file cannot be read.
    pub(crate) fn text(&self, read: ReadContent<'_>, hit: &ChunkHit) -> Option<String> {
        let content = read(self.tree.file(hit.place)?.blob)?;
        let skipped = (hit.start as usize).saturating_sub(1);
        let lines = content.split_inclusive(|byte| *byte == b'\n').skip(skipped);
        let count = (hit.end as usize).saturating_sub(skipped);
        let text: Vec<u8> = lines.take(count).flatten().copied().collect();
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn collect(&self, query: &dyn TantivyQuery, max: usize) -> Result<Vec<ChunkHit>, Error> {
        let (tree, allowed) = (Arc::clone(self.tree), self.allowed.clone());
        let live = move |segment: &SegmentReader| {
            let files = segment.fast_fields().column_first_or_default::<u64>(FILE).ok();
            let (tree, allowed) = (Arc::clone(&tree), allowed.clone());
            move |document: DocId, score: Score| -> Score {
                let place = files
                    .as_ref()
                    .and_then(|files| tree.place(files.get_val(document)));
                let is_shown = |place: u32| {
                    let allowed = allowed
                        .as_ref()
                        .map(|allowed| allowed.get(place as usize) == Some(&true));
                    allowed.unwrap_or(true)
                };
                // A score cannot exclude a document, so hidden chunks get a negative one and are removed below.
                if place.is_some_and(is_shown) { score } else { -1.0 }
            }
        };
        let found: Vec<(Score, DocAddress)> = self
            .searcher
            .search(query, &TopDocs::with_limit(max).tweak_score(live))?;
        let mut hits = Vec::with_capacity(found.len());
        for (_, address) in found.into_iter().filter(|(score, _)| *score >= 0.0) {
            hits.extend(self.hit(address)?);
        }
        Ok(hits)
    }

    fn hit(&self, address: DocAddress) -> Result<Option<ChunkHit>, Error> {
        let fast = self.searcher.segment_reader(address.segment_ord).fast_fields();
        let file = fast.column_first_or_default::<u64>(FILE)?.get_val(address.doc_id);
        let (start, end) = unpack_lines(
            fast.column_first_or_default::<u64>(LINES)?
                .get_val(address.doc_id),
        );
        Ok(self.tree.place(file).map(|place| ChunkHit {
            place,
            start,
            end,
            address,
        }))
    }
}

fn build_word_clauses(
    field: Field,
    word: &QueryWord,
    boost: f32,
) -> impl Iterator<Item = Box<dyn TantivyQuery>> + use<> {
    let boost = boost * word.weight;
    let texts: Vec<String> = std::iter::once(word.text.clone())
        .chain(word.other.clone())
        .collect();
    texts.into_iter().map(move |text| -> Box<dyn TantivyQuery> {
        Box::new(BoostQuery::new(build_term_query(field, &text), boost))
    })
}

fn build_term_query(field: Field, word: &str) -> Box<dyn TantivyQuery> {
    let term = Term::from_field_text(field, word);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

/// Singular of an English plural: code contains `refund` where a ticket has `refunds`.
pub(crate) fn derive_singular(word: &str) -> Option<String> {
    let stem = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let stem = stem.or_else(|| {
        let stem = word.strip_suffix('s')?;
        // Words such as `class`, `status` and `axis` end with an s and are no plurals.
        (!stem.ends_with(['s', 'u', 'i'])).then(|| stem.to_owned())
    });
    stem.filter(|stem| stem.len() >= 3)
}

#[expect(clippy::cast_precision_loss, reason = "a rarity needs no more")]
fn convert_count(count: u64) -> f32 {
    count as f32
}
