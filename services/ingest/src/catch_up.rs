//! The second door for what only a webhook tells: orders in comments, and new or edited tickets to triage.

use std::collections::BTreeSet;

use domain::{RepositoryName, Rules, Source, TicketKey, Timestamp, TriggerKey};
use queue::Appended;

use crate::{
    commands::{Command, Order},
    detect,
    events::jira::{Entered, nobody},
    outcome::{Failure, Outcome},
    reconcile::{OVERLAP_MS, place},
    router::Router,
};

impl Router {
    /// Reads what changed at a Jira project since the last look, and gives how much of it no webhook had told. `seen`
    /// holds what need not be read again.
    pub(crate) async fn catch_up_jira(
        &self,
        rules: &Rules,
        seen: &mut BTreeSet<String>,
    ) -> Result<u64, Failure> {
        let project = &rules.jira;
        let place = place("jira", project.instance.as_ref());
        let look = self
            .look(format!("reconciled:{place}:{}", project.project_key))
            .await?;
        let changed = self.outside.changed(project, look.since, look.now).await?;
        let mut recovered = 0;
        for issue in &changed.issues {
            let remembered = format!("{} updated {}", issue.key, issue.updated);
            if seen.contains(&remembered) {
                continue;
            }
            match self.catch_up_ticket(issue, look.since, rules, seen).await {
                Ok(outcomes) => recovered += news(&outcomes),
                Err(later @ Failure::Later { .. }) => return Err(later),
                Err(failure) => tracing::warn!(ticket = %issue.key, %failure, "ticket left out"),
            }
            seen.insert(remembered);
        }
        // When there are more, the next look begins at the last of these.
        let last = changed
            .issues
            .last()
            .map(|issue| issue.updated.plus_ms(OVERLAP_MS));
        let to = last.filter(|last| !changed.is_complete && *last < look.now);
        self.looked(&look, to.unwrap_or(look.now)).await?;
        Ok(recovered)
    }

    async fn catch_up_ticket(
        &self,
        issue: &jira::ChangedIssue,
        since: Timestamp,
        rules: &Rules,
        seen: &mut BTreeSet<String>,
    ) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::new();
        for comment in self.outside.comments_since(&issue.key, since).await? {
            if let Some(outcome) = self.order_in(&issue.key, &comment, seen).await? {
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

    /// What became of the order in a comment, if it gives one that was not seen before.
    async fn order_in(
        &self,
        ticket: &TicketKey,
        comment: &jira::Comment,
        seen: &mut BTreeSet<String>,
    ) -> Result<Option<Outcome>, Failure> {
        let is_ours = comment.by_us || !comment.marker.is_empty();
        let Some(command) = Command::of(&comment.text).filter(|_| !is_ours) else {
            return Ok(None);
        };
        let key = format!("comment:{}", comment.id);
        if seen.contains(&key) {
            return Ok(None);
        }
        let order = Order {
            ticket: ticket.clone(),
            key: TriggerKey::new(&key),
            at: comment.created,
            actor: comment.author.clone(),
            source: Source::Poll,
        };
        let outcome = self
            .jira_command(command, order, &comment.author_account_id)
            .await?;
        seen.insert(key);
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
        seen: &mut BTreeSet<String>,
    ) -> Result<u64, Failure> {
        let look = self.look(format!("reconciled:github:{repository}")).await?;
        let mut outcomes = Vec::new();
        for (number, comment) in self.outside.repository_comments(repository, look.since).await? {
            let key = format!("comment:{}", comment.id);
            let remembered = format!("{repository} {key}");
            let Some(command) = Command::of(&comment.body).filter(|_| !seen.contains(&remembered)) else {
                continue;
            };
            let order = Order {
                ticket: TicketKey::GitHub {
                    repository: repository.clone(),
                    number,
                },
                key: TriggerKey::new(key),
                at: comment.created_at.unwrap_or(look.now),
                actor: comment.author,
                source: Source::Poll,
            };
            outcomes.push(self.github_command(command, (repository, number), order).await?);
            seen.insert(remembered);
        }
        self.looked(&look, look.now).await?;
        Ok(news(&outcomes))
    }
}

/// How many of them the ticket's log did not know.
pub(crate) fn news(outcomes: &[Outcome]) -> u64 {
    let new = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Appended {
            trigger,
            appended: Appended::New(_),
        } => Some(trigger),
        Outcome::Appended { .. } | Outcome::Known(_) | Outcome::Nothing(_) => None,
    });
    new.inspect(
        |trigger| tracing::info!(ticket = %trigger.ticket, key = trigger.key.as_str(), "found by poll"),
    )
    .count() as u64
}
