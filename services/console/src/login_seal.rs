//! Sealed state of logins in progress. The browser keeps it, encrypted and authenticated, so logins that strangers
//! begin use no memory of the console.

use std::collections::VecDeque;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::Timestamp;
use parking_lot::Mutex;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    rand::{SecureRandom, SystemRandom},
};
use serde::{Serialize, de::DeserializeOwned};

// Associated data of a sealed value. A value that was sealed for another purpose does not open.
const PURPOSE: &[u8] = b"journeyman console login 1";
// Number of used logins that are remembered. A forgotten one still needs a code, and the provider accepts a code
// once.
const MAX_USED: usize = 10_000;

/// Key of this process. A restart ends the logins in progress, as it ends the sessions.
pub(crate) struct LoginSeal {
    key: LessSafeKey,
    random: SystemRandom,
    used: Mutex<VecDeque<String>>,
}

/// Error of the system's random number generator.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub(crate) struct NoRandomNumbers;

impl From<Unspecified> for NoRandomNumbers {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

#[derive(serde::Deserialize, serde::Serialize)]
struct SealedValue<T> {
    id: String,
    ends_ms: i64,
    value: T,
}

impl LoginSeal {
    pub(crate) fn new() -> Result<Self, NoRandomNumbers> {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        random.fill(&mut key)?;
        Ok(Self {
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key)?),
            random,
            used: Mutex::default(),
        })
    }

    /// Encrypts the value as text for a cookie, valid until `ends`.
    pub(crate) fn seal(&self, value: impl Serialize, ends: Timestamp) -> Result<String, NoRandomNumbers> {
        let sealed = SealedValue {
            id: uuid::Uuid::new_v4().simple().to_string(),
            ends_ms: ends.unix_ms(),
            value,
        };
        // NIST SP 800-38D allows 2^32 random nonces for one key, and this key ends with the process.
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce)?;
        // Cannot fail: our types have no maps with keys other than text.
        let mut bytes = serde_json::to_vec(&sealed).map_err(|_| NoRandomNumbers)?;
        let nonce_of_key = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(nonce_of_key, Aad::from(PURPOSE), &mut bytes)?;
        Ok(URL_SAFE_NO_PAD.encode([&nonce, bytes.as_slice()].concat()))
    }

    /// Decrypts a value of this process, if it is valid at `now` and was not opened before.
    pub(crate) fn open_once<T: DeserializeOwned>(&self, text: &str, now: Timestamp) -> Option<T> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, rest) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut rest = rest.to_vec();
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(PURPOSE), &mut rest)
            .ok()?;
        let sealed: SealedValue<T> = serde_json::from_slice(plain).ok()?;
        // The id is used up last, so a value that has expired takes no place in the list.
        if sealed.ends_ms <= now.unix_ms() || !self.use_up(sealed.id) {
            return None;
        }
        Some(sealed.value)
    }

    fn use_up(&self, id: String) -> bool {
        let mut used = self.used.lock();
        if used.contains(&id) {
            return false;
        }
        // Bounded, so that finished logins cannot fill the memory.
        if used.len() >= MAX_USED {
            used.pop_front();
        }
        used.push_back(id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_timestamp(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(ms)
    }

    #[test]
    fn sealed_login_opens_once_before_expiry() {
        let (seal, other) = (LoginSeal::new().expect("key"), LoginSeal::new().expect("key"));
        let text = seal.seal("/runs", build_timestamp(100)).expect("sealed");
        assert_eq!(other.open_once::<String>(&text, build_timestamp(1)), None);
        assert_eq!(
            seal.open_once::<String>(&text, build_timestamp(1)).as_deref(),
            Some("/runs")
        );
        assert_eq!(seal.open_once::<String>(&text, build_timestamp(1)), None);
        let late = seal.seal("/runs", build_timestamp(100)).expect("sealed");
        assert_eq!(seal.open_once::<String>(&late, build_timestamp(100)), None);
    }

    #[test]
    fn altered_login_does_not_open() {
        let seal = LoginSeal::new().expect("key");
        let text = seal.seal("/runs", build_timestamp(100)).expect("sealed");
        assert!(!text.contains("runs"));
        for at_byte in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at_byte] = if bytes[at_byte] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(bytes).expect("text");
            assert_eq!(
                seal.open_once::<String>(&altered, build_timestamp(1)),
                None,
                "{at_byte}"
            );
        }
        for nothing in ["", "AAAA", "guessed", "{}"] {
            assert_eq!(seal.open_once::<String>(nothing, build_timestamp(1)), None);
        }
    }

    #[test]
    fn begun_logins_of_strangers_keep_nothing_here() {
        let seal = LoginSeal::new().expect("key");
        let ours = seal.seal("/runs", build_timestamp(100)).expect("sealed");
        for _ in 0..5_000 {
            seal.seal("/", build_timestamp(100)).expect("sealed");
        }
        assert!(seal.used.lock().is_empty());
        assert!(seal.open_once::<String>(&ours, build_timestamp(1)).is_some());
    }
}
