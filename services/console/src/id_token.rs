//! Verification of ID tokens: signature by a key of the provider, issuer, audience, expiry and nonce
//! (`OpenID` Connect Core, section 3.1.3.7).

use std::iter;

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey, Header, Validation,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    decode, decode_header,
    errors::{Error, ErrorKind},
    jwk::{AlgorithmParameters, Jwk, PublicKeyUse},
    signature::{self, Verifier},
};
use ring::{
    error::Unspecified,
    signature::{
        self as ring_signature, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
        VerificationAlgorithm,
    },
};
use serde_json::Value;

// Largest difference between the clocks of the provider and of the console, in seconds.
const CLOCK_DIFFERENCE_S: u64 = 60;

/// Signature checks by ring, the only cryptography of the workspace.
static RING_PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_signing,
    verifier_factory: build_verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Reason why an ID token is not valid for a login.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdTokenError {
    #[error("its signature algorithm is not accepted")]
    Algorithm,
    #[error("no key of the provider fits its signature")]
    UnknownKey,
    #[error("it is for another client, too")]
    OtherAudience,
    #[error("its nonce is of another login")]
    Nonce,
    #[error(transparent)]
    Invalid(#[from] Error),
}

/// Expected content of an ID token.
pub(crate) struct ExpectedToken<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    /// Absent for a refreshed token: the standard does not require a nonce in it.
    pub(crate) nonce: Option<&'a str>,
}

