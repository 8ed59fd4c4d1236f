//! Python of the bench: the system's, because a version manager's shim costs more than the measured work.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use crate::output::print_line;

/// Folders of the system's Python, in order of preference.
const FOLDERS: [&str; 2] = ["/usr/bin", "/usr/local/bin"];
const PROGRAM: &str = "python3";

/// Restarts the bench with the system's Python as the first one in `PATH`, unless it already is. Prints which
/// Python runs.
///
/// # Errors
/// When the bench cannot be started again.
pub(crate) fn use_system_python() -> anyhow::Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let system = FOLDERS.iter().map(Path::new).find(|folder| has_python(folder));
    let Some(system) = system else {
        print_line("# python3: the system has none, so the bench uses the first one of PATH");
        print_python(PROGRAM);
        return Ok(());
    };
    let wanted = order_folders(system, &folders, has_shim);
    if wanted != folders {
        let wanted = env::join_paths(wanted)?;
        return restart(&wanted);
    }
    print_python(&system.join(PROGRAM).display().to_string());
    Ok(())
}

/// Puts the system's folder first and leaves out the folders with shims.
fn order_folders(system: &Path, folders: &[PathBuf], has_shim: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let others = folders
        .iter()
        .filter(|folder| folder.as_path() != system && !has_shim(folder));
    std::iter::once(system.to_owned())
        .chain(others.cloned())
        .collect()
}

/// Replaces this process. The process id stays, so that the caller notices nothing.
fn restart(path: &OsString) -> anyhow::Result<()> {
    let failed = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env("PATH", path)
        .exec();
    Err(failed).context("the bench cannot be started again with another PATH")
}

fn has_python(folder: &Path) -> bool {
    folder.join(PROGRAM).is_file() && !has_shim(folder)
}

/// True if the folder's Python is a script, as those of version managers are.
fn has_shim(folder: &Path) -> bool {
    let mut start = [0; 2];
    let read = fs::File::open(folder.join(PROGRAM)).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"#!"
}

fn print_python(program: &str) {
    let version = Command::new(program).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    print_line(&format!(
        "# python3: {program} ({})",
        version.unwrap_or_else(|error| format!("cannot be started: {error}"))
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_folder_precedes_and_shims_leave() {
        let folders = ["/home/a/shims", "/venv/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let is_shim = |folder: &Path| folder.ends_with("shims");
        let wanted = order_folders(Path::new("/usr/bin"), &folders, is_shim);
        assert_eq!(wanted, ["/usr/bin", "/venv/bin", "/bin"].map(PathBuf::from));
        // A second start changes nothing, so the bench restarts once.
        assert_eq!(order_folders(Path::new("/usr/bin"), &wanted, is_shim), wanted);
    }

    #[test]
    fn script_is_shim_and_program_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join(PROGRAM);
        assert!(!has_shim(folder.path()) && !has_python(folder.path()));
        fs::write(&python, "#!/bin/sh\nexec other\n").unwrap();
        assert!(has_shim(folder.path()) && !has_python(folder.path()));
        fs::write(&python, b"\x7fELF").unwrap();
        assert!(!has_shim(folder.path()) && has_python(folder.path()));
    }
}
