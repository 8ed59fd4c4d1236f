//! Report of a triage: sets its choices, and notifies people about choices that could not be set and about a possible
//! duplicate.

use domain::{TicketKey, TriageChoices, report::Triaged};

use super::{Asked, Effects, Heard, Kind, Told};
use crate::{
    effects::{AddLabels, LinkIssues, SetIssueType, SetPriority, SetProjectFields},
    message,
};

impl Kind for Triaged {
    /// Sets the choices that the current rules permit.
    fn effects(&self, asked: &Asked<'_>) -> Effects {
        let choices = asked.rules.triage.choices(&asked.report.ticket);
        let mut effects: Effects = vec![Box::new(labels(self, asked))];
        effects.extend(issue_type(self, asked, &choices).map(|effect| Box::new(effect) as _));
        effects.extend(priority(self, asked, &choices).map(|effect| Box::new(effect) as _));
        effects.extend(fields(self, asked, &choices).map(|effect| Box::new(effect) as _));
        effects.extend(link(self, asked).map(|effect| Box::new(effect) as _));
        effects
    }

    /// The set values are visible on the ticket. A possible duplicate needs a person's decision, so it is a separate
    /// comment.
    fn heard(&self) -> Heard {
        match self.duplicate_of {
            Some(_) => Heard::Apart,
            None => Heard::IfAny,
        }
    }

    fn words(&self, told: &Told<'_>) -> Vec<String> {
        let is_linked = told.made.linked.is_some();
        let repeats = self.duplicate_of.as_deref();
        let mut paragraphs: Vec<String> = repeats.map(|of| message::duplicate(of, is_linked)).into_iter().collect();
        paragraphs.extend(message::left(&told.made.left));
        paragraphs
    }
}

fn labels(triaged: &Triaged, asked: &Asked<'_>) -> AddLabels {
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

fn issue_type(triaged: &Triaged, asked: &Asked<'_>, choices: &TriageChoices) -> Option<SetIssueType> {
    let name = triaged.issue_type.as_ref().filter(|name| choices.types.contains(name))?;
    Some(SetIssueType {
        ticket: asked.report.ticket.clone(),
        name: name.clone(),
    })
}

fn chosen_priority<'a>(triaged: &'a Triaged, choices: &TriageChoices) -> Option<&'a String> {
    triaged.priority.as_ref().filter(|name| choices.priorities.contains(name))
}

fn priority(triaged: &Triaged, asked: &Asked<'_>, choices: &TriageChoices) -> Option<SetPriority> {
    let name = chosen_priority(triaged, choices)?;
    let ticket = &asked.report.ticket;
    let has_label = !asked.rules.triage.priority_label.is_empty();
    (has_label || matches!(ticket, TicketKey::Jira { .. })).then(|| SetPriority {
        ticket: ticket.clone(),
        name: name.clone(),
    })
}

fn fields(triaged: &Triaged, asked: &Asked<'_>, choices: &TriageChoices) -> Option<SetProjectFields> {
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
    let mut values: Vec<(String, String)> = named.map(|(field, value)| (field.clone(), value.clone())).collect();
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

fn link(triaged: &Triaged, asked: &Asked<'_>) -> Option<LinkIssues> {
    let (ticket, link_type) = (&asked.report.ticket, &asked.rules.triage.link_type);
    let is_jira = matches!(ticket, TicketKey::Jira { .. });
    let to = triaged.duplicate_of.as_ref().filter(|to| TicketKey::jira(to).is_ok())?;
    (is_jira && !link_type.is_empty()).then(|| LinkIssues {
        issue: ticket.clone(),
        link_type: link_type.clone(),
        to: to.clone(),
    })
}
