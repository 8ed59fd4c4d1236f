//! GraphQL calls, for operations that REST lacks or needs several requests for.

use domain::{
    RepositoryName,
    limits::{LimitClass, LimitObservation},
};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::GitHubClient;
use crate::{
    Error,
    connection::{ApiConnection, GitHubCall},
    limits::{AccountLimits, ApiCaller},
    permissions::AccessKind,
    transport,
};

impl GitHubClient {
    /// Sends a GraphQL mutation as the repository's installation, without a retry.
    pub(crate) async fn graphql(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        query: &str,
        variables: Value,
    ) -> Result<Value, Error> {
        let body = json!({ "query": query, "variables": variables });
        let call = GitHubCall::Post("/graphql", &body);
        self.exchange_graphql(repository, access, call).await
    }

    /// Sends a GraphQL query about a repository and adds its variables `owner` and `name`.
    pub(crate) async fn query(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        query: &str,
        mut variables: Value,
    ) -> Result<Value, Error> {
        // The current name, as REST's redirects of a renamed repository have shown it.
        let name = self.0.places.place(repository).await.name;
        variables["owner"] = name.owner().into();
        variables["name"] = name.name().into();
        let body = json!({ "query": query, "variables": variables });
        let call = GitHubCall::Query("/graphql", &body);
        self.exchange_graphql(repository, access, call).await
    }

    /// Sends a GraphQL query about the account itself.
    pub(super) async fn query_own(&self, query: &str) -> Result<Value, Error> {
        let body = json!({ "query": query });
        let own = self.with_graphql_base(self.0.places.own().clone());
        let answer = transport::send_call(&own, GitHubCall::Query("/graphql", &body)).await?;
        answer.parse_graphql()
    }

    async fn exchange_graphql(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        call: GitHubCall<'_>,
    ) -> Result<Value, Error> {
        let mut is_fresh = false;
        loop {
            // The loop ends after one new token. GitHub refuses credentials before it runs anything, so
            // mutations may repeat.
            let caller = Box::pin(self.graphql_caller(repository, access)).await?;
            match Box::pin(transport::send_call(&caller, call)).await {
                Err(Error::Unauthorized { .. })
                    if !is_fresh && self.0.places.forget(repository, access).await =>
                {
                    is_fresh = true;
                }
                answer => {
                    let parsed = answer?.parse_graphql();
                    // GraphQL reports its limit in a body with status 200, which `transport` does not count
                    // as a refusal.
                    if let Err(Error::RateLimited { retry_after }) = parsed {
                        let observed = LimitObservation {
                            refused: Some((LimitClass::Primary, retry_after)),
                            ..LimitObservation::default()
                        };
                        caller.limits.report(call, observed).await;
                    }
                    return parsed;
                }
            }
        }
    }

    pub(crate) fn has_project_token(&self) -> bool {
        self.0.projects.is_some()
    }

    /// Sends a GraphQL call about projects with the project token.
    pub(crate) async fn projects(&self, call: GitHubCall<'_>) -> Result<Value, Error> {
        let caller = self.0.projects.as_ref().ok_or_else(|| Error::Unauthorized {
            check: "project_token, which is not set".to_owned(),
        })?;
        match transport::send_call(caller, call).await {
            Err(Error::Unauthorized { .. }) => Err(Error::Unauthorized {
                check: "project_token".to_owned(),
            }),
            answer => answer?.parse_graphql(),
        }
    }

    async fn graphql_caller(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<ApiCaller, Error> {
        let caller = self.0.places.caller(repository, access).await?;
        Ok(self.with_graphql_base(caller))
    }

    /// Enterprise Server serves REST under `/api/v3` and GraphQL under `/api`, but a connection has one base
    /// URL.
    fn with_graphql_base(&self, caller: ApiCaller) -> ApiCaller {
        let Some(base) = find_graphql_base(&self.0.api_url) else {
            return caller;
        };
        ApiCaller {
            connection: caller.connection.with_base_url(&base),
            limits: caller.limits,
        }
    }
}

/// Returns the base URL of GraphQL where it differs from that of REST.
fn find_graphql_base(api_url: &str) -> Option<String> {
    let host = api_url.strip_suffix("/api/v3")?;
    Some(format!("{host}/api"))
}

/// Caller for project requests: another account with separate limits.
pub(super) fn build_project_caller(
    connection: &ApiConnection,
    api_url: &str,
    token: &SecretString,
    limits: &AccountLimits,
) -> Result<ApiCaller, Error> {
    let base = find_graphql_base(api_url);
    let connection = connection.with_base_url(base.as_deref().unwrap_or(api_url));
    Ok(ApiCaller {
        connection: connection.with_token(token)?,
        limits: limits.of_projects(),
    })
}
