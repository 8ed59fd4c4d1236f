//! Size of a change: the limits, and the files that are too large to be stored.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::ZlibEncoder};
use git2::Oid;

use super::WorkspaceError;

pub(super) const MIB: u64 = 1 << 20;
/// Size in bytes from which a file is listed individually, and estimated before it is stored.
const LARGE_FILE: u64 = MIB;
/// Number of samples of a large file that are compressed for an estimate, and the bytes of each.
const SAMPLES: usize = 16;
const SAMPLE_BYTES: usize = 16 * 1024;
/// Limit of large files and folders in a message.
const MAX_NAMED: usize = 5;
/// Limit of paths that one scan records as not stored.
const MAX_REFUSED: usize = 1000;

/// Limits of the stored changes of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepLimits {
    /// Limit of a snapshot's pack, in bytes.
    pub(crate) pack_bytes: u64,
    /// Size of the git directory in bytes from which unreferenced objects are deleted.
    pub(crate) git_bytes: u64,
}

impl Default for KeepLimits {
    fn default() -> Self {
        Self {
            pack_bytes: 32 * MIB,
            git_bytes: 2048 * MIB,
        }
    }
}

impl KeepLimits {
    /// Limit in bytes of a change's loose objects. Packing rarely reduces them to less than half.
    pub(super) const fn loose_bytes(self) -> u64 {
        self.pack_bytes.saturating_mul(2)
    }

    /// Builds the refusal of a change for the model.
    pub(super) fn refusal(self, largest: &LargestPaths) -> WorkspaceError {
        WorkspaceError::Unkeepable(format!(
            "the change is too large: compressed it takes more than {} MiB. The largest of it: {}. Name generated files and \
             folders in .gitignore, delete what does not belong to the change, or make it smaller",
            self.pack_bytes / MIB,
            largest.named()
        ))
    }
}

/// Large files of a change, and folders with many small ones.
#[derive(Clone, Debug, Default)]
pub(super) struct LargestPaths(BTreeMap<String, PathAmount>);

#[derive(Clone, Copy, Debug, Default)]
struct PathAmount {
    bytes: u64,
    files: usize,
}

impl LargestPaths {
    /// Counts a file. `note` follows its name in a message.
    pub(super) fn add(&mut self, path: &Path, bytes: u64, note: &str) {
        let name = match path.components().next() {
            _ if bytes >= LARGE_FILE => format!("{}{note}", path.display()),
            Some(first) if first.as_os_str() != path.as_os_str() => {
                format!("{}/", Path::new(first.as_os_str()).display())
            }
            Some(_) | None => "small files at the root".to_owned(),
        };
        let amount = self.0.entry(name).or_default();
        amount.bytes += bytes;
        amount.files += 1;
    }

    fn named(&self) -> String {
        let mut all: Vec<(&String, &PathAmount)> = self.0.iter().collect();
        all.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.bytes));
        let named = all.iter().take(MAX_NAMED).map(|(name, amount)| {
            let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
            let mib = amount.bytes.div_ceil(MIB);
            match amount.files {
                1 => format!("{name} ({mib} MiB)"),
                files => format!("{name} ({mib} MiB in {files} files)"),
            }
        });
        let mut named = named.collect::<Vec<_>>().join(", ");
        if all.len() > MAX_NAMED {
            named.push_str(&format!(", and {} more", all.len() - MAX_NAMED));
        }
        named
    }
}

/// Files that differ from the last commit, collected during one scan.
pub(super) struct ChangeSize {
    limits: KeepLimits,
    /// Folder of the workspace's own objects.
    objects: PathBuf,
    /// Bytes of loose objects.
    loose: u64,
    largest: LargestPaths,
    /// Paths that were not stored, with their sizes.
    refused: Vec<(PathBuf, u64)>,
}

/// Result of comparing a file with the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFit {
    Fits,
    /// The change exceeds its limit with this file.
    Exceeds,
    /// The file alone exceeds the limit of a change.
    TooLarge,
}

impl ChangeSize {
    pub(super) fn new(limits: KeepLimits, objects: &Path) -> Self {
        Self {
            limits,
            objects: objects.to_owned(),
            loose: 0,
            largest: LargestPaths::default(),
            refused: Vec::new(),
        }
    }

