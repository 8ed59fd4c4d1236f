//! Verification of grants, by executors, git gates and egress proxies.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use domain::Timestamp;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::de::DeserializeOwned;

use crate::{
    Grant, GrantAudience, GrantRefusal,
    claims::{
        GrantClaims, GrantHeader, LIFETIME_S, StatusClaims, TokenValidity, decode_bytes, decode_part,
        refuse_malformed,
    },
    signature_cache::{SignatureCache, TokenDigest},
};

// Accepted lead of a planner's clock, in seconds.
const CLOCK_SKEW_S: i64 = 30;

/// Verifier with public keys only. Cheap to clone.
#[derive(Clone)]
pub struct GrantVerifier {
    keys: Arc<BTreeMap<String, Vec<u8>>>,
    signatures: Arc<SignatureCache>,
}

impl GrantVerifier {
    /// Creates a verifier with public keys (raw 32 bytes, base64) by key id. During a rotation two keys are
    /// valid.
    ///
    /// # Errors
    /// [`GrantRefusal`] without a key, or when a key is not 32 bytes in base64.
    pub fn new(public_keys: &BTreeMap<String, String>) -> Result<Self, GrantRefusal> {
        if public_keys.is_empty() {
            return Err(GrantRefusal::new("at least one public key is needed"));
        }
        let keys = public_keys
            .iter()
            .map(|(id, text)| Ok((id.clone(), read_public(id, text)?)));
        Ok(Self {
            keys: Arc::new(keys.collect::<Result<_, GrantRefusal>>()?),
            signatures: Arc::default(),
        })
    }

    /// Verifies a token and returns its grant.
    ///
    /// # Errors
    /// [`GrantRefusal`] when the token is malformed, signed by an unknown key, modified, for another audience,
    /// expired or not valid yet.
    pub fn verify(
        &self,
        token: &str,
        audience: GrantAudience,
        now: Timestamp,
    ) -> Result<Grant, GrantRefusal> {
        self.claims::<GrantClaims>(token, now)?.into_grant(audience)
    }

    /// Verifies a status grant, which names no run.
    ///
    /// # Errors
    /// Those of [`GrantVerifier::verify`].
    pub fn verify_status(&self, token: &str, now: Timestamp) -> Result<(), GrantRefusal> {
        self.claims::<StatusClaims>(token, now)?.check_audience()
    }

    fn claims<C: DeserializeOwned + TokenValidity>(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<C, GrantRefusal> {
        // The signature covers the encoded text of header and claims, not their parsed form.
        let (signed, signature) = token.rsplit_once('.').ok_or_else(refuse_malformed)?;
        let (header, claims) = signed.split_once('.').ok_or_else(refuse_malformed)?;
        let header: GrantHeader = decode_part(header)?;
        // The algorithm is fixed, so that a token cannot choose a weaker one.
        if header.alg != "EdDSA" {
            return Err(GrantRefusal::new("the grant is not signed with Ed25519"));
        }
        let key = self
            .keys
            .get(&header.kid)
            .ok_or_else(|| GrantRefusal::new("the grant's key id is unknown"))?;
        let digest = TokenDigest::of(token);
        let is_known = self.signatures.has(&digest);
        if !is_known {
            UnparsedPublicKey::new(&ED25519, key)
                .verify(signed.as_bytes(), &decode_bytes(signature)?)
                .map_err(|_| GrantRefusal::new("the grant's signature is wrong"))?;
        }
        // The claims are parsed after the signature is verified, so that no unsigned claim is read.
        let claims: C = decode_part(claims)?;
        check_time(&claims, now.unix_s())?;
        if !is_known {
            self.signatures.note(digest, claims.expires(), now.unix_s());
        }
        Ok(claims)
    }
}

fn check_time(claims: &impl TokenValidity, now_s: i64) -> Result<(), GrantRefusal> {
    let (not_before, expires) = (claims.not_before(), claims.expires());
    // A signer with other settings must not issue a grant that is valid for longer.
    if expires.saturating_sub(not_before) > LIFETIME_S {
        return Err(GrantRefusal::new("the grant is valid for longer than 15 minutes"));
    }
    if now_s >= expires {
        let late = now_s.saturating_sub(expires);
        return Err(GrantRefusal::new(format!(
            "the grant has expired, {late} s ago by the clock here; if it is new, the clocks of planner and receiver differ"
        )));
    }
    if now_s.saturating_add(CLOCK_SKEW_S) < not_before {
        let ahead = not_before.saturating_sub(now_s);
        return Err(GrantRefusal::new(format!(
            "the grant is not valid yet: the planner's clock is {ahead} s ahead of the clock here, and at most {CLOCK_SKEW_S} s are \
             accepted; set the clocks (NTP)"
        )));
    }
    Ok(())
}

fn read_public(id: &str, text: &str) -> Result<Vec<u8>, GrantRefusal> {
    let key = STANDARD.decode(text.trim()).ok().filter(|key| key.len() == 32);
    key.ok_or_else(|| GrantRefusal::new(format!("the public key {id:?} must be 32 bytes in base64")))
}

#[cfg(test)]
mod tests {
    use domain::{RunFence, RunId, TicketKey};
    use secrecy::{ExposeSecret, SecretString};

