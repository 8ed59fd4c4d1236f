//! Validation of paths that the model writes.

use std::path::{Component, Path, PathBuf};

/// Returns the path relative to the workspace. `text` is relative, or absolute inside `tree`. An empty result
/// is the workspace itself. `..` must not lead outside.
///
/// # Errors
/// Returns a text for the model.
pub(crate) fn resolve_model_path(tree: &Path, text: &str) -> Result<PathBuf, String> {
    let refuse = |why: &str| {
        Err(format!(
            "Path {text:?} {why}. Use a path inside the workspace, relative to its root."
        ))
    };
    if text.contains('\0') || text.len() > 4096 {
        return refuse("is not a path");
    }
    let path = Path::new(text);
    let path = match path.strip_prefix(tree) {
        Ok(inside) => inside,
        Err(_) if path.is_absolute() => return refuse("is outside the workspace"),
        Err(_) => path,
    };
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if clean.pop() => {}
            Component::Normal(name) if is_git_folder(name.as_encoded_bytes()) => {
                return refuse("belongs to git");
            }
            Component::Normal(name) => clean.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return refuse("is outside the workspace");
            }
        }
    }
    Ok(clean)
}

/// Returns true for `.git` in every spelling that some file system treats as equal: other case, the DOS short
/// name, trailing dots or spaces, and ignorable characters.
pub(crate) fn is_git_folder(name: &[u8]) -> bool {
    // A walk asks for every file of a worktree, and most names differ in their first byte. An ignorable character
    // is not ASCII.
    if name
        .first()
        .is_none_or(|first| first.is_ascii() && !matches!(first, b'.' | b'g' | b'G'))
    {
        return false;
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}'))
        .collect();
    let plain = plain.trim_end_matches(['.', ' ']);
    plain == ".git" || plain == "git~1"
}

/// Returns true for a name that is valid in a tree and safe in a folder.
pub(crate) fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && name.len() <= 255
        && !name.contains(&b'/')
        && !name.contains(&0)
        && !is_git_folder(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve_inside_path(text: &str) -> Option<String> {
        resolve_model_path(Path::new("/w/tree"), text)
            .ok()
            .map(|path| path.display().to_string())
    }

    #[test]
    fn paths_inside_are_taken_relative_or_absolute() {
        for (text, path) in [
            ("a/b.rs", "a/b.rs"),
            ("./a", "a"),
            ("/w/tree/a", "a"),
            (".", ""),
            ("/w/tree", ""),
            ("a/../b", "b"),
        ] {
            assert_eq!(resolve_inside_path(text).as_deref(), Some(path), "{text}");
        }
    }

    #[test]
    fn outside_and_git_paths_are_refused() {
        for text in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            "/w/treehouse",
            ".git/config",
            "a/.GIT/x",
            ".git./x",
            "a\0b",
        ] {
            assert_eq!(resolve_inside_path(text), None, "{text}");
        }
    }

    #[test]
    fn git_folder_is_known_in_every_spelling() {
        for name in [
            ".git",
            ".GIT",
            ".git. .",
            "git~1",
            "GIT~1",
            "\u{200b}.git",
            "\u{feff}\u{200d}Git~1",
            ".g\u{200c}it ",
        ] {
            assert!(is_git_folder(name.as_bytes()), "{name:?}");
        }
        for name in [
            "",
            ".",
            "git",
            ".github",
            "a.git",
            "~.git",
            " .git",
            "\u{e9}.git",
            "git~2",
            "src",
        ] {
            assert!(!is_git_folder(name.as_bytes()), "{name:?}");
        }
        assert!(!is_git_folder(b"\xff.git"));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_written_the_path_stays_inside(text in "(\\.\\.|\\.|/|/w/tree|[a-c\u{e9}]{1,2}|\\.git|\\.GIT){0,8}") {
            if let Ok(path) = resolve_model_path(Path::new("/w/tree"), &text) {
                let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if is_plain_name(name.as_encoded_bytes()));
                proptest::prop_assert!(path.components().all(is_plain), "{text:?} became {path:?}");
            }
        }
    }
}
