//! Put the labels of the rules on a pull request of ours.

use async_trait::async_trait;

use super::{Asked, Effect, Outside};
use crate::{made::Made, message, trouble::Trouble};

/// Put these labels on the pull request of the report; those that are there stay.
#[derive(Debug)]
pub(crate) struct LabelPullRequest {
    /// As an operator wrote them.
    pub(crate) labels: Vec<String>,
}

#[async_trait]
impl Effect for LabelPullRequest {
    fn name(&self) -> &'static str {
        "label_pull_request"
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let Some(pull_request) = &asked.made.pull_request else {
            return Err(Trouble::Failed(message::nothing_to_link()));
        };
        let (repository, number) = (&pull_request.repository, pull_request.number);
        outside
            .github
            .add_labels(repository, number, &self.labels)
            .await?;
        Ok(Made::default())
    }
}
