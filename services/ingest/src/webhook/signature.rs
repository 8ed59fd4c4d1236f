//! Webhook signatures: HMAC-SHA256 over the raw body, checked before the body is parsed.

use axum::http::HeaderMap;
use bytes::Bytes;
use ring::hmac;

use crate::{config::SecretList, hex};

/// Active secrets of one webhook.
pub(crate) struct WebhookKeys(Vec<hmac::Key>);

/// Well-formed signature that is not verified yet. It comes from the headers alone, so that a request without one is
/// refused before its body is read.
#[derive(Debug)]
pub(crate) struct ClaimedSignature([u8; 32]);

/// Body signed with one of our secrets. Only [`WebhookKeys::verify`] creates one.
#[derive(Debug)]
pub(crate) struct VerifiedBody(Bytes);

/// Missing or wrong signature. All causes share one error, so that a caller learns nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature is missing or wrong")]
pub(crate) struct BadSignature;

impl VerifiedBody {
    pub(crate) fn body(&self) -> &Bytes {
        &self.0
    }
}

impl WebhookKeys {
    pub(crate) fn new(secrets: &SecretList) -> Self {
        Self(
            secrets
                .bytes()
                .map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret))
                .collect(),
        )
    }

    /// Accepts a body that the claimed tag signs with one of the secrets.
    pub(crate) fn verify(
        &self,
        claimed: &ClaimedSignature,
        body: Bytes,
    ) -> Result<VerifiedBody, BadSignature> {
        // All keys are tried without a short circuit, so that the time does not reveal the matching key.
        let known = self.0.iter().fold(false, |known, key| {
            known | hmac::verify(key, &body, &claimed.0).is_ok()
        });
        if known {
            Ok(VerifiedBody(body))
        } else {
            Err(BadSignature)
        }
    }
}

impl ClaimedSignature {
    /// Parses exactly one header `name` of the form `sha256=` and 64 hexadecimal digits. A repeated header is
    /// refused.
    pub(crate) fn read(headers: &HeaderMap, name: &str) -> Result<Self, BadSignature> {
        let mut values = headers.get_all(name).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(BadSignature);
        };
        let digits = value.to_str().ok().and_then(|text| text.strip_prefix("sha256="));
        digits.and_then(hex::decode_sha256).map(Self).ok_or(BadSignature)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const HEADER: &str = "x-hub-signature-256";
    const BODY: &[u8] = b"{\"zen\": \"Keep it logically awesome.\"}";

    fn build_webhook_keys(secrets: &[&str]) -> WebhookKeys {
        WebhookKeys::new(&SecretList::new(
            secrets.iter().map(|secret| (*secret).to_owned()),
        ))
    }

    fn sign_body(secret: &str, body: &[u8]) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body);
        format!("sha256={}", data_encoding::HEXLOWER.encode(tag.as_ref()))
    }

    fn has_valid_signature(keys: &WebhookKeys, values: &[&[u8]]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value).expect("header");
            headers.append(HeaderName::from_static(HEADER), value);
        }
        ClaimedSignature::read(&headers, HEADER)
            .is_ok_and(|claimed| keys.verify(&claimed, Bytes::from_static(BODY)).is_ok())
    }

    #[test]
    fn each_active_secret_verifies_signature() {
        let keys = build_webhook_keys(&["new", "old"]);
        for secret in ["new", "old"] {
            assert!(
                has_valid_signature(&keys, &[sign_body(secret, BODY).as_bytes()]),
                "{secret}"
            );
        }
        let upper = sign_body("new", BODY).replace("sha256=", "").to_uppercase();
        assert!(
            has_valid_signature(&keys, &[format!("sha256={upper}").as_bytes()]),
            "upper-case digits"
        );
    }

    #[test]
    fn everything_else_is_refused() {
        let keys = build_webhook_keys(&["new", "old"]);
        let good = sign_body("new", BODY);
        let digits = &good["sha256=".len()..];
        let malformed: [Vec<u8>; 20] = [
            b"".to_vec(),
            b"sha256=".to_vec(),
            b"sha256".to_vec(),
            digits.as_bytes().to_vec(),
            format!("sha1={}", &digits[..40]).into_bytes(),
            format!("sha1={digits}").into_bytes(),
            format!("SHA256={digits}").into_bytes(),
            format!("sha512={digits}").into_bytes(),
            format!("sha256:{digits}").into_bytes(),
            format!("sha256= {digits}").into_bytes(),
            format!(" {good}").into_bytes(),
            format!("{good} ").into_bytes(),
            format!("{good},{good}").into_bytes(),
            format!("{good}00").into_bytes(),
            good.as_bytes()[..good.len() - 1].to_vec(),
            good.as_bytes()[..good.len() - 2].to_vec(),
            format!("{}zz", &good[..good.len() - 2]).into_bytes(),
            format!("sha256={}", "0".repeat(64)).into_bytes(),
            [good.as_bytes(), b"\xff"].concat(),
            sign_body("stranger", BODY).into_bytes(),
        ];
        for value in malformed {
            assert!(
                !has_valid_signature(&keys, &[&value]),
                "{:?}",
                String::from_utf8_lossy(&value)
            );
        }
    }

    #[test]
    fn a_signature_of_another_body_is_refused() {
        assert!(!has_valid_signature(
            &build_webhook_keys(&["new"]),
            &[sign_body("new", b"{}").as_bytes()]
        ));
    }

    #[test]
    fn no_header_and_two_headers_are_refused() {
        let keys = build_webhook_keys(&["new"]);
        let good = sign_body("new", BODY);
        assert!(!has_valid_signature(&keys, &[]));
        assert!(!has_valid_signature(&keys, &[good.as_bytes(), good.as_bytes()]));
    }

    #[test]
    fn without_a_secret_nothing_passes() {
        assert!(!has_valid_signature(
            &build_webhook_keys(&[]),
            &[sign_body("", BODY).as_bytes()]
        ));
    }
}
