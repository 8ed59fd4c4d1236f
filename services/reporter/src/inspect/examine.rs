//! The inspection of a change. It runs confined.

use std::{collections::BTreeSet, path::Path};

use domain::{
    ChangeScope, CommitId, OutOfScopeFile, PolicyViolation, cause::format_error_chain, list_unnamed_hunks,
    report::BranchMerge,
};
use git::{BareRepository, ChangeSet, InspectionBudget, MergeAudit};

use super::{DiffDisplay, InspectionTask, InspectionVerdict, RenderedDiff};
use crate::policy::{self, ChangeLimits, MAX_COMMITS};

const MAX_OBJECTS: u32 = 200_000;
// Largest difference as text, in bytes. A person decides about the whole difference, so a longer one is refused, not
// truncated.
const MAX_SHOWN_BYTES: usize = 8 * 1024 * 1024;
// Largest difference that is stored with a push, in bytes.
const MAX_RECORDED_BYTES: usize = 1024 * 1024;

/// Inspects a push for the mirror at `mirror`. The checked pack remains in `quarantine/objects/pack`.
pub(super) fn examine_push(
    mirror: &Path,
    quarantine: &Path,
    task: &InspectionTask,
    pack: &[u8],
    memory: u64,
) -> InspectionVerdict {
    match try_examine(mirror, quarantine, task, pack, memory) {
        Ok(verdict) => verdict,
        // A full disk breaks a pack, too, and must not count against the change.
        Err(git::Error::BadPack(detail)) if !git::is_about_full_disk(&detail) => {
            InspectionVerdict::BadPack { detail }
        }
        Err(error) => InspectionVerdict::Trouble {
            detail: format_error_chain(&error),
        },
    }
}

fn try_examine(
    mirror: &Path,
    quarantine: &Path,
    task: &InspectionTask,
    pack: &[u8],
    memory: u64,
) -> Result<InspectionVerdict, git::Error> {
    let repository = BareRepository::open(mirror)?;
    let (base, head) = (&task.push.base, &task.push.head);
    // The base must be in the remote's history before the pack is read: a planner names it.
    if let Some(foreign) = find_foreign_base(&repository, task)? {
        return Ok(breach_verdict(PolicyViolation::ForeignBase {
            base: foreign.short().to_owned(),
        }));
    }
    repository.import_into(
        quarantine,
        pack,
        git::PackLimits {
            max_bytes: task.limits.max_pack_bytes,
            max_objects: MAX_OBJECTS,
            // This process and git run at the same time, and this one holds the pack.
            max_memory_bytes: memory / 2,
            ..git::PackLimits::default()
        },
    )?;
    if !repository.contains(head) {
        let detail = format!("it lacks the head commit {}", head.short());
        return Ok(InspectionVerdict::BadPack { detail });
    }
    // Commits that do not descend from the base could bring in the history of another repository.
    for base in list_parents(task) {
        if !repository.is_descendant(head, &base)? {
            let (head, base) = (head.short().to_owned(), base.short().to_owned());
            return Ok(breach_verdict(PolicyViolation::Unrelated { head, base }));
        }
    }
    let start = ChangeStart::find(&repository, task)?;
    let violations = check_change_policy(&repository, task, &start)?;
    if !violations.is_empty() {
        let violations = violations.into_iter().collect();
        return Ok(InspectionVerdict::Breach { violations });
    }
    match task.show {
        DiffDisplay::ForDecision => show_for_decision(&repository, base, head),
        DiffDisplay::ForRecord => Ok(InspectionVerdict::Clean {
            outside: find_out_of_scope(&repository, task, &start)?,
            // The push must not depend on its record.
            shown: repository
                .unified_diff(base, head, MAX_RECORDED_BYTES)
                .ok()
                .filter(|diff| !diff.truncated)
                .map(render_diff),
        }),
    }
}

