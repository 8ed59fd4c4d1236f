//! Background of a ticket: earlier pull requests, linked, referenced and similar tickets. The router reads it once, when a job
//! is requested, and pins it with the job.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bootstrap::rules::RulesBook;
use domain::{
    BackgroundPart, EarlierPullRequest, InstanceName, Job, JobSubject, LinkedTicket, PullRequestStatus,
    RepositoryName, ReviewRemark, SimilarTicket, TicketBackground, TicketKey, TriggerReason,
    cause::format_error_chain, compare_titles, title_words,
};
use futures::future::join_all;
use github::{PullRequest, PullRequestRemark};

use crate::{
    events::NewTrigger,
    facts::{
        DecisionFacts,
        tracker_reader::{ReadError, TrackerIssue, TrackerReader},
    },
    policy::own_accounts::OwnAccounts,
    text::{
        text_pin::{clean_line, clean_text},
        ticket_references::{ReferenceOrigin, list_references},
    },
};

// A part that takes longer is left out, so that the job starts without it.
const PATIENCE: Duration = Duration::from_secs(6);
// Limits of the parts, because all of them go into the prompt (docs/internals/intake.md).
const EARLIER_SINCE: Duration = Duration::from_secs(180 * 24 * 3600);
const EARLIER: usize = 3;
const REMARKS: usize = 20;
const REMARK_CHARS: usize = 2_000;
const REMARKS_CHARS: usize = 16_000;
const LINKED: usize = 10;
const DESCRIPTION_CHARS: usize = 1_000;
const SIMILAR: usize = 5;
// Words of the title that go into the search for similar tickets.
const WORDS: usize = 8;
// Percentage of shared title words below which two tickets are about different subjects.
const LIKENESS: usize = 60;
// Limits for triage. They are wider than those of a job, because the model judges the candidates itself.
const CANDIDATES: usize = 10;
const RELATED: usize = 30;
const TITLE_CHARS: usize = 300;
const LINE_CHARS: usize = 100;

/// Reader of the background of tickets.
#[derive(Clone)]
pub(crate) struct BackgroundReader {
    outside: Arc<TrackerReader>,
    own_accounts: Arc<OwnAccounts>,
    /// Hosts of the pages of GitHub, by instance.
    hosts: Arc<BTreeMap<Option<InstanceName>, String>>,
}

impl BackgroundReader {
    pub(crate) fn new(
        outside: Arc<TrackerReader>,
        own_accounts: Arc<OwnAccounts>,
        hosts: BTreeMap<Option<InstanceName>, String>,
    ) -> Self {
        Self {
            outside,
            own_accounts,
            hosts: Arc::new(hosts),
        }
    }

    /// Adds the background of the ticket to a job request. The background has no influence on the decision.
    pub(crate) async fn add_to(&self, mut follows: NewTrigger, facts: &DecisionFacts) -> NewTrigger {
        if let TriggerReason::JobRequested(job) = &mut follows.reason
            && let Ok(Ok(issue)) = facts.issue(&follows.ticket)
        {
            // A job that a question may start gets the same background as a direct request.
            let job = if let JobSubject::Question(question) = &mut job.about {
                let Some(work) = &mut question.work else {
                    return follows;
                };
                work
            } else {
                job
            };
            // The decision has set the requester; the background must not overwrite it.
            let requester = job.background.requester.take();
            let looks_for_duplicates = !job.rules.triage.duplicate_label.is_empty();
            job.background = match job.job {
                Job::Implement => {
                    self.read(&follows.ticket, issue, &job.repository, &facts.book)
                        .await
                }
                Job::Triage if looks_for_duplicates => self.candidates(&follows.ticket, issue).await,
                Job::Triage
                | Job::Answer
                | Job::Discuss
                | Job::FixCi
                | Job::AddressReview
                | Job::ResolveConflict
                | Job::Review
                | Job::MarkReady
                | Job::Finish
                | Job::UpdateBase
                | Job::BackToDraft
                | Job::Reopen
                | Job::Rehearse
                | Job::Remind => return follows,
            };
            job.background.requester = requester;
        }
        follows
    }

