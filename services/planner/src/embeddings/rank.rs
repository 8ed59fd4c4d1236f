//! Fusion of the search's order with the order by meaning.

use std::collections::BTreeMap;

use domain::{CodeSeed, Rules, Scope};

use super::Vector;
use crate::executors::{Candidate, Seeds};

// Constant of reciprocal rank fusion, the same as in the executor's search.
const K: f64 = 60.0;
const MOST: usize = 10;
const OF_A_MODULE: usize = 4;
const OF_A_FILE: usize = 2;
// A place without a confident match needs a similarity this many standard deviations above the mean.
const STANDS_OUT: f64 = 2.0;

struct Ranked<'a> {
    candidate: &'a Candidate,
    score: f64,
    likeness: f64,
    is_sure: bool,
}

/// Returns the best places: at most 10, of these 4 from a module and 2 from a file.
pub(super) fn best(query: &Vector, found: &Seeds, vectors: &[Vector], rules: &Rules) -> Vec<CodeSeed> {
    let likeness: Vec<f64> = vectors.iter().map(|vector| cosine(query, vector)).collect();
    let floor = floor(&likeness);
    let mut by_meaning: Vec<usize> = (0..likeness.len()).collect();
    by_meaning.sort_by(|one, other| likeness[*other].total_cmp(&likeness[*one]));
    let mut score: Vec<f64> = (0..likeness.len()).map(weight).collect();
    for (rank, at) in by_meaning.into_iter().enumerate() {
        score[at] += weight(rank);
    }
    let shown = |one: &Candidate| {
        let mut chunks = found.chunks.iter();
        chunks.find(|seed| seed.path == one.seed.path && seed.lines == one.seed.lines)
    };
    let mut ranked: Vec<Ranked<'_>> = found
        .candidates
        .iter()
        .zip(score)
        .zip(&likeness)
        .map(|((candidate, score), likeness)| Ranked {
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
    let reason = |one: &Candidate| shown(one).map_or_else(String::new, |seed| seed.reason.clone());
    let taken = taken(&ranked, rules)
        .into_iter()
        .map(|one| seed(one, &reason(one.candidate)));
    named.chain(taken).take(MOST).collect()
}

fn taken<'a, 'b>(ranked: &'b [Ranked<'a>], rules: &Rules) -> Vec<&'b Ranked<'a>> {
    let scope = Scope::new(&rules.modules, "", &[]);
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

fn seed(one: &Ranked<'_>, reason: &str) -> CodeSeed {
    let meaning = format!("meaning {:.2}", one.likeness);
    let most = 2.0 * weight(0);
    CodeSeed {
        // Normalized to the best rank in both orders, which scores 100.
        score: (one.score / most * 100.0).round() as u32,
        reason: match reason.is_empty() {
            true => meaning,
            false => format!("{reason}, {meaning}"),
        },
        ..one.candidate.seed.clone()
    }
}

fn weight(rank: usize) -> f64 {
    1.0 / (K + 1.0 + rank as f64)
}

/// Similarity that a place needs if only its meaning supports it.
fn floor(likeness: &[f64]) -> f64 {
    let count = likeness.len() as f64;
    let mean = likeness.iter().sum::<f64>() / count;
    let spread = likeness.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
    STANDS_OUT.mul_add(spread.sqrt().max(f64::EPSILON), mean)
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter()
            .zip(other)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    let length = dot(one, one).sqrt() * dot(other, other).sqrt();
    match length > 0.0 {
        true => dot(one, other) / length,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(path: &str) -> Candidate {
        Candidate {
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
    fn ranked(likeness: &[(&str, f32)], sure: usize) -> Vec<String> {
        let query: Vector = vec![1.0, 0.0].into();
        let vector = |like: f32| -> Vector { vec![like, (1.0 - like * like).sqrt()].into() };
        let vectors: Vec<Vector> = likeness.iter().map(|(_, like)| vector(*like)).collect();
        let candidates: Vec<Candidate> = likeness.iter().map(|(path, _)| candidate(path)).collect();
        let found = Seeds {
            chunks: candidates.iter().take(sure).map(|one| one.seed.clone()).collect(),
            candidates,
            note: String::new(),
        };
        let best = best(&query, &found, &vectors, &Rules::default());
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
        assert_eq!(ranked(&paths, paths.len())[0], "c/3.py");
    }

    #[test]
    fn unsure_place_needs_outstanding_similarity() {
        let mut paths = vec![("a/1.py", 0.2)];
        paths.extend([("b/2.py", 0.2); 9]);
        assert_eq!(ranked(&paths, 0), Vec::<String>::new(), "all are alike");
        paths.push(("z/9.py", 0.95));
        assert_eq!(ranked(&paths, 0), ["z/9.py"]);
        assert_eq!(ranked(&paths, 1).len(), 2);
    }

    #[test]
    fn places_are_limited_per_module_and_file() {
        let paths = [
            "m/a/1.py", "m/a/1.py", "m/a/1.py", "m/a/2.py", "m/a/3.py", "m/a/4.py", "n/5.py",
        ];
        let paths = paths.map(|path| (path, 0.5));
        let shown = ranked(&paths, paths.len());
        assert_eq!(shown.iter().filter(|path| path.starts_with("m/")).count(), 4);
        assert_eq!(shown.iter().filter(|path| *path == "m/a/1.py").count(), 2);
        assert!(shown.contains(&"n/5.py".to_owned()));
    }

    #[test]
    fn without_a_length_nothing_is_alike() {
        assert!(cosine(&[0.0, 0.0], &[1.0, 0.0]).abs() < f64::EPSILON);
    }
}
