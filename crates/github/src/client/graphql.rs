//! GraphQL calls, for operations that REST lacks or needs several requests for.

use std::sync::Arc;

use domain::{
    RepositoryName,
    limits::{Heard, LimitClass},
};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{Client, connect::token_crab};
use crate::{
    Error,
    call::Call,
    limits::{Caller, Limits},
    permissions::Access,
    transport,
};

impl Client {
    /// Sends a GraphQL mutation as the repository's installation, without a retry.
    pub(crate) async fn graphql(
        &self,
        repository: &RepositoryName,
        access: Access,
        query: &str,
        variables: Value,
    ) -> Result<Value, Error> {
        let body = json!({ "query": query, "variables": variables });
        let call = Call::Post("/graphql", &body);
        self.exchange_graphql(repository, access, call).await
    }

    /// Sends a GraphQL query about a repository and adds its variables `owner` and `name`.
    pub(crate) async fn query(
        &self,
        repository: &RepositoryName,
        access: Access,
        query: &str,
        mut variables: Value,
    ) -> Result<Value, Error> {
        // The current name, as REST's redirects of a renamed repository have shown it.
        let name = self.0.places.place(repository).await.name;
        variables["owner"] = name.owner().into();
        variables["name"] = name.name().into();
        let body = json!({ "query": query, "variables": variables });
        let call = Call::Query("/graphql", &body);
        self.exchange_graphql(repository, access, call).await
    }

    async fn exchange_graphql(
        &self,
        repository: &RepositoryName,
        access: Access,
        call: Call<'_>,
    ) -> Result<Value, Error> {
        let mut is_fresh = false;
        loop {
            // The loop ends after one new token. GitHub refuses credentials before it runs anything, so
            // mutations may repeat.
            let caller = Box::pin(self.graphql_caller(repository, access)).await?;
            let answer = match call.is_write() {
                true => Box::pin(transport::send(&caller, call)).await,
                false => Box::pin(transport::read(&caller, call)).await,
            };
            match answer {
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
                        let heard = Heard {
                            refused: Some((LimitClass::Primary, retry_after)),
                            ..Heard::default()
                        };
                        caller.limits.hear(call, heard).await;
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
    pub(crate) async fn projects(&self, call: Call<'_>) -> Result<Value, Error> {
        let caller = self.0.projects.as_ref().ok_or_else(|| Error::Unauthorized {
            check: "project_token, which is not set".to_owned(),
        })?;
        let answer = match call.is_write() {
            true => transport::send(caller, call).await,
            false => transport::read(caller, call).await,
        };
        match answer {
            Err(Error::Unauthorized { .. }) => Err(Error::Unauthorized {
                check: "project_token".to_owned(),
            }),
            answer => answer?.parse_graphql(),
        }
    }

    /// Enterprise Server serves REST under `/api/v3` and GraphQL under `/api`, but an octocrab client has one
    /// base URL.
    async fn graphql_caller(&self, repository: &RepositoryName, access: Access) -> Result<Caller, Error> {
        let caller = self.0.places.caller(repository, access).await?;
        let Some(base) = moved_base(&self.0.api_url) else {
            return Ok(caller);
        };
        let token = self.0.places.secret(repository, access).await?;
        Ok(Caller {
            crab: Arc::new(token_crab(&base, &token)?),
            limits: caller.limits,
        })
    }
}

/// Returns the base URL of GraphQL where it differs from that of REST.
fn moved_base(api_url: &str) -> Option<String> {
    let host = api_url.strip_suffix("/api/v3")?;
    Some(format!("{host}/api"))
}

/// Caller for project requests: another account with separate limits.
pub(super) fn of_projects(api_url: &str, token: &SecretString, limits: &Limits) -> Result<Caller, Error> {
    let base = moved_base(api_url);
    Ok(Caller {
        crab: Arc::new(token_crab(base.as_deref().unwrap_or(api_url), token)?),
        limits: limits.of_projects(),
    })
}
