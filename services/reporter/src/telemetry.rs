//! Metrics of the reporter: effects and reports by outcome, and its disk.

use std::{path::PathBuf, sync::LazyLock, time::Duration};

use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram},
};

use crate::{
    made::{How, Settled},
    trouble::Trouble,
};

static TRIED: LazyLock<Counter<u64>> = LazyLock::new(|| counter("journeyman.effects.tried"));
static DURATION: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter
        .f64_histogram("journeyman.effects.duration")
        .with_unit("s")
        .with_boundaries(vec![0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
        .build()
});
static DOUBLES: LazyLock<Counter<u64>> = LazyLock::new(|| counter("journeyman.effects.doubles_deleted"));
static SETTLED: LazyLock<Counter<u64>> = LazyLock::new(|| counter("journeyman.reports.settled"));

const METER: &str = "journeyman.reporter";

fn counter(name: &'static str) -> Counter<u64> {
    global::meter(METER).u64_counter(name).build()
}

/// Observes the free and used space of the disk with a folder, in bytes.
pub(crate) fn observe_disk(folder: PathBuf) {
    global::meter(METER)
        .u64_observable_gauge("journeyman.reporter.disk")
        .with_unit("By")
        .with_description("Disk that holds the reporter's data folder.")
        .with_callback(move |gauge| {
            let Some(room) = git::DiskRoom::measure(&folder) else {
                return;
            };
            for (state, bytes) in [("free", room.free), ("used", room.used)] {
                gauge.observe(bytes, &[KeyValue::new("journeyman.state", state)]);
            }
        })
        .build();
}

/// Counts one try of an effect, and records its duration.
pub(crate) fn effect(name: &'static str, took: Duration, settled: &Result<Settled, Trouble>) {
    let labels = [
        KeyValue::new("journeyman.effect", name),
        KeyValue::new("journeyman.outcome", outcome(settled)),
    ];
    TRIED.add(1, &labels);
    DURATION.record(took.as_secs_f64(), &labels);
}

/// Counts duplicate comments that were deleted.
pub(crate) fn doubles_deleted(count: u64) {
    DOUBLES.add(count, &[]);
}

/// Counts one settled report.
pub(crate) fn report_settled(outcome: &'static str) {
    SETTLED.add(1, &[KeyValue::new("journeyman.outcome", outcome)]);
}

fn outcome(settled: &Result<Settled, Trouble>) -> &'static str {
    match settled {
        Ok(Settled { how, .. }) => match how {
            How::Known => "known",
            How::Found => "found",
            How::Created => "created",
        },
        Err(trouble) => match trouble {
            Trouble::Refused(_) => "refused",
            Trouble::Failed(_) | Trouble::Missing(_) => "failed",
            Trouble::Credentials { .. } => "credentials",
            Trouble::Denied { .. } => "denied",
            Trouble::Later { .. } | Trouble::HandBack(_) => "later",
            Trouble::HeldBack { .. } => "held_back",
            Trouble::DiskFull(_) => "disk_full",
            Trouble::Unknown(_) => "unknown",
            Trouble::Ledger(_) => "ledger",
            Trouble::Shutdown => "shutdown",
        },
    }
}
