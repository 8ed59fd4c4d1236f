//! Search for a server's program, and its version.

use std::path::{Path, PathBuf};

use semver::Version;

use crate::Error;

/// Finds a program at a given path or in the usual places.
///
/// The order is: `explicit`, the path in the environment variable `variable`, `PATH`, the folder of this
/// program (a Python environment has both), and `.tools/venv/bin` in the working directory, in this program's
/// folder, or in the nearest directory above.
///
/// # Errors
/// [`Error::NotFound`] with the searched places. An explicit path is never replaced by another place.
pub fn find_program(name: &str, explicit: Option<&Path>, variable: &str) -> Result<PathBuf, Error> {
    let named = explicit
        .map(Path::to_path_buf)
        .or_else(|| std::env::var_os(variable).map(PathBuf::from));
    if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(not_found(name, path.display().to_string()))
        };
    }
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::current_dir().ok();
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let above = [here, program].into_iter().flatten().flat_map(|start| {
        start
            .ancestors()
            .map(|directory| directory.join(".tools/venv/bin"))
            .collect::<Vec<_>>()
    });
    std::env::split_paths(&on_path)
        .chain(beside)
        .chain(above)
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            not_found(
                name,
                format!("${variable}, PATH, this program's folder, .tools/venv/bin"),
            )
        })
}

fn not_found(name: &str, looked_at: String) -> Error {
    Error::NotFound {
        program: name.to_owned(),
        looked_at,
    }
}

/// First `number.number.number` in the output of `program --version`.
pub(crate) fn version_of(program: &Path) -> Result<Version, Error> {
    let output = std::process::Command::new(program)
        .arg("--version")
        .output()
        .map_err(|source| Error::Spawn {
            program: program.to_path_buf(),
            source,
        })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    parse_version(&text).ok_or_else(|| Error::Version {
        program: program.to_path_buf(),
        output: text,
    })
}

fn parse_version(text: &str) -> Option<Version> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .find_map(|word| Version::parse(word).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_output() {
        assert_eq!(
            parse_version("nats-server: v2.12.5"),
            Some(Version::new(2, 12, 5))
        );
        assert_eq!(
            parse_version("Redis server v=7.0.15 sha=00000000:0"),
            Some(Version::new(7, 0, 15))
        );
        assert_eq!(parse_version("no version"), None);
    }

    #[test]
    fn missing_explicit_path_is_not_replaced() {
        let missing = Path::new("/nowhere/redis-server");
        assert!(matches!(
            find_program("redis-server", Some(missing), "X"),
            Err(Error::NotFound { .. })
        ));
    }
}
