//! Fusion of the search's order with the order by meaning.

use std::collections::BTreeMap;

use domain::{ChangeScope, CodeSeed, RepositoryRules};

use super::EmbeddingVector;
use crate::executors::{CodeSeeds, SeedCandidate};

// Constant of reciprocal rank fusion, the same as in the executor's search.
const K: f64 = 60.0;
const MOST: usize = 10;
const OF_A_MODULE: usize = 4;
const OF_A_FILE: usize = 2;
// A place without a confident match needs a similarity this many standard deviations above the mean.
const STANDS_OUT: f64 = 2.0;

struct RankedPlace<'a> {
    candidate: &'a SeedCandidate,
    score: f64,
    likeness: f64,
    is_sure: bool,
}

/// Returns the best places: at most 10, of these 4 from a module and 2 from a file.
pub(super) fn rank_places(
    query: &EmbeddingVector,
    found: &CodeSeeds,
    vectors: &[EmbeddingVector],
    rules: &RepositoryRules,
) -> Vec<CodeSeed> {
    let likeness: Vec<f64> = vectors
        .iter()
        .map(|vector| cosine_similarity(query, vector))
        .collect();
    let floor = similarity_floor(&likeness);
    let mut by_meaning: Vec<usize> = (0..likeness.len()).collect();
    by_meaning.sort_by(|one, other| likeness[*other].total_cmp(&likeness[*one]));
    let mut score: Vec<f64> = (0..likeness.len()).map(rank_weight).collect();
    for (rank, at) in by_meaning.into_iter().enumerate() {
        score[at] += rank_weight(rank);
    }
    let shown = |one: &SeedCandidate| {
        let mut chunks = found.chunks.iter();
        chunks.find(|seed| seed.path == one.seed.path && seed.lines == one.seed.lines)
    };
    let mut ranked: Vec<RankedPlace<'_>> = found
        .candidates
        .iter()
        .zip(score)
        .zip(&likeness)
        .map(|((candidate, score), likeness)| RankedPlace {
            candidate,
            score,
            likeness: *likeness,
            is_sure: shown(candidate).is_some(),
        })
        .filter(|one| one.is_sure || one.likeness >= floor)
        .collect();
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    // Places that the text names are not candidates of the search; they keep their rank before all others.
    let is_candidate = |seed: &&CodeSeed| {
        let mut all = found.candidates.iter();
        all.any(|one| one.seed.path == seed.path && one.seed.lines == seed.lines)
    };
    let named = found.chunks.iter().filter(|seed| !is_candidate(seed)).cloned();
    let reason = |one: &SeedCandidate| shown(one).map_or_else(String::new, |seed| seed.reason.clone());
    let taken = limit_per_module(&ranked, rules)
        .into_iter()
        .map(|one| seed_with_score(one, &reason(one.candidate)));
    named.chain(taken).take(MOST).collect()
}

fn limit_per_module<'a, 'b>(
    ranked: &'b [RankedPlace<'a>],
    rules: &RepositoryRules,
) -> Vec<&'b RankedPlace<'a>> {
    let scope = ChangeScope::new(&rules.modules, "", &[]);
    let module = |path: &str| match scope.module_of(path) {
        Some(module) => module.name.clone(),
        None => path
            .split('/')
            .rev()
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .take(2)
            .collect(),
    };
    let (mut modules, mut files) = (BTreeMap::<String, usize>::new(), BTreeMap::<&str, usize>::new());
    let mut taken = Vec::new();
    for one in ranked {
        let path = one.candidate.seed.path.as_str();
        let (of_module, of_file) = (
            modules.entry(module(path)).or_default(),
            files.entry(path).or_default(),
        );
        if *of_module < OF_A_MODULE && *of_file < OF_A_FILE {
            (*of_module, *of_file) = (*of_module + 1, *of_file + 1);
            taken.push(one);
        }
    }
    taken
}

