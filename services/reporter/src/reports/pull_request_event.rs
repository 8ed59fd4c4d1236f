//! Reports of the events of a pull request: their effects and texts.

use domain::{
    ChecksOutcome, ChecksSummary, ConflictedBase, PullRequestEvent, PullRequestRef, PullRequestStatus,
    TicketKey,
};

use super::{
    EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind, show_checks_result, show_round_event,
};
use crate::{
    board::WorkEnd,
    effects::{
        BackToDraft, CallFor, CallPeople, CommentThread, MarkReady, MarkReadyUnchecked, RecordEnd,
        RecordOpen, RequestReview, RerunChecks, UpdateBase,
    },
    message,
    receipt::AwaitedCheck,
    rounds::{ChecksResult, RoundEvent},
};

impl ReportKind for PullRequestEvent {
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        match self {
            Self::ChecksCompleted(checks) => match checks.outcome() {
                ChecksOutcome::Passed => hand_over(checks, asked),
                ChecksOutcome::Missing => hand_over_unchecked(checks, asked),
                ChecksOutcome::Rerun => rerun_jobs(checks),
                ChecksOutcome::Failed => call_people(checks, asked),
            },
            Self::PushedByOthers(pushed) => {
                let event = RoundEvent::Pushed {
                    branch: None,
                    head: pushed.head.clone(),
                    by: Some(pushed.by.clone()),
                };
                vec![
                    Box::new(BackToDraft {
                        pull_request: pushed.pull_request.clone(),
                    }),
                    show_round_event(&pushed.pull_request.repository, event),
                ]
            }
            Self::Merged(ended) => {
                let mut effects: EffectList = vec![Box::new(RecordEnd {
                    pull_request: ended.pull_request.clone(),
                    status: PullRequestStatus::Merged,
                })];
                effects.extend(asked.done());
                effects.extend(asked.celebrated());
                effects
            }
            Self::MergedElsewhere(_) => asked.done().into_iter().collect(),
            Self::Closed(ended) => vec![Box::new(RecordEnd {
                pull_request: ended.pull_request.clone(),
                status: PullRequestStatus::Closed,
            })],
            Self::Reopened(reopened) => vec![Box::new(RecordOpen {
                pull_request: reopened.pull_request.clone(),
                head: reopened.head.clone(),
            })],
            Self::Outdated(outdated) => vec![Box::new(UpdateBase(outdated.clone()))],
            Self::Conflicted(conflict) => call_for_conflict(conflict, asked),
            Self::ReviewAwaited(_) => EffectList::new(),
        }
    }

    /// A reminder is a separate comment, because it notifies people.
    fn notice_place(&self) -> NoticePlace {
        if matches!(self, Self::ReviewAwaited(_)) {
            NoticePlace::Apart
        } else {
            NoticePlace::InStatus
        }
    }

    /// Returns the pull request's thread for a reminder, otherwise the ticket's.
    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        if let Self::ReviewAwaited(awaited) = self {
            CommentThread::on(&awaited.pull_request)
        } else {
            CommentThread::of(ticket)
        }
    }

    fn work_end(&self, context: &NoticeContext<'_>) -> Option<WorkEnd> {
        match self {
            Self::ChecksCompleted(checks) => match checks.outcome() {
                ChecksOutcome::Passed => Some(WorkEnd::Done),
                ChecksOutcome::Missing => {
                    let awaited = context.receipts.last::<AwaitedCheck>();
                    awaited.is_none().then_some(WorkEnd::Done)
                }
                ChecksOutcome::Rerun | ChecksOutcome::Failed => None,
            },
            Self::Merged(_) | Self::MergedElsewhere(_) => Some(WorkEnd::Done),
            Self::Closed(_) => Some(WorkEnd::Stopped),
            Self::PushedByOthers(_)
            | Self::Reopened(_)
            | Self::Outdated(_)
            | Self::Conflicted(_)
            | Self::ReviewAwaited(_) => None,
        }
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        let pull_request = self.pull_request();
        match self {
            Self::ChecksCompleted(checks) => match checks.outcome() {
                ChecksOutcome::Passed => {
                    vec![message::render_ready(checks, context.receipts.last())]
                }
                ChecksOutcome::Missing => {
                    let awaited = context.receipts.last::<AwaitedCheck>();
                    let awaited = awaited.map(|check| check.0.as_str());
                    let approvals = context.receipts.last();
                    vec![message::render_unchecked(pull_request, awaited, approvals)]
                }
                ChecksOutcome::Rerun => {
                    message::checks_rerun(pull_request, &checks.failed, context.receipts.last())
                }
                ChecksOutcome::Failed => {
                    message::checks_failed(pull_request, &checks.failed, checks.unrepaired)
                }
            },
            Self::PushedByOthers(pushed) => {
                vec![message::pushed_by_others(&pushed.by, pull_request, &pushed.head)]
            }
            Self::Merged(ended) => message::render_merge(&ended.by, pull_request, context.moved()),
            Self::MergedElsewhere(ended) => {
                message::merged_elsewhere(&ended.by, pull_request, context.moved())
            }
            Self::Closed(ended) => {
                let end = match &ended.moved_to {
                    Some(to) => message::render_moved(to, pull_request),
                    None => message::render_closed(&ended.by, pull_request),
                };
                vec![end, context.try_again()]
            }
            Self::Reopened(reopened) => vec![message::render_reopened(&reopened.by, pull_request)],
            Self::Outdated(outdated) => vec![message::render_base_update(outdated)],
            Self::Conflicted(conflict) => message::render_conflict(conflict),
            Self::ReviewAwaited(awaited) => vec![message::review_awaited(awaited)],
        }
    }
}

