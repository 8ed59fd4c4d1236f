//! Progress of a fetch, and detection of a fetch that stalls.

use std::{fs, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::{sync::watch, time::Instant};

// Interval between two measurements of a running fetch.
const LOOK_EVERY: Duration = Duration::from_millis(500);
// Upper limit for a fetch that makes progress.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Settings in `[git]`: limits and steps of fetches. Reporter and executor read the same section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchSettings {
    /// Seconds in which a fetch must bring `least_kib` or reach another step, 1 to 3,600.
    pub progress_limit_s: u64,
    /// KiB that a fetch must bring in that time.
    pub least_kib: u64,
    /// Size in MiB from which the reporter's first fetch of a repository takes steps; 0: always.
    pub steps_from_mib: u64,
}

impl Default for FetchSettings {
    /// 64 KiB in two minutes, and steps from 50 MiB.
    fn default() -> Self {
        Self {
            progress_limit_s: 120,
            least_kib: 64,
            steps_from_mib: 50,
        }
    }
}

impl FetchSettings {
    /// Validates the settings.
    ///
    /// # Errors
    /// The key and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if (1..=3_600).contains(&self.progress_limit_s) {
            Ok(())
        } else {
            Err(("git.progress_limit_s", "must be between 1 and 3600".to_owned()))
        }
    }
}

/// Progress of a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchProgress {
    /// Received objects in percent; absent until the remote announces their number.
    pub percent: Option<u8>,
    /// Received bytes, as far as git has written them to disk.
    pub bytes: u64,
}

/// End of a fetch that made too little progress for this long.
pub(crate) struct StalledFetch(pub(crate) Duration);

/// Parser of a fetch's messages that publishes its progress. Cheap to clone; clones share one state.
#[derive(Clone, Debug)]
pub struct FetchWatch {
    limit: Duration,
    least: u64,
    state: Arc<Mutex<ProgressState>>,
    published: Arc<watch::Sender<FetchProgress>>,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// Incomplete last line of the output.
    rest: Vec<u8>,
    /// Last step without its speed.
    step: String,
    percent: Option<u8>,
}

impl FetchWatch {
    /// Creates a watch with the limits of the settings.
    pub fn new(settings: FetchSettings) -> Self {
        Self {
            limit: Duration::from_secs(settings.progress_limit_s),
            least: settings.least_kib.saturating_mul(1024),
            state: Arc::default(),
            published: Arc::new(watch::channel(FetchProgress::default()).0),
        }
    }

    /// Receiver of the progress.
    pub fn follow(&self) -> watch::Receiver<FetchProgress> {
        self.published.subscribe()
    }

    /// Publishes progress that another source reports, such as the git gate.
    pub fn publish(&self, progress: FetchProgress) {
        self.published.send_if_modified(|published| {
            let is_new = *published != progress;
            *published = progress;
            is_new
        });
    }

    /// Parses more of git's output and returns the complete lines that do not report progress.
    pub(crate) fn read(&self, chunk: &[u8]) -> Vec<u8> {
        let mut state = self.state.lock();
        let mut kept = Vec::new();
        for byte in chunk {
            match byte {
                b'\r' | b'\n' => {
                    let line = std::mem::take(&mut state.rest);
                    if !state.note(&line) {
                        kept.extend_from_slice(&line);
                        kept.push(b'\n');
                    }
                }
                // No line of progress is longer; the rest of such a line is dropped.
                _ if state.rest.len() < 4096 => state.rest.push(*byte),
                _ => {}
            }
        }
        kept
    }

    /// Parses the last line, which has no end.
    pub(crate) fn read_rest(&self) -> Vec<u8> {
        let mut state = self.state.lock();
        let line = std::mem::take(&mut state.rest);
        if state.note(&line) { Vec::new() } else { line }
    }

    /// Waits until the fetch into a repository has made too little progress for too long.
    pub(crate) async fn until_stalled(&self, git_dir: &Path) -> StalledFetch {
        let started = Instant::now();
        let (mut since, mut bytes_then, mut step_then) = (started, 0, String::new());
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let place = git_dir.join("objects/pack");
            // A lost task counts as no bytes.
            let bytes = tokio::task::spawn_blocking(move || measure_partial_packs(&place))
                .await
                .unwrap_or(0);
            let (step, percent) = {
                let state = self.state.lock();
                (state.step.clone(), state.percent)
            };
            self.publish(FetchProgress { percent, bytes });
            // Fewer bytes mean that git finished a pack; also a new percentage of a step without bytes is
            // progress.
            if step != step_then
                || bytes < bytes_then
                || bytes >= bytes_then.saturating_add(self.least.max(1))
            {
                (since, bytes_then, step_then) = (Instant::now(), bytes, step);
            }
            if since.elapsed() >= self.limit {
                return StalledFetch(self.limit);
            }
            if started.elapsed() >= LONGEST {
                return StalledFetch(LONGEST);
            }
        }
    }
}

