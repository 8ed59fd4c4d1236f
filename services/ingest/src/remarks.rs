//! What people say in comments on a Jira ticket: an order, or words for the runs that are under way.

use domain::{News, Reason, Row, TicketComment, TicketKey, Timestamp};
use queue::Bucket;

use crate::{
    outcome::{Failure, Outcome},
    pin,
    router::Router,
    said::{Order, Remark},
};

impl Router {
    /// Takes a new comment on a Jira ticket; `account` is its author's id.
    pub(crate) async fn jira_remark(
        &self,
        remark: Remark,
        order: Order,
        account: &str,
    ) -> Result<Outcome, Failure> {
        match remark {
            Remark::Order(command) => self.jira_command(command, order, account).await,
            Remark::Words(text) => self.pass_on(order, &text, account).await,
        }
    }

    /// Words become news for the ticket's live runs. Without one there is nobody to read them: a later run reads the
    /// ticket with all its comments.
    async fn pass_on(&self, order: Order, text: &str, account: &str) -> Result<Outcome, Failure> {
        if self.is_ours(&[account, &order.actor]) {
            return Ok(Outcome::Nothing("our own account said it".to_owned()));
        }
        if !self.has_listeners(&order.ticket).await? {
            return Ok(Outcome::Nothing(
                "no run is under way that could read it".to_owned(),
            ));
        }
        let may_instruct = self
            .instructors
            .include(&self.outside, order.ticket.instance(), Some(account))
            .await?;
        let news = said(&order.actor, order.at, text, may_instruct);
        self.write_down(order, Reason::NewsArrived(news)).await
    }

    /// True while a run of the ticket takes news in, or may be about to: a trigger is not folded yet.
    pub(crate) async fn has_listeners(&self, ticket: &TicketKey) -> Result<bool, Failure> {
        let rows = self.queue.table::<Row>(Bucket::Tickets);
        let row = rows
            .get(&ticket.to_string())
            .await?
            .map(|(row, _)| row)
            .unwrap_or_default();
        if row.pending.iter().any(|pending| pending.lane.hears_news()) {
            return Ok(true);
        }
        let last = self.queue.triggers().last_sequence(ticket).await?;
        Ok(last.is_some_and(|last| last > row.cursor))
    }
}

/// Somebody's words on a ticket, cleaned.
pub(crate) fn said(author: &str, at: Timestamp, text: &str, may_instruct: bool) -> News {
    News::Comment {
        comment: TicketComment {
            author: pin::words(author),
            at,
            text: pin::words(text),
            may_instruct,
        },
        pull_request: None,
    }
}
