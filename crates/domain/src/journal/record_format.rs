//! Format of stored records: every record contains its format number, and readers decode it by that number.
//!
//! Processes of two releases work in parallel during a rollout, and an older release returns after a
//! rollback. Readers are therefore tolerant: they ignore unknown fields, and absent fields have defaults.
//! Some changes must not be ignored by an older reader, such as a new variant or a field that changes the
//! meaning of another. Records with such a change get a newer format, which an older reader recognizes and
//! skips.

use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::journal::kind::RecordKind;

/// A record that another release than its writer may read. It is stored as a JSON object with its format in
/// the field `version`.
pub trait StoredRecord: Serialize + DeserializeOwned {
    /// Kind of the record.
    const KIND: RecordKind;

    /// The newest format that this release reads and writes.
    const VERSION: u32 = 1;

    /// The oldest format whose readers understand this record.
    ///
    /// A release that adds a variant returns its new format for that variant only, so that an older release
    /// still reads all other records.
    fn version(&self) -> u32 {
        1
    }

    /// Converts a record of the format `from` to the next format.
    fn upcast(from: u32, record: &mut Map<String, Value>) {
        let _ = (from, record);
    }
}

/// Error of decoding a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A newer release wrote the record. Only a process of that release can read it.
    #[error("its format {version} is newer than {newest}, the newest that this release reads")]
    Newer {
        /// Format of the record.
        version: u32,
        /// The newest format that this reader supports.
        newest: u32,
    },
    /// The record is invalid. The description does not contain its content.
    #[error("{0}")]
    Broken(String),
}

#[derive(Serialize)]
struct RecordEnvelope<'a, T> {
    version: u32,
    #[serde(flatten)]
    record: &'a T,
}

#[derive(Deserialize)]
struct RecordFormat {
    #[serde(default = "first_format")]
    version: u32,
}

const fn first_format() -> u32 {
    1
}

/// Returns true for the default value of a field. Records omit it, so they keep the form of earlier releases.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns true for a switch that is on by default. Records omit it like other defaults.
pub(crate) const fn is_true(value: &bool) -> bool {
    *value
}

/// Encodes a record as JSON with its format.
///
/// # Errors
/// When the record is not a JSON object, which is a defect of its type.
pub fn encode_stored_record<T: StoredRecord>(record: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&RecordEnvelope {
        version: record.version(),
        record,
    })
}

/// Encodes a record as text, for a header.
///
/// # Errors
/// The same as for [`encode_stored_record`].
pub fn encode_stored_text<T: StoredRecord>(record: &T) -> serde_json::Result<String> {
    serde_json::to_string(&RecordEnvelope {
        version: record.version(),
        record,
    })
}

/// Decodes a stored record and upgrades older formats.
///
/// # Errors
/// [`RecordError`]. A newer format is recognized even if no other field is readable.
pub fn decode_stored_record<T: StoredRecord>(body: &[u8]) -> Result<T, RecordError> {
    decode_stored_as(body, T::VERSION)
}

/// Decodes a record like a release whose newest format is `newest`.
///
/// # Errors
/// The same as for [`decode_stored_record`].
pub fn decode_stored_as<T: StoredRecord>(body: &[u8], newest: u32) -> Result<T, RecordError> {
    let broken = |error: serde_json::Error| RecordError::Broken(error.to_string());
    // serde would accept a list as the fields of a record in their order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(RecordError::Broken("it is not a JSON object".to_owned()));
    }
    // Every release writes the format first, so a record of the current format needs no search for it. If one is not
    // readable, the following lines find out why.
    if newest >= T::VERSION
        && begins_with_version(body, T::VERSION)
        && let Ok(record) = serde_json::from_slice(body)
    {
        return Ok(record);
    }
    // The format is read first, because the fields of a newer record may not have the expected types.
    let RecordFormat { version } = serde_json::from_slice(body).map_err(broken)?;
    let newest = newest.min(T::VERSION);
    if version > newest {
        return Err(RecordError::Newer { version, newest });
    }
    if version == T::VERSION {
        // The common case avoids the intermediate JSON value.
        return serde_json::from_slice(body).map_err(broken);
    }
    let mut record = serde_json::from_slice(body).map_err(broken)?;
    for from in version..T::VERSION {
        T::upcast(from, &mut record);
    }
    serde_json::from_value(Value::Object(record)).map_err(broken)
}

