//! Adds an issue to a project and sets its fields there.

use async_trait::async_trait;
use domain::RepositoryName;
use github::{Project, ProjectItem};

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{
    made::{Left, Made, Why, Wish},
    trouble::Trouble,
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
impl Effect for SetProjectFields {
    fn name(&self) -> &'static str {
        "set_project_fields"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Issue(&self.repository, self.number)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        let wish = Wish::Project {
            owner: self.owner.clone(),
            number: self.project,
        };
        if !outside.github.sees_projects(&self.repository) {
            return Ok(Left::because(wish, Why::NoToken));
        }
        match self.put(outside).await {
            Ok((project, item)) => self.set(outside, &project, &item).await,
            Err(trouble) => Left::when_refused(Err(trouble), wish),
        }
    }
}

impl SetProjectFields {
    async fn put(&self, outside: &Outside) -> Result<(Project, ProjectItem), Trouble> {
        let (github, repository) = (&outside.github, &self.repository);
        let project = github.project(repository, &self.owner, self.project).await?;
        let item = github.put_into_project(repository, self.number, &project).await?;
        Ok((project, item))
    }

    /// Sets all fields. A field that cannot be set does not prevent the others.
    async fn set(&self, outside: &Outside, project: &Project, item: &ProjectItem) -> Result<Made, Trouble> {
        let mut made = Made::default();
        for (name, value) in &self.values {
            let wish = Wish::Field {
                name: name.clone(),
                value: value.clone(),
            };
            let Some(field) = project.field(name) else {
                made.merge(Left::because(wish, Why::NoField));
                continue;
            };
            let Some(known) = field.value(value) else {
                made.merge(Left::because(wish, Why::NoValue));
                continue;
            };
            let github = &outside.github;
            let set = github.set_project_field(&self.repository, item, field, &known);
            let set = set.await.map_err(Trouble::from);
            made.merge(Left::when_refused(set, wish)?);
        }
        tracing::info!(repository = %self.repository, number = self.number, project = self.project, "issue is in the project");
        Ok(made)
    }
}
