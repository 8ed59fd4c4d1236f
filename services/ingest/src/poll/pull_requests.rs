//! Polls of our open pull requests: one conditional listing for each repository, and the checks of a few.
//!
//! The listing costs nothing of GitHub's limit while nothing changed. Checks change without their pull request, so the
//! poller reads them one pull request after another, within an allowance that is independent of their number. Where we
//! have many, a listing of heads shows which ones changed. Webhooks and GitHub's delivery log need none of this.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{
    BaseUpdateRule, CiRequired, PullRequestRecord, PullRequestStatus, RepositoryName, TicketKey, Timestamp,
    TriggerChannel, cause::format_error_chain,
};
use github::{ETag, HeadState, PullRequest, PullRequestPoll};
use queue::TableRevision;
use tokio::time::Instant;

use crate::{
    events::{
        checks::{ChecksAbsent, ChecksChanged, ChecksPending},
        closed::{CloseEvent, is_closed},
    },
    poll::{
        check_schedule::{ListedHead, ReadAllowance, TrackedPullRequest},
        context::PollContext,
        head_listing::HeadListings,
        pull_request_events::{
            PullRequestPlace, handle_open_pull_request, handle_other_pull_request, list_rules_repositories,
        },
        round::{FailedFinding, PollRound, count_new_triggers},
        service_pauses::ServicePauses,
    },
    router::{
        EventRouter,
        outcome::{EventFailure, EventOutcome},
    },
};

/// Our open pull requests, from the index and from GitHub.
pub(crate) struct OpenPullRequests {
    open: BTreeMap<PullRequestPlace, TrackedPullRequest>,
    /// Revision up to which the index is read; absent before the first read.
    read_to: Option<TableRevision>,
    /// True when the last read of the index succeeded.
    is_index_read: bool,
    tags: BTreeMap<RepositoryName, ETag>,
    /// Time between two rounds.
    interval: Duration,
    /// Time in which a commit without checks may still get some.
    settle: Duration,
    /// Time that checks may run before a comment on the ticket.
    pending: Duration,
    allowance: ReadAllowance,
    listings: HeadListings,
    /// Pull requests recorded since the last round. A listing since the last round does not contain one that ended
    /// before its record was written.
    recorded: BTreeSet<PullRequestPlace>,
    /// Pull requests that ended by the index and were not taken yet.
    ended: BTreeSet<PullRequestPlace>,
    /// Pauses that GitHub asked for, by organization: an App has limits of its own in each.
    pauses: ServicePauses<String>,
}

impl OpenPullRequests {
    pub(crate) fn new(interval: Duration, settle: Duration, pending: Duration) -> Self {
        Self {
            open: BTreeMap::new(),
            read_to: None,
            is_index_read: false,
            tags: BTreeMap::new(),
            interval,
            settle,
            pending,
            allowance: ReadAllowance::new(Instant::now()),
            listings: HeadListings::new(interval),
            recorded: BTreeSet::new(),
            ended: BTreeSet::new(),
            pauses: ServicePauses::new(),
        }
    }

    /// Places of the open pull requests; `None` when the index could not be read.
    pub(crate) fn known_places(&self) -> Option<BTreeSet<&PullRequestPlace>> {
        self.is_index_read.then(|| self.open.keys().collect())
    }

    /// Open pull requests, each with the last change that was seen.
    pub(crate) fn open(&self) -> Vec<(PullRequestPlace, Option<Timestamp>)> {
        let open = self.open.iter();
        open.map(|(place, tracked)| (place.clone(), tracked.update_marks.updated()))
            .collect()
    }

    /// Takes the pull requests that ended by the index. The first call has all of them, also those that ended while no
    /// process polled.
    pub(crate) fn take_ended(&mut self) -> BTreeSet<PullRequestPlace> {
        std::mem::take(&mut self.ended)
    }

    /// Open pull requests whose heads are in a listing that counts.
    pub(crate) fn listed_heads(&self, router: &EventRouter) -> BTreeMap<PullRequestPlace, ListedHead> {
        let (book, now) = (router.rules.book(), Instant::now());
        // No listing shows the commits of a base branch that requires no current heads.
        let follows_base = |(repository, _): &PullRequestPlace| {
            let rules = book.for_repository(repository);
            rules.is_some_and(|rules| rules.pull_request.update_base == BaseUpdateRule::Always)
        };
        let shown = self.open.iter().filter(|(place, _)| !follows_base(place));
        shown
            .filter_map(|(place, tracked)| Some((place.clone(), tracked.listed_head(now)?)))
            .collect()
    }

