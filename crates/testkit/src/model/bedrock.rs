//! Amazon Bedrock around the Messages interface: verification of AWS signatures, and event stream frames.

use axum::http::{HeaderMap, Method, Uri};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use data_encoding::HEXLOWER;
use percent_encoding::{percent_decode_str, utf8_percent_encode};
use ring::{digest, hmac};
use serde_json::{Value, json};

use crate::http::{ENCODED_IN_PATHS, header_text};

/// Access key id that the stand-in accepts.
pub const MODEL_ACCESS_KEY_ID: &str = "AKIASTANDIN";
/// Secret of the access key.
pub const MODEL_SECRET_ACCESS_KEY: &str = "secret-of-the-stand-in";
/// AWS region of the stand-in.
pub const MODEL_REGION: &str = "eu-central-1";
const VERSION: &str = "bedrock-2023-05-31";

/// Converts a Bedrock request into one of the Messages interface. The model comes from the path.
pub(super) fn unwrap_request(uri: &Uri, mut body: Value) -> Result<Value, String> {
    let model = uri.path().split('/').nth(2).unwrap_or_default();
    let fields = body.as_object_mut().ok_or("the body is not a JSON object")?;
    if fields.remove("anthropic_version") != Some(json!(VERSION)) {
        return Err(format!("anthropic_version: {VERSION} is required"));
    }
    // On Bedrock the path names the model, and the route selects the stream.
    for extra in ["model", "stream"] {
        if fields.contains_key(extra) {
            return Err(format!("{extra}: Extra inputs are not permitted"));
        }
    }
    fields.insert(
        "model".to_owned(),
        json!(percent_decode_str(model).decode_utf8_lossy()),
    );
    fields.insert("stream".to_owned(), json!(true));
    Ok(body)
}

/// True if the request's AWS Signature Version 4 matches the stand-in's key.
pub(super) fn is_signed(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> bool {
    signature_fits(method, uri, headers, body).unwrap_or(false)
}

fn signature_fits(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Option<bool> {
    let authorization = header_text(headers, "authorization");
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let field = |name: &str| {
        let found = fields.split(", ").find_map(|field| field.strip_prefix(name))?;
        found.strip_prefix('=')
    };
    let (key, scope) = field("Credential")?.split_once('/')?;
    let at = header_text(headers, "x-amz-date");
    let day = at.get(..8)?;
    if key != MODEL_ACCESS_KEY_ID || scope != format!("{day}/{MODEL_REGION}/bedrock/aws4_request") {
        return Some(false);
    }
    let signed = field("SignedHeaders")?;
    let names: Vec<&str> = signed.split(';').collect();
    // Without these headers a signature would be valid on any host and at any time.
    if !["host", "x-amz-date"].iter().all(|needed| names.contains(needed)) {
        return Some(false);
    }
    let lines: String = names
        .iter()
        .map(|name| format!("{name}:{}\n", header_text(headers, name).trim()))
        .collect();
    // Signature Version 4 encodes each path segment a second time for every service except S3.
    let path = utf8_percent_encode(uri.path(), ENCODED_IN_PATHS);
    // Canonical request of Signature Version 4: method, path, query, headers, names of the headers, digest of
    // the body.
    let request = format!(
        "{method}\n{path}\n{}\n{lines}\n{signed}\n{}",
        uri.query().unwrap_or_default(),
        hash_sha256(body),
    );
    let text = format!(
        "AWS4-HMAC-SHA256\n{at}\n{scope}\n{}",
        hash_sha256(request.as_bytes())
    );
    // The signing key is derived step by step from day, region, service and terminator.
    let mut key = format!("AWS4{MODEL_SECRET_ACCESS_KEY}").into_bytes();
    for part in scope.split('/') {
        key = hmac_of(&key, part);
    }
    Some(HEXLOWER.encode(&hmac_of(&key, &text)) == field("Signature")?)
}

fn hmac_of(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hash_sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Renders events of the Messages interface as event stream frames.
pub(super) fn frame_events(events: &[Value]) -> Vec<u8> {
    let frame_of = |event: &Value| {
        let payload = json!({ "bytes": STANDARD.encode(event.to_string()), "p": "abcdefgh" });
        encode_event_frame(
            &[
                (":event-type", "chunk"),
                (":content-type", "application/json"),
                (":message-type", "event"),
            ],
            payload.to_string().as_bytes(),
        )
    };
    events.iter().flat_map(frame_of).collect()
}

/// Renders a message of an AWS event stream with text headers.
#[must_use]
pub fn encode_event_frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    // Header type 7 is a string. Two lengths and two checksums of four bytes surround headers and payload.
    const TEXT: u8 = 7;
    const AROUND: usize = 16;
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        head.extend(name.as_bytes());
        head.push(TEXT);
        head.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        head.extend(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    // Total length, length of the headers, checksum of both, headers, payload, checksum of everything.
    let mut message = Vec::new();
    message.extend(length(AROUND + head.len() + payload.len()));
    message.extend(length(head.len()));
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message.extend(head);
    message.extend(payload);
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message
}

/// Renders an error body. The error's class is in the header `x-amzn-errortype`.
pub(super) fn render_error(message: &str) -> Value {
    json!({ "message": message })
}
