//! Users and CI of a story. Their next action follows from what they see.

pub(crate) mod discussion;
pub(crate) mod issue;
pub(crate) mod mergeable;
pub(crate) mod triaged_tickets;

use std::time::Duration;

use e2e::SignedWebhookSender;
use serde_json::json;
use testkit::{
    ScriptStep, fixture,
    github::{RunConclusion, StandInPullRequest},
};
use tokio::time::Instant;

use self::{
    discussion::PeopleOfTalk, issue::PeopleOfIssue, mergeable::PeopleOfMergeable,
    triaged_tickets::PeopleOfAsked,
};
use crate::crash_matrix::stage::{MatrixStage, MatrixStory};

/// Time after which a user repeats a command that had no effect.
const SAY_AGAIN: Duration = Duration::from_secs(4);
const UNREADABLE: &str = "{\"action\":1,\"check_run\":{}}";
// Constant delivery id, because a sender repeats a delivery with the same id.
const UNREADABLE_ID: &str = "00000000-0000-4000-8000-000000000001";

/// Model replies to failed checks: the model adds a note.
pub(crate) fn build_repair_script() -> Vec<ScriptStep> {
    vec![
        ScriptStep::call(
            "write_file",
            json!({"path": "notes/cart.md", "content": "Pieces.\n"}),
        ),
        ScriptStep::call(
            "finish",
            json!({"type": "fix", "title": "Add the missing note", "summary": "The check asks for a note."}),
        ),
    ]
}

/// Model replies to the review.
fn around_review(comment: u64) -> Vec<ScriptStep> {
    let replies = json!([{"id": comment, "disposition": "changed", "reply": "The note says it."}]);
    vec![
        ScriptStep::call(
            "write_file",
            json!({"path": "notes/rounding.md", "content": "To the cent.\n"}),
        ),
        ScriptStep::call(
            "finish",
            json!({"type": "docs", "title": "Say how it is rounded", "summary": "Adds a note on rounding.",
                "replies": replies}),
        ),
    ]
}

/// Memory of users and CI.
#[derive(Default)]
pub(crate) struct StoryPeople {
    /// Head commit of the last CI report.
    checked: Option<String>,
    /// Time of the last `/retry` on Jira.
    ordered: Option<Instant>,
    /// True after a comment on the pull request.
    commented: bool,
    /// Id of the review's comment, after the review.
    reviewed: Option<u64>,
    /// True after ingest has accepted the unreadable delivery.
    delivered: bool,
    /// Actions on an issue.
    pub(crate) of_issue: PeopleOfIssue,
    /// Actions on two tickets.
    pub(crate) of_asked: PeopleOfAsked,
    /// Actions in a discussion.
    pub(crate) of_talk: PeopleOfTalk,
    /// Actions on a pull request that has to stay mergeable.
    pub(crate) of_mergeable: PeopleOfMergeable,
}

impl MatrixStage {
    /// Performs the next action of users and CI. Returns true if nothing remains to do and to see.
    ///
    /// # Errors
    /// When a stand-in refuses the action.
    pub(crate) async fn act(&mut self) -> anyhow::Result<bool> {
        match self.story {
            MatrixStory::Straight | MatrixStory::Detours | MatrixStory::Rounds => self.act_at_jira().await,
            MatrixStory::Issue => self.act_on_issue(),
            MatrixStory::Asked => self.act_on_asked(),
            MatrixStory::Talk => self.act_in_talk(),
            MatrixStory::Mergeable => self.act_on_mergeable(),
        }
    }

    async fn act_at_jira(&mut self) -> anyhow::Result<bool> {
        if self.jira.status(&self.key).as_deref() == Some("To Do") {
            self.jira.move_issue(&self.key, "Ready for Agent", "ada")?;
        }
        let said = self.said();
        if self.story == MatrixStory::Detours {
            self.order_a_retry(&said)?;
            self.deliver_what_cannot_be_read().await?;
        }
        let open = self.pull_requests().into_iter().find(|pull| pull.open);
        if let Some(pull) = open {
            self.handle_pull_request(pull, &said)?;
        }
        let is_done = self.jira.status(&self.key).as_deref() == Some("Done");
        Ok(is_done && said.contains("merged") && self.has_heard_everybody())
    }