    /// Earliest time at which a read of checks decides, although nothing changes outside until then.
    pub(crate) fn settles_at(&self) -> Option<Instant> {
        self.open
            .values()
            .filter_map(TrackedPullRequest::settles_at)
            .min()
    }

    /// Runs one round. Returns the number of events whose webhook was missed. A failure of one pull request or
    /// repository does not block the others; after a rate limit, those of its organization wait for its end.
    pub(crate) async fn poll(&mut self, context: &mut PollContext) -> u64 {
        // An unreadable index only hides new pull requests. The known ones are polled all the same.
        let read = self.read_index(&context.router).await;
        self.is_index_read = read.is_ok();
        if let Err(error) = read {
            tracing::warn!(error = %format_error_chain(&error), "the index of pull requests could not be read");
        }
        // A pull request of ours is polled even after the rules of its repository were removed.
        let ours = self.open.keys().map(|(repository, _)| repository.clone());
        let repositories: BTreeSet<RepositoryName> =
            ours.chain(list_rules_repositories(&context.router)).collect();
        let mut recovered = 0;
        for repository in repositories {
            let organization = repository.organization();
            if self.pauses.is_paused(&organization, Instant::now()) {
                continue;
            }
            match self.poll_repository(context, &repository).await {
                Ok(found) => recovered += found,
                Err(failure) => {
                    tracing::warn!(%repository, error = %format_error_chain(&failure), "poll of the pull requests failed");
                    self.pauses.record(organization, &failure, Instant::now());
                }
            }
        }
        // A dry run is a single round, which has nothing to compare a listing with.
        if !context.is_dry_run() {
            self.list_heads(&context.router).await;
        }
        recovered + self.poll_checks(&context.router).await
    }

    /// Lists the heads of repositories with many of our pull requests, to find those that need a read.
    async fn list_heads(&mut self, router: &EventRouter) {
        let mut limited = BTreeSet::new();
        for (repository, numbers) in self.listings.take_due(self.open.keys(), Instant::now()) {
            let organization = repository.organization();
            if limited.contains(&organization) || self.pauses.is_paused(&organization, Instant::now()) {
                continue;
            }
            match router.outside.open_heads(&repository, &numbers).await {
                Ok(Some(heads)) => self.show_heads(&repository, heads),
                // Without the listing, each pull request is read at its own time.
                Ok(None) => tracing::debug!(%repository, "the heads of pull requests cannot be listed"),
                // The limit of GraphQL is separate: the other polls continue.
                Err(error) => {
                    let failure = EventFailure::from(error);
                    tracing::warn!(%repository, error = %format_error_chain(&failure), "heads of pull requests not listed");
                    if failure.is_limit() {
                        limited.insert(organization);
                    }
                }
            }
        }
    }

    fn show_heads(&mut self, repository: &RepositoryName, heads: BTreeMap<u64, HeadState>) {
        let now = Instant::now();
        let end = self.listings.end_of(now);
        for (number, state) in heads {
            if let Some(tracked) = self.open.get_mut(&(repository.clone(), number)) {
                tracked.record_listing(state, end, now);
            }
        }
    }

    /// Reads the records that the reporter wrote since the last round.
    async fn read_index(&mut self, router: &EventRouter) -> Result<(), queue::Error> {
        let index = router.queue.pull_requests();
        let read_to = self.read_to.unwrap_or_default();
        let (changed, read_to) = index.changes_after(read_to).await?;
        for record in changed {
            let place = build_place(&record);
            match record.status {
                PullRequestStatus::Open => {
                    // The pull request may have ended between the last listing and now. Without the ETag the next
                    // listing is complete.
                    self.tags.remove(&place.0);
                    self.ended.remove(&place);
                    let tracked = TrackedPullRequest::new(record.head, self.interval, Instant::now());
                    let is_new = self.open.insert(place.clone(), tracked).is_none();
                    // The first read of the index contains everything, and the first listing is complete.
                    if is_new && self.read_to.is_some() {
                        self.recorded.insert(place);
                    }
                }
                PullRequestStatus::Merged | PullRequestStatus::Closed => {
                    self.recorded.remove(&place);
                    self.open.remove(&place);
                    self.ended.insert(place);
                }
            }
        }
        self.read_to = Some(read_to);
        Ok(())
    }

