//! Inspection of the pools for an operator who checks an installation.

use std::time::Duration;

use grant::GrantSigner;
use proto::executor::{ListToolsRequest, executor_service_client::ExecutorServiceClient};
use tonic::Code;

use super::{client::authorize_request, connector::ExecutorConnector};
use crate::config::Config;

/// Requests the tools of each executor of each pool. Returns their names, or the problem in words for the
/// operator.
pub async fn inspect_pools(config: &Config, limit: Duration) -> Vec<(String, Result<Vec<String>, String>)> {
    let signer = match GrantSigner::new(&config.planner.grant_key_id, &config.planner.grant_key) {
        Ok(signer) => signer,
        Err(refused) => return vec![("planner.grant_key".to_owned(), Err(refused.to_string()))],
    };
    let dial = match ExecutorConnector::new(config.tls.as_ref()) {
        Ok(dial) => dial,
        Err(error) => return vec![(error.key, Err(error.problem))],
    };
    let mut found = Vec::new();
    for (pool, addresses) in &config.planner.pools {
        for address in addresses.iter() {
            let executors = dial.resolve(address).await.unwrap_or_default();
            if executors.is_empty() {
                found.push((
                    format!("{pool} {address}"),
                    Err("the name does not resolve".to_owned()),
                ));
            }
            for executor in executors {
                let tools = tokio::time::timeout(limit, list_executor_tools(&executor, &dial, &signer)).await;
                let tools = tools.unwrap_or_else(|_| Err(format!("no answer within {} s", limit.as_secs())));
                found.push((format!("{pool} {executor}"), tools));
            }
        }
    }
    found
}

async fn list_executor_tools(
    address: &str,
    dial: &ExecutorConnector,
    signer: &GrantSigner,
) -> Result<Vec<String>, String> {
    let token = signer
        .sign_status(bootstrap::read_wall_clock())
        .map_err(|refused| refused.to_string())?;
    let request = authorize_request(&token, ListToolsRequest {}).map_err(|error| error.to_string())?;
    let channel = dial.channel(address).map_err(|error| error.to_string())?;
    let answer = ExecutorServiceClient::new(channel).list_tools(request).await;
    let tools = answer
        .map_err(|status| match status.code() {
            Code::Unavailable | Code::Unknown => "cannot be reached".to_owned(),
            code @ (Code::Ok
            | Code::Cancelled
            | Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated) => format!("refused: {code:?}"),
        })?
        .into_inner()
        .tools;
    Ok(tools.into_iter().map(|tool| tool.name).collect())
}
