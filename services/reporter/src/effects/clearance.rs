//! The check of every effect's target against records that no planner writes.
//!
//! A planner names tickets, pull requests, threads and comments, and none of these names is trusted. The check uses
//! the operator's rules, the records of branches and pull requests (written by the reporter), and the ticket's
//! triggers (written by ingest).

use domain::{
    BranchRecord, CommitId, JobSubject, OutboundRefusal, OutboundRequest, PullRequestRef, ReactionSubject,
    RepositoryName, RepositoryRules, ReviewRound, ReviewedChange, TicketKey, Trigger, TriggerReason,
    cause::format_error_chain,
};
use tokio::sync::OnceCell;

use super::{CommentThread, OutboundClients, PlannedEffect};
use crate::{effect_error::EffectError, message};

/// Target of an effect, as its report names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EffectTarget<'a> {
    /// A ticket; it must be the report's own.
    Ticket(&'a TicketKey),
    /// A repository in which the effect creates an object for the ticket.
    Repository(&'a RepositoryName),
    /// A new issue of a repository, as a sub-issue of this one.
    IssuePart(&'a RepositoryName, Option<u64>),
    /// A GitHub issue; it must be the report's own ticket.
    Issue(&'a RepositoryName, u64),
    /// A discussion; it must be the report's own ticket.
    Discussion(&'a RepositoryName, u64),
    /// A pull request that was opened for the ticket.
    PullRequest(&'a PullRequestRef),
    /// A review thread of such a pull request, by its first comment.
    ReviewThread(&'a PullRequestRef, u64),
    /// A pull request of another author that a run of the ticket was asked to review.
    ReviewedPullRequest(&'a PullRequestRef),
    /// The pull request that an earlier effect of the report opened or adopted.
    OpenedPullRequest,
    /// A thread of comments.
    Thread(&'a CommentThread),
    /// The object of a reaction.
    Reactable(&'a ReactionSubject),
    /// A check run in a repository; absent: it is only recorded. Its commit is compared when it is shown.
    CheckRun(Option<&'a RepositoryName>),
    /// Records of the reporter and pinned triggers. Nothing outside changes.
    OwnRecords,
}

/// Proof that an effect's target was checked. Only the check creates it, and no effect gets its context without it.
#[derive(Debug)]
pub(crate) struct EffectClearance {
    /// Name of the cleared effect.
    effect: &'static str,
}

impl EffectClearance {
    /// Returns true if this effect was checked.
    pub(crate) fn covers(&self, effect: &dyn PlannedEffect) -> bool {
        self.effect == effect.name()
    }
}

/// Records about a report's ticket. Each part is read once, when an effect needs it.
pub(crate) struct TicketRecords<'a> {
    outside: &'a OutboundClients,
    report: &'a OutboundRequest,
    rules: Option<&'a RepositoryRules>,
    /// Present key of the ticket.
    present: &'a TicketKey,
    triggers: OnceCell<Vec<(u64, Trigger)>>,
    branches: OnceCell<Vec<BranchRecord>>,
}

impl<'a> TicketRecords<'a> {
    /// Reads nothing yet. The rules are those of the report's repository or of its ticket.
    pub(crate) fn new(
        outside: &'a OutboundClients,
        report: &'a OutboundRequest,
        rules: Option<&'a RepositoryRules>,
        present: &'a TicketKey,
    ) -> Self {
        Self {
            outside,
            report,
            rules,
            present,
            triggers: OnceCell::new(),
            branches: OnceCell::new(),
        }
    }

    /// Clears an effect, or returns the reason for a refusal.
    ///
    /// `None` for a thread that the pull request does not have (any more): no reader would see the reply.
    pub(crate) async fn clear(
        &self,
        effect: &dyn PlannedEffect,
    ) -> Result<Option<EffectClearance>, EffectError> {
        let ticket = &self.report.ticket;
        let target = effect.target();
        if let EffectTarget::ReviewThread(named, comment) = &target
            && self.has_pull_request(&named.repository, named.number).await?
            && !self.has_review_thread(named, *comment).await?
        {
            tracing::warn!(effect = effect.name(), comment, %ticket, "effect left out: the pull request has no such thread");
            return Ok(None);
        }
        let checked = match &target {
            EffectTarget::OwnRecords | EffectTarget::OpenedPullRequest => Ok(()),
            EffectTarget::CheckRun(repository) => {
                repository.map_or(Ok(()), |repository| self.check_repository(repository))
            }
            EffectTarget::Ticket(named) => self.check_ticket(named).await,
            EffectTarget::Repository(repository) => self.check_repository(repository),
            EffectTarget::IssuePart(repository, parent) => self.check_parent(repository, *parent),
            EffectTarget::Issue(repository, number) => {
                self.check_ticket(&issue_key(repository, *number)).await
            }
            EffectTarget::Discussion(repository, number) => {
                self.check_ticket(&discussion_key(repository, *number)).await
            }
            EffectTarget::PullRequest(named) | EffectTarget::ReviewThread(named, _) => {
                self.check_pull_request(&named.repository, named.number).await
            }
            EffectTarget::ReviewedPullRequest(named) => {
                self.check_reviewed(&named.repository, named.number).await
            }
            EffectTarget::Thread(thread) => self.check_thread(thread).await,
            EffectTarget::Reactable(reactable) => self.check_reactable(reactable).await,
        };
        if let Err(trouble @ EffectError::Refused(_)) = &checked {
            tracing::error!(
                effect = effect.name(),
                ?target,
                %ticket,
                error = %format_error_chain(trouble),
                "effect refused: its target is not recorded for the ticket"
            );
        }
        checked.map(|()| {
            Some(EffectClearance {
                effect: effect.name(),
            })
        })
    }

    /// Returns true if the commit is the head of a pull request of the ticket, by our records or by GitHub.
    pub(crate) async fn is_head(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<bool, EffectError> {
        let mut numbers = Vec::new();
        for record in self.branches().await? {
            if record.repository == *repository {
                if record.head == *head {
                    return Ok(true);
                }
                numbers.extend(record.pull_request.as_ref().map(|known| known.number));
            }
        }
        for number in numbers {
            match self
                .outside
                .github
                .pull_requests()
                .pull_request(repository, number)
                .await
            {
                Ok(now) if now.head == *head => return Ok(true),
                Ok(_) | Err(github::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// Accepts the report's own ticket alone, and only if rules, a branch record or a trigger of it exist.
    async fn check_ticket(&self, named: &TicketKey) -> Result<(), EffectError> {
        let ticket = &self.report.ticket;
        // Even a ticket with records is refused if it is not the report's own.
        if named != ticket {
            return Err(refuse_target(message::foreign_target(ticket)));
        }
        if self.rules.is_some_and(|rules| self.is_covered_by(rules))
            || !self.branches().await?.is_empty()
            || !self.triggers().await?.is_empty()
        {
            return Ok(());
        }
        Err(refuse_target(message::unknown_ticket(ticket)))
    }

    /// Returns true if the rules cover the report's ticket, by the key of its records or by its present one.
    fn is_covered_by(&self, rules: &RepositoryRules) -> bool {
        rules.cover(&self.report.ticket) || rules.cover(self.present)
    }

    /// Accepts a repository whose rules cover the report's ticket.
    fn check_repository(&self, repository: &RepositoryName) -> Result<(), EffectError> {
        let Some(rules) = self
            .rules
            .filter(|rules| rules.repository().is_ok_and(|own| own == *repository))
        else {
            return Err(EffectError::Refused(OutboundRefusal::NoRules {
                repository: repository.clone(),
            }));
        };
        if self.is_covered_by(rules) {
            return Ok(());
        }
        Err(EffectError::Refused(OutboundRefusal::ForeignProject {
            ticket: self.report.ticket.clone(),
            repository: repository.clone(),
        }))
    }

    fn check_parent(&self, repository: &RepositoryName, parent: Option<u64>) -> Result<(), EffectError> {
        self.check_repository(repository)?;
        match parent {
            Some(number) if issue_key(repository, number) != self.report.ticket => {
                Err(refuse_target(message::foreign_target(&self.report.ticket)))
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn check_pull_request(&self, repository: &RepositoryName, number: u64) -> Result<(), EffectError> {
        if self.has_pull_request(repository, number).await? {
            return Ok(());
        }
        Err(EffectError::Refused(OutboundRefusal::UnknownPullRequest {
            number,
        }))
    }

    async fn has_pull_request(&self, repository: &RepositoryName, number: u64) -> Result<bool, EffectError> {
        let ticket = &self.report.ticket;
        let is_it = |record: &BranchRecord| {
            let opened = record.pull_request.as_ref();
            opened.is_some_and(|opened| opened.repository == *repository && opened.number == number)
        };
        if self.branches().await?.iter().any(is_it) {
            return Ok(true);
        }
        // The index also has pull requests that no branch record names any more.
        let indexed = self.outside.pull_requests.get(repository, number).await?;
        Ok(indexed.is_some_and(|record| record.ticket == *ticket))
    }

    /// Returns true if ingest pinned the thread with a review, or GitHub lists it at the pull request.
    async fn has_review_thread(&self, named: &PullRequestRef, comment: u64) -> Result<bool, EffectError> {
        let is_pinned = self
            .rounds()
            .await?
            .any(|round| round.pull_request.is_same(named) && has_thread(round, comment));
        if is_pinned {
            return Ok(true);
        }
        let github = &self.outside.github;
        let listed = github
            .reviews()
            .line_comments(&named.repository, named.number)
            .await?;
        Ok(listed.iter().any(|one| one.id == comment))
    }

    /// Returns the reviews that runs of the ticket were asked to work on.
    async fn rounds(&self) -> Result<impl Iterator<Item = &ReviewRound>, EffectError> {
        let triggers = self.triggers().await?.iter();
        Ok(triggers.filter_map(|(_, trigger)| trigger.reason.job_request()?.about.round()))
    }

    async fn check_reviewed(&self, repository: &RepositoryName, number: u64) -> Result<(), EffectError> {
        if self.is_reviewed(repository, number).await? {
            return Ok(());
        }
        Err(EffectError::Refused(OutboundRefusal::UnknownPullRequest {
            number,
        }))
    }

    async fn is_reviewed(&self, repository: &RepositoryName, number: u64) -> Result<bool, EffectError> {
        let pinned = self
            .triggers()
            .await?
            .iter()
            .filter_map(|(_, trigger)| trigger.reason.job_request()?.about.change());
        let is_it = |change: &ReviewedChange| {
            change.pull_request.repository == *repository && change.pull_request.number == number
        };
        Ok(pinned.into_iter().any(is_it))
    }

    async fn check_thread(&self, thread: &CommentThread) -> Result<(), EffectError> {
        let ticket = &self.report.ticket;
        // The ticket's own thread needs no pull request.
        if *thread == CommentThread::of(ticket) {
            return self.check_ticket(ticket).await;
        }
        match thread {
            CommentThread::GitHub(repository, number) | CommentThread::Review(repository, number, _) => {
                self.check_pull_request(repository, *number).await
            }
            // A reply to a comment with a question that started work.
            CommentThread::Discussion(repository, number, Some(comment)) => {
                self.check_ticket(&discussion_key(repository, *number)).await?;
                let asked = ReactionSubject::Discussion {
                    repository: repository.clone(),
                    number: *number,
                    comment: Some(comment.clone()),
                };
                self.check_seen(&asked).await
            }
            CommentThread::Discussion(..) | CommentThread::Jira(_) | CommentThread::Nowhere(_) => {
                Err(refuse_target(message::foreign_target(ticket)))
            }
        }
    }

    async fn check_reactable(&self, reactable: &ReactionSubject) -> Result<(), EffectError> {
        let ticket = &self.report.ticket;
        match reactable {
            ReactionSubject::Issue { repository, number } => {
                if issue_key(repository, *number) == *ticket {
                    return self.check_ticket(ticket).await;
                }
                if self.has_pull_request(repository, *number).await?
                    || self.is_reviewed(repository, *number).await?
                {
                    return Ok(());
                }
                self.check_seen(reactable).await
            }
            ReactionSubject::Discussion {
                repository,
                number,
                comment: None,
            } => self.check_ticket(&discussion_key(repository, *number)).await,
            ReactionSubject::LineComment { repository, id } => {
                let is_pinned = self
                    .rounds()
                    .await?
                    .any(|round| round.pull_request.repository == *repository && has_thread(round, *id));
                if is_pinned {
                    Ok(())
                } else {
                    self.check_seen(reactable).await
                }
            }
            ReactionSubject::Discussion { .. } | ReactionSubject::Comment { .. } => {
                self.check_seen(reactable).await
            }
        }
    }

    /// Accepts a comment that caused a trigger of the ticket.
    async fn check_seen(&self, named: &ReactionSubject) -> Result<(), EffectError> {
        let is_it = |(_, trigger): &(u64, Trigger)| {
            trigger.seen.as_ref() == Some(named) || comment_of(&trigger.reason) == Some(named)
        };
        if self.triggers().await?.iter().any(is_it) {
            return Ok(());
        }
        Err(refuse_target(message::foreign_target(&self.report.ticket)))
    }

    async fn triggers(&self) -> Result<&Vec<(u64, Trigger)>, EffectError> {
        let read = || async {
            let read = self
                .outside
                .triggers
                .read_each_after(&self.report.ticket, 0)
                .await?;
            // An unreadable trigger proves nothing, so it is left out.
            let readable = read
                .into_iter()
                .filter_map(|(sequence, trigger)| Some((sequence, trigger.ok()?)));
            Ok::<_, EffectError>(readable.collect())
        };
        self.triggers.get_or_try_init(read).await
    }

    async fn branches(&self) -> Result<&Vec<BranchRecord>, EffectError> {
        let read = || async { Ok(self.outside.branches.of_ticket(&self.report.ticket).await?) };
        self.branches.get_or_try_init(read).await
    }
}

fn has_thread(round: &ReviewRound, comment: u64) -> bool {
    let is_left = round
        .left
        .as_ref()
        .is_some_and(|left| left.threads.contains(&comment));
    is_left || round.threads.iter().any(|thread| thread.id == comment)
}

fn comment_of(reason: &TriggerReason) -> Option<&ReactionSubject> {
    let TriggerReason::JobRequested(request) = reason else {
        return None;
    };
    match &request.about {
        JobSubject::Question(question) => question.comment.as_ref(),
        JobSubject::Discussion(asked) => asked.comment.as_ref(),
        JobSubject::Ticket
        | JobSubject::Checks(_)
        | JobSubject::Review(_)
        | JobSubject::Conflict(_)
        | JobSubject::Change(_)
        | JobSubject::Rehearsal(_) => None,
    }
}

fn issue_key(repository: &RepositoryName, number: u64) -> TicketKey {
    TicketKey::GitHub {
        repository: repository.clone(),
        number,
    }
}

fn discussion_key(repository: &RepositoryName, number: u64) -> TicketKey {
    TicketKey::Discussion {
        repository: repository.clone(),
        number,
    }
}

fn refuse_target(detail: String) -> EffectError {
    EffectError::Refused(OutboundRefusal::Outside { detail })
}