    /// Polls the changes of one repository since the last poll.
    async fn poll_repository(
        &mut self,
        context: &mut PollContext,
        repository: &RepositoryName,
    ) -> Result<u64, EventFailure> {
        // The first poll lists everything, because a pull request may have ended before it.
        let window = context
            .open_window_from(format!("reconciled:pulls:{repository}"), Timestamp::default())
            .await?;
        let known = self.tags.get(repository);
        let polled = context
            .router
            .outside
            .changed_pull_requests(repository, window.since, known)
            .await?;
        let (changed, etag, is_complete) = match polled {
            PullRequestPoll::Unchanged => return Ok(0),
            PullRequestPoll::Changed {
                pull_requests,
                etag,
                is_complete,
            } => (pull_requests, etag, is_complete),
        };
        let place_of = |pull_request: &PullRequest| (repository.clone(), pull_request.number);
        let seen: BTreeSet<PullRequestPlace> = changed.iter().map(place_of).collect();
        let others = self.list_others(repository, &seen, is_complete);
        let mut reads: Vec<PullRequestRead<'_>> = changed.iter().map(PullRequestRead::Listed).collect();
        reads.extend(others.iter().map(PullRequestRead::Missing));
        let round = self.handle_reads(context, repository, reads, window.now).await?;
        let recovered = round.recovered();
        if context.settle_round(round).await?.is_some() {
            // The next round lists a failed pull request again, because neither the mark nor the ETag moves. The keys in
            // the logs make repeated events harmless.
            self.tags.remove(repository);
            return Ok(recovered);
        }
        context.store_mark(&window, window.now).await?;
        // GitHub reports whole seconds. An ETag from the second of a change would hide a further change
        // in that second behind a 304.
        let mut listed = self.open.iter().filter(|(place, _)| seen.contains(place));
        match etag {
            Some(etag) if listed.all(|(_, tracked)| tracked.update_marks.is_certain()) => {
                self.tags.insert(repository.clone(), etag);
            }
            // The next round lists them again, changed or not.
            Some(_) | None => drop(self.tags.remove(repository)),
        }
        Ok(recovered)
    }

    /// Handles the pull requests that a poll at this time reads.
    ///
    /// # Errors
    /// A rate limit, which ends the round.
    async fn handle_reads(
        &mut self,
        context: &mut PollContext,
        repository: &RepositoryName,
        mut reads: Vec<PullRequestRead<'_>>,
        now: Timestamp,
    ) -> Result<PollRound, EventFailure> {
        // An outage postpones all after the first few failures, so those that failed before come last.
        reads.sort_by_cached_key(|read| context.memory.failed_rounds(&read.finding(repository)));
        let mut round = PollRound::default();
        for read in reads {
            let finding = read.finding(repository);
            if context.memory.has_settled(&finding) {
                continue;
            }
            if round.is_outage() {
                round.postpone(now);
                continue;
            }
            let handled = match self.handle_read(&context.router, repository, read).await {
                Err(EventFailure::Transferred(moved)) => self.end_transferred(&context.router, moved).await,
                handled => handled,
            };
            match handled {
                Ok(handled) => {
                    match handled {
                        HandledPullRequest::Read(recovered) => round.add_read(recovered),
                        HandledPullRequest::Unread(recovered) => round.add_unread(recovered),
                    }
                    // It is not settled: an open pull request is read again until its update time is certain.
                    context.memory.forget_failures(&finding);
                }
                Err(failure) => {
                    let failed = FailedFinding {
                        finding,
                        ticket: None,
                        at: now,
                        failure,
                    };
                    context.add_failure(&mut round, failed).await?;
                }
            }
        }
        Ok(round)
    }

    /// Our pull requests that a listing may have missed: all of them after an incomplete listing, else the newly
    /// recorded ones.
    fn list_others(
        &mut self,
        repository: &RepositoryName,
        seen: &BTreeSet<PullRequestPlace>,
        is_complete: bool,
    ) -> Vec<PullRequestPlace> {
        self.recorded.retain(|place| !seen.contains(place));
        let may_have_ended = |place: &PullRequestPlace| !is_complete || self.recorded.contains(place);
        let is_other = |place: &&PullRequestPlace| {
            place.0 == *repository && !seen.contains(*place) && may_have_ended(place)
        };
        self.open.keys().filter(is_other).cloned().collect()
    }

