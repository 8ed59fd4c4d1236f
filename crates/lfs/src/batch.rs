//! Messages of the batch API of Git LFS, for downloads by basic transfer.

use std::collections::BTreeMap;

use git::{LfsOid, LfsPointer};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{AddressProblem, LfsError};

/// Maximum number of contents in one request, as git-lfs asks for.
pub const MAX_BATCH: usize = 100;
/// Media type of requests and answers.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";
// Limit of the headers that the server demands for one download.
const MAX_HEADERS: usize = 32;
// Headers that belong to the connection, or to the HTTP client.
const OWN_HEADERS: &[&str] = &[
    "host",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Address of a content, with the headers that its server demands.
#[derive(Clone)]
pub struct LfsAddress {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// True when the address needs no credentials of the account.
    pub(crate) is_authenticated: bool,
}

// Address and headers may contain a signature.
impl std::fmt::Debug for LfsAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LfsAddress")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

/// Addresses of contents, or the reasons why there are none.
pub type LfsAddresses = BTreeMap<LfsOid, Result<LfsAddress, LfsRefusal>>;

/// Reason why the server offers no usable address for a content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LfsRefusal {
    /// The server reports an error for this content.
    #[error("the Git LFS server does not have it ({0})")]
    Missing(u16),
    /// The server reports another error for this content.
    #[error("the Git LFS server refuses it ({0})")]
    Refused(u16),
    /// The answer contains no address for this content.
    #[error("the Git LFS server offers no download")]
    NoDownload,
    /// The server knows the content with another size.
    #[error("the Git LFS server has it with another size than its pointer")]
    OtherSize,
    /// The address cannot be used.
    #[error("the Git LFS server names an address that is not followed: {0}")]
    Address(#[from] AddressProblem),
    /// The headers of the download cannot be used.
    #[error("the Git LFS server demands headers that cannot be sent")]
    Headers,
}

#[derive(Serialize)]
pub(crate) struct BatchRequest<'a> {
    operation: &'static str,
    transfers: [&'static str; 1],
    objects: &'a [LfsPointer],
    hash_algo: &'static str,
}

impl<'a> BatchRequest<'a> {
    pub(crate) const fn new(objects: &'a [LfsPointer]) -> Self {
        Self {
            operation: "download",
            transfers: ["basic"],
            objects,
            hash_algo: "sha256",
        }
    }
}

#[derive(Deserialize)]
struct BatchAnswer {
    #[serde(default)]
    transfer: Option<String>,
    #[serde(default)]
    hash_algo: Option<String>,
    objects: Vec<AnsweredObject>,
}

#[derive(Deserialize)]
struct AnsweredObject {
    oid: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    authenticated: bool,
    #[serde(default)]
    actions: Option<ObjectActions>,
    #[serde(default)]
    error: Option<ObjectError>,
}

#[derive(Deserialize)]
struct ObjectActions {
    #[serde(default)]
    download: Option<DownloadAction>,
}

#[derive(Deserialize)]
struct DownloadAction {
    href: String,
    #[serde(default)]
    header: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct ObjectError {
    code: u16,
}

/// Parses the answer to a batch. Each wanted content has an entry.
pub(crate) fn parse_answer(body: &[u8], wanted: &[LfsPointer]) -> Result<LfsAddresses, LfsError> {
    let answer: BatchAnswer =
        serde_json::from_slice(body).map_err(|_| LfsError::Malformed("it is not the JSON of a batch"))?;
    if answer.transfer.is_some_and(|transfer| transfer != "basic") {
        return Err(LfsError::Malformed("it offers no basic transfer"));
    }
    if answer.hash_algo.is_some_and(|algorithm| algorithm != "sha256") {
        return Err(LfsError::Malformed("its hashes are not SHA-256"));
    }
    let mut found: LfsAddresses = wanted
        .iter()
        .map(|pointer| (pointer.oid.clone(), Err(LfsRefusal::NoDownload)))
        .collect();
    for object in answer.objects {
        let pointer = wanted.iter().find(|pointer| pointer.oid.as_str() == object.oid);
        // A content that was not requested is ignored.
        if let Some(pointer) = pointer {
            found.insert(pointer.oid.clone(), convert_object(object, pointer));
        }
    }
    Ok(found)
}

fn convert_object(object: AnsweredObject, pointer: &LfsPointer) -> Result<LfsAddress, LfsRefusal> {
    if let Some(error) = object.error {
        return Err(match error.code {
            404 | 410 => LfsRefusal::Missing(error.code),
            code => LfsRefusal::Refused(code),
        });
    }
    if object.size.is_some_and(|size| size != pointer.size) {
        return Err(LfsRefusal::OtherSize);
    }
    let action = object.actions.and_then(|actions| actions.download);
    let action = action.ok_or(LfsRefusal::NoDownload)?;
    let url = Url::parse(&action.href).map_err(|_| AddressProblem::NotUrl)?;
    if action.header.len() > MAX_HEADERS {
        return Err(LfsRefusal::Headers);
    }
    let mut headers = HeaderMap::new();
    for (name, value) in action.header {
        let name: HeaderName = name.parse().map_err(|_| LfsRefusal::Headers)?;
        let mut value: HeaderValue = value.parse().map_err(|_| LfsRefusal::Headers)?;
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(LfsRefusal::Headers);
        }
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(LfsAddress {
        url,
        headers,
        is_authenticated: object.authenticated,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn build_pointer(digit: &str) -> LfsPointer {
        LfsPointer {
            oid: digit.repeat(64).parse().unwrap(),
            size: 7,
        }
    }

    fn parse_one(object: &str) -> Result<LfsAddress, LfsRefusal> {
        let pointer = build_pointer("a");
        let object = object.replace("OID", pointer.oid.as_str());
        let body = format!(r#"{{"transfer":"basic","objects":[{object}]}}"#);
        let mut found = parse_answer(body.as_bytes(), std::slice::from_ref(&pointer)).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(&pointer.oid).unwrap()
    }

    #[test]
    fn request_is_that_of_specification() {
        let json = serde_json::to_value(BatchRequest::new(&[build_pointer("a")])).unwrap();
        let expected = serde_json::json!({"operation": "download", "transfers": ["basic"], "hash_algo": "sha256",
            "objects": [{"oid": "a".repeat(64), "size": 7}]});
        assert_eq!(json, expected);
    }

    #[test]
    fn download_has_address_and_headers() {
        let address = parse_one(
            r#"{"oid":"OID","size":7,"authenticated":true,"actions":{"download":{"href":"https://s.example/1?sig=secret",
               "header":{"Authorization":"RemoteAuth secret"},"expires_in":3600}}}"#,
        )
        .unwrap();
        assert_eq!(address.url.as_str(), "https://s.example/1?sig=secret");
        assert_eq!(address.headers["authorization"], "RemoteAuth secret");
        assert!(address.is_authenticated);
        assert!(!format!("{address:?}").contains("secret"));
    }

    #[test]
    fn unusable_objects_are_refused() {
        let with_header = |header: &str| {
            format!(
                r#"{{"oid":"OID","actions":{{"download":{{"href":"https://s.example/1","header":{header}}}}}}}"#
            )
        };
        for (object, expected) in [
            (
                r#"{"oid":"OID","size":7,"error":{"code":404,"message":"x"}}"#.to_owned(),
                LfsRefusal::Missing(404),
            ),
            (
                r#"{"oid":"OID","error":{"code":422}}"#.to_owned(),
                LfsRefusal::Refused(422),
            ),
            (
                r#"{"oid":"OID","size":8,"actions":{"download":{"href":"https://s.example/1"}}}"#.to_owned(),
                LfsRefusal::OtherSize,
            ),
            (r#"{"oid":"OID","size":7}"#.to_owned(), LfsRefusal::NoDownload),
            (
                r#"{"oid":"OID","actions":{"upload":{"href":"https://s.example/1"}}}"#.to_owned(),
                LfsRefusal::NoDownload,
            ),
            (r#"{"oid":"other"}"#.to_owned(), LfsRefusal::NoDownload),
            (
                r#"{"oid":"OID","actions":{"download":{"href":"/1"}}}"#.to_owned(),
                AddressProblem::NotUrl.into(),
            ),
            (with_header(r#"{"Host":"internal.example"}"#), LfsRefusal::Headers),
            (with_header(r#"{"a b":"x"}"#), LfsRefusal::Headers),
            (with_header(r#"{"x":"a\r\nb"}"#), LfsRefusal::Headers),
        ] {
            assert_eq!(parse_one(&object).unwrap_err(), expected, "{object}");
        }
    }

    #[test]
    fn foreign_answers_are_malformed() {
        for body in [
            "",
            "<html>",
            r#"{"objects":{}}"#,
            r#"{"transfer":"tus","objects":[]}"#,
            r#"{"hash_algo":"sha512","objects":[]}"#,
        ] {
            let refused = parse_answer(body.as_bytes(), &[]).unwrap_err();
            assert!(matches!(refused, LfsError::Malformed(_)), "{body}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_any_answer_is_parsed_without_panic(body in ".{0,200}", href in ".{0,60}", value in ".{0,40}") {
            let wanted = [build_pointer("a")];
            let _ = parse_answer(body.as_bytes(), &wanted);
            let object = serde_json::json!({"objects": [{"oid": "a".repeat(64), "size": 7,
                "actions": {"download": {"href": href, "header": {"X-Any": value}}}}]});
            let found = parse_answer(object.to_string().as_bytes(), &wanted).unwrap();
            prop_assert_eq!(found.len(), 1);
        }
    }
}
