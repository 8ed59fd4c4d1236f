//! Names of new files that Windows or macOS cannot hold, and better ones.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use unicode_normalization::UnicodeNormalization as _;

/// Limit of a path in bytes. Windows accepts 260 characters, with the folder of the clone.
const MAX_PATH_BYTES: usize = 255;
/// Characters of which Windows allows none in a name. A slash cannot be in a name.
const FORBIDDEN: &[char] = &['<', '>', ':', '"', '|', '?', '*', '\\'];
/// Devices of Windows, in each folder and with each extension.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];
const NUMBERED_DEVICES: &[&str] = &["com", "lpt"];
/// Name in the place of one that has no allowed character.
const FALLBACK: &str = "file";

/// Reason why a path is not portable. The text follows the path.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NameProblem {
    #[error("contains {0:?}, which Windows allows in no name; use {1}")]
    Character(char, String),
    #[error("contains bytes that are not UTF-8, which macOS cannot store; use {0}")]
    NotUtf8(String),
    #[error("ends in a dot or space, which Windows removes; use {0}")]
    End(String),
    #[error("has the name of a device of Windows; use {0}")]
    Device(String),
    #[error(
        "is longer than {} bytes, which Windows cannot check out; use a shorter name",
        MAX_PATH_BYTES
    )]
    TooLong,
    #[error(
        "differs from {0} only in upper and lower case or in the form of its accents, which Windows and macOS do not \
         distinguish; use that path or another name"
    )]
    Twin(String),
}

/// Checks the names of a new path, without those of other files.
pub(super) fn check_names(path: &Path) -> Result<(), NameProblem> {
    let better = || propose_path(path).display().to_string();
    for part in path.components() {
        let name = part.as_os_str();
        let Some(text) = name.to_str() else {
            return Err(NameProblem::NotUtf8(better()));
        };
        if let Some(forbidden) = text.chars().find(|c| is_forbidden(*c)) {
            return Err(NameProblem::Character(forbidden, better()));
        }
        if text.ends_with(['.', ' ']) {
            return Err(NameProblem::End(better()));
        }
        if is_device(text) {
            return Err(NameProblem::Device(better()));
        }
    }
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(NameProblem::TooLong);
    }
    Ok(())
}

/// Control characters, and those that reverse the direction of a text, belong to no name either.
fn is_forbidden(c: char) -> bool {
    c.is_control() || FORBIDDEN.contains(&c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let stem = stem.to_lowercase();
    if DEVICES.contains(&stem.as_str()) {
        return true;
    }
    let number = NUMBERED_DEVICES
        .iter()
        .find_map(|device| stem.strip_prefix(device));
    number.is_some_and(|number| {
        let mut digits = number.chars();
        let is_digit = |c: char| matches!(c, '1'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}');
        digits.next().is_some_and(is_digit) && digits.next().is_none()
    })
}

/// Returns a similar path that is portable, except for its length.
fn propose_path(path: &Path) -> PathBuf {
    path.components().map(propose_name).collect()
}

fn propose_name(part: Component<'_>) -> String {
    let text = part.as_os_str().to_string_lossy();
    let replaced: String = text
        .chars()
        .map(|c| {
            if is_forbidden(c) || c == char::REPLACEMENT_CHARACTER {
                '-'
            } else {
                c
            }
        })
        .collect();
    let name = replaced.trim_end_matches(['.', ' ']);
    match name.split_once('.') {
        _ if name.is_empty() => FALLBACK.to_owned(),
        Some((stem, rest)) if is_device(name) => format!("{}_.{rest}", stem.trim_end()),
        None if is_device(name) => format!("{name}_"),
        Some(_) | None => name.to_owned(),
    }
}

/// Returns a name as file systems compare it that ignore case and the form of accents.
pub(super) fn fold_name(name: &OsStr) -> String {
    let text = name.to_string_lossy();
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower: String = text.nfd().flat_map(char::to_lowercase).collect();
    lower.nfd().collect()
}

/// Returns the entry of a folder that file systems without case do not distinguish from a new name.
pub(super) fn find_twin<'a>(name: &OsStr, mut entries: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold_name(name);
    entries.find(|entry| fold_name(OsStr::new(entry)) == folded && OsStr::new(entry) != name)
}

