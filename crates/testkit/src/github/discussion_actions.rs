//! Discussions from the test's side: starting them, commenting and reading their state.

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::time::Instant;

use super::FakeGitHub;
use super::discussions::CATEGORIES;
use super::hub::GitHubState;
use super::state::{DiscussionCommentRecord, DiscussionRecord};
use crate::http::iso_now;

impl GitHubState {
    pub(super) fn talk(
        &self,
        name: &str,
        number: u64,
        by: &str,
        body: &str,
        reply_to: Option<u64>,
    ) -> anyhow::Result<DiscussionCommentRecord> {
        let mut world = self.world();
        let id = world.fresh_id();
        let repo = world.repo(name)?;
        let discussion = repo.discussion(number)?;
        // GitHub has two levels of comments, so a reply to a reply is refused.
        let mut first = discussion.comments.iter().filter(|said| said.reply_to.is_none());
        ensure!(
            reply_to.is_none_or(|to| first.any(|said| said.id == to)),
            "replies go to the first comment of a thread"
        );
        let now = iso_now();
        let said = DiscussionCommentRecord {
            id,
            author: by.to_owned(),
            body: body.to_owned(),
            reply_to,
            created: now.clone(),
            updated: now.clone(),
            made: Instant::now(),
        };
        discussion.updated = now;
        discussion.comments.push(said.clone());
        let discussion = discussion.clone();
        let payload = json!({
            "action": "created", "comment": repo.talk_json(&discussion, &said, &self.url),
            "discussion": repo.discussion_json(&discussion, &self.url),
        });
        self.send_event(repo, "discussion_comment", payload, by);
        Ok(said)
    }
}

/// State of a discussion for assertions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInDiscussion {
    /// Reason of the closing; absent while the discussion is open.
    pub closed_as: Option<String>,
    /// Id of the comment that is marked as the answer.
    pub answer: Option<u64>,
    /// Comments and replies, oldest first.
    pub comments: Vec<StandInDiscussionComment>,
}

/// Comment or reply in a discussion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInDiscussionComment {
    /// Numeric id, as REST returns it.
    pub id: u64,
    /// Login of the author.
    pub author: String,
    /// Body as Markdown text.
    pub body: String,
    /// Id of the comment that this one replies to.
    pub reply_to: Option<u64>,
}

impl FakeGitHub {
    /// Starts a discussion in the category `General`, `Ideas` or `Q&A` and returns its number. Sends
    /// `discussion` created.
    ///
    /// # Errors
    /// When the repository or category does not exist.
    pub fn start_discussion(
        &self,
        repository: &str,
        by: &str,
        category: &str,
        (title, body): (&str, &str),
    ) -> anyhow::Result<u64> {
        let known = CATEGORIES.iter().find(|(name, _)| *name == category);
        let (category, _) = known.with_context(|| format!("there is no category {category}"))?;
        let mut world = self.hub.world();
        let id = world.fresh_id();
        let repo = world.repo(repository)?;
        let (number, now) = (repo.next_number(), iso_now());
        let discussion = DiscussionRecord {
            id,
            number,
            category,
            title: title.to_owned(),
            body: body.to_owned(),
            author: by.to_owned(),
            closed_as: None,
            answer: None,
            created: now.clone(),
            updated: now,
            comments: Vec::new(),
        };
        let payload =
            json!({"action": "created", "discussion": repo.discussion_json(&discussion, &self.hub.url)});
        repo.discussions.insert(number, discussion);
        self.hub.send_event(repo, "discussion", payload, by);
        Ok(number)
    }

    /// Comments in a discussion, or replies to a comment, and returns the comment's id. Sends
    /// `discussion_comment` created.
    ///
    /// # Errors
    /// When the discussion, or the comment is a reply itself does not exist.
    pub fn discuss_as(
        &self,
        repository: &str,
        number: u64,
        by: &str,
        body: &str,
        reply_to: Option<u64>,
    ) -> anyhow::Result<u64> {
        Ok(self.hub.talk(repository, number, by, body, reply_to)?.id)
    }

    /// Current state of a discussion.
    ///
    /// # Errors
    /// When the discussion does not exist.
    pub fn discussion(&self, repository: &str, number: u64) -> anyhow::Result<StandInDiscussion> {
        let mut world = self.hub.world();
        let found = world.repo(repository)?.discussion(number)?;
        let talk = |said: &DiscussionCommentRecord| StandInDiscussionComment {
            id: said.id,
            author: said.author.clone(),
            body: said.body.clone(),
            reply_to: said.reply_to,
        };
        Ok(StandInDiscussion {
            closed_as: found.closed_as.clone(),
            answer: found.answer,
            comments: found.comments.iter().map(talk).collect(),
        })
    }
}