    /// Ends our pull request that moved to another place, and stops reading it.
    async fn end_transferred(
        &mut self,
        router: &EventRouter,
        moved: Box<github::TransferredThread>,
    ) -> Result<HandledPullRequest, EventFailure> {
        let place = (moved.repository.clone(), moved.number);
        let outcome = router.end_transferred(moved, TriggerChannel::Poll).await?;
        self.open.remove(&place);
        self.recorded.remove(&place);
        Ok(HandledPullRequest::Read(count_new_triggers(&[outcome])))
    }

    /// Handles the current state of a pull request, which is read first when no listing has it.
    async fn handle_read(
        &mut self,
        router: &EventRouter,
        repository: &RepositoryName,
        read: PullRequestRead<'_>,
    ) -> Result<HandledPullRequest, EventFailure> {
        match read {
            PullRequestRead::Listed(now) => {
                let place = (repository.clone(), now.number);
                self.handle_state(router, &place, now).await
            }
            PullRequestRead::Missing(place) => {
                let now = router.outside.pull_request(repository, place.1).await?;
                let recovered = self.handle_state(router, place, &now).await?.recovered();
                self.recorded.remove(place);
                Ok(HandledPullRequest::Read(recovered))
            }
        }
    }

    /// Handles the current state of a pull request.
    async fn handle_state(
        &mut self,
        router: &EventRouter,
        place: &PullRequestPlace,
        now: &PullRequest,
    ) -> Result<HandledPullRequest, EventFailure> {
        let Some(tracked) = self.open.get_mut(place) else {
            let recovered = handle_other_pull_request(router, place, now).await?;
            // Most pull requests of others are handled by what the listing contains.
            return Ok(HandledPullRequest::Unread(recovered));
        };
        if !is_closed(now) {
            tracked.update_head(&now.head, Instant::now());
            if tracked.update_marks.is_unchanged(now.updated_at) {
                return Ok(HandledPullRequest::Unread(0));
            }
            let thread = TicketKey::GitHub {
                repository: place.0.clone(),
                number: place.1,
            };
            router.note_lock(&thread, now.lock.as_ref()).await?;
            let recovered = handle_open_pull_request(router, place, now).await?;
            tracked.update_marks.record(now.updated_at);
            return Ok(HandledPullRequest::Read(recovered));
        }
        let Some(record) = self.still_open(router, place).await? else {
            return Ok(HandledPullRequest::Unread(0));
        };
        let outcome = router
            .take(&CloseEvent::from_poll(&record), TriggerChannel::Poll)
            .await?;
        // The pull request is open again, so it stays tracked.
        if matches!(outcome, EventOutcome::Nothing(_)) {
            return Ok(HandledPullRequest::Read(0));
        }
        self.open.remove(place);
        Ok(HandledPullRequest::Read(count_new_triggers(&[outcome])))
    }

    /// Current record in the index. A purge of the ticket removes records without a change that the index would list.
    async fn still_open(
        &mut self,
        router: &EventRouter,
        place: &PullRequestPlace,
    ) -> Result<Option<PullRequestRecord>, queue::Error> {
        let known = router.queue.pull_requests().get(&place.0, place.1).await?;
        let open = known.filter(|record| record.status == PullRequestStatus::Open);
        if open.is_none() {
            self.open.remove(place);
        }
        Ok(open)
    }

    /// Reads the checks that are due, within the allowance.
    async fn poll_checks(&mut self, router: &EventRouter) -> u64 {
        let now = Instant::now();
        let mut due: Vec<(Instant, PullRequestPlace)> = self
            .open
            .iter()
            .filter(|(_, tracked)| tracked.due() <= now)
            .map(|(place, tracked)| (tracked.due(), place.clone()))
            .collect();
        // The longest due come first, so that an exhausted allowance delays no pull request forever.
        due.sort();
        let mut recovered = 0;
        for (_, place) in due {
            let organization = place.0.organization();
            if self.pauses.is_paused(&organization, Instant::now()) {
                continue;
            }
            if !self.allowance.spend(Instant::now()) {
                break;
            }
            let at = Instant::now();
            match self.checks_of(router, &place).await {
                Ok(found) => {
                    recovered += found;
                    if let Some(tracked) = self.open.get_mut(&place) {
                        tracked.record_read(at);
                    }
                }
                Err(failure) => {
                    let (repository, number) = &place;
                    tracing::warn!(
                        %repository,
                        number,
                        error = %format_error_chain(&failure),
                        "poll of the checks failed"
                    );
                    self.pauses.record(organization, &failure, Instant::now());
                }
            }
        }
        recovered
    }

