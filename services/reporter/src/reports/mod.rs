//! Kinds of reports by subject: effects under the rules, text for people, and receipt for the planner. All pure.

mod discussion;
mod pull_request;
mod pull_request_event;
mod reviews;
mod run;
mod ticket;

use std::fmt::Debug;

use domain::{
    AssigneeRule, CommitId, OutboundAction, OutboundReceipt, OutboundRequest, PullRequestRef, ReactionKind,
    ReactionSubject, RepositoryName, RepositoryRules, RunId, StopReason, TicketKey,
};

use crate::{
    board::{FinishedWork, WorkEnd},
    effects::{
        self, AddReaction, AssignTicket, CheckRun, CloseIssue, CommentThread, OutboundEffect, PlannedEffect,
        TransitionIssue, UnassignTicket, WriteComment,
    },
    message,
    receipt::{EffectReceipts, TransitionResult},
    rounds::{ChecksResult, RoundEvent},
};

// Usual names of the last status, for workflows in which the rules' status is not reachable.
const USUAL: [&str; 5] = ["done", "closed", "complete", "completed", "resolved"];

/// Effects in the order of their execution.
pub(crate) type EffectList = Vec<Box<dyn PlannedEffect>>;

/// Kind of a report. Its methods decide everything about it.
pub(crate) trait ReportKind: Debug {
    /// Returns the effects before the notification, in order.
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        EffectList::new()
    }

    /// Returns the effects after the notification, in order.
    fn afterwards(&self, _: &PlanContext<'_>) -> EffectList {
        EffectList::new()
    }

    /// Returns the place of the notification.
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::InStatus
    }

    /// Returns the thread of the notification.
    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        CommentThread::of(ticket)
    }

    /// Returns the text of the notification, as paragraphs of Markdown. Empty paragraphs are omitted.
    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String>;

    /// Returns the end of the work; `None` while it continues.
    fn work_end(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        None
    }

    /// Returns the finished work that stays in the status comment below later entries.
    fn finished_work(&self, _: &NoticeContext<'_>) -> FinishedWork {
        FinishedWork::default()
    }

    /// Returns the receipt for the planner after all effects.
    fn receipt(&self, _: &EffectReceipts, _: &PlanContext<'_>) -> OutboundReceipt {
        OutboundReceipt::Told
    }
}

/// Returns true if a report that is shown only with text has none.
pub(crate) fn is_silent(asked: &effects::EffectContext<'_>) -> bool {
    let (ticket, request) = (&asked.report.ticket, &asked.report.request);
    let context = NoticeContext {
        receipts: asked.receipts,
        unmoved: None,
        ticket,
        run: asked.report.run.as_ref(),
        again: "",
    };
    notice_place(request) == NoticePlace::IfAny && render_report(request, &context).is_empty()
}

/// Place of a report's notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticePlace {
    /// No notification.
    Nowhere,
    /// The ticket's status comment.
    InStatus,
    /// The status comment, but only if the report has text.
    IfAny,
    /// The status comment, whose clock restarts.
    AtStart,
    /// The progress line of the status comment.
    AsProgress,
    /// A separate comment. It notifies people; GitHub sends no notification for an edited comment.
    Apart,
}

/// A report and the rules that apply to it.
pub(crate) struct PlanContext<'a> {
    pub(crate) report: &'a OutboundRequest,
    pub(crate) rules: &'a RepositoryRules,
}

/// Context of a notification.
#[derive(Clone, Copy)]
pub(crate) struct NoticeContext<'a> {
    /// Receipts of the report's effects.
    pub(crate) receipts: &'a EffectReceipts,
    /// Failed transition of this or an earlier report that a person has to make.
    pub(crate) unmoved: Option<&'a TransitionResult>,
    pub(crate) ticket: &'a TicketKey,
    pub(crate) run: Option<&'a RunId>,
    /// Status that requests work.
    pub(crate) again: &'a str,
}

impl NoticeContext<'_> {
    /// Returns the result of the last transition of the ticket, if one was tried.
    fn moved(&self) -> Option<&TransitionResult> {
        self.unmoved.or(self.receipts.last())
    }

    /// Renders the way to request the work again.
    fn try_again(&self) -> String {
        message::try_again(self.ticket, self.again, self.moved())
    }
}