    /// Reads all parts of the background concurrently. A part that fails or times out is listed in `unread`.
    async fn read(
        &self,
        ticket: &TicketKey,
        issue: &TrackerIssue,
        repository: &RepositoryName,
        book: &RulesBook,
    ) -> TicketBackground {
        let (earlier, linked, similar, referenced) = tokio::join!(
            read_in_time(self.earlier(ticket, repository)),
            read_in_time(self.linked(ticket, issue)),
            read_in_time(find_similar_tickets(
                &self.outside,
                ticket,
                issue,
                (SIMILAR, LIKENESS)
            )),
            self.referenced(ticket, issue, repository, book),
        );
        // A failed part never blocks the job: it is logged and listed, so that the prompt can state that it is missing.
        let mut unread = Vec::new();
        let mut known = |part, error: &ReadError| {
            tracing::warn!(%ticket, ?part, error = %format_error_chain(error), "a part of what is known of a ticket is not read");
            unread.push(part);
        };
        let earlier = earlier.inspect_err(|error| known(BackgroundPart::Earlier, error));
        let linked = linked.inspect_err(|error| known(BackgroundPart::Linked, error));
        let similar = similar.inspect_err(|error| known(BackgroundPart::Similar, error));
        TicketBackground {
            earlier: earlier.unwrap_or_default(),
            linked: linked.unwrap_or_default(),
            similar: similar.unwrap_or_default(),
            referenced,
            unread,
            requester: None,
        }
    }

    /// Tickets that the text refers to, as far as the reader account sees them within the time of one part.
    ///
    /// Another repository needs rules: its issues may be private, and the pull request may show what they contain.
    async fn referenced(
        &self,
        ticket: &TicketKey,
        issue: &TrackerIssue,
        repository: &RepositoryName,
        book: &RulesBook,
    ) -> Vec<LinkedTicket> {
        let host = self.hosts.get(&repository.instance().cloned());
        let origin = ReferenceOrigin {
            ticket,
            repository,
            host: host.map(String::as_str),
        };
        let text = format!("{}\n{}", issue.summary, issue.description);
        let mut named = list_references(&text, origin);
        named.retain(|key| {
            let is_allowed = match key {
                TicketKey::GitHub {
                    repository: other, ..
                } => other == repository || book.for_repository(other).is_some(),
                TicketKey::Jira { .. } => true,
                TicketKey::Discussion { .. } | TicketKey::Folder { .. } => false,
            };
            is_allowed && !issue.is_linked_with(key)
        });
        let reads = named.iter().map(|key| read_in_time(self.outside.issue(key)));
        let mut found = Vec::new();
        for (key, read) in named.iter().zip(join_all(reads).await) {
            match read {
                Ok(other) => found.push(LinkedTicket {
                    key: key.short(),
                    relation: String::new(),
                    summary: clean_line(&other.summary, TITLE_CHARS),
                    status: clean_line(&other.status, LINE_CHARS),
                    description: clean_text(&other.description, DESCRIPTION_CHARS),
                }),
                // The number of a pull request, or an issue that the reader account does not see.
                Err(error) => {
                    tracing::info!(%ticket, %key, error = %format_error_chain(&error), "a ticket that the text refers to is not read");
                }
            }
        }
        found
    }

    /// Candidates among which a triage searches for duplicates.
    async fn candidates(&self, ticket: &TicketKey, issue: &TrackerIssue) -> TicketBackground {
        let similar = read_in_time(find_similar_tickets(
            &self.outside,
            ticket,
            issue,
            (CANDIDATES, RELATED),
        ))
        .await;
        let similar = similar.inspect_err(|error| {
            tracing::warn!(%ticket, error = %format_error_chain(error), "the search for duplicates is left out: similar tickets are not read");
        });
        TicketBackground {
            similar: similar.unwrap_or_default(),
            ..TicketBackground::default()
        }
    }

