//! Calls for the cost of models.

use reqwest::Method;

use super::Client;
use crate::{
    Error,
    types::{SpendQuery, SpendView},
};

impl Client {
    /// Reads the cost of models in a period, from all pages of the answer. Several lines may have the same
    /// names; their amounts have to be added.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn spend(&self, asked: &SpendQuery) -> Result<SpendView, Error> {
        let mut all = self.part_of_spend(asked).await?;
        while let Some(from) = all.next {
            let rest = SpendQuery {
                // The first answer resolves open limits such as "now". Later pages repeat its values, so that
                // all pages cover the same period.
                since: Some(all.since.clone()),
                until: Some(all.until.clone()),
                from: Some(from),
            };
            let part = self.part_of_spend(&rest).await?;
            all.lines.extend(part.lines);
            all.next = part.next;
        }
        Ok(all)
    }

    async fn part_of_spend(&self, asked: &SpendQuery) -> Result<SpendView, Error> {
        let request = self.request(Method::GET, "/v1/spend").query(asked);
        self.answered(request).await
    }
}
