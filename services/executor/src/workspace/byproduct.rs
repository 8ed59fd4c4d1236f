//! By-products of commands: caches, installed packages, build outputs, logs. They belong to no change.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::root::{FileKind, WorkspaceRoot};

/// Names of folders that tools write and that users do not edit.
const FOLDERS: [&str; 48] = [
    ".bundle",
    ".cache",
    ".dart_tool",
    ".elixir_ls",
    ".eggs",
    ".gradle",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nox",
    ".npm",
    ".nuxt",
    ".nyc_output",
    ".parcel-cache",
    ".phpunit.cache",
    ".pnpm-store",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    ".zig-cache",
    "__pycache__",
    "__pypackages__",
    "_build",
    "bower_components",
    "build",
    "cmake-build-debug",
    "coverage",
    "dbt_packages",
    "dist",
    "dist-newstyle",
    "htmlcov",
    "node_modules",
    "playwright-report",
    "storybook-static",
    "surefire-reports",
    "target",
    "test-results",
    "venv",
    "zig-cache",
    "zig-out",
];
const FOLDER_ENDS: [&str; 2] = [".egg-info", ".dist-info"];
const FILES: [&str; 21] = [
    ".coverage",
    ".ds_store",
    ".eslintcache",
    ".phpunit.result.cache",
    ".stylelintcache",
    "a.out",
    "clover.xml",
    "coverage.out",
    "coverage.xml",
    "desktop.ini",
    "install-state.gz",
    "junit.xml",
    "lcov.info",
    "nohup.out",
    "nosetests.xml",
    "npm-debug.log",
    "project.assets.json",
    "test-results.xml",
    "thumbs.db",
    "yarn-debug.log",
    "yarn-error.log",
];
const ENDS: [&str; 23] = [
    ".a",
    ".class",
    ".coverprofile",
    ".deps.json",
    ".dll",
    ".dylib",
    ".exe",
    ".gcda",
    ".gcno",
    ".jar",
    ".log",
    ".o",
    ".obj",
    ".orig",
    ".profraw",
    ".pyc",
    ".pyd",
    ".pyo",
    ".rej",
    ".so",
    ".swp",
    ".tmp",
    ".tsbuildinfo",
];
/// Libraries that belong to a repository: a build tool in the repository starts with them.
const SOURCES: [&str; 2] = ["gradle-wrapper.jar", "maven-wrapper.jar"];
/// Files of a project for .NET.
const DOTNET: [&str; 5] = ["*.csproj", "*.fsproj", "*.sln", "*.slnx", "*.vbproj"];
/// Files next to which a `.pdb` has debug information. Elsewhere it may be data of proteins.
const DEBUGGED: [&str; 7] = [
    "*.csproj", "*.dll", "*.exe", "*.fsproj", "*.sln", "*.slnx", "*.vbproj",
];

/// Folder with a general name, which only the files of an ecosystem next to it show to be a by-product.
struct MarkedFolder {
    /// Last parts of its path.
    path: &'static str,
    /// Names of files next to it, one of which is necessary; `*` stands for any beginning. Without a name
    /// the path is certain.
    markers: &'static [&'static str],
}

const MARKED: [MarkedFolder; 10] = [
    marked(".build", &["Package.swift"]),
    marked(".yarn/cache", &[]),
    marked(".yarn/unplugged", &[]),
    marked("Pods", &["Podfile"]),
    marked("bin", &DOTNET),
    marked(
        "cover",
        &[
            ".coveragerc",
            "mix.exs",
            "pyproject.toml",
            "rebar.config",
            "setup.cfg",
            "tox.ini",
        ],
    ),
    marked("deps", &["mix.exs"]),
    marked("obj", &DOTNET),
    marked("vendor", &["composer.json"]),
    // Other folders in a Rails application's `vendor` are sources.
    marked("vendor/bundle", &["Gemfile", "gems.rb"]),
];

const fn marked(path: &'static str, markers: &'static [&'static str]) -> MarkedFolder {
    MarkedFolder { path, markers }
}

/// File in each Python environment, which may have any name.
const ENVIRONMENT: &str = "pyvenv.cfg";
// Limit of the entries of a folder that are searched for a marker; folders of projects have far fewer.
const MAX_LISTED: usize = 5000;

/// Magic numbers of programs and libraries: ELF, three forms of Mach-O, PE.
const PROGRAMS: [&[u8]; 5] = [
    b"\x7fELF",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"MZ\x90\0",
];

/// Reason in the message for the model.
pub(super) const WHY: &str =
    "commands leave such files behind; write it with write_file if it belongs to the change";

/// Files on the disk that show the ecosystem of a folder.
pub(super) struct FolderMarkers<'a> {
    root: &'a WorkspaceRoot,
    /// Paths that were searched for, with true for an existing file.
    known: RefCell<HashMap<PathBuf, bool>>,
    /// Names of the files in listed folders.
    listed: RefCell<HashMap<PathBuf, Vec<String>>>,
}

