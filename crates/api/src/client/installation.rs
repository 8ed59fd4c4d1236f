//! The installation as a whole: its activity, cost, pools, rules and credentials, the stop of all planners, and its dead
//! letters.

use std::sync::Arc;

use reqwest::Method;

use super::{
    actions::ApiAction,
    connection::{ClientConnection, accept_unknown_path},
};
use crate::{
    Error,
    types::{
        ActivityQuery, ActivityView, CredentialView, DeadDetail, DeadView, PoolsView, RulesView, SpendQuery,
        SpendView, StopAllView,
    },
};

/// Calls about the installation. A clone is cheap.
#[derive(Clone)]
pub struct InstallationClient {
    pub(super) connection: Arc<ClientConnection>,
}

impl InstallationClient {
    /// Reads the results of the last days. `None` for an API of an earlier release without this path.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn activity(&self, query: &ActivityQuery) -> Result<Option<ActivityView>, Error> {
        let request = self.connection.request(Method::GET, "/v1/activity").query(query);
        accept_unknown_path(self.connection.answered(request).await)
    }

    /// Reads the cost of models in a period, from all pages of the answer. Several lines may have the same
    /// names; their amounts have to be added.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn spend(&self, query: &SpendQuery) -> Result<SpendView, Error> {
        let mut all = self.read_spend_page(query).await?;
        while let Some(from) = all.next {
            let rest = SpendQuery {
                // The first answer resolves open limits such as "now". Later pages repeat its values, so that
                // all pages cover the same period.
                since: Some(all.since.clone()),
                until: Some(all.until.clone()),
                from: Some(from),
            };
            let page = self.read_spend_page(&rest).await?;
            all.lines.extend(page.lines);
            all.next = page.next;
        }
        Ok(all)
    }

    async fn read_spend_page(&self, query: &SpendQuery) -> Result<SpendView, Error> {
        let request = self.connection.request(Method::GET, "/v1/spend").query(query);
        self.connection.answered(request).await
    }

    /// Lists the pools of executors, sorted by name.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn pools(&self) -> Result<PoolsView, Error> {
        self.connection.call(Method::GET, "/v1/pools", None).await
    }

    /// Lists the repositories with rules, and the problems of invalid files.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn rules(&self) -> Result<RulesView, Error> {
        self.connection.call(Method::GET, "/v1/rules", None).await
    }

    /// Lists the expiry dates of the services' credentials, the earliest first. Empty for an API of an
    /// earlier release without this path.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn credentials(&self) -> Result<Vec<CredentialView>, Error> {
        let found = accept_unknown_path(self.connection.call(Method::GET, "/v1/credentials", None).await)?;
        Ok(found.unwrap_or_default())
    }

    /// Reads the state of the switch that stops every planner.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn is_stopped(&self) -> Result<StopAllView, Error> {
        self.connection.call(Method::GET, "/v1/stop-all", None).await
    }

    /// Sets or clears the stop of every planner.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn stop_all(&self, on: bool) -> Result<StopAllView, Error> {
        let (method, path, body) = ApiAction::StopAll(on).request();
        self.connection.call(method, &path, body).await
    }
}

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
