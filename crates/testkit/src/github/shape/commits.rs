//! JSON of commits, branches and references.

use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use super::extend_object;
use crate::github::history::{CommitDetails, CommitPerson};
use crate::github::state::RepositoryRecord;
use crate::http::ENCODED_IN_PATHS;

fn render_person(person: &CommitPerson) -> Value {
    json!({"name": person.name, "email": person.email})
}

/// Renders a commit as check suites contain it.
pub(in crate::github) fn simple_commit(commit: &CommitDetails) -> Value {
    json!({
        "id": commit.id, "tree_id": commit.tree, "message": commit.message, "timestamp": commit.at,
        "author": render_person(&commit.author), "committer": render_person(&commit.committer),
    })
}

/// Renders a commit as `push` contains it.
pub(in crate::github) fn pushed_commit(repo: &RepositoryRecord, commit: &CommitDetails, url: &str) -> Value {
    let more = json!({
        "distinct": true, "url": format!("{url}/{}/commit/{}", repo.name, commit.id), "added": commit.added,
        "removed": commit.removed, "modified": commit.modified,
    });
    extend_object(simple_commit(commit), more)
}

impl RepositoryRecord {
    /// Renders a commit for its REST routes. It has no user, because GitHub does not know the stand-in's
    /// addresses.
    pub(in crate::github) fn commit_json(&self, commit: &CommitDetails, url: &str) -> Value {
        let own = self.own_url(url);
        let (sha, page) = (&commit.id, format!("{url}/{}/commit", self.name));
        let dated = |who: &CommitPerson| extend_object(render_person(who), json!({"date": commit.at}));
        let parent = |parent: &String| json!({"sha": parent, "url": format!("{own}/commits/{parent}"), "html_url": format!("{page}/{parent}")});
        json!({
            "sha": sha, "node_id": format!("C_{sha}"), "url": format!("{own}/commits/{sha}"),
            "html_url": format!("{page}/{sha}"), "comments_url": format!("{own}/commits/{sha}/comments"),
            "author": null, "committer": null, "parents": commit.parents.iter().map(parent).collect::<Vec<_>>(),
            "commit": {
                "author": dated(&commit.author), "committer": dated(&commit.committer), "message": commit.message,
                "tree": {"sha": commit.tree, "url": format!("{own}/git/trees/{}", commit.tree)},
                "url": format!("{own}/git/commits/{sha}"), "comment_count": 0,
                "verification": self.verification_json(sha),
            },
        })
    }

    /// Renders a branch with the part of its classic protection that readers see.
    pub(in crate::github) fn branch_json(&self, branch: &str, head: &CommitDetails, url: &str) -> Value {
        let required = self.required_checks.get(branch).cloned().unwrap_or_default();
        let check = |context: &String| json!({"context": context, "app_id": null});
        let checks: Vec<Value> = required.iter().map(check).collect();
        let is_protected = !required.is_empty() || self.signed_branches.contains(branch);
        let level = if is_protected { "non_admins" } else { "off" };
        let path = utf8_percent_encode(branch, ENCODED_IN_PATHS);
        let own = format!("{}/branches/{path}", self.own_url(url));
        json!({
            "name": branch, "commit": self.commit_json(head, url), "protected": is_protected,
            "protection_url": format!("{own}/protection"),
            "protection": {
                "enabled": is_protected,
                "required_status_checks": {"enforcement_level": level, "contexts": required, "checks": checks},
            },
            "_links": {"self": own, "html": format!("{url}/{}/tree/{path}", self.name)},
        })
    }

    /// Renders a reference such as `heads/main`.
    pub(in crate::github) fn ref_json(&self, reference: &str, sha: &str, url: &str) -> Value {
        let own = self.own_url(url);
        let path = utf8_percent_encode(reference, ENCODED_IN_PATHS);
        json!({
            "ref": format!("refs/{reference}"), "node_id": format!("REF_{reference}"),
            "url": format!("{own}/git/refs/{path}"),
            "object": {"sha": sha, "type": "commit", "url": format!("{own}/git/commits/{sha}")},
        })
    }

    /// Renders the combined status of a commit. It is always pending and empty: the stand-in has check runs
    /// alone.
    pub(in crate::github) fn combined_status_json(&self, sha: &str, url: &str) -> Value {
        let commit = format!("{}/commits/{sha}", self.own_url(url));
        json!({
            "state": "pending", "statuses": [], "sha": sha, "total_count": 0, "repository": self.json(url),
            "commit_url": commit, "url": format!("{commit}/status"),
        })
    }
}