impl<'a> FolderMarkers<'a> {
    pub(super) fn new(root: &'a WorkspaceRoot) -> Self {
        Self {
            root,
            known: RefCell::default(),
            listed: RefCell::default(),
        }
    }

    /// Returns true when the folder has a file of this name; `*` stands for any beginning.
    pub(super) fn has(&self, folder: &Path, name: &str) -> bool {
        match name.strip_prefix('*') {
            Some(end) => self.has_ending(folder, end),
            None => self.has_file(folder.join(name)),
        }
    }

    fn has_file(&self, path: PathBuf) -> bool {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get(&path) {
            return *known;
        }
        let stat = self.root.stat(&path);
        let is_file = matches!(stat, Ok(Some(stat)) if matches!(stat.kind, FileKind::File { .. }));
        known.insert(path, is_file);
        is_file
    }

    fn has_ending(&self, folder: &Path, end: &str) -> bool {
        let mut listed = self.listed.borrow_mut();
        if let Some(names) = listed.get(folder) {
            return names.iter().any(|name| name.ends_with(end));
        }
        let entries = self.root.list(folder, MAX_LISTED).unwrap_or_default();
        let files = entries.into_iter().filter(|entry| !entry.is_folder);
        let names: Vec<String> = files.map(|entry| entry.name).collect();
        let is_there = names.iter().any(|name| name.ends_with(end));
        listed.insert(folder.to_owned(), names);
        is_there
    }
}

/// Check for a file in a folder, as of [`FolderMarkers::has`].
pub(super) type HasFile<'a> = &'a dyn Fn(&Path, &str) -> bool;

/// By-products that the repository itself contains: a folder, or files of a kind in a folder. Such paths may
/// belong to a change.
#[derive(Default)]
pub(super) struct OwnByproducts {
    kinds: BTreeSet<(PathBuf, String)>,
    /// Folders of the repository's files.
    folders: BTreeSet<PathBuf>,
}

impl OwnByproducts {
    /// Collects them from the paths of a repository.
    pub(super) fn among<'p>(paths: impl Iterator<Item = &'p PathBuf>, has: HasFile<'_>) -> Self {
        let mut own = Self::default();
        // Neighbors in a sorted list are usually in the same folder, which is then classified once.
        let mut ordinary = None;
        for path in paths {
            let folder = path.parent();
            if ordinary.is_none() || ordinary != folder {
                ordinary = folder.filter(|_| find_folder(path, has, &|_| false).is_none());
            }
            own.kinds.extend(match ordinary {
                Some(_) => find_file_kind(path, has),
                None => find_kind(path, has, &|_| false),
            });
            for folder in path.ancestors().skip(1) {
                // The folders above a known one are known, too.
                if !own.folders.insert(folder.to_owned()) {
                    break;
                }
            }
        }
        own
    }

    /// Folders of the repository's files.
    pub(super) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.folders.iter()
    }

    /// Adds a file that the repository contains now. Returns false, without adding it, if the file changes which
    /// paths are by-products.
    pub(super) fn add_source(&mut self, path: &Path, has: HasFile<'_>) -> bool {
        if find_kind(path, has, &|_| false).is_some() {
            return false;
        }
        let above = path.ancestors().skip(1);
        let new: Vec<PathBuf> = above
            .filter(|folder| !self.folders.contains(*folder))
            .map(Path::to_owned)
            .collect();
        if new.iter().any(|folder| has(folder, ENVIRONMENT)) {
            return false;
        }
        self.folders.extend(new);
        true
    }

    /// Returns the folder or file of a by-product that contains the path; `None` for a file that may belong
    /// to a change.
    pub(super) fn find<'p>(&self, path: &'p Path, has: HasFile<'_>) -> Option<&'p Path> {
        let is_environment = |folder: &Path| self.is_environment(folder, has);
        let kind = find_kind(path, has, &is_environment)?;
        if self.kinds.contains(&kind) {
            return None;
        }
        Some(find_folder(path, has, &is_environment).unwrap_or(path))
    }

    /// Returns true for a new folder with a Python environment. An environment among the repository's files
    /// does not make them by-products.
    fn is_environment(&self, folder: &Path, has: HasFile<'_>) -> bool {
        folder != Path::new("") && !self.folders.contains(folder) && has(folder, ENVIRONMENT)
    }
}

