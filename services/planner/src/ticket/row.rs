//! Row of a ticket. An unreadable row is rebuilt from the journals.

use domain::{
    Fact, JournalEntry, OutboundId, OutboundOutcome, OutboundReceipt, PullRequestRef, RecordKind, RunId,
    RunStatus, TicketKey, TicketNews, TicketRow, Trigger, TriggerReason, WaitCondition,
    cause::format_error_chain,
};
use queue::{DeadLetter, FoundValue, KeyValueBucket, Queue, TableRevision, UnreadableRecord};

use super::fold::pending_run;
use crate::driver::TicketError;
use crate::run::{IllegalFact, PlannerRunState};

/// Reads the row of a ticket and the revision that the next write replaces. An unreadable row becomes a dead
/// letter and is rebuilt.
pub(super) async fn read_row(
    queue: &Queue,
    ticket: &TicketKey,
) -> Result<(TicketRow, Option<TableRevision>), TicketError> {
    let rows = queue.table::<TicketRow>(KeyValueBucket::Tickets);
    Ok(match rows.find(&ticket.to_string()).await? {
        Some(FoundValue::Value(row, revision)) => (row, Some(revision)),
        Some(FoundValue::Unreadable(unreadable)) => {
            let lost = unreadable.unless_newer()?;
            (rebuild_row(queue, ticket, &lost).await?, Some(lost.revision()))
        }
        None => (TicketRow::default(), None),
    })
}

/// Rebuilds the row of a ticket from its journals and triggers.
async fn rebuild_row(
    queue: &Queue,
    ticket: &TicketKey,
    lost: &UnreadableRecord,
) -> Result<TicketRow, TicketError> {
    tracing::error!(%ticket, problem = lost.problem(), "row rebuilt from the journals");
    let advice = "it was rebuilt from the ticket's journals, and there is nothing to do";
    let (id, about) = (ticket.to_string(), Some(ticket.clone()));
    let letter = DeadLetter::about(
        lost,
        RecordKind::Row,
        id,
        about,
        advice,
        bootstrap::read_wall_clock(),
    );
    // First, because the save at the takeover overwrites the unreadable bytes.
    queue.dead_letters().publish_unreadable(&letter, lost).await?;
    let mut journals = Vec::new();
    for run in queue.journal().runs_of(ticket).await? {
        let entries = match queue.journal().read(&run).await {
            Err(error @ queue::Error::Corrupt { .. }) => {
                tracing::error!(%run, error = %format_error_chain(&error), "run left out of the row");
                continue;
            }
            entries => entries?,
        };
        let entries: Vec<JournalEntry> = entries.into_iter().map(|(_, entry)| entry).collect();
        journals.push((run, entries));
    }
    let triggers = queue.triggers().read_each_after(ticket, 0).await?;
    // The fold handles the unreadable ones.
    let readable = triggers
        .into_iter()
        .filter_map(|(sequence, trigger)| Some((sequence, trigger.ok()?)));
    Ok(restore_row(&journals, &readable.collect::<Vec<_>>())?)
}

/// Returns the row after the last trigger that the journals certainly know. The triggers after it are folded
/// again; the journals have few or none of their facts, and refuse those that they have.
fn restore_row(
    journals: &[(RunId, Vec<JournalEntry>)],
    triggers: &[(u64, Trigger)],
) -> Result<TicketRow, IllegalFact> {
    let mut row = TicketRow::default();
    for (run, entries) in journals {
        let Some(state) = PlannerRunState::fold(run, entries)? else {
            continue;
        };
        add_run(&mut row, run, &state, entries);
        let facts = entries.iter();
        let known = facts.filter_map(|entry| find_folded_trigger(&entry.fact, triggers));
        // The start of a run is the last step of its trigger, so that trigger and all before it are folded.
        row.cursor = known.fold(row.cursor.max(run.sequence()), u64::max);
    }
    // A run that had finished does not have the outcome in its journal.
    let folded = triggers.iter().filter(|(sequence, _)| *sequence <= row.cursor);
    for (_, trigger) in folded {
        if let TriggerReason::ReportSettled(settled) = &trigger.reason {
            add_pull_request(&mut row.pull_requests, &settled.outcome);
        }
        if let TriggerReason::TicketLeft(departure) = &trigger.reason {
            row.left = Some(departure.clone());
        }
    }
    Ok(row)
}