fn seed_with_score(one: &RankedPlace<'_>, reason: &str) -> CodeSeed {
    let meaning = format!("meaning {:.2}", one.likeness);
    let most = 2.0 * rank_weight(0);
    CodeSeed {
        // Normalized to the best rank in both orders, which scores 100.
        score: (one.score / most * 100.0).round() as u32,
        reason: if reason.is_empty() {
            meaning
        } else {
            format!("{reason}, {meaning}")
        },
        ..one.candidate.seed.clone()
    }
}

fn rank_weight(rank: usize) -> f64 {
    1.0 / (K + 1.0 + rank as f64)
}

/// Similarity that a place needs if only its meaning supports it.
fn similarity_floor(likeness: &[f64]) -> f64 {
    let count = likeness.len() as f64;
    let mean = likeness.iter().sum::<f64>() / count;
    let spread = likeness.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
    STANDS_OUT.mul_add(spread.sqrt().max(f64::EPSILON), mean)
}

fn cosine_similarity(one: &[f32], other: &[f32]) -> f64 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter()
            .zip(other)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    let length = dot(one, one).sqrt() * dot(other, other).sqrt();
    if length > 0.0 {
        dot(one, other) / length
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_candidate(path: &str) -> SeedCandidate {
        SeedCandidate {
            seed: CodeSeed {
                path: path.to_owned(),
                lines: Some((1, 9)),
                ..CodeSeed::default()
            },
            blob: path.to_owned(),
            text: String::new(),
        }
    }

    /// Returns the best of candidates with these similarities to the query. The search is confident of the
    /// first `sure`.
    fn rank_by_likeness(likeness: &[(&str, f32)], sure: usize) -> Vec<String> {
        let query: EmbeddingVector = vec![1.0, 0.0].into();
        let vector = |like: f32| -> EmbeddingVector { vec![like, (1.0 - like * like).sqrt()].into() };
        let vectors: Vec<EmbeddingVector> = likeness.iter().map(|(_, like)| vector(*like)).collect();
        let candidates: Vec<SeedCandidate> = likeness.iter().map(|(path, _)| build_candidate(path)).collect();
        let found = CodeSeeds {
            chunks: candidates.iter().take(sure).map(|one| one.seed.clone()).collect(),
            candidates,
            note: String::new(),
        };
        let best = rank_places(&query, &found, &vectors, &RepositoryRules::default());
        best.into_iter().map(|seed| seed.path).collect()
    }

    #[test]
    fn similarity_moves_later_place_forward() {
        let paths = [
            ("a/1.py", 0.1),
            ("b/2.py", 0.2),
            ("c/3.py", 0.9),
            ("d/4.py", 0.5),
            ("e/5.py", 0.4),
        ];
        assert_eq!(rank_by_likeness(&paths, paths.len())[0], "c/3.py");
    }

    #[test]
    fn unsure_place_needs_outstanding_similarity() {
        let mut paths = vec![("a/1.py", 0.2)];
        paths.extend([("b/2.py", 0.2); 9]);
        assert_eq!(rank_by_likeness(&paths, 0), Vec::<String>::new(), "all are alike");
        paths.push(("z/9.py", 0.95));
        assert_eq!(rank_by_likeness(&paths, 0), ["z/9.py"]);
        assert_eq!(rank_by_likeness(&paths, 1).len(), 2);
    }

    #[test]
    fn places_are_limited_per_module_and_file() {
        let paths = [
            "m/a/1.py", "m/a/1.py", "m/a/1.py", "m/a/2.py", "m/a/3.py", "m/a/4.py", "n/5.py",
        ];
        let paths = paths.map(|path| (path, 0.5));
        let shown = rank_by_likeness(&paths, paths.len());
        assert_eq!(shown.iter().filter(|path| path.starts_with("m/")).count(), 4);
        assert_eq!(shown.iter().filter(|path| *path == "m/a/1.py").count(), 2);
        assert!(shown.contains(&"n/5.py".to_owned()));
    }

    #[test]
    fn without_a_length_nothing_is_alike() {
        assert!(cosine_similarity(&[0.0, 0.0], &[1.0, 0.0]).abs() < f64::EPSILON);
    }
}