/// Returns true for a name that shows the ecosystem of a folder.
pub(super) fn is_marker(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let markers = MARKED.iter().flat_map(|marked| marked.markers);
    let mut all = markers.chain(&DEBUGGED);
    name == ENVIRONMENT
        || all.any(|marker| match marker.strip_prefix('*') {
            Some(end) => name.ends_with(end),
            None => name == *marker,
        })
}

/// Returns true for the content of a native program or library.
pub(super) fn is_program(content: &[u8]) -> bool {
    PROGRAMS.iter().any(|start| content.starts_with(start))
}

/// Returns the by-product folder above a path, or else its parent folder with the kind of file.
fn find_kind(
    path: &Path,
    has: HasFile<'_>,
    is_environment: &dyn Fn(&Path) -> bool,
) -> Option<(PathBuf, String)> {
    if let Some(folder) = find_folder(path, has, is_environment) {
        return Some((folder.to_owned(), String::new()));
    }
    find_file_kind(path, has)
}

/// Returns the parent folder with the kind of a file that is a by-product by its name.
fn find_file_kind(path: &Path, has: HasFile<'_>) -> Option<(PathBuf, String)> {
    // Names are compared in lower case, because `Thumbs.db` and `.DS_Store` occur in several spellings.
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let folder = path.parent()?;
    let end = ENDS
        .iter()
        // A file that is called `.log` has a name, not an ending.
        .find(|end| name.ends_with(*end) && name.len() > end.len());
    let is_named = FILES.contains(&name.as_str()) || name.starts_with(".coverage.");
    let is_debug = || name.ends_with(".pdb") && DEBUGGED.iter().any(|marker| has(folder, marker));
    let kind = match end {
        Some(_) if SOURCES.contains(&name.as_str()) => return None,
        Some(end) => (*end).to_owned(),
        None if is_named => name,
        None if is_debug() => ".pdb".to_owned(),
        None => return None,
    };
    Some((folder.to_owned(), kind))
}

/// Returns the outermost by-product folder above a path.
fn find_folder<'p>(
    path: &'p Path,
    has: HasFile<'_>,
    is_environment: &dyn Fn(&Path) -> bool,
) -> Option<&'p Path> {
    let is_named = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        FOLDERS.contains(&name) || FOLDER_ENDS.iter().any(|end| name.ends_with(end))
    };
    let is_one = |folder: &Path| {
        folder.file_name().is_some_and(is_named) || is_marked(folder, has) || is_environment(folder)
    };
    // From the outermost folder on: nothing below a by-product is examined.
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.into_iter().rev().find(|folder| is_one(folder))
}

