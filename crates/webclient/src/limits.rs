//! Rate limits of an account: checked before each request, updated from each answer.

use std::{sync::Arc, time::Duration};

use domain::{
    InstanceName,
    limits::{LimitGate, LimitObservation, LimitedRequest, WritePace},
};

/// Account of a service with the gate of its rate limits; without a gate no request is held back.
#[derive(Clone, Debug, Default)]
pub struct GatedAccount {
    gate: Option<Arc<dyn LimitGate>>,
    name: Arc<str>,
}

impl GatedAccount {
    /// Account of an instance; `role` is `reader` or `writer`.
    pub fn new(
        gate: Option<&Arc<dyn LimitGate>>,
        service: &str,
        role: &str,
        instance: Option<&InstanceName>,
    ) -> Self {
        let instance = instance.map_or("default", InstanceName::as_str);
        Self {
            gate: gate.cloned(),
            // Processes that share a gate use the same name, because a service counts the requests of an
            // account whatever process sends them.
            name: format!("{service}:{role}:{instance}").into(),
        }
    }

    /// Part of the account that the service counts separately.
    #[must_use]
    pub fn part(&self, part: &str) -> Self {
        Self {
            name: format!("{}:{part}", self.name).into(),
            gate: self.gate.clone(),
        }
    }

    fn describe_request<'a>(&'a self, resource: &'a str, pace: Option<WritePace>) -> LimitedRequest<'a> {
        LimitedRequest {
            account: &self.name,
            resource,
            pace,
        }
    }

    /// Waits until a request for a resource may be sent.
    ///
    /// # Errors
    /// Time to wait, for a request that the service would refuse. Nothing may be sent until then.
    pub async fn admit(&self, resource: &str, pace: Option<WritePace>) -> Result<(), Duration> {
        let Some(gate) = &self.gate else { return Ok(()) };
        gate.admit(self.describe_request(resource, pace)).await
    }

    /// Reports the limits of an answer to the gate.
    pub async fn report(&self, resource: &str, pace: Option<WritePace>, observed: LimitObservation) {
        if let Some(gate) = &self.gate
            // The gate may be a server, which an answer without limits need not reach.
            && observed != LimitObservation::default()
        {
            gate.observe(self.describe_request(resource, pace), observed)
                .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use domain::limits::{LimitClass, LimitGateFuture};

    use super::*;

    /// Gate that records the names of its calls and admits no request.
    #[derive(Debug, Default)]
    struct Records(Mutex<Vec<String>>);

    impl Records {
        fn add(&self, call: &str, request: LimitedRequest<'_>) {
            let text = format!("{call} {} {}", request.account, request.resource);
            self.0.lock().unwrap().push(text);
        }
    }

    impl LimitGate for Records {
        fn admit<'a>(&'a self, request: LimitedRequest<'a>) -> LimitGateFuture<'a, Result<(), Duration>> {
            self.add("admit", request);
            Box::pin(async { Err::<(), _>(Duration::from_secs(7)) })
        }

        fn observe<'a>(
            &'a self,
            request: LimitedRequest<'a>,
            _: LimitObservation,
        ) -> LimitGateFuture<'a, ()> {
            self.add("report", request);
            Box::pin(async {})
        }
    }

    #[tokio::test]
    async fn gate_receives_account_with_its_part() {
        let records = Arc::new(Records::default());
        let gate: Arc<dyn LimitGate> = Arc::<Records>::clone(&records);
        let instance: InstanceName = "eu".parse().unwrap();
        let account = GatedAccount::new(Some(&gate), "github", "writer", Some(&instance));
        let wait = account.part("installation-7").admit("core", None).await;
        assert_eq!(wait, Err(Duration::from_secs(7)));
        account.report("core", None, LimitObservation::default()).await;
        let refused = LimitObservation {
            refused: Some((LimitClass::Primary, Duration::from_secs(1))),
            ..LimitObservation::default()
        };
        account.report("core", None, refused).await;
        assert_eq!(
            *records.0.lock().unwrap(),
            [
                "admit github:writer:eu:installation-7 core",
                "report github:writer:eu core"
            ]
        );
    }

    #[tokio::test]
    async fn account_without_gate_is_admitted() {
        let account = GatedAccount::new(None, "jira", "reader", None);
        assert_eq!(account.admit("rest", None).await, Ok(()));
    }
}
