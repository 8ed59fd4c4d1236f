//! Git repositories on the disk of a test.

use std::{path::Path, process::Command};

/// Runs git in a folder, fails unless it succeeds, and returns its output.
pub(crate) fn run_git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@shop.example"])
        .args(arguments)
        .current_dir(folder)
        // A test that compares the index before and after must not refresh it.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Creates a repository whose branch has these files in one commit.
pub(crate) fn create_repository(folder: &Path, branch: &str, files: &[(&str, &str)]) {
    for (path, content) in files {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    run_git(folder, &["init", "-q", "-b", branch]);
    run_git(folder, &["add", "--all"]);
    run_git(folder, &["commit", "-q", "-m", "The shop"]);
}