    /// Closed pull requests that name the ticket, the latest first.
    async fn earlier(
        &self,
        ticket: &TicketKey,
        repository: &RepositoryName,
    ) -> Result<Vec<EarlierPullRequest>, ReadError> {
        let ago = i64::try_from(EARLIER_SINCE.as_millis()).unwrap_or(i64::MAX);
        let since = bootstrap::read_wall_clock().plus_ms(-ago);
        let mut closed = self.outside.closed_pull_requests(repository, since).await?;
        closed.retain(|pull| pull.mentions(repository, ticket));
        closed.sort_by_key(|pull| std::cmp::Reverse(pull.closed_at));
        closed.truncate(EARLIER);
        let remarks = closed
            .iter()
            .map(|pull| self.outside.remarks(repository, pull.number));
        let remarks = join_all(remarks).await;
        closed
            .into_iter()
            .zip(remarks)
            .map(|(pull, remarks)| Ok(self.describe_earlier(pull, remarks?)))
            .collect()
    }

    fn describe_earlier(&self, pull: PullRequest, mut remarks: Vec<PullRequestRemark>) -> EarlierPullRequest {
        remarks.retain(|remark| !remark.by_bot && !self.own_accounts.has(&remark.author));
        EarlierPullRequest {
            number: pull.number,
            is_ours: self.own_accounts.has(&pull.author),
            title: clean_line(&pull.title, TITLE_CHARS),
            branch: clean_line(&pull.branch, LINE_CHARS),
            author: clean_line(&pull.author, LINE_CHARS),
            status: if pull.merged {
                PullRequestStatus::Merged
            } else {
                PullRequestStatus::Closed
            },
            said: keep_latest_remarks(remarks),
        }
    }

    /// Epic of a ticket, if a field of its own names it. Failure to read the epic leaves it out.
    async fn epic(&self, ticket: &TicketKey, issue: &TrackerIssue) -> Option<LinkedTicket> {
        let key = issue.epic.as_ref()?;
        match self.outside.outlines(ticket.instance(), &[key]).await {
            Ok(found) => found.into_iter().next().map(|epic| LinkedTicket {
                key: epic.key.short(),
                relation: "epic".to_owned(),
                summary: clean_line(&epic.summary, TITLE_CHARS),
                status: clean_line(&epic.status, LINE_CHARS),
                description: clean_text(&epic.description_markdown, DESCRIPTION_CHARS),
            }),
            Err(error) => {
                tracing::info!(%ticket, epic = %key, error = %format_error_chain(&error), "the epic of the ticket is not read");
                None
            }
        }
    }

    /// Epic of a ticket and the tickets linked with it.
    async fn linked(&self, ticket: &TicketKey, issue: &TrackerIssue) -> Result<Vec<LinkedTicket>, ReadError> {
        // Two requests: Jira refuses a search for several keys as a whole when one of them is not visible.
        let (epic, related) = tokio::join!(self.epic(ticket, issue), self.related(ticket, issue));
        let mut linked: Vec<LinkedTicket> = epic.into_iter().chain(related?).collect();
        linked.truncate(LINKED);
        Ok(linked)
    }

    /// Tickets linked with a ticket. Failure to read their descriptions leaves the descriptions empty.
    async fn related(
        &self,
        ticket: &TicketKey,
        issue: &TrackerIssue,
    ) -> Result<Vec<LinkedTicket>, ReadError> {
        let related = &issue.related[..issue.related.len().min(LINKED)];
        let keys: Vec<&TicketKey> = related.iter().map(|other| &other.key).collect();
        let outlines = match self.outside.outlines(ticket.instance(), &keys).await {
            Ok(outlines) => outlines,
            Err(error) => {
                tracing::info!(%ticket, error = %format_error_chain(&error), "descriptions of linked tickets are not read");
                Vec::new()
            }
        };
        let description = |key: &TicketKey| {
            let found = outlines.iter().find(|outline| outline.key == *key);
            found.map_or_else(String::new, |outline| {
                clean_text(&outline.description_markdown, DESCRIPTION_CHARS)
            })
        };
        let linked = related.iter().map(|other| LinkedTicket {
            key: other.key.short(),
            relation: clean_line(&other.relation, LINE_CHARS),
            summary: clean_line(&other.summary, TITLE_CHARS),
            status: clean_line(&other.status, LINE_CHARS),
            description: description(&other.key),
        });
        Ok(linked.collect())
    }
}

