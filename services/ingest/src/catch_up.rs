//! The second door for what only a webhook tells: orders in comments, and new or edited tickets to triage.

use bytes::Bytes;
use domain::{Origin, RepositoryName, Rules, Source, TicketKey, Timestamp, cause::chain};
use queue::{Appended, DeadLetter};

use crate::{
    detect,
    events::jira::{Entered, nobody},
    memory::Memory,
    outcome::{Failure, Outcome},
    reconcile::OVERLAP_MS,
    router::Router,
    said::{Command, Order, Remark, comment_key},
};

/// After so many tickets that could not be read, and none that could, the rest waits for the next round.
const ENOUGH: usize = 5;

impl Router {
    /// Reads what changed at a Jira project since the last look, and gives how much of it no webhook had told. A ticket
    /// that cannot be read keeps neither the others nor, in the end, the look from going on.
    pub(crate) async fn catch_up_jira(&self, rules: &Rules, memory: &mut Memory) -> Result<u64, Failure> {
        let project = &rules.jira;
        let origin = Origin::Jira(project.instance.clone());
        let key = format!("reconciled:{origin}:{}", project.project_key);
        let look = self.look(key).await?;
        let changed = self.outside.changed(project, look.since, look.now).await?;
        let mut round = Round::default();
        for issue in &changed.issues {
            let remembered = format!("{} updated {}", issue.key, issue.updated);
            if memory.knows(&remembered) {
                continue;
            }
            match self.catch_up_ticket(issue, look.since, rules, memory).await {
                Ok(outcomes) => {
                    round.recovered += news(&outcomes);
                    memory.settle(remembered);
                }
                Err(limit) if limit.is_limit() => return Err(limit),
                Err(failure) => round.left.push(Left {
                    finding: remembered,
                    ticket: Some(issue.key.clone()),
                    at: issue.updated,
                    failure,
                }),
            }
            if round.left.len() >= ENOUGH && round.recovered == 0 {
                break;
            }
        }
        let waits_from = self.settle_left(&mut round, changed.issues.len(), memory).await?;
        // When there are more, the next look begins at the last of these.
        let last = changed
            .issues
            .last()
            .map(|issue| issue.updated.plus_ms(OVERLAP_MS));
        let to = last
            .filter(|last| !changed.is_complete && *last < look.now)
            .unwrap_or(look.now);
        self.looked(&look, waits_from.map_or(to, |waits| waits.min(to)))
            .await?;
        Ok(round.recovered)
    }

    /// Gives up what has failed too often, with a dead letter; gives when the oldest of the rest happened.
    async fn settle_left(
        &self,
        round: &mut Round,
        found: usize,
        memory: &mut Memory,
    ) -> Result<Option<Timestamp>, Failure> {
        let others_were_read = round.left.len() < found;
        let mut waits_from: Option<Timestamp> = None;
        for left in round.left.drain(..) {
            let Left {
                finding,
                ticket,
                at,
                failure,
            } = left;
            if failure.may_pass() && !memory.is_hopeless(&finding, others_were_read) {
                tracing::warn!(
                    finding,
                    error = %chain(&failure),
                    "not read; it is tried again in the next round"
                );
                waits_from = Some(waits_from.map_or(at, |earlier| earlier.min(at)));
                continue;
            }
            self.give_up(&finding, ticket, &failure).await?;
            memory.settle(finding);
        }
        Ok(waits_from)
    }

    /// Leaves a finding out, visibly.
    pub(crate) async fn give_up(
        &self,
        finding: &str,
        ticket: Option<TicketKey>,
        failure: &Failure,
    ) -> Result<(), Failure> {
        tracing::error!(finding, error = %chain(failure), "found by poll and left out");
        let letter = DeadLetter {
            what: domain::RecordKind::Ticket,
            id: finding.to_owned(),
            ticket,
            reason: format!("found by poll and left out: {failure}; a new change is looked at again"),
            at: bootstrap::now(),
        };
        Ok(self.queue.dead_letters().publish(&letter, Bytes::new()).await?)
    }

