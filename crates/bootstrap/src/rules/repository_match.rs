//! Assignment of a ticket to one of the repositories that share its Jira project.

use domain::{RepositoryChoice, RepositoryRules, SkipReason, TicketMarks};

/// Repositories that a ticket may belong to.
#[derive(Clone, Debug)]
pub struct RepositoryMatch<'a> {
    candidates: Vec<&'a RepositoryRules>,
    is_clear: bool,
}

impl<'a> RepositoryMatch<'a> {
    /// Chooses the one repository whose components, labels or field the ticket has. Without one, the
    /// repository without such selectors.
    pub(super) fn among(covering: Vec<&'a RepositoryRules>, marks: TicketMarks<'_>) -> Self {
        let selecting = |rules: &&&RepositoryRules| rules.jira.selects(marks);
        let selected: Vec<&RepositoryRules> = covering.iter().filter(selecting).copied().collect();
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

    /// Rules of the repository that the ticket belongs to; `None` if there is no single one.
    pub fn rules(&self) -> Option<&'a RepositoryRules> {
        self.candidates.first().copied().filter(|_| self.is_clear)
    }

    /// Rules of all repositories that the ticket may belong to.
    pub fn candidates(&self) -> impl Iterator<Item = &'a RepositoryRules> {
        self.candidates.iter().copied()
    }

    /// Reason to skip the ticket and the possible choices, if several repositories fit.
    pub fn problem(&self) -> Option<SkipReason> {
        let choice = |rules: &&RepositoryRules| {
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
