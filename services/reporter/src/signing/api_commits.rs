//! Commits that GitHub creates over its API, and therefore signs.
//!
//! The tree that GitHub stores has to have the id of the verified tree, which proves every mode, link and removal.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use domain::{BranchRecord, CommitId, OutboundRefusal, RepositoryName, SignedCommit};
use git::{BareRepository, CommitSource, TreeEdit};
use github::{CommitWriter, CreatedCommit, TreeChange, TreeContent};

use crate::{effect_error::EffectError, message, mirror::run_blocking};

// Writes of one push. GitHub limits an account to 80 a minute, and a push that needs more would never fit.
const MAX_WRITES: usize = 60;
// Content of one push in bytes. It is in memory while it is sent.
const MAX_CONTENT_BYTES: u64 = 64 * 1024 * 1024;
// Larger texts are sent as separate blobs, in bytes.
const MAX_TEXT_BYTES: usize = 512 * 1024;
// Text in one request for a tree, in bytes.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;
// Paths in one request for a tree.
const MAX_REQUEST_PATHS: usize = 400;

/// Writes that create one commit.
struct CommitPlan {
    source: CommitSource,
    /// Tree of the first parent.
    base_tree: String,
    /// Contents that GitHub does not accept as text, with their ids.
    blobs: Vec<(String, Vec<u8>)>,
    /// Requests for trees, each on top of the previous one.
    requests: Vec<Vec<TreeChange>>,
}

impl CommitPlan {
    fn count_writes(&self) -> usize {
        self.blobs.len() + self.requests.len() + 1
    }
}

/// Creator of the commits of one push.
pub(super) struct ApiCommits<'a> {
    pub(super) commits: &'a CommitWriter,
    pub(super) repository: &'a RepositoryName,
    pub(super) mirror: &'a Arc<Path>,
}

impl ApiCommits<'_> {
    /// Creates the commits in order. Commits of an earlier try, by the record of the branch, are not created again.
    pub(super) async fn create_all(
        &self,
        sources: Vec<CommitSource>,
        known: Option<&BranchRecord>,
    ) -> Result<Vec<SignedCommit>, EffectError> {
        let mut signed = Vec::with_capacity(sources.len());
        let mut heads = BTreeMap::new();
        let mut missing = Vec::new();
        for source in sources {
            let head = known.and_then(|record| record.signed_head(&source.id));
            match head {
                // After the first missing commit, an earlier one would have another parent.
                Some(head) if missing.is_empty() && self.is_verified(head).await? => {
                    heads.insert(source.id.clone(), head.clone());
                    signed.push(SignedCommit {
                        source: source.id,
                        head: head.clone(),
                    });
                }
                Some(_) | None => missing.push(source),
            }
        }
        // Everything is planned before the first write, so a push above the limits writes nothing.
        let plans = self.plan_all(missing).await?;
        for plan in plans {
            let parents = replace_parents(&plan.source.parents, &heads);
            let creating = Box::pin(self.create(&plan, &parents));
            let created = failpoint::around("reporter.signed_commit.create", creating).await?;
            heads.insert(plan.source.id.clone(), created.id.clone());
            signed.push(SignedCommit {
                source: plan.source.id,
                head: created.id,
            });
        }
        Ok(signed)
    }

    /// Returns true if GitHub has the commit, and verifies it.
    async fn is_verified(&self, head: &CommitId) -> Result<bool, EffectError> {
        let verification = self.commits.verification(self.repository, head).await?;
        Ok(verification.is_some_and(|verification| verification.verified))
    }

    async fn plan_all(&self, sources: Vec<CommitSource>) -> Result<Vec<CommitPlan>, EffectError> {
        let mirror = Arc::clone(self.mirror);
        let planned = run_blocking(move || plan_commits(&mirror, sources)).await?;
        planned.ok_or_else(|| {
            EffectError::Refused(OutboundRefusal::Outside {
                detail: message::too_large_to_sign(MAX_WRITES, MAX_CONTENT_BYTES),
            })
        })
    }

    async fn create(&self, plan: &CommitPlan, parents: &[CommitId]) -> Result<CreatedCommit, EffectError> {
        for (id, content) in &plan.blobs {
            let stored = self.commits.create_blob(self.repository, content).await?;
            check_object(id, &stored)?;
        }
        let mut tree = plan.base_tree.clone();
        for changes in &plan.requests {
            tree = self.commits.create_tree(self.repository, &tree, changes).await?;
        }
        check_object(&plan.source.tree, &tree)?;
        let created = self
            .commits
            .create_commit(self.repository, &plan.source.message, &tree, parents)
            .await?;
        if created.verification.verified {
            return Ok(created);
        }
        tracing::error!(
            repository = %self.repository,
            commit = %created.id,
            reason = created.verification.reason,
            "GitHub does not verify the commit that it created"
        );
        Err(EffectError::Refused(OutboundRefusal::UnverifiedSignature {
            commit: created.id,
            reason: created.verification.reason,
        }))
    }
}

