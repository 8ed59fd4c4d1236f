//! Programs that are installed with the running one.

use std::path::{Path, PathBuf};

/// Their folder next to `bin`.
const LIBEXEC: &str = "libexec/journeyman";

/// Path of one of Journeyman's programs: next to the running one, in `libexec/journeyman` next to its `bin`
/// folder, or one folder up.
///
/// The second place is that of an installation, the third that of test binaries.
pub fn own_program(name: &str) -> Option<PathBuf> {
    // An installation may be started through a symbolic link.
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok()?;
    find_near_program(&program, name)
}

fn find_near_program(program: &Path, name: &str) -> Option<PathBuf> {
    let folder = program.parent()?;
    let above = folder.parent()?;
    let places = [
        folder.join(name),
        above.join(LIBEXEC).join(name),
        above.join(name),
    ];
    places.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn built_and_installed_programs_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let place = |path: &str| folder.path().join(path);
        for path in ["built/deps", "prefix/bin", "prefix/libexec/journeyman"] {
            fs::create_dir_all(place(path)).unwrap();
        }
        for path in ["built/launcher", "prefix/libexec/journeyman/launcher"] {
            fs::write(place(path), "").unwrap();
        }
        for (program, found) in [
            ("built/journeyman", "built/launcher"),
            ("built/deps/test", "built/launcher"),
            ("prefix/bin/journeyman", "prefix/libexec/journeyman/launcher"),
        ] {
            assert_eq!(
                find_near_program(&place(program), "launcher"),
                Some(place(found)),
                "{program}"
            );
            assert_eq!(find_near_program(&place(program), "parser"), None, "{program}");
        }
    }
}
