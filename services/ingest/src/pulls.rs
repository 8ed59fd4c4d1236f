//! Polls of our open pull requests: one conditional listing for each repository, and the checks of a few.
//!
//! The listing costs nothing of GitHub's limit while nothing changed. Checks change without their pull request, so they
//! are read one pull request after another, within an allowance that does not grow with the number of them; what a
//! webhook or GitHub's log of deliveries tells needs none of this.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{CommitId, PullRequestRecord, PullRequestStatus, RepositoryName, Source, TicketKey, Timestamp};
use github::{ETag, Polled, PullRequest};
use queue::{Bucket, Revision};
use tokio::time::Instant;

use crate::{
    catch_up::news,
    detect,
    outcome::{Failure, Outcome},
    router::Router,
};

/// How many pull requests' checks may be read in an hour, at two requests each, and how many at once.
const CHECKS_AN_HOUR: f64 = 150.0;
const CHECKS_AT_ONCE: f64 = 20.0;
const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 60);
/// Checks that ended may be run again.
const SETTLED_WAIT: Duration = Duration::from_secs(6 * 60 * 60);

/// Our open pull requests, as the index and GitHub tell.
pub(crate) struct PullRequests {
    open: BTreeMap<String, Tracked>,
    /// How far the index is read.
    read_to: Revision,
    tags: BTreeMap<RepositoryName, ETag>,
    allowance: Allowance,
    /// GitHub asked to be left alone until then.
    rests_until: Option<Instant>,
}

struct Tracked {
    record: PullRequestRecord,
    head: Option<CommitId>,
    due: Instant,
    wait: Duration,
}

impl Tracked {
    fn new(record: PullRequestRecord) -> Self {
        Self {
            head: record.head.clone(),
            record,
            due: Instant::now(),
            wait: FIRST_WAIT,
        }
    }

    fn has_head(&mut self, head: &CommitId) {
        if self.head.as_ref() != Some(head) {
            self.head = Some(head.clone());
            (self.due, self.wait) = (Instant::now(), FIRST_WAIT);
        }
    }

    /// The next look, later each time while the checks are not complete.
    fn looked(&mut self, is_settled: bool) {
        let wait = if is_settled { SETTLED_WAIT } else { self.wait };
        self.due = Instant::now() + wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }
}

/// What may be spent, filled up with time.
struct Allowance {
    left: f64,
    filled: Instant,
}

impl Allowance {
    fn new() -> Self {
        Self {
            left: CHECKS_AT_ONCE,
            filled: Instant::now(),
        }
    }

    fn spend(&mut self) -> bool {
        let filled = self.filled.elapsed().as_secs_f64() * CHECKS_AN_HOUR / 3600.0;
        (self.left, self.filled) = ((self.left + filled).min(CHECKS_AT_ONCE), Instant::now());
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }
}

impl PullRequests {
    pub(crate) fn new() -> Self {
        Self {
            open: BTreeMap::new(),
            read_to: Revision::default(),
            tags: BTreeMap::new(),
            allowance: Allowance::new(),
            rests_until: None,
        }
    }

    /// One round; gives how much of what it found no webhook had told. A failure of one repository does not keep the
    /// others from their turn, a limit of GitHub does.
    pub(crate) async fn poll(&mut self, router: &Router) -> u64 {
        if self.rests_until.is_some_and(|end| Instant::now() < end) {
            return 0;
        }
        if let Err(error) = self.read_index(router).await {
            tracing::warn!(%error, "the index of pull requests could not be read");
        }
        let repositories: BTreeSet<RepositoryName> = self
            .open
            .values()
            .map(|tracked| tracked.record.pull_request.repository.clone())
            .collect();
        let mut recovered = 0;
        for repository in repositories {
            match self.look_at(router, &repository).await {
                Ok(found) => recovered += found,
                Err(failure) => {
                    tracing::warn!(%repository, %failure, "poll of the pull requests failed");
                    if self.rests(&failure) {
                        return recovered;
                    }
                }
            }
        }
        recovered + self.look_at_checks(router).await
    }

    fn rests(&mut self, failure: &Failure) -> bool {
        if let Failure::Later {
            after: Some(after), ..
        } = failure
        {
            self.rests_until = Some(Instant::now() + *after);
        }
        failure.is_limit()
    }

    /// What the reporter wrote since the last round.
    async fn read_index(&mut self, router: &Router) -> Result<(), queue::Error> {
        let table = router.queue.table::<PullRequestRecord>(Bucket::PullRequests);
        let (changed, read_to) = table.changes_after(self.read_to).await?;
        for record in changed {
            let key = key(&record);
            match record.status {
                PullRequestStatus::Open => {
                    self.open.insert(key, Tracked::new(record));
                }
                PullRequestStatus::Merged | PullRequestStatus::Closed => drop(self.open.remove(&key)),
            }
        }
        self.read_to = read_to;
        Ok(())
    }