impl ExpectedToken<'_> {
    /// Returns the claims of a token that one of the keys signed for this client and login.
    ///
    /// # Errors
    /// [`IdTokenError::UnknownKey`] when no key made the signature: the provider may have new keys.
    pub(crate) fn verify(&self, token: &str, keys: &[Jwk]) -> Result<Value, IdTokenError> {
        // The process may have the provider already: each console of a test installs it.
        let _ = RING_PROVIDER.install_default();
        let header = decode_header(token)?;
        if RingCheck::find(header.alg).is_none() {
            return Err(IdTokenError::Algorithm);
        }
        let mut validation = Validation::new(header.alg);
        // A provider may date a token's begin to the moment of the login, and its clock may be a little ahead.
        validation.validate_nbf = true;
        validation.leeway = CLOCK_DIFFERENCE_S;
        // Takes the leeway away from the expiry: an expired token stays refused.
        validation.reject_tokens_expiring_in_less_than = CLOCK_DIFFERENCE_S;
        validation.set_issuer(&[self.issuer]);
        validation.set_audience(&[self.client_id]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        for key in keys.iter().filter(|key| can_have_signed(key, &header)) {
            let Ok(key) = DecodingKey::from_jwk(key) else {
                continue;
            };
            match decode::<Value>(token, &key, &validation) {
                Ok(decoded) => return self.check_claims(decoded.claims),
                Err(error) if is_wrong_key(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(IdTokenError::UnknownKey)
    }

    fn check_claims(&self, claims: Value) -> Result<Value, IdTokenError> {
        let audiences: Vec<&Value> = match &claims["aud"] {
            Value::Array(audiences) => audiences.iter().collect(),
            single @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => iter::once(single).collect(),
        };
        // A token that another client may use could have been given to that client.
        if audiences.iter().any(|audience| **audience != self.client_id) {
            return Err(IdTokenError::OtherAudience);
        }
        if claims.get("azp").is_some_and(|party| *party != self.client_id) {
            return Err(IdTokenError::OtherAudience);
        }
        match self.nonce {
            Some(nonce) if claims["nonce"] != nonce => Err(IdTokenError::Nonce),
            Some(_) | None => Ok(claims),
        }
    }
}

/// Returns true if the published key may have made a signature with this header.
fn can_have_signed(key: &Jwk, header: &Header) -> bool {
    let family = match &key.algorithm {
        AlgorithmParameters::RSA(_) => Some(AlgorithmFamily::Rsa),
        AlgorithmParameters::EllipticCurve(_) => Some(AlgorithmFamily::Ec),
        AlgorithmParameters::OctetKeyPair(_) => Some(AlgorithmFamily::Ed),
        // A published symmetric key is not a secret.
        AlgorithmParameters::OctetKey(_) | AlgorithmParameters::Other(_) | _ => None,
    };
    let common = &key.common;
    let has_named_algorithm = match common.key_algorithm {
        Some(algorithm) => Algorithm::try_from(algorithm).is_ok_and(|algorithm| algorithm == header.alg),
        None => true,
    };
    family == Some(header.alg.family())
        && has_named_algorithm
        && (header.kid.is_none() || header.kid == common.key_id)
        && matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
}

/// Returns true if another key may still fit.
fn is_wrong_key(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidSignature | ErrorKind::InvalidKeyFormat
    )
}

/// Check of one algorithm's signatures by one key.
struct RingVerifier {
    algorithm: Algorithm,
    check: RingCheck,
    key: DecodingKey,
}

/// Parameters of ring for an algorithm.
enum RingCheck {
    /// The key is a modulus and an exponent.
    Rsa(&'static RsaParameters),
    /// The key is the bytes of a point.
    Point(&'static dyn VerificationAlgorithm),
}

impl RingCheck {
    /// Returns the parameters of an accepted algorithm.
    fn find(algorithm: Algorithm) -> Option<Self> {
        match algorithm {
            Algorithm::RS256 => Some(Self::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256)),
            Algorithm::RS384 => Some(Self::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384)),
            Algorithm::RS512 => Some(Self::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512)),
            Algorithm::PS256 => Some(Self::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256)),
            Algorithm::PS384 => Some(Self::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384)),
            Algorithm::PS512 => Some(Self::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512)),
            Algorithm::ES256 => Some(Self::Point(&ring_signature::ECDSA_P256_SHA256_FIXED)),
            Algorithm::ES384 => Some(Self::Point(&ring_signature::ECDSA_P384_SHA384_FIXED)),
            Algorithm::EdDSA => Some(Self::Point(&ring_signature::ED25519)),
            // A shared secret would let the console's own secret sign.
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 | _ => None,
        }
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (&self.check, self.key.kind()) {
            (RingCheck::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (RingCheck::Point(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            (RingCheck::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (RingCheck::Point(_), DecodingKeyKind::RsaModulusExponent { .. }) => Err(Unspecified),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn build_verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let check = RingCheck::find(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        check,
        key: key.clone(),
    }))
}

/// Refuses to sign: the console issues no tokens.
fn refuse_signing(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

#[cfg(test)]
mod tests {
    use std::{
        slice,
        time::{SystemTime, UNIX_EPOCH},
    };

    use base64::{
        Engine,
        engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
    };
    use ring::{
        rand::SystemRandom,
        signature::{
            ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaEncoding, RsaKeyPair,
        },
    };
    use serde_json::json;

    use super::*;

    const EXPECTED: ExpectedToken<'static> = ExpectedToken {
        issuer: "https://id.example",
        client_id: "console",
        nonce: Some("n-1"),
    };

    /// Signer with the key that it publishes.
    struct TokenIssuer {
        pair: EcdsaKeyPair,
        published: Value,
    }

    impl TokenIssuer {
        fn new(kid: &str) -> Self {
            let random = SystemRandom::new();
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
            let pair = pair.unwrap();
            let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
            let published = json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": kid,
                "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)});
            Self { pair, published }
        }

        fn key(&self) -> Jwk {
            serde_json::from_value(self.published.clone()).unwrap()
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let text = build_signed_text(header, claims);
            let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
            format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    fn build_signed_text(header: &Value, claims: &Value) -> String {
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        format!("{}.{}", encode(header), encode(claims))
    }

    fn build_claims(change: &Value) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = json!({"iss": "https://id.example", "aud": "console", "sub": "u-1", "nonce": "n-1",
            "exp": now + 60, "iat": now});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }

    #[test]
    fn token_of_published_key_is_accepted() {
        let (issuer, other) = (TokenIssuer::new("one"), TokenIssuer::new("two"));
        let keys = [other.key(), issuer.key()];
        let single = json!({"aud": ["console"], "azp": "console", "groups": ["ops"]});
        for header in [json!({"alg": "ES256", "kid": "one"}), json!({"alg": "ES256"})] {
            for change in [json!({}), single.clone()] {
                let token = issuer.sign(&header, &build_claims(&change));
                let claims = EXPECTED.verify(&token, &keys).unwrap();
                assert_eq!(claims["sub"], "u-1", "{header} {change}");
                assert_eq!(claims.get("groups"), change.get("groups"));
            }
        }
        let refreshed = issuer.sign(&json!({"alg": "ES256"}), &build_claims(&json!({"nonce": null})));
        let expected = ExpectedToken {
            nonce: None,
            ..EXPECTED
        };
        assert!(expected.verify(&refreshed, &keys).is_ok());
    }

    #[test]
    fn token_begin_tolerates_clock_difference() {
        let issuer = TokenIssuer::new("one");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        for (change, is_valid) in [
            (json!({"nbf": now}), true),
            (json!({"nbf": now + 30}), true),
            (json!({"nbf": now + 120}), false),
            (json!({"exp": now - 5}), false),
        ] {
            let token = issuer.sign(&json!({"alg": "ES256"}), &build_claims(&change));
            let verified = EXPECTED.verify(&token, &[issuer.key()]);
            assert_eq!(verified.is_ok(), is_valid, "{change}: {verified:?}");
        }
    }

    #[test]
    fn token_for_other_use_is_refused() {
        let issuer = TokenIssuer::new("one");
        for change in [
            json!({"iss": "https://id.example/"}),
            json!({"iss": null}),
            json!({"aud": "other"}),
            json!({"aud": ["console", "other"]}),
            json!({"aud": []}),
            json!({"aud": null}),
            json!({"azp": "other"}),
            json!({"sub": null}),
            json!({"sub": 7}),
            json!({"nonce": "n-2"}),
            json!({"nonce": null}),
            json!({"exp": 1}),
            json!({"exp": null}),
            json!({"exp": "2999-01-01"}),
            json!({"nbf": 99_999_999_999_u64}),
        ] {
            let token = issuer.sign(&json!({"alg": "ES256", "kid": "one"}), &build_claims(&change));
            assert!(EXPECTED.verify(&token, &[issuer.key()]).is_err(), "{change}");
        }
    }

    #[test]
    fn signature_that_no_published_key_made_is_refused() {
        let (issuer, other) = (TokenIssuer::new("one"), TokenIssuer::new("one"));
        let claims = build_claims(&json!({}));
        let named = json!({"alg": "ES256", "kid": "one"});
        let token = issuer.sign(&named, &claims);
        let unknown = |token: &str, key: &Value| {
            let key = serde_json::from_value(key.clone()).unwrap();
            let verified = EXPECTED.verify(token, &[key]);
            assert!(matches!(verified, Err(IdTokenError::UnknownKey)), "{verified:?}");
        };
        unknown(&token, &other.published);
        for change in [
            json!({"kid": "two"}),
            json!({"use": "enc"}),
            json!({"alg": "ES384"}),
            json!({"alg": "RSA-OAEP"}),
        ] {
            let mut key = issuer.published.clone();
            key.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            unknown(&token, &key);
        }
        // Another text under a signature of the right key.
        let (_, signature) = token.rsplit_once('.').unwrap();
        let forged = build_signed_text(&named, &build_claims(&json!({"sub": "u-2"})));
        unknown(&format!("{forged}.{signature}"), &issuer.published);
        // The published key as the secret of a symmetric signature, and no signature at all.
        for algorithm in ["HS256", "none", "ES512"] {
            let token = issuer.sign(&json!({"alg": algorithm, "kid": "one"}), &claims);
            let verified = EXPECTED.verify(&token, &[issuer.key()]);
            assert!(verified.is_err(), "{algorithm}");
        }
        for broken in ["", ".", "..", "a.b.c", "a.b.c.d"] {
            assert!(EXPECTED.verify(broken, &[issuer.key()]).is_err(), "{broken}");
        }
    }

    #[test]
    fn ed25519_token_is_accepted() {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let key = serde_json::from_value(json!({"kty": "OKP", "crv": "Ed25519", "x": x})).unwrap();
        let text = build_signed_text(&json!({"alg": "EdDSA"}), &build_claims(&json!({})));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(text.as_bytes()));
        assert!(EXPECTED.verify(&format!("{text}.{signature}"), &[key]).is_ok());
    }

    #[test]
    fn rsa_token_is_accepted_with_its_algorithm() {
        let pem = include_str!("../../../crates/testkit/data/app_key.pem");
        let lines = pem.lines().filter(|line| !line.starts_with("-----"));
        let der = STANDARD.decode(lines.collect::<String>()).unwrap();
        let pair = RsaKeyPair::from_der(&der).unwrap();
        let parts = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
        let key =
            json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(parts.n), "e": URL_SAFE_NO_PAD.encode(parts.e)});
        let key: Jwk = serde_json::from_value(key).unwrap();
        let encodings: [(&str, &dyn RsaEncoding); 2] = [
            ("RS256", &ring_signature::RSA_PKCS1_SHA256),
            ("PS384", &ring_signature::RSA_PSS_SHA384),
        ];
        for (algorithm, encoding) in encodings {
            let text = build_signed_text(&json!({"alg": algorithm}), &build_claims(&json!({})));
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(encoding, &SystemRandom::new(), text.as_bytes(), &mut signature)
                .unwrap();
            let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(&signature));
            assert!(
                EXPECTED.verify(&token, slice::from_ref(&key)).is_ok(),
                "{algorithm}"
            );
            // The same signature under the name of another algorithm.
            let text = build_signed_text(&json!({"alg": "RS512"}), &build_claims(&json!({})));
            let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(&signature));
            assert!(
                EXPECTED.verify(&token, slice::from_ref(&key)).is_err(),
                "{algorithm}"
            );
        }
    }
}
