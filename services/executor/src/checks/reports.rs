//! `JUnit` XML files that a check wrote: at the usual paths of Gradle and Maven, and at those that the caller
//! names.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use domain::check::TestReport;
use globset::{Glob, GlobSet, GlobSetBuilder};

use super::report::{self, ReportFile};
use crate::workspace::{FileStat, WorkspaceError, WorkspaceRoot};

/// Usual paths of reports of Gradle and Maven.
const USUAL: [&str; 3] = [
    "**/build/test-results/**/*.xml",
    "**/target/surefire-reports/*.xml",
    "**/target/failsafe-reports/*.xml",
];
/// Files at the root of a JVM project. The usual paths are searched only when one of them exists.
const JVM: [&str; 5] = [
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
];
/// Folders without reports but with many files.
const SKIPPED: [&str; 6] = [".git", ".gradle", ".venv", "classes", "node_modules", "src"];
const MAX_FOLDERS: usize = 20_000;
const MAX_DEPTH: usize = 12;
const MAX_ENTRIES: usize = 5000;
const MAX_FILES: usize = 5000;
// Limit in bytes. A larger file counts as a report that cannot be read.
const MAX_BYTES: u64 = 8 << 20;

/// Usual paths of reports, compiled once for all checks.
static USUAL_PATTERNS: LazyLock<GlobSet> = LazyLock::new(|| compile_patterns(USUAL).unwrap_or_default());

/// Files that match the patterns of reports.
struct FoundReports {
    files: Vec<(PathBuf, FileStat)>,
    /// False when a limit was reached beside reports, so that some may be missing.
    is_complete: bool,
}

/// Patterns of report files, with the files that existed before the command.
pub(super) struct ReportSearch {
    /// Patterns of the caller.
    patterns: GlobSet,
    /// Usual paths, in the project of a JVM.
    usual: Option<&'static GlobSet>,
    before: Vec<(PathBuf, FileStat)>,
}

impl ReportSearch {
    /// Lists the existing reports before the command runs: reports of an earlier command are no evidence for
    /// this one.
    pub(super) fn before(root: &WorkspaceRoot, patterns: &[String]) -> Result<Self, WorkspaceError> {
        let is_jvm = JVM
            .iter()
            .any(|name| matches!(root.stat(Path::new(name)), Ok(Some(_))));
        let mut reports = Self {
            patterns: compile_patterns(patterns.iter().map(String::as_str))?,
            usual: is_jvm.then(|| &*USUAL_PATTERNS),
            before: Vec::new(),
        };
        reports.before = reports.find(root).files;
        Ok(reports)
    }

    /// Reads the reports that are new since the command started; `None` when none is new. A report that
    /// cannot be read or parsed, or is incomplete, makes the whole incomplete, so the check cannot pass. Beyond the limits
    /// the list of failing tests counts as incomplete.
    pub(super) fn read(&self, root: &WorkspaceRoot) -> Option<TestReport> {
        // A report that the command rewrote has another state, so it counts as new.
        let is_new = |found: &(PathBuf, FileStat)| !self.before.contains(found);
        let FoundReports { files, is_complete } = self.find(root);
        let new = files.into_iter().filter(is_new);
        let unread = || TestReport {
            runner: "junit".to_owned(),
            collection_error: true,
            ..TestReport::default()
        };
        let reports = new.filter_map(|(path, _)| match root.read(&path, MAX_BYTES) {
            Ok(bytes) => match report::read_file(&String::from_utf8_lossy(&bytes)) {
                ReportFile::Report(report) => Some(report),
                ReportFile::Other => None,
                ReportFile::Broken(report) => Some(TestReport {
                    runner: "junit".to_owned(),
                    ..report
                }),
            },
            Err(_) => Some(unread()),
        });
        let mut report = reports.reduce(TestReport::with)?;
        report.truncated |= !is_complete;
        Some(report)
    }

    fn find(&self, root: &WorkspaceRoot) -> FoundReports {
        let (mut files, mut is_complete) = (Vec::new(), true);
        if self.patterns.is_empty() && self.usual.is_none() {
            return FoundReports { files, is_complete };
        }
        let (mut queue, mut folders) = (vec![(PathBuf::new(), 0)], 0);
        while let Some((folder, depth)) = queue.pop() {
            folders += 1;
            // A folder that cannot be listed contains no evidence, so its error is ignored.
            let entries = root.list(&folder, MAX_ENTRIES).unwrap_or_default();
            let is_full = entries.len() >= MAX_ENTRIES;
            let before = files.len();
            for entry in entries {
                let path = folder.join(&entry.name);
                if entry.is_folder && depth < MAX_DEPTH && folders < MAX_FOLDERS {
                    let is_skipped = SKIPPED.contains(&entry.name.as_str());
                    queue.extend((!is_skipped).then(|| (path, depth + 1)));
                } else if !entry.is_folder && self.is_report(&path) {
                    if files.len() >= MAX_FILES {
                        return FoundReports {
                            files,
                            is_complete: false,
                        };
                    }
                    let stat = root.stat(&path).ok().flatten();
                    files.extend(stat.map(|stat| (path, stat)));
                }
            }
            is_complete &= !is_full || files.len() == before;
        }
        FoundReports { files, is_complete }
    }

