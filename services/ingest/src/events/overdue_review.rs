//! Review reminder: a pull request of ours has waited for a review for the time in the rules. Detected by polling;
//! there is no webhook for it.

use std::time::Duration;

use domain::{
    AwaitedReview, Job, PullRequestEvent, PullRequestRecord, PullRequestRef, TicketKey, Timestamp, Trigger,
    TriggerKey, TriggerReason,
};

use super::{EventKind, EventVerdict, NewTrigger, closed::is_closed};
use crate::{
    facts::{DecisionFacts, Need},
    policy::skip,
    text::text_pin,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
// Age of a reminder, in milliseconds, up to which the log still has it: a day less than the log keeps its records.
const LOGGED_MS: i64 = 29 * 24 * 60 * 60 * 1000;
// Maximum of reviewers mentioned at once.
const MOST_CALLED: usize = 10;

/// Possibly overdue review of our open pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverdueReviewEvent {
    record: PullRequestRecord,
}

impl OverdueReviewEvent {
    pub(crate) const fn from_poll(record: PullRequestRecord) -> Self {
        Self { record }
    }
}

impl EventKind for OverdueReviewEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let (ticket, ours) = (&self.record.ticket, &self.record.pull_request);
        let rules = facts.book.for_repository(&ours.repository);
        let unwanted = || Ok(EventVerdict::nothing("the rules want no reminders"));
        let Some(rules) = rules.filter(|rules| rules.review.reminds()) else {
            return unwanted();
        };
        if !facts.covers(rules, ticket)? {
            return unwanted();
        }
        let now = facts.pull_request(&ours.repository, &ours.number)?;
        // Our own reviewer account needs no reminder.
        let is_person = |login: &&String| !rules.pull_request.reviewer.eq_ignore_ascii_case(login);
        let people = now.requested_reviewers.iter().filter(is_person);
        let people: Vec<&String> = people.chain(&now.requested_teams).collect();
        if is_closed(now) || now.draft || people.is_empty() {
            return Ok(EventVerdict::nothing("the pull request waits for no review"));
        }
        if skip::find_own_skip(now, rules).is_some() {
            return Ok(EventVerdict::nothing(skip::FORBIDDEN));
        }
        let requests = facts.review_requests(&ours.repository, &ours.number)?;
        let is_open = |login: &str| {
            let mut waiting = people.iter();
            waiting.any(|asked| asked.eq_ignore_ascii_case(login))
        };
        let open = requests.iter().filter(|request| is_open(&request.reviewer));
        let Some(since) = open.map(|request| request.at).max() else {
            return Ok(EventVerdict::nothing("nobody knows since when it waits"));
        };
        let earlier = list_reminder_times(facts, ticket, ours, since)?;
        if earlier.len() >= rules.review.reminders as usize {
            return Ok(EventVerdict::nothing(
                "it was reminded of as often as the rules allow",
            ));
        }
        let last = earlier.into_iter().max().unwrap_or(since);
        let due = last.plus(DAY * rules.review.remind_after_days);
        if facts.now < due {
            return Ok(EventVerdict::nothing("it may wait longer"));
        }
        let called = people.iter().take(MOST_CALLED);
        let called = called.map(|login| text_pin::clean_text(login, 100));
        let day = facts.now.unix_s() / DAY.as_secs().cast_signed();
        Ok(EventVerdict::from(NewTrigger {
            ticket: ticket.clone(),
            // The key contains the day, so two polls on one day make one trigger.
            key: TriggerKey::new(format!("reminder:{}#{}:{day}", ours.repository, ours.number)),
            at: facts.now,
            actor: None,
            reason: PullRequestEvent::ReviewAwaited(AwaitedReview {
                pull_request: ours.clone(),
                reviewers: called.collect(),
                since,
            })
            .into(),
        }))
    }
}

/// Times of the reminders since the current wait started. Those that the log has lost are runs of the ticket's row.
fn list_reminder_times(
    facts: &DecisionFacts,
    ticket: &TicketKey,
    ours: &PullRequestRef,
    since: Timestamp,
) -> Result<Vec<Timestamp>, Need> {
    let logged = list_logged_reminders(facts.history(ticket)?, ours, since);
    let oldest = facts.now.plus_ms(-LOGGED_MS);
    if since >= oldest {
        return Ok(logged.collect());
    }
    let row = facts.row(ticket)?;
    // A run of the row does not name its pull request.
    if row.pull_requests.len() != 1 {
        return Ok(logged.collect());
    }
    let lost = row
        .runs
        .iter()
        .filter(|run| run.job == Job::Remind)
        .map(|run| run.started_at)
        .filter(|at| (since..oldest).contains(at));
    Ok(lost.chain(logged.filter(|at| *at >= oldest)).collect())
}

/// Times of the reminders in the log since the current wait started.
fn list_logged_reminders<'a>(
    history: &'a [Trigger],
    ours: &'a PullRequestRef,
    since: Timestamp,
) -> impl Iterator<Item = Timestamp> + 'a {
    let of_ours = move |trigger: &&Trigger| {
        let TriggerReason::PullRequest(PullRequestEvent::ReviewAwaited(awaited)) = &trigger.reason else {
            return false;
        };
        awaited.pull_request == *ours && trigger.at >= since
    };
    history.iter().filter(of_ours).map(|trigger| trigger.at)
}

#[cfg(test)]
mod tests {
    use domain::{RunStatus, RunSummary, StopReason, TicketRow, TriggerChannel};
    use github::{PullRequest, ReviewRequest};

