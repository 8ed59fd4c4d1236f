//! Search without an index: matches paths, and names and messages of the query in the text of files.

use std::{fs::FileType, path::PathBuf, time::Duration};

use aho_corasick::AhoCorasick;
use retrieval::{SearchQuery, match_paths};
use tokio::time::Instant;

use crate::workspace::Workspace;

/// Limits of a search: duration, number of files, and size of a file in bytes.
const LIMIT: Duration = Duration::from_secs(2);
const MAX_FILES: usize = 50_000;
const MAX_FILE: u64 = 512 * 1024;
// Limits of the searched names and messages. A shorter name occurs in almost every file.
const MAX_NEEDLES: usize = 12;
const MIN_NEEDLE: usize = 4;
// A message is more specific than a name.
const MESSAGE: f32 = 2.0;

/// A matching file, or a matching line in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LiteralMatch {
    pub(crate) path: String,
    /// Line number from 1; 0 for the whole file.
    pub(crate) line: u32,
    pub(crate) score: f32,
    pub(crate) reason: String,
}

/// Returns the files of a workspace whose path matches, and those that contain a name or message of the
/// query. Blocks for at most two seconds.
pub(crate) fn search_literally(
    workspace: &Workspace,
    query: &SearchQuery,
    is_wanted: &dyn Fn(&str) -> bool,
    is_cancelled: &dyn Fn() -> bool,
    max: usize,
) -> Vec<LiteralMatch> {
    let end = Instant::now() + LIMIT;
    // The model waits for the answer, so a partial result within the time limit is better than a complete
    // one.
    let is_over = || is_cancelled() || Instant::now() >= end;
    let listed = workspace.disk.paths(FileType::is_file).take(MAX_FILES);
    let paths: Vec<String> = listed
        .take_while(|_| !is_over())
        .filter_map(|path: PathBuf| path.into_os_string().into_string().ok())
        .filter(|path| is_wanted(path))
        .collect();
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut found: Vec<LiteralMatch> = match_paths(query, &names, max)
        .into_iter()
        .map(|(path, score, reason)| LiteralMatch {
            path: path.to_owned(),
            line: 0,
            score,
            reason,
        })
        .collect();
    for hit in search_contents(workspace, &names, query, &is_over) {
        match found.iter_mut().find(|known| known.path == hit.path) {
            Some(known) => {
                known.line = hit.line;
                known.score = known.score.max(hit.score);
                known.reason = format!("{}; {}", known.reason, hit.reason);
            }
            None => found.push(hit),
        }
    }
    found.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then_with(|| one.path.cmp(&other.path))
    });
    found.truncate(max);
    found
}

/// Matches in one file: the indexes of the needles, and the line of the most specific one.
struct FileHits {
    path: String,
    needles: Vec<usize>,
    line: u32,
}

fn search_contents(
    workspace: &Workspace,
    paths: &[&str],
    query: &SearchQuery,
    is_over: &dyn Fn() -> bool,
) -> Vec<LiteralMatch> {
    let messages = query.messages.iter().map(|text| (text.as_str(), MESSAGE));
    let names = query.identifiers.iter().map(|text| (text.as_str(), 1.0));
    let long = |(text, _): &(&str, f32)| text.len() >= MIN_NEEDLE;
    let needles: Vec<(&str, f32)> = messages.chain(names).filter(long).take(MAX_NEEDLES).collect();
    let Ok(finder) = AhoCorasick::new(needles.iter().map(|(text, _)| text)) else {
        return Vec::new();
    };
    if needles.is_empty() {
        return Vec::new();
    }
    let mut hits: Vec<FileHits> = Vec::new();
    for path in paths {
        if is_over() {
            break;
        }
        hits.extend(find_hits(workspace, path, &finder));
    }
    let mut files = vec![0.0_f32; needles.len()];
    for needle in hits.iter().flat_map(|hit| &hit.needles) {
        if let Some(count) = files.get_mut(*needle) {
            *count += 1.0;
        }
    }
    let most: f32 = needles.iter().map(|(_, weight)| weight).sum();
    hits.into_iter()
        .map(|hit| score_hits(hit, &needles, &files, most))
        .collect()
}

/// Computes the score of a file. A needle counts less the more files contain it.
fn score_hits(hit: FileHits, needles: &[(&str, f32)], files: &[f32], most: f32) -> LiteralMatch {
    let each = hit
        .needles
        .iter()
        .filter_map(|needle| Some((needles.get(*needle)?, files.get(*needle)?)));
    let score: f32 = each
        .map(|((_, weight), count)| weight / count.max(1.0).sqrt())
        .sum();
    let named = hit.needles.iter().filter_map(|needle| needles.get(*needle));
    let named: Vec<&str> = named.map(|(text, _)| *text).take(4).collect();
    let test = if retrieval::is_test(&hit.path) { 0.5 } else { 1.0 };
    LiteralMatch {
        path: hit.path,
        line: hit.line,
        score: test * score / most.max(1.0),
        reason: format!("has {}", named.join(", ")),
    }
}

fn find_hits(workspace: &Workspace, path: &str, finder: &AhoCorasick) -> Option<FileHits> {
    let content = workspace.root().read(std::path::Path::new(path), MAX_FILE).ok()?;
    let mut needles = Vec::new();
    let mut first: Option<(usize, usize)> = None;
    for found in finder.find_overlapping_iter(&content) {
        let needle = found.pattern().as_usize();
        if !needles.contains(&needle) {
            needles.push(needle);
        }
        // Messages precede names in the list of needles, so the lowest index is the most specific one.
        if first.is_none_or(|(known, _)| needle < known) {
            first = Some((needle, found.start()));
        }
    }
    let (_, at) = first?;
    let before = content.get(..at)?;
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    needles.sort_unstable();
    Some(FileHits {
        path: path.to_owned(),
        needles,
        line: u32::try_from(line).unwrap_or(u32::MAX),
    })
}
