//! What models took.

use reqwest::Method;

use super::{Client, encode::encode};
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
        let from = asked.from.map(|from| from.to_string());
        let pairs = [("since", &asked.since), ("until", &asked.until), ("from", &from)];
        let pairs = pairs.map(|(name, value)| {
            let value = value.as_deref()?;
            Some(format!("{name}={}", encode(value)))
        });
        let pairs = Vec::from_iter(pairs.into_iter().flatten()).join("&");
        self.call(Method::GET, &format!("/v1/spend?{pairs}"), None).await
    }
}
