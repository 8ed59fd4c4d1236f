//! Sets the choices of a triage: labels, type, priority, fields of a project, and the link to a duplicate.

use async_trait::async_trait;
use domain::{RepositoryName, SecretPlace, TicketKey, TriageRules};
use github::{GitHubProject, ProjectItem};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    receipt::{DuplicateLink, EffectReceipts, TriageWish, UnsetChoice, UnsetReason},
};

/// Adds labels to the ticket. Existing labels stay.
#[derive(Debug)]
pub(crate) struct AddLabels {
    pub(crate) ticket: TicketKey,
    pub(crate) labels: Vec<String>,
}

#[async_trait]
impl OutboundEffect for AddLabels {
    type Output = ();

    fn name(&self) -> &'static str {
        "add_labels"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let checked = self
            .labels
            .iter()
            .map(|label| ClearedText::by_the_model(label.clone(), SecretPlace::Label))
            .collect::<Result<Vec<_>, _>>()?;
        outside.label(&self.ticket, &checked).await?;
        tracing::info!(ticket = %self.ticket, labels = self.labels.len(), "ticket labeled");
        Ok(())
    }
}

/// Sets the type of a GitHub issue without one. A Jira issue always has a type, so it changes only where the rules
/// allow it; elsewhere the comment suggests the type.
#[derive(Debug)]
pub(crate) struct SetIssueType {
    pub(crate) ticket: TicketKey,
    pub(crate) name: String,
}

#[async_trait]
impl OutboundEffect for SetIssueType {
    type Output = Vec<UnsetChoice>;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "set_issue_type"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let current = self.current(outside).await?;
        let is_it = current.is_some_and(|name| name.eq_ignore_ascii_case(&self.name));
        Ok(is_it.then(Vec::new))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let wish = TriageWish::Type {
            name: self.name.clone(),
        };
        let changes = asked.rules.is_some_and(|rules| rules.triage.change_jira_type);
        let set = match &self.ticket {
            TicketKey::Jira { .. } if !changes => {
                let why = UnsetReason::Suggested;
                return Ok(vec![UnsetChoice { wish, why }]);
            }
            TicketKey::Jira { .. } => {
                let set = outside.jira.set_issue_type(&self.ticket, &self.name).await;
                set.map_err(EffectError::from)
            }
            TicketKey::GitHub { repository, number } => {
                if let Some(current) = self.current(outside).await? {
                    let why = UnsetReason::Has { current };
                    return Ok(vec![UnsetChoice { wish, why }]);
                }
                let github = &outside.github;
                let set = github
                    .issues()
                    .set_issue_type(repository, *number, &self.name)
                    .await;
                set.map_err(EffectError::from)
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return Ok(Vec::new()),
        };
        Ok(UnsetChoice::when_refused(set, wish)?.into_iter().collect())
    }
}

impl SetIssueType {
    async fn current(&self, outside: &OutboundClients) -> Result<Option<String>, EffectError> {
        Ok(match &self.ticket {
            TicketKey::Jira { .. } => Some(outside.jira.sorted(&self.ticket).await?.issue_type),
            TicketKey::GitHub { repository, number } => {
                outside.github.issues().issue_type(repository, *number).await?
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => None,
        })
    }
}

/// Sets the priority of a Jira issue, or the priority label of a GitHub issue in place of other priority labels.
#[derive(Debug)]
pub(crate) struct SetPriority {
    pub(crate) ticket: TicketKey,
    pub(crate) name: String,
}

#[async_trait]
impl OutboundEffect for SetPriority {
    type Output = Vec<UnsetChoice>;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "set_priority"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let TicketKey::Jira { .. } = &self.ticket else {
            return Ok(None);
        };
        let current = outside.jira.sorted(&self.ticket).await?.priority;
        Ok(current.eq_ignore_ascii_case(&self.name).then(Vec::new))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let set = match (&self.ticket, asked.rules) {
            (TicketKey::Jira { .. }, _) => {
                let set = outside.jira.set_priority(&self.ticket, &self.name).await;
                set.map_err(EffectError::from)
            }
            (TicketKey::GitHub { .. }, Some(rules)) => self.label(outside, &rules.triage).await,
            (TicketKey::GitHub { .. }, None)
            | (TicketKey::Folder { .. } | TicketKey::Discussion { .. }, _) => {
                return Ok(Vec::new());
            }
        };
        let wish = TriageWish::Priority {
            name: self.name.clone(),
        };
        Ok(UnsetChoice::when_refused(set, wish)?.into_iter().collect())
    }
}

impl SetPriority {
    async fn label(&self, outside: &OutboundClients, rules: &TriageRules) -> Result<(), EffectError> {
        let (TicketKey::GitHub { repository, number }, Some(label)) =
            (&self.ticket, rules.label_of(&self.name))
        else {
            return Ok(());
        };
        let others = rules.priorities.iter().filter(|other| **other != self.name);
        for other in others.filter_map(|other| rules.label_of(other)) {
            outside
                .github
                .issues()
                .remove_label(repository, *number, &other)
                .await?;
        }
        let label = ClearedText::by_the_model(label.clone(), SecretPlace::Label)?;
        outside.label(&self.ticket, &[label]).await
    }
}

/// Adds an issue to a GitHub project and sets fields of it. A value replaces the previous one.
#[derive(Debug)]
pub(crate) struct SetProjectFields {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
    pub(crate) owner: String,
    pub(crate) project: u64,
    /// Pairs of field name and value.
    pub(crate) values: Vec<(String, String)>,
}

