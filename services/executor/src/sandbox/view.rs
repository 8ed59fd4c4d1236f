//! Part of the machine that commands may read: the system and its toolchains. Home folders, data and
//! everything else are invisible unless the settings expose them.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::policy::SYSTEM;

/// Folders below the home folder in which language tools install programs and packages. None of them contains
/// the user's credentials or work, such as `go/src`. Packages may be private.
const TOOLCHAINS_AT_HOME: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".dotnet",
    ".ghcup",
    ".jenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nodenv",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman/candidates",
    ".swiftly",
    ".volta",
    "anaconda3",
    "go/bin",
    "go/pkg/mod",
    "miniconda3",
    "miniforge3",
    "sdk",
];
/// Toolchains of all users that lie below folders of homes or data.
const SHARED_TOOLCHAINS: &[&str] = &["/home/linuxbrew/.linuxbrew", "/var/lib/snapd/snap"];
/// Environment variables that name folders of toolchains.
const VARIABLES: &[&str] = &["RUSTUP_HOME", "JAVA_HOME", "GOROOT"];
/// Folders next to a folder of programs from which these load libraries.
const LIBRARIES: &[&str] = &["lib", "lib64", "libexec"];
/// Folder of system settings. Commands may read it except for its private parts.
const SETTINGS: &str = "/etc";
/// Limit of nested folders that are searched for private settings.
const SETTINGS_DEPTH: u32 = 4;
/// Settings file in the working directory of `journeyman up`, which may contain secrets of other services.
const SETTINGS_HERE: &str = "journeyman.toml";

/// Visible and hidden paths of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineView {
    /// Folders and files that commands may read.
    pub(crate) visible: Vec<PathBuf>,
    /// Folders and files inside those that commands must not read.
    pub(crate) hidden: Vec<PathBuf>,
}

impl MachineView {
    /// Computes the view of this machine: the usual paths and `exposed`, without `hidden`.
    pub(crate) fn of_this_machine(exposed: Vec<PathBuf>, mut hidden: Vec<PathBuf>) -> Self {
        let user = ToolchainUser {
            home: std::env::home_dir().filter(|home| home.parent().is_some()),
            path: std::env::var_os("PATH").unwrap_or_default(),
            toolchains: VARIABLES.iter().filter_map(std::env::var_os).collect(),
        };
        // The working directory may be below a visible folder.
        hidden.extend(std::path::absolute(SETTINGS_HERE).ok());
        hidden.extend(private_settings(Path::new(SETTINGS)));
        let system = SYSTEM.iter().chain(SHARED_TOOLCHAINS).map(PathBuf::from);
        Self {
            visible: outermost_paths(system.chain(user.toolchains()).chain(exposed).collect()),
            hidden,
        }
    }
}

/// User whose toolchains commands use.
struct ToolchainUser {
    home: Option<PathBuf>,
    path: OsString,
    toolchains: Vec<OsString>,
}

impl ToolchainUser {
    fn toolchains(&self) -> Vec<PathBuf> {
        let at_home = self
            .home
            .iter()
            .flat_map(|home| TOOLCHAINS_AT_HOME.iter().map(|name| home.join(name)));
        let programs = std::env::split_paths(&self.path).flat_map(|folder| installation_folders(&folder));
        let named = self.toolchains.iter().map(PathBuf::from);
        let found = programs.chain(named).filter(|path| self.is_toolchain(path));
        found.chain(at_home).collect()
    }

    /// Returns true for a folder that is neither a home folder nor above one. A search path may contain any
    /// folder.
    fn is_toolchain(&self, path: &Path) -> bool {
        let is_around_home = |home: &PathBuf| home.starts_with(path);
        path.is_absolute()
            && path.parent().is_some_and(|parent| parent.parent().is_some())
            && !self.home.as_ref().is_some_and(is_around_home)
    }
}

/// Returns a folder of the search path with the files that its programs need: a virtual environment or a
/// version manager as a whole, and otherwise the libraries next to it.
fn installation_folders(programs: &Path) -> Vec<PathBuf> {
    let Some(around) = programs.parent() else {
        return Vec::new();
    };
    if around.join("pyvenv.cfg").is_file() || programs.ends_with("shims") {
        return vec![around.to_owned()];
    }
    let beside = LIBRARIES.iter().map(|name| around.join(name));
    let beside = beside.filter(|path| programs.ends_with("bin") && path.is_dir());
    [programs.to_owned()].into_iter().chain(beside).collect()
}