/// Renders the difference for a person's decision. It is made only after the checks, so that no person is asked about a
/// change that the policy refuses.
fn show_for_decision(
    repository: &BareRepository,
    base: &CommitId,
    head: &CommitId,
) -> Result<InspectionVerdict, git::Error> {
    let diff = repository.unified_diff(base, head, MAX_SHOWN_BYTES)?;
    if diff.truncated {
        let path = "the change as a whole".to_owned();
        return Ok(breach_verdict(PolicyViolation::TooMuch { path }));
    }
    Ok(InspectionVerdict::Clean {
        shown: Some(render_diff(diff)),
        outside: Vec::new(),
    })
}

fn render_diff(diff: git::UnifiedDiff) -> RenderedDiff {
    RenderedDiff {
        text: domain::text::escape_hidden(&diff.text),
        files: diff.files_changed as usize,
    }
}

fn breach_verdict(violation: PolicyViolation) -> InspectionVerdict {
    InspectionVerdict::Breach {
        violations: vec![violation],
    }
}

/// Checks the whole difference, then each commit's difference. All share one budget, and the first difference that
/// exceeds it ends the check.
fn check_change_policy(
    repository: &BareRepository,
    task: &InspectionTask,
    start: &ChangeStart,
) -> Result<BTreeSet<PolicyViolation>, git::Error> {
    let head = &task.push.head;
    let invalid = |error: globset::Error| git::Error::Failed(error.into());
    let limits = ChangeLimits::new(&task.limits).map_err(invalid)?;
    let parents = list_parents(task);
    let commits = repository.commits_beyond(&parents, head)?;
    // Checked first: each commit costs a diff.
    if commits.len() > MAX_COMMITS {
        return Ok(BTreeSet::from([PolicyViolation::TooManyCommits {
            limit: MAX_COMMITS,
        }]));
    }
    let merged = task.push.merge.is_some().then_some(parents.as_slice());
    let (authors, ticket) = (&task.authors, &task.ticket);
    let mut violations = policy::check_commits(&commits, authors, ticket, &task.push.repository, merged);
    violations.extend(policy::check_messages(&commits, &task.patterns));
    let mut budget = InspectionBudget::new(limits.max_file_bytes);
    let total = start.diff(repository, task, head, &mut budget)?;
    match &start.audit {
        Some(audit) => violations.extend(check_merge(audit, task.push.merge.as_deref())),
        None => violations.extend(policy::check_total(&total)),
    }
    violations.extend(policy::check_change(&total, &limits));
    // A file that a later commit removes is still in the history that is pushed, so each commit is checked.
    let mut is_cut = total.cut.is_some();
    for commit in &commits {
        let Some(parent) = commit.parents.first().filter(|_| !is_cut) else {
            break;
        };
        // The merge brings the changes of both sides, which are not those of this push.
        let step = match commit.parents.len() {
            1 => repository.diff(parent, &commit.id, &mut budget)?,
            _ => start.diff(repository, task, &commit.id, &mut budget)?,
        };
        violations.extend(policy::check_change(&step, &limits));
        is_cut = step.cut.is_some();
    }
    Ok(violations)
}

/// Returns the files of the whole difference that the ticket's kind may not change, on both sides of a rename.
fn find_out_of_scope(
    repository: &BareRepository,
    task: &InspectionTask,
    start: &ChangeStart,
) -> Result<Vec<OutOfScopeFile>, git::Error> {
    let Some(of) = task.push.scope.as_ref().filter(|_| !task.modules.is_empty()) else {
        return Ok(Vec::new());
    };
    let scope = ChangeScope::new(&task.modules, &of.kind, &of.widened);
    let mut budget = InspectionBudget::new(task.limits.max_file_bytes);
    let total = start.diff(repository, task, &task.push.head, &mut budget)?;
    let paths = total
        .files
        .iter()
        .flat_map(|file| std::iter::once(&file.path).chain(&file.old_path));
    Ok(paths.filter_map(|path| scope.outside(path)).collect())
}

/// Returns the commits whose history the push continues: the head of the pull request, if the push merges, and the
/// base.
fn list_parents(task: &InspectionTask) -> Vec<CommitId> {
    let merged = task.push.merge.as_ref().map(|merge| merge.head.clone());
    merged.into_iter().chain([task.push.base.clone()]).collect()
}

