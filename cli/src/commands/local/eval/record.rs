//! What is kept of each run, and how a later evaluation finds it again.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use domain::check::Level;
use serde::{Deserialize, Serialize};

/// The file below the results' folder, one record a line.
const FILE: &str = "results.jsonl";

/// What a run was about: the same again has the same result, but for chance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    /// The instance's name.
    pub(super) instance: String,
    /// Digest of the instance, so that a changed one is played again.
    pub(super) task: String,
    /// From 1.
    pub(super) run: u32,
    /// Journeyman's version.
    pub(super) release: String,
    /// The model, as its provider names it.
    pub(super) model: String,
    /// Digest of settings and rules, without keys.
    pub(super) settings: String,
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(flatten)]
    pub(super) key: Key,
    /// True when every test that decides passes with the change.
    pub(super) resolved: bool,
    /// True when the run ended as one that is done, with a change.
    pub(super) delivered: bool,
    /// Why the run ended.
    pub(super) stop: String,
    /// What failed that is not the agent; such a run counts as not resolved.
    pub(super) infra: Option<String>,
    /// How strong the agent's own evidence is.
    pub(super) evidence: Option<Level>,
    /// Tests that had to begin to pass and do not.
    pub(super) unmet: Vec<String>,
    /// Tests that passed at the base and do not any more.
    pub(super) broken: Vec<String>,
    /// Lines of the reference solution that a tool showed before the agent wrote them; absent: none.
    pub(super) leak: Option<String>,
    /// In millionths of a dollar, as far as prices are known.
    pub(super) cost_micros: u64,
    /// Replies whose price is not known.
    pub(super) unpriced: u32,
    /// Replies of the model.
    pub(super) turns: u32,
    /// From the first to the last entry of the journal.
    pub(super) duration_ms: u64,
    pub(super) tokens: Tokens,
    /// When the task became public, as the data set has it.
    pub(super) created_at: Option<String>,
}

/// Tokens of all calls of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    /// Read, cached ones included.
    pub(super) input: u64,
    /// Of those read: from the provider's cache.
    pub(super) cached: u64,
    /// Written.
    pub(super) output: u64,
}

impl Record {
    /// The run said that it is done, and it is not.
    pub(super) const fn is_false_done(&self) -> bool {
        self.delivered && !self.resolved && self.infra.is_none()
    }
}

/// The results of one folder, which grow by a record at a time.
pub(super) struct Store {
    file: File,
    path: PathBuf,
    pub(super) records: Vec<Record>,
}

impl Store {
    /// Opens a folder's results.
    ///
    /// # Errors
    /// Results that are there although nobody asked to go on with them, or that cannot be read.
    pub(super) fn open(folder: &Path, resume: bool) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let records = if path.exists() { read(&path)? } else { Vec::new() };
        if !records.is_empty() && !resume {
            bail!(
                "{} has results already: go on with --resume, or name another folder with --out",
                folder.display()
            );
        }
        let kept = path.with_extension("jsonl.new");
        // A record that an interruption cut must not swallow the next one.
        let lines = records
            .iter()
            .map(line)
            .collect::<Result<String, serde_json::Error>>()?;
        std::fs::write(&kept, lines).with_context(|| format!("cannot write {}", kept.display()))?;
        std::fs::rename(&kept, &path)?;
        let file = OpenOptions::new().append(true).open(&path)?;
        Ok(Self { file, path, records })
    }

    /// Whether a run like this one has a result.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.records.iter().any(|record| record.key == *key)
    }

    /// Keeps a result for good.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn add(&mut self, record: Record) -> anyhow::Result<()> {
        let write = |mut file: &File| {
            file.write_all(line(&record)?.as_bytes())?;
            file.sync_data()
        };
        write(&self.file).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.records.push(record);
        Ok(())
    }
}

fn line(record: &Record) -> Result<String, serde_json::Error> {
    Ok(format!("{}\n", serde_json::to_string(record)?))
}

/// The records of a results' folder, or of its file.
///
/// # Errors
/// A file that cannot be read, or a line in it; the last line may be cut.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Record>> {
    let path = if path.is_dir() {
        path.join(FILE)
    } else {
        path.to_owned()
    };
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut records, mut lines) = (Vec::new(), (1..).zip(text.lines()).peekable());
    while let Some((number, line)) = lines.next() {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            Err(_) if lines.peek().is_none() && !text.ends_with('\n') => {}
            Err(error) => {
                return Err(error).with_context(|| format!("{}:{number}: no result", path.display()));
            }
        }
    }
    Ok(records)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run with nothing special about it.
    pub(in super::super) fn record(instance: &str, run: u32, resolved: bool) -> Record {
        Record {
            key: Key {
                instance: instance.to_owned(),
                task: "t".to_owned(),
                run,
                release: "1.0".to_owned(),
                model: "m".to_owned(),
                settings: "s".to_owned(),
            },
            resolved,
            delivered: true,
            stop: "completed".to_owned(),
            infra: None,
            evidence: Some(Level::E3),
            unmet: Vec::new(),
            broken: Vec::new(),
            leak: None,
            cost_micros: 10_000,
            unpriced: 0,
            turns: 4,
            duration_ms: 60_000,
            tokens: Tokens {
                input: 1000,
                cached: 500,
                output: 100,
            },
            created_at: None,
        }
    }

    #[test]
    fn results_are_gone_on_with_only_when_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path(), false).unwrap();
        store.add(record("a", 1, true)).unwrap();
        drop(store);
        let refused = Store::open(folder.path(), false).err().unwrap();
        assert!(refused.to_string().contains("--resume"), "{refused}");
        let store = Store::open(folder.path(), true).unwrap();
        let mut key = record("a", 1, true).key;
        assert!(store.has(&key));
        key.model = "another".to_owned();
        assert!(!store.has(&key));
    }

    #[test]
    fn a_record_that_was_cut_is_no_result_and_harms_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let whole = line(&record("a", 1, true)).unwrap();
        std::fs::write(&path, format!("{whole}{}", &whole[..40])).unwrap();
        let mut store = Store::open(folder.path(), true).unwrap();
        store.add(record("b", 1, false)).unwrap();
        assert_eq!(
            read(folder.path()).unwrap(),
            [record("a", 1, true), record("b", 1, false)]
        );
        std::fs::write(&path, format!("{}\n{whole}", &whole[..40])).unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("results.jsonl:1: no result")
        );
    }
}
