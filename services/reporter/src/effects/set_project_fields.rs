//! Adds an issue to a project and sets its fields there.

use async_trait::async_trait;
use domain::RepositoryName;
use github::{GitHubProject, ProjectItem};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    effect_output::{EffectOutput, TriageWish, UnsetChoice, UnsetReason},
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
    ) -> Result<EffectOutput, EffectError> {
        let wish = TriageWish::Project {
            owner: self.owner.clone(),
            number: self.project,
        };
        if !outside.github.sees_projects(&self.repository) {
            return Ok(UnsetChoice::because(wish, UnsetReason::NoToken));
        }
        match self.put(outside).await {
            Ok((project, item)) => self.set(outside, &project, &item).await,
            Err(trouble) => UnsetChoice::when_refused(Err(trouble), wish),
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
    ) -> Result<EffectOutput, EffectError> {
        let mut made = EffectOutput::default();
        for (name, value) in &self.values {
            let wish = TriageWish::Field {
                name: name.clone(),
                value: value.clone(),
            };
            let Some(field) = project.field(name) else {
                made.merge(UnsetChoice::because(wish, UnsetReason::NoField));
                continue;
            };
            let Some(known) = field.value(value) else {
                made.merge(UnsetChoice::because(wish, UnsetReason::NoValue));
                continue;
            };
            let github = &outside.github;
            let set = github.set_project_field(&self.repository, item, field, &known);
            let set = set.await.map_err(EffectError::from);
            made.merge(UnsetChoice::when_refused(set, wish)?);
        }
        tracing::info!(repository = %self.repository, number = self.number, project = self.project, "issue is in the project");
        Ok(made)
    }
}