/// Returns the last trigger that is folded completely if a journal has this fact.
fn find_folded_trigger(fact: &Fact, triggers: &[(u64, Trigger)]) -> Option<u64> {
    // A repeated fold of a request would open a run, because the retried run no longer waits.
    if let Fact::Retried { trigger, .. } = fact {
        return *trigger;
    }
    // Other runs may lack the facts of the same trigger, if a planner crashed in between.
    if let Fact::NewsArrived { sequence, .. } = fact {
        return Some(sequence.saturating_sub(1));
    }
    if let Fact::HeadMoved { trigger, .. } = fact {
        return trigger.map(|sequence| sequence.saturating_sub(1));
    }
    if let Fact::ReportSettled { id, .. } = fact {
        let settles = |(_, trigger): &&(u64, Trigger)| is_settlement(&trigger.reason, id);
        return triggers.iter().find(settles).map(|(sequence, _)| *sequence);
    }
    None
}

fn is_settlement(reason: &TriggerReason, id: &OutboundId) -> bool {
    matches!(reason, TriggerReason::ReportSettled(settled) if settled.report == *id)
}

fn add_run(row: &mut TicketRow, run: &RunId, state: &PlannerRunState, entries: &[JournalEntry]) {
    let Some(JournalEntry {
        at: started_at,
        fact: Fact::RunStarted { trigger },
        ..
    }) = entries.first()
    else {
        return;
    };
    let Some(asked) = pending_run(run.clone(), &trigger.reason) else {
        return;
    };
    row.open(asked, *started_at);
    if let Some(branch) = state.source().branch() {
        row.set_branch(run, branch);
    }
    if let Some(summary) = row.run_mut(run) {
        summary.turns = u32::try_from(state.conversation().turn_count()).unwrap_or(u32::MAX);
        let is_open = |waits_for: &WaitCondition| *waits_for != WaitCondition::Answer || !has_answer(entries);
        if let Some(waits_for) = state.lifecycle().parked().filter(is_open) {
            summary.status = RunStatus::Parked { waits_for };
        }
    }
    if let Some(reason) = state.lifecycle().finished().cloned() {
        let finished_at = entries.last().map_or(*started_at, |entry| entry.at);
        row.finish(run, reason, finished_at);
    }
    for entry in entries {
        if let Fact::ReportSettled { outcome, .. } = &entry.fact {
            add_pull_request(&mut row.pull_requests, outcome);
        }
    }
}

/// Returns true if a comment that wakes the run arrived since it parked. News alone do not end a wait in the
/// journal.
fn has_answer(entries: &[JournalEntry]) -> bool {
    let since = entries
        .iter()
        .rev()
        .take_while(|entry| !matches!(entry.fact, Fact::Parked { .. }));
    let is_answer = |fact: &Fact| matches!(fact, Fact::NewsArrived { news: TicketNews::Comment { comment, .. }, .. } if comment.may_instruct);
    since.map(|entry| &entry.fact).any(is_answer)
}