fn is_marked(folder: &Path, has: HasFile<'_>) -> bool {
    MARKED.iter().any(|marked| {
        let is_shown = |beside: &Path| {
            marked.markers.is_empty() || marked.markers.iter().any(|marker| has(beside, marker))
        };
        let parts = Path::new(marked.path).components().count();
        folder.ends_with(marked.path) && folder.ancestors().nth(parts).is_some_and(is_shown)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_byproduct(own: &[&str], path: &str) -> Option<String> {
        find_beside(own, &[], path)
    }

    /// Classifies a path with these tracked files, and with these other files on the disk.
    fn find_beside(own: &[&str], others: &[&str], path: &str) -> Option<String> {
        let has = |folder: &Path, name: &str| {
            let is_it = |file: &&str| {
                let (file, end) = (Path::new(file), name.trim_start_matches('*'));
                let known = file.file_name().unwrap().to_str().unwrap();
                file.parent() == Some(folder) && (known == name || (name != end && known.ends_with(end)))
            };
            own.iter().chain(others).any(is_it)
        };
        let paths: Vec<PathBuf> = own.iter().map(PathBuf::from).collect();
        let known = OwnByproducts::among(paths.iter(), &has);
        let found = known.find(Path::new(path), &has);
        found.map(|found| found.display().to_string())
    }

    #[test]
    fn general_names_need_their_ecosystem() {
        for (marker, path, folder) in [
            ("Shop.csproj", "obj/project.assets.json", "obj"),
            ("src/Shop.fsproj", "src/bin/Debug/net8.0/Shop.txt", "src/bin"),
            ("Shop.sln", "bin/Release/x", "bin"),
            ("composer.json", "vendor/autoload.php", "vendor"),
            ("Gemfile", "vendor/bundle/ruby/3.3.0/gems/a.rb", "vendor/bundle"),
            ("Package.swift", ".build/debug.yaml", ".build"),
            ("mix.exs", "deps/plug/mix.exs", "deps"),
            ("mix.exs", "cover/Elixir.Shop.html", "cover"),
            ("setup.cfg", "cover/index.html", "cover"),
            ("ios/Podfile", "ios/Pods/Manifest.lock", "ios/Pods"),
        ] {
            assert_eq!(
                find_beside(&[marker], &[], path).as_deref(),
                Some(folder),
                "{path}"
            );
            assert_eq!(
                find_beside(&[], &[marker], path).as_deref(),
                Some(folder),
                "{path}"
            );
            assert_ne!(
                find_beside(&["README.md"], &[], path).as_deref(),
                Some(folder),
                "{path}"
            );
            let tracked = format!("{folder}/kept.txt");
            assert_eq!(find_beside(&[marker, &tracked], &[], path), None, "{path}");
        }
        let go = ["go.mod", "main.go"];
        for path in [
            "vendor/modules.txt",
            "bin/generate.sh",
            "deps/deps.go",
            "cover/cover.go",
        ] {
            assert_eq!(find_beside(&go, &[], path), None, "{path}");
        }
        let rails = ["Gemfile", "vendor/javascript/a.js"];
        assert_eq!(find_beside(&rails, &[], "vendor/javascript/b.js"), None);
        assert_eq!(
            find_beside(&rails, &[], "vendor/bundle/a.rb").as_deref(),
            Some("vendor/bundle")
        );
    }

    #[test]
    fn environment_of_any_name_is_byproduct() {
        let files = ["tools/env312/pyvenv.cfg"];
        for path in ["tools/env312/pyvenv.cfg", "tools/env312/lib/__pycache__/a.pyc"] {
            assert_eq!(
                find_beside(&["setup.py", "tools/a.py"], &files, path).as_deref(),
                Some("tools/env312"),
                "{path}"
            );
        }
        assert_eq!(find_beside(&["setup.py"], &["pyvenv.cfg"], "shop/new.py"), None);
        let among = find_beside(&["app/main.py"], &["app/pyvenv.cfg"], "app/new.py");
        assert_eq!(among, None);
    }

    #[test]
    fn reports_and_libraries_are_byproducts() {
        for path in [
            "junit.xml",
            "reports/JUnit.xml",
            "lib/libshop.a",
            "out/shop.jar",
            "out/Shop.class",
            "shop.o",
            "publish/Shop.deps.json",
        ] {
            assert_eq!(find_byproduct(&[], path).as_deref(), Some(path), "{path}");
        }
        for folder in [
            ".yarn/cache",
            "web/.yarn/unplugged",
            "zig-out",
            "zig-cache",
            ".stack-work",
            "_build",
        ] {
            let path = format!("{folder}/x");
            assert_eq!(find_byproduct(&[], &path).as_deref(), Some(folder));
            assert_eq!(find_byproduct(&[&format!("{folder}/kept")], &path), None);
        }
        assert_eq!(
            find_beside(&[], &["out/Shop.dll"], "out/Shop.pdb").as_deref(),
            Some("out/Shop.pdb")
        );
        for path in [
            "data/1abc.pdb",
            "gradle/wrapper/gradle-wrapper.jar",
            ".yarn/releases/yarn-4.cjs",
            "package.deps.jsonc",
        ] {
            assert_eq!(find_byproduct(&[], path), None, "{path}");
        }
        assert_eq!(find_byproduct(&["lib/a.jar"], "lib/b.jar"), None);
    }

    #[test]
    fn outermost_folder_is_named_once() {
        for (path, folder) in [
            ("__pycache__/cart.cpython-311.pyc", "__pycache__"),
            ("web/node_modules/a/dist/x.js", "web/node_modules"),
            ("shop.egg-info/PKG-INFO", "shop.egg-info"),
            ("target/debug/shop", "target"),
        ] {
            assert_eq!(find_byproduct(&[], path).as_deref(), Some(folder), "{path}");
        }
        for path in ["npm-debug.log", "src/.DS_Store", ".coverage.host.12", "a/b.pyc"] {
            assert_eq!(find_byproduct(&[], path).as_deref(), Some(path), "{path}");
        }
    }

    #[test]
    fn sources_are_not_byproducts() {
        for path in [
            "src/build.rs",
            "build",
            "dist.py",
            "lib/target.go",
            "Cargo.lock",
            "__snapshots__/a.snap",
            "docs/coverage.md",
            ".log",
            "migrations/0001_init.sql",
        ] {
            assert_eq!(find_byproduct(&[], path), None, "{path}");
        }
    }

    #[test]
    fn kinds_that_the_repository_has_stay() {
        assert_eq!(find_byproduct(&["dist/app.js"], "dist/new.js"), None);
        assert_eq!(
            find_byproduct(&["dist/app.js"], "web/dist/new.js").as_deref(),
            Some("web/dist")
        );
        assert_eq!(
            find_byproduct(&["tests/data/one.log"], "tests/data/two.log"),
            None
        );
        assert!(find_byproduct(&["tests/data/one.log"], "two.log").is_some());
    }
}
