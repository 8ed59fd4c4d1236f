//! Dead letters: records that a service could not handle.

use std::sync::Arc;

use reqwest::Method;

use super::{actions::ApiAction, connection::ClientConnection};
use crate::{
    Error,
    types::{DeadDetail, DeadView},
};

/// Calls about dead letters. A clone is cheap.
#[derive(Clone)]
pub struct DeadLetterClient {
    pub(super) connection: Arc<ClientConnection>,
}

impl DeadLetterClient {
    /// Lists the dead letters, newest last.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn list(&self) -> Result<Vec<DeadView>, Error> {
        self.connection.call(Method::GET, "/v1/dead", None).await
    }

    /// Reads one dead letter with its content.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn read(&self, sequence: u64) -> Result<DeadDetail, Error> {
        self.connection
            .call(Method::GET, &format!("/v1/dead/{sequence}"), None)
            .await
    }

    /// Retries the processing of a dead letter.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn retry(&self, sequence: u64) -> Result<(), Error> {
        self.connection.act(ApiAction::RetryLetter(sequence)).await
    }

    /// Deletes a dead letter.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn delete(&self, sequence: u64) -> Result<(), Error> {
        self.connection.act(ApiAction::DropLetter(sequence)).await
    }
}
