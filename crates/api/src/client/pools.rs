//! Calls for pools of executors.

use reqwest::Method;

use super::Client;
use crate::{Error, types::PoolsView};

impl Client {
    /// Lists the pools of executors, sorted by name.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn pools(&self) -> Result<PoolsView, Error> {
        self.call(Method::GET, "/v1/pools", None).await
    }
}
