//! Stored results of runs, and their keys for a later evaluation.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use domain::check::EvidenceLevel;
use serde::{Deserialize, Serialize};

// File in the results folder, with one record per line.
const FILE: &str = "results.jsonl";

/// Key of a run: equal keys have equal results, apart from chance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalRunKey {
    /// Id of the instance.
    pub instance: String,
    /// Digest of the instance, so that a changed one is played again.
    pub task: String,
    /// Number of the run, from 1.
    pub run: u32,
    /// Version of Journeyman.
    pub release: String,
    /// Model, by its provider's name for it.
    pub model: String,
    /// Digest of settings and rules, without secrets.
    pub settings: String,
}

/// Stored result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalRunRecord {
    #[serde(flatten)]
    /// Identity of the run.
    pub key: EvalRunKey,
    /// True when every deciding test passes with the change.
    pub resolved: bool,
    /// True when the run completed with a change.
    pub delivered: bool,
    /// Stop reason of the run.
    pub stop: String,
    /// Infrastructure failure; such a run counts as unresolved.
    pub infra: Option<String>,
    /// Level of the agent's evidence.
    pub evidence: Option<EvidenceLevel>,
    /// Tests that had to start to pass and do not.
    pub unmet: Vec<String>,
    /// Tests that passed on the base and fail now.
    pub broken: Vec<String>,
    /// Lines of the reference solution that a tool showed before the agent wrote them; absent
    /// without a leak.
    pub leak: Option<String>,
    /// Cost in millionths of a dollar, as far as prices are known.
    pub cost_micros: u64,
    /// Replies without a known price.
    pub unpriced: u32,
    /// Replies of the model.
    pub turns: u32,
    /// Milliseconds from the first to the last entry of the journal.
    pub duration_ms: u64,
    /// Tokens of all its model calls.
    pub tokens: EvalTokens,
    /// Publication time of the task, from the data set.
    pub created_at: Option<String>,
}

/// Tokens of all model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalTokens {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Input tokens from the provider's cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

impl EvalRunRecord {
    /// True for a run that completed without solving the task.
    pub const fn is_false_done(&self) -> bool {
        self.delivered && !self.resolved && self.infra.is_none()
    }
}

/// Results of one folder, appended record by record.
pub struct EvalResultStore {
    file: File,
    path: PathBuf,
    /// Records in the order in which they were added.
    pub records: Vec<EvalRunRecord>,
}

impl EvalResultStore {
    /// Opens the results of a folder.
    ///
    /// # Errors
    /// Existing results without `resume`, or unreadable results.
    pub fn open(folder: &Path, resume: bool) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let records = if path.exists() {
            read_records(&path)?
        } else {
            Vec::new()
        };
        if !records.is_empty() && !resume {
            bail!(
                "{} has results already: continue with --resume, or name another folder with --out",
                folder.display()
            );
        }
        let kept = path.with_extension("jsonl.new");
        // An interrupted write may leave a partial last line, and the next record would be appended
        // to it. So the file is rewritten first.
        let lines = records
            .iter()
            .map(render_record)
            .collect::<Result<String, serde_json::Error>>()?;
        std::fs::write(&kept, lines).with_context(|| format!("cannot write {}", kept.display()))?;
        let unwritable = || format!("cannot write {}", path.display());
        std::fs::rename(&kept, &path).with_context(unwritable)?;
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.with_context(unwritable)?;
        Ok(Self { file, path, records })
    }

    /// True when a run with this key has a result.
    pub fn has(&self, key: &EvalRunKey) -> bool {
        self.records.iter().any(|record| record.key == *key)
    }

    /// Stores a result durably.
    ///
    /// # Errors
    /// When the write fails.
    pub fn add(&mut self, record: EvalRunRecord) -> anyhow::Result<()> {
        let write = |mut file: &File| {
            file.write_all(render_record(&record)?.as_bytes())?;
            // A run may have been expensive, so its record must survive a crash.
            file.sync_data()
        };
        write(&self.file).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.records.push(record);
        Ok(())
    }
}

fn render_record(record: &EvalRunRecord) -> Result<String, serde_json::Error> {
    Ok(format!("{}\n", serde_json::to_string(record)?))
}

/// Reads the records of a results folder, or of its file.
///
/// # Errors
/// An unreadable file, or an invalid line in it. A truncated last line is ignored.
pub fn read_records(path: &Path) -> anyhow::Result<Vec<EvalRunRecord>> {
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
pub(crate) mod tests {
    use super::*;

    /// Run without special properties.
    pub(crate) fn build_run_record(instance: &str, run: u32, resolved: bool) -> EvalRunRecord {
        EvalRunRecord {
            key: EvalRunKey {
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
            evidence: Some(EvidenceLevel::E3),
            unmet: Vec::new(),
            broken: Vec::new(),
            leak: None,
            cost_micros: 10_000,
            unpriced: 0,
            turns: 4,
            duration_ms: 60_000,
            tokens: EvalTokens {
                input: 1000,
                cached: 500,
                output: 100,
            },
            created_at: None,
        }
    }

    #[test]
    fn existing_results_require_resume_flag() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = EvalResultStore::open(folder.path(), false).unwrap();
        store.add(build_run_record("a", 1, true)).unwrap();
        drop(store);
        let refused = EvalResultStore::open(folder.path(), false).err().unwrap();
        assert!(refused.to_string().contains("--resume"), "{refused}");
        let store = EvalResultStore::open(folder.path(), true).unwrap();
        let mut key = build_run_record("a", 1, true).key;
        assert!(store.has(&key));
        key.model = "another".to_owned();
        assert!(!store.has(&key));
    }

    #[test]
    fn truncated_record_is_ignored_without_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let whole = render_record(&build_run_record("a", 1, true)).unwrap();
        std::fs::write(&path, format!("{whole}{}", &whole[..40])).unwrap();
        let mut store = EvalResultStore::open(folder.path(), true).unwrap();
        store.add(build_run_record("b", 1, false)).unwrap();
        assert_eq!(
            read_records(folder.path()).unwrap(),
            [build_run_record("a", 1, true), build_run_record("b", 1, false)]
        );
        std::fs::write(&path, format!("{}\n{whole}", &whole[..40])).unwrap();
        assert!(
            read_records(&path)
                .unwrap_err()
                .to_string()
                .contains("results.jsonl:1: no result")
        );
    }
}
