//! Toolchains that commands can use here, for administrators who compare executors. No program is started.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::policy::InstalledToolchain;

/// Programs that characterize a pool of executors, sorted by name.
const USUAL: [&str; 31] = [
    "bazel",
    "bun",
    "cargo",
    "clang",
    "cmake",
    "composer",
    "dbt",
    "deno",
    "dotnet",
    "gcc",
    "go",
    "gradle",
    "java",
    "make",
    "mvn",
    "node",
    "npm",
    "php",
    "pnpm",
    "poetry",
    "pytest",
    "python3",
    "ruby",
    "rustc",
    "sbt",
    "swift",
    "terraform",
    "tox",
    "uv",
    "yarn",
    "zig",
];
/// Search path of commands when the environment has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Limit in characters of a system's or program's name.
const LONGEST: usize = 100;

/// Reads the toolchains from the files of this machine or container.
pub(crate) fn find_toolchain() -> InstalledToolchain {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    // The caller passes the search path of commands.
    let path = env::var_os("PATH").unwrap_or_else(|| PATH.into());
    InstalledToolchain {
        system: system_name(&release),
        programs: find_programs(&env::split_paths(&path).collect::<Vec<_>>()),
    }
}

fn system_name(release: &str) -> String {
    let value = |key| release.lines().find_map(|line| line.strip_prefix(key));
    let name = value("PRETTY_NAME=").or_else(|| value("ID=")).unwrap_or_default();
    sanitize_name(name.trim().trim_matches(['"', '\'']))
}

fn find_programs(folders: &[PathBuf]) -> Vec<String> {
    let found = |name: &&str| {
        let file = folders
            .iter()
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())?;
        Some(known_as(name, &file))
    };
    USUAL.iter().filter_map(found).collect()
}

/// Returns the name with its version if the link's target has one, such as `python3.11` for `python3`.
fn known_as(name: &str, file: &Path) -> String {
    let real = fs::canonicalize(file).ok();
    let real = real
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let is_version = |rest: &str| rest.starts_with(['.', '-']) && rest.chars().any(|c| c.is_ascii_digit());
    match real {
        Some(real) if real.strip_prefix(name).is_some_and(is_version) => sanitize_name(real),
        _ => name.to_owned(),
    }
}

fn sanitize_name(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_name_comes_from_os_release() {
        let debian = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n";
        assert_eq!(system_name(debian), "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(system_name("ID=alpine\n"), "alpine");
        assert_eq!(system_name(""), "");
    }

    #[test]
    fn linked_program_shows_its_version() {
        let folder = tempfile::TempDir::new().unwrap();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        for path in [&first, &second] {
            fs::create_dir(path).unwrap();
        }
        fs::write(second.join("python3.11"), "").unwrap();
        std::os::unix::fs::symlink("python3.11", second.join("python3")).unwrap();
        fs::write(second.join("npm-cli"), "").unwrap();
        std::os::unix::fs::symlink("npm-cli", second.join("npm")).unwrap();
        fs::write(first.join("go"), "").unwrap();
        fs::create_dir(first.join("cargo")).unwrap();
        fs::write(first.join("unheard-of"), "").unwrap();
        assert_eq!(find_programs(&[first, second]), ["go", "npm", "python3.11"]);
    }
}