    use super::{
        super::tests::{
            build_pull_record, build_pull_reference, build_repository_name, build_ticket_key, decide_event,
            expect_nothing, expect_trigger, facts_with, pull_request,
        },
        *,
    };

    const RULES: &str = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\nreview:\n  remind_after_days: 3\n  reminders: 2\n";
    const ASKED: Timestamp = Timestamp::from_unix_ms(1_000_000);

    fn build_review_candidate() -> PullRequest {
        PullRequest {
            draft: false,
            requested_reviewers: vec!["Rita".to_owned()],
            ..pull_request()
        }
    }

    fn build_overdue_facts(rules: &str, now: PullRequest, days: u32, history: &[Trigger]) -> DecisionFacts {
        let mut facts = facts_with(rules, TriggerChannel::Poll);
        facts.now = ASKED.plus(DAY * days);
        facts.put_pull_request(build_repository_name(), 7, now);
        let request = |reviewer: &str, at| ReviewRequest {
            id: 1,
            by: None,
            reviewer: reviewer.to_owned(),
            at,
        };
        let gone = request("ann", ASKED.plus(DAY * 30));
        facts.put_review_requests(build_repository_name(), 7, vec![request("rita", ASKED), gone]);
        facts.put_history(build_ticket_key(), history.to_vec());
        facts
    }

    #[test]
    fn overdue_review_is_reminded_twice_only() {
        let event = OverdueReviewEvent::from_poll(build_pull_record());
        let mut history = Vec::new();
        let mut days = Vec::new();
        for day in 0..30 {
            let facts = build_overdue_facts(RULES, build_review_candidate(), day, &history);
            if let EventVerdict::Follows(follows) = decide_event(&event, &facts) {
                assert_eq!(
                    follows.reason,
                    TriggerReason::from(PullRequestEvent::ReviewAwaited(AwaitedReview {
                        pull_request: build_pull_reference(),
                        reviewers: vec!["Rita".to_owned()],
                        since: ASKED,
                    }))
                );
                days.push(day);
                history.push(follows.into_trigger(TriggerChannel::Poll));
            }
        }
        assert_eq!(days, [3, 6]);
    }

    #[test]
    fn reminders_count_after_log_aged_out() {
        let event = OverdueReviewEvent::from_poll(build_pull_record());
        let remind_run = |day: u32| RunSummary {
            id: "jira:ENG-12@1".parse().unwrap(),
            job: Job::Remind,
            status: RunStatus::Finished {
                reason: StopReason::Completed,
            },
            started_at: ASKED.plus(DAY * day),
            finished_at: None,
            turns: 0,
        };
        let facts_after = |days: &[u32]| {
            let mut facts = build_overdue_facts(RULES, build_review_candidate(), 60, &[]);
            let row = TicketRow {
                pull_requests: vec![build_pull_reference()],
                runs: days.iter().map(|day| remind_run(*day)).collect(),
                ..TicketRow::default()
            };
            facts.put_row(build_ticket_key(), row);
            facts
        };
        assert_eq!(
            expect_nothing(&event, &facts_after(&[3, 6])),
            "it was reminded of as often as the rules allow"
        );
        assert_eq!(
            expect_trigger(&event, &facts_after(&[3])).ticket,
            build_ticket_key()
        );
    }

    #[test]
    fn overdue_review_of_team_is_reminded() {
        let event = OverdueReviewEvent::from_poll(build_pull_record());
        let team = || "acme/owners".to_owned();
        let now = PullRequest {
            requested_reviewers: Vec::new(),
            requested_teams: vec![team()],
            ..build_review_candidate()
        };
        let mut facts = build_overdue_facts(RULES, now, 4, &[]);
        let request = ReviewRequest {
            id: 2,
            by: None,
            reviewer: team(),
            at: ASKED,
        };
        facts.put_review_requests(build_repository_name(), 7, vec![request]);
        let reason = PullRequestEvent::ReviewAwaited(AwaitedReview {
            pull_request: build_pull_reference(),
            reviewers: vec![team()],
            since: ASKED,
        });
        assert_eq!(expect_trigger(&event, &facts).reason, TriggerReason::from(reason));
    }

    #[test]
    fn draft_or_closed_review_gets_no_reminder() {
        let event = OverdueReviewEvent::from_poll(build_pull_record());
        let why = |rules: &str, now| expect_nothing(&event, &build_overdue_facts(rules, now, 9, &[]));
        let no_review = "the pull request waits for no review";
        assert_eq!(
            why(
                RULES,
                PullRequest {
                    draft: true,
                    ..build_review_candidate()
                }
            ),
            no_review
        );
        let nobody = PullRequest {
            requested_reviewers: Vec::new(),
            ..build_review_candidate()
        };
        assert_eq!(why(RULES, nobody), no_review);
        let closed = PullRequest {
            closed_at: Some(ASKED),
            ..build_review_candidate()
        };
        assert_eq!(why(RULES, closed), no_review);
        let off = RULES.replace("remind_after_days: 3", "remind_after_days: 0");
        assert_eq!(why(&off, build_review_candidate()), "the rules want no reminders");
    }

    #[test]
    fn reminders_of_one_day_share_a_key() {
        let event = OverdueReviewEvent::from_poll(build_pull_record());
        let mut facts = build_overdue_facts(RULES, build_review_candidate(), 4, &[]);
        let first = expect_trigger(&event, &facts);
        facts.now = facts.now.plus(Duration::from_secs(3600));
        assert_eq!(expect_trigger(&event, &facts).key, first.key);
    }
}
