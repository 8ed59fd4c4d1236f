//! The section `[reporter.lfs]`.

use bootstrap::settings::TextList;
use serde::Deserialize;
use webproxy::AddressRule;

// Files of a workspace have at most 64 MiB.
const LARGEST_FILE_MIB: u64 = 64;

/// The section `[reporter.lfs]`: limits of contents in Git LFS, for repositories whose rules read them.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LfsSettings {
    /// Largest content, in MiB, from 1 to 64.
    pub max_file_mib: u64,
    /// Contents of one commit, in MiB.
    pub max_commit_mib: u64,
    /// Contents of all repositories, in MiB. The least recently used ones are deleted.
    pub cache_mib: u64,
    /// Networks that are not public and may still be reached, e.g. `10.20.0.0/16`, for a store inside of the company.
    pub private_networks: TextList,
}

impl Default for LfsSettings {
    fn default() -> Self {
        Self {
            max_file_mib: LARGEST_FILE_MIB,
            max_commit_mib: 512,
            cache_mib: 4096,
            private_networks: TextList::default(),
        }
    }
}

impl LfsSettings {
    /// Returns the rule for addresses that Git LFS servers name.
    pub(crate) fn address_rule(&self) -> Result<AddressRule, String> {
        AddressRule::new(&self.private_networks)
    }

    /// Checks the constraints between the keys. The error names the key and the problem.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        if !(1..=LARGEST_FILE_MIB).contains(&self.max_file_mib) {
            let problem = format!("must be between 1 and {LARGEST_FILE_MIB}");
            return Err(("lfs.max_file_mib", problem));
        }
        if self.max_commit_mib < self.max_file_mib {
            let problem = "must be at least reporter.lfs.max_file_mib".to_owned();
            return Err(("lfs.max_commit_mib", problem));
        }
        if self.cache_mib < self.max_commit_mib {
            let problem = "must be at least reporter.lfs.max_commit_mib".to_owned();
            return Err(("lfs.cache_mib", problem));
        }
        self.address_rule()
            .map(drop)
            .map_err(|problem| ("lfs.private_networks", problem))
    }
}
