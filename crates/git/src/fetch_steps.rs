//! Sizes and record of a first fetch in steps. The record is a file in the mirror, so a restart continues it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    path::Path,
    time::Duration,
};

use domain::{CommitId, cause::format_error_chain};
use serde::{Deserialize, Serialize};

use crate::Error;

// File in a mirror whose first fetch is not finished.
const RECORD: &str = "fetch-steps.json";
// A step that takes less time is followed by a larger one, a step that takes more by a smaller one.
const SHORT: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(60);
// First and largest numbers of generations of commits, of objects by their ids, and of branches in one step.
const GENERATIONS: (u32, u32) = (50, 1 << 20);
const OBJECTS: (u32, u32) = (4_000, 20_000);
const BRANCHES: (u32, u32) = (500, 20_000);

/// Size of the next step of one kind. It is halved after an interruption and doubled after a short step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepSize {
    next: u32,
    most: u32,
}

impl StepSize {
    const fn new((next, most): (u32, u32)) -> Self {
        Self { next, most }
    }

    /// Size of the next step, at least 1.
    pub(crate) fn get(self) -> u32 {
        self.next.clamp(1, self.most.max(1))
    }

    /// Counts a finished step.
    pub(crate) fn finish(&mut self, took: Duration) {
        self.next = if took < SHORT {
            self.get().saturating_mul(2).min(self.most)
        } else if took > LONG {
            self.halved()
        } else {
            self.get()
        };
    }

    /// Counts an interrupted step.
    pub(crate) fn interrupt(&mut self) {
        self.next = self.halved();
    }

    fn halved(self) -> u32 {
        (self.get() / 2).max(1)
    }
}

/// Fetch that is in progress, or whose process was killed. It decides what becomes of the partial packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunningFetch {
    /// Files of a head.
    Tip,
    /// The smallest number of older generations.
    Generation,
    /// Objects by their ids.
    Objects,
    /// Any other fetch; it begins again.
    Other,
}

impl RunningFetch {
    /// True when the received objects of an interrupted fetch are kept.
    pub(crate) const fn keeps_objects(self) -> bool {
        match self {
            Self::Tip | Self::Generation | Self::Objects => true,
            Self::Other => false,
        }
    }
}

/// Record of a first fetch in steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StepRecord {
    /// Commits whose files are being fetched, by base branch.
    pub(crate) tips: BTreeMap<String, CommitId>,
    pub(crate) running: Option<RunningFetch>,
    /// Present commits whose files may be missing: an interrupted fetch left them.
    pub(crate) partial: BTreeSet<CommitId>,
    /// True when the remote does not send the missing files of these commits.
    pub(crate) is_abandoned: bool,
    pub(crate) generations: StepSize,
    pub(crate) objects: StepSize,
    pub(crate) branches: StepSize,
}

impl Default for StepRecord {
    fn default() -> Self {
        Self {
            tips: BTreeMap::new(),
            running: None,
            partial: BTreeSet::new(),
            is_abandoned: false,
            generations: StepSize::new(GENERATIONS),
            objects: StepSize::new(OBJECTS),
            branches: StepSize::new(BRANCHES),
        }
    }
}

/// Next step of a first fetch whose base branches are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// The missing files of commits that an interrupted step left.
    Complete,
    /// So many older generations of commits.
    Deepen(u32),
    /// So many of the other branches.
    Branches(u32),
}

impl StepRecord {
    /// Chooses the next step.
    pub(crate) fn next_step(&self, is_shallow: bool) -> NextStep {
        if !is_shallow {
            NextStep::Branches(self.branches.get())
        } else if !self.partial.is_empty() && !self.is_abandoned {
            NextStep::Complete
        } else {
            NextStep::Deepen(self.generations.get())
        }
    }

    /// Kind of a fetch of so many generations. A larger one is repeated with half the size instead.
    pub(crate) const fn kind_of_deepening(generations: u32) -> RunningFetch {
        match generations {
            0 | 1 => RunningFetch::Generation,
            _ => RunningFetch::Other,
        }
    }

    /// True when a mirror has a record.
    pub(crate) fn exists(git_dir: &Path) -> bool {
        git_dir.join(RECORD).exists()
    }