/// Returns files and folders below a settings folder that others must not read. Commands of a root executor
/// could otherwise read them.
fn private_settings(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut queue = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = queue.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            let Ok(metadata) = entry.metadata() else { continue };
            // Linux gives every symbolic link the mode 0777, so the mode says nothing about its
            // target. The walk finds targets below this folder anyway.
            if metadata.is_symlink() {
                continue;
            }
            if metadata.permissions().mode() & 0o004 == 0 {
                found.push(entry.path());
            } else if metadata.is_dir() && depth < SETTINGS_DEPTH {
                queue.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Removes duplicates, and paths inside of others.
fn outermost_paths(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    // After sorting, a folder precedes the paths inside it.
    paths.sort();
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !found.iter().any(|around| path.starts_with(around)) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_toolchain_user(home: &str, path: &str) -> ToolchainUser {
        ToolchainUser {
            home: Some(home.into()),
            path: path.into(),
            toolchains: vec!["/srv/jdk-21".into()],
        }
    }

    fn has_path(found: &[PathBuf], path: &str) -> bool {
        found.contains(&PathBuf::from(path))
    }

    #[test]
    fn home_toolchains_visible_home_hidden() {
        let found = build_toolchain_user("/home/ada", "/home/ada/tools:/home/ada:/home:.:/").toolchains();
        for path in [
            "/home/ada/.cargo/bin",
            "/home/ada/.nvm",
            "/home/ada/tools",
            "/srv/jdk-21",
        ] {
            assert!(has_path(&found, path), "{path}: {found:?}");
        }
        for path in [
            "/home/ada",
            "/home",
            "/",
            ".",
            "/home/ada/.cargo",
            "/home/ada/.config",
        ] {
            assert!(!has_path(&found, path), "{path}: {found:?}");
        }
    }

    #[test]
    fn work_of_user_beside_toolchains_stays_hidden() {
        let home = tempfile::TempDir::new().unwrap();
        let path = |name: &str| home.path().join(name);
        for name in ["go/bin", "go/src/acme", "go/pkg/mod", ".cargo/bin"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let search = std::env::join_paths(["go/bin", ".cargo/bin"].map(path)).unwrap();
        let found =
            build_toolchain_user(home.path().to_str().unwrap(), search.to_str().unwrap()).toolchains();
        let sees = |name: &str| found.iter().any(|visible| path(name).starts_with(visible));
        for needed in ["go/bin/gopls", "go/pkg/mod/cache/download", ".cargo/registry/src"] {
            assert!(sees(needed), "{needed}: {found:?}");
        }
        for private in [
            "go/src/acme/.env",
            "go/work/.env",
            ".cargo/credentials.toml",
            ".cargo/config.toml",
        ] {
            assert!(!sees(private), "{private}: {found:?}");
        }
    }

    #[test]
    fn search_path_includes_program_libraries() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in [
            "venv/bin",
            "manager/shims",
            "tool/bin",
            "tool/lib",
            "tool/share",
            "lib/x",
        ] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("venv/pyvenv.cfg"), "").unwrap();
        assert_eq!(installation_folders(&path("venv/bin")), [path("venv")]);
        assert_eq!(installation_folders(&path("manager/shims")), [path("manager")]);
        assert_eq!(
            installation_folders(&path("tool/bin")),
            [path("tool/bin"), path("tool/lib")]
        );
        // The name does not mark a folder of programs, so its neighbors are not libraries.
        assert_eq!(installation_folders(&path("other")), [path("other")]);
    }

    #[test]
    fn private_settings_files_are_found() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, mode) in [
            ("shadow", 0o640),
            ("hosts", 0o644),
            ("ssl/private.key", 0o600),
            ("sudo/rules", 0o644),
        ] {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), "").unwrap();
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(path("sudo"), fs::Permissions::from_mode(0o750)).unwrap();
        let mut found = private_settings(folder.path());
        found.sort();
        assert_eq!(found, [path("shadow"), path("ssl/private.key"), path("sudo")]);
    }

    #[test]
    fn a_place_inside_another_is_named_once() {
        let paths = ["/usr/local/go", "/opt", "/usr", "/usr"]
            .map(PathBuf::from)
            .to_vec();
        assert_eq!(outermost_paths(paths), ["/opt", "/usr"].map(PathBuf::from));
    }
}
