//! Import, check and push a branch.

use std::{collections::BTreeSet, path::Path};

use domain::{BranchRecord, CommitId, PushBranch, Rules, TicketKey};
use git::Repository;

use super::{Asked, Outside};
use crate::{
    mirror::blocking,
    plan::Made,
    policy::{self, Limits},
    trouble::Trouble,
};

/// More commits than this in one push are no reviewable change.
const MAX_COMMITS: usize = 200;
const MAX_OBJECTS: u32 = 200_000;

/// Done when the remote branch is at the head.
pub(super) async fn look(outside: &Outside, push: &PushBranch) -> Result<Option<Made>, Trouble> {
    let head = outside.github.branch_head(&push.repository, &push.branch).await?;
    Ok(head.filter(|head| *head == push.head).map(made))
}

/// Checks everything before anything is recorded, and records the branch before it is pushed.
pub(super) async fn create(outside: &Outside, asked: &Asked<'_>, push: &PushBranch) -> Result<Made, Trouble> {
    let rules = asked.rules.ok_or_else(|| {
        Trouble::Refused(format!(
            "there are no usable rules for {}; an operator has to look",
            push.repository
        ))
    })?;
    policy::check_branch(&push.branch, &asked.report.ticket, rules)
        .map_err(|violation| Trouble::Refused(policy::explain(&[violation])))?;
    let key = BranchRecord::key(&push.repository, &push.branch);
    outside.own_branch(&asked.report.ticket, &key).await?;
    // What is imported into it must be there when it is pushed.
    let _mirror = outside.mirrors.hold(&push.repository);
    check(outside, &asked.report.ticket, push, rules).await?;
    record(outside, asked, push, &key).await?;
    let pushed = outside
        .mirrors
        .push(&push.repository, &push.head, &push.branch, push.expected.as_ref())
        .await;
    if let Err(trouble) = pushed {
        // An earlier try that was thought lost may have arrived; then the lease is stale and the branch as wanted.
        let arrived = look(outside, push).await.ok().flatten();
        return arrived.ok_or(trouble);
    }
    tracing::info!(repository = %push.repository, branch = %push.branch, head = %push.head, "branch pushed");
    Ok(made(push.head.clone()))
}

fn made(head: CommitId) -> Made {
    Made {
        pushed: Some(head),
        ..Made::default()
    }
}

async fn check(
    outside: &Outside,
    ticket: &TicketKey,
    push: &PushBranch,
    rules: &Rules,
) -> Result<(), Trouble> {
    let limits = outside.limits.clone();
    if push.pack.size_bytes > limits.max_pack_bytes {
        let (size, limit) = (push.pack.size_bytes, limits.max_pack_bytes);
        return Err(Trouble::Refused(format!(
            "the change packs to {size} bytes and the limit is {limit}; remove large files from its commits"
        )));
    }
    let dir = outside.mirrors.fresh(&push.repository).await?;
    let pack = outside.objects.get(&push.pack).await?;
    let (push, ticket) = (push.clone(), ticket.clone());
    let people = [
        rules.repo.default_branch.clone(),
        rules.target_branch().to_owned(),
        push.branch.clone(),
    ];
    let checked = blocking(move || import_and_check(&dir, &pack, &push, &ticket, &people, &limits));
    failpoint::around("reporter.pack.import", checked).await
}

fn import_and_check(
    dir: &Path,
    pack: &[u8],
    push: &PushBranch,
    ticket: &TicketKey,
    branches: &[String],
    limits: &Limits,
) -> Result<(), Trouble> {
    let repository = Repository::open(dir)?;
    if !is_in_history(&repository, &push.base, branches)? {
        return Err(Trouble::Refused(format!(
            "the base commit {} is not in the history of the remote's branches",
            push.base.short()
        )));
    }
    repository.import_pack(
        pack,
        git::Limits {
            max_bytes: limits.max_pack_bytes,
            max_objects: MAX_OBJECTS,
            ..git::Limits::default()
        },
    )?;
    if !repository.contains(&push.head) {
        return Err(Trouble::Failed(format!(
            "the pack lacks the head commit {}",
            push.head.short()
        )));
    }
    if !repository.is_descendant(&push.head, &push.base)? {
        return Err(Trouble::Refused(format!(
            "the head {} does not descend from the base {}; commit on top of the base",
            push.head.short(),
            push.base.short()
        )));
    }
    let commits = repository.commits(&push.base, &push.head)?;
    if commits.len() > MAX_COMMITS {
        return Err(Trouble::Refused(format!(
            "more than {MAX_COMMITS} commits; squash them"
        )));
    }
    let change = repository.diff(&push.base, &push.head, limits.max_file_bytes)?;
    let violations = policy::check_change(&change, &commits, limits).err();
    // What the change adds one of its commits adds as well.
    let mut violations: BTreeSet<_> = violations.unwrap_or_default().into_iter().collect();
    for commit in &commits {
        if let Some(parent) = commit.parents.first() {
            let step = repository.diff(parent, &commit.id, limits.max_file_bytes)?;
            violations.extend(policy::check_step(&step, limits));
        }
    }
    let mut violations: Vec<_> = violations.into_iter().collect();
    violations.extend(policy::check_messages(&commits, ticket, &push.repository));
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Trouble::Refused(policy::explain(&violations)))
    }
}

fn is_in_history(repository: &Repository, base: &CommitId, branches: &[String]) -> Result<bool, git::Error> {
    if !repository.contains(base) {
        return Ok(false);
    }
    for branch in branches {
        if let Some(head) = repository.branch_head(branch)?
            && repository.is_descendant(&head, base)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The router finds the ticket of a pushed branch by this record, so it stands before the push.
async fn record(outside: &Outside, asked: &Asked<'_>, push: &PushBranch, key: &str) -> Result<(), Trouble> {
    let run = asked
        .report
        .run
        .clone()
        .ok_or_else(|| Trouble::Failed("a push needs a run".to_owned()))?;
    let known = outside.own_branch(&asked.report.ticket, key).await?;
    let (pull_request, last) = known.map_or((None, None), |(record, last)| (record.pull_request, Some(last)));
    let record = BranchRecord {
        repository: push.repository.clone(),
        branch: push.branch.clone(),
        ticket: asked.report.ticket.clone(),
        run,
        head: push.head.clone(),
        pull_request,
    };
    outside.branches.put(key, &record, last).await?;
    Ok(())
}
