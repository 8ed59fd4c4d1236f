//! Show on an issue of GitHub that its work has begun.

use async_trait::async_trait;
use domain::RepositoryName;

use super::{Asked, Effect, Outside};
use crate::{made::Made, trouble::Trouble};

/// React with eyes to an issue: whoever asked for work sees in their list that it was seen.
#[derive(Debug)]
pub(crate) struct Eyes {
    pub(crate) repository: RepositoryName,
    pub(crate) number: u64,
}

#[async_trait]
impl Effect for Eyes {
    fn name(&self) -> &'static str {
        "eyes"
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        outside
            .github
            .react_with_eyes(&self.repository, self.number)
            .await?;
        Ok(Made::default())
    }
}
