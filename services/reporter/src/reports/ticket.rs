//! Reports of a ticket: triage, issues of a plan, replies, reactions, and requests that cause no work.

use domain::{
    PullRequestRef, ReactionSubject, SkipReason, TicketDeparture, TicketKey, TriageChoices,
    report::{CostReply, HelpReply, OpenIssues, QuestionAnswered, ReactionRequest, TicketTriaged},
};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    board::WorkEnd,
    effects::{
        self, AddLabels, AddSubIssue, BeginWork, CommentThread, CreateIssue, LinkIssues, SetIssueType,
        SetPriority, SetProjectFields,
    },
    message,
    receipt::{BegunWork, DuplicateLink},
};

/// Report of a triage: sets its choices, and notifies people about choices that could not be set and about a possible
/// duplicate.
impl ReportKind for TicketTriaged {
    /// Sets the choices that the current rules permit.
    fn effects(&self, asked: &PlanContext<'_>) -> EffectList {
        let choices = asked.rules.triage.choices(&asked.report.ticket);
        let mut effects: EffectList = vec![Box::new(plan_labels(self, asked))];
        effects.extend(issue_type(self, asked, &choices).map(|effect| Box::new(effect) as _));
        effects.extend(plan_priority(self, asked, &choices).map(|effect| Box::new(effect) as _));
        effects.extend(plan_fields(self, asked, &choices).map(|effect| Box::new(effect) as _));
        effects.extend(plan_link(self, asked).map(|effect| Box::new(effect) as _));
        effects
    }

    /// The set values are visible on the ticket. A possible duplicate needs a person's decision, so it is a separate
    /// comment.
    fn notice_place(&self) -> NoticePlace {
        match self.duplicate_of {
            Some(_) => NoticePlace::Apart,
            None => NoticePlace::IfAny,
        }
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        let is_linked = context.receipts.last::<DuplicateLink>().is_some();
        let repeats = self.duplicate_of.as_deref();
        let mut paragraphs: Vec<String> = repeats
            .map(|of| message::render_duplicate(of, is_linked))
            .into_iter()
            .collect();
        paragraphs.extend(message::render_unset_choices(context.receipts.all()));
        paragraphs
    }
}

fn plan_labels(triaged: &TicketTriaged, asked: &PlanContext<'_>) -> AddLabels {
    let mut labels = triaged.labels.clone();
    let of_duplicates = &asked.rules.triage.duplicate_label;
    if triaged.duplicate_of.is_some() && !of_duplicates.is_empty() {
        labels.push(of_duplicates.clone());
    }
    AddLabels {
        ticket: asked.report.ticket.clone(),
        labels,
    }
}

fn issue_type(
    triaged: &TicketTriaged,
    asked: &PlanContext<'_>,
    choices: &TriageChoices,
) -> Option<SetIssueType> {
    let name = triaged
        .issue_type
        .as_ref()
        .filter(|name| choices.types.contains(name))?;
    Some(SetIssueType {
        ticket: asked.report.ticket.clone(),
        name: name.clone(),
    })
}

fn chosen_priority<'a>(triaged: &'a TicketTriaged, choices: &TriageChoices) -> Option<&'a String> {
    triaged
        .priority
        .as_ref()
        .filter(|name| choices.priorities.contains(name))
}

fn plan_priority(
    triaged: &TicketTriaged,
    asked: &PlanContext<'_>,
    choices: &TriageChoices,
) -> Option<SetPriority> {
    let name = chosen_priority(triaged, choices)?;
    let ticket = &asked.report.ticket;
    let has_label = !asked.rules.triage.priority_label.is_empty();
    (has_label || matches!(ticket, TicketKey::Jira { .. })).then(|| SetPriority {
        ticket: ticket.clone(),
        name: name.clone(),
    })
}

fn plan_fields(
    triaged: &TicketTriaged,
    asked: &PlanContext<'_>,
    choices: &TriageChoices,
) -> Option<SetProjectFields> {
    let TicketKey::GitHub { repository, number } = &asked.report.ticket else {
        return None;
    };
    let project = asked.rules.triage.project.as_ref()?;
    // The planner sends any field and value; only those that the rules list are set.
    let is_allowed = |(field, value): &(&String, &String)| {
        let allowed = choices.fields.get(*field);
        allowed.is_some_and(|values| values.contains(value))
    };
    let named = triaged.fields.iter().filter(is_allowed);
    let mut values: Vec<(String, String)> = named
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    let of_priority = chosen_priority(triaged, choices).filter(|_| !project.priority_field.is_empty());
    values.extend(of_priority.map(|name| (project.priority_field.clone(), name.clone())));
    Some(SetProjectFields {
        repository: repository.clone(),
        number: *number,
        owner: project.owner.clone(),
        project: project.number,
        values,
    })
}

fn plan_link(triaged: &TicketTriaged, asked: &PlanContext<'_>) -> Option<LinkIssues> {
    let (ticket, link_type) = (&asked.report.ticket, &asked.rules.triage.link_type);
    let is_jira = matches!(ticket, TicketKey::Jira { .. });
    let to = triaged
        .duplicate_of
        .as_ref()
        .filter(|to| TicketKey::jira(to).is_ok())?;
    (is_jira && !link_type.is_empty()).then(|| LinkIssues {
        issue: ticket.clone(),
        link_type: link_type.clone(),
        to: to.clone(),
    })
}

