//! Report about a change for reviewers and gates: its size, its location, and findings that weaken its
//! checks.

use domain::{
    ChangedFileSize, FileRole,
    check::{ChangeHunk, ChangeReport},
};

use crate::{
    integrity::{self, FilePurpose, classify_path},
    workspace::{ChangedFile, Workspace, WorkspaceChange, WorkspaceError},
};

/// Limit of reported findings.
const MAX_FINDINGS: usize = 200;
/// Limit of reported folders and files.
const MAX_PATHS: usize = 500;

/// Inspects the current files of the workspace. `ticket` is the ticket's text. Blocks.
pub(crate) fn inspect_change(workspace: &Workspace, ticket: &str) -> Result<ChangeReport, WorkspaceError> {
    let change = WorkspaceChange::read(workspace)?;
    let audit = workspace.audit_merge(&change.tree.to_string())?;
    let (lost_hunks, marked_files) = audit.map(|audit| (audit.lost, audit.markers)).unwrap_or_default();
    let mut findings = integrity::find_weakened_checks(&change.files, ticket);
    let size = integrity::measure_change(&change.files);
    let mut modules = integrity::touched_modules(&change.files, &change.paths);
    let is_needed_by_tests = |path: &&String| classify_path(path) == FilePurpose::Test;
    let present = change
        .files
        .iter()
        .filter(|file| file.after.is_some())
        .map(|file| &file.path);
    let mut test_files: Vec<String> = present.filter(is_needed_by_tests).cloned().collect();
    // Compared before the lists are truncated below.
    let truncated = change.is_truncated
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
        ChangeHunk {
            is_test: integrity::is_test_hunk(file, hunk),
            path,
            line: hunk.line,
            lines: hunk.lines,
        }
    });
    Ok(ChangeReport {
        hunks: hunks.collect(),
        changed: change.files.iter().map(summarize_file).collect(),
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
        lost_hunks,
        marked_files,
        truncated,
    })
}

fn summarize_file(file: &ChangedFile) -> ChangedFileSize {
    let (added, removed) = integrity::count_changed_lines(file);
    ChangedFileSize {
        path: file.path.clone(),
        added,
        removed,
        role: match classify_path(&file.path) {
            FilePurpose::Product => FileRole::Product,
            FilePurpose::Test => FileRole::Test,
            FilePurpose::Config | FilePurpose::Ci => FileRole::Config,
            FilePurpose::Docs => FileRole::Docs,
            FilePurpose::Expected | FilePurpose::Lock | FilePurpose::Generated => FileRole::Pinned,
        },
    }
}
