//! Server of a vendor's stand-in, with the controls of its traffic: requests, webhooks, and the faults of both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use tokio::sync::watch;

use crate::chaos::{DeliveryFaults, WriteFaults};
use crate::fault::ServiceFault;
use crate::http::{HttpServer, RecordedRequest, RequestLog};
use crate::webhook::SentWebhooks;

/// Server of a vendor's stand-in. GitHub's and Jira's dereference to it.
pub struct StandInServer {
    server: HttpServer,
    log: Arc<RequestLog>,
    webhooks: Arc<SentWebhooks>,
    /// HTTP status of the vendor's rate limit.
    limited: u16,
}

/// Parts of a stand-in behind its server.
pub(crate) struct StandInParts<S> {
    pub(crate) router: Router,
    pub(crate) webhooks: Arc<SentWebhooks>,
    pub(crate) state: Arc<S>,
}

impl StandInServer {
    /// Starts on a free loopback port. `build` gets the address, because answers contain it.
    pub(crate) async fn start<S>(
        log: RequestLog,
        limited: u16,
        build: impl FnOnce(SocketAddr, Arc<RequestLog>) -> anyhow::Result<StandInParts<S>>,
    ) -> anyhow::Result<(Self, Arc<S>)> {
        let log = Arc::new(log);
        let mut built = None;
        let server = HttpServer::start(Arc::clone(&log), |address| {
            let parts = build(address, Arc::clone(&log))?;
            built = Some((parts.webhooks, parts.state));
            Ok(parts.router)
        })
        .await?;
        let (webhooks, state) = built.context("the router was not made")?;
        let own = Self {
            server,
            log,
            webhooks,
            limited,
        };
        Ok((own, state))
    }

    /// Stops the server and waits a few seconds for requests and webhooks under way.
    pub(crate) async fn stop(self) {
        // The server stops first, because its requests cause webhooks.
        self.server.stop().await;
        self.webhooks.stop().await;
    }

    /// Address and port of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Sets the target and secret of webhooks. No webhooks are sent before.
    pub fn set_webhook(&self, url: &str, secret: &str) {
        self.webhooks.set_target(url, secret);
    }

    /// Sends every recorded webhook again with its delivery id.
    pub fn redeliver_all(&self) {
        self.webhooks.redeliver_all();
    }

    /// Answers the next matching requests with an error.
    pub fn fail_next(&self, fault: ServiceFault) {
        self.log.fail_next(fault);
    }

    /// Number of faults that wait for a matching request.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.log.faults_left()
    }

    /// Sets the random faults of later writes; `None` ends them.
    pub fn set_write_faults(&self, faults: Option<WriteFaults>) {
        self.log.set_write_faults(faults, self.limited);
    }

    /// Sets the random faults of later webhooks; `None` ends them.
    pub fn set_delivery_faults(&self, faults: Option<DeliveryFaults>) {
        self.webhooks.set_faults(faults);
    }

    /// Number of faults met so far, by name.
    #[must_use]
    pub fn faults_met(&self) -> BTreeMap<String, usize> {
        let mut met = self.log.faults_met();
        met.extend(self.webhooks.faults_met());
        met
    }

    /// Delays every later answer.
    pub fn set_delay(&self, delay: Duration) {
        self.log.set_delay(delay);
    }

    /// Freezes the clock of the answers, in the format of the header `Date`.
    pub fn set_date(&self, date: &'static str) {
        self.log.set_date(date);
    }

    /// Delays the appearance of new objects in lists. The lists of both vendors lag by up to 5 s; an object's own
    /// address returns it at once.
    pub fn set_list_lag(&self, lag: Duration) {
        self.log.set_list_lag(lag);
    }

    /// Sets whether later requests are kept. A bench that reads none of them saves their copies.
    pub fn set_recording(&self, is_recording: bool) {
        self.log.set_recording(is_recording);
    }

    /// Number of answered requests, as a channel that wakes up its receivers at each.
    #[must_use]
    pub fn answered(&self) -> watch::Receiver<u64> {
        self.log.answered()
    }

    /// Counts requests without copying them.
    #[must_use]
    pub fn count_requests(&self, is_counted: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.log.count_requests(is_counted)
    }

    /// Calls a function with each request so far, in order, without copying them.
    pub fn visit_requests(&self, visit: impl FnMut(&RecordedRequest)) {
        self.log.visit_requests(visit);
    }

    /// All requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.log.requests()
    }

    /// Requests that the vendor or the project's capability table forbids, one description each.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.log.violations()
    }
}