    fn is_report(&self, path: &Path) -> bool {
        self.patterns.is_match(path) || self.usual.is_some_and(|usual| usual.is_match(path))
    }
}

fn compile_patterns<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<GlobSet, WorkspaceError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern).map_err(|_| {
            WorkspaceError::BadRequest(format!("{pattern:?} is not a valid pattern of paths"))
        })?;
        set.add(glob);
    }
    set.build()
        .map_err(|_| WorkspaceError::BadRequest("the patterns of report files are too large".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<testsuite tests="1"><testcase classname="A" name="b"/></testsuite>"#;

    fn open_workspace_root() -> (tempfile::TempDir, WorkspaceRoot) {
        let folder = tempfile::TempDir::new().unwrap();
        let root = WorkspaceRoot::open(folder.path()).unwrap();
        (folder, root)
    }

    fn write_file(folder: &tempfile::TempDir, path: &str, text: &str) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn usual_patterns_need_jvm_build_file() {
        assert_eq!(USUAL_PATTERNS.len(), USUAL.len());
        let (folder, root) = open_workspace_root();
        let reports = ReportSearch::before(&root, &["out/*.xml".to_owned()]).unwrap();
        write_file(&folder, "api/target/surefire-reports/TEST-A.xml", XML);
        assert_eq!(reports.read(&root), None);
        write_file(&folder, "build.gradle.kts", "");
        let reports = ReportSearch::before(&root, &["out/*.xml".to_owned()]).unwrap();
        write_file(&folder, "target/surefire-reports/TEST-B.xml", XML);
        write_file(&folder, "out/TEST-C.xml", XML);
        assert_eq!(reports.read(&root).unwrap().passed, 2);
    }

    #[test]
    fn jvm_reports_are_read_beside_build_file() {
        let (folder, root) = open_workspace_root();
        write_file(&folder, "pom.xml", "");
        let reports = ReportSearch::before(&root, &[]).unwrap();
        write_file(&folder, "api/target/surefire-reports/TEST-A.xml", XML);
        write_file(&folder, "build/test-results/test/TEST-B.xml", XML);
        write_file(&folder, "other/TEST-C.xml", XML);
        assert_eq!(reports.read(&root).unwrap().passed, 2);
    }

    #[test]
    fn reports_beyond_limit_leave_list_incomplete() {
        for (extension, found, is_complete) in [("xml", MAX_ENTRIES, false), ("txt", 1, true)] {
            let (folder, root) = open_workspace_root();
            let reports = ReportSearch::before(&root, &["**/*.xml".to_owned()]).unwrap();
            write_file(&folder, &format!("many/0.{extension}"), XML);
            for number in 1..=MAX_ENTRIES {
                std::fs::write(folder.path().join(format!("many/{number}.{extension}")), "").unwrap();
            }
            if is_complete {
                write_file(&folder, "one/a.xml", XML);
            }
            let all = reports.find(&root);
            assert_eq!((all.files.len(), all.is_complete), (found, is_complete));
            assert_eq!(reports.read(&root).unwrap().truncated, !is_complete);
        }
    }

    #[test]
    fn incomplete_report_file_fails_check() {
        for broken in ["", "<testsuite tests=\"2\"><testcase name=\"a\"/>", "oops"] {
            let (folder, root) = open_workspace_root();
            let reports = ReportSearch::before(&root, &["out/*.xml".to_owned()]).unwrap();
            write_file(&folder, "out/a.xml", XML);
            write_file(&folder, "out/b.xml", broken);
            let report = reports.read(&root).unwrap();
            assert!(report.collection_error && report.passed >= 1, "{broken}");
        }
        let (folder, root) = open_workspace_root();
        let reports = ReportSearch::before(&root, &["out/*.xml".to_owned()]).unwrap();
        write_file(&folder, "out/page.xml", "<html/>");
        assert_eq!(reports.read(&root), None);
    }

    #[test]
    fn what_was_there_before_is_no_evidence() {
        let (folder, root) = open_workspace_root();
        write_file(&folder, "out/junit.xml", XML);
        let reports = ReportSearch::before(&root, &["out/*.xml".to_owned()]).unwrap();
        assert_eq!(reports.read(&root), None);
        std::fs::remove_file(folder.path().join("out/junit.xml")).unwrap();
        write_file(&folder, "out/junit.xml", &format!("{XML}\n"));
        assert_eq!(reports.read(&root).unwrap().passed, 1);
        assert!(ReportSearch::before(&root, &["[".to_owned()]).is_err());
    }
}