impl ProgressState {
    /// Stores a line that reports progress; false for any other line.
    fn note(&mut self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        let Some(step) = parse_step(line) else {
            return false;
        };
        if line.starts_with("Receiving objects") {
            self.percent = parse_percent(line).or(self.percent);
        }
        self.step = step;
        true
    }
}

/// Extracts the step of a line without its speed, e.g. `Receiving objects 40`; `None` for any other line.
fn parse_step(line: &str) -> Option<String> {
    const STEPS: [&str; 8] = [
        "Enumerating objects",
        "Counting objects",
        "Compressing objects",
        "Receiving objects",
        "Resolving deltas",
        "Indexing objects",
        "Checking connectivity",
        "Unpacking objects",
    ];
    let own = line.strip_prefix("remote:").map_or(line, str::trim_start);
    let step = STEPS.iter().find(|step| own.starts_with(**step))?;
    match parse_percent(own) {
        Some(percent) => Some(format!("{step} {percent}")),
        None => Some(own.chars().take(80).collect()),
    }
}

fn parse_percent(line: &str) -> Option<u8> {
    let (before, _) = line.split_once('%')?;
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|percent| *percent <= 100)
}

/// Total size of the packs that git has not completed.
fn measure_partial_packs(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let partial = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("tmp_pack"));
    partial
        .filter_map(|entry| entry.metadata().ok())
        .map(|found| found.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_watch(limit_s: u64) -> FetchWatch {
        FetchWatch::new(FetchSettings {
            progress_limit_s: limit_s,
            least_kib: 1,
            ..FetchSettings::default()
        })
    }

    #[test]
    fn progress_is_read_and_errors_are_kept() {
        let watch = build_watch(5);
        let said = "remote: Counting objects:  50% (1/2)\rremote: Counting objects: 100% (2/2), done.\n\
                    Receiving objects:  40% (2/5), 1.00 MiB | 99.00 KiB/s\rfatal: early EOF\nerror: ob";
        let mut kept = Vec::new();
        for chunk in said.as_bytes().chunks(7) {
            kept.extend(watch.read(chunk));
        }
        kept.extend(watch.read_rest());
        assert_eq!(String::from_utf8(kept).unwrap(), "fatal: early EOF\nerror: ob");
        let state = watch.state.lock();
        assert_eq!(
            (state.percent, state.step.as_str()),
            (Some(40), "Receiving objects 40")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn fetch_that_brings_bytes_is_never_stalled() {
        let folder = tempfile::TempDir::new().unwrap();
        let packs = folder.path().join("objects/pack");
        fs::create_dir_all(&packs).unwrap();
        let growing = async {
            for seconds in 1..200_u64 {
                fs::write(
                    packs.join("tmp_pack_x"),
                    vec![0; 2048 * usize::try_from(seconds).unwrap()],
                )
                .unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let watch = build_watch(5);
        let started = Instant::now();
        tokio::select! {
            () = async { growing.await; std::future::pending::<()>().await } => {}
            StalledFetch(limit) = watch.until_stalled(folder.path()) => assert_eq!(limit.as_secs(), 5),
        }
        assert!(started.elapsed().as_secs() >= 199, "{:?}", started.elapsed());
        assert!(watch.follow().borrow().bytes > 0);
    }

    #[tokio::test(start_paused = true)]
    async fn fetch_that_trickles_is_stalled_after_limit() {
        let folder = tempfile::TempDir::new().unwrap();
        let packs = folder.path().join("objects/pack");
        fs::create_dir_all(&packs).unwrap();
        fs::write(packs.join("tmp_pack_x"), [0; 10]).unwrap();
        let watch = build_watch(60);
        let started = Instant::now();
        watch.until_stalled(folder.path()).await;
        assert!(
            (60..63).contains(&started.elapsed().as_secs()),
            "{:?}",
            started.elapsed()
        );
    }
}
