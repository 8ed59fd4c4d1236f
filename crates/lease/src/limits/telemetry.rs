//! Metrics of limits: refused requests, held-back requests and remaining quotas.

use std::sync::LazyLock;

use domain::limits::{Knock, LimitClass};
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
pub(super) fn refused(knock: &Knock<'_>, class: LimitClass) {
    limited(knock, class.as_str(), "answer");
}

/// Counts a request that was not sent because of a known limit.
pub(super) fn held_back(knock: &Knock<'_>, limit: &'static str) {
    limited(knock, limit, "known");
}

fn limited(knock: &Knock<'_>, limit: &'static str, by: &'static str) {
    let labels = [
        KeyValue::new("journeyman.account", knock.account.to_owned()),
        KeyValue::new("journeyman.limit", limit),
        KeyValue::new("journeyman.by", by),
    ];
    LIMITED.add(1, &labels);
}

/// Records the remainder of a primary limit.
pub(super) fn remaining(knock: &Knock<'_>, remaining: u64) {
    let labels = [
        KeyValue::new("journeyman.account", knock.account.to_owned()),
        KeyValue::new("journeyman.resource", knock.resource.to_owned()),
    ];
    REMAINING.record(remaining, &labels);
}