/// Paths of a tree, and all folders above them, by their folded names.
#[derive(Default)]
pub(super) struct KnownNames(HashMap<String, BTreeSet<PathBuf>>);

impl KnownNames {
    /// Adds a path and the folders above it.
    pub(super) fn add(&mut self, path: &Path) {
        for prefix in list_prefixes(path) {
            // The folders above a known one are known too.
            if !self
                .0
                .entry(fold_name(prefix.as_os_str()))
                .or_default()
                .insert(prefix.to_owned())
            {
                break;
            }
        }
    }

    /// Checks that a new path and the folders above it have no twin.
    pub(super) fn check(&self, path: &Path) -> Result<(), NameProblem> {
        for prefix in list_prefixes(path) {
            let Some(known) = self.0.get(&fold_name(prefix.as_os_str())) else {
                continue;
            };
            if known.contains(prefix) {
                continue;
            }
            if let Some(twin) = known.first() {
                return Err(NameProblem::Twin(twin.display().to_string()));
            }
        }
        Ok(())
    }
}

fn list_prefixes(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors()
        .take_while(|prefix| !prefix.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn names_of_no_windows_are_refused_with_better_ones() {
        for (path, better) in [
            ("a:b.md", "a-b.md"),
            ("docs/what?.md", "docs/what-.md"),
            ("a\\b", "a-b"),
            ("a\nb", "a-b"),
            ("a\u{202e}b", "a-b"),
            ("trailing.", "trailing"),
            ("trailing /x", "trailing/x"),
            ("aux.js", "aux_.js"),
            ("src/NUL", "src/NUL_"),
            ("com1.tar.gz", "com1_.tar.gz"),
            ("lpt\u{b9}", "lpt\u{b9}_"),
            ("con .txt", "con_.txt"),
            ("...", "file"),
        ] {
            let words = check_names(Path::new(path)).unwrap_err().to_string();
            assert!(words.ends_with(&format!("use {better}")), "{path:?}: {words}");
            assert_eq!(check_names(Path::new(better)), Ok(()), "{better}");
        }
        let bytes = Path::new(OsStr::from_bytes(b"caf\xe9.txt"));
        assert_eq!(
            check_names(bytes),
            Err(NameProblem::NotUtf8("caf-.txt".to_owned()))
        );
        let long = format!("{}/x", "a".repeat(MAX_PATH_BYTES));
        assert_eq!(check_names(Path::new(&long)), Err(NameProblem::TooLong));
    }

    #[test]
    fn ordinary_names_are_portable() {
        for path in [
            "README.md",
            ".github/workflows/ci.yml",
            "auxiliary.js",
            "com.rs",
            "com10",
            "a/console.ts",
            "caf\u{e9}/\u{65e5}\u{672c}.txt",
            "a b/[id].tsx",
            "lib/nul_test.py",
        ] {
            assert_eq!(check_names(Path::new(path)), Ok(()), "{path}");
        }
    }

    #[test]
    fn twins_are_found_in_each_part() {
        let mut known = KnownNames::default();
        for path in ["README.md", "Docs/a.md", "docs/b.md", "caf\u{e9}/x"] {
            known.add(Path::new(path));
        }
        for (path, twin) in [
            ("readme.md", Some("README.md")),
            ("DOCS/new.md", Some("Docs")),
            ("docs/new.md", None),
            ("docs/B.md", Some("docs/b.md")),
            ("cafe\u{301}/y", Some("caf\u{e9}")),
            ("caf\u{e9}/y", None),
            ("other", None),
        ] {
            let expected = match twin {
                Some(twin) => Err(NameProblem::Twin(twin.to_owned())),
                None => Ok(()),
            };
            assert_eq!(known.check(Path::new(path)), expected, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn fuzz_proposed_path_is_portable(text in "([a-z.: ]|/|con|aux|\\\\|\u{202e}|\n|\u{e9}){1,30}") {
            let path: PathBuf = Path::new(text.trim_start_matches('/'))
                .components()
                .filter(|part| matches!(part, Component::Normal(_)))
                .collect();
            let better = propose_path(&path);
            proptest::prop_assert_eq!(check_names(&better), Ok(()));
            proptest::prop_assert_eq!(propose_path(&better), better);
        }
    }
}
