//! Binaries of another release that run together with those of this one.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Other release: its binaries and the settings that it knows.
#[derive(Clone, Debug)]
pub struct PreviousRelease {
    folder: PathBuf,
    /// Section and key of each known setting.
    settings: BTreeSet<(String, String)>,
}

impl PreviousRelease {
    /// Reads the release whose binaries are in a folder and whose `journeyman.example.toml` lists its
    /// settings.
    ///
    /// # Errors
    /// When the list cannot be read or is empty.
    pub fn read(folder: PathBuf, example: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(example).with_context(|| example.display().to_string())?;
        let settings = settings_of(&text);
        anyhow::ensure!(!settings.is_empty(), "{} lists no setting", example.display());
        Ok(Self { folder, settings })
    }

    pub(crate) fn binary(&self, service: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(service);
        anyhow::ensure!(path.is_file(), "{} is not built", path.display());
        Ok(path)
    }

    /// True if the release knows the setting of an environment variable. It refuses to start with unknown
    /// settings.
    pub(crate) fn knows(&self, variable: &str) -> bool {
        let Some(name) = variable.strip_prefix("JOURNEYMAN__") else {
            return true;
        };
        let mut parts = name.split("__").map(str::to_lowercase);
        let (Some(section), Some(key)) = (parts.next(), parts.next()) else {
            return true;
        };
        self.settings.contains(&(section, key))
    }
}

/// Parses section and key of every setting, including those in comments: `[ingest]`, `# key = …`,
/// `[planner.pools]`.
fn settings_of(example: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut section = String::new();
    for line in example.lines() {
        // A setting in a comment is optional, but known to the release.
        let line = line.strip_prefix('#').unwrap_or(line).trim_start();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let (outer, inner) = name.split_once('.').unwrap_or((name, ""));
            outer.clone_into(&mut section);
            let inner = inner.split('.').next().filter(|inner| !inner.is_empty());
            found.extend(inner.map(|inner| (section.clone(), inner.to_owned())));
        } else if let Some((key, _)) = line.split_once('=') {
            let key = key.trim().split('.').next().unwrap_or_default();
            let is_key =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            if !key.is_empty() && key.chars().all(is_key) {
                found.insert((section.clone(), key.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_knows_settings_of_its_example() {
        let example =
            "[ingest]\nlisten = \"x\" # where\n# poll_interval_s = 60\n# A remark = no.\n# [planner.pools]\n";
        let previous = PreviousRelease {
            folder: PathBuf::new(),
            settings: settings_of(example),
        };
        for (variable, is_known) in [
            ("JOURNEYMAN__INGEST__LISTEN", true),
            ("JOURNEYMAN__INGEST__POLL_INTERVAL_S", true),
            ("JOURNEYMAN__PLANNER__POOLS__DEFAULT", true),
            ("JOURNEYMAN__INGEST__CHECKS_SETTLE_S", false),
            ("JOURNEYMAN__PLANNER__LISTEN", false),
            ("OTEL_SERVICE_NAME", true),
        ] {
            assert_eq!(previous.knows(variable), is_known, "{variable}");
        }
    }
}
