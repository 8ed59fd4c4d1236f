//! The kinds of reports, one file each: what is done for it under the rules, what people hear, and what the asker gets. Pure.

use std::fmt::Debug;

use domain::{
    Assign, CommitId, PullRequestRef, Reactable, Reaction, Receipt, Report, ReportRequest, RepositoryName,
    Rules, RunId, StopReason, TicketKey,
};

use crate::{
    board::{Lasting, Mark},
    effects::{
        self, AssignTicket, CheckRun, CloseIssue, Comment, Effect, React, Thread, Transition, Unassign,
    },
    made::Made,
    message,
    rounds::{Checked, RoundEvent},
};

/// What workflows call the last status, where the rules name none that can be reached.
const USUAL: [&str; 5] = ["done", "closed", "complete", "completed", "resolved"];

/// Effects in their order.
pub(crate) type Effects = Vec<Box<dyn Effect>>;

/// A kind of report.
pub(crate) trait Kind: Debug {
    /// What is done, in order, before people hear of it.
    fn effects(&self, _: &Asked<'_>) -> Effects {
        Effects::new()
    }

    /// What is done after people heard of it.
    fn afterwards(&self, _: &Asked<'_>) -> Effects {
        Effects::new()
    }

    /// Where people hear of it.
    fn heard(&self) -> Heard {
        Heard::InStatus
    }

    /// The thread where they do.
    fn thread(&self, ticket: &TicketKey) -> Thread {
        Thread::of(ticket)
    }

    /// What they hear, as paragraphs of Markdown; empty ones are left out.
    fn words(&self, told: &Told<'_>) -> Vec<String>;

    /// How the work ended with it; absent while it goes on.
    fn mark(&self, _: &Told<'_>) -> Option<Mark> {
        None
    }

    /// What stays in the status comment below what is said later.
    fn lasting(&self, _: &Told<'_>) -> Lasting {
        Lasting::default()
    }

    /// What the asker gets when everything is done.
    fn receipt(&self, _: Made, _: &Asked<'_>) -> Receipt {
        Receipt::Told
    }
}

/// Whether a report that is heard only where there is something to say has nothing to say.
pub(crate) fn is_silent(asked: &effects::Asked<'_>) -> bool {
    let (ticket, request) = (&asked.report.ticket, &asked.report.request);
    let told = Told {
        made: asked.made,
        ticket,
        run: asked.report.run.as_ref(),
        again: "",
    };
    heard(request) == Heard::IfAny && words(request, &told).is_empty()
}

/// Where people hear of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nowhere.
    Nowhere,
    /// In the ticket's one status comment.
    InStatus,
    /// There too, but only where there is something to say.
    IfAny,
    /// In the status comment, which begins anew.
    AtStart,
    /// In the status comment's line about how far the work is.
    AsProgress,
    /// In a comment of its own: it calls a person, and an edited comment would notify nobody on GitHub.
    Apart,
}

/// A report and the rules that govern it.
pub(crate) struct Asked<'a> {
    pub(crate) report: &'a Report,
    pub(crate) rules: &'a Rules,
}

/// What is known when people are told.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    /// What the effects of the report made.
    pub(crate) made: &'a Made,
    pub(crate) ticket: &'a TicketKey,
    pub(crate) run: Option<&'a RunId>,
    /// The status that asks for work.
    pub(crate) again: &'a str,
}

impl Told<'_> {
    /// How to ask for the work once more.
    fn try_again(&self) -> String {
        message::try_again(self.ticket, self.again, self.made.moved.as_ref())
    }
}

impl Asked<'_> {
    /// One effect that a Jira issue alone can have.
    fn on_jira<E: Effect + 'static>(&self, effect: impl FnOnce(TicketKey) -> E) -> Option<Box<dyn Effect>> {
        let ticket = &self.report.ticket;
        matches!(ticket, TicketKey::Jira { .. }).then(|| Box::new(effect(ticket.clone())) as Box<dyn Effect>)
    }

    /// The ticket goes to the account that the rules name, if they name one and the ticket can have one.
    fn assigned(&self) -> Option<Box<dyn Effect>> {
        let can_have = matches!(
            self.report.ticket,
            TicketKey::Jira { .. } | TicketKey::GitHub { .. }
        );
        let ticket = self.report.ticket.clone();
        let is_wanted = can_have && self.rules.agent.assign != Assign::Nobody;
        is_wanted.then(|| Box::new(AssignTicket { ticket }) as Box<dyn Effect>)
    }

    /// The ticket is given back, if it can be given to anybody.
    fn given_back(&self, from_anybody: bool) -> Option<Box<dyn Effect>> {
        let ticket = self.report.ticket.clone();
        let has_assignee = !matches!(ticket, TicketKey::Folder { .. });
        has_assignee.then(|| Box::new(Unassign { ticket, from_anybody }) as Box<dyn Effect>)
    }

    /// Whoever looks at the list of issues sees that it is done.
    fn celebrated(&self) -> Option<Box<dyn Effect>> {
        let TicketKey::GitHub { repository, number } = &self.report.ticket else {
            return None;
        };
        let to = Reactable::issue(repository, *number);
        let reaction = Reaction::Rocket;
        Some(Box::new(React { to, reaction }))
    }

    /// The end of the ticket: its move to its last status at Jira, closed at GitHub.
    fn done(&self) -> Option<Box<dyn Effect>> {
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

    /// The ticket's move to the first of these statuses that can be reached; none for those that are not configured.
    fn moved(&self, goals: &[&str]) -> Option<Box<dyn Effect>> {
        let configured = goals.iter().filter(|goal| !goal.is_empty());
        let goals: Vec<String> = configured.map(|goal| (*goal).to_owned()).collect();
        if goals.is_empty() {
            return None;
        }
        self.on_jira(|issue| Transition { issue, goals })
    }
}

