//! The format of stored records: every record says which format it has, and is read by that.
//!
//! Processes of two releases work side by side during a rollout, and an older release comes back after a rollback. So
//! readers are tolerant: fields that they do not know are ignored, fields that are absent have defaults. A change that an
//! older reader must not ignore (a new variant, a field that changes what another means) gives the records that carry it
//! a newer format, which an older reader recognises and leaves alone.

use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::RecordKind;

/// A record that may be read by another release than the one that wrote it. It is stored as a JSON object, with its
/// format in the field `version`.
pub trait Stored: Serialize + DeserializeOwned {
    /// What it is.
    const KIND: RecordKind;

    /// The newest format that this release reads and writes.
    const VERSION: u32 = 1;

    /// The oldest format whose readers understand this record. A release that adds a variant answers its new format for
    /// that variant only, so that an older release still reads everything else.
    fn version(&self) -> u32 {
        1
    }

    /// Changes a record of the format `from` into one of the next format.
    fn upcast(from: u32, record: &mut Map<String, Value>) {
        let _ = (from, record);
    }
}

/// Why a record could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// A newer release wrote it. A process of that release reads it.
    #[error("its format {version} is newer than {newest}, the newest that this release reads")]
    Newer {
        /// Its format.
        version: u32,
        /// The newest format that can be read here.
        newest: u32,
    },
    /// It is not such a record; in words, without its content.
    #[error("{0}")]
    Broken(String),
}

#[derive(Serialize)]
struct Envelope<'a, T> {
    version: u32,
    #[serde(flatten)]
    record: &'a T,
}

#[derive(Deserialize)]
struct Format {
    #[serde(default = "first")]
    version: u32,
}

const fn first() -> u32 {
    1
}

/// A record as it is stored.
///
/// # Errors
/// When it is not a JSON object, which is a mistake in its type.
pub fn encode<T: Stored>(record: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Envelope {
        version: record.version(),
        record,
    })
}

/// The same as text, for a header.
///
/// # Errors
/// As [`encode`].
pub fn encode_text<T: Stored>(record: &T) -> serde_json::Result<String> {
    serde_json::to_string(&Envelope {
        version: record.version(),
        record,
    })
}

/// A stored record. Older formats are brought up to the current one first.
///
/// # Errors
/// [`Undecodable`]; whether it was written by a newer release is known even if nothing else can be read.
pub fn decode<T: Stored>(body: &[u8]) -> Result<T, Undecodable> {
    decode_as(body, T::VERSION)
}

/// The same as a release does whose newest format is at most `newest`.
///
/// # Errors
/// As [`decode`].
pub fn decode_as<T: Stored>(body: &[u8], newest: u32) -> Result<T, Undecodable> {
    let broken = |error: serde_json::Error| Undecodable::Broken(error.to_string());
    // A list would be taken for the fields of a record in their order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Undecodable::Broken("it is not a JSON object".to_owned()));
    }
    let Format { version } = serde_json::from_slice(body).map_err(broken)?;
    let newest = newest.min(T::VERSION);
    if version > newest {
        return Err(Undecodable::Newer { version, newest });
    }
    if version == T::VERSION {
        return serde_json::from_slice(body).map_err(broken);
    }
    let mut record = serde_json::from_slice(body).map_err(broken)?;
    for from in version..T::VERSION {
        T::upcast(from, &mut record);
    }
    serde_json::from_value(Value::Object(record)).map_err(broken)
}

/// A record of any kind, as its fields; a format in the field `version` is kept. For tools and tests that look at what is
/// stored or write what another release would.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct AnyRecord(pub Map<String, Value>);

impl Serialize for AnyRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.iter().filter(|(name, _)| *name != "version");
        serializer.collect_map(fields)
    }
}

impl Stored for AnyRecord {
    const KIND: RecordKind = RecordKind::Control;
    const VERSION: u32 = 99;

    fn version(&self) -> u32 {
        let version = self.0.get("version").and_then(Value::as_u64);
        version
            .and_then(|version| u32::try_from(version).ok())
            .unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Parcel {
        grams: u64,
        #[serde(default)]
        note: Option<Note>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Note {
        Fragile,
        /// Since format 3.
        Cold,
    }

    impl Stored for Parcel {
        const KIND: RecordKind = RecordKind::Control;
        const VERSION: u32 = 3;

        fn version(&self) -> u32 {
            match self.note {
                Some(Note::Cold) => 3,
                Some(Note::Fragile) | None => 2,
            }
        }

        fn upcast(from: u32, record: &mut Map<String, Value>) {
            if from == 1 {
                let kilograms = record.get("kilograms").and_then(Value::as_u64);
                record.insert(
                    "grams".to_owned(),
                    kilograms.map(|kilograms| kilograms * 1000).into(),
                );
            }
        }
    }

    fn decoded(body: &str) -> Result<Parcel, Undecodable> {
        decode(body.as_bytes())
    }

    #[test]
    fn a_record_carries_the_oldest_format_that_understands_it() {
        let text = |note| String::from_utf8(encode(&Parcel { grams: 5, note }).unwrap()).unwrap();
        assert_eq!(text(None), r#"{"version":2,"grams":5,"note":null}"#);
        assert_eq!(text(Some(Note::Cold)), r#"{"version":3,"grams":5,"note":"cold"}"#);
    }

    #[test]
    fn older_formats_are_brought_up_step_by_step() {
        let parcel = Parcel {
            grams: 4000,
            note: None,
        };
        for body in [
            r#"{"kilograms":4}"#,
            r#"{"version":1,"kilograms":4}"#,
            r#"{"version":2,"grams":4000}"#,
        ] {
            assert_eq!(decoded(body).unwrap(), parcel, "{body}");
        }
    }

    #[test]
    fn a_newer_record_is_told_from_a_broken_one_even_if_nothing_else_of_it_is_known() {
        let newer = Err(Undecodable::Newer {
            version: 4,
            newest: 3,
        });
        assert_eq!(decoded(r#"{"version":4,"weight":{"unit":"g"}}"#), newer);
        assert_eq!(decoded(r#"{"version":4,"grams":1}"#), newer);
        for broken in [r#"{"version":3}"#, r#"{"version":"x","grams":1}"#, "{", "[]", ""] {
            assert!(matches!(decoded(broken), Err(Undecodable::Broken(_))), "{broken}");
        }
    }

    #[test]
    fn fields_that_this_release_does_not_know_are_ignored() {
        let body = r#"{"version":3,"grams":1,"colour":"red"}"#;
        assert_eq!(decoded(body).unwrap().grams, 1);
    }
}
