//! Report of a triage: sets its choices, and notifies people about choices that could not be set and about a possible
//! duplicate.

use domain::{TicketKey, TriageChoices, report::TicketTriaged};

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    effects::{AddLabels, LinkIssues, SetIssueType, SetPriority, SetProjectFields},
    message,
    receipt::DuplicateLink,
};

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
    fn heard(&self) -> NoticePlace {
        match self.duplicate_of {
            Some(_) => NoticePlace::Apart,
            None => NoticePlace::IfAny,
        }
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        let is_linked = told.receipts.last::<DuplicateLink>().is_some();
        let repeats = self.duplicate_of.as_deref();
        let mut paragraphs: Vec<String> = repeats
            .map(|of| message::render_duplicate(of, is_linked))
            .into_iter()
            .collect();
        paragraphs.extend(message::render_unset_choices(told.receipts.all()));
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