    /// What changed in one repository since the last look.
    async fn look_at(&mut self, router: &Router, repository: &RepositoryName) -> Result<u64, Failure> {
        // The first look sees everything: a pull request may have ended before there was one.
        let look = router
            .look_from(format!("reconciled:pulls:{repository}"), Timestamp::default())
            .await?;
        let known = self.tags.get(repository);
        let polled = router
            .outside
            .changed_pull_requests(repository, look.since, known)
            .await?;
        let (changed, etag, is_complete) = match polled {
            Polled::Unchanged => return Ok(0),
            Polled::Changed {
                pull_requests,
                etag,
                is_complete,
            } => (pull_requests, etag, is_complete),
        };
        let mut seen = BTreeSet::new();
        let mut recovered = 0;
        for pull_request in &changed {
            let key = PullRequestRecord::key(repository, pull_request.number);
            recovered += self.saw(router, &key, pull_request).await?;
            seen.insert(key);
        }
        if !is_complete {
            recovered += self.look_at_others(router, repository, &seen).await?;
        }
        router.looked(&look, look.now).await?;
        match etag {
            Some(etag) => drop(self.tags.insert(repository.clone(), etag)),
            None => drop(self.tags.remove(repository)),
        }
        Ok(recovered)
    }

    /// More changed than a listing shows: each of ours that it does not show is asked for.
    async fn look_at_others(
        &mut self,
        router: &Router,
        repository: &RepositoryName,
        seen: &BTreeSet<String>,
    ) -> Result<u64, Failure> {
        let ours = |tracked: &Tracked| tracked.record.pull_request.repository == *repository;
        let others: Vec<(String, u64)> = self
            .open
            .iter()
            .filter(|(key, tracked)| ours(tracked) && !seen.contains(*key))
            .map(|(key, tracked)| (key.clone(), tracked.record.pull_request.number))
            .collect();
        let mut recovered = 0;
        for (key, number) in others {
            let now = router.outside.pull_request(repository, number).await?;
            recovered += self.saw(router, &key, &now).await?;
        }
        Ok(recovered)
    }

    /// How a pull request is now; those that are not ours are of no interest.
    async fn saw(&mut self, router: &Router, key: &str, now: &PullRequest) -> Result<u64, Failure> {
        let Some(tracked) = self.open.get_mut(key) else {
            return Ok(0);
        };
        if detect::closing(now).is_none() {
            tracked.has_head(&now.head);
            return Ok(0);
        }
        let record = &tracked.record;
        // A listing does not tell who merged.
        let ours = &record.pull_request;
        let now = router.outside.pull_request(&ours.repository, ours.number).await?;
        let Some(closing) = detect::closing(&now) else {
            return Ok(0);
        };
        let outcome = router
            .closed(&record.ticket, ours, &closing, Source::Poll)
            .await?;
        self.open.remove(key);
        Ok(news(&[outcome]))
    }

    /// The checks that are due, as far as the allowance goes.
    async fn look_at_checks(&mut self, router: &Router) -> u64 {
        let now = Instant::now();
        let mut due: Vec<(Instant, String)> = self
            .open
            .iter()
            .filter(|(_, tracked)| tracked.due <= now)
            .map(|(key, tracked)| (tracked.due, key.clone()))
            .collect();
        due.sort();
        let mut recovered = 0;
        for (_, key) in due {
            if !self.allowance.spend() {
                break;
            }
            match self.checks_of(router, &key).await {
                Ok(found) => recovered += found,
                Err(failure) => {
                    tracing::warn!(pull_request = key, %failure, "poll of the checks failed");
                    if self.rests(&failure) {
                        break;
                    }
                }
            }
        }
        recovered
    }

    async fn checks_of(&mut self, router: &Router, key: &str) -> Result<u64, Failure> {
        let Some(tracked) = self.open.get_mut(key) else {
            return Ok(0);
        };
        // What fails comes again later, too.
        tracked.looked(false);
        let Some(head) = tracked.head.clone() else {
            return Ok(0);
        };
        let (ticket, ours): (&TicketKey, _) = (&tracked.record.ticket, &tracked.record.pull_request);
        let outcome = router.checks(ticket, ours, &head, Source::Poll).await?;
        if !matches!(outcome, Outcome::Nothing(_)) {
            tracked.looked(true);
        }
        Ok(news(&[outcome]))
    }
}

fn key(record: &PullRequestRecord) -> String {
    PullRequestRecord::key(&record.pull_request.repository, record.pull_request.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_allowance_is_spent_at_once_and_then_by_the_hour() {
        let mut allowance = Allowance::new();
        let spent = |allowance: &mut Allowance| (0..1_000).take_while(|_| allowance.spend()).count();
        assert_eq!(spent(&mut allowance), 20);
        let mut hour = 0;
        for _ in 0..60 {
            tokio::time::advance(Duration::from_secs(60)).await;
            hour += spent(&mut allowance);
        }
        assert!((149..=150).contains(&hour), "{hour}");
    }

    #[tokio::test(start_paused = true)]
    async fn checks_are_looked_at_less_often_the_longer_they_take_and_at_once_for_a_new_head() {
        let record = PullRequestRecord {
            pull_request: domain::PullRequestRef {
                repository: "acme/shop".parse().unwrap(),
                number: 7,
                url: String::new(),
                branch: "feat/x".to_owned(),
            },
            ticket: "jira:ENG-1".parse().unwrap(),
            head: Some("a".repeat(40).parse().unwrap()),
            status: PullRequestStatus::Open,
        };
        let mut tracked = Tracked::new(record);
        let wait = |tracked: &mut Tracked| {
            tracked.looked(false);
            (tracked.due - Instant::now()).as_secs()
        };
        let waits: Vec<u64> = (0..7).map(|_| wait(&mut tracked)).collect();
        assert_eq!(waits, [60, 120, 240, 480, 960, 1_800, 1_800]);
        tracked.has_head(&"b".repeat(40).parse().unwrap());
        assert_eq!(tracked.due, Instant::now());
        tracked.looked(true);
        assert_eq!(tracked.due - Instant::now(), SETTLED_WAIT);
    }
}