impl PlanContext<'_> {
    /// Builds an effect for Jira issues; `None` for other tickets.
    fn on_jira<E: OutboundEffect + 'static>(
        &self,
        effect: impl FnOnce(TicketKey) -> E,
    ) -> Option<Box<dyn PlannedEffect>> {
        let ticket = &self.report.ticket;
        matches!(ticket, TicketKey::Jira { .. })
            .then(|| Box::new(effect(ticket.clone())) as Box<dyn PlannedEffect>)
    }

    /// Assigns the ticket to the account of the rules, if they name one and the tracker has assignees.
    fn assigned(&self) -> Option<Box<dyn PlannedEffect>> {
        let can_have = matches!(
            self.report.ticket,
            TicketKey::Jira { .. } | TicketKey::GitHub { .. }
        );
        let ticket = self.report.ticket.clone();
        let is_wanted = can_have && self.rules.agent.assign != AssigneeRule::Nobody;
        is_wanted.then(|| Box::new(AssignTicket { ticket }) as Box<dyn PlannedEffect>)
    }

    /// Unassigns the ticket, if its tracker has assignees.
    fn given_back(&self, from_anybody: bool) -> Option<Box<dyn PlannedEffect>> {
        let ticket = self.report.ticket.clone();
        let has_assignee = !matches!(ticket, TicketKey::Folder { .. });
        has_assignee.then(|| Box::new(UnassignTicket { ticket, from_anybody }) as Box<dyn PlannedEffect>)
    }

    /// Adds a rocket reaction to mark the issue as done in lists of issues.
    fn celebrated(&self) -> Option<Box<dyn PlannedEffect>> {
        let TicketKey::GitHub { repository, number } = &self.report.ticket else {
            return None;
        };
        let to = ReactionSubject::issue(repository, *number);
        let reaction = ReactionKind::Rocket;
        Some(Box::new(AddReaction { to, reaction }))
    }

    /// Ends the ticket: a transition to the last status at Jira, a closed issue at GitHub.
    fn done(&self) -> Option<Box<dyn PlannedEffect>> {
        if let TicketKey::GitHub { repository, number } = &self.report.ticket {
            return Some(Box::new(CloseIssue {
                repository: repository.clone(),
                number: *number,
            }));
        }
        let configured = self.rules.agent.done_status.as_str();
        let goals: Vec<&str> = std::iter::once(configured).chain(USUAL).collect();
        self.moved(&goals)
    }

    /// Moves the ticket to the first reachable of these statuses. Empty names are not configured.
    fn moved(&self, goals: &[&str]) -> Option<Box<dyn PlannedEffect>> {
        let configured = goals.iter().filter(|goal| !goal.is_empty());
        let goals: Vec<String> = configured.map(|goal| (*goal).to_owned()).collect();
        if goals.is_empty() {
            return None;
        }
        self.on_jira(|issue| TransitionIssue { issue, goals })
    }
}

/// Returns the kind of a request: its type, which implements [`ReportKind`] in the module of its subject.
fn kind(request: &OutboundAction) -> &dyn ReportKind {
    match request {
        OutboundAction::WorkStarted(report) => report,
        OutboundAction::EffortForecast(report) => report,
        OutboundAction::Progressed(report) => report,
        OutboundAction::DecisionNeeded(report) => report,
        OutboundAction::PlanProposed(report) => report,
        OutboundAction::QuestionAsked(report) => report,
        OutboundAction::RunStopped(report) => report,
        OutboundAction::RetryScheduled(report) => report,
        OutboundAction::Quarantined(report) => report,
        OutboundAction::Unreadable(report) => report,
        OutboundAction::Rehearse(report) => report,
        OutboundAction::PushBranch(report) => report,
        OutboundAction::OpenPullRequest(report) => report,
        OutboundAction::PullRequest(report) => report,
        OutboundAction::WorkDelivered(report) => report,
        OutboundAction::ChecksRepaired(report) => report,
        OutboundAction::ConflictResolved(report) => report,
        OutboundAction::ReviewAddressed(report) => report,
        OutboundAction::PullRequestReviewed(report) => report,
        OutboundAction::Triaged(report) => report,
        OutboundAction::OpenIssues(report) => report,
        OutboundAction::QuestionAnswered(report) => report,
        OutboundAction::CostTold(report) => report,
        OutboundAction::HelpTold(report) => report,
        OutboundAction::React(report) => report,
        OutboundAction::Skipped(report) => report,
        OutboundAction::TicketLeft(report) => report,
        OutboundAction::Discussed(report) => report,
    }
}

