//! A change as people and gates see it: how much of it there is, where, and what in it weakens its checks.

use domain::{
    FileChange, FileRole,
    check::{ChangeReport, Hunk},
};

use crate::{
    integrity::{self, Role, role},
    workspace::{ChangedFile, Problem, Workspace},
};

/// Findings that are told.
const MAX_FINDINGS: usize = 200;
/// Folders and files that are told.
const MAX_PATHS: usize = 500;

/// Looks at the workspace's files as they are. `ticket`: what the ticket asks for, in its own words. Blocks.
pub(crate) fn inspect(workspace: &Workspace, ticket: &str) -> Result<ChangeReport, Problem> {
    let change = workspace.change()?;
    let mut findings = integrity::findings(&change.files, ticket);
    let size = integrity::size(&change.files);
    let mut modules = integrity::modules(&change.files, &change.paths);
    let is_needed_by_tests = |path: &&String| role(path) == Role::Test;
    let present = change
        .files
        .iter()
        .filter(|file| file.after.is_some())
        .map(|file| &file.path);
    let mut test_files: Vec<String> = present.filter(is_needed_by_tests).cloned().collect();
    let truncated = change.is_cut
        || findings.len() > MAX_FINDINGS
        || modules.len() > MAX_PATHS
        || test_files.len() > MAX_PATHS;
    let mut support_files = integrity::support_files(&change.files);
    let mut removed_test_files = integrity::removed_test_files(&change.files);
    let mut removed_tests = integrity::removed_tests(&change.files);
    support_files.truncate(MAX_PATHS);
    removed_test_files.truncate(MAX_PATHS);
    removed_tests.truncate(MAX_PATHS);
    findings.truncate(MAX_FINDINGS);
    modules.truncate(MAX_PATHS);
    test_files.truncate(MAX_PATHS);
    let hunks = change.hunks.iter().map(|hunk| {
        let path = hunk.path.to_string_lossy().into_owned();
        let file = change.files.iter().find(|file| file.path == path);
        Hunk {
            is_test: integrity::is_test_hunk(file, hunk),
            path,
            line: hunk.line,
            lines: hunk.lines,
        }
    });
    Ok(ChangeReport {
        hunks: hunks.collect(),
        changed: change.files.iter().map(changed).collect(),
        tree: change.tree,
        files: u32::try_from(change.files.len()).unwrap_or(u32::MAX),
        product_lines: size.product,
        test_lines: size.test,
        modules,
        test_files,
        findings,
        support_files,
        removed_test_files,
        removed_tests,
        code_lines: Some(integrity::code_lines(&change.files)),
        truncated,
    })
}

fn changed(file: &ChangedFile) -> FileChange {
    let (added, removed) = integrity::lines_of(file);
    FileChange {
        path: file.path.clone(),
        added,
        removed,
        role: match role(&file.path) {
            Role::Product => FileRole::Product,
            Role::Test => FileRole::Test,
            Role::Config | Role::Ci => FileRole::Config,
            Role::Docs => FileRole::Docs,
            Role::Expected | Role::Lock | Role::Generated => FileRole::Pinned,
        },
    }
}
