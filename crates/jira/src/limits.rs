//! Rate limits of an account: checked before each request, updated from each refusal.

use std::{sync::Arc, time::Duration};

use domain::{
    InstanceName,
    limits::{LimitClass, LimitGate, LimitObservation, LimitedRequest},
};
use reqwest::header::HeaderMap;

use crate::Error;

// Jira has one limit for all requests of an account.
const RESOURCE: &str = "rest";

/// Limits of one account; without a gate no request is held back.
#[derive(Clone, Debug, Default)]
pub(crate) struct JiraLimits {
    gate: Option<Arc<dyn LimitGate>>,
    account: String,
}

impl JiraLimits {
    /// Limits of an account of an instance; `role` is `reader` or `writer`.
    pub(crate) fn of(gate: Option<&Arc<dyn LimitGate>>, role: &str, instance: Option<&InstanceName>) -> Self {
        let instance = instance.map_or("default", InstanceName::as_str);
        Self {
            gate: gate.cloned(),
            account: format!("jira:{role}:{instance}"),
        }
    }

    fn knock(&self) -> LimitedRequest<'_> {
        LimitedRequest {
            account: &self.account,
            resource: RESOURCE,
            // A pace of writes is kept at github.com only.
            pace: None,
        }
    }

    /// Returns [`Error::HeldBack`], before anything is sent, for a request that Jira would refuse.
    pub(crate) async fn admit(&self) -> Result<(), Error> {
        let Some(gate) = &self.gate else { return Ok(()) };
        let admitted = gate.admit(self.knock()).await;
        admitted.map_err(|retry_after| Error::HeldBack { retry_after })
    }

    pub(crate) async fn hear(&self, wait: Duration) {
        if let Some(gate) = &self.gate {
            let heard = LimitObservation {
                refused: Some((LimitClass::Primary, wait)),
                ..LimitObservation::default()
            };
            gate.hear(self.knock(), heard).await;
        }
    }
}

/// True when the refusal is for too many writes to one issue, which does not affect other issues.
pub(crate) fn is_of_one_issue(headers: &HeaderMap) -> bool {
    let reason = headers.get("ratelimit-reason");
    let reason = reason.and_then(|reason| reason.to_str().ok());
    reason.is_some_and(|reason| reason.contains("per-issue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_limit_differs_from_account_limit() {
        for (reason, is_of_one) in [
            ("jira-per-issue-on-write", true),
            ("jira-quota-tenant-based", false),
            ("jira-burst-based", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("ratelimit-reason", reason.parse().unwrap());
            assert_eq!(is_of_one_issue(&headers), is_of_one, "{reason}");
        }
        assert!(!is_of_one_issue(&HeaderMap::new()));
    }
}