/// Compares an object of GitHub with the verified one.
fn check_object(wanted: &str, stored: &str) -> Result<(), EffectError> {
    if wanted == stored {
        return Ok(());
    }
    Err(EffectError::Failed(message::object_differs(wanted, stored)))
}

/// Plans the writes of these commits; `None` for more than the limits allow.
fn plan_commits(mirror: &Path, sources: Vec<CommitSource>) -> Result<Option<Vec<CommitPlan>>, git::Error> {
    let repository = BareRepository::open(mirror)?;
    let (mut plans, mut writes, mut bytes) = (Vec::new(), 0, 0_u64);
    for source in sources {
        let (base_tree, edits) = repository.edits_of(&source.id)?;
        let content: u64 = edits.iter().map(TreeEdit::new_bytes).sum();
        bytes = bytes.saturating_add(content);
        if bytes > MAX_CONTENT_BYTES {
            return Ok(None);
        }
        let mut plan = CommitPlan {
            source,
            base_tree,
            blobs: Vec::new(),
            requests: Vec::new(),
        };
        plan_trees(&repository, edits, &mut plan)?;
        writes += plan.count_writes();
        if writes > MAX_WRITES {
            return Ok(None);
        }
        plans.push(plan);
    }
    Ok(Some(plans))
}

/// Plans the requests for the tree of a commit: removals come first, because a file may replace a folder.
fn plan_trees(
    repository: &BareRepository,
    edits: Vec<TreeEdit>,
    plan: &mut CommitPlan,
) -> Result<(), git::Error> {
    let (removed, written): (Vec<TreeEdit>, Vec<TreeEdit>) =
        edits.into_iter().partition(|edit| edit.object.is_none());
    let removals: Vec<TreeChange> = removed
        .into_iter()
        .map(|edit| TreeChange {
            path: edit.path,
            mode: edit.mode,
            content: TreeContent::Removed,
        })
        .collect();
    for request in removals.chunks(MAX_REQUEST_PATHS) {
        plan.requests.push(request.to_vec());
    }
    let (mut request, mut text_bytes) = (Vec::new(), 0);
    for edit in written {
        let Some(id) = edit.object else { continue };
        let content = if edit.is_new {
            read_content(repository, &id, plan)?
        } else {
            TreeContent::Object(id)
        };
        let length = match &content {
            TreeContent::Text(text) => text.len(),
            TreeContent::Object(_) | TreeContent::Removed => 0,
        };
        if !request.is_empty()
            && (request.len() >= MAX_REQUEST_PATHS || text_bytes + length > MAX_REQUEST_BYTES)
        {
            plan.requests.push(std::mem::take(&mut request));
            text_bytes = 0;
        }
        text_bytes += length;
        request.push(TreeChange {
            path: edit.path,
            mode: edit.mode,
            content,
        });
    }
    if !request.is_empty() {
        plan.requests.push(request);
    }
    Ok(())
}

/// Reads the content of a new object: short texts are part of the request, other contents are separate blobs.
fn read_content(
    repository: &BareRepository,
    id: &str,
    plan: &mut CommitPlan,
) -> Result<TreeContent, git::Error> {
    let content = repository.blob(id)?;
    if content.len() <= MAX_TEXT_BYTES {
        match String::from_utf8(content) {
            Ok(text) => return Ok(TreeContent::Text(text)),
            Err(error) => plan.blobs.push((id.to_owned(), error.into_bytes())),
        }
    } else {
        plan.blobs.push((id.to_owned(), content));
    }
    Ok(TreeContent::Object(id.to_owned()))
}