/// Each kind of report is a module that implements [`Kind`] for the type of its request.
macro_rules! reports {
    ($($module:ident: $variant:ident),+ $(,)?) => {
        $(mod $module;)+

        fn kind(request: &ReportRequest) -> &dyn Kind {
            match request {
                $(ReportRequest::$variant(report) => report,)+
            }
        }
    };
}

reports! {
    work_started: WorkStarted,
    progressed: Progressed,
    react: React,
    effort_forecast: EffortForecast,
    push_branch: PushBranch,
    work_delivered: WorkDelivered,
    open_pull_request: OpenPullRequest,
    checks_passed: ChecksPassed,
    checks_absent: ChecksAbsent,
    checks_failed: ChecksFailed,
    rerun_checks: RerunChecks,
    checks_repaired: ChecksRepaired,
    review_addressed: ReviewAddressed,
    pull_request_reviewed: PullRequestReviewed,
    review_awaited: ReviewAwaited,
    pushed_by_others: PushedByOthers,
    question_answered: QuestionAnswered,
    cost_told: CostTold,
    merged: Merged,
    merged_elsewhere: MergedElsewhere,
    closed: Closed,
    reopened: Reopened,
    decision_needed: DecisionNeeded,
    plan_proposed: PlanProposed,
    question_asked: QuestionAsked,
    rehearse: Rehearse,
    run_stopped: RunStopped,
    retry_scheduled: RetryScheduled,
    quarantined: Quarantined,
    unreadable: Unreadable,
    triaged: Triaged,
    open_issues: OpenIssues,
    discussed: Discussed,
    skipped: Skipped,
}

/// The effects of a report, in order: what is done, then what is told.
pub(crate) fn plan(report: &Report, rules: &Rules) -> Effects {
    let kind = kind(&report.request);
    let mut effects = kind.effects(&Asked { report, rules });
    // A ticket of a folder has no place for comments: its people read the journal.
    let has_place = !matches!(report.ticket, TicketKey::Folder { .. });
    if has_place && kind.heard() != Heard::Nowhere {
        effects.push(Box::new(Comment {
            thread: kind.thread(&report.ticket),
        }));
    }
    effects.extend(kind.afterwards(&Asked { report, rules }));
    effects
}

/// The effects with the names that they have in the ledger. The second of a kind has another name than the first: they
/// are two things to do, and one row for both would leave one of them undone.
pub(crate) fn named(effects: &[Box<dyn Effect>]) -> impl Iterator<Item = (String, &dyn Effect)> {
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

/// Shows the rounds of work with what is new of them.
fn shows(repository: &RepositoryName, event: RoundEvent) -> Box<dyn Effect> {
    Box::new(CheckRun {
        repository: Some(repository.clone()),
        event,
    })
}

/// Shows what came of the checks of a commit.
fn checked(pull_request: &PullRequestRef, head: &CommitId, result: Checked, page: &str) -> Box<dyn Effect> {
    let (head, page) = (head.clone(), page.to_owned());
    shows(
        &pull_request.repository,
        RoundEvent::Checked { head, result, page },
    )
}

/// Shows that a try failed.
fn failed(pull_request: Option<&PullRequestRef>, reason: &StopReason) -> Box<dyn Effect> {
    Box::new(CheckRun {
        repository: pull_request.map(|opened| opened.repository.clone()),
        event: RoundEvent::Failed {
            reason: reason.as_str(),
        },
    })
}

/// Where people hear of a report.
pub(crate) fn heard(request: &ReportRequest) -> Heard {
    kind(request).heard()
}

/// What stays in the status comment.
pub(crate) fn lasting(request: &ReportRequest, told: &Told<'_>) -> Lasting {
    kind(request).lasting(told)
}

/// How the work ended with it.
pub(crate) fn mark(request: &ReportRequest, told: &Told<'_>) -> Option<Mark> {
    kind(request).mark(told)
}

/// What people hear of a report, as Markdown.
pub(crate) fn words(request: &ReportRequest, told: &Told<'_>) -> String {
    let mut paragraphs = kind(request).words(told);
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// The same as a comment of its own.
pub(crate) fn comment(request: &ReportRequest, told: &Told<'_>) -> String {
    message::signed(&words(request, told), told.run)
}

/// What the asker gets when every effect is done.
pub(crate) fn receipt(report: &Report, rules: &Rules, made: Made) -> Receipt {
    kind(&report.request).receipt(made, &Asked { report, rules })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wording_tests;