    use super::*;
    use crate::{GrantSigner, KeyPair, claims::encode_part, generate_key_pair};

    const NOW: Timestamp = Timestamp::from_unix_ms(1_790_000_000_000);

    fn build_grant() -> Grant {
        Grant {
            audience: GrantAudience::Executor,
            run: RunId::new(TicketKey::jira("ENG-12").unwrap(), 57),
            repository: "acme/shop".parse().unwrap(),
            workspace: Some("w1".to_owned()),
            fence: RunFence::new(1, 9, 2),
            network: vec!["pypi.example".parse().unwrap()],
        }
    }

    fn sign_grant(pair: &KeyPair) -> SecretString {
        GrantSigner::new(&pair.id, &pair.private_key)
            .unwrap()
            .sign(&build_grant(), NOW)
            .unwrap()
    }

    fn build_verifier(pairs: &[&KeyPair]) -> GrantVerifier {
        GrantVerifier::new(
            &pairs
                .iter()
                .map(|pair| (pair.id.clone(), pair.public_key.clone()))
                .collect(),
        )
        .unwrap()
    }

    fn expect_refusal(
        verifier: &GrantVerifier,
        token: &str,
        audience: GrantAudience,
        now: Timestamp,
    ) -> String {
        verifier.verify(token, audience, now).unwrap_err().to_string()
    }

    #[test]
    fn grant_keeps_instance_of_repository_and_ticket() {
        let pair = generate_key_pair();
        let granted = Grant {
            run: RunId::new("jira+dc:ENG-12".parse().unwrap(), 57),
            repository: "ghe:acme/shop".parse().unwrap(),
            ..build_grant()
        };
        let signer = GrantSigner::new(&pair.id, &pair.private_key).unwrap();
        let token = signer.sign(&granted, NOW).unwrap();
        let read = build_verifier(&[&pair])
            .verify(token.expose_secret(), GrantAudience::Executor, NOW)
            .unwrap();
        assert_eq!(read, granted);
        assert_ne!(read.repository, build_grant().repository);
    }

    #[test]
    fn signed_grant_verifies_unchanged() {
        let pair = generate_key_pair();
        let token = sign_grant(&pair);
        let read = build_verifier(&[&pair])
            .verify(token.expose_secret(), GrantAudience::Executor, NOW)
            .unwrap();
        assert_eq!(read, build_grant());
    }

