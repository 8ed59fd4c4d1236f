//! What models took.

use reqwest::Method;

use super::Client;
use crate::{
    Error,
    types::{SpendQuery, SpendView},
};

impl Client {
    /// What models took in a time, in all parts that the API answers in; lines of the same names may be there more than
    /// once, to be added.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn spend(&self, asked: &SpendQuery) -> Result<SpendView, Error> {
        let mut all = self.part_of_spend(asked).await?;
        while let Some(from) = all.next {
            let rest = SpendQuery {
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
