//! Metrics of limits: refused requests, held-back requests and remaining quotas.

use std::sync::LazyLock;

use domain::limits::{LimitClass, LimitedRequest};
use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Gauge},
};

const METER: &str = "journeyman.limits";

static LIMITED: LazyLock<Counter<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter.u64_counter("journeyman.outside.limited").build()
});
static REMAINING: LazyLock<Gauge<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter.u64_gauge("journeyman.outside.remaining").build()
});

/// Counts a request that a service refused because of a limit.
pub(super) fn count_refused_request(knock: &LimitedRequest<'_>, class: LimitClass) {
    count_limited_request(knock, class.as_str(), "answer");
}

/// Counts a request that was not sent because of a known limit.
pub(super) fn count_held_back_request(knock: &LimitedRequest<'_>, limit: &'static str) {
    count_limited_request(knock, limit, "known");
}

fn count_limited_request(knock: &LimitedRequest<'_>, limit: &'static str, by: &'static str) {
    let labels = [
        KeyValue::new("journeyman.account", knock.account.to_owned()),
        KeyValue::new("journeyman.limit", limit),
        KeyValue::new("journeyman.by", by),
    ];
    LIMITED.add(1, &labels);
}

/// Records the remainder of a primary limit.
pub(super) fn record_remaining_quota(knock: &LimitedRequest<'_>, remaining: u64) {
    let labels = [
        KeyValue::new("journeyman.account", knock.account.to_owned()),
        KeyValue::new("journeyman.resource", knock.resource.to_owned()),
    ];
    REMAINING.record(remaining, &labels);
}