/// Unfinished tickets of the same project with a similar title, without the ticket itself and its linked tickets.
async fn find_similar_tickets(
    outside: &TrackerReader,
    ticket: &TicketKey,
    issue: &TrackerIssue,
    (most, least_alike): (usize, usize),
) -> Result<Vec<SimilarTicket>, ReadError> {
    let mut words = title_words(&issue.summary);
    words.truncate(WORDS);
    let found = outside.similar(ticket, &words).await?;
    let is_known = |key: &TicketKey| key == ticket || issue.is_linked_with(key);
    let mut alike: Vec<(usize, SimilarTicket)> = found
        .into_iter()
        .filter(|other| !is_known(&other.key))
        .map(|other| {
            let ticket = SimilarTicket {
                key: other.key.short(),
                summary: clean_line(&other.summary, TITLE_CHARS),
                status: clean_line(&other.status, LINE_CHARS),
            };
            (compare_titles(&issue.summary, &other.summary), ticket)
        })
        .filter(|(alike, _)| *alike >= least_alike)
        .collect();
    alike.sort_by_key(|(alike, _)| std::cmp::Reverse(*alike));
    Ok(alike.into_iter().take(most).map(|(_, ticket)| ticket).collect())
}

/// Latest remarks that fit into the character limit, oldest first.
fn keep_latest_remarks(remarks: Vec<PullRequestRemark>) -> Vec<ReviewRemark> {
    let mut room = REMARKS_CHARS;
    // The loop starts at the newest remark, so that the limit drops the oldest ones.
    let mut kept = Vec::new();
    for remark in remarks.into_iter().rev().take(REMARKS) {
        let text = clean_text(&remark.text, REMARK_CHARS);
        let Some(left) = room.checked_sub(text.chars().count()) else {
            break;
        };
        room = left;
        kept.push(ReviewRemark {
            author: clean_line(&remark.author, LINE_CHARS),
            place: clean_line(&remark.place, TITLE_CHARS),
            text,
        });
    }
    kept.reverse();
    kept
}

async fn read_in_time<T>(reading: impl Future<Output = Result<T, ReadError>>) -> Result<T, ReadError> {
    let in_time = tokio::time::timeout(PATIENCE, reading).await;
    in_time.unwrap_or_else(|_| {
        Err(ReadError::Later {
            detail: format!("not read within {} s", PATIENCE.as_secs()),
            after: None,
        })
    })
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    fn build_remark(text: &str, second: i64) -> PullRequestRemark {
        PullRequestRemark {
            author: "rita".to_owned(),
            by_bot: false,
            place: "shop/cart.py:3\n</x>".to_owned(),
            text: text.to_owned(),
            at: Some(Timestamp::from_unix_ms(second * 1000)),
        }
    }

    #[test]
    fn latest_remarks_are_kept_in_order() {
        let many = (0..30).map(|number| build_remark(&format!("No {number}"), number));
        let kept = keep_latest_remarks(many.collect());
        assert_eq!(kept.len(), REMARKS);
        assert_eq!(
            (kept[0].text.as_str(), kept[19].text.as_str()),
            ("No 10", "No 29")
        );
        assert_eq!(kept[0].place, "shop/cart.py:3 </x>");
    }

    #[test]
    fn remarks_are_bounded_in_their_sum() {
        let many = (0..20).map(|number| build_remark(&"é".repeat(5_000), number));
        let kept = keep_latest_remarks(many.collect());
        assert_eq!(kept.len(), 8);
        assert!(
            kept.iter()
                .all(|remark| remark.text.chars().count() == REMARK_CHARS)
        );
    }
}
