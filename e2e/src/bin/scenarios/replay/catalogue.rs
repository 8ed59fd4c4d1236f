//! Catalogue of fixes: package, releases, files, and the ticket with its tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

const OURS: &str = include_str!("catalogue.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FixCatalogue {
    fix: Vec<PublishedFix>,
    /// Base of relative folders.
    #[serde(skip)]
    folder: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedFix {
    pub(crate) id: String,
    pub(crate) language: String,
    pub(crate) registry: PackageSource,
    pub(crate) package: String,
    /// License as the package declares it. The repository stores nothing of the package.
    #[serde(rename = "licence")]
    pub(crate) _licence: String,
    pub(crate) from: PackageRelease,
    pub(crate) to: PackageRelease,
    /// Files that the fix changes. Other differences between the releases are left out.
    pub(crate) files: Vec<String>,
    /// Files and folders of the release that the base contains; all if empty.
    #[serde(default)]
    pub(crate) keep: Vec<String>,
    /// Files and folders that the base leaves out, such as tests that need other packages.
    #[serde(default)]
    pub(crate) leave_out: Vec<String>,
    /// Report of a user. Its first line is the summary.
    pub(crate) ticket: String,
    pub(crate) test_file: String,
    pub(crate) test: String,
    /// Test command; it works without network.
    pub(crate) command: String,
    pub(crate) fails: Vec<String>,
    pub(crate) passes: Vec<String>,
    /// Base of relative folders.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackageRelease {
    /// Version of the release; for [`PackageSource::Folder`] the folder's name.
    pub(crate) version: String,
    /// SHA-256 digest of the archive in hexadecimal; empty for a folder.
    #[serde(default)]
    pub(crate) sha256: String,
    /// Patch of the distribution that contains the fix; absent if the release contains it.
    pub(crate) patch: Option<String>,
}

/// Registry that releases come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PackageSource {
    Pypi,
    Npm,
    Crates,
    /// Source package. Its patches are in a separate archive.
    Debian,
    /// Folder next to the catalogue.
    Folder,
}

impl FixCatalogue {
    /// Reads our catalogue, or another file.
    ///
    /// # Errors
    /// When the file cannot be read or parsed.
    pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else {
            return toml::from_str(OURS).context("the catalogue");
        };
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut catalogue: Self = toml::from_str(&text).with_context(|| file.display().to_string())?;
        catalogue.folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(catalogue)
    }

    /// Selects fixes by name; all if `ids` is empty.
    ///
    /// # Errors
    /// When no fix has one of the names.
    pub(crate) fn only(self, ids: &[String]) -> anyhow::Result<Vec<PublishedFix>> {
        let unknown = ids.iter().find(|id| self.fix.iter().all(|fix| fix.id != **id));
        ensure!(
            unknown.is_none(),
            "no fix is named {}",
            unknown.map_or("", String::as_str)
        );
        let wanted = |fix: &PublishedFix| ids.is_empty() || ids.contains(&fix.id);
        let mut fixes: Vec<PublishedFix> = self.fix.into_iter().filter(wanted).collect();
        for fix in &mut fixes {
            fix.folder.clone_from(&self.folder);
        }
        Ok(fixes)
    }
}

impl PublishedFix {
    /// Returns the ticket's first line.
    pub(crate) fn summary(&self) -> &str {
        self.ticket.trim_start().lines().next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn catalogue_has_twelve_distinct_fixes() {
        let fixes = FixCatalogue::read(None).unwrap().only(&[]).unwrap();
        let of = |name: fn(&PublishedFix) -> &str| fixes.iter().map(name).collect::<BTreeSet<_>>().len();
        assert!(fixes.len() >= 12);
        assert!(of(|fix| &fix.language) >= 4);
        assert_eq!(
            (of(|fix| &fix.id), of(PublishedFix::summary)),
            (fixes.len(), fixes.len())
        );
    }

    #[test]
    fn unknown_fix_name_is_refused() {
        let catalogue = FixCatalogue::read(None).unwrap();
        let refused = catalogue.only(&["left-pad".to_owned()]).unwrap_err();
        assert_eq!(refused.to_string(), "no fix is named left-pad");
    }
}