    #[test]
    fn status_grant_is_separate_from_others() {
        let pair = generate_key_pair();
        let status = GrantSigner::new(&pair.id, &pair.private_key)
            .unwrap()
            .sign_status(NOW)
            .unwrap();
        let verifier = build_verifier(&[&pair]);
        verifier.verify_status(status.expose_secret(), NOW).unwrap();
        assert!(
            verifier
                .verify(status.expose_secret(), GrantAudience::Executor, NOW)
                .is_err()
        );
        assert!(
            verifier
                .verify(status.expose_secret(), GrantAudience::Status, NOW)
                .is_err()
        );
        assert!(
            verifier
                .verify_status(sign_grant(&pair).expose_secret(), NOW)
                .is_err()
        );
        let expired = NOW.plus(std::time::Duration::from_secs(15 * 60));
        assert!(verifier.verify_status(status.expose_secret(), expired).is_err());
    }

    #[test]
    fn executor_grant_is_refused_at_gate() {
        let pair = generate_key_pair();
        let token = sign_grant(&pair);
        let refusal = expect_refusal(
            &build_verifier(&[&pair]),
            token.expose_secret(),
            GrantAudience::Gate,
            NOW,
        );
        assert_eq!(refusal, "the grant is for another audience");
    }

    #[test]
    fn a_grant_expires_after_fifteen_minutes() {
        let pair = generate_key_pair();
        let token = sign_grant(&pair);
        let verifier = build_verifier(&[&pair]);
        let last = NOW.plus_ms(15 * 60_000 - 1000);
        assert!(
            verifier
                .verify(token.expose_secret(), GrantAudience::Executor, last)
                .is_ok()
        );
        let late = NOW.plus_ms(15 * 60_000);
        assert_eq!(
            expect_refusal(&verifier, token.expose_secret(), GrantAudience::Executor, late),
            "the grant has expired, 0 s ago by the clock here; if it is new, the clocks of planner and receiver differ"
        );
    }

    #[test]
    fn known_signature_admits_no_other_use() {
        let pair = generate_key_pair();
        let token = sign_grant(&pair);
        let token = token.expose_secret();
        let verifier = build_verifier(&[&pair]);
        for _ in 0..2 {
            let read = verifier.verify(token, GrantAudience::Executor, NOW).unwrap();
            assert_eq!(read, build_grant());
        }
        assert!(verifier.signatures.has(&TokenDigest::of(token)));
        let refusal = |token: &str, audience, now| expect_refusal(&verifier, token, audience, now);
        assert_eq!(
            refusal(token, GrantAudience::Gate, NOW),
            "the grant is for another audience"
        );
        let (late, early) = (NOW.plus_ms(15 * 60_000), NOW.plus_ms(-60_000));
        assert!(refusal(token, GrantAudience::Executor, late).starts_with("the grant has expired"));
        assert!(refusal(token, GrantAudience::Executor, early).starts_with("the grant is not valid yet"));
        assert!(verifier.verify_status(token, NOW).is_err());
        // Every part belongs to what is known.
        let parts: Vec<&str> = token.split('.').collect();
        let forged = sign_grant(&generate_key_pair());
        let forged = forged.expose_secret().rsplit('.').next().unwrap();
        let forged = format!("{}.{}.{forged}", parts[0], parts[1]);
        assert_eq!(
            refusal(&forged, GrantAudience::Executor, NOW),
            "the grant's signature is wrong"
        );
        assert!(
            build_verifier(&[&generate_key_pair()])
                .verify(token, GrantAudience::Executor, NOW)
                .is_err()
        );
    }

    #[test]
    fn refused_token_is_not_remembered() {
        let pair = generate_key_pair();
        let token = sign_grant(&pair);
        let verifier = build_verifier(&[&pair]);
        let late = NOW.plus_ms(15 * 60_000);
        expect_refusal(&verifier, token.expose_secret(), GrantAudience::Executor, late);
        assert!(!verifier.signatures.has(&TokenDigest::of(token.expose_secret())));
    }

