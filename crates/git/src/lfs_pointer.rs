//! Pointers of Git LFS: the text that a commit contains instead of a large file.

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

const VERSION: &str = "version https://git-lfs.github.com/spec/v1";
// Maximum size of a pointer, in bytes. The specification requires less than 1,024.
pub(crate) const MAX_POINTER: usize = 1024;
// Length of a SHA-256 in hexadecimal digits.
const DIGITS: usize = 64;

/// Name of a content in Git LFS: its SHA-256 in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LfsOid(String);

/// Text that is not the name of a content in Git LFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 of 64 lower-case hexadecimal digits")]
pub struct InvalidLfsOid;

impl LfsOid {
    /// Computes the name of a content.
    pub fn of(content: &[u8]) -> Self {
        Self(HEXLOWER.encode(digest(&SHA256, content).as_ref()))
    }

    /// Text of the name, 64 lower-case hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LfsOid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LfsOid {
    type Err = InvalidLfsOid;

    fn from_str(text: &str) -> Result<Self, InvalidLfsOid> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for LfsOid {
    type Error = InvalidLfsOid;

    fn try_from(text: String) -> Result<Self, InvalidLfsOid> {
        // It becomes the name of a file, so nothing else may pass.
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == DIGITS && text.bytes().all(is_digit) {
            Ok(Self(text))
        } else {
            Err(InvalidLfsOid)
        }
    }
}

impl From<LfsOid> for String {
    fn from(oid: LfsOid) -> Self {
        oid.0
    }
}

/// Pointer of Git LFS: name and size of the content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LfsPointer {
    /// Name of the content.
    pub oid: LfsOid,
    /// Size of the content in bytes.
    pub size: u64,
}

/// File of a commit whose content is in Git LFS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LfsFile {
    /// Path relative to the root.
    pub path: String,
    /// Pointer that the commit contains.
    pub pointer: LfsPointer,
}

impl LfsPointer {
    /// Parses a pointer; `None` for other contents, and for pointers with extensions, whose content only the programs
    /// of these extensions can restore.
    pub fn parse(content: &[u8]) -> Option<Self> {
        if content.len() > MAX_POINTER {
            return None;
        }
        let text = std::str::from_utf8(content).ok()?.strip_suffix('\n')?;
        let mut lines = text.split('\n');
        if lines.next() != Some(VERSION) {
            return None;
        }
        let oid = lines.next()?.strip_prefix("oid sha256:")?.parse().ok()?;
        let size = lines.next()?.strip_prefix("size ")?;
        let is_number = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
        let size = size.parse().ok().filter(|_| is_number)?;
        lines.next().is_none().then_some(Self { oid, size })
    }

    /// Text that a commit contains for the content.
    pub fn render(&self) -> String {
        format!("{VERSION}\noid sha256:{}\nsize {}\n", self.oid, self.size)
    }
}

/// Contents of Git LFS at a commit: those that the git gate serves, and those that it leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LfsListing {
    /// Contents that the gate serves.
    pub contents: Vec<LfsPointer>,
    /// Contents that are missing, each with the reason.
    #[serde(default)]
    pub left_out: Vec<LfsOmission>,
}

/// Content that the git gate leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LfsOmission {
    /// Pointer of the content.
    pub pointer: LfsPointer,
    /// Reason, for the operator and the model.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Option<LfsPointer> {
        LfsPointer::parse(text.as_bytes())
    }

    #[test]
    fn pointer_is_parsed_and_rendered() {
        let oid = "4d7a".repeat(16);
        let text = format!("{VERSION}\noid sha256:{oid}\nsize 12345\n");
        let pointer = parse(&text).unwrap();
        assert_eq!((pointer.oid.as_str(), pointer.size), (oid.as_str(), 12_345));
        assert_eq!(pointer.render(), text);
        for wrong in [
            String::new(),
            text.trim_end().to_owned(),
            format!("{text}\n"),
            format!("{text}x y\n"),
            text.replace('\n', "\r\n"),
            text.replace("sha256", "sha1"),
            text.replace("4d7a", "4D7A"),
            text.replacen("4d7a", "4d7", 1),
            text.replacen("4d7a", "../a", 1),
            text.replace("12345", "-1"),
            text.replace("12345", "+1"),
            text.replace("12345", ""),
            text.replace("12345", "99999999999999999999999"),
            text.replace("spec/v1", "spec/v2"),
            text.replace("oid", &format!("ext-0-x sha256:{oid}\noid")),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn oid_is_read_from_json() {
        let json = format!("\"{}\"", "a".repeat(DIGITS));
        let oid: LfsOid = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&oid).unwrap(), json);
        assert!(serde_json::from_str::<LfsOid>("\"../../etc\"").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_parsed_bytes_render_back_unchanged(tail in ".{0,200}", has_version: bool) {
            let text = if has_version { format!("{VERSION}\n{tail}\n") } else { tail };
            if let Some(pointer) = parse(&text) {
                prop_assert_eq!(parse(&pointer.render()), Some(pointer));
            }
        }
    }
}
