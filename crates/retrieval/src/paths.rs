//! Search for files by the paths in a text.

use std::collections::HashSet;

use crate::{query::SearchQuery, skip, tokens};

// A name that more files share is not specific.
const MAX_SAME: usize = 3;

/// Files that a mentioned path refers to: the exact path, otherwise paths that end with it or with its last
/// parts.
///
/// Returns no file if more than [`MAX_SAME`] match. `of_name` returns the paths of all files with a name.
pub(crate) fn resolve_mention<'a, T: Copy>(
    mention: &str,
    of_name: impl Fn(&str) -> Vec<(&'a str, T)>,
) -> Vec<T> {
    let mention = mention.trim_start_matches('/');
    let name = mention.rsplit('/').next().unwrap_or_default();
    let files = of_name(name);
    let mut wanted = mention;
    loop {
        let found: Vec<T> = files
            .iter()
            .filter(|(path, _)| ends_with(path, wanted))
            .map(|(_, file)| *file)
            .collect();
        if !found.is_empty() {
            let exact = files
                .iter()
                .find(|(path, _)| *path == wanted)
                .map(|(_, file)| *file);
            return match exact {
                Some(file) => vec![file],
                None if found.len() <= MAX_SAME => found,
                None => Vec::new(),
            };
        }
        // Paths from other machines begin with folders that the repository does not have.
        match wanted.split_once('/') {
            Some((_, rest)) => wanted = rest,
            None => return Vec::new(),
        }
    }
}

fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Ranks files by their paths alone, for the time before an index exists.
///
/// Returns at most `max` files, best first, each with a score between 0 and 1 and the reason.
#[must_use]
pub fn match_paths<'a>(query: &SearchQuery, paths: &[&'a str], max: usize) -> Vec<(&'a str, f32, String)> {
    let of_name = |name: &str| -> Vec<(&'a str, &'a str)> {
        let has_name = |path: &&&str| path.rsplit('/').next() == Some(name);
        paths.iter().filter(has_name).map(|path| (*path, *path)).collect()
    };
    let mut found: Vec<(&str, f32, String)> = Vec::new();
    for mention in &query.paths {
        for path in resolve_mention(&mention.path, of_name) {
            if !found.iter().any(|(known, ..)| *known == path) {
                found.push((path, 1.0, "named in the text".to_owned()));
            }
        }
    }
    let named = found.len();
    let wanted: HashSet<String> = collect_query_words(query);
    for path in paths {
        // Before an index exists, no content is known, so only the path can exclude a file.
        if skip::by_path(path).is_some() || found[..named].iter().any(|(known, ..)| known == path) {
            continue;
        }
        let words: HashSet<String> = tokens::collect_words(path).into_iter().collect();
        let mut matched: Vec<&str> = words.intersection(&wanted).map(String::as_str).collect();
        matched.sort_unstable();
        let letters: usize = matched.iter().map(|word| word.len()).sum();
        // A single short word matches too many paths.
        if matched.len() >= 2 || letters >= 6 {
            let test = if skip::is_test(path) { 0.5 } else { 1.0 };
            let score = test * 0.9 * compute_share(matched.len(), words.len());
            found.push((path, score, format!("path has {}", matched.join(", "))));
        }
    }
    found[named..].sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    found.truncate(max);
    found
}

fn collect_query_words(query: &SearchQuery) -> HashSet<String> {
    let names = query
        .identifiers
        .iter()
        .flat_map(|name| tokens::collect_words(name));
    names.chain(query.words.iter().cloned()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of words of one path")]
fn compute_share(part: usize, whole: usize) -> f32 {
    part as f32 / whole.max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_file_is_found_unless_ambiguous() {
        let paths = [
            "shop/cart.py",
            "web/cart.py",
            "a/__init__.py",
            "b/__init__.py",
            "c/__init__.py",
            "d/__init__.py",
        ];
        let found = |text: &str| -> Vec<&str> {
            let query = SearchQuery::from_text(text);
            match_paths(&query, &paths, 10)
                .into_iter()
                .filter(|(_, score, _)| *score >= 1.0)
                .map(|(path, ..)| path)
                .collect()
        };
        assert_eq!(found("File \"/app/shop/cart.py\", line 3"), ["shop/cart.py"]);
        assert_eq!(found("cart.py is wrong"), ["shop/cart.py", "web/cart.py"]);
        assert!(found("see __init__.py").is_empty());
        assert!(found("see other/none.py").is_empty());
    }

    #[test]
    fn path_words_score_and_tests_half() {
        let query = SearchQuery::from_text("Refund of a discounted order is wrong");
        let found = match_paths(
            &query,
            &["src/order/refund.rs", "tests/order/refund.rs", "src/user.rs"],
            10,
        );
        let paths: Vec<&str> = found.iter().map(|(path, ..)| *path).collect();
        assert_eq!(paths, ["src/order/refund.rs", "tests/order/refund.rs"]);
        assert!(found[0].1 > found[1].1);
    }
}