/// Returns a commit under the push that the remote does not have where the push claims it.
///
/// A merge names two: its base is in a branch of people, and its head is the one of the pushed branch. Otherwise a
/// planner could bring any commit of the repository into the branch as if the base had it.
fn find_foreign_base(
    repository: &BareRepository,
    task: &InspectionTask,
) -> Result<Option<CommitId>, git::Error> {
    let base = &task.push.base;
    let Some(merge) = &task.push.merge else {
        let is_known = is_in_history(repository, base, &task.branches)?;
        return Ok((!is_known).then(|| base.clone()));
    };
    let of_people = |branch: &&String| **branch != task.push.branch;
    let people: Vec<String> = task.branches.iter().filter(of_people).cloned().collect();
    if !is_in_history(repository, base, &people)? {
        return Ok(Some(base.clone()));
    }
    // The reporter compares the expected commit with the remote branch, which may be newer than the mirror's.
    let is_expected = task.push.expected.as_ref() == Some(&merge.head);
    let is_own = is_expected && repository.contains(&merge.head);
    if is_expected && !is_own && repository.is_incomplete()? {
        return Err(git::Error::HistoryIncomplete);
    }
    Ok((!is_own).then(|| merge.head.clone()))
}

/// Start of the difference that is this push's own.
struct ChangeStart {
    /// The base, or the merge of both sides as git makes it.
    commit: CommitId,
    /// Audit of a merge; absent for other pushes.
    audit: Option<MergeAudit>,
}

impl ChangeStart {
    fn find(repository: &BareRepository, task: &InspectionTask) -> Result<Self, git::Error> {
        let (base, head) = (&task.push.base, &task.push.head);
        let Some(merge) = &task.push.merge else {
            return Ok(Self {
                commit: base.clone(),
                audit: None,
            });
        };
        // This process has no right to write into the mirror.
        repository.write_to_memory()?;
        let audit = repository.audit_merge_commit(&merge.head, base, head)?;
        Ok(Self {
            commit: audit.merge.preview.clone(),
            audit: Some(audit),
        })
    }

    /// Compares a commit with the start. A merge that leaves a file as the base has it does not change the file.
    fn diff(
        &self,
        repository: &BareRepository,
        task: &InspectionTask,
        head: &CommitId,
        budget: &mut InspectionBudget,
    ) -> Result<ChangeSet, git::Error> {
        let mut change = repository.diff(&self.commit, head, budget)?;
        if self.audit.is_none() {
            return Ok(change);
        }
        let mut files = Vec::new();
        for file in change.files {
            let paths = std::iter::once(&file.path).chain(&file.old_path);
            let mut is_of_base = true;
            for path in paths {
                is_of_base &= repository.is_same_file(&task.push.base, head, path)?;
            }
            if !is_of_base {
                files.push(file);
            }
        }
        change.files = files;
        Ok(change)
    }
}

/// Returns the hunks that the merge lacks without a reason, and its leftover markers.
fn check_merge(audit: &MergeAudit, merge: Option<&BranchMerge>) -> BTreeSet<PolicyViolation> {
    let dropped = merge.map_or(&[][..], |merge| merge.dropped.as_slice());
    let lost = list_unnamed_hunks(&audit.lost, dropped).into_iter();
    let lost = lost.map(|hunk| PolicyViolation::LostHunk {
        line: hunk.lines.into_iter().next().unwrap_or_default(),
        path: hunk.path,
    });
    let markers = audit.markers.iter().cloned();
    let markers = markers.map(|path| PolicyViolation::ConflictMarker { path });
    lost.chain(markers).collect()
}

fn is_in_history(
    repository: &BareRepository,
    base: &CommitId,
    branches: &[String],
) -> Result<bool, git::Error> {
    let is_here = repository.contains(base);
    for branch in branches.iter().filter(|_| is_here) {
        let Some(head) = repository.branch_head(branch)? else {
            continue;
        };
        match repository.is_descendant(&head, base) {
            Ok(true) => return Ok(true),
            // Another branch may still prove it.
            Ok(false) | Err(git::Error::HistoryIncomplete) => {}
            Err(error) => return Err(error),
        }
    }
    // During a first fetch, a missing commit proves nothing.
    if repository.is_incomplete()? {
        return Err(git::Error::HistoryIncomplete);
    }
    Ok(false)
}
