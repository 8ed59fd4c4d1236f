//! GraphQL: what REST has no counterpart for, or takes several calls for.

use std::sync::Arc;

use domain::RepositoryName;
use octocrab::Octocrab;
use serde_json::{Value, json};

use super::{Client, connect::token_crab};
use crate::{
    Error,
    permissions::Access,
    transport::{self, Call},
};

impl Client {
    /// A GraphQL mutation on behalf of a repository's installation, once.
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

    /// A GraphQL query about a repository; its variables `owner` and `name` are added.
    pub(crate) async fn query(
        &self,
        repository: &RepositoryName,
        access: Access,
        query: &str,
        mut variables: Value,
    ) -> Result<Value, Error> {
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
            let crab = self.graphql_crab(repository, access).await?;
            let answer = match call.is_write() {
                true => transport::send(&crab, call).await,
                false => transport::read(&crab, call).await,
            };
            match answer {
                Err(Error::Unauthorized { .. })
                    if !is_fresh && self.0.places.forget(repository, access).await =>
                {
                    is_fresh = true;
                }
                answer => return answer?.parse_graphql(),
            }
        }
    }

    /// Enterprise Server serves REST under /api/v3 and GraphQL under /api, and octocrab has one base.
    async fn graphql_crab(
        &self,
        repository: &RepositoryName,
        access: Access,
    ) -> Result<Arc<Octocrab>, Error> {
        let Some(host) = self.0.api_url.strip_suffix("/api/v3") else {
            return self.0.places.crab(repository, access).await;
        };
        let token = self.0.places.secret(repository, access).await?;
        Ok(Arc::new(token_crab(&format!("{host}/api"), &token)?))
    }
}
