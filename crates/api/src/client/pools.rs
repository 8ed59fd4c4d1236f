//! Pools of executors.

use reqwest::Method;

use super::Client;
use crate::{Error, types::PoolsView};

impl Client {
    /// The pools of executors, by name.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn pools(&self) -> Result<PoolsView, Error> {
        self.call(Method::GET, "/v1/pools", None).await
    }
}