/// Returns the parents at the remote: the signed commits of ours, and all others as they are.
pub(super) fn replace_parents(parents: &[CommitId], heads: &BTreeMap<CommitId, CommitId>) -> Vec<CommitId> {
    let replaced = parents
        .iter()
        .map(|parent| heads.get(parent).unwrap_or(parent).clone());
    replaced.collect()
}

#[cfg(test)]
mod tests {
    use git2::{Signature, Time};

    use super::*;

    /// Commits `count` times on top of a root; each commit writes the files of `content`.
    fn plan_changes(
        count: usize,
        content: impl Fn(usize) -> Vec<(String, Vec<u8>)>,
    ) -> Option<Vec<CommitPlan>> {
        let folder = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(folder.path()).unwrap();
        let author = Signature::new("Ann", "ann@acme.test", &Time::new(1_700_000_000, 0)).unwrap();
        let empty = git
            .find_tree(git.treebuilder(None).unwrap().write().unwrap())
            .unwrap();
        let root = git.commit(None, &author, &author, "root", &empty, &[]).unwrap();
        let mut last = git.find_commit(root).unwrap();
        for number in 0..count {
            let before = last.tree().unwrap();
            let mut tree = git.treebuilder(Some(&before)).unwrap();
            for (name, bytes) in content(number) {
                tree.insert(name, git.blob(&bytes).unwrap(), 0o100_644).unwrap();
            }
            let tree = git.find_tree(tree.write().unwrap()).unwrap();
            let id = git
                .commit(None, &author, &author, "more", &tree, &[&last])
                .unwrap();
            last = git.find_commit(id).unwrap();
        }
        let repository = BareRepository::open(folder.path()).unwrap();
        let id = |oid: git2::Oid| oid.to_string().parse::<CommitId>().unwrap();
        let sources = repository
            .commit_sources_beyond(&id(last.id()), &[id(root)])
            .unwrap();
        assert_eq!(sources.len(), count);
        plan_commits(folder.path(), sources).unwrap()
    }

    #[test]
    fn plan_sends_texts_inline_others_as_blobs() {
        let plans = plan_changes(1, |_| {
            vec![
                ("a.txt".to_owned(), b"text".to_vec()),
                ("b.bin".to_owned(), vec![0, 255]),
                ("c.txt".to_owned(), vec![b'x'; MAX_TEXT_BYTES + 1]),
            ]
        });
        let plan = plans.unwrap().remove(0);
        assert_eq!(
            (plan.blobs.len(), plan.requests.len(), plan.count_writes()),
            (2, 1, 4)
        );
        let [text, binary, long] = plan.requests[0].as_slice() else {
            panic!("{:?}", plan.requests)
        };
        assert_eq!(text.content, TreeContent::Text("text".to_owned()));
        for change in [binary, long] {
            let TreeContent::Object(id) = &change.content else {
                panic!("{change:?}")
            };
            assert!(plan.blobs.iter().any(|(blob, _)| blob == id));
        }
    }

    #[test]
    fn plan_divides_long_requests() {
        let plans = plan_changes(1, |_| {
            let files = 0..=MAX_REQUEST_PATHS;
            files
                .map(|number| (format!("f{number}"), number.to_string().into_bytes()))
                .collect()
        });
        let plan = plans.unwrap().remove(0);
        let lengths: Vec<usize> = plan.requests.iter().map(Vec::len).collect();
        assert_eq!(lengths, [MAX_REQUEST_PATHS, 1]);
    }

    #[test]
    fn plan_above_limits_writes_nothing() {
        let binaries = |count: usize| {
            plan_changes(1, move |_| {
                let files = 0..count;
                files
                    .map(|number| (format!("f{number}"), vec![0, 255, u8::try_from(number).unwrap()]))
                    .collect()
            })
        };
        assert!(binaries(MAX_WRITES - 2).is_some());
        assert!(binaries(MAX_WRITES).is_none());
        let text = |number: usize| vec![("a.txt".to_owned(), number.to_string().into_bytes())];
        assert!(plan_changes(MAX_WRITES / 2, text).is_some());
        assert!(plan_changes(MAX_WRITES / 2 + 1, text).is_none());
    }

    #[test]
    fn parents_of_merge_are_replaced_in_order() {
        let id = |digit: &str| digit.repeat(40).parse::<CommitId>().unwrap();
        let heads = BTreeMap::from([(id("1"), id("9"))]);
        let parents = replace_parents(&[id("1"), id("2")], &heads);
        assert_eq!(parents, [id("9"), id("2")]);
    }
}
