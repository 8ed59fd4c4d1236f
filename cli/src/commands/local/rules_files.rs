//! Texts of the rules files of a folder.

use std::path::Path;

use anyhow::Context;

/// Texts of the rules files of a folder by name; empty for a missing folder.
pub(super) fn read_rules_files(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let place = || format!("cannot read {}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(place),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(place)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if matches!(ending, Some("yaml" | "yml")) && path.is_file() {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((name, text));
        }
    }
    // The loader reads files in the order of names.
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_files_are_read_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", "notes.md"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let files = read_rules_files(folder.path()).unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.yml", "b.yaml"]);
        assert!(
            read_rules_files(&folder.path().join("missing"))
                .unwrap()
                .is_empty()
        );
    }
}