/// Returns true if the first field of a record is this format.
fn begins_with_version(body: &[u8], version: u32) -> bool {
    let rest = body.strip_prefix(br#"{"version":"#);
    let rest = rest.and_then(|rest| rest.strip_prefix(version.to_string().as_bytes()));
    rest.is_some_and(|rest| matches!(rest.first(), Some(b',' | b'}')))
}

/// A record of any kind as its fields; a format in the field `version` is kept. Tools and tests use it to
/// inspect records or to write those of another release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct AnyRecord(pub Map<String, Value>);

impl Serialize for AnyRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The envelope already writes the field.
        let fields = self.0.iter().filter(|(name, _)| *name != "version");
        serializer.collect_map(fields)
    }
}

impl StoredRecord for AnyRecord {
    const KIND: RecordKind = RecordKind::Control;
    // Tools and tests read records of every format.
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
        /// Exists since format 3.
        Cold,
    }

    impl StoredRecord for Parcel {
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

    fn decode_parcel(body: &str) -> Result<Parcel, RecordError> {
        decode_stored_record(body.as_bytes())
    }

    #[test]
    fn record_carries_oldest_sufficient_format() {
        let text =
            |note| String::from_utf8(encode_stored_record(&Parcel { grams: 5, note }).unwrap()).unwrap();
        assert_eq!(text(None), r#"{"version":2,"grams":5,"note":null}"#);
        assert_eq!(text(Some(Note::Cold)), r#"{"version":3,"grams":5,"note":"cold"}"#);
    }

    #[test]
    fn older_formats_are_upgraded_stepwise() {
        let parcel = Parcel {
            grams: 4000,
            note: None,
        };
        for body in [
            r#"{"kilograms":4}"#,
            r#"{"version":1,"kilograms":4}"#,
            r#"{"version":2,"grams":4000}"#,
        ] {
            assert_eq!(decode_parcel(body).unwrap(), parcel, "{body}");
        }
    }

    #[test]
    fn format_counts_at_any_place() {
        let parcel = Parcel { grams: 1, note: None };
        for body in [
            r#"{"version":3,"grams":1}"#,
            r#" { "version" : 3, "grams": 1 }"#,
            r#"{"grams":1,"version":3}"#,
        ] {
            assert_eq!(decode_parcel(body).unwrap(), parcel, "{body}");
        }
        for body in [r#"{"version":30,"grams":1}"#, r#"{"grams":1,"version":30}"#] {
            let newer = RecordError::Newer {
                version: 30,
                newest: 3,
            };
            assert_eq!(decode_parcel(body), Err(newer), "{body}");
        }
        let older_release = decode_stored_as::<Parcel>(br#"{"version":3,"grams":1}"#, 2);
        assert_eq!(
            older_release,
            Err(RecordError::Newer {
                version: 3,
                newest: 2
            })
        );
    }

    #[test]
    fn format_of_first_field_is_recognized() {
        for (body, is_first) in [
            (r#"{"version":3,"grams":1}"#, true),
            (r#"{"version":3}"#, true),
            (r#"{"version":31,"grams":1}"#, false),
            (r#"{"version":3.5,"grams":1}"#, false),
            (r#"{"version":2,"grams":1}"#, false),
            (r#"{"grams":1,"version":3}"#, false),
            (r#"{"version":3"#, false),
        ] {
            assert_eq!(begins_with_version(body.as_bytes(), 3), is_first, "{body}");
        }
    }

    #[test]
    fn newer_record_differs_from_broken_one() {
        let newer = Err(RecordError::Newer {
            version: 4,
            newest: 3,
        });
        assert_eq!(decode_parcel(r#"{"version":4,"weight":{"unit":"g"}}"#), newer);
        assert_eq!(decode_parcel(r#"{"version":4,"grams":1}"#), newer);
        for broken in [r#"{"version":3}"#, r#"{"version":"x","grams":1}"#, "{", "[]", ""] {
            assert!(
                matches!(decode_parcel(broken), Err(RecordError::Broken(_))),
                "{broken}"
            );
        }
    }

    #[test]
    fn unknown_fields_of_records_are_ignored() {
        let body = r#"{"version":3,"grams":1,"colour":"red"}"#;
        assert_eq!(decode_parcel(body).unwrap().grams, 1);
    }
}
