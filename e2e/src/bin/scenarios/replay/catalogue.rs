//! The fixes: which package, which two releases, which files, and the words and tests of the ticket.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

const OURS: &str = include_str!("catalogue.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalogue {
    fix: Vec<Fix>,
    /// Where relative folders begin.
    #[serde(skip)]
    folder: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fix {
    pub(crate) id: String,
    pub(crate) language: String,
    pub(crate) registry: Registry,
    pub(crate) package: String,
    /// As the package declares it; nothing of the package is kept in this repository.
    #[serde(rename = "licence")]
    pub(crate) _licence: String,
    pub(crate) from: Release,
    pub(crate) to: Release,
    /// Files that the fix changes; whatever else differs between the releases stays as it was.
    pub(crate) files: Vec<String>,
    /// Files and folders of the release that the base has; empty: all.
    #[serde(default)]
    pub(crate) keep: Vec<String>,
    /// Those that it has not, such as tests that need other packages.
    #[serde(default)]
    pub(crate) leave_out: Vec<String>,
    /// What people saw; its first line is the summary.
    pub(crate) ticket: String,
    pub(crate) test_file: String,
    pub(crate) test: String,
    /// Runs the tests, without network.
    pub(crate) command: String,
    pub(crate) fails: Vec<String>,
    pub(crate) passes: Vec<String>,
    /// Where relative folders begin.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Release {
    /// The release; of [`Registry::Folder`] the folder.
    pub(crate) version: String,
    /// Of its archive, in hexadecimal digits; empty for a folder.
    #[serde(default)]
    pub(crate) sha256: String,
    /// The distribution's patch that is the fix; absent: the release is.
    pub(crate) patch: Option<String>,
}

/// Where releases come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Registry {
    Pypi,
    Npm,
    Crates,
    /// A source package; its patches are in an archive of their own.
    Debian,
    /// Beside the catalogue.
    Folder,
}

impl Catalogue {
    /// Our own, or another file.
    ///
    /// # Errors
    /// A file that cannot be read or is no catalogue.
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

    /// The fixes of these names, all for none.
    ///
    /// # Errors
    /// A name that no fix has.
    pub(crate) fn only(self, ids: &[String]) -> anyhow::Result<Vec<Fix>> {
        let unknown = ids.iter().find(|id| self.fix.iter().all(|fix| fix.id != **id));
        ensure!(
            unknown.is_none(),
            "no fix is named {}",
            unknown.map_or("", String::as_str)
        );
        let wanted = |fix: &Fix| ids.is_empty() || ids.contains(&fix.id);
        let mut fixes: Vec<Fix> = self.fix.into_iter().filter(wanted).collect();
        for fix in &mut fixes {
            fix.folder.clone_from(&self.folder);
        }
        Ok(fixes)
    }
}

impl Fix {
    /// The ticket's first line.
    pub(crate) fn summary(&self) -> &str {
        self.ticket.trim_start().lines().next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_catalogue_has_twelve_fixes_of_four_languages_with_names_and_summaries_of_their_own() {
        let fixes = Catalogue::read(None).unwrap().only(&[]).unwrap();
        let of = |name: fn(&Fix) -> &str| fixes.iter().map(name).collect::<BTreeSet<_>>().len();
        assert!(fixes.len() >= 12);
        assert!(of(|fix| &fix.language) >= 4);
        assert_eq!((of(|fix| &fix.id), of(Fix::summary)), (fixes.len(), fixes.len()));
    }

    #[test]
    fn a_name_that_no_fix_has_is_refused() {
        let catalogue = Catalogue::read(None).unwrap();
        let refused = catalogue.only(&["left-pad".to_owned()]).unwrap_err();
        assert_eq!(refused.to_string(), "no fix is named left-pad");
    }
}
