//! People who know the code of a pull request: the owners of its files, and the authors of the lines that it changes.

use domain::{
    ChangeScope, CommitId, ModuleRules, PullRequestFile, PullRequestRef, cause::format_error_chain,
};
use git::BareRepository;
use github::{BlameLines, PullRequest, RepositoryPermission};

use super::OutboundClients;
use crate::{
    effect_error::EffectError,
    mirror::run_blocking,
    owners::{self, find_owners},
};

// Limits of one GraphQL request for authors: number of files, and of line ranges.
const FILES: usize = 10;
const RANGES: usize = 20;
// People whose permission is read. GitHub accepts at most 15 requested reviewers.
const CANDIDATES: usize = 15;

/// Sources of the owners of files.
#[derive(Clone, Copy)]
pub(super) struct OwnerRules<'a> {
    /// True when the owners in the CODEOWNERS file are asked.
    pub(super) by_file: bool,
    pub(super) modules: &'a [ModuleRules],
}

impl OwnerRules<'_> {
    fn has_module_owners(&self) -> bool {
        self.modules.iter().any(|module| !module.owners.is_empty())
    }
}

/// Returns the owners of the modules with these files, in the order of the rules, without duplicates.
fn list_module_owners(modules: &[ModuleRules], paths: &[String]) -> Vec<String> {
    let scope = ChangeScope::new(modules, "", &[]);
    let touched = scope.touched_modules(paths.iter().map(String::as_str));
    let mut owners: Vec<String> = Vec::new();
    for login in touched.into_iter().flat_map(|module| &module.owners) {
        if !owners.iter().any(|known| known.eq_ignore_ascii_case(login)) {
            owners.push(login.clone());
        }
    }
    owners
}

/// Returns the owners of the changed files, as far as a review can be requested of them: by the CODEOWNERS file of the
/// target branch, or by the modules of the rules where the branch has no such file.
pub(super) async fn find_file_owners(
    outside: &OutboundClients,
    ours: &PullRequestRef,
    now: &PullRequest,
    rules: OwnerRules<'_>,
) -> Result<Vec<String>, EffectError> {
    if !rules.by_file && !rules.has_module_owners() {
        return Ok(Vec::new());
    }
    let mirror = outside.mirrors.fresh(&ours.repository).await?;
    let branch = now.base_branch.clone();
    let file = run_blocking(move || {
        let mirror = BareRepository::open(&mirror)?;
        // GitHub reads the file from the target branch, so a pull request cannot change its reviewers.
        let Some(head) = mirror.branch_head(&branch)? else {
            return Ok(None);
        };
        for place in owners::PLACES {
            if let Some(file) = mirror.read_file(&head, place)? {
                return Ok(Some(file).filter(|file| file.len() <= owners::MAX_BYTES));
            }
        }
        Ok::<_, git::Error>(None)
    });
    let file = file.await?;
    // GitHub asks the owners of the file itself where the rules do not.
    let is_silent = match file {
        Some(_) => !rules.by_file,
        None => !rules.has_module_owners(),
    };
    if is_silent {
        return Ok(Vec::new());
    }
    let files = outside
        .github
        .reviews()
        .changed_files(&ours.repository, ours.number)
        .await?;
    let paths: Vec<String> = files.into_iter().map(|file| file.path).collect();
    let named = match file {
        Some(file) => find_owners(&String::from_utf8_lossy(&file), &paths),
        None => list_module_owners(rules.modules, &paths),
    };
    filter_reviewers(outside, ours, now, named, usize::MAX).await
}

/// Returns at most `most` authors of the changed lines, in descending order of their number of lines.
pub(super) async fn find_line_authors(
    outside: &OutboundClients,
    ours: &PullRequestRef,
    now: &PullRequest,
    most: usize,
) -> Result<Vec<String>, EffectError> {
    let files = outside
        .github
        .reviews()
        .changed_files(&ours.repository, ours.number)
        .await?;
    let Some((base, lines)) = find_base_lines(outside, ours, now, files).await? else {
        return Ok(Vec::new());
    };
    let counted = match outside.github.authors_of(&ours.repository, &base, &lines).await {
        // Without this information, no review is requested.
        Err(
            error @ (github::Error::Rejected { .. }
            | github::Error::NotFound { .. }
            | github::Error::Forbidden { .. }),
        ) => {
            let error = format_error_chain(&error);
            tracing::info!(repository = %ours.repository, error, "authors of lines cannot be read");
            return Ok(Vec::new());
        }
        counted => counted?,
    };
    let mut ranked: Vec<(String, u32)> = counted.into_iter().collect();
    // Equal counts are ordered by name, so that a repeated effect requests the same people.
    ranked.sort_by(|(one, lines), (other, more)| more.cmp(lines).then_with(|| one.cmp(other)));
    let ranked = ranked.into_iter().map(|(login, _)| login).collect();
    filter_reviewers(outside, ours, now, ranked, most).await
}