    /// Decides whether the content of a file may be stored.
    pub(super) fn fit(&self, content: &[u8]) -> FileFit {
        let most = self.limits.loose_bytes();
        if self.loose > most {
            return FileFit::Exceeds;
        }
        if (content.len() as u64) < LARGE_FILE {
            return FileFit::Fits;
        }
        match compressed_size(content) {
            bytes if bytes > self.limits.pack_bytes => FileFit::TooLarge,
            bytes if self.loose + bytes > most => FileFit::Exceeds,
            _ => FileFit::Fits,
        }
    }

    /// Returns the bytes that a stored object adds to the change; 0 for an object of the mirror.
    pub(super) fn weight(&self, id: Oid) -> u64 {
        loose_size(&self.objects, id)
    }

    /// Counts the loose bytes of files that an earlier scan found changed.
    pub(super) fn add_known(&mut self, loose: u64) {
        self.loose += loose;
    }

    /// Counts a changed file.
    pub(super) fn add(&mut self, path: &Path, bytes: u64, weight: u64) {
        self.loose += weight;
        self.largest.add(path, bytes, "");
    }

    /// Counts a changed file that is not stored.
    pub(super) fn refuse(&mut self, path: &Path, bytes: u64) {
        self.largest.add(path, bytes, "");
        if self.refused.len() < MAX_REFUSED {
            self.refused.push((path.to_owned(), bytes));
        }
    }

    /// Returns the files that were not stored.
    pub(super) fn into_unstored(self) -> UnstoredFiles {
        let refused = self.refused;
        UnstoredFiles {
            largest: if refused.is_empty() {
                LargestPaths::default()
            } else {
                self.largest
            },
            refused,
        }
    }
}

/// Files of a change that were not stored, because the change is too large.
#[derive(Clone, Debug, Default)]
pub(super) struct UnstoredFiles {
    refused: Vec<(PathBuf, u64)>,
    largest: LargestPaths,
}

impl UnstoredFiles {
    pub(super) fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    /// Refuses a change with such files.
    pub(super) fn refuse(&self, limits: KeepLimits) -> Result<(), WorkspaceError> {
        if self.refused.is_empty() {
            return Ok(());
        }
        Err(limits.refusal(&self.largest))
    }
}

impl PartialEq for UnstoredFiles {
    fn eq(&self, other: &Self) -> bool {
        self.refused == other.refused
    }
}

/// Estimates the compressed size from samples of a long content.
fn compressed_size(content: &[u8]) -> u64 {
    if content.len() <= SAMPLES * SAMPLE_BYTES {
        return compressed_length(content);
    }
    let step = content.len() / SAMPLES;
    let parts = content.chunks(step).take(SAMPLES);
    let sampled: u64 = parts
        .map(|part| compressed_length(&part[..part.len().min(SAMPLE_BYTES)]))
        .sum();
    (content.len() as u64).saturating_mul(sampled) / (SAMPLES * SAMPLE_BYTES) as u64
}

fn compressed_length(bytes: &[u8]) -> u64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_or(bytes.len() as u64, |compressed| compressed.len() as u64)
}

/// Returns the bytes of a loose object; 0 if the folder does not contain it.
pub(super) fn loose_size(objects: &Path, id: Oid) -> u64 {
    let name = id.to_string();
    let (folder, rest) = name.split_at(2);
    let file = fs::metadata(objects.join(folder).join(rest));
    file.map_or(0, |file| file.len())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns incompressible bytes, different for each seed.
    pub(crate) fn generate_noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        std::iter::repeat_with(next).take(bytes / 8).flatten().collect()
    }

    #[test]
    fn compression_estimate_separates_noise_from_text() {
        let random = generate_noise(2 << 20, 1);
        let estimate = compressed_size(&random);
        assert!(estimate.abs_diff(2 * MIB) < MIB / 50, "{estimate}");
        let text = "the same line again\n".repeat(100_000);
        assert!(compressed_size(text.as_bytes()) < MIB / 20);
    }
}
