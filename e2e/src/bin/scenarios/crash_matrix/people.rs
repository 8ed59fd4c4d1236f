//! The people and CI of a story: what they do next follows from what they see.

pub(crate) mod asked;
pub(crate) mod issue;
pub(crate) mod talk;

use std::time::Duration;

use e2e::WebhookSender;
use serde_json::json;
use testkit::{
    Step, fixture,
    github::{Conclusion, PullRequestState},
};
use tokio::time::Instant;

use self::{asked::PeopleOfAsked, issue::PeopleOfIssue, talk::PeopleOfTalk};
use crate::crash_matrix::stage::{Stage, Story};

/// Who is not heard says it again after this long.
const SAY_AGAIN: Duration = Duration::from_secs(4);
const UNREADABLE: &str = "{\"action\":1,\"check_run\":{}}";
/// The same for every try, as a sender repeats a delivery.
const UNREADABLE_ID: &str = "00000000-0000-4000-8000-000000000001";

/// What a model does about red checks: it adds a note.
pub(crate) fn repair() -> Vec<Step> {
    vec![
        Step::call(
            "write_file",
            json!({"path": "notes/cart.md", "content": "Pieces.\n"}),
        ),
        Step::call(
            "finish",
            json!({"type": "fix", "title": "Add the missing note", "summary": "The check asks for a note."}),
        ),
    ]
}

/// What a model does about the review.
fn around_review(comment: u64) -> Vec<Step> {
    let replies = json!([{"id": comment, "disposition": "changed", "reply": "The note says it."}]);
    vec![
        Step::call(
            "write_file",
            json!({"path": "notes/rounding.md", "content": "To the cent.\n"}),
        ),
        Step::call(
            "finish",
            json!({"type": "docs", "title": "Say how it is rounded", "summary": "Adds a note on rounding.",
                "replies": replies}),
        ),
    ]
}

/// What people remember.
#[derive(Default)]
pub(crate) struct People {
    /// The head that CI has reported on.
    checked: Option<String>,
    /// When somebody said `/retry` last on Jira.
    ordered: Option<Instant>,
    /// Somebody has commented on the pull request.
    commented: bool,
    /// The comment of the review, once there is one.
    reviewed: Option<u64>,
    /// The delivery that cannot be read was taken.
    delivered: bool,
    /// What they did about an issue.
    pub(crate) of_issue: PeopleOfIssue,
    /// What they did about two tickets.
    pub(crate) of_asked: PeopleOfAsked,
    /// What they did in a discussion.
    pub(crate) of_talk: PeopleOfTalk,
}

impl Stage {
    /// Does what people and CI do next; true when there is nothing left to do and to see.
    ///
    /// # Errors
    /// When the outside forbids it.
    pub(crate) async fn act(&mut self) -> anyhow::Result<bool> {
        match self.story {
            Story::Straight | Story::Detours | Story::Rounds => self.act_at_jira().await,
            Story::Issue => self.act_on_issue(),
            Story::Asked => self.act_on_asked(),
            Story::Talk => self.act_in_talk(),
        }
    }

    async fn act_at_jira(&mut self) -> anyhow::Result<bool> {
        if self.jira.status(&self.key).as_deref() == Some("To Do") {
            self.jira.move_issue(&self.key, "Ready for Agent", "ada")?;
        }
        let said = self.said();
        if self.story == Story::Detours {
            self.order_a_retry(&said)?;
            self.deliver_what_cannot_be_read().await?;
        }
        let open = self.pull_requests().into_iter().find(|pull| pull.open);
        if let Some(pull) = open {
            self.look_at(pull, &said)?;
        }
        let is_done = self.jira.status(&self.key).as_deref() == Some("Done");
        Ok(is_done && said.contains("merged") && self.has_heard_everybody())
    }

    fn has_heard_everybody(&self) -> bool {
        self.story != Story::Detours || self.people.delivered
    }

    /// CI reports on a draft; a person merges what is ready.
    fn look_at(&mut self, pull: PullRequestState, said: &str) -> anyhow::Result<()> {
        if pull.draft && said.contains("Draft") && self.people.checked.as_deref() != Some(&pull.head_sha) {
            if self.story == Story::Detours && !std::mem::replace(&mut self.people.commented, true) {
                self.github
                    .comment_as(fixture::REPOSITORY, pull.number, "grace", "/retry")?;
            }
            let is_first = self.people.checked.is_none();
            let ended = match self.story {
                Story::Rounds if is_first => [("notes", Conclusion::Failure, "AssertionError: no note")],
                _ => [("test", Conclusion::Success, "ok")],
            };
            self.github
                .run_checks(fixture::REPOSITORY, &pull.head_sha, &ended)?;
            self.people.checked = Some(pull.head_sha);
        } else if self.story == Story::Rounds
            && !pull.draft
            && said.contains("All checks passed")
            && self.people.reviewed.is_none()
        {
            // The pull request is ready before its ticket says so; a review in between would change the order of the comments.
            self.review(pull.number)?;
        } else if self.story == Story::Rounds && !self.has_reply(pull.number)? {
            // The reviewer waits.
        } else if !pull.draft && said.contains("All checks passed") && self.is_asked_again(&pull) {
            self.github.merge(fixture::REPOSITORY, pull.number, "grace")?;
        }
        Ok(())
    }

    /// A person asks for something on a line.
    fn review(&mut self, number: u64) -> anyhow::Result<()> {
        let comment = self.github.next_id() + 1;
        let review = around_review(comment);
        self.model
            .set_script_of("A review of the pull request", "", review);
        let lines = [("shop/cart.py", 3, "Please say how it is rounded.")];
        let (shop, state) = (fixture::REPOSITORY, ("changes_requested", ""));
        self.github.review_lines(shop, number, "grace", state, &lines)?;
        self.people.reviewed = Some(comment);
        Ok(())
    }

    /// After a review the reviewer is asked once more before the merge.
    fn is_asked_again(&self, pull: &PullRequestState) -> bool {
        self.story != Story::Rounds || !pull.requested_reviewers.is_empty()
    }

    /// Whether the review has its reply.
    fn has_reply(&self, number: u64) -> anyhow::Result<bool> {
        let Some(comment) = self.people.reviewed else {
            return Ok(false);
        };
        let replies = self.github.replies(fixture::REPOSITORY, number, comment)?;
        Ok(!replies.is_empty())
    }

    /// The model is up again as soon as somebody has seen that it was down.
    fn order_a_retry(&mut self, said: &str) -> anyhow::Result<()> {
        let is_time = self.people.ordered.is_none_or(|last| last.elapsed() > SAY_AGAIN);
        let waits = said.contains("retry 1 of 5") && !said.contains("Draft");
        if waits && is_time {
            self.model.garble_next(0);
            self.jira.comment_as(&self.key, "ada", "/retry")?;
            self.people.ordered = Some(Instant::now());
        }
        Ok(())
    }

    /// A delivery with a right signature that nobody understands, sent until it is taken.
    async fn deliver_what_cannot_be_read(&mut self) -> anyhow::Result<()> {
        if self.people.delivered {
            return Ok(());
        }
        let sender = WebhookSender::new(reqwest::Client::new(), format!("{}/github", self.webhooks));
        let sent = sender.send("check_run", UNREADABLE_ID, UNREADABLE.to_owned());
        self.people.delivered = sent.await.is_ok_and(|status| status.is_success());
        Ok(())
    }
}