fn add_pull_request(known: &mut Vec<PullRequestRef>, outcome: &OutboundOutcome) {
    if let OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) = outcome
        && !known.contains(opened)
    {
        known.push(opened.clone());
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        Job, JobSubject, OutboundSettled, PullRequestEvent, PullRequestHead, RunFence, StopReason,
        TicketComment, TicketDeparture, Timestamp, WithdrawalReason,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::run::tests::{
        build_commit_id, build_entry, build_job_request, build_review_subject, build_ticket_key,
        build_trigger,
    };
    use crate::ticket::fold::{FoldStep, fold_triggers};

    fn pull_request() -> PullRequestRef {
        PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "u".to_owned(),
            branch: "b".to_owned(),
        }
    }

    fn request(job: Job) -> TriggerReason {
        let mut request = build_job_request(job);
        if job == Job::AddressReview {
            request.about = build_review_subject();
            if let JobSubject::Review(round) = &mut request.about {
                round.pull_request.branch = pull_request().branch;
            }
        }
        TriggerReason::JobRequested(Box::new(request))
    }

    fn push(head: char) -> TriggerReason {
        TriggerReason::from(PullRequestEvent::PushedByOthers(PullRequestHead {
            pull_request: pull_request(),
            head: build_commit_id(head),
            by: "grace".to_owned(),
        }))
    }

    fn comment() -> TriggerReason {
        TriggerReason::NewsArrived(TicketNews::Comment {
            comment: TicketComment {
                author: "ada".to_owned(),
                at: Timestamp::from_unix_ms(9),
                text: "Mind the tax.".to_owned(),
                may_instruct: true,
                is_new: false,
            },
            pull_request: None,
            attachments: Vec::new(),
        })
    }

    /// Ticket with its triggers, its journals and the row that a planner may lose.
    #[derive(Default)]
    struct FoldedTicket {
        row: TicketRow,
        journals: Vec<(RunId, Vec<JournalEntry>)>,
        triggers: Vec<(u64, Trigger)>,
    }

    impl FoldedTicket {
        /// Adds a trigger and returns its sequence.
        fn add(&mut self, reason: TriggerReason) -> u64 {
            let sequence = 5 + u64::try_from(self.triggers.len()).unwrap();
            self.triggers.push((sequence, build_trigger(reason)));
            sequence
        }

        /// Folds a trigger, and repeats the fold as after a crash before the row was saved.
        fn receive(&mut self, reason: TriggerReason) -> RunId {
            let run = RunId::new(build_ticket_key(), self.add(reason));
            let before = self.row.clone();
            self.row = self.fold(before.clone()).0;
            let repeated = self.fold(before);
            assert_eq!(repeated, (self.row.clone(), Vec::new()));
            run
        }

        /// Folds the triggers after the row's cursor. Returns the row, and the facts that the journals took.
        fn fold(&mut self, row: TicketRow) -> (TicketRow, Vec<&'static str>) {
            let (row, steps) = fold_triggers(
                row,
                &build_ticket_key(),
                &self.triggers,
                RunFence::new(1, 2, 1),
                Timestamp::from_unix_ms(7),
            );
            let taken = steps.into_iter().filter_map(|step| self.follow(step));
            (row, taken.collect())
        }

        fn follow(&mut self, step: FoldStep) -> Option<&'static str> {
            match step {
                FoldStep::Open { run, trigger } => {
                    let is_new = !self.journals.iter().any(|(known, _)| *known == run);
                    is_new.then(|| {
                        self.journals.push((run.clone(), Vec::new()));
                        self.append(&run, Fact::RunStarted { trigger })
                    })
                }
                FoldStep::Pass { run, fact } => {
                    let is_new = self.state(&run).accepts(&fact);
                    is_new.then(|| self.append(&run, *fact))
                }
                FoldStep::Notice(_) => None,
            }
        }

        fn state(&self, run: &RunId) -> PlannerRunState {
            let (_, entries) = self.journals.iter().find(|(known, _)| known == run).unwrap();
            PlannerRunState::fold(run, entries).unwrap().unwrap()
        }

        fn append(&mut self, run: &RunId, fact: Fact) -> &'static str {
            let name = fact.name();
            let (_, entries) = self.journals.iter_mut().find(|(known, _)| known == run).unwrap();
            entries.push(build_entry(u64::try_from(entries.len()).unwrap(), fact));
            name
        }

        fn park(&mut self, run: &RunId, waits_for: WaitCondition) {
            self.append(run, Fact::Parked { waits_for });
            self.row.run_mut(run).unwrap().status = RunStatus::Parked { waits_for };
        }

        /// Lets a run wait for a retry.
        fn fail(&mut self, run: &RunId) {
            let fact = Fact::RetryScheduled {
                attempt: self.state(run).lifecycle().retries() + 1,
                most: 9,
                due: Timestamp::default(),
                reason: StopReason::ModelFailed {
                    detail: "503".to_owned(),
                },
            };
            self.append(run, fact);
            self.park(run, WaitCondition::Retry);
        }

        fn restored(&self) -> TicketRow {
            restore_row(&self.journals, &self.triggers).unwrap()
        }

        fn restored_status(&self, run: &RunId) -> RunStatus {
            self.restored().run(run).unwrap().status.clone()
        }

        /// Folds the triggers with a rebuilt row, which must change no journal.
        fn lose_row(&mut self) {
            let (row, taken) = self.fold(self.restored());
            assert_eq!(taken, Vec::<&str>::new(), "{:?}", self.triggers);
            let live = |row: &TicketRow| -> Vec<RunId> {
                row.pending.iter().map(|pending| pending.run.clone()).collect()
            };
            assert_eq!(live(&row), live(&self.row));
        }
    }

    #[test]
    fn old_retry_leaves_later_wait() {
        let mut ticket = FoldedTicket::default();
        let run = ticket.receive(request(Job::Implement));
        ticket.fail(&run);
        ticket.receive(TriggerReason::RetryRequested);
        assert!(ticket.state(&run).lifecycle().retry().is_none());
        ticket.fail(&run);
        ticket.lose_row();
        assert!(ticket.state(&run).lifecycle().retry().is_some());
        assert_eq!(ticket.restored_status(&run), ticket.row.run(&run).unwrap().status);
    }

    #[test]
    fn repeated_pushes_restart_work_once_each() {
        let mut ticket = FoldedTicket::default();
        let run = ticket.receive(request(Job::AddressReview));
        let before = ticket.row.clone();
        ticket.add(push('c'));
        ticket.add(push('d'));
        let (row, taken) = ticket.fold(before.clone());
        assert_eq!(taken.iter().filter(|name| **name == "head_moved").count(), 2);
        let repeated = ticket.fold(before);
        assert_eq!(repeated, (row.clone(), Vec::new()), "the row was not saved");
        ticket.row = row;
        ticket.lose_row();
        assert_eq!(ticket.state(&run).lifecycle().moves(), 2);
    }

    #[test]
    fn later_runs_ignore_earlier_triggers() {
        let mut ticket = FoldedTicket::default();
        ticket.receive(request(Job::Implement));
        for earlier in [
            comment(),
            TriggerReason::ReviewWithdrawn {
                why: WithdrawalReason::Merged,
            },
            TriggerReason::TicketLeft(TicketDeparture::Deleted),
        ] {
            ticket.receive(earlier);
        }
        ticket.receive(request(Job::Triage));
        ticket.receive(request(Job::Review));
        ticket.lose_row();
    }

    #[test]
    fn comment_wakes_run_of_rebuilt_row() {
        let mut ticket = FoldedTicket::default();
        let run = ticket.receive(request(Job::Implement));
        ticket.park(&run, WaitCondition::Answer);
        assert_eq!(ticket.restored_status(&run), ticket.row.run(&run).unwrap().status);
        ticket.receive(comment());
        ticket.receive(request(Job::Triage));
        assert_eq!(ticket.restored_status(&run), RunStatus::Queued);
        ticket.lose_row();
    }

    #[test]
    fn outcome_after_end_keeps_pull_request() {
        let mut ticket = FoldedTicket::default();
        let run = ticket.receive(request(Job::Implement));
        let reason = StopReason::Completed;
        ticket.append(
            &run,
            Fact::RunFinished {
                reason: reason.clone(),
            },
        );
        ticket.row.finish(&run, reason, Timestamp::default());
        ticket.receive(TriggerReason::ReportSettled(OutboundSettled {
            report: run.call(9).into(),
            run,
            outcome: OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(pull_request())),
        }));
        ticket.receive(request(Job::Implement));
        assert_eq!(ticket.restored().pull_requests, [pull_request()]);
    }

    #[derive(Clone, Debug)]
    enum Event {
        Request(Job),
        Push(char),
        Retry,
        Comment,
        Stop,
        Withdraw,
        /// Lets the live run at this place wait for a retry.
        Fail(usize),
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let jobs = [Job::Implement, Job::Triage, Job::Review, Job::AddressReview];
        prop_oneof![
            3 => prop::sample::select(jobs.to_vec()).prop_map(Event::Request),
            2 => prop::sample::select(vec!['c', 'd', 'e']).prop_map(Event::Push),
            2 => Just(Event::Retry),
            1 => Just(Event::Comment),
            1 => Just(Event::Stop),
            1 => Just(Event::Withdraw),
            3 => (0_usize..4).prop_map(Event::Fail),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn fold_of_rebuilt_row_changes_nothing(events in prop::collection::vec(any_event(), 1..16)) {
            let mut ticket = FoldedTicket::default();
            for event in events {
                let live: Vec<RunId> = ticket.row.pending.iter().map(|pending| pending.run.clone()).collect();
                let waits = |run: &RunId| ticket.state(run).lifecycle().retry().is_some();
                let reason = match event {
                    Event::Request(job) => request(job),
                    Event::Push(head) => push(head),
                    // A retry that no run waits for leaves no fact.
                    Event::Retry if live.iter().any(waits) => TriggerReason::RetryRequested,
                    Event::Retry => continue,
                    Event::Comment => comment(),
                    Event::Stop => TriggerReason::StopRequested { run: None },
                    Event::Withdraw => TriggerReason::ReviewWithdrawn { why: WithdrawalReason::Merged },
                    Event::Fail(place) => {
                        if let Some(run) = live.get(place).filter(|run| !waits(run)) {
                            ticket.fail(run);
                        }
                        continue;
                    }
                };
                ticket.receive(reason);
            }
            ticket.lose_row();
        }
    }
}