#[async_trait]
impl OutboundEffect for SetProjectFields {
    type Output = Vec<UnsetChoice>;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "set_project_fields"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Issue(&self.repository, self.number)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let wish = TriageWish::Project {
            owner: self.owner.clone(),
            number: self.project,
        };
        if !outside.github.projects().sees_projects(&self.repository) {
            let why = UnsetReason::NoToken;
            return Ok(vec![UnsetChoice { wish, why }]);
        }
        match self.put(outside).await {
            Ok((project, item)) => self.set(outside, &project, &item).await,
            Err(trouble) => Ok(UnsetChoice::when_refused(Err(trouble), wish)?
                .into_iter()
                .collect()),
        }
    }
}

impl SetProjectFields {
    async fn put(&self, outside: &OutboundClients) -> Result<(GitHubProject, ProjectItem), EffectError> {
        let (github, repository) = (&outside.github, &self.repository);
        let project = github
            .projects()
            .project(repository, &self.owner, self.project)
            .await?;
        let item = github
            .projects()
            .put_into_project(repository, self.number, &project)
            .await?;
        Ok((project, item))
    }

    /// Sets all fields. A field that cannot be set does not prevent the others.
    async fn set(
        &self,
        outside: &OutboundClients,
        project: &GitHubProject,
        item: &ProjectItem,
    ) -> Result<Vec<UnsetChoice>, EffectError> {
        let mut left = Vec::new();
        for (name, value) in &self.values {
            let wish = TriageWish::Field {
                name: name.clone(),
                value: value.clone(),
            };
            let Some(field) = project.field(name) else {
                let why = UnsetReason::NoField;
                left.push(UnsetChoice { wish, why });
                continue;
            };
            let Some(known) = field.value(value) else {
                let why = UnsetReason::NoValue;
                left.push(UnsetChoice { wish, why });
                continue;
            };
            let github = &outside.github;
            let set = github
                .projects()
                .set_project_field(&self.repository, item, field, &known);
            let set = set.await.map_err(EffectError::from);
            left.extend(UnsetChoice::when_refused(set, wish)?);
        }
        tracing::info!(repository = %self.repository, number = self.number, project = self.project, "issue is in the project");
        Ok(left)
    }
}

/// Adds a Jira link such as "duplicates" to another issue of the same site. For GitHub issues, the comment that names
/// the other issue is the link.
#[derive(Debug)]
pub(crate) struct LinkIssues {
    pub(crate) issue: TicketKey,
    /// Name of the link type.
    pub(crate) link_type: String,
    /// Key of the other issue, as people write it.
    pub(crate) to: String,
}

/// Output of the effect.
#[derive(Debug)]
pub(crate) enum LinkOutcome {
    /// The issues are linked.
    Linked(DuplicateLink),
    /// The link is left to people.
    Left(UnsetChoice),
}

impl From<LinkOutcome> for EffectReceipts {
    fn from(outcome: LinkOutcome) -> Self {
        match outcome {
            LinkOutcome::Linked(link) => link.into(),
            LinkOutcome::Left(choice) => choice.into(),
        }
    }
}

#[async_trait]
impl OutboundEffect for LinkIssues {
    type Output = LinkOutcome;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "link_issues"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.issue)
    }

    /// Done if any link between both issues exists, of any type and author.
    async fn find_result(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let known = outside.jira.sorted(&self.issue).await?.links;
        Ok(known
            .iter()
            .any(|(key, _)| *key == self.to)
            .then(|| self.linked()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let wish = TriageWish::Link { to: self.to.clone() };
        let known = outside.jira.link_type(&self.issue, &self.link_type).await?;
        let Some(link_type) = known else {
            let name = self.link_type.clone();
            let why = UnsetReason::NoLinkType { name };
            return Ok(LinkOutcome::Left(UnsetChoice { wish, why }));
        };
        let linked = outside.jira.link(&self.issue, &link_type, &self.to).await;
        if let Some(left) = UnsetChoice::when_refused(linked.map_err(EffectError::from), wish)? {
            return Ok(LinkOutcome::Left(left));
        }
        tracing::info!(ticket = %self.issue, to = self.to, "tickets linked");
        Ok(self.linked())
    }
}

impl LinkIssues {
    fn linked(&self) -> LinkOutcome {
        LinkOutcome::Linked(DuplicateLink(self.to.clone()))
    }
}

impl UnsetChoice {
    /// Returns the wish as left to people if it is refused for good; `None` if it is set.
    ///
    /// # Errors
    /// Trouble that may pass, so that the effect is retried.
    pub(crate) fn when_refused(
        set: Result<(), EffectError>,
        wish: TriageWish,
    ) -> Result<Option<Self>, EffectError> {
        let detail = match set {
            Ok(()) => return Ok(None),
            Err(EffectError::Refused(refusal)) => refusal.words(),
            Err(EffectError::Unwritable(refused)) => refused.detail,
            Err(
                EffectError::Failed(detail)
                | EffectError::Missing(detail)
                | EffectError::Denied { detail, .. }
                | EffectError::Credentials { detail, .. },
            ) => detail,
            Err(
                passing @ (EffectError::Later { .. }
                | EffectError::HeldBack { .. }
                | EffectError::Queued(_)
                | EffectError::DiskFull(_)
                | EffectError::Unknown(_)
                | EffectError::Ledger(_)
                | EffectError::HandBack(_)
                | EffectError::Shutdown),
            ) => return Err(passing),
        };
        tracing::warn!(?wish, %detail, "not set: it is refused");
        let why = UnsetReason::Refused { detail };
        Ok(Some(Self { wish, why }))
    }
}