    async fn checks_of(
        &mut self,
        router: &EventRouter,
        place: &PullRequestPlace,
    ) -> Result<u64, EventFailure> {
        let Some(tracked) = self.open.get_mut(place) else {
            return Ok(0);
        };
        // The next time is set first, so that a failure is retried later instead of at once.
        tracked.schedule_next_read(false, Instant::now());
        let Some(head) = tracked.head.clone() else {
            return Ok(0);
        };
        let Some(record) = self.still_open(router, place).await? else {
            return Ok(0);
        };
        let changed = ChecksChanged::from_poll(&record, head.clone());
        let mut outcome = match router.take(&changed, TriggerChannel::Poll).await {
            // The checks ended a moment ago, and others may start. They are read again after the settle time.
            Err(EventFailure::Unsettled { after, .. }) => {
                if let Some(tracked) = self.open.get_mut(place) {
                    tracked.schedule_settling(Instant::now() + after);
                }
                return Ok(0);
            }
            taken => taken?,
        };
        let Some(tracked) = self.open.get_mut(place) else {
            return Ok(0);
        };
        if matches!(outcome, EventOutcome::NoChecks) && may_lack_checks(router, &place.0) {
            if tracked.is_head_older_than(self.settle, Instant::now()) {
                let absent = ChecksAbsent::from_poll(&record, head.clone());
                outcome = router.take(&absent, TriggerChannel::Poll).await?;
            } else {
                tracked.schedule_settling(tracked.time_of_head_age(self.settle));
            }
        }
        let is_open = matches!(outcome, EventOutcome::Nothing(_) | EventOutcome::NoChecks);
        if is_open {
            if tracked.is_head_older_than(self.pending, Instant::now()) {
                let pending = ChecksPending::from_poll(&record, head);
                let reported = router.take(&pending, TriggerChannel::Poll).await?;
                return Ok(count_new_triggers(&[outcome, reported]));
            }
            tracked.schedule_decision(tracked.time_of_head_age(self.pending));
        }
        if outcome.is_settled() {
            tracked.schedule_next_read(true, Instant::now());
        }
        Ok(count_new_triggers(&[outcome]))
    }
}

/// Pull request that a round reads.
#[derive(Clone, Copy)]
enum PullRequestRead<'a> {
    /// It is in the listing, with its current state.
    Listed(&'a PullRequest),
    /// It is ours and missing in the listing.
    Missing(&'a PullRequestPlace),
}

impl PullRequestRead<'_> {
    /// Key in the memory of polls. The update time is part of it, so that the next change of a pull request that was given up
    /// is read again.
    fn finding(self, repository: &RepositoryName) -> String {
        match self {
            Self::Listed(now) => {
                let updated = now.updated_at.unwrap_or_default();
                format!("{repository} pull request {} updated {updated}", now.number)
            }
            Self::Missing((_, number)) => format!("{repository} pull request {number} without a listing"),
        }
    }
}

/// Pull request that was handled, with the number of its events whose webhook was missed.
enum HandledPullRequest {
    /// GitHub answered a read for it.
    Read(u64),
    /// The listing or the store had all that was needed.
    Unread(u64),
}

impl HandledPullRequest {
    const fn recovered(&self) -> u64 {
        match self {
            Self::Read(recovered) | Self::Unread(recovered) => *recovered,
        }
    }
}

/// True when the rules accept a pull request without checks. The reporter checks whether any are configured.
fn may_lack_checks(router: &EventRouter, repository: &RepositoryName) -> bool {
    let book = router.rules.book();
    let rules = book.for_repository(repository);
    rules.is_some_and(|rules| rules.ci.required != CiRequired::Always)
}

fn build_place(record: &PullRequestRecord) -> PullRequestPlace {
    let ours = &record.pull_request;
    (ours.repository.clone(), ours.number)
}