/// Returns the effects of a report in order: before, during and after its notification.
pub(crate) fn plan_effects(report: &OutboundRequest, rules: &RepositoryRules) -> EffectList {
    let kind = kind(&report.request);
    let mut effects = kind.effects(&PlanContext { report, rules });
    // A ticket of a folder has no comments: its people read the journal.
    let has_place = !matches!(report.ticket, TicketKey::Folder { .. });
    if has_place && kind.notice_place() != NoticePlace::Nowhere {
        effects.push(Box::new(WriteComment {
            thread: kind.thread(&report.ticket),
        }));
    }
    effects.extend(kind.afterwards(&PlanContext { report, rules }));
    effects
}

/// Returns the effects with their names in the ledger. Later effects of the same kind get a number, because a shared
/// row would leave all but one undone.
pub(crate) fn name_effects(
    effects: &[Box<dyn PlannedEffect>],
) -> impl Iterator<Item = (String, &dyn PlannedEffect)> {
    effects.iter().enumerate().map(|(index, effect)| {
        let same = effects[..index]
            .iter()
            .filter(|earlier| earlier.name() == effect.name());
        let name = match same.count() {
            0 => effect.name().to_owned(),
            earlier => format!("{}.{}", effect.name(), earlier + 1),
        };
        (name, &**effect)
    })
}

/// Records a round event and shows the rounds of work.
fn show_round_event(repository: &RepositoryName, event: RoundEvent) -> Box<dyn PlannedEffect> {
    Box::new(CheckRun {
        repository: Some(repository.clone()),
        event,
    })
}

/// Shows the result of a commit's checks.
fn show_checks_result(
    pull_request: &PullRequestRef,
    head: &CommitId,
    result: ChecksResult,
    page: &str,
) -> Box<dyn PlannedEffect> {
    let (head, page) = (head.clone(), page.to_owned());
    show_round_event(
        &pull_request.repository,
        RoundEvent::Checked { head, result, page },
    )
}

/// Shows a failed try.
fn show_failed_try(pull_request: Option<&PullRequestRef>, reason: &StopReason) -> Box<dyn PlannedEffect> {
    Box::new(CheckRun {
        repository: pull_request.map(|opened| opened.repository.clone()),
        event: RoundEvent::Failed {
            reason: reason.as_str(),
        },
    })
}

/// Returns the place of a report's notification.
pub(crate) fn notice_place(request: &OutboundAction) -> NoticePlace {
    kind(request).notice_place()
}

/// Returns true if the notification of a report always writes the board.
pub(crate) fn writes_board(request: &OutboundAction) -> bool {
    match notice_place(request) {
        NoticePlace::InStatus | NoticePlace::AtStart | NoticePlace::AsProgress => true,
        NoticePlace::Nowhere | NoticePlace::IfAny | NoticePlace::Apart => false,
    }
}

/// Returns the finished work for the status comment.
pub(crate) fn finished_work(request: &OutboundAction, context: &NoticeContext<'_>) -> FinishedWork {
    kind(request).finished_work(context)
}

/// Returns the end of the work.
pub(crate) fn work_end(request: &OutboundAction, context: &NoticeContext<'_>) -> Option<WorkEnd> {
    kind(request).work_end(context)
}

/// Returns the text of a report, as Markdown.
pub(crate) fn render_report(request: &OutboundAction, context: &NoticeContext<'_>) -> String {
    let mut paragraphs = kind(request).render_paragraphs(context);
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// Returns the text of a report as a separate comment.
pub(crate) fn render_comment(request: &OutboundAction, context: &NoticeContext<'_>) -> String {
    message::sign_text(&render_report(request, context), context.run)
}

/// Returns the receipt after all effects.
pub(crate) fn build_receipt(
    report: &OutboundRequest,
    rules: &RepositoryRules,
    receipts: &EffectReceipts,
) -> OutboundReceipt {
    kind(&report.request).receipt(receipts, &PlanContext { report, rules })
}

#[cfg(test)]
mod sample_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wording_tests;
