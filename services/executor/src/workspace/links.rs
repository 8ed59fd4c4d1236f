//! Paths through symbolic links to folders.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use super::{
    paths::is_git_folder,
    root::{FileKind, WorkspaceRoot},
};

/// Limit of links in one path, as in Linux (`path_resolution(7)`).
const MAX_LINKS: u32 = 40;

/// Replaces the links among the folders of a path by the folders that they lead to. The last part stays. A path
/// that leaves the root, or whose links form a circle, stays as it is, so that its use is refused.
///
/// The result is only a name: every access to it follows no link among its folders.
pub(super) fn resolve_linked_folders(root: &WorkspaceRoot, path: PathBuf) -> PathBuf {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return path;
    };
    let is_plain = parent.as_os_str().is_empty()
        || matches!(root.stat(parent), Ok(Some(stat)) if stat.kind == FileKind::Folder);
    if is_plain {
        return path;
    }
    match follow_links(root, parent) {
        Some(folder) => folder.join(name),
        None => path,
    }
}

fn follow_links(root: &WorkspaceRoot, folder: &Path) -> Option<PathBuf> {
    let mut rest: VecDeque<OsString> = folder.iter().map(OsStr::to_owned).collect();
    let (mut real, mut links) = (PathBuf::new(), 0);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            if !real.pop() {
                return None;
            }
            continue;
        }
        if is_git_folder(part.as_encoded_bytes()) {
            return None;
        }
        let next = real.join(&part);
        if !matches!(root.stat(&next), Ok(Some(stat)) if stat.kind == FileKind::Link) {
            real = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        let bytes = root.read_link(&next).ok()?;
        let target = Path::new(OsStr::from_bytes(&bytes));
        let relative = match target.strip_prefix(root.path()) {
            Ok(inside) => {
                real = PathBuf::new();
                inside
            }
            Err(_) => target,
        };
        for component in relative.components().rev() {
            match component {
                Component::Normal(name) => rest.push_front(name.to_owned()),
                Component::ParentDir => rest.push_front("..".into()),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
    }
    Some(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_to_folders_are_replaced_beneath_root() {
        let outer = tempfile::TempDir::new().unwrap();
        let place = outer.path().join("tree");
        std::fs::create_dir_all(place.join("src/deep")).unwrap();
        std::fs::create_dir_all(outer.path().join("outside")).unwrap();
        for (target, link) in [
            ("src", "linked"),
            ("../src/deep", "src/again"),
            ("linked/deep", "twice"),
            ("../outside", "up"),
            ("/etc", "absolute"),
            ("circle", "circle"),
            (".git", "hidden"),
        ] {
            symlink(target, place.join(link)).unwrap();
        }
        symlink(place.join("src"), place.join("whole")).unwrap();
        let root = WorkspaceRoot::open(&place).unwrap();
        for (path, expected) in [
            ("src/a", "src/a"),
            ("linked/a", "src/a"),
            ("linked/new/a", "src/new/a"),
            ("src/again/a", "src/deep/a"),
            ("twice/a", "src/deep/a"),
            ("whole/a", "src/a"),
            ("linked", "linked"),
            ("up/a", "up/a"),
            ("absolute/passwd", "absolute/passwd"),
            ("circle/a", "circle/a"),
            ("hidden/config", "hidden/config"),
        ] {
            let resolved = resolve_linked_folders(&root, PathBuf::from(path));
            assert_eq!(resolved, Path::new(expected), "{path}");
        }
    }
}
