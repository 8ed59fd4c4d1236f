//! Transfer and deletion of issues.

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::FakeGitHub;
use super::state::{CommentRecord, IssueRecord};
use crate::http::iso_now;

/// End of an issue at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IssueRemoval {
    /// It is another issue of another repository.
    Transferred,
    /// A person deleted it with its conversation.
    Deleted,
}

impl FakeGitHub {
    /// Transfers an issue to another repository as a user, and returns its number there. Its comments, assignees and
    /// timeline move with it. Its labels do not, as on GitHub where the other repository lacks them. Calls by the old
    /// number are redirected. Sends `issues` transferred at the old place and `issues` opened at the new one.
    ///
    /// # Errors
    /// When the issue or the other repository does not exist.
    pub fn transfer_issue(&self, repository: &str, number: u64, to: &str, by: &str) -> anyhow::Result<u64> {
        ensure!(repository != to, "an issue moves to another repository");
        let url = &self.hub.url;
        let mut world = self.hub.world();
        let target = world.repo(to)?;
        let (new_number, address) = (target.next_number(), format!("/repositories/{}", target.id));
        let id = world.fresh_id();
        let source = world.repo(repository)?;
        let issue = source.issue(number)?.clone();
        let (old_issue, old_repository) = (source.issue_json(&issue, url), source.json(url));
        source.issues.remove(&number);
        source.removed.insert(number, IssueRemoval::Transferred);
        source.locks.remove(&number);
        let (moved, kept): (Vec<CommentRecord>, Vec<CommentRecord>) = std::mem::take(&mut source.comments)
            .into_iter()
            .partition(|comment| comment.number == number);
        source.comments = kept;
        let mut comments = Vec::new();
        for comment in moved {
            comments.push(CommentRecord {
                id: world.fresh_id(),
                number: new_number,
                ..comment
            });
        }
        let transferred = IssueRecord {
            id,
            number: new_number,
            labels: Vec::new(),
            parent: None,
            updated: iso_now(),
            ..issue
        };
        let target = world.repo(to)?;
        target.comments.extend(comments);
        target.issues.insert(new_number, transferred.clone());
        let (new_issue, new_repository) = (target.issue_json(&transferred, url), target.json(url));
        world
            .transferred
            .insert((repository.to_owned(), number), (address, new_number));
        let source = world.repo(repository)?;
        let payload = json!({
            "action": "transferred", "issue": old_issue,
            "changes": {"new_issue": new_issue, "new_repository": new_repository},
        });
        self.hub.send_event(source, "issues", payload, by);
        let target = world.repo(to)?;
        let changes = json!({"changes": {"old_issue": old_issue, "old_repository": old_repository}});
        self.hub
            .send_issue_event(target, &transferred, "opened", changes, by);
        Ok(new_number)
    }

    /// Makes the new place of a transferred issue invisible to our accounts: calls by its old number answer 404.
    ///
    /// # Errors
    /// When the issue was not transferred.
    pub fn hide_transfer(&self, repository: &str, number: u64) -> anyhow::Result<()> {
        let place = (repository.to_owned(), number);
        let removed = self.hub.world().transferred.remove(&place);
        removed
            .map(drop)
            .with_context(|| format!("{repository}#{number} was not transferred"))
    }

    /// Deletes an issue with its conversation as a user. Calls by its number answer 410. Sends `issues` deleted.
    ///
    /// # Errors
    /// When the issue does not exist.
    pub fn delete_issue(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        let issue = repo.issue(number)?.clone();
        let payload = json!({"action": "deleted", "issue": repo.issue_json(&issue, &self.hub.url)});
        repo.issues.remove(&number);
        repo.removed.insert(number, IssueRemoval::Deleted);
        repo.locks.remove(&number);
        repo.comments.retain(|comment| comment.number != number);
        self.hub.send_event(repo, "issues", payload, by);
        Ok(())
    }
}