/// Returns the merge base of the pull request, and the lines there that it changes. New and renamed files have none.
async fn find_base_lines(
    outside: &OutboundClients,
    ours: &PullRequestRef,
    now: &PullRequest,
    files: Vec<PullRequestFile>,
) -> Result<Option<(CommitId, Vec<BlameLines>)>, EffectError> {
    let mirror = outside.mirrors.fresh(&ours.repository).await?;
    let (branch, head) = (now.base_branch.clone(), now.head.clone());
    let found = run_blocking(move || {
        let mirror = BareRepository::open(&mirror)?;
        let target = mirror.branch_head(&branch)?.filter(|_| mirror.contains(&head));
        let Some(base) = target
            .map(|target| mirror.merge_base(&target, &head))
            .transpose()?
            .flatten()
        else {
            return Ok(None);
        };
        let mut lines = Vec::new();
        let mut known = 0;
        for file in &files {
            let of_file = touched_lines(file);
            if known == FILES || lines.len() == RANGES {
                break;
            }
            if of_file.is_empty() || mirror.read_file(&base, &file.path)?.is_none() {
                continue;
            }
            known += 1;
            lines.extend(of_file);
            lines.truncate(RANGES);
        }
        Ok::<_, git::Error>(Some((base, lines)))
    });
    found.await
}

/// Returns the lines of the old file that a change removes, and the neighbors of pure additions.
fn touched_lines(file: &PullRequestFile) -> Vec<BlameLines> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let mut add = |first: u32, last: u32| match ranges.last_mut() {
        Some(range) if first <= range.1 + 1 => range.1 = range.1.max(last),
        _ => ranges.push((first, last)),
    };
    // The next line of the old file, and if the previous line was a pure addition.
    let (mut next, mut is_after_added) = (0, false);
    let mut removed_before = false;
    // A patch of GitHub has no file header: it starts with the first hunk.
    for line in file.patch.lines() {
        match (line.strip_prefix("@@"), line.chars().next()) {
            (Some(header), _) => {
                next = header
                    .split([' ', ',', '-'])
                    .find(|part| !part.is_empty())
                    .and_then(|start| start.parse().ok())
                    .unwrap_or(0);
                (is_after_added, removed_before) = (false, false);
            }
            (None, Some('-')) => {
                add(next, next);
                next += 1;
                (is_after_added, removed_before) = (false, true);
            }
            (None, Some('+')) => {
                if !removed_before && !is_after_added && next > 1 {
                    add(next - 1, next - 1);
                }
                is_after_added = !removed_before;
            }
            // "\ No newline at end of file" is not a line of the file.
            (None, Some('\\')) => {}
            (None, _) => {
                if is_after_added && next > 0 {
                    add(next, next);
                }
                next += 1;
                (is_after_added, removed_before) = (false, false);
            }
        }
    }
    let lines = ranges.into_iter().map(|(first, last)| BlameLines {
        path: file.path.clone(),
        first,
        last,
    });
    lines.collect()
}

/// Filters the people who may push, without the author and bots. GitHub refuses the whole request if one login is not
/// allowed.
async fn filter_reviewers(
    outside: &OutboundClients,
    ours: &PullRequestRef,
    now: &PullRequest,
    logins: Vec<String>,
    most: usize,
) -> Result<Vec<String>, EffectError> {
    let us = outside.github.login(ours.repository.instance()).await?;
    let is_other = |login: &String| {
        let is_ours = [&now.author, &us]
            .iter()
            .any(|ours| ours.eq_ignore_ascii_case(login));
        !is_ours && !login.ends_with("[bot]")
    };
    let mut allowed = Vec::new();
    for login in logins.into_iter().filter(is_other).take(CANDIDATES) {
        if allowed.len() == most {
            break;
        }
        if outside.github.permission(&ours.repository, &login).await? >= RepositoryPermission::Write {
            allowed.push(login);
        }
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_touched_ranges(patch: &str) -> Vec<(u32, u32)> {
        let file = PullRequestFile {
            path: "a.rs".to_owned(),
            patch: patch.to_owned(),
        };
        touched_lines(&file)
            .into_iter()
            .map(|lines| (lines.first, lines.last))
            .collect()
    }

    #[test]
    fn change_touches_removed_and_adjacent_lines() {
        let changed = "@@ -10,4 +10,4 @@ fn total\n one\n-two\n-three\n+2\n+3\n four";
        assert_eq!(list_touched_ranges(changed), [(11, 12)]);
        let added = "@@ -20,2 +20,4 @@\n one\n+new\n+newer\n two\n@@ -1,0 +5,1 @@";
        assert_eq!(list_touched_ranges(added), [(20, 21)]);
        let at_the_end = "@@ -30,2 +30,3 @@\n one\n two\n+new\n\\ No newline at end of file";
        assert_eq!(list_touched_ranges(at_the_end), [(31, 31)]);
        let two = "@@ -1,2 +1,2 @@\n-a\n+b\n c\n@@ -9,2 +9,1 @@\n-x\n y";
        assert_eq!(list_touched_ranges(two), [(1, 1), (9, 9)]);
        assert_eq!(list_touched_ranges("@@ -0,0 +1,2 @@\n+a\n+b"), []);
        assert_eq!(list_touched_ranges(""), []);
    }
}