    async fn catch_up_ticket(
        &self,
        issue: &jira::ChangedIssue,
        since: Timestamp,
        rules: &Rules,
        memory: &mut Memory,
    ) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::new();
        for comment in self.outside.comments_since(&issue.key, since).await? {
            if let Some(outcome) = self.remark_in(&issue.key, &comment, memory).await? {
                outcomes.push(outcome);
            }
        }
        if !rules.triage.labels.is_empty()
            && let Some(entered) = self.entered(issue, since, rules).await?
        {
            outcomes.push(self.triage(entered, rules).await?);
        }
        Ok(outcomes)
    }

    /// What became of a comment that was not seen before.
    async fn remark_in(
        &self,
        ticket: &TicketKey,
        comment: &jira::Comment,
        memory: &mut Memory,
    ) -> Result<Option<Outcome>, Failure> {
        let is_ours = comment.by_us || !comment.marker.is_empty();
        let key = comment_key(&comment.id);
        let remembered = format!("{ticket} {}", key.as_str());
        if is_ours || memory.knows(&remembered) {
            return Ok(None);
        }
        let order = Order {
            ticket: ticket.clone(),
            key,
            at: comment.created,
            actor: comment.author.clone(),
            source: Source::Poll,
        };
        let outcome = self
            .jira_remark(Remark::of(&comment.text), order, &comment.author_account_id)
            .await?;
        memory.settle(remembered);
        Ok(Some(outcome))
    }

    /// The ticket's creation, or else the last edit of its text, since the last look.
    async fn entered(
        &self,
        issue: &jira::ChangedIssue,
        since: Timestamp,
        rules: &Rules,
    ) -> Result<Option<Entered>, Failure> {
        let entered = |changelog: Option<String>, at: Timestamp, by: Option<jira::Account>| Entered {
            ticket: issue.key.clone(),
            status: issue.status.clone(),
            changelog,
            at,
            actor: by.unwrap_or_else(nobody),
            source: Source::Poll,
        };
        if let Some(edit) = self.outside.text_edits_since(&issue.key, since).await?.pop() {
            return Ok(Some(entered(Some(edit.id.to_string()), edit.at, edit.by)));
        }
        let is_new = issue.created >= since && !detect::asks_for_work(&issue.status, rules);
        Ok(is_new.then(|| entered(None, issue.created, issue.creator.clone())))
    }

    /// Reads the comments of a repository's pull requests and issues since the last look, for orders that no webhook
    /// told.
    pub(crate) async fn catch_up_github(
        &self,
        repository: &RepositoryName,
        memory: &mut Memory,
    ) -> Result<u64, Failure> {
        let look = self.look(format!("reconciled:github:{repository}")).await?;
        let comments = self.outside.repository_comments(repository, look.since).await?;
        let (mut round, mut orders) = (Round::default(), 0);
        for (number, comment) in comments {
            let remembered = format!("{repository} comment:{}", comment.id);
            let Some(command) = Command::of(&comment.body).filter(|_| !memory.knows(&remembered)) else {
                continue;
            };
            orders += 1;
            let at = comment.created_at.unwrap_or(look.now);
            let order = Order {
                ticket: TicketKey::GitHub {
                    repository: repository.clone(),
                    number,
                },
                key: comment_key(comment.id),
                at,
                actor: comment.author,
                source: Source::Poll,
            };
            let ticket = order.ticket.clone();
            match self.github_command(command, (repository, number), order).await {
                Ok(outcome) => {
                    round.recovered += news(&[outcome]);
                    memory.settle(remembered);
                }
                Err(limit) if limit.is_limit() => return Err(limit),
                Err(failure) => round.left.push(Left {
                    finding: remembered,
                    ticket: Some(ticket),
                    at,
                    failure,
                }),
            }
        }
        let waits_from = self.settle_left(&mut round, orders, memory).await?;
        self.looked(&look, waits_from.map_or(look.now, |waits| waits.min(look.now)))
            .await?;
        Ok(round.recovered)
    }
}

/// What one round of looking found.
#[derive(Default)]
struct Round {
    recovered: u64,
    left: Vec<Left>,
}

/// A finding that could not be read.
struct Left {
    /// As the memory knows it.
    finding: String,
    ticket: Option<TicketKey>,
    at: Timestamp,
    failure: Failure,
}

/// How many of them the ticket's log did not know.
pub(crate) fn news(outcomes: &[Outcome]) -> u64 {
    let new = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Appended {
            trigger,
            appended: Appended::New(_),
        } => Some(trigger),
        Outcome::Appended { .. } | Outcome::Known(_) | Outcome::NoChecks | Outcome::Nothing(_) => None,
    });
    new.inspect(
        |trigger| tracing::info!(ticket = %trigger.ticket, key = trigger.key.as_str(), "found by poll"),
    )
    .count() as u64
}