    fn has_heard_everybody(&self) -> bool {
        self.story != MatrixStory::Detours || self.people.delivered
    }

    /// Reports CI on a draft, reviews it, and merges it when it is ready.
    fn handle_pull_request(&mut self, pull: StandInPullRequest, said: &str) -> anyhow::Result<()> {
        let is_checked = self.people.checked.as_deref() == Some(&pull.head_sha);
        if pull.draft && !is_checked && self.is_head_stated(said) {
            if self.story == MatrixStory::Detours && !std::mem::replace(&mut self.people.commented, true) {
                self.github
                    .comment_as(fixture::REPOSITORY, pull.number, "grace", "/retry")?;
            }
            let is_first = self.people.checked.is_none();
            let ended = match self.story {
                MatrixStory::Rounds if is_first => {
                    [("notes", RunConclusion::Failure, "AssertionError: no note")]
                }
                _ => [("test", RunConclusion::Success, "ok")],
            };
            self.github
                .run_checks(fixture::REPOSITORY, &pull.head_sha, &ended)?;
            self.people.checked = Some(pull.head_sha);
        } else if self.story == MatrixStory::Rounds
            && !pull.draft
            && self.is_ready_stated(said)
            && self.people.reviewed.is_none()
        {
            self.review(pull.number)?;
        } else if self.story == MatrixStory::Rounds && !self.has_reply(pull.number)? {
            // The reviewer waits for the reply.
        } else if !pull.draft && self.is_ready_stated(said) && self.is_asked_again(&pull) {
            self.github.merge(fixture::REPOSITORY, pull.number, "grace")?;
        }
        Ok(())
    }

    /// True if the ticket states the present head of the draft.
    ///
    /// GitHub has a head before the ticket states it. A result of CI in between would change the order of the
    /// comments.
    fn is_head_stated(&self, said: &str) -> bool {
        let is_repaired = self.story == MatrixStory::Rounds && self.people.checked.is_some();
        said.contains(match self.people.reviewed {
            Some(_) => "is addressed with commit",
            None if is_repaired => "checks are repaired",
            None => "Draft",
        })
    }

    /// True if the ticket states that the pull request is ready: once before the review, twice after it.
    ///
    /// GitHub marks the pull request ready before the ticket states it. A review or merge in between would
    /// change the order of the comments.
    fn is_ready_stated(&self, said: &str) -> bool {
        said.matches("All checks passed").count() > usize::from(self.people.reviewed.is_some())
    }

    /// Reviews with a request on one line.
    fn review(&mut self, number: u64) -> anyhow::Result<()> {
        // The review takes the next id and its comment the one after.
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

    /// True if the merge may follow: after a review Journeyman requests the reviewer again.
    fn is_asked_again(&self, pull: &StandInPullRequest) -> bool {
        self.story != MatrixStory::Rounds || !pull.requested_reviewers.is_empty()
    }

    /// True if the review's comment has a reply.
    fn has_reply(&self, number: u64) -> anyhow::Result<bool> {
        let Some(comment) = self.people.reviewed else {
            return Ok(false);
        };
        let replies = self.github.replies(fixture::REPOSITORY, number, comment)?;
        Ok(!replies.is_empty())
    }

    /// Repairs the model after its failure has become visible, and orders a retry.
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

    /// Sends a correctly signed delivery that does not parse, until ingest accepts it.
    async fn deliver_what_cannot_be_read(&mut self) -> anyhow::Result<()> {
        if self.people.delivered {
            return Ok(());
        }
        let sender = SignedWebhookSender::new(reqwest::Client::new(), format!("{}/github", self.webhooks));
        let sent = sender.send("check_run", UNREADABLE_ID, UNREADABLE.to_owned());
        self.people.delivered = sent.await.is_ok_and(|status| status.is_success());
        Ok(())
    }
}
