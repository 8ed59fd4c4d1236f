//! Private key of a GitHub App, and the tokens that it signs: JSON web tokens with RS256.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use parking_lot::Mutex;
use ring::{
    error::Unspecified,
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use time::OffsetDateTime;

use crate::Error;

// GitHub refuses a token from its future, and one that ends more than 10 minutes from its present. A minute
// on either side tolerates a clock that is ahead of GitHub's.
const BACKDATED_S: i64 = 60;
const LIFETIME_S: i64 = 9 * 60;
// A token serves a burst of calls. The rest of its lifetime tolerates a clock that is behind GitHub's.
const REUSED_S: i64 = 60;

/// Key of an App with the last token that it signed.
pub(crate) struct AppKey {
    app: u64,
    key: RsaKeyPair,
    last: Mutex<Option<SignedToken>>,
}

struct SignedToken {
    text: String,
    signed_at_s: i64,
}

impl SignedToken {
    fn is_usable(&self, now_s: i64) -> bool {
        // By the wall clock, as GitHub judges it: a token that was signed before the clock was set back comes
        // from the future, and a suspended machine does not count the time.
        (0..REUSED_S).contains(&now_s.saturating_sub(self.signed_at_s))
    }
}

impl AppKey {
    /// Parses an RSA key in PEM format, PKCS#1 (as GitHub issues it) or PKCS#8.
    pub(crate) fn parse(app: u64, pem: &SecretString) -> Result<Self, Error> {
        let invalid = |reason: String| Error::Unauthorized {
            check: format!("the private key is not an RSA key in PEM format{reason}"),
        };
        let key = match decode_pem(pem.expose_secret()) {
            Some(("RSA PRIVATE KEY", der)) => RsaKeyPair::from_der(&der),
            Some(("PRIVATE KEY", der)) => RsaKeyPair::from_pkcs8(&der),
            Some(_) | None => return Err(invalid(String::new())),
        };
        // ring names the class of the problem, such as `TooSmall`, and quotes nothing of the key.
        let key = key.map_err(|rejected| invalid(format!(": {rejected}")))?;
        Ok(Self {
            app,
            key,
            last: Mutex::default(),
        })
    }

    /// Returns a token that GitHub accepts now; most calls reuse the last one.
    pub(crate) fn token(&self) -> Result<String, Unspecified> {
        self.token_at(OffsetDateTime::now_utc().unix_timestamp())
    }

    fn token_at(&self, now_s: i64) -> Result<String, Unspecified> {
        // The lock is held while the token is signed (1 ms), so that concurrent calls share one.
        let mut last = self.last.lock();
        if let Some(token) = last.as_ref().filter(|token| token.is_usable(now_s)) {
            return Ok(token.text.clone());
        }
        let text = self.sign_token(now_s)?;
        *last = Some(SignedToken {
            text: text.clone(),
            signed_at_s: now_s,
        });
        Ok(text)
    }

    fn sign_token(&self, now_s: i64) -> Result<String, Unspecified> {
        let header = json!({ "typ": "JWT", "alg": "RS256" });
        let claims = json!({ "iss": self.app, "iat": now_s - BACKDATED_S, "exp": now_s + LIFETIME_S });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            signed.as_bytes(),
            &mut signature,
        )?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Label and content of the first PEM section. Line breaks may be missing or spaces, as in a variable of the
/// environment.
fn decode_pem(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.split_whitespace().collect();
    Some((label, STANDARD.decode(body).ok()?))
}

#[cfg(test)]
mod tests {
    use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use serde_json::Value;
    use testkit::github::APP_PRIVATE_KEY;

    use super::*;

    const NOW_S: i64 = 1_782_000_000;

    fn parse_key(pem: &str) -> Result<AppKey, Error> {
        AppKey::parse(7, &pem.into())
    }

    fn encode_pem(label: &str, der: &[u8]) -> String {
        format!(
            "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
            STANDARD.encode(der)
        )
    }

    /// Wraps a key as PKCS#8: version 0, the algorithm rsaEncryption, and the PKCS#1 form as an octet string.
    fn wrap_pkcs8(der: &[u8]) -> Vec<u8> {
        let head = b"\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
        let nest = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82], &length[..], content].concat()
        };
        nest(0x30, &[&head[..], &nest(0x04, der)].concat())
    }

    fn read_claims(key: &AppKey, token: &str) -> Value {
        let [header, claims, signature] = token.split('.').collect::<Vec<_>>()[..] else {
            panic!("{token}");
        };
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let header: Value = serde_json::from_slice(&decode(header)).unwrap();
        assert_eq!(header, json!({ "typ": "JWT", "alg": "RS256" }));
        let (signed, _) = token.rsplit_once('.').unwrap();
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.key.public_key())
            .verify(signed.as_bytes(), &decode(signature))
            .unwrap();
        serde_json::from_slice(&decode(claims)).unwrap()
    }

    #[test]
    fn token_is_signed_from_both_pem_forms() {
        let (_, der) = decode_pem(APP_PRIVATE_KEY).unwrap();
        let wrapped = encode_pem("PRIVATE KEY", &wrap_pkcs8(&der));
        let one_line = APP_PRIVATE_KEY.replace('\n', " ");
        let indented = APP_PRIVATE_KEY.replace('\n', "\r\n    ");
        for pem in [APP_PRIVATE_KEY, &wrapped, &one_line, &indented] {
            let key = parse_key(pem).unwrap();
            let claims = read_claims(&key, &key.token_at(NOW_S).unwrap());
            assert_eq!(claims, json!({ "iss": 7, "iat": NOW_S - 60, "exp": NOW_S + 540 }));
        }
    }

    #[test]
    fn token_is_reused_until_before_its_end() {
        let key = parse_key(APP_PRIVATE_KEY).unwrap();
        let first = key.token_at(NOW_S).unwrap();
        assert_eq!(key.token_at(NOW_S + REUSED_S - 1).unwrap(), first);
        let second = key.token_at(NOW_S + REUSED_S).unwrap();
        assert_eq!(read_claims(&key, &second)["exp"], NOW_S + REUSED_S + LIFETIME_S);
    }

    #[test]
    fn token_is_replaced_after_clock_step_back() {
        let key = parse_key(APP_PRIVATE_KEY).unwrap();
        key.token_at(NOW_S).unwrap();
        let earlier = key.token_at(NOW_S - 1).unwrap();
        assert_eq!(read_claims(&key, &earlier)["iat"], NOW_S - 1 - BACKDATED_S);
    }

    #[test]
    fn broken_key_is_refused_without_its_text() {
        let (_, der) = decode_pem(APP_PRIVATE_KEY).unwrap();
        let broken = [
            "secret-but-no-key".to_owned(),
            APP_PRIVATE_KEY.replace("RSA ", "EC "),
            APP_PRIVATE_KEY.replace("-----END", "-----"),
            encode_pem("PRIVATE KEY", &der),
            encode_pem("RSA PRIVATE KEY", &wrap_pkcs8(&der)),
            encode_pem("RSA PRIVATE KEY", &der[..der.len() / 2]),
            encode_pem("ENCRYPTED PRIVATE KEY", b"secret"),
            encode_pem("RSA PRIVATE KEY", b""),
        ];
        for pem in broken {
            let refused = parse_key(&pem).err().unwrap();
            let text = refused.to_string();
            let expected = "github refused the credentials: the private key is not an RSA key in PEM format";
            assert!(text.starts_with(expected), "{text}");
            assert!(text.len() < expected.len() + 40, "{text}");
            assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
        }
    }
}
