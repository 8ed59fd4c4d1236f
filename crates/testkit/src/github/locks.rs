//! Locked conversations of issues, pull requests and discussions.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::FakeGitHub;
use super::auth::{GitHubCaller, refuse_request};
use super::reactions::ReactedObject;
use super::state::RepositoryRecord;
use crate::http::{iso_now, render_json_answer};

/// Accounts that a lock keeps out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockReach {
    /// Accounts without write access. Those with it still comment, as on GitHub.
    Readers,
    /// All accounts that use the API, as with tokens that may write to issues but not to the repository.
    Tokens,
}

/// Lock of one conversation.
#[derive(Debug, Clone)]
pub(super) struct ConversationLockRecord {
    /// Reason in REST's spelling, e.g. `too heated`.
    pub(super) reason: Option<String>,
    pub(super) reach: LockReach,
}

impl RepositoryRecord {
    /// True if the lock of a conversation keeps an account out.
    pub(super) fn is_locked_for(&self, number: u64, login: &str) -> bool {
        self.locks.get(&number).is_some_and(|lock| match lock.reach {
            LockReach::Tokens => true,
            LockReach::Readers => {
                // Users have write permission by default, see `FakeGitHub::create_repository`.
                let permission = self.permissions.get(login).map_or("write", String::as_str);
                matches!(permission, "none" | "read")
            }
        })
    }

    /// Reason of a conversation's lock in REST's spelling.
    pub(super) fn lock_reason(&self, number: u64) -> Option<&str> {
        self.locks.get(&number)?.reason.as_deref()
    }

    /// Reason of a conversation's lock in GraphQL's spelling, e.g. `TOO_HEATED`.
    pub(super) fn graphql_lock_reason(&self, number: u64) -> Option<String> {
        let reason = self.lock_reason(number)?;
        Some(reason.to_ascii_uppercase().replace([' ', '-'], "_"))
    }

    /// Refuses to `act` (e.g. `create comment`) in a locked conversation, in GitHub's words.
    pub(super) fn check_lock(&self, number: u64, caller: &GitHubCaller, act: &str) -> Result<(), Response> {
        if self.is_locked_for(number, caller.login()) {
            Err(refuse_locked(act))
        } else {
            Ok(())
        }
    }

    /// Refuses a review of a locked pull request. GitHub answers it with another status than a comment.
    pub(super) fn check_review_lock(&self, number: u64, caller: &GitHubCaller) -> Result<(), Response> {
        if self.is_locked_for(number, caller.login()) {
            Err(render_json_answer(
                StatusCode::UNPROCESSABLE_ENTITY,
                json!({
                    "message": "Unprocessable Entity", "errors": ["lock prevents review"], "status": "422",
                    "documentation_url": "https://docs.github.com/rest/pulls/reviews#create-a-review-for-a-pull-request",
                }),
            ))
        } else {
            Ok(())
        }
    }

    /// Refuses a reaction in a locked conversation.
    pub(super) fn check_reaction_lock(
        &self,
        what: ReactedObject,
        caller: &GitHubCaller,
    ) -> Result<(), Response> {
        match self.find_conversation(what) {
            Some(number) => self.check_lock(number, caller, "create reaction"),
            None => Ok(()),
        }
    }

    /// Number of the conversation with the object of a reaction.
    fn find_conversation(&self, what: ReactedObject) -> Option<u64> {
        match what {
            ReactedObject::Issue(number) | ReactedObject::Discussion(number) => Some(number),
            ReactedObject::Comment(id) => {
                let found = self.comments.iter().find(|comment| comment.id == id);
                found.map(|comment| comment.number)
            }
            ReactedObject::LineComment(id) => {
                let has = |pull: &&super::state::PullRecord| {
                    let mut lines = pull.reviews.iter().flat_map(|review| &review.lines);
                    lines.any(|line| line.id == id)
                };
                self.pulls.values().find(has).map(|pull| pull.number)
            }
            ReactedObject::DiscussionComment(id) => {
                let mut all = self.discussions.values();
                let found = all.find(|one| one.comments.iter().any(|comment| comment.id == id));
                found.map(|one| one.number)
            }
        }
    }
}

/// Renders GitHub's refusal of a write in a locked conversation.
fn refuse_locked(act: &str) -> Response {
    render_json_answer(
        StatusCode::FORBIDDEN,
        json!({
            "message": format!("Unable to {act} because issue is locked."),
            "documentation_url": "https://docs.github.com/articles/locking-conversations/", "status": "403",
        }),
    )
}

impl FakeGitHub {
    /// Locks a conversation as a user. Sends `issues`, `pull_request` or `discussion` locked.
    ///
    /// # Errors
    /// When nothing in the repository has this number.
    pub fn lock_conversation(
        &self,
        repository: &str,
        number: u64,
        by: &str,
        reach: LockReach,
    ) -> anyhow::Result<()> {
        let lock = ConversationLockRecord {
            reason: Some("too heated".to_owned()),
            reach,
        };
        self.set_lock(repository, number, by, Some(lock))
    }

    /// Unlocks a conversation as a user. Sends `issues`, `pull_request` or `discussion` unlocked.
    ///
    /// # Errors
    /// When nothing in the repository has this number.
    pub fn unlock_conversation(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<()> {
        self.set_lock(repository, number, by, None)
    }

    fn set_lock(
        &self,
        repository: &str,
        number: u64,
        by: &str,
        lock: Option<ConversationLockRecord>,
    ) -> anyhow::Result<()> {
        let action = if lock.is_some() { "locked" } else { "unlocked" };
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        match lock {
            Some(lock) => drop(repo.locks.insert(number, lock)),
            None => drop(repo.locks.remove(&number)),
        }
        if let Some(issue) = repo.issues.get_mut(&number) {
            issue.updated = iso_now();
            let issue = issue.clone();
            self.hub.send_issue_event(repo, &issue, action, json!({}), by);
            return Ok(());
        }
        if let Some(pull) = repo.pulls.get_mut(&number) {
            pull.updated = iso_now();
            let pull = pull.clone();
            self.hub.send_pull_event(repo, &pull, action, by);
            return Ok(());
        }
        let discussion = repo.discussion(number)?.clone();
        let payload =
            json!({"action": action, "discussion": repo.discussion_json(&discussion, &self.hub.url)});
        self.hub.send_event(repo, "discussion", payload, by);
        Ok(())
    }

    /// Moves an issue or pull request to another place. Calls by the old number are redirected there.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn transfer_thread(&self, repository: &str, number: u64, to: (&str, u64)) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        world.repo(repository)?;
        let target = match world.repos.get(to.0) {
            Some(known) => format!("/repositories/{}", known.id),
            None => format!("/repos/{}", to.0),
        };
        world
            .transferred
            .insert((repository.to_owned(), number), (target, to.1));
        Ok(())
    }
}

/// Refuses a write to an archived repository, in GitHub's words.
pub(super) fn refuse_archived() -> Response {
    refuse_request(StatusCode::FORBIDDEN, "Repository was archived so is read-only.")
}
