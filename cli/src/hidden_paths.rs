//! Paths that commands of a run must not read when all services share one machine and one process: secrets of other
//! services.

use std::path::{Path, PathBuf, absolute};

use bootstrap::settings;

const PREFIX: &str = "JOURNEYMAN__";
// Suffix of a variable that names a file with a setting, usually a secret.
const FILE_SUFFIX: &str = "__FILE";

/// Comma-separated list of hidden paths: `configured`, the data folder with queue, tokens and work of other runs, the
/// settings file, and the files that the settings file and variables name.
///
/// # Errors
/// When the working directory is unknown, or a path contains a comma, which the list could not represent.
pub(crate) fn list_hidden_paths(
    configured: &[String],
    data: &Path,
    file: Option<&Path>,
    environment: &[(String, String)],
) -> anyhow::Result<String> {
    let named = environment
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX) && name.ends_with(FILE_SUFFIX))
        .map(|(_, path)| PathBuf::from(path));
    let in_file = file.filter(|file| file.exists()).map(settings::secret_files);
    let named = named.chain(in_file.transpose()?.unwrap_or_default());
    let paths = configured.iter().map(PathBuf::from);
    let paths = paths.chain([data.to_owned()]).chain(file.map(Path::to_owned));
    let mut texts = Vec::new();
    // `std::path::absolute` fails for an empty path, and a variable may be empty.
    for path in paths.chain(named).filter(|path| !path.as_os_str().is_empty()) {
        let text = absolute(&path)?.display().to_string();
        anyhow::ensure!(
            !text.contains(','),
            "{text} cannot be hidden from commands: choose a path without a comma"
        );
        texts.push(text);
    }
    Ok(texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_secret_files_are_hidden() {
        let environment = [
            ("JOURNEYMAN__MODEL__API_KEY__FILE", "/secrets/key"),
            ("JOURNEYMAN__MODEL__NAME", "/not/a/file"),
            ("OTHER__FILE", "/other"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let list = list_hidden_paths(
            &["/mine".to_owned()],
            Path::new("/data"),
            Some(Path::new("/etc/jm/settings.toml")),
            &environment,
        );
        assert_eq!(list.unwrap(), "/mine,/data,/etc/jm/settings.toml,/secrets/key");
        let relative = list_hidden_paths(&[], Path::new("/data"), Some(Path::new("here.toml")), &[]).unwrap();
        let here = std::env::current_dir().unwrap().join("here.toml");
        assert_eq!(relative, format!("/data,{}", here.display()));
        assert!(list_hidden_paths(&[], Path::new("/a,b"), None, &[]).is_err());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journeyman.toml");
        std::fs::write(&file, "[model]\napi_key = { file = \"/keys/model\" }\n").unwrap();
        let list = list_hidden_paths(&[], Path::new("/data"), Some(&file), &[]).unwrap();
        assert_eq!(list, format!("/data,{},/keys/model", file.display()));
    }
}
