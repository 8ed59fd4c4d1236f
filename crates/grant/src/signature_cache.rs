//! Tokens whose signature was valid, so that it is not verified again at each call.

use std::collections::HashMap;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};

/// Limit of remembered tokens, about 32 KiB of memory.
const MAX_TOKENS: usize = 256;

/// SHA-256 of a whole token. The token itself is a credential, so the cache keeps no copy of it.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct TokenDigest(Vec<u8>);

impl TokenDigest {
    pub(crate) fn of(token: &str) -> Self {
        Self(digest(&SHA256, token.as_bytes()).as_ref().to_vec())
    }
}

/// Tokens with a valid signature under the keys of one verifier, each with the end of its validity in Unix seconds.
///
/// A remembered token is not admitted by that: its claims are checked at each call.
#[derive(Default)]
pub(crate) struct SignatureCache(Mutex<HashMap<TokenDigest, i64>>);

impl SignatureCache {
    pub(crate) fn has(&self, token: &TokenDigest) -> bool {
        self.0.lock().contains_key(token)
    }

    /// Remembers a token until it expires, or until too many others arrive.
    pub(crate) fn note(&self, token: TokenDigest, expires_s: i64, now_s: i64) {
        let mut known = self.0.lock();
        if known.len() >= MAX_TOKENS {
            known.retain(|_, expires_s| *expires_s > now_s);
        }
        // A forgotten token only costs another verification.
        if known.len() >= MAX_TOKENS {
            known.clear();
        }
        known.insert(token, expires_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_tokens_make_room_first() {
        let cache = SignatureCache::default();
        cache.note(TokenDigest::of("long"), 1000, 1);
        for number in 1..MAX_TOKENS {
            cache.note(TokenDigest::of(&number.to_string()), 10, 1);
        }
        cache.note(TokenDigest::of("new"), 1000, 10);
        assert!(cache.has(&TokenDigest::of("long")) && cache.has(&TokenDigest::of("new")));
        assert!(!cache.has(&TokenDigest::of("1")));
        assert_eq!(cache.0.lock().len(), 2);
    }

    #[test]
    fn remembered_tokens_stay_within_limit() {
        let cache = SignatureCache::default();
        for number in 0..10 * MAX_TOKENS {
            let token = number.to_string();
            cache.note(TokenDigest::of(&token), 1000, 1);
            assert!(cache.has(&TokenDigest::of(&token)));
            assert!(cache.0.lock().len() <= MAX_TOKENS);
        }
    }
}
