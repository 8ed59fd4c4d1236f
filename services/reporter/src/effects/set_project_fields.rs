//! Adds an issue to a project and sets its fields there.

use async_trait::async_trait;
use domain::RepositoryName;
use github::{GitHubProject, ProjectItem};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    receipt::{TriageWish, UnsetChoice, UnsetReason},
};

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

    fn name(&self) -> &'static str {
        "set_project_fields"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Issue(&self.repository, self.number)
    }

    fn only_tells(&self) -> bool {
        true
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
        if !outside.github.sees_projects(&self.repository) {
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
        let project = github.project(repository, &self.owner, self.project).await?;
        let item = github.put_into_project(repository, self.number, &project).await?;
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
            let set = github.set_project_field(&self.repository, item, field, &known);
            let set = set.await.map_err(EffectError::from);
            left.extend(UnsetChoice::when_refused(set, wish)?);
        }
        tracing::info!(repository = %self.repository, number = self.number, project = self.project, "issue is in the project");
        Ok(left)
    }
}
