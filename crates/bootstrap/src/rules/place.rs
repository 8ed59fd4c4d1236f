//! Which of the repositories that share a Jira project a ticket belongs to.

use domain::{RepositoryChoice, Rules, SkipReason, TicketMarks};

/// The repositories that a ticket may belong to.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    candidates: Vec<&'a Rules>,
    is_clear: bool,
}

impl<'a> Place<'a> {
    /// The one repository whose components, labels or field the ticket has; without such a one, that which names none.
    pub(super) fn among(covering: Vec<&'a Rules>, marks: TicketMarks<'_>) -> Self {
        let selecting = |rules: &&&Rules| rules.jira.selects(marks);
        let selected: Vec<&Rules> = covering.iter().filter(selecting).copied().collect();
        let rest = covering.iter().find(|rules| !rules.jira.is_selective());
        match (selected.as_slice(), rest) {
            ([one], _) | ([], Some(one)) => Self {
                candidates: vec![*one],
                is_clear: true,
            },
            ([], None) => Self {
                is_clear: covering.is_empty(),
                candidates: covering,
            },
            (_, _) => Self {
                candidates: selected,
                is_clear: false,
            },
        }
    }

    /// The rules of the repository that it belongs to; `None` when there are none, or it is not clear.
    pub fn rules(&self) -> Option<&'a Rules> {
        self.candidates.first().copied().filter(|_| self.is_clear)
    }

    /// Every repository that it may belong to.
    pub fn candidates(&self) -> impl Iterator<Item = &'a Rules> {
        self.candidates.iter().copied()
    }

    /// What to tell people when it is not clear.
    pub fn problem(&self) -> Option<SkipReason> {
        let choice = |rules: &&Rules| {
            Some(RepositoryChoice {
                repository: rules.repository().ok()?.to_string(),
                components: rules.jira.components.clone(),
                labels: rules.jira.labels.clone(),
                field: rules.jira.field.clone(),
            })
        };
        (!self.is_clear).then(|| SkipReason::UnclearRepository {
            choices: self.candidates.iter().filter_map(choice).collect(),
        })
    }
}
