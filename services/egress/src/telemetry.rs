//! What is counted: bytes and refusals.

use opentelemetry::{KeyValue, global};

const METER: &str = "journeyman.egress";

/// Counts what one request or tunnel carried, by kind: `tunnel`, `plain` or `mirror`.
pub(crate) fn carried(kind: &'static str, sent: u64, received: u64) {
    let bytes = global::meter(METER)
        .u64_counter("journeyman.egress.bytes")
        .with_unit("By")
        .build();
    for (direction, count) in [("sent", sent), ("received", received)] {
        let labels = [
            KeyValue::new("journeyman.kind", kind),
            KeyValue::new("journeyman.direction", direction),
        ];
        bytes.add(count, &labels);
    }
}

/// Counts one refusal.
pub(crate) fn refused(reason: &'static str) {
    global::meter(METER)
        .u64_counter("journeyman.egress.refusals")
        .build()
        .add(1, &[KeyValue::new("journeyman.reason", reason)]);
}