    #[test]
    fn grant_from_far_ahead_clock_is_refused() {
        let pair = generate_key_pair();
        let token = sign_grant(&pair);
        let early = NOW.plus_ms(-60_000);
        let refusal = expect_refusal(
            &build_verifier(&[&pair]),
            token.expose_secret(),
            GrantAudience::Executor,
            early,
        );
        let words = "the planner's clock is 60 s ahead of the clock here, and at most 30 s are accepted; set the clocks (NTP)";
        assert_eq!(refusal, format!("the grant is not valid yet: {words}"));
    }

    #[test]
    fn an_unknown_key_id_is_refused() {
        let token = sign_grant(&generate_key_pair());
        let refusal = expect_refusal(
            &build_verifier(&[&generate_key_pair()]),
            token.expose_secret(),
            GrantAudience::Executor,
            NOW,
        );
        assert_eq!(refusal, "the grant's key id is unknown");
    }

    #[test]
    fn other_key_with_same_id_is_refused() {
        let (ours, theirs) = (generate_key_pair(), generate_key_pair());
        let forged = GrantSigner::new(&ours.id, &theirs.private_key)
            .unwrap()
            .sign(&build_grant(), NOW)
            .unwrap();
        let refusal = expect_refusal(
            &build_verifier(&[&ours]),
            forged.expose_secret(),
            GrantAudience::Executor,
            NOW,
        );
        assert_eq!(refusal, "the grant's signature is wrong");
    }

    #[test]
    fn a_tampered_grant_is_refused() {
        let pair = generate_key_pair();
        let token = sign_grant(&pair);
        let parts: Vec<&str> = token.expose_secret().split('.').collect();
        let other = Grant {
            repository: "acme/secrets".parse().unwrap(),
            ..build_grant()
        };
        let claims = encode_part(&GrantClaims::new(&other, NOW.unix_s())).unwrap();
        let tampered = format!("{}.{claims}.{}", parts[0], parts[2]);
        let refusal = expect_refusal(&build_verifier(&[&pair]), &tampered, GrantAudience::Executor, NOW);
        assert_eq!(refusal, "the grant's signature is wrong");
    }

    #[test]
    fn a_token_without_signature_algorithm_is_refused() {
        let pair = generate_key_pair();
        let header = encode_part(&GrantHeader {
            alg: "none".to_owned(),
            kid: pair.id.clone(),
        })
        .unwrap();
        let claims = encode_part(&GrantClaims::new(&build_grant(), NOW.unix_s())).unwrap();
        let refusal = expect_refusal(
            &build_verifier(&[&pair]),
            &format!("{header}.{claims}."),
            GrantAudience::Executor,
            NOW,
        );
        assert_eq!(refusal, "the grant is not signed with Ed25519");
    }

    #[test]
    fn both_keys_are_valid_during_rotation() {
        let (old, new) = (generate_key_pair(), generate_key_pair());
        let verifier = build_verifier(&[&old, &new]);
        for token in [sign_grant(&old), sign_grant(&new)] {
            assert!(
                verifier
                    .verify(token.expose_secret(), GrantAudience::Executor, NOW)
                    .is_ok()
            );
        }
    }

    #[test]
    fn garbage_is_malformed_and_never_shown() {
        let verifier = build_verifier(&[&generate_key_pair()]);
        for garbage in ["", "a", "a.b", "a.b.c", "....", "é.é.é"] {
            let refusal = expect_refusal(&verifier, garbage, GrantAudience::Executor, NOW);
            assert_eq!(refusal, "the grant is malformed");
        }
    }

    #[test]
    fn signer_returns_its_public_key() {
        let pair = generate_key_pair();
        let signer = GrantSigner::new(&pair.id, &pair.private_key).unwrap();
        assert_eq!(signer.public_key(), (pair.id, pair.public_key));
    }

    #[test]
    fn verifier_without_valid_keys_is_refused() {
        assert!(GrantVerifier::new(&BTreeMap::new()).is_err());
        assert!(GrantVerifier::new(&BTreeMap::from([("a".to_owned(), "AAAA".to_owned())])).is_err());
    }
}