    /// Reads the record of a mirror; an unreadable one counts as new.
    pub(crate) fn read(git_dir: &Path) -> Result<Self, Error> {
        match fs::read(git_dir.join(RECORD)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(error = %format_error_chain(&error), "the record of a fetch in steps cannot be read");
                Self::default()
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the record of a mirror.
    pub(crate) fn write(&self, git_dir: &Path) -> Result<(), Error> {
        let failed =
            |error: io::Error| Error::failed("the record of a fetch in steps cannot be written", error);
        let bytes = serde_json::to_vec(self).map_err(|error| Error::Failed(error.into()))?;
        let mut written = tempfile::Builder::new()
            .prefix("fetch-steps-")
            .tempfile_in(git_dir)
            .map_err(failed)?;
        written.write_all(&bytes).map_err(failed)?;
        written.as_file().sync_all().map_err(failed)?;
        written
            .persist(git_dir.join(RECORD))
            .map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Removes the record of a mirror, whose first fetch is finished.
    pub(crate) fn remove(git_dir: &Path) -> Result<(), Error> {
        match fs::remove_file(git_dir.join(RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn step_size_follows_time_and_interruptions() {
        let secs = Duration::from_secs;
        for (first, events, next) in [
            (50, vec![Some(secs(1))], 100),
            (50, vec![Some(secs(30))], 50),
            (50, vec![Some(secs(61))], 25),
            (50, vec![None], 25),
            (1, vec![None, None], 1),
            (1, vec![Some(secs(90))], 1),
            (50, vec![None, Some(secs(1)), Some(secs(1))], 100),
            (700, vec![Some(secs(1))], 1_000),
            (0, vec![], 1),
        ] {
            let mut size = StepSize::new((first, 1_000));
            for event in &events {
                match event {
                    Some(took) => size.finish(*took),
                    None => size.interrupt(),
                }
            }
            assert_eq!(size.get(), next, "{first} {events:?}");
        }
    }

    #[test]
    fn next_step_follows_history() {
        let fresh = StepRecord::default();
        let interrupted = StepRecord {
            partial: ["1".repeat(40).parse().unwrap()].into(),
            ..StepRecord::default()
        };
        let abandoned = StepRecord {
            is_abandoned: true,
            ..interrupted.clone()
        };
        for (record, is_shallow, next) in [
            (&fresh, true, NextStep::Deepen(50)),
            (&fresh, false, NextStep::Branches(500)),
            (&interrupted, true, NextStep::Complete),
            (&abandoned, true, NextStep::Deepen(50)),
            (&interrupted, false, NextStep::Branches(500)),
        ] {
            assert_eq!(record.next_step(is_shallow), next, "{record:?}");
        }
    }

    #[test]
    fn record_survives_restart() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!StepRecord::exists(folder.path()));
        let mut record = StepRecord::read(folder.path()).unwrap();
        record.running = Some(RunningFetch::Generation);
        record.generations.interrupt();
        record
            .tips
            .insert("main".to_owned(), "2".repeat(40).parse().unwrap());
        record.write(folder.path()).unwrap();
        assert!(StepRecord::exists(folder.path()));
        assert_eq!(StepRecord::read(folder.path()).unwrap(), record);
        fs::write(folder.path().join(RECORD), "{").unwrap();
        assert_eq!(StepRecord::read(folder.path()).unwrap(), StepRecord::default());
        StepRecord::remove(folder.path()).unwrap();
        StepRecord::remove(folder.path()).unwrap();
        assert!(!StepRecord::exists(folder.path()));
    }

    proptest! {
        /// A line that never carries more than `line` generations at once: the fetch ends, and a finished step is
        /// never lost.
        #[test]
        fn fuzz_steps_end_on_line_that_breaks(total in 1_u32..200_000, line in 1_u32..5_000, seconds in 0_u64..90) {
            let mut record = StepRecord::default();
            let (mut here, mut steps) = (0, 0_u32);
            while here < total {
                let NextStep::Deepen(generations) = record.next_step(true) else {
                    panic!("another step");
                };
                if generations <= line {
                    here += generations;
                    record.generations.finish(Duration::from_secs(seconds));
                } else {
                    record.generations.interrupt();
                }
                steps += 1;
                prop_assert!((1..=GENERATIONS.1).contains(&record.generations.get()));
                // At most every second step is too large; long steps shrink to single generations.
                let smallest = if seconds > LONG.as_secs() { 1 } else { line.min(GENERATIONS.0).div_ceil(2) };
                prop_assert!(steps <= 40 + 2 * (total / smallest + 1), "{} steps for {} of {}", steps, here, total);
            }
        }
    }
}