/// Hands a pull request with passed checks over to its reviewers. Unfinished checks have no result to show.
fn hand_over(checks: &ChecksSummary, asked: &PlanContext<'_>) -> EffectList {
    let mut effects: EffectList = vec![Box::new(MarkReady {
        pull_request: checks.pull_request.clone(),
        head: checks.head.clone(),
    })];
    // The order matters: a ticket moves to review only after its pull request is ready.
    effects.extend(asked.moved(&[&asked.rules.agent.review_status]));
    effects.push(Box::new(RequestReview {
        pull_request: checks.pull_request.clone(),
        of: None,
    }));
    if checks.unfinished.is_empty() {
        effects.push(show_checks_result(
            &checks.pull_request,
            &checks.head,
            ChecksResult::Passed,
            &checks.page,
        ));
    }
    effects
}

/// Hands a pull request without checks over to its reviewers, or waits for a configured check.
fn hand_over_unchecked(checks: &ChecksSummary, asked: &PlanContext<'_>) -> EffectList {
    let mut effects: EffectList = vec![Box::new(MarkReadyUnchecked {
        pull_request: checks.pull_request.clone(),
        head: checks.head.clone(),
        rules: asked.rules.ci.clone(),
    })];
    effects.extend(asked.moved(&[&asked.rules.agent.review_status]));
    effects.push(Box::new(RequestReview {
        pull_request: checks.pull_request.clone(),
        of: None,
    }));
    effects.push(show_checks_result(
        &checks.pull_request,
        &checks.head,
        ChecksResult::Absent,
        "",
    ));
    effects
}

/// Runs jobs again that failed for reasons outside of the change.
fn rerun_jobs(checks: &ChecksSummary) -> EffectList {
    let rerun = Box::new(RerunChecks {
        pull_request: checks.pull_request.clone(),
        head: checks.head.clone(),
        runs: checks.rerun.clone(),
    });
    // The stored request has no page of the CI run.
    let page = checks.failed.first().map_or("", |check| check.url.as_str());
    vec![
        rerun,
        show_checks_result(&checks.pull_request, &checks.head, ChecksResult::Failed, page),
    ]
}

/// Shows failed checks, and notifies people if no repair follows: on the pull request, and on a Jira ticket if no
/// reviewer is known at GitHub. The ticket is unassigned, as after all work without a result.
fn call_people(checks: &ChecksSummary, asked: &PlanContext<'_>) -> EffectList {
    let mut effects = vec![show_checks_result(
        &checks.pull_request,
        &checks.head,
        ChecksResult::Failed,
        &checks.page,
    )];
    if checks.calls().is_none() {
        return effects;
    }
    let threads = list_call_threads(&checks.pull_request, &checks.asked, &asked.report.ticket);
    effects.extend(threads.map(|thread| {
        let why = CallFor::Checks(checks.clone());
        Box::new(CallPeople { thread, why }) as _
    }));
    effects.extend(asked.given_back(false));
    effects
}

/// Notifies people about a conflict that is left to them, and unassigns the ticket.
fn call_for_conflict(conflict: &ConflictedBase, asked: &PlanContext<'_>) -> EffectList {
    if conflict.calls().is_none() {
        return EffectList::new();
    }
    let threads = list_call_threads(&conflict.pull_request, &conflict.asked, &asked.report.ticket);
    let mut effects = EffectList::new();
    effects.extend(threads.map(|thread| {
        let why = CallFor::Conflict(conflict.clone());
        Box::new(CallPeople { thread, why }) as _
    }));
    effects.extend(asked.given_back(false));
    effects
}

/// Returns the threads of a notification: the pull request, and a Jira ticket if no login at GitHub is known.
fn list_call_threads(
    pull_request: &PullRequestRef,
    logins: &[String],
    ticket: &TicketKey,
) -> impl Iterator<Item = CommentThread> {
    let is_on_jira = matches!(ticket, TicketKey::Jira { .. });
    let beside = (is_on_jira && logins.is_empty()).then(|| CommentThread::of(ticket));
    [CommentThread::on(pull_request)].into_iter().chain(beside)
}
