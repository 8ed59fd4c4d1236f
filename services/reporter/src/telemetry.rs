//! Metrics of the reporter: effects and reports by outcome, and its disk.

use std::{path::PathBuf, sync::LazyLock, time::Duration};

use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram},
};

use crate::{
    effect_error::EffectError,
    receipt::{EffectOrigin, SettledEffect},
    refused_notice::RefusedNotice,
};

static TRIED: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter("journeyman.effects.tried"));
static DURATION: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    let meter = global::meter(METER);
    meter
        .f64_histogram("journeyman.effects.duration")
        .with_unit("s")
        .with_boundaries(vec![0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
        .build()
});
static DOUBLES: LazyLock<Counter<u64>> =
    LazyLock::new(|| build_counter("journeyman.effects.doubles_deleted"));
static SETTLED: LazyLock<Counter<u64>> = LazyLock::new(|| build_counter("journeyman.reports.settled"));

const METER: &str = "journeyman.reporter";

fn build_counter(name: &'static str) -> Counter<u64> {
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
pub(crate) fn count_effect(name: &'static str, took: Duration, settled: &Result<SettledEffect, EffectError>) {
    let labels = [
        KeyValue::new("journeyman.effect", name),
        KeyValue::new("journeyman.outcome", outcome_label(settled)),
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

fn outcome_label(settled: &Result<SettledEffect, EffectError>) -> &'static str {
    match settled {
        Ok(SettledEffect { receipts, .. }) if receipts.last::<RefusedNotice>().is_some() => "not_possible",
        Ok(SettledEffect { how, .. }) => match how {
            EffectOrigin::Known => "known",
            EffectOrigin::Found => "found",
            EffectOrigin::Created => "created",
        },
        Err(trouble) => match trouble {
            EffectError::Refused(_) => "refused",
            EffectError::Failed(_) | EffectError::Missing(_) => "failed",
            EffectError::Credentials { .. } => "credentials",
            EffectError::Denied { .. } => "denied",
            EffectError::Unwritable(_) => "not_possible",
            EffectError::Later { .. } | EffectError::HandBack(_) => "later",
            EffectError::HeldBack { .. } | EffectError::Queued(_) => "held_back",
            EffectError::DiskFull(_) => "disk_full",
            EffectError::Unknown(_) => "unknown",
            EffectError::Ledger(_) => "ledger",
            EffectError::Shutdown => "shutdown",
        },
    }
}
