//! Cache of answers with their `ETag`s, so that an unchanged answer costs nothing of the rate limit.

use std::collections::HashMap;

use crate::{ETag, transport::GitHubAnswer};

// Maximum number of cached answers.
const MOST: usize = 1_000;
// Maximum bytes of all cached bodies together.
const MOST_BYTES: usize = 16 * 1024 * 1024;
// Maximum bytes of one cached body; larger answers are read in full each time.
const LARGEST: usize = 1024 * 1024;

struct CachedAnswer {
    tag: ETag,
    body: String,
    used: u64,
}

/// Cached answers by path; the least recently used ones are evicted.
#[derive(Default)]
pub(crate) struct EtagCache {
    entries: HashMap<String, CachedAnswer>,
    bytes: usize,
    uses: u64,
}

impl EtagCache {
    pub(crate) fn find(&mut self, path: &str) -> Option<(ETag, String)> {
        self.uses += 1;
        let entry = self.entries.get_mut(path)?;
        entry.used = self.uses;
        Some((entry.tag.clone(), entry.body.clone()))
    }

    /// Replaces the cached answer of the path. An answer without an `ETag` removes it.
    pub(crate) fn keep(&mut self, path: &str, answer: &GitHubAnswer) {
        if let Some(tag) = &answer.etag {
            self.put(path, tag.clone(), answer.body());
        } else {
            self.forget(path);
        }
    }

    fn put(&mut self, path: &str, tag: ETag, body: &str) {
        self.forget(path);
        // The previous answer is gone by now, so that a large one cannot leave it in use.
        if body.len() > LARGEST {
            return;
        }
        // The scan for the oldest entry is cheap: 1,000 entries at most, and only for answers that changed.
        while self.entries.len() >= MOST || self.bytes + body.len() > MOST_BYTES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else {
                break;
            };
            self.forget(&oldest);
        }
        self.uses += 1;
        self.bytes += body.len();
        let entry = CachedAnswer {
            tag,
            body: body.to_owned(),
            used: self.uses,
        };
        self.entries.insert(path.to_owned(), entry);
    }

    fn forget(&mut self, path: &str) {
        if let Some(entry) = self.entries.remove(path) {
            self.bytes -= entry.body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_etag() -> ETag {
        ETag("W/\"1\"".to_owned())
    }

    #[test]
    fn full_cache_evicts_least_recently_used() {
        let mut kept = EtagCache::default();
        let large = "x".repeat(LARGEST);
        for number in 0..40 {
            kept.put(&format!("/{number}"), build_etag(), &large);
            assert!(kept.find("/0").is_some(), "it is used all the time");
            assert!(kept.bytes <= MOST_BYTES);
        }
        assert!(kept.find("/1").is_none() && kept.find("/39").is_some());
        kept.put("/39", build_etag(), &"x".repeat(LARGEST + 1));
        assert!(
            kept.find("/39").is_none(),
            "the answer of before is not the answer"
        );
        for number in 0..2 * MOST {
            kept.put(&format!("/small/{number}"), build_etag(), "x");
        }
        assert!(kept.entries.len() <= MOST);
        let sum: usize = kept.entries.values().map(|entry| entry.body.len()).sum();
        assert_eq!(kept.bytes, sum);
    }
}
