//! Metrics of the egress proxy: bytes and refusals.

use std::sync::LazyLock;

use opentelemetry::{KeyValue, global, metrics::Counter};

const METER: &str = "journeyman.egress";

static BYTES: LazyLock<Counter<u64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter
        .u64_counter("journeyman.egress.traffic")
        .with_unit("By")
        .build()
});
static REFUSALS: LazyLock<Counter<u64>> = LazyLock::new(|| {
    global::meter(METER)
        .u64_counter("journeyman.egress.refusals")
        .build()
});

/// Counts the bytes of one request or tunnel, by kind: `tunnel`, `plain` or `mirror`.
pub(crate) fn count_traffic(kind: &'static str, sent: u64, received: u64) {
    for (direction, count) in [("sent", sent), ("received", received)] {
        let labels = [
            KeyValue::new("journeyman.kind", kind),
            KeyValue::new("journeyman.direction", direction),
        ];
        BYTES.add(count, &labels);
    }
}

/// Counts one refusal by its reason.
pub(crate) fn count_refusal(reason: &'static str) {
    REFUSALS.add(1, &[KeyValue::new("journeyman.reason", reason)]);
}
