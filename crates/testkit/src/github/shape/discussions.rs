//! JSON of discussions for webhooks.

use serde_json::{Value, json};

use super::issue_comments::render_reactions;
use super::render_user;
use crate::github::discussions::CATEGORIES;
use crate::github::state::{DiscussionCommentRecord, DiscussionRecord, RepositoryRecord};

impl RepositoryRecord {
    pub(in crate::github) fn discussion_url(&self, number: u64, url: &str) -> String {
        format!("{url}/{}/discussions/{number}", self.name)
    }

    pub(in crate::github) fn discussion_json(&self, discussion: &DiscussionRecord, url: &str) -> Value {
        let repository = self.own_url(url);
        let page = self.discussion_url(discussion.number, url);
        let place = CATEGORIES
            .iter()
            .position(|(name, _)| *name == discussion.category);
        let slug = discussion.category.to_lowercase().replace('&', "-");
        json!({
            "id": discussion.id, "node_id": discussion.node_id(), "number": discussion.number,
            "title": discussion.title, "body": discussion.body, "user": render_user(&discussion.author),
            "html_url": page, "repository_url": repository,
            "locked": self.locks.contains_key(&discussion.number), "active_lock_reason": self.lock_reason(discussion.number),
            "state": if discussion.closed_as.is_some() { "closed" } else { "open" },
            "state_reason": discussion.closed_as, "comments": discussion.comments.len(),
            "created_at": discussion.created, "updated_at": discussion.updated, "author_association": "CONTRIBUTOR",
            "answer_html_url": discussion.answer.map(|id| format!("{page}#discussioncomment-{id}")),
            "answer_chosen_at": null, "answer_chosen_by": null,
            "reactions": render_reactions(&format!("{repository}/discussions/{}", discussion.number)),
            "timeline_url": format!("{repository}/discussions/{}/timeline", discussion.number), "labels": [],
            "category": {
                "id": place, "node_id": format!("DIC_{}", discussion.category), "repository_id": self.id,
                "emoji": ":speech_balloon:", "name": discussion.category, "description": "", "slug": slug,
                "created_at": self.created, "updated_at": self.created, "is_answerable": discussion.is_answerable(),
            },
        })
    }

    /// Renders a comment or reply.
    pub(in crate::github) fn talk_json(
        &self,
        discussion: &DiscussionRecord,
        said: &DiscussionCommentRecord,
        url: &str,
    ) -> Value {
        let repository = self.own_url(url);
        let page = self.discussion_url(discussion.number, url);
        let replies = discussion.comments.iter();
        let replies = replies.filter(|reply| reply.reply_to == Some(said.id)).count();
        let own = format!("{repository}/discussions/comments/{}", said.id);
        json!({
            "id": said.id, "node_id": said.node_id(), "html_url": format!("{page}#discussioncomment-{}", said.id),
            "parent_id": said.reply_to, "child_comment_count": replies, "repository_url": repository,
            "discussion_id": discussion.id, "author_association": "CONTRIBUTOR", "user": render_user(&said.author),
            "created_at": said.created, "updated_at": said.updated, "body": said.body, "reactions": render_reactions(&own),
        })
    }
}