/// Report that requests the issues of a plan or of a split.
impl ReportKind for OpenIssues {
    /// Opens all issues before the first link, because a link needs both issues.
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        let opened = self.issues.iter().map(|issue| {
            Box::new(CreateIssue {
                repository: self.repository.clone(),
                issue: issue.clone(),
                of: self.issues.len(),
                parent: self.parent,
            }) as _
        });
        let first_part = usize::from(self.parent.is_none());
        let linked = (first_part..self.issues.len()).map(|part| {
            Box::new(AddSubIssue {
                repository: self.repository.clone(),
                parent: self.parent,
                part,
            }) as _
        });
        opened.chain(linked).collect()
    }

    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        match self.parent {
            Some(_) => message::parts_opened(context.receipts.all()),
            None => message::issues_opened(context.receipts.all()),
        }
    }
}

/// Report of an answered question.
impl ReportKind for QuestionAnswered {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        if self.answer.needs_change {
            vec![Box::new(BeginWork)]
        } else {
            EffectList::new()
        }
    }

    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    /// Returns the thread of the question.
    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        match (&self.question.pull_request, &self.question.comment) {
            (Some(ours), _) => CommentThread::on(ours),
            (
                None,
                Some(ReactionSubject::Discussion {
                    repository,
                    number,
                    comment,
                }),
            ) => CommentThread::Discussion(repository.clone(), *number, comment.clone()),
            (None, _) => CommentThread::of(ticket),
        }
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        let begun = context.receipts.last().map(|BegunWork(job)| *job);
        message::render_answer(&self.question, &self.answer, begun)
    }
}

/// Returns the thread of an order: the pull request that it was given on, or the ticket.
fn find_reply_thread(on: Option<&PullRequestRef>, ticket: &TicketKey) -> CommentThread {
    on.map_or_else(|| CommentThread::of(ticket), CommentThread::on)
}

/// Report of the ways to steer the work, for a person who requested them.
impl ReportKind for HelpReply {
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        find_reply_thread(self.on.as_ref(), ticket)
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        match (&self.meant, self.is_review) {
            (Some(meant), _) => vec![message::render_meant_order(meant)],
            (None, true) => message::render_review_guide(),
            (None, false) => message::render_guide(),
        }
    }
}

/// Report of a ticket's cost, for a person who requested it.
impl ReportKind for CostReply {
    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        find_reply_thread(self.on.as_ref(), ticket)
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_cost(&self.cost)
    }
}

/// Report of a reaction: work has begun, or is done.
impl ReportKind for ReactionRequest {
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        vec![Box::new(effects::AddReaction {
            to: self.to.clone(),
            reaction: self.reaction,
        })]
    }

    fn notice_place(&self) -> NoticePlace {
        NoticePlace::Nowhere
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        Vec::new()
    }
}

/// Report of a ticket that left its place. Its conversation does not accept the text, so the pull request gets it.
impl ReportKind for TicketDeparture {
    fn work_end(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        Some(WorkEnd::Stopped)
    }

    fn render_paragraphs(&self, _: &NoticeContext<'_>) -> Vec<String> {
        message::render_departure(self)
    }
}

/// Report of a request that causes no work.
impl ReportKind for SkipReason {
    /// An unauthorized request is answered where it was made, and the status comment stays unchanged.
    fn notice_place(&self) -> NoticePlace {
        if let Self::MayNotAsk { .. } = self {
            NoticePlace::Apart
        } else {
            NoticePlace::InStatus
        }
    }

    fn thread(&self, ticket: &TicketKey) -> CommentThread {
        let on = if let Self::MayNotAsk { on, .. } = self {
            on.as_ref()
        } else {
            None
        };
        find_reply_thread(on, ticket)
    }

    fn work_end(&self, _: &NoticeContext<'_>) -> Option<WorkEnd> {
        match self {
            // The run still waits for the decision, or the pull request for its checks.
            Self::MayNotAsk { .. }
            | Self::UnclearDecision { .. }
            | Self::ChecksWait { .. }
            | Self::MergeWaits { .. } => None,
            Self::NotAllowed { .. }
            | Self::NoWritePermission { .. }
            | Self::Bot { .. }
            | Self::Phrase { .. }
            | Self::Label { .. }
            | Self::PullRequestExists { .. }
            | Self::StatusLeft { .. }
            | Self::TextChanged { .. }
            | Self::UnclearRepository { .. }
            | Self::NoIssues
            | Self::Unreadable => Some(WorkEnd::Stopped),
        }
    }

    fn render_paragraphs(&self, context: &NoticeContext<'_>) -> Vec<String> {
        message::render_skip(self, &context.try_again())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::EffectReceipts;

    #[test]
    fn unclear_decision_leaves_end_of_run() {
        let ticket = TicketKey::jira("ENG-12").unwrap();
        let context = NoticeContext {
            receipts: &EffectReceipts::default(),
            unmoved: None,
            ticket: &ticket,
            run: None,
            again: "To Do",
        };
        let unclear = SkipReason::UnclearDecision {
            heads: vec!["0123456789ab".to_owned()],
        };
        assert_eq!(unclear.work_end(&context), None, "the run waits on");
        assert_eq!(SkipReason::NoIssues.work_end(&context), Some(WorkEnd::Stopped));
    }
}
